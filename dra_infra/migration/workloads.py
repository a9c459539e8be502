"""Objects that make pods, with their pods migrated, and with settings that controllers read off the limits of containers."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, Final

from dra_infra.catalog.vocabulary import read_data
from dra_infra.catalog.workload_kinds import workload_kinds
from dra_infra.errors import Problem
from dra_infra.kubernetes.api import (
    ObjectRef,
    PodPart,
    WorkloadKind,
    WorkloadKinds,
    json_type,
    mapping,
    mappings,
    read_steps,
    show_steps,
    value_at,
)
from dra_infra.migration.claim_templates import CLUSTER_RUNTIME, LLM, ClaimTemplates, OwnTemplates
from dra_infra.migration.device_plugin import is_device
from dra_infra.migration.kserve import refuse_mode
from dra_infra.migration.kueue import find_queue_needs
from dra_infra.migration.mentions import refuse_schedulers
from dra_infra.migration.needs import Settings, asks_devices, containers_of, counted_by_ray, is_gpu_of_ray
from dra_infra.migration.old_dra.objects import replaced
from dra_infra.migration.outcomes import Migrated, Remark
from dra_infra.migration.pod_parts import in_places, migrate_flow
from dra_infra.migration.pods import MigratedPod, migrate_pod
from dra_infra.output.wording import join_words

_Steps = tuple[str | int, ...]
_RAY: Final = "ray.io"
_SPARK: Final = re.compile(r"(spark\.(?:driver|executor)\.resource\.([A-Za-z0-9-]+))\.amount")
"""Settings by which Spark asks for devices: `.vendor` beside it has the domain of the resource."""

_ONE_RUN: Final = ("Forbid", "Replace")
"""Values of a CronJob's concurrencyPolicy with which one run does not begin beside another."""

_PER_NODE: Final = ("DaemonSet", "BroadcastJob")
"""Kinds that have a pod on each node that these choose, of Kubernetes and of OpenKruise."""

_MODELS: Final = (
    "model",
    "huggingface",
    "triton",
    "onnx",
    "sklearn",
    "xgboost",
    "lightgbm",
    "paddle",
    "pmml",
)
"""Fields of a predictor that KServe makes a container of, beside `containers`."""

_TEXTS: Final = (
    "labels",
    "annotations",
    "matchLabels",
    "nodeSelector",
    "values",
    "name",
    "image",
    "command",
    "args",
    "value",
)
"""Fields of pods, and of what makes them, that are texts or hold nothing else."""


@cache
def _rows() -> Mapping[tuple[str, str], Mapping[str, Any]]:
    """By group and kind, what data/migrated_kinds.yaml says."""
    return {(each["group"], each["kind"]): each for each in read_data("migrated_kinds.yaml")["kinds"]}


@cache
def more_kinds() -> WorkloadKinds:
    """Kinds that a migration knows beside those that are placed."""
    kinds: list[WorkloadKind] = []
    for (group, kind), row in _rows().items():
        found = ((name, path) for name in ("templates", "specs") for path in row.get(name, ()))
        parts = tuple(PodPart(path=read_steps(path), is_spec=name == "specs") for name, path in found)
        kinds.append(WorkloadKind(group=group, kind=kind, parts=parts))
    return WorkloadKinds(kinds)


def find_kind(manifest: Mapping[str, Any], kinds: WorkloadKinds) -> WorkloadKind | None:
    """The kind of an object with pods that can be migrated, or none; a user's own among *kinds* comes first."""
    known, own = (each.find(manifest) for each in (workload_kinds(), kinds))
    return own if own is not known else more_kinds().find(manifest) or known


def find_no_texts(manifest: Mapping[str, Any], kinds: WorkloadKinds) -> Iterator[Problem]:
    """`wrong-type` for each label, argument or variable of an object with pods that is no text: servers refuse the object."""
    kind = find_kind(manifest, kinds)
    parts = [each for each in kind.parts if not each.composed] if kind else []
    pods = [
        (*at, *end)
        for each in parts
        for end in ((), ("spec",), ("metadata",))
        for at, _ in each.find(manifest)
        if bool(end) is not each.is_spec
    ]
    for steps in dict.fromkeys([("metadata",), ("spec", "selector"), *pods]) if pods else ():
        for path, found in _find_others(value_at(manifest, *steps), show_steps(steps)):
            message = f"a text belongs here, and servers refuse the {found}"
            yield Problem(path=path, code="wrong-type", message=message, hint="put it in quotes")


