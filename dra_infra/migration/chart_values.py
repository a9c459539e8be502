"""Migrates values files of charts that serve models: such a file is no object, and each chart has words of its own for GPUs.

Two charts can make the claims themselves: they get the value by which they do. KubeRay's and app-template take claims of a template that has
to be there, and the others take none; for them the report says how to go on.

Sources: the charts ollama 1.77 (otwld/ollama-helm), llm-d-modelservice 0.4.12 (llm-d-incubation), ray-cluster since KubeRay 1.6
(ray-project/kuberay), vllm-stack (vllm-project/production-stack), JupyterHub's (jupyterhub/zero-to-jupyterhub-k8s), app-template 4.1
(bjw-s-labs/helm-charts), whose schema refuses claims, and its releases of 5.1 with claims in onedr0p/home-ops.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from dra_infra.kubernetes.api.manifests import FieldPath, find_all, mapping, mappings, value_at
from dra_infra.kubernetes.api.workload_kinds import read_steps, show_steps
from dra_infra.migration.device_plugin import WHOLE_GPU
from dra_infra.migration.mentions import find_mentions
from dra_infra.migration.needs import ContainerNeeds, Settings, counted_by_ray, read_needs
from dra_infra.migration.old_dra.objects import replaced
from dra_infra.migration.outcomes import Migrated, Remark

_CLASS: Final = "gpu.nvidia.com"
"""The class that both charts ask for unless their values say another."""

_ROLES: Final = ("decode", "prefill")
"""Parts of the values of llm-d that have containers."""

_RENDERED: Final = "migrate what the chart makes: helm template CHART -f FILE | dra-infra migrate -, with these values in FILE; with --to bridge its pods stay as they are"

_HUB: Final = (
    "KubeSpawner makes these pods: make a template NAME in its namespace, and write in kubespawner_override of a profile "
    "extra_pod_config: {resourceClaims: [{name: gpu, resourceClaimTemplateName: NAME}]} and extra_container_config: "
    "{resources: {claims: [{name: gpu}]}}, with the limits of CPU and memory, whose place it takes"
)

_INSIDE: Final = {
    "HelmRelease": ["spec.values"],
    "Application": ["spec.source.helm.valuesObject", "spec.sources.*.helm.valuesObject"],
}
"""Where objects of Flux and Argo CD have values of charts, by their kind."""

_CHARTS: Final = (
    *(("ollama", "gpu"), ("modelArtifacts",), ("servingEngineSpec",)),
    *(("head", "resources"), ("worker", "resources")),
)
"""Paths of mappings by which the values of these charts are known."""


def is_values(document: Mapping[str, Any]) -> bool:
    """Checks that a document is no object, and is of a chart that is known or asks for devices."""
    if document.get("apiVersion") or document.get("kind"):
        return False
    is_known = any(isinstance(value_at(document, *path), Mapping) for path in _CHARTS)
    return is_known or any(find_mentions(document))


def migrate_values(document: Mapping[str, Any], settings: Settings) -> Migrated | None:
    """Migrates a values file; None for an object of Kubernetes, and for a file that asks for no devices.

    Args:
        document: Plain data of the file.
        settings: What is known of the cluster.
    """
    if document.get("apiVersion") or document.get("kind"):
        return _migrate_inside(document, settings)
    manifest = document
    remarks = list[Remark]()
    for migrate in (_migrate_ollama, _migrate_llm_d):
        manifest, more = migrate(manifest, settings)
        remarks += more
    remarks += (*_with_templates(manifest, settings), *_vllm_models(manifest))
    # A remark on a role of llm-d is one on its devices: its variables and arguments were not read.
    read = {"ollama.gpu", *(each.path for each in remarks)}.difference(_ROLES)
    read |= {
        f"{each.path.partition('.resources.')[0]}.resources" for each in remarks if ".resources." in each.path
    }
    read |= {f"{each.path}Type" for each in remarks if each.path.endswith(".requestGPU")}
    for each in find_mentions(manifest, read):
        is_hub = "singleuser" in each.path or "KubeSpawner" in each.path
        code, hint = ("values-need-template", _HUB) if is_hub else ("values-without-claims", _RENDERED)
        remarks.append(each if each.outcome == "kept" else each._replace(code=code, hint=hint))
    return Migrated(manifest=manifest, remarks=tuple(remarks)) if remarks else None


def find_values(manifest: Mapping[str, Any]) -> Iterator[tuple[FieldPath, Mapping[str, Any]]]:
    """Values that an object of Flux or Argo CD has for charts, with where they are."""
    paths = map(read_steps, _INSIDE.get(str(manifest.get("kind")), ()))
    found = (each for path in paths for each in find_all(manifest, path))
    return ((at, values) for at, values in found if isinstance(values, Mapping))


def _migrate_inside(manifest: Mapping[str, Any], settings: Settings) -> Migrated | None:
    changed = manifest
    remarks = list[Remark]()
    for at, values in find_values(manifest):
        if done := migrate_values(values, settings):
            changed = changed if done.manifest is values else replaced(changed, at, done.manifest)
            remarks += [each._replace(path=f"{show_steps(at)}.{each.path}") for each in done.remarks]
    return Migrated(manifest=changed, remarks=tuple(remarks)) if remarks else None


class _Change(NamedTuple):
    """A values file after one chart's part of it, with what became of that part."""

    values: Mapping[str, Any]
    remarks: tuple[Remark, ...] = ()


