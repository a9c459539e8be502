"""Migrates values files of charts that serve models: such a file is no object, and each chart has words of its own for GPUs.

Two charts can make the claims themselves: they get the value by which they do. KubeRay's and app-template take claims of a template that has
to be there, and the others take none; for them the report says how to go on.

Sources: the charts ollama 1.77 (otwld/ollama-helm), llm-d-modelservice 0.4.12 (llm-d-incubation), ray-cluster since KubeRay 1.6
(ray-project/kuberay), vllm-stack (vllm-project/production-stack), JupyterHub's (jupyterhub/zero-to-jupyterhub-k8s), app-template 4.1
(bjw-s-labs/helm-charts), whose schema refuses claims, and its releases of 5.1 with claims in onedr0p/home-ops.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from dra_infra.documents.yaml_patch import NotPatchedError, patch_document
from dra_infra.kubernetes.api import FieldPath, find_all, mapping, mappings, show_steps, value_at
from dra_infra.migration.chart_releases import (
    Installation,
    Release,
    Values,
    find_installations,
    merge_values,
    read_text,
)
from dra_infra.migration.device_plugin import WHOLE_GPU
from dra_infra.migration.mentions import find_mentions
from dra_infra.migration.needs import ContainerNeeds, Settings, counted_by_ray, read_needs
from dra_infra.migration.old_dra.objects import replaced
from dra_infra.migration.outcomes import Migrated, Outcome, Remark

_CLASS: Final = "gpu.nvidia.com"
"""The class that both charts ask for unless their values say another."""

_ROLES: Final = ("decode", "prefill")
"""Parts of the values of llm-d that have containers."""

_CONTAINERS: Final = ("containers", "initContainers")

_RENDERED: Final = "migrate what the chart makes: helm template CHART -f FILE | dra-infra migrate -, with these values in FILE; with --to bridge its pods stay as they are"

_HUB: Final = (
    "KubeSpawner makes these pods: make a template NAME in its namespace, and write in kubespawner_override of a profile "
    "extra_pod_config: {resourceClaims: [{name: gpu, resourceClaimTemplateName: NAME}]} and extra_container_config: "
    "{resources: {claims: [{name: gpu}]}}, with the limits of CPU and memory, whose place it takes"
)

_TO_BRIDGE: Final = (
    "install that release or a newer one and migrate again, or leave its pods as they are by --to bridge"
)

_MOST_TEXTS: Final = 2
"""Texts inside of texts that are read for values."""

_WORDS: Final = re.compile(r"nvidia|amd\.com/|[gG][pP][uU]|accelerator|modelArtifacts|servingEngineSpec")
"""Words of values by which a text that is no YAML may ask for devices."""

_CHARTS: Final = ("ollama", "gpu"), ("modelArtifacts",), ("servingEngineSpec",)
"""Paths of mappings by which the values of charts are known wherever they stand."""

_GROUPS: Final = ("head", "resources"), ("worker", "resources")
"""The same of KubeRay's chart, which other values have too: they count at the top, and below the name of a chart with a head."""


_FIRST: Final = frozenset(path[0] for path in (*_CHARTS, *_GROUPS))


def is_values(document: Mapping[str, Any]) -> bool:
    """Checks that a document is no object, and is of a chart that is known or asks for devices."""
    if document.get("apiVersion") or document.get("kind"):
        return False
    return any(True for _ in find_known(document)) or any(find_mentions(document))


def find_known(document: Mapping[str, Any]) -> Iterator[tuple[FieldPath, Mapping[str, Any]]]:
    """Yield values of charts that are known, at the top of a document or anywhere in it, such as those of a subchart."""
    stack: list[tuple[FieldPath, Any]] = [((), document)]
    while stack:
        at, value = stack.pop()
        if isinstance(value, Mapping):
            known = (*_CHARTS, *(_GROUPS if not at else _GROUPS[:1] if len(at) == 1 else ()))
            if any(isinstance(value_at(value, *path), Mapping) for path in known):
                yield at, value
            else:
                stack += [((*at, str(key)), each) for key, each in reversed(list(value.items()))]
        elif isinstance(value, list):
            stack += [((*at, index), each) for index, each in reversed(list(enumerate(value)))]