def _find_others(value: Any, path: str, *, is_text: bool = False) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for key, each in value.items():
            below = f"{path}.{key}"
            # KServe's predictors have their autoscaler in the pod spec, and a `value` of it is a quantity.
            if is_text or key != "autoScaling":
                yield from _find_others(each, below, is_text=is_text or key in _TEXTS)
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from _find_others(each, f"{path}[{index}]", is_text=is_text)
    elif is_text and not isinstance(value, (str, type(None))):
        yield path, json_type(value)


def tell_why(manifest: Mapping[str, Any], remark: Remark, kinds: WorkloadKinds) -> Remark:
    """A remark on a resource that was not read, with the reason where pods of this kind get no claims, or the way to name a kind."""
    group = str(manifest.get("apiVersion") or "").rpartition("/")[0]
    kind = str(manifest.get("kind"))
    row = _rows().get((group, kind), {})
    is_resource = remark.path.endswith("]") and not remark.path[-2].isdigit()
    if is_resource and remark.code == "resource-in-text" and find_kind(manifest, kinds) is None and not row:
        return remark._replace(hint=f"{remark.hint}; --kinds FILE says where kinds of your own have pods")
    if "why" not in row or not is_resource:
        return remark
    return remark._replace(code="kind-not-rewritten", message=f"this {kind} {row['why']}", hint=row["hint"])


def model_of(kind: WorkloadKind, spec: Mapping[str, Any]) -> str:
    """The field of a predictor that KServe makes a container of; empty where there is none.

    With workers on more nodes it counts GPUs by limits, and writes them itself (pkg/controller/v1beta1 of kserve/kserve).
    """
    if kind.kind != "InferenceService" or "workerSpec" in spec:
        return ""
    return next((each for each in _MODELS if isinstance(spec.get(each), Mapping)), "")


def migrate_workload(
    manifest: Mapping[str, Any], settings: Settings, templates: ClaimTemplates
) -> Migrated | None:
    """Migrates the pods of an object; None for an object that makes none, or whose pods ask for no device."""
    kind = find_kind(manifest, settings.kinds)
    if kind is None:
        return None
    own = templates.of(manifest)
    asking = _find_asking(kind, manifest)
    refused = refuse_schedulers(manifest, asking)
    if refusal := refused.get("") or _refuse_owner(kind, manifest, own, asking, settings):
        return Migrated(manifest=manifest, remarks=(refusal,))
    changed, remarks = migrate_flow(manifest, settings, own.name, refused)
    remarks += [*_find_composed(kind, changed, remarks, refused), *_find_without_claims(kind, manifest)]
    remarks += dict.fromkeys(refused.values())
    # Two parts may have one template: leaders of a LeaderWorkerSet have that of the workers where they have none.
    seen: set[_Steps] = set()
    counts = _count_pods(manifest, templates) if settings.mps_memory else {}
    for part in kind.parts:
        for found, holder in part.find(manifest) if not part.composed else ():
            steps: _Steps = found if part.is_spec else (*found, "spec")
            spec = holder if part.is_spec else holder.get("spec")
            above = show_steps(steps)
            if steps in seen or above in refused or not isinstance(spec, Mapping):
                continue
            seen.add(steps)
            model = model_of(kind, spec)
            known = replace(settings, pods=counts.get(above, 0), per_node=kind.kind in _PER_NODE)
            pod = _unfold(migrate_pod(_fold(spec, model), known, own.name), spec, model)
            if pod.spec != spec:
                changed = replaced(changed, steps, pod.spec)
                changed, settings_written = _with_settings(changed, kind, steps, pod)
                # Two parts may lack one setting of the object.
                remarks += [each for each in settings_written if each not in remarks]
                gets_claims = pod.spec.get("resourceClaims") != spec.get("resourceClaims")
                need = settings.controllers.find_need(manifest, f"{above}.resourceClaims")
                is_new = all(each.code != "controller-release-needed" for each in remarks)
                remarks += [need] if gets_claims and is_new and need else []
            remarks += [
                each._replace(path=f"{above}.{each.path}" if above else each.path) for each in pod.remarks
            ]
    remarks += _place_templates(kind, changed, own)
    if own.added:
        templates_at = [steps[:-1] for steps in seen if steps[-1:] == ("spec",)]
        remarks += find_queue_needs(manifest, own.added, templates_at, settings.mapped_classes)
    return Migrated(manifest=changed, remarks=tuple(remarks), added=tuple(own.added)) if remarks else None


def _place_templates(kind: WorkloadKind, changed: Mapping[str, Any], own: OwnTemplates) -> Iterator[Remark]:
    """Makes the templates that an earlier migration made in other namespaces, and says where all of them are."""
    if kind.kind in (CLUSTER_RUNTIME, f"{LLM}Config"):
        for _, holder in kind.find_holders(changed):
            for entry in mappings(mapping(holder).get("resourceClaims")):
                own.copy(str(entry.get("resourceClaimTemplateName")))
    if own.added and own.namespaces != [value_at(changed, "metadata", "namespace")]:
        where = join_words([str(each or "default") for each in own.namespaces], most=12)
        message = f"its claim templates are in {where}, with the objects that name it; those of other namespaces need them there"
        yield Remark("", "kept", "resource-to-claim", message)


