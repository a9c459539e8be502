"""The objects of a cut-over: those that change at once, and workloads that are migrated one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from dra_infra.advice.objects import reference_to
from dra_infra.cutover.admission import admit
from dra_infra.cutover.sides import is_of_plugin
from dra_infra.kubernetes.api import Node, NodeTaint, ObjectRef, WorkloadKinds, mapping, mappings, value_at
from dra_infra.kubernetes.apiserver import QuotaKey
from dra_infra.kubernetes.scheduler import NodeFilter
from dra_infra.migration.needs import asks_devices, containers_of
from dra_infra.migration.outcomes import Migrated
from dra_infra.migration.workloads import find_kind

Objects = Sequence[Mapping[str, Any]]
"""Manifests of objects."""

QUOTAS: Final = ("ClusterQueue", "Cohort", "ResourceQuota")
"""Kinds of objects that count devices."""

_PARTS: Final = ("limits", "requests")

DELETED: Final = ("ReplicaSet", "ReplicationController")
"""Kinds that keep their pods when they change, so that a plan deletes these."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Unit:
    """A workload that is migrated as a whole.

    Args:
        ref: Its name.
        before: As it is now; None for one that cannot run before it moves: its claims are of old DRA, or no node has
            the driver yet.
        after: As `migrate` writes it, behind the objects that come with it.
        makes_pods: False for a template, of which others make pods later.
        file: The file that has it; empty where none does.
        beside: Other workloads that move and stand in that file.
    """

    ref: ObjectRef
    before: Mapping[str, Any] | None = field(repr=False)
    after: tuple[Mapping[str, Any], ...] = field(repr=False)
    makes_pods: bool = True
    file: str = ""
    beside: tuple[ObjectRef, ...] = ()

    def is_replaced(self, kinds: WorkloadKinds) -> bool:
        """True where its pods of before are gone once it has moved; a CronJob's run until their Job ends."""
        kind = kinds.find(self.after[-1])
        return self.ref.kind in DELETED or not (kind and kind.keeps_pods)


@dataclass(frozen=True, kw_only=True, slots=True)
class Estate:
    """All objects of a cut-over.

    Args:
        units: The workloads that are migrated, by namespace, kind and name.
        ready: Workloads that ask by claims already, and have nodes for that.
        stays: Workloads that ask the plugin and are not migrated, with the reason.
        common: All other objects, as they are from the first phase on.
        kinds: Kinds of objects that make pods.
    """

    units: tuple[Unit, ...]
    ready: tuple[ObjectRef, ...]
    stays: tuple[tuple[ObjectRef, str], ...]
    common: tuple[Mapping[str, Any], ...] = field(repr=False)
    kinds: WorkloadKinds = field(repr=False)

    @classmethod
    def of(
        cls,
        objects: Objects,
        migrated: Sequence[Migrated],
        kinds: WorkloadKinds,
        *,
        has_driver: bool,
        files: Sequence[str] = (),
    ) -> Estate:
        """Takes apart what becomes of objects.

        Args:
            objects: The manifests as they are.
            migrated: What becomes of each of them.
            kinds: As of the whole.
            has_driver: Whether nodes have the driver before anything moves.
            files: The file of each object; none where nobody says it.
        """
        units: list[Unit] = []
        ready: list[ObjectRef] = []
        stays: list[tuple[ObjectRef, str]] = []
        common: list[Mapping[str, Any]] = []
        named = files or [""] * len(objects)
        for before, done, file in zip(objects, migrated, named, strict=True):
            ref = reference_to(before)
            specs = [each.spec for each in kinds.find_pod_templates(before)]
            after = tuple(each for each in (*done.added, done.manifest) if each is not None)
            asks = any(map(asks_devices, specs))
            has_claims = any(each.get("resourceClaims") for each in specs)
            kind = find_kind(before, kinds)
            is_same = done.manifest is before or done.manifest is None
            changes = kind is not None and not is_same
            if changes or (has_claims and not asks and not has_driver):
                now = before if changes and (asks or not has_claims) else None
                units.append(Unit(ref=ref, before=now, after=after, makes_pods=bool(specs), file=file))
                continue
            common += after
            decide = [each.message for each in done.remarks if each.outcome == "decide"]
            # What a template of workloads asks for is known by what is to decide about it.
            is_left = kind is not None and not specs and any("nvidia.com/" in each for each in decide)
            is_left = is_left or any(each.code == "kind-not-rewritten" for each in done.remarks)
            if is_left or asks_plugin(before, kinds):
                stays.append((ref, next(iter(decide), "it is not migrated")))
            elif has_claims:
                ready.append(ref)
        units.sort(key=lambda each: (each.ref.namespace, each.ref.kind, each.ref.name))
        units = [
            replace(each, beside=tuple(it.ref for it in units if each.file == it.file and it is not each))
            if each.file
            else each
            for each in units
        ]
        return cls(
            units=tuple(units), ready=tuple(ready), stays=tuple(stays), common=tuple(common), kinds=kinds
        )

    def at(self, moved: frozenset[int], *, is_over: bool = False) -> list[Mapping[str, Any]]:
        """The objects in force once these of the units have moved; when all is over, without what counts the plugin's resources."""
        common = map(_at_the_end, self.common) if is_over else self.common
        return [*common, *self.of_units(moved)]

    def of_units(self, moved: frozenset[int]) -> Iterator[Mapping[str, Any]]:
        """The objects of the units alone."""
        for number, each in enumerate(self.units):
            if number in moved:
                yield from each.after
            elif each.before is not None:
                yield each.before

    def daemons(self, nodes: Sequence[Node], running: Objects = (), *more: NodeTaint) -> dict[ObjectRef, str]:
        """DaemonSets, also of what runs, that may have pods with devices on one of the nodes, also with more taints, and a selector of them."""
        found: dict[ObjectRef, tuple[ObjectRef, str]] = {}
        every = (*self.common, *(side for it in self.units for side in (it.before, it.after[-1])), *running)
        for each in (each for each in every if each and each.get("kind") == "DaemonSet"):
            spec = mapping(value_at(each, "spec", "template", "spec"))
            labels = value_at(each, "spec", "selector", "matchLabels")
            if not labels or value_at(each, "spec", "selector", "matchExpressions"):
                labels = value_at(each, "spec", "template", "metadata", "labels")
            asks = labels and (asks_plugin(each, self.kinds) or spec.get("resourceClaims"))
            tainted = (replace(node, taints=(*node.taints, *more)) for node in nodes)
            if asks and not all(map(NodeFilter(spec, daemon=True).refusal, tainted)):
                selector = ",".join(f"{key}={value}" for key, value in mapping(labels).items())
                found.setdefault((ref := reference_to(each)).stored, (ref, selector))
        return dict(found.values())

    def bare(
        self, moved: frozenset[int], nodes: Sequence[Node], running: Objects = (), *, by_claims: bool = False
    ) -> dict[ObjectRef, bool]:
        """Pods of no controller that run on one of the nodes, or may have devices there; and whether they are among these objects."""
        objects = self.at(moved)
        found = dict[ObjectRef, tuple[ObjectRef, bool]]()
        for each in (each for each in (*objects, *running) if each.get("kind") == "Pod"):
            metadata = mapping(each.get("metadata"))
            admitted = self.kinds.find_pod_templates(admit(each, self.kinds))
            spec = next((pods.spec for pods in admitted), {})
            place = spec.get("nodeName")
            asks = spec.get("resourceClaims") if by_claims else asks_plugin(each, self.kinds)
            may_be_there = asks and not place and not all(map(NodeFilter(spec).refusal, nodes))
            is_made = any(owner.get("controller") for owner in mappings(metadata.get("ownerReferences")))
            is_there = may_be_there or any(node.name == place for node in nodes)
            if is_there and metadata.get("name") and not is_made:
                found.setdefault((ref := reference_to(each)).stored, (ref, each in objects))
        return dict(found.values())

    def quotas(self, *, is_over: bool = False) -> Iterator[tuple[ObjectRef, Mapping[str, str]]]:
        """The keys of each quota and queue that count devices, with their amounts."""
        for each in self.common:
            amounts = _amounts(_at_the_end(each) if is_over else each)
            keys = {
                key: amount
                for key, amount in amounts.items()
                if is_old(key) or QuotaKey(key).class_name is not None
            }
            if keys:
                yield reference_to(each), keys