def migrate_values(
    document: Mapping[str, Any], settings: Settings, release: Release | None = None
) -> Migrated | None:
    """Migrates values of a chart; None where nothing of them asks for devices.

    Args:
        document: Plain data of a values file, or an object of Kubernetes that has values in a place that is known.
        settings: What is known of the cluster.
        release: The chart and its release, for values that an object has.
    """
    if release is None and (installed := list(find_installations(document))):
        return _migrate_installations(document, installed, settings)
    if document.get("apiVersion") or document.get("kind"):
        return None
    manifest = document
    remarks = list[Remark]()
    for at, _ in list(find_known(document)):
        was = value_at(manifest, *at)
        now, more = _migrate_known(was, settings, release or Release())
        manifest = manifest if now is was else replaced(manifest, at, now)
        above = f"{show_steps(at)}." if at else ""
        remarks += [each._replace(path=f"{above}{each.path}") for each in more]
    controllers = (("controllers", "*", kind, "*") for kind in _CONTAINERS)
    remarks += _with_templates(manifest, settings, release or Release(), controllers)
    for each in find_mentions(manifest, _read_by(remarks) | set(_read_by_charts(manifest))):
        is_hub = "singleuser" in each.path or "KubeSpawner" in each.path
        code, hint = ("values-need-template", _HUB) if is_hub else ("values-without-claims", _RENDERED)
        remarks.append(each if each.outcome == "kept" else each._replace(code=code, hint=hint))
    return Migrated(manifest=manifest, remarks=tuple(remarks)) if remarks else None


def _migrate_known(values: Mapping[str, Any], settings: Settings, release: Release) -> _Change:
    """Migrate values of a chart that is known by its words."""
    manifest = values
    remarks = list[Remark]()
    for migrate in (_migrate_ollama, _migrate_llm_d):
        manifest, more = migrate(manifest, settings, release)
        remarks += more
    groups = (("head",), ("worker",), ("additionalWorkerGroups", "*"))
    remarks += _with_templates(manifest, settings, release, groups)
    return _Change(manifest, (*remarks, *_vllm_models(manifest)))


def _read_by(remarks: Sequence[Remark]) -> set[str]:
    """Paths of fields that were read, by the remarks on them."""
    # A remark on a role of llm-d is one on its devices: its variables and arguments were not read.
    read = {each.path for each in remarks if each.path.rpartition(".")[2] not in _ROLES}
    read |= {
        f"{each.path.partition('.resources.')[0]}.resources" for each in remarks if ".resources." in each.path
    }
    return read | {f"{each.path}Type" for each in remarks if each.path.endswith(".requestGPU")}


def _read_by_charts(values: Mapping[str, Any]) -> Iterator[str]:
    """Paths of fields by which charts that are known ask for nothing."""
    for at, known in find_known(values):
        yield show_steps((*at, "ollama", "gpu"))
        # The names of resources, which the chart reads without claims alone.
        if value_at(known, "accelerator", "dra") is True:
            yield show_steps((*at, "accelerator", "resources"))


def find_elsewhere(
    manifest: Mapping[str, Any], settings: Settings, read: Container[str]
) -> Iterator[tuple[str, Remark]]:
    """Yield where other fields and texts of an object hold values of charts, such as those of a ConfigMap, with each remark.

    Args:
        manifest: The object.
        settings: What is known of the cluster.
        read: Paths of fields that are read elsewhere.
    """
    if not _may_hold_values(manifest):
        return
    stack: list[tuple[str, Any, int]] = [("", {**manifest, "status": None}, 0)]
    while stack:
        path, value, depth = stack.pop()
        if path in read or path.endswith(("annotations", "managedFields")):
            continue
        if isinstance(value, str):
            is_text = depth < _MOST_TEXTS and "\n" in value and _WORDS.search(value)
            data = read_text(value) if is_text else None
            stack += [(path, data, depth + 1)] if data else []
        elif isinstance(value, Mapping) and _is_of_chart(value, is_text=depth > 0):
            done = migrate_values(value, settings, Release())
            for each in done.remarks if done else ():
                is_changed = each.outcome == "changed"
                hint = (
                    "change it by hand: nothing says here which chart reads it" if is_changed else each.hint
                )
                outcome: Outcome = "decide" if is_changed else each.outcome
                yield path, each._replace(path=f"{path}.{each.path}", outcome=outcome, hint=hint)
        elif isinstance(value, Mapping):
            stack += [
                (f"{path}.{key}" if path else str(key), each, depth)
                for key, each in reversed(list(value.items()))
            ]
        elif isinstance(value, list):
            stack += [(f"{path}[{index}]", each, depth) for index, each in reversed(list(enumerate(value)))]


