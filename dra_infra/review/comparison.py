"""Both sides of a review, compared: what changes, who uses which claim, where pods go, and what runs.

All of it is found once, and read by those who look for dangers.
"""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from dra_infra.catalog.train_jobs import with_runtime
from dra_infra.catalog.workload_kinds import workload_kinds
from dra_infra.kubernetes.api import (
    ObjectRef,
    PodTemplate,
    WorkloadKinds,
    group_of,
    is_same_value,
    mapping,
    mappings,
    value_at,
)
from dra_infra.placement.placement import Placement
from dra_infra.placement.running import NOTHING_RUNS, Running
from dra_infra.program_objects import Program, ProgramObject, get_field
from dra_infra.review.changes import Change

ROLLING_KINDS: Final = ("Deployment", "StatefulSet", "DaemonSet")


@dataclass(frozen=True, kw_only=True, slots=True)
class ProgramIndex:
    """The objects of one program by kind, namespace and name, the pods that they make, and who names them.

    Args:
        objects: Every object.
        pods: The pods that each object, or each of its parts, makes, for the kinds that make pods.
        needs: The claims, templates, volumes' sources and accounts that the pods of an object cannot start without.
        users: Whose pods, or whose requests for a class, name an object. The object need not be in the program.
    """

    objects: Mapping[ObjectRef, ProgramObject] = field(repr=False)
    pods: Mapping[ObjectRef, PodTemplate] = field(repr=False)
    needs: Mapping[ObjectRef, frozenset[ObjectRef]] = field(repr=False)
    users: Mapping[ObjectRef, tuple[ObjectRef, ...]] = field(repr=False)

    @classmethod
    def of(cls, program: Program, kinds: WorkloadKinds) -> ProgramIndex:
        """Index *program*, whose pods are those of *kinds*."""
        pods: dict[ObjectRef, PodTemplate] = {}
        needs: dict[ObjectRef, frozenset[ObjectRef]] = {}
        users: defaultdict[ObjectRef, set[ObjectRef]] = defaultdict(set)
        manifests = [item.manifest for item in program.objects]
        for item in program.objects:
            for template in kinds.find_pod_templates(with_runtime(item.manifest, manifests)):
                pods[replace(item.ref, part=template.owner.part)] = template
                needs[item.ref] = needs.get(item.ref, frozenset()) | frozenset(_find_needs(template))
            for ref in needs.get(item.ref, ()):
                users[ref].add(item.ref)
            for name in find_class_names(item.manifest):
                users[ObjectRef(kind="DeviceClass", name=name)].add(item.ref)
        return cls(
            objects={item.ref: item for item in program.objects},
            pods=pods,
            needs=needs,
            users={ref: tuple(sorted(owners)) for ref, owners in users.items()},
        )

    def by_object(self) -> defaultdict[ObjectRef, list[PodTemplate]]:
        """The pods of each object, of all of its parts."""
        found: defaultdict[ObjectRef, list[PodTemplate]] = defaultdict(list)
        for owner, pods in self.pods.items():
            # A PodTemplate makes no pods by itself.
            if owner.kind != "PodTemplate":
                found[owner.whole].append(pods)
        return found

    def team_of(self, owner: ObjectRef, label: str) -> str:
        """What a label of a workload says, else that of its pods; empty where neither has it."""
        item, pods = self.objects.get(owner.whole), self.pods.get(owner)
        of_object = value_at(item.manifest, "metadata", "labels", label) if item else None
        return str(of_object or (pods.labels.get(label, "") if pods else ""))

    def count_devices(self, pods: PodTemplate) -> int | None:
        """How many devices of its own each pod gets; None when that is not a plain number.

        Claims that pods share by name are not counted: one more pod takes no more of their devices.
        """
        total = 0
        for entry in pods.claims:
            if entry.template_name is None:
                continue
            template = self.objects.get(_ref(pods, "ResourceClaimTemplate", str(entry.template_name)))
            count = None if template is None else count_claim_devices(template.manifest)
            if count is None:
                return None
            total += count
        return total


def count_claim_devices(manifest: Mapping[str, Any]) -> int | None:
    """Devices that one claim takes; None for alternatives and for `All`, which depend on the node."""
    path = "spec.spec.devices" if manifest.get("kind") == "ResourceClaimTemplate" else "spec.devices"
    total = 0
    for request in _requests(get_field(manifest, path)):
        exactly = request.get("exactly")
        if not isinstance(exactly, Mapping) or exactly.get("allocationMode") == "All":
            return None
        count = exactly.get("count", 1)
        if not isinstance(count, (int, float)):
            return None
        # Admin access looks at devices without taking them away from others.
        total += 0 if exactly.get("adminAccess") else int(count)
    return total