def _migrate_ollama(values: Mapping[str, Any], settings: Settings) -> _Change:
    gpu = mapping(value_at(values, "ollama", "gpu"))
    is_knative = value_at(values, "knative", "enabled") is True
    if gpu.get("enabled") is not True or (gpu.get("draEnabled") is True and not is_knative):
        return _Change(values)
    at = "ollama.gpu"
    if is_knative:
        message = "ollama makes a Knative service, which can have no claims, whatever draEnabled says"
        hint = "write knative.enabled: false, or leave its pods as they are by --to bridge"
        return _Change(values, (Remark(at, "decide", "values-without-claims", message, hint),))
    profiles = mapping(value_at(gpu, "mig", "devices")) if value_at(gpu, "mig", "enabled") is True else {}
    if gpu.get("type", "nvidia") == "amd":
        limits = {"amd.com/gpu": gpu.get("number", 1)}
    elif profiles:
        limits = {f"nvidia.com/mig-{profile}": number for profile, number in profiles.items()}
    else:
        limits = {str(gpu.get("nvidiaResource") or WHOLE_GPU): gpu.get("number", 1)}
    found = _read(at, {"limits": limits}, settings)
    if found.is_blocked or not found.needs:
        return _Change(values, tuple(each._replace(path=at) for each in found.remarks))
    if not _are_whole(found):
        resources = " and ".join(f"{each.number} of {each.requested.resource}" for each in found.needs)
        message = f"ollama asks for {resources}, and the claim that the chart makes says no more than a class"
        hint = f'write {at}.draEnabled: true and draExistingClaimTemplate: "NAME", and make the template NAME beside the release'
        return _Change(values, (Remark(at, "decide", "values-need-template", message, hint),))
    message = (
        f"the chart makes a claim template with {found.needs[0].number} of {_CLASS}, and asks for no resource"
    )
    ollama = {**mapping(values["ollama"]), "gpu": {**gpu, "draEnabled": True}}
    remark = Remark(f"{at}.draEnabled", "changed", "values-to-claims", message)
    return _Change({**values, "ollama": ollama}, (remark,))


def _migrate_llm_d(values: Mapping[str, Any], settings: Settings) -> _Change:
    roles = {name: mapping(values.get(name)) for name in _ROLES if name in values}
    accelerator = mapping(values.get("accelerator"))
    is_chart = isinstance(values.get("modelArtifacts"), Mapping) and roles
    own = any("accelerator" in each for each in roles.values())
    if is_chart and (own or accelerator.get("type", "nvidia") != "nvidia"):
        return _Change(values, tuple(_other_roles(values)))
    if not is_chart or accelerator.get("dra") is True:
        return _Change(values)
    changed: dict[str, Any] = {}
    remarks: list[Remark] = []
    for name, role in roles.items():
        counted = _devices_of_llm_d(accelerator, role)
        containers = []
        for index, each in enumerate(mappings(role.get("containers"))):
            at = f"{name}.containers[{index}]"
            found = _read(at, mapping(each.get("resources")), settings)
            if found.is_blocked:
                return _Change(values, tuple(found.remarks))
            if found.needs and (not _are_whole(found) or found.needs[0].number != counted):
                message = (
                    f"{found.needs[0].number} of {found.needs[0].requested.resource}, and the claim that the chart makes "
                    f"is {counted} of {_CLASS}, as parallelism says"
                )
                hint = f"write what it is to be into accelerator.resourceClaimTemplates.nvidia, and take the resource out of {at}"
                where = f"{at}.resources"
                return _Change(values, (Remark(where, "decide", "values-need-template", message, hint),))
            containers.append(_without(each, found.gone))
        changed[name] = {**role, "containers": containers} if containers else role
        message = f"{name} takes {counted} of {_CLASS}, by the claim template that the chart makes"
        remarks.append(Remark(name, "changed", "values-to-claims", message))
    return _Change({**values, **changed, "accelerator": {**accelerator, "dra": True}}, tuple(remarks))