def _may_hold_values(manifest: Mapping[str, Any]) -> bool:
    """Check for a word of charts anywhere in an object: nearly all have none, and the paths of their fields are not wanted."""
    stack: list[Any] = [manifest]
    while stack:
        value = stack.pop()
        if isinstance(value, str):
            if "\n" in value and _WORDS.search(value):
                return True
        elif type(value) is dict or isinstance(value, Mapping):
            if not _FIRST.isdisjoint(value):
                return True
            stack += value.values()
        elif isinstance(value, list):
            stack += value
    return False


def _is_of_chart(value: Mapping[str, Any], *, is_text: bool) -> bool:
    """Check that a mapping has values of a chart at its top; in fields of an object, resources by name are found without."""
    # Nearly all of an object is no such mapping.
    if _FIRST.isdisjoint(value):
        return False
    known = (*_CHARTS, *(_GROUPS if is_text else ()))
    return any(isinstance(value_at(value, *path), Mapping) for path in known)


def find_values(manifest: Mapping[str, Any]) -> Iterator[FieldPath]:
    """Where an object has values of charts that a migration reads."""
    return (each.at for installed in find_installations(manifest) for each in installed.values)


def _migrate_installations(
    manifest: Mapping[str, Any], installed: Sequence[Installation], settings: Settings
) -> Migrated | None:
    changed = manifest
    remarks = list[Remark]()
    for each in installed:
        for at in each.unread:
            if _WORDS.search(str(value_at(manifest, *at))):
                message = "this text is no YAML before something fills it in, so that nobody can say what it asks for"
                remarks.append(Remark(show_steps(at), "decide", "values-without-claims", message, _RENDERED))
        done = migrate_values(merge_values(each.values), settings, each.release)
        own = next(
            (it for it in each.values if it.is_rewritten and _is_alone(it, done, settings, each)), None
        )
        if done is None:
            continue
        put, why = _write_values(own, done) if own else (None, "several places have values")
        for remark in done.remarks:
            holder = own or max(reversed(each.values), key=lambda it: _count_steps(it.data, remark.path))
            place = show_steps(holder.at)
            remarks.append(_below(remark, place, each.release, "" if put is not None else why))
        if own and put is not None and put != value_at(manifest, *own.at):
            changed = replaced(changed, own.at, put)
    return Migrated(manifest=changed, remarks=tuple(remarks)) if remarks else None


def _count_steps(value: Any, path: str) -> int:
    """Count the steps of a path that are there in a value."""
    items = (
        value.items() if isinstance(value, Mapping) else enumerate(value if isinstance(value, list) else ())
    )
    for key, below in items:
        for step in (f".{key}", f"[{key}]"):
            rest = path if path.startswith("[") else f".{path.removeprefix('.')}"
            if rest.startswith(step) and rest[len(step) : len(step) + 1] in ("", ".", "["):
                return 1 + _count_steps(below, rest[len(step) :])
    return 0


def _is_alone(values: Values, done: Migrated | None, settings: Settings, installed: Installation) -> bool:
    """Check that what is said of all values is said of these alone, so that a change of them is enough."""
    if len(installed.values) == 1:
        return True
    alone = migrate_values(values.data, settings, installed.release)
    return done is not None and alone is not None and alone.remarks == done.remarks


