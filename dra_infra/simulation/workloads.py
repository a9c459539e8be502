"""From the objects of a program to the pods that use claims, and what is asked for each of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dra_infra.model.device_class import DeviceClass
from dra_infra.model.metadata import ObjectRef
from dra_infra.model.pods import PodClaimEntry, PodTemplate, find_pod_templates
from dra_infra.model.program import UNKNOWN
from dra_infra.model.target import Release
from dra_infra.simulation import node_filters
from dra_infra.simulation.demand import (
    ONLY_AFTER_UP,
    Demand,
    Undecided,
    find_unknown,
    read_demand,
)
from dra_infra.simulation.placement import Reason
from dra_infra.simulation.pod_features import find_unmodelled
from dra_infra.simulation.pod_resources import Amounts, pod_requests
from dra_infra.specs.compute_domains import channel_template

_CLAIM_KINDS = frozenset({"ResourceClaim", "ResourceClaimTemplate"})
_REPLICA_PATHS = {
    "Job": ("spec", "parallelism"),
    "CronJob": ("spec", "jobTemplate", "spec", "parallelism"),
}
_POD_KINDS = frozenset(
    {
        "CronJob",
        "DaemonSet",
        "Deployment",
        "Job",
        "Pod",
        "PodTemplate",
        "ReplicaSet",
        "ReplicationController",
        "StatefulSet",
    }
)


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a pod's `spec.resourceClaims`.

    Args:
        name: Name of the entry.
        object: The claim or template.
        demand: What it asks for.
        shared: Whether all pods use the one claim; else each pod gets its own.
    """

    name: str
    object: ObjectRef
    demand: Demand
    shared: bool


@dataclass(frozen=True, slots=True)
class PodPlan:
    """All that decides where one pod of a workload can go.

    Args:
        entries: Its claims in the order written.
        requests: What it takes of a node.
        filter: The filters that look at nodes only.
        filter_key: Equal for equal filters.
    """

    entries: tuple[Entry, ...]
    requests: Amounts = field(hash=False)
    filter: node_filters.NodeFilter = field(hash=False, compare=False)
    filter_key: str

    @property
    def search_key(self) -> tuple[object, ...]:
        """Equal for pods with the same answer on a free fleet."""
        demands = tuple((entry.demand, entry.shared) for entry in self.entries)
        return demands, tuple(self.requests.items()), self.filter_key


@dataclass(frozen=True, slots=True)
class Workload:
    """The pods of one object.

    Args:
        owner: The object.
        replicas: How many pods at once; None for one on every node (DaemonSet).
        plan: What each of them asks for, or why that is not known.
        unmodelled: What they use and the answer leaves out.
    """

    owner: ObjectRef
    replicas: int | None
    plan: PodPlan | Undecided
    unmodelled: tuple[str, ...] = ()


class ProgramObjects:
    """The claims, templates and classes of a program by name, those of a fleet behind them."""

    def __init__(
        self, manifests: Iterable[Mapping[str, Any]], shipped: Sequence[DeviceClass], release: Release
    ) -> None:
        self.manifests = list(manifests)
        self.release = release
        self.classes: dict[str, Mapping[str, Any]] = {
            class_.metadata.name: class_.to_manifest() for class_ in shipped if class_.metadata.name
        }
        self._claims: dict[tuple[str, str], list[tuple[str, Mapping[str, Any]]]] = {}
        self._demands: dict[ObjectRef, Demand | Undecided] = {}
        for manifest in self.manifests:
            kind, (namespace, name) = str(manifest.get("kind")), _identity(manifest)
            if kind == "DeviceClass":
                self.classes[name] = manifest
            elif kind in _CLAIM_KINDS:
                self._claims.setdefault((kind, name), []).append((namespace, manifest))
            elif kind == "ComputeDomain" and (made := channel_template(manifest)):
                # The driver's controller makes it; without it the pods of a rack would not be decided.
                named = "ResourceClaimTemplate", made["metadata"]["name"]
                self._claims.setdefault(named, []).append((namespace, made))

    def find_claim(self, kind: str, name: str, namespace: str) -> tuple[ObjectRef, Demand | Undecided] | None:
        """A claim or template and what it asks for; a namespace that is not known yet counts as the one asked for."""
        namespace = namespace or "default"
        found = self._claims.get((kind, name), [])
        exact = [each for each in found if each[0] == namespace]
        loose = [each for each in found if UNKNOWN in (each[0], namespace)]
        chosen = exact or (loose if len(loose) == 1 else [])
        if not chosen:
            return None
        ref = ObjectRef(kind=kind, name=name, namespace=chosen[0][0])
        if ref not in self._demands:
            self._demands[ref] = read_demand(chosen[0][1], ref, self.classes, self.release)
        return ref, self._demands[ref]


def find_workloads(objects: ProgramObjects) -> tuple[list[Workload], list[str]]:
    """The workloads whose pods use claims, by namespace, kind and name; and what could not be looked into."""
    workloads: list[Workload] = []
    notes: list[str] = []
    for manifest in objects.manifests:
        kind = str(manifest.get("kind"))
        templates = list(find_pod_templates(manifest))
        if not templates and kind in _POD_KINDS and find_unknown(manifest.get("spec"), "spec"):
            notes.append(f"{_ref(manifest)} is not looked at: its pod spec {ONLY_AFTER_UP}")
        workloads += [
            _read_workload(template, manifest, objects)
            for template in templates
            if template.spec.get("resourceClaims")
        ]
    workloads.sort(key=lambda each: (each.owner.namespace, each.owner.kind, each.owner.name))
    return workloads, notes