def _other_roles(values: Mapping[str, Any]) -> Iterator[Remark]:
    """Roles of llm-d of which one has an accelerator of its own, or all have one of another vendor than NVIDIA."""
    for name in filter(values.__contains__, _ROLES):
        role = mapping(values[name])
        held = {**mapping(values.get("accelerator")), **mapping(role.get("accelerator"))}
        kind = str(held.get("type", "nvidia"))
        is_off = held.get("dra") is True or role.get("create") is False
        if kind.startswith(("nvidia", "amd", "intel")) and not is_off:
            message = f"{name} asks for devices of {kind[:40]}, as many as its parallelism says where nothing else does"
            hint = f"write {name}.accelerator.dra: true, if accelerator.resourceClaimTemplates has the claim that is meant, and take the resource out of its containers"
            yield Remark(name, "decide", "values-need-template", message, hint)


def _devices_of_llm_d(accelerator: Mapping[str, Any], role: Mapping[str, Any]) -> int:
    """The devices of the chart's claim: what its template says, or tensor times data parallelism on the node."""
    written = value_at(accelerator, "resourceClaimTemplates", "nvidia", "count")
    if isinstance(written, int):
        return written
    parallelism = mapping(role.get("parallelism"))
    sizes = (parallelism.get(name, 1) for name in ("tensor", "dataLocal"))
    tensor, data = (each if isinstance(each, int) and each > 0 else 1 for each in sizes)
    return tensor * data


def _with_templates(values: Mapping[str, Any], settings: Settings) -> Iterator[Remark]:
    """Groups of KubeRay's chart and containers of app-template, which take claims of a template that is there."""
    groups = [((name,), values.get(name)) for name in ("head", "worker")]
    kinds = (("containers",), ("initContainers",))
    paths = (("additionalWorkerGroups", "*"), *(("controllers", "*", *kind, "*") for kind in kinds))
    for steps, group in (*groups, *(each for path in paths for each in find_all(values, path))):
        at = show_steps(steps)
        is_ray = steps[0] != "controllers"
        found = _read(at, mapping(value_at(group, "resources")), settings)
        yield from (each for each in found.remarks if each.outcome == "decide")
        if found.needs and not found.is_blocked:
            resources = " and ".join(f"{each.number} of {each.requested.resource}" for each in found.needs)
            message = f"{resources}: the chart takes claims of a template that is there"
            pod = (
                ""
                if is_ray
                else f" in {show_steps(steps[:2])}.pod, which app-template 5.1 takes and 4.1 refuses,"
            )
            hint = (
                f"make a template NAME in the namespace of the release, and write in {at}, in the place of the resource, "
                f"resources.claims: [{{name: gpu}}] and{pod} resourceClaims: [{{name: gpu, resourceClaimTemplateName: NAME}}]"
            )
            if is_ray and (counted := counted_by_ray(found.needs)):
                hint += (
                    f', with rayStartParams.num-gpus: "{counted}", which Ray reads off the limits otherwise'
                )
            yield Remark(f"{at}.resources", "decide", "values-need-template", message, hint)


def _vllm_models(values: Mapping[str, Any]) -> Iterator[Remark]:
    above = ("servingEngineSpec", "modelSpec", "*")
    heads = find_all(values, (*above, "raySpec", "headNode"))
    beside = [(at, each) for at, each in heads if value_at(values, *at[:-1], "enabled") is True]
    for at, each in (*find_all(values, above), *beside):
        for name in ("requestGPU", "requestGPUMem", "requestGPUMemPercentage", "requestGPUCores"):
            if amount := mapping(each).get(name):
                message = f"{name}: {str(amount)[:20]} asks for a GPU, and the chart has no value for claims"
                path = f"{show_steps(at)}.{name}"
                yield Remark(path, "decide", "values-without-claims", message, _RENDERED)


def _read(at: str, resources: Mapping[str, Any], settings: Settings) -> ContainerNeeds:
    return read_needs(at, {"resources": resources}, settings)


def _are_whole(found: ContainerNeeds) -> bool:
    """True where the devices are whole GPUs of the class that charts ask for."""
    return all(each.requested.what == "gpu" and each.requested.class_name == _CLASS for each in found.needs)


def _without(container: Mapping[str, Any], names: set[str]) -> Mapping[str, Any]:
    """The container without some resources."""
    resources = container.get("resources")
    if not names or not isinstance(resources, Mapping):
        return container
    parts = {
        part: {name: amount for name, amount in each.items() if name not in names}
        if isinstance(each, Mapping)
        else each
        for part, each in resources.items()
    }
    return {**container, "resources": {part: each for part, each in parts.items() if each != {}}}