def _count_pods(manifest: Mapping[str, Any], templates: ClaimTemplates) -> Mapping[str, int]:
    """How many pods run at once of the templates at each path; 0, or none, where that is not fixed."""
    ref = ObjectRef.of(manifest).stored
    runs = value_at(manifest, "spec", "concurrencyPolicy")
    is_again = not value_at(manifest, "metadata", "name") or ("Cron" in ref.kind and runs not in _ONE_RUN)
    if is_again or ref in templates.scaled:
        return {}
    found: dict[str, list[int | None]] = {}
    for each in templates.kinds.find_pod_templates(manifest):
        is_open = each.most is not None or each.uncounted or each.malformed
        found.setdefault(each.path, []).append(None if is_open else each.replicas)
    return {path: 0 if None in counts else sum(filter(None, counts)) for path, counts in found.items()}


def _fold(spec: Mapping[str, Any], model: str) -> Mapping[str, Any]:
    """A predictor's pod spec with the container of its model behind the others; any other as it is."""
    if not model:
        return spec
    held = spec.get("containers")
    return {**spec, "containers": [*(held if isinstance(held, list) else ()), {"name": model, **spec[model]}]}


def _unfold(pod: MigratedPod, spec: Mapping[str, Any], model: str) -> MigratedPod:
    """The migrated pod with the container of its model where it was."""
    if not model:
        return pod
    *others, made = pod.spec["containers"]
    held = spec.get("containers")
    made = {key: each for key, each in made.items() if key != "name" or key in spec[model]}
    put = {**pod.spec, model: made, "containers": others if isinstance(held, list) else held}
    places = [*(f"containers[{index}]" for index in range(len(others))), model]
    return MigratedPod(
        {key: each for key, each in put.items() if key != "containers" or "containers" in spec},
        in_places(pod.remarks, places),
        pod.needs,
    )


def _find_asking(kind: WorkloadKind, manifest: Mapping[str, Any]) -> dict[str, bool]:
    """By the path of each pod spec, or of what it is composed of, whether it asks for devices."""
    holders = [(at, spec) for at, spec in kind.find_holders(manifest) if isinstance(spec, Mapping)]
    found = {at: asks_devices(_fold(spec, model_of(kind, spec))) for at, spec in holders}
    composed = kind.find_pod_templates(manifest) if any(each.composed for each in kind.parts) else ()
    return found | {each.path: asks_devices(each.spec) for each in composed if each.places}


def _refuse_owner(
    kind: WorkloadKind,
    manifest: Mapping[str, Any],
    own: OwnTemplates,
    asking: Mapping[str, bool],
    settings: Settings,
) -> Remark | None:
    """Says why pods of an object can have no claims at all, where they ask for devices or name claims."""
    path = next((each for each, asks in asking.items() if asks), None)
    if path is None:
        named = (
            holder for holder, spec in kind.find_holders(manifest) if mapping(spec).get("resourceClaims")
        )
        holder = next(named, None)
        return (
            None
            if holder is None
            else settings.controllers.find_refusal(manifest, f"{holder}.resourceClaims")
        )
    if too_old := settings.controllers.find_refusal(manifest, path):
        return too_old
    if kind.kind == CLUSTER_RUNTIME and not own.namespaces:
        message = (
            "it has no namespace, and its claims are in those of its TrainJobs, of which none is in the input"
        )
        return Remark(path, "decide", "kind-not-rewritten", message, "migrate it together with its TrainJobs")
    if kind.kind == "InferenceService":
        return refuse_mode(manifest, path, settings.serving_mode)
    return None


def _find_composed(
    kind: WorkloadKind, manifest: Mapping[str, Any], read: Sequence[Remark], refused: Container[str]
) -> Iterator[Remark]:
    """Requests in kinds whose controllers put pods together from parts: where claims go differs from kind to kind."""
    fields = [dict(part.composed).get("resourceClaims") for part in kind.parts if part.composed]
    if not fields:
        return
    where = ".".join(fields[0][0]) if fields[0] else "a field for them"
    told: set[str] = set()
    for pods in kind.find_pod_templates(manifest):
        is_open = pods.places and pods.path not in refused and asks_devices(pods.spec)
        for path, _ in containers_of(pods.spec) if is_open else ():
            at = pods.at(f"{path}.resources")
            if at not in told and not any(each.path.startswith(at) for each in read):
                told.add(at)
                message = f"a {kind.kind} has no pod spec that could be rewritten: its controller puts pods together"
                hint = f"name claims in {where}, and leave the resource out"
                yield Remark(at, "decide", "kind-not-rewritten", message, hint)