def _find_needs(pods: PodTemplate) -> Iterator[ObjectRef]:
    for entry in pods.claims:
        yield from _maybe(pods, "ResourceClaimTemplate", entry.template_name)
        yield from _maybe(pods, "ResourceClaim", entry.claim_name)
    for volume in mappings(pods.spec.get("volumes")):
        for field_name, key, kind in (
            ("configMap", "name", "ConfigMap"),
            ("secret", "secretName", "Secret"),
            ("persistentVolumeClaim", "claimName", "PersistentVolumeClaim"),
        ):
            yield from _maybe(pods, kind, get_field(volume, f"{field_name}.{key}"))
    for container in (*mappings(pods.spec.get("containers")), *mappings(pods.spec.get("initContainers"))):
        for source in mappings(container.get("envFrom")):
            yield from _maybe(pods, "ConfigMap", get_field(source, "configMapRef.name"))
            yield from _maybe(pods, "Secret", get_field(source, "secretRef.name"))
    yield from _maybe(pods, "ServiceAccount", pods.spec.get("serviceAccountName"))


def _maybe(pods: PodTemplate, kind: str, name: Any) -> Iterator[ObjectRef]:
    if isinstance(name, str):
        yield _ref(pods, kind, name)


def _ref(pods: PodTemplate, kind: str, name: str) -> ObjectRef:
    return ObjectRef(kind=kind, name=name, namespace=pods.owner.namespace)


def find_class_names(manifest: Mapping[str, Any]) -> set[str]:
    """The device classes that a claim or template asks for."""
    if group_of(manifest) != "resource.k8s.io":
        return set()
    names: set[str] = set()
    for path in ("spec.devices", "spec.spec.devices"):
        for request in _requests(get_field(manifest, path)):
            for part in (request.get("exactly"), *mappings(request.get("firstAvailable"))):
                if isinstance(part, Mapping) and isinstance(part.get("deviceClassName"), str):
                    names.add(part["deviceClassName"])
    return names


def _requests(devices: Any) -> list[Mapping[str, Any]]:
    return mappings(devices.get("requests")) if isinstance(devices, Mapping) else []


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """Both sides of a review, side by side.

    Args:
        changes: Every object that differs.
        base: The program before.
        head: The program after.
        base_index: The objects of the base, and who names them.
        head_index: The same of the head.
        base_placement: Where the pods of the base go; None without a fleet.
        head_placement: The same of the head.
        running: What runs; nothing without a snapshot.
        own: Objects of either program, by their keys among what runs.
        users: Who names an object after the change: objects of the head, and what runs beside both programs.
        moved: URNs of deleted objects that another resource creates.
        rolling: URNs of changes that exchange pods with claims.
        exchanged: URNs of other changes of what such pods come from, with which their controllers deal in their own way.
        kinds: Kinds of objects that make pods.
    """

    changes: tuple[Change, ...]
    base: Program = field(repr=False)
    head: Program = field(repr=False)
    base_index: ProgramIndex
    head_index: ProgramIndex
    base_placement: Placement | None = field(repr=False)
    head_placement: Placement | None = field(repr=False)
    running: Running
    own: frozenset[ObjectRef] = field(repr=False)
    users: Mapping[ObjectRef, tuple[ObjectRef, ...]] = field(repr=False)
    moved: frozenset[str]
    rolling: frozenset[str]
    exchanged: frozenset[str]
    kinds: WorkloadKinds = field(repr=False)

    @classmethod
    def of(
        cls,
        changes: tuple[Change, ...],
        base: Program,
        head: Program,
        *,
        running: Running = NOTHING_RUNS,
        before: Placement | None = None,
        after: Placement | None = None,
        kinds: WorkloadKinds | None = None,
    ) -> Comparison:
        """Index both programs, and what runs beside them.

        Args:
            changes: Every object that differs.
            base: The program before.
            head: The program after.
            running: What runs.
            before: Where the pods of the base go; None without a fleet.
            after: Where the pods of the head go.
            kinds: Kinds of objects that make pods; None takes those that the catalogue knows.
        """
        kinds = kinds or workload_kinds()
        base_index, head_index = ProgramIndex.of(base, kinds), ProgramIndex.of(head, kinds)
        own = frozenset(ref.stored for ref in (*base_index.objects, *head_index.objects))
        users, others = head_index.users, _index_others(running, own, kinds).users
        gone = (each for each in changes if each.action == "deleted")
        pods = base_index.by_object(), head_index.by_object()
        return cls(
            changes=changes,
            base=base,
            head=head,
            base_index=base_index,
            head_index=head_index,
            base_placement=before,
            head_placement=after,
            running=running,
            own=own,
            users={ref: (*users.get(ref, ()), *others.get(ref, ())) for ref in {*users, *others}},
            moved=frozenset(each.urn for each in gone if each.ref in head_index.objects),
            rolling=frozenset(each.urn for each in changes if _rolls(each, base_index, head_index)),
            exchanged=frozenset(each.urn for each in changes if _exchanges(each, *pods, kinds)),
            kinds=kinds,
        )