def _write_values(values: Values, done: Migrated) -> tuple[Any, str]:
    """Return what takes the place of values, or None with the reason why they stay as they are."""
    if all(each.outcome != "changed" for each in done.remarks):
        return values.data if values.text is None else values.text, ""
    if not values.is_rewritten:
        return None, "a list of parameters has them"
    alone = done.manifest
    if values.text is None:
        return alone, ""
    try:
        return patch_document(values.text, dict(values.data), alone), ""
    except NotPatchedError as error:
        return None, f"the text cannot be changed in place: {error}"


def _below(remark: Remark, place: str, release: Release, why: str) -> Remark:
    """Return a remark on values as one on the object that has them; with *why* nothing is written."""
    if remark.path == release.path and remark.code == "chart-too-old":
        return remark
    path = f"{place}.{remark.path}"
    if not why or remark.outcome != "changed":
        return remark._replace(path=path)
    hint = f"change it by hand ({why}), or have all values in one place and migrate again"
    return remark._replace(path=path, outcome="decide", hint=hint)


class _Change(NamedTuple):
    """A values file after one chart's part of it, with what became of that part."""

    values: Mapping[str, Any]
    remarks: tuple[Remark, ...] = ()


def _refuse_release(release: Release, chart: str) -> tuple[Remark, ...]:
    """Remark on a release of a chart that does not take what the migration would write."""
    why = release.why_too_old(chart)
    return (Remark(release.path, "decide", "chart-too-old", why, _TO_BRIDGE),) if why else ()


def _migrate_ollama(values: Mapping[str, Any], settings: Settings, release: Release) -> _Change:
    gpu = mapping(value_at(values, "ollama", "gpu"))
    is_knative = value_at(values, "knative", "enabled") is True
    if gpu.get("enabled") is not True:
        return _Change(values)
    if gpu.get("draEnabled") is True and not is_knative:
        return _Change(values, _refuse_release(release, "ollama"))
    at = "ollama.gpu"
    if is_knative:
        message = "ollama makes a Knative service, which can have no claims, whatever draEnabled says"
        hint = "write knative.enabled: false, or leave its pods as they are by --to bridge"
        return _Change(values, (Remark(at, "decide", "values-without-claims", message, hint),))
    reading = _read(at, {"limits": _limits_of_ollama(gpu)}, settings)
    if reading.is_blocked or not reading.needs:
        return _Change(values, tuple(each._replace(path=at) for each in reading.remarks))
    if not _are_whole(reading):
        resources = " and ".join(f"{each.number} of {each.requested.resource}" for each in reading.needs)
        message = f"ollama asks for {resources}, and the claim that the chart makes says no more than a class"
        hint = f'write {at}.draEnabled: true and draExistingClaimTemplate: "NAME", and make the template NAME beside the release'
        return _Change(values, (Remark(at, "decide", "values-need-template", message, hint),))
    if too_old := _refuse_release(release, "ollama"):
        return _Change(values, too_old)
    since = release.tell_since("ollama")
    message = f"the chart makes a claim template with {reading.needs[0].number} of {_CLASS}, and asks for no resource{since}"
    ollama = {**mapping(values["ollama"]), "gpu": {**gpu, "draEnabled": True}}
    remark = Remark(f"{at}.draEnabled", "changed", "values-to-claims", message)
    return _Change({**values, "ollama": ollama}, (remark,))


def _limits_of_ollama(gpu: Mapping[str, Any]) -> Mapping[str, Any]:
    """The limits that the chart makes of its values: MIG devices by profile, or a number of one resource."""
    if gpu.get("type", "nvidia") == "amd":
        return {"amd.com/gpu": gpu.get("number", 1)}
    profiles = mapping(value_at(gpu, "mig", "devices")) if value_at(gpu, "mig", "enabled") is True else {}
    if profiles:
        return {f"nvidia.com/mig-{profile}": number for profile, number in profiles.items()}
    return {str(gpu.get("nvidiaResource") or WHOLE_GPU): gpu.get("number", 1)}


