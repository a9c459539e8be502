"""Objects that make pods, with their pods migrated, and with settings that controllers read off the limits of containers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any, Final

from dra_infra.catalog.workload_kinds import find_pod_templates, workload_kinds
from dra_infra.kubernetes.api.manifests import mapping, value_at
from dra_infra.kubernetes.api.names import SUBDOMAIN_LENGTH
from dra_infra.kubernetes.api.workload_kinds import (
    PodPart,
    WorkloadKind,
    WorkloadKinds,
    read_steps,
    show_steps,
)
from dra_infra.migration.device_plugin import is_device
from dra_infra.migration.needs import Settings, asks_devices, containers_of, counted_by_ray
from dra_infra.migration.outcomes import Migrated, Remark
from dra_infra.migration.pods import MigratedPod, migrate_flow, migrate_pod

_Steps = tuple[str | int, ...]
_Owner = tuple[str, str, str, str]
"""API group, kind, name and generateName of an object."""

_RAY: Final = "ray.io"
_SPARK: Final = re.compile(r"(spark\.(?:driver|executor)\.resource\.([A-Za-z0-9-]+))\.amount")
"""Settings by which Spark asks for devices: `.vendor` beside it has the domain of the resource."""

_RUNTIMES: Final = WorkloadKinds(
    [
        WorkloadKind(
            group="trainer.kubeflow.org",
            kind="TrainingRuntime",
            parts=(PodPart(path=read_steps("spec.template.spec.replicatedJobs.*.template.spec.template")),),
        )
    ]
)
"""A kind of Kubeflow Trainer that makes no pods, and has those of the TrainJobs of its namespace that name it."""


def find_kind(manifest: Mapping[str, Any]) -> WorkloadKind | None:
    """The kind of an object with pods that can be migrated, or none."""
    return _RUNTIMES.find(manifest) or workload_kinds().find(manifest)


class ClaimTemplates:
    """Names for the claim templates of a migration: each owner's start with its own name.

    Args:
        objects: All that is migrated: templates that are there keep their names.
    """

    def __init__(self, objects: Sequence[Mapping[str, Any]]) -> None:
        self._given: dict[tuple[str, str], tuple[_Owner | None, str]] = {}
        for each in objects:
            if each.get("kind") == "ResourceClaimTemplate":
                metadata = mapping(each.get("metadata"))
                key = str(metadata.get("namespace") or ""), str(metadata.get("name") or "")
                self._given[key] = None, _key(value_at(each, "spec", "spec"))

    def of(self, owner: Mapping[str, Any]) -> OwnTemplates:
        """The templates of one object."""
        return OwnTemplates(owner, self)

    def take(self, namespace: str, name: str, owner: _Owner, claim: str) -> bool | None:
        """Takes a name for a claim spec: whether its template is there already; None where the name is not free.

        An owner that is there twice, as in two overlays, has the same name in both for the same spec.
        """
        held = self._given.setdefault((namespace, name), (owner, claim))
        return held[0] is None if held in ((None, claim), (owner, claim)) else None


class OwnTemplates:
    """The claim templates of one object, one for each claim spec.

    Args:
        owner: The object.
        names: Where names are taken.
    """

    def __init__(self, owner: Mapping[str, Any], names: ClaimTemplates) -> None:
        metadata = mapping(owner.get("metadata"))
        self._names = names
        self._namespace = metadata.get("namespace")
        self._stem = str(metadata.get("name") or metadata.get("generateName") or "").rstrip("-.")
        self._owner: _Owner = (
            *(str(owner.get("apiVersion") or "").rpartition("/")[0], str(owner.get("kind") or "")),
            *(str(metadata.get("name") or ""), str(metadata.get("generateName") or "")),
        )
        self._known: dict[str, str] = {}
        self._taken: set[str] = set()
        self._next: dict[str, int] = {}
        self.added: list[Mapping[str, Any]] = []
        """The new objects."""

    def name(self, entry: str, claim: Mapping[str, Any]) -> str:
        """Names the template with this claim spec, and makes it where there is none."""
        key = _key(claim)
        if key not in self._known:
            # The first one needs no more than the word for its devices.
            word = entry if self._known else value_at(claim, "devices", "requests")[0]["name"]
            name, is_there = self._take(word, key)
            self._known[key] = name
            if not is_there:
                metadata = {"name": name} | ({"namespace": self._namespace} if self._namespace else {})
                self.added.append(
                    {
                        "apiVersion": "resource.k8s.io/v1",
                        "kind": "ResourceClaimTemplate",
                        "metadata": metadata,
                        "spec": {"spec": claim},
                    }
                )
        return self._known[key]

    def _take(self, entry: str, claim: str) -> tuple[str, bool]:
        """A name that ends on *entry* and a number, and whether the template is there already."""
        for number in count(self._next.get(entry, 1)):
            for between in ("", self._owner[1].lower()):
                end = "-".join(filter(None, (between, entry, str(number) if number > 1 else "")))
                name = f"{self._stem[: SUBDOMAIN_LENGTH - len(end) - 1].rstrip('-.')}-{end}".lstrip("-")
                if name in self._taken:
                    break
                is_there = self._names.take(str(self._namespace or ""), name, self._owner, claim)
                if is_there is not None:
                    self._taken.add(name)
                    self._next[entry] = number
                    return name, is_there
        raise AssertionError("numbers do not end")


def migrate_workload(
    manifest: Mapping[str, Any], settings: Settings, templates: ClaimTemplates
) -> Migrated | None:
    """Migrates the pods of an object; None for an object that makes none, or whose pods ask for no device."""
    kind = find_kind(manifest)
    if kind is None:
        return None
    own = templates.of(manifest)
    changed, remarks = migrate_flow(manifest, settings, own.name)
    remarks += [*_find_composed(kind, changed, remarks), *_find_without_claims(kind, manifest)]
    # Two parts may have one template: leaders of a LeaderWorkerSet have that of the workers where they have none.
    seen: set[_Steps] = set()
    for part in kind.parts:
        for found, holder in part.find(manifest) if not part.composed else ():
            steps: _Steps = found if part.is_spec else (*found, "spec")
            spec = holder if part.is_spec else holder.get("spec")
            if steps in seen or not isinstance(spec, Mapping):
                continue
            seen.add(steps)
            pod = migrate_pod(spec, settings, own.name)
            if pod.spec != spec:
                changed = _with_value(changed, steps, pod.spec)
                changed, settings_written = _with_settings(changed, kind, steps, pod)
                remarks += settings_written
            above = show_steps(steps)
            remarks += [
                each._replace(path=f"{above}.{each.path}" if above else each.path) for each in pod.remarks
            ]
    return Migrated(manifest=changed, remarks=tuple(remarks), added=tuple(own.added)) if remarks else None


def _find_composed(
    kind: WorkloadKind, manifest: Mapping[str, Any], read: Sequence[Remark]
) -> Iterator[Remark]:
    """Requests in kinds whose controllers put pods together from parts: where claims go differs from kind to kind."""
    fields = [dict(part.composed).get("resourceClaims") for part in kind.parts if part.composed]
    if not fields:
        return
    where = ".".join(fields[0][0]) if fields[0] else "a field for them"
    told: set[str] = set()
    for pods in find_pod_templates(manifest):
        for path, _ in containers_of(pods.spec) if pods.places and asks_devices(pods.spec) else ():
            at = pods.at(f"{path}.resources")
            if at not in told and not any(each.path.startswith(at) for each in read):
                told.add(at)
                message = f"a {kind.kind} has no pod spec that could be rewritten: its controller puts pods together"
                hint = f"name claims in {where}, and leave the resource out"
                yield Remark(at, "decide", "kind-not-rewritten", message, hint)


def _find_without_claims(kind: WorkloadKind, manifest: Mapping[str, Any]) -> Iterator[Remark]:
    """Requests in fields of which controllers make those of pods, without a field for claims beside them."""
    spec = mapping(manifest.get("spec"))
    if kind.kind == "TrainJob" and _asks(value_at(spec, "trainer", "resourcesPerNode")):
        message = "a TrainJob names no claims: its pods have those of its runtime"
        hint = "give the runtime the claim and numProcPerNode, and leave the resource out here"
        yield Remark("spec.trainer.resourcesPerNode", "decide", "kind-not-rewritten", message, hint)
    elif kind.kind == "InferenceService":
        for name in ("pytorch", "tensorflow"):
            served = mapping(value_at(spec, "predictor", name))
            if "-gpu" in str(served.get("runtimeVersion")) and _asks(served.get("resources")):
                message = "KServe refuses a runtimeVersion with -gpu without a limit of GPUs, so no claim takes its place"
                hint = "serve it by predictor.containers, which may have claims"
                at = f"spec.predictor.{name}.resources"
                yield Remark(at, "decide", "kind-not-rewritten", message, hint)
    elif kind.kind == "SparkApplication":
        yield from _find_spark(spec)


def _find_spark(spec: Mapping[str, Any]) -> Iterator[Remark]:
    """Devices that Spark asks for by itself: it counts them, and has no setting for claims."""
    hint = "name the claim in the template of driver or executor, and leave this out; Spark then schedules no tasks by GPUs"
    for role in ("driver", "executor"):
        if is_device(name := str(value_at(spec, role, "gpu", "name"))):
            message = f"Spark asks for {name[:80]} of a plugin, and has no setting for claims"
            yield Remark(f"spec.{role}.gpu", "decide", "kind-not-rewritten", message, hint)
    settings = mapping(spec.get("sparkConf"))
    for key in settings:
        found = _SPARK.fullmatch(str(key))
        name = f"{settings.get(f'{found[1]}.vendor')}/{found[2]}" if found else ""
        if is_device(name):
            message = f"Spark asks for {name[:80]} of a plugin, and has no setting for claims"
            yield Remark(f"spec.sparkConf[{key}]", "decide", "kind-not-rewritten", message, hint)


def _asks(resources: Any) -> bool:
    return asks_devices({"containers": [{"resources": resources}]})


def _with_settings(
    manifest: Mapping[str, Any], kind: WorkloadKind, steps: _Steps, pod: MigratedPod
) -> tuple[Mapping[str, Any], tuple[Remark, ...]]:
    """Writes what a controller would no longer read off the limits of containers, and remarks on it."""
    at: _Steps = ()
    number: Any = 0
    if kind.group == _RAY and steps[-2:] == ("template", "spec"):
        at = (*steps[:-2], "rayStartParams", "num-gpus")
        if _value_at(manifest, at) is None and (
            counted := counted_by_ray(pod.needs.get("containers[0]", ()))
        ):
            # It is a text there.
            number = str(counted)
        message = (
            "KubeRay reads it off the limits of the container: without them tasks with num_gpus wait for ever"
        )
    elif kind.kind == "TrainingRuntime":
        policy = mapping(_value_at(manifest, ("spec", "mlPolicy")))
        count = max((sum(need.number for need in each) for each in pod.needs.values()), default=0)
        # MPI's value is 1 where nothing is written, and the number of GPUs then counts.
        for source, by_limits in (("torch", ("auto", "gpu")), ("mpi", (None, 1))):
            if isinstance(held := policy.get(source), Mapping) and held.get("numProcPerNode") in by_limits:
                at, number = ("spec", "mlPolicy", source, "numProcPerNode"), count
        message = "Kubeflow Trainer reads it off the limits of the container: without them it is the number of CPUs, or one under MPI"
        torch = policy.get("torch")
        if isinstance(torch, Mapping) and "numProcPerNode" not in torch and count:
            # The runtime had the field up to 2.2 (trainingruntime_types.go), and a server of 2.3 refuses it.
            hint = f"write numProcPerNode: {count} under spec.trainer of the TrainJobs that use this runtime"
            at = ("spec", "mlPolicy", "torch")
            return manifest, (Remark(show_steps(at), "lost", "controller-setting-needed", message, hint),)
    if not number:
        return manifest, ()
    return _with_value(manifest, at, number), (
        Remark(show_steps(at), "changed", "controller-setting-written", message),
    )


def _value_at(value: Any, steps: _Steps) -> Any:
    for step in steps:
        if isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            value = mapping(value).get(str(step))
    return value


def _with_value(value: Any, steps: _Steps, put: Any) -> Any:
    """A copy of *value* with something else in one place."""
    if not steps:
        return put
    step, rest = steps[0], steps[1:]
    if isinstance(value, list) and isinstance(step, int):
        return [_with_value(each, rest, put) if number == step else each for number, each in enumerate(value)]
    held = mapping(value)
    return {**held, str(step): _with_value(held.get(str(step)), rest, put)}


def _key(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