def _find_without_claims(kind: WorkloadKind, manifest: Mapping[str, Any]) -> Iterator[Remark]:
    """Requests in fields of which controllers make those of pods, without a field for claims beside them."""
    spec = mapping(manifest.get("spec"))
    if kind.kind == "InferenceService":
        for name in ("pytorch", "tensorflow"):
            served = mapping(value_at(spec, "predictor", name))
            if "-gpu" in str(served.get("runtimeVersion")) and asks_devices({"containers": [served]}):
                message = "KServe refuses a runtimeVersion with -gpu without a limit of GPUs, so no claim takes its place"
                hint = "serve it by predictor.containers, which may have claims"
                at = f"spec.predictor.{name}.resources"
                yield Remark(at, "decide", "kind-not-rewritten", message, hint)
    elif kind.kind == "ScheduledSparkApplication":
        yield from _find_spark("spec.template", mapping(spec.get("template")))
    elif kind.group == "sparkoperator.k8s.io":
        yield from _find_spark("spec", spec)


def _find_spark(at: str, spec: Mapping[str, Any]) -> Iterator[Remark]:
    """Devices that Spark asks for by itself: it counts them, and has no setting for claims."""
    hint = "name the claim in the template of driver or executor, and leave this out; Spark then schedules no tasks by GPUs"
    asked = {f"{role}.gpu": str(value_at(spec, role, "gpu", "name")) for role in ("driver", "executor")}
    settings = mapping(spec.get("sparkConf"))
    for key in settings:
        if found := _SPARK.fullmatch(str(key)):
            asked[f"sparkConf[{key}]"] = f"{settings.get(f'{found[1]}.vendor')}/{found[2]}"
    for path, name in asked.items():
        if is_device(name):
            message = f"Spark asks for {name[:80]} of a plugin, and has no setting for claims"
            yield Remark(f"{at}.{path}", "decide", "kind-not-rewritten", message, hint)


def _with_settings(
    manifest: Mapping[str, Any], kind: WorkloadKind, steps: _Steps, pod: MigratedPod
) -> tuple[Mapping[str, Any], tuple[Remark, ...]]:
    """Writes what a controller would no longer read off the limits of containers, and remarks on it."""
    at: _Steps = ()
    number: Any = 0
    if kind.group == _RAY and steps[-2:] == ("template", "spec"):
        # KubeRay refuses num-gpus beside a group's own resources (validateRayGroupResources, from 1.5 on).
        own = mapping(value_at(manifest, *steps[:-2], "resources"))
        at = (*steps[:-2], *(("resources", "GPU") if own else ("rayStartParams", "num-gpus")))
        is_said = any(map(is_gpu_of_ray, own)) or value_at(manifest, *at) is not None
        if not is_said and (counted := counted_by_ray(pod.needs.get("containers[0]", ()))):
            # It is a text there.
            number = str(counted)
        message = (
            "KubeRay reads it off the limits of the container: without them tasks with num_gpus wait for ever"
        )
    elif kind.kind in ("TrainingRuntime", CLUSTER_RUNTIME):
        policy = mapping(value_at(manifest, "spec", "mlPolicy"))
        count = max((sum(need.number for need in each) for each in pod.needs.values()), default=0)
        # MPI's value is 1 where nothing is written, and the number of GPUs then counts.
        for source, by_limits in (("torch", ("auto", "gpu")), ("mpi", (None, 1))):
            if isinstance(held := policy.get(source), Mapping) and held.get("numProcPerNode") in by_limits:
                at = ("spec", "mlPolicy", source, "numProcPerNode")
                number = count
        message = "Kubeflow Trainer reads it off the limits of the container: without them it is the number of CPUs, or one under MPI"
        torch = policy.get("torch")
        if isinstance(torch, Mapping) and "numProcPerNode" not in torch and count:
            # The runtime had the field up to 2.2 (trainingruntime_types.go), and a server of 2.3 refuses it.
            hint = f"write numProcPerNode: {count} under spec.trainer of the TrainJobs that use this runtime"
            at = ("spec", "mlPolicy", "torch")
            return manifest, (Remark(show_steps(at), "lost", "controller-setting-needed", message, hint),)
    if not number:
        return manifest, ()
    *above, group, field = at
    holder = mapping(value_at(manifest, *above))
    put: dict[Any, Any] = {**holder, group: {**mapping(holder.get(str(group))), field: number}}
    remark = Remark(show_steps(at), "changed", "controller-setting-written", message)
    return replaced(manifest, above, put), (remark,)