def plan_claim(objects: ProgramObjects, claim: ObjectRef) -> Workload:
    """One pod that uses nothing but the claim or template."""
    field_name = "resourceClaimName" if claim.kind == "ResourceClaim" else "resourceClaimTemplateName"
    template = PodTemplate(
        owner=claim,
        path="spec",
        replicas=1,
        spec={"resourceClaims": [{"name": "claim", field_name: claim.name}], "containers": []},
    )
    return _read_workload(template, {}, objects)


def _read_workload(template: PodTemplate, manifest: Mapping[str, Any], objects: ProgramObjects) -> Workload:
    spec, owner = template.spec, template.owner
    reasons = _find_unknown_fields(template, manifest)
    entries: list[Entry] = []
    for claim in () if reasons else template.claims:
        found = _read_entry(claim, owner, objects)
        if isinstance(found, Entry):
            entries.append(found)
        else:
            reasons.extend(found)
    reasons += _find_twice(entries, owner) + _find_extended(template, objects)
    requests: Amounts = {}
    try:
        requests = pod_requests(spec)
    except ValueError as error:
        if not reasons:
            reasons.append(Reason(code="object-malformed", message=f"{owner}: {template.path}: {error}"))
    daemon = owner.kind == "DaemonSet"
    decisive = {name: spec[name] for name in node_filters.PATHS if spec.get(name)}
    plan = PodPlan(
        entries=tuple(entries),
        requests=requests,
        filter=node_filters.NodeFilter(spec, daemon=daemon),
        filter_key=json.dumps([decisive, daemon], sort_keys=True, default=str),
    )
    return Workload(
        owner=owner,
        replicas=None if template.replicas is None else max(template.replicas, 0),
        plan=Undecided(tuple(reasons)) if reasons else plan,
        unmodelled=find_unmodelled(template, manifest),
    )


def _find_unknown_fields(template: PodTemplate, manifest: Mapping[str, Any]) -> list[Reason]:
    spec, path = template.spec, template.path
    looked_at = ("resourceClaims", *node_filters.PATHS, "resources")
    paths = [found for name in looked_at for found in find_unknown(spec.get(name), f"{path}.{name}")]
    for name in ("initContainers", "containers"):
        containers = spec.get(name)
        for index, container in enumerate(containers if isinstance(containers, list) else ()):
            resources = container.get("resources") if isinstance(container, Mapping) else container
            if isinstance(resources, Mapping):
                resources = {key: value for key, value in resources.items() if key != "claims"}
            paths += find_unknown(resources, f"{path}.{name}[{index}].resources")
    steps = _REPLICA_PATHS.get(template.owner.kind, ("spec", "replicas"))
    holder: Any = manifest
    for step in steps:
        holder = holder.get(step) if isinstance(holder, Mapping) else None
    paths += find_unknown(holder, ".".join(steps))
    return [
        Reason(code="value-not-known", message=f"{template.owner}: {found} {ONLY_AFTER_UP}")
        for found in paths
    ]


def _read_entry(claim: PodClaimEntry, owner: ObjectRef, objects: ProgramObjects) -> Entry | list[Reason]:
    shared = claim.claim_name is not None
    kind = "ResourceClaim" if shared else "ResourceClaimTemplate"
    name = claim.claim_name or claim.template_name
    if not name:
        message = f"{owner}: entry {claim.name} names neither a claim nor a template"
        return [Reason(code="object-malformed", message=message)]
    found = objects.find_claim(kind, str(name), owner.namespace)
    if found is None:
        ref = ObjectRef(kind=kind, name=str(name), namespace=owner.namespace)
        message = f"{ref}, which entry {claim.name} of {owner} names, is not found in this input"
        return [Reason(code="claim-not-known", message=message)]
    ref, demand = found
    if isinstance(demand, Undecided):
        return list(demand.reasons)
    return Entry(name=claim.name, object=ref, demand=demand, shared=shared)


def _find_twice(entries: Sequence[Entry], owner: ObjectRef) -> list[Reason]:
    shared = [entry.object for entry in entries if entry.shared]
    return [
        Reason(code="not-modelled", message=f"{owner}: two entries name {ref}, which is not modelled yet")
        for ref in sorted(set(shared))
        if shared.count(ref) > 1
    ]


def _find_extended(template: PodTemplate, objects: ProgramObjects) -> list[Reason]:
    """Extended resources that device classes serve: they take devices too, by a claim that the scheduler makes."""
    specs = [spec for class_ in objects.classes.values() if isinstance(spec := class_.get("spec"), Mapping)]
    served = {str(spec["extendedResourceName"]) for spec in specs if spec.get("extendedResourceName")}
    try:
        requests = pod_requests(template.spec)
    except ValueError:
        return []
    found = [
        name for name in requests if name in served or name.startswith("deviceclass.resource.kubernetes.io/")
    ]
    return [
        Reason(
            code="not-modelled",
            message=f"{template.owner}: resource {name} is served by a device class, which is not modelled yet",
        )
        for name in found
    ]


def _identity(manifest: Mapping[str, Any]) -> tuple[str, str]:
    metadata = manifest.get("metadata")
    holder: Mapping[str, Any] = metadata if isinstance(metadata, Mapping) else {}
    return str(holder.get("namespace") or "default"), str(holder.get("name") or UNKNOWN)


def _ref(manifest: Mapping[str, Any]) -> ObjectRef:
    namespace, name = _identity(manifest)
    return ObjectRef(kind=str(manifest.get("kind")), name=name, namespace=namespace)