def find_asked(document: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """Yield path, name and number of each resource that values of known charts ask for; nothing of an object.

    Source of the names: templates/deployment.yaml of ollama 1.77, and helm/templates/_helpers.tpl of vllm-project/production-stack.
    """
    if document.get("apiVersion") or document.get("kind"):
        return
    for at, values in find_known(document):
        above = f"{show_steps(at)}." if at else ""
        gpu = mapping(value_at(values, "ollama", "gpu"))
        if gpu.get("enabled") is True and gpu.get("draEnabled") is not True:
            for name, number in _limits_of_ollama(gpu).items():
                yield f"{above}ollama.gpu", name, number
        accelerator = mapping(values.get("accelerator"))
        is_llm_d = isinstance(values.get("modelArtifacts"), Mapping) and accelerator.get("dra") is not True
        for role in _ROLES if is_llm_d and accelerator.get("type", "nvidia") == "nvidia" else ():
            name = value_at(accelerator, "resources", "nvidia") or WHOLE_GPU
            if role in values:
                yield f"{above}{role}", str(name), _devices_of_llm_d(accelerator, mapping(values[role]))
        for remark, each in _models_of_vllm(values):
            if remark.rpartition(".")[2] == "requestGPU":
                yield f"{above}{remark}", str(each.get("requestGPUType") or WHOLE_GPU), each["requestGPU"]


def _migrate_llm_d(values: Mapping[str, Any], settings: Settings, release: Release) -> _Change:
    roles = {name: mapping(values.get(name)) for name in _ROLES if name in values}
    accelerator = mapping(values.get("accelerator"))
    is_chart = isinstance(values.get("modelArtifacts"), Mapping) and roles
    own = any("accelerator" in each for each in roles.values())
    if is_chart and (own or accelerator.get("type", "nvidia") != "nvidia"):
        return _Change(values, tuple(_other_roles(values)))
    if not is_chart:
        return _Change(values)
    if too_old := _refuse_release(release, "llm-d-modelservice"):
        return _Change(values, too_old)
    if accelerator.get("dra") is True:
        return _Change(values)
    since = release.tell_since("llm-d-modelservice")
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
        message = f"{name} takes {counted} of {_CLASS}, by the claim template that the chart makes{since}"
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


def _with_templates(
    values: Mapping[str, Any], settings: Settings, release: Release, paths: Iterable[tuple[str, ...]]
) -> Iterator[Remark]:
    """Groups of KubeRay's chart and containers of app-template, which take claims of a template that is there."""
    for steps, group in (each for path in paths for each in find_all(values, path)):
        at = show_steps(steps)
        is_ray = steps[0] != "controllers"
        found = _read(at, mapping(value_at(group, "resources")), settings)
        yield from (each for each in found.remarks if each.outcome == "decide")
        chart = "ray-cluster" if is_ray else "app-template"
        if found.needs and not found.is_blocked:
            yield from _refuse_release(release, chart)
            resources = " and ".join(f"{each.number} of {each.requested.resource}" for each in found.needs)
            since = release.tell_since(chart)
            message = f"{resources}: the chart takes claims of a template that is there{since}"
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


def _models_of_vllm(values: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the path of each amount that a model of the vLLM stack asks for, with what has it."""
    above = ("servingEngineSpec", "modelSpec", "*")
    heads = find_all(values, (*above, "raySpec", "headNode"))
    beside = [(at, each) for at, each in heads if value_at(values, *at[:-1], "enabled") is True]
    for at, each in (*find_all(values, above), *beside):
        for name in ("requestGPU", "requestGPUMem", "requestGPUMemPercentage", "requestGPUCores"):
            if mapping(each).get(name):
                yield f"{show_steps(at)}.{name}", each


def _vllm_models(values: Mapping[str, Any]) -> Iterator[Remark]:
    for path, each in _models_of_vllm(values):
        name = path.rpartition(".")[2]
        amount = str(each[name])[:20]
        what = str(each.get("requestGPUType") or "a GPU")[:80]
        message = f"{name}: {amount} asks for {what}, and the chart has no value for claims"
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