def asks_plugin(manifest: Mapping[str, Any], kinds: WorkloadKinds) -> bool:
    """True for an object whose pods ask NVIDIA's device plugin for something."""
    return any(
        is_of_plugin(str(name)) and str(amount) != "0"
        for pods in kinds.find_pod_templates(manifest)
        for _, container in containers_of(pods.spec)
        for part in _PARTS
        for name, amount in mapping(value_at(container, "resources", part)).items()
    )


def is_old(key: str) -> bool:
    """True for a key of a quota or a queue that counts resources of the plugin."""
    return is_of_plugin(key.removeprefix("requests."))


def _amounts(manifest: Mapping[str, Any]) -> dict[str, str]:
    """The amounts of a quota or a queue by key, those of several flavours behind each other; none for another object."""
    spec = mapping(manifest.get("spec")) if manifest.get("kind") in QUOTAS else {}
    found = {str(key): str(amount) for key, amount in mapping(spec.get("hard")).items()}
    for group in mappings(spec.get("resourceGroups")):
        for flavor in mappings(group.get("flavors")):
            for each in mappings(flavor.get("resources")):
                name, amount = str(each.get("name")), str(each.get("nominalQuota"))
                found[name] = f"{found[name]} + {amount}" if name in found else amount
    return found


def _at_the_end(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    """An object without the keys of the plugin's resources."""
    is_quota = manifest.get("kind") in QUOTAS
    return {**manifest, "spec": _without_old(manifest.get("spec"))} if is_quota else manifest


def _without_old(value: Any) -> Any:
    """Returns a value without keys, names and entries of the plugin's resources, wherever those for claims stand beside them."""
    if not isinstance(value, (Mapping, list)):
        return value
    names = [str(each.get("name") if isinstance(each, Mapping) else each) for each in value]
    is_double = any(QuotaKey(each).class_name is not None for each in names)
    kept = [each for each, name in zip(value, names, strict=True) if not (is_double and is_old(name))]
    if isinstance(value, Mapping):
        return {key: _without_old(value[key]) for key in kept}
    return [_without_old(each) for each in kept]