def _rolls(change: Change, base: ProgramIndex, head: ProgramIndex) -> bool:
    if change.action != "changed" or change.ref.kind not in ROLLING_KINDS:
        return False
    old, new = base.pods.get(change.ref), head.pods.get(change.ref)
    return old is not None and new is not None and bool(new.claims) and not is_same_value(old.spec, new.spec)


def _exchanges(
    change: Change,
    base: Mapping[ObjectRef, Sequence[PodTemplate]],
    head: Mapping[ObjectRef, Sequence[PodTemplate]],
    kinds: WorkloadKinds,
) -> bool:
    kind = kinds.find(change.object.manifest) if change.action == "changed" else None
    if change.before is None or kind is None or change.ref.kind in ROLLING_KINDS:
        return False
    old, new = base.get(change.before.ref, ()), head.get(change.ref, ())
    specs = [{each.owner.part: each.spec for each in side} for side in (old, new)]
    fields = [kind.find_changed_by(each.manifest) for each in (change.before, change.object)]
    return any(each.claims for each in (*old, *new)) and not (
        is_same_value(*specs) and is_same_value(*fields)
    )


def _index_others(running: Running, own: frozenset[ObjectRef], kinds: WorkloadKinds) -> ProgramIndex:
    """Running objects that nothing else made and no program has: pods of a Deployment and claims of a pod say nothing new."""
    objects = [
        ProgramObject(urn="", manifest=manifest)
        for ref, manifest in running.objects.items()
        if ref not in own and not _is_made(manifest)
    ]
    return ProgramIndex.of(Program(project="", stack="", objects=tuple(objects)), kinds)


def _is_made(manifest: Mapping[str, Any]) -> bool:
    references = get_field(manifest, "metadata.ownerReferences")
    return isinstance(references, list) and bool(references)


NEW: Final = "+new"
"""Told apart from names of the base, for an object may change under its name; no name can hold a plus sign."""

_NAMES: Final = ("ResourceClaim", "ResourceClaimTemplate", "DeviceClass")
_RULE: Final = "DeviceTaintRule"


def both_generations(
    compared: Comparison, pods: Mapping[ObjectRef, int | None]
) -> tuple[list[Mapping[str, Any]], dict[ObjectRef, ObjectRef]]:
    """Return the objects of the base, the head's DeviceTaintRules, and under other names its workloads with their claims and classes.

    *pods* says how many pods, or groups, each of these workloads gets, None for one per node. Returned is too what each renamed
    one is called.
    """
    base, head = compared.base, compared.head
    known = {item.ref: item.manifest for item in base.objects}
    renamed = {
        (item.ref.kind, item.ref.name)
        for item in head.objects
        if item.ref.kind in _NAMES and known.get(item.ref) != item.manifest
    }
    manifests = [item.manifest for item in base.objects if item.ref.kind != _RULE]
    manifests += [item.manifest for item in head.objects if item.ref.kind == _RULE]
    owners: dict[ObjectRef, ObjectRef] = {}
    for item in head.objects:
        if (item.ref.kind, item.ref.name) in renamed or item.ref in pods:
            manifest = copy.deepcopy(dict(item.manifest))
            if not isinstance(manifest.get("metadata"), dict) or not isinstance(manifest.get("spec"), dict):
                continue
            manifest["metadata"]["name"] = f"{item.ref.name}{NEW}"
            if item.ref in pods:
                if pods[item.ref] is not None:
                    manifest["spec"]["replicas"] = pods[item.ref]
                owners[replace(item.ref, name=f"{item.ref.name}{NEW}")] = item.ref
            _rename(manifest, renamed, compared.kinds)
            manifests.append(manifest)
    return manifests, owners


def _rename(manifest: Mapping[str, Any], renamed: set[tuple[str, str]], kinds: WorkloadKinds) -> None:
    """Let a copy of an object name the new claims and classes."""
    kind = kinds.find(manifest)
    for _, spec in kind.find_holders(manifest) if kind else ():
        for entry in mappings(mapping(spec).get("resourceClaims")):
            _suffix(entry, "resourceClaimName", "ResourceClaim", renamed)
            _suffix(entry, "resourceClaimTemplateName", "ResourceClaimTemplate", renamed)
    for path in ("spec.devices.requests", "spec.spec.devices.requests"):
        for request in mappings(get_field(manifest, path)):
            for part in (request.get("exactly"), *mappings(request.get("firstAvailable"))):
                _suffix(part, "deviceClassName", "DeviceClass", renamed)


def _suffix(holder: Any, field: str, kind: str, renamed: set[tuple[str, str]]) -> None:
    if isinstance(holder, dict) and (kind, str(holder.get(field))) in renamed:
        holder[field] = f"{holder[field]}{NEW}"
