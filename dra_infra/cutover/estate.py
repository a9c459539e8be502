"""The objects of a cut-over: those that change at once, and workloads that are migrated one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dra_infra.advice.objects import reference_to
from dra_infra.catalog.workload_kinds import find_pod_templates
from dra_infra.cutover.sides import is_of_plugin
from dra_infra.kubernetes.api.manifests import mapping, value_at
from dra_infra.kubernetes.api.metadata import ObjectRef
from dra_infra.kubernetes.scheduler.fleet import Node
from dra_infra.kubernetes.scheduler.node_filters import NodeFilter
from dra_infra.migration.needs import asks_devices, containers_of
from dra_infra.migration.outcomes import Migrated

_REQUESTS = "requests."


@dataclass(frozen=True, kw_only=True, slots=True)
class Unit:
    """A workload that is migrated as a whole.

    Args:
        ref: Its name.
        before: As it is now; None for one that cannot run before it moves: its claims are of old DRA, or no node has
            the driver yet.
        after: As `migrate` writes it, behind the objects that come with it.
    """

    ref: ObjectRef
    before: Mapping[str, Any] | None = field(repr=False)
    after: tuple[Mapping[str, Any], ...] = field(repr=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class Estate:
    """All objects of a cut-over.

    Args:
        units: The workloads that are migrated, by namespace, kind and name.
        ready: Workloads that ask by claims already, and have nodes for that.
        stays: Workloads that ask the plugin and are not migrated, with the reason.
        common: All other objects, as they are from the first phase on.
    """

    units: tuple[Unit, ...]
    ready: tuple[ObjectRef, ...]
    stays: tuple[tuple[ObjectRef, str], ...]
    common: tuple[Mapping[str, Any], ...] = field(repr=False)

    @classmethod
    def of(
        cls,
        objects: Sequence[Mapping[str, Any]],
        migrated: Sequence[Migrated],
        *,
        has_driver: bool = False,
    ) -> Estate:
        """Takes apart what becomes of objects.

        Args:
            objects: The manifests as they are.
            migrated: What becomes of each of them.
            has_driver: Whether nodes have the driver before anything moves.
        """
        units: list[Unit] = []
        ready: list[ObjectRef] = []
        stays: list[tuple[ObjectRef, str]] = []
        common: list[Mapping[str, Any]] = []
        for before, done in zip(objects, migrated, strict=True):
            ref = reference_to(before)
            specs = [each.spec for each in find_pod_templates(before)]
            after = tuple(each for each in (*done.added, done.manifest) if each is not None)
            asks = any(map(asks_devices, specs))
            if specs and done.manifest is not before and done.manifest is not None:
                has_claims = any(each.get("resourceClaims") for each in specs)
                units.append(Unit(ref=ref, before=before if asks or not has_claims else None, after=after))
                continue
            if not has_driver and not asks and any(each.get("resourceClaims") for each in specs):
                units.append(Unit(ref=ref, before=None, after=after))
                continue
            common += after
            if asks_plugin(before) or any(each.code == "kind-not-rewritten" for each in done.remarks):
                why = next(
                    (each.message for each in done.remarks if each.outcome == "decide"), "it is not migrated"
                )
                stays.append((ref, why))
            elif any(each.get("resourceClaims") for each in specs):
                ready.append(ref)
        units.sort(key=lambda each: (each.ref.namespace, each.ref.kind, each.ref.name))
        return cls(units=tuple(units), ready=tuple(ready), stays=tuple(stays), common=tuple(common))

    def at(self, moved: frozenset[int], *, is_over: bool = False) -> list[Mapping[str, Any]]:
        """The objects in force once these of the units have moved; when all is over, without what counts the plugin's resources."""
        common = [_without_old_keys(each) for each in self.common] if is_over else self.common
        return [*common, *self.of_units(moved)]

    def of_units(self, moved: frozenset[int]) -> Iterator[Mapping[str, Any]]:
        """The objects of the units alone."""
        for number, each in enumerate(self.units):
            if number in moved:
                yield from each.after
            elif each.before is not None:
                yield each.before

    def daemons(self, nodes: Sequence[Node]) -> dict[ObjectRef, str]:
        """DaemonSets that may have pods with devices on one of the nodes, before or after they move, with the selector of these pods."""
        found: dict[ObjectRef, str] = {}
        sides = (side for unit in self.units for side in (unit.before, unit.after[-1]))
        for each in (each for each in (*self.common, *sides) if each and each.get("kind") == "DaemonSet"):
            spec = mapping(value_at(each, "spec", "template", "spec"))
            labels = value_at(each, "spec", "selector", "matchLabels")
            if not labels or value_at(each, "spec", "selector", "matchExpressions"):
                labels = value_at(each, "spec", "template", "metadata", "labels")
            asks = labels and (asks_plugin(each) or spec.get("resourceClaims"))
            if asks and not all(map(NodeFilter(spec, daemon=True).refusal, nodes)):
                pairs = mapping(labels).items()
                found[reference_to(each)] = ",".join(f"{key}={value}" for key, value in pairs)
        return found

    def quotas(self, *, is_over: bool = False) -> Iterator[tuple[ObjectRef, Mapping[str, str]]]:
        """The keys of each quota that count devices, with their amounts."""
        for each in self.common:
            if each.get("kind") == "ResourceQuota":
                kept = _without_old_keys(each) if is_over else each
                hard = mapping(value_at(kept, "spec", "hard"))
                keys = {
                    key: str(amount)
                    for key, amount in hard.items()
                    if _is_old(key) or key.endswith("/devices")
                }
                if keys:
                    yield reference_to(each), keys


def asks_plugin(manifest: Mapping[str, Any]) -> bool:
    """True for an object whose pods ask NVIDIA's device plugin for something."""
    return any(
        is_of_plugin(str(name))
        for pods in find_pod_templates(manifest)
        for _, container in containers_of(pods.spec)
        for part in ("limits", "requests")
        for name in mapping(value_at(container, "resources", part))
    )


def _is_old(key: str) -> bool:
    return key.startswith(_REQUESTS) and is_of_plugin(key.removeprefix(_REQUESTS))


def _without_old_keys(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    """A quota without the keys of the plugin's resources that a key for claims stands beside; else the very object."""
    hard = mapping(value_at(manifest, "spec", "hard"))
    if manifest.get("kind") != "ResourceQuota" or not any(map(_is_old, hard)):
        return manifest
    if not any(key.endswith(".deviceclass.resource.k8s.io/devices") for key in hard):
        return manifest
    kept = {key: amount for key, amount in hard.items() if not _is_old(key)}
    return {**manifest, "spec": {**mapping(manifest.get("spec")), "hard": kept}}
