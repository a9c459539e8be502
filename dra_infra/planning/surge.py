"""Whether the fleet holds two generations of pods at once, and whether rollouts on it come to their end."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from dra_infra.model.fleet import Fleet
from dra_infra.model.metadata import ObjectRef
from dra_infra.model.program import Program
from dra_infra.planning.claim_use import ClaimUse
from dra_infra.planning.replacement import get_field
from dra_infra.planning.rollout import Rollout
from dra_infra.simulation.rolling import Rollover, step_rollovers
from dra_infra.simulation.scheduling import place
from dra_infra.simulation.taken import NOTHING, Taken

NEW: Final = "+new"
"""Told apart from names of the base, for an object may change under its name; no name can hold a plus sign."""

_NAMES: Final = ("ResourceClaim", "ResourceClaimTemplate", "DeviceClass")


def find_surge_room(
    base: Program, head: Program, surges: Mapping[ObjectRef, int], fleet: Fleet, taken: Taken = NOTHING
) -> dict[ObjectRef, int]:
    """How many surge pods of each workload find room, when every pod of the base has its place and all roll over at once.

    Args:
        base: What runs.
        head: What is rolled out.
        surges: Deployments of the head, and how many pods each has on top of its replicas meanwhile.
        fleet: Where to.
        taken: What others hold of it.

    Returns:
        Pods by workload; without those whose placement is not decided. By first fit, as the joint placement.
    """
    if not surges:
        return {}
    manifests, owners = _both_generations(base, head, surges)
    placement = place(manifests, fleet, taken=taken, last=frozenset(owners), release=head.release)
    return {
        owners[workload.owner]: len(workload.pods)
        for workload in placement.workloads
        if workload.owner in owners and workload.verdict != "not-decided"
    }


def find_through(
    base: Program, head: Program, rolling: Iterable[ObjectRef], fleet: Fleet, taken: Taken = NOTHING
) -> dict[ObjectRef, int]:
    """How many new pods of each workload get a place when every rollout goes as far as it can, all at once.

    Args:
        base: What runs.
        head: What is rolled out.
        rolling: Deployments and StatefulSets of both sides whose pods are exchanged.
        fleet: Where to.
        taken: What others hold of it.

    Returns:
        Pods by workload; without those that wait for somebody, and those that are not decided.
    """
    old, new = ClaimUse.of(base), ClaimUse.of(head)
    rollovers: dict[ObjectRef, Rollover] = {}
    for ref in rolling:
        rollover = _find_rollover(ref, old, new)
        if rollover is not None:
            rollovers[ref] = rollover
    if not rollovers:
        return {}
    manifests, owners = _both_generations(base, head, {ref: each.replicas for ref, each in rollovers.items()})
    through = step_rollovers(manifests, fleet, list(rollovers.values()), taken=taken, release=head.release)
    return {owners[owner]: number for owner, number in through.items()}


def _find_rollover(ref: ObjectRef, old: ClaimUse, new: ClaimUse) -> Rollover | None:
    manifest, replicas, before = new.objects[ref].manifest, new.pods[ref].replicas, old.pods[ref].replicas
    waits = get_field(manifest, "spec.paused") is True
    if replicas is None or before is None or waits:
        return None
    kept = 0
    if ref.kind == "StatefulSet":
        if get_field(manifest, "spec.updateStrategy.type") == "OnDelete":
            return None
        partition = get_field(manifest, "spec.updateStrategy.rollingUpdate.partition")
        kept = min(int(partition), replicas) if isinstance(partition, (int, float)) else 0
        rollout, running = Rollout(surge=0, unavailable=1), min(before, replicas)
    else:
        # A new number of replicas goes to the old pods first: `scale` in pkg/controller/deployment/sync.go.
        rollout, running = Rollout.of(manifest, replicas), replicas
    return Rollover(
        old=ref,
        new=replace(ref, name=f"{ref.name}{NEW}"),
        replicas=replicas,
        running=running,
        surge=rollout.surge,
        unavailable=rollout.unavailable,
        kept=min(kept, running),
    )


def _both_generations(
    base: Program, head: Program, pods: Mapping[ObjectRef, int]
) -> tuple[list[Mapping[str, Any]], dict[ObjectRef, ObjectRef]]:
    """The objects of the base, and under other names the head's workloads with the claims and classes that they need.

    Args:
        base: What runs.
        head: What is rolled out.
        pods: How many pods each of these workloads of the head gets.

    Returns:
        The objects, and what each renamed workload is called.
    """
    known = {item.ref: item.manifest for item in base.objects}
    renamed = {
        (item.ref.kind, item.ref.name)
        for item in head.objects
        if item.ref.kind in _NAMES and known.get(item.ref) != item.manifest
    }
    manifests: list[Mapping[str, Any]] = [item.manifest for item in base.objects]
    owners: dict[ObjectRef, ObjectRef] = {}
    for item in head.objects:
        if (item.ref.kind, item.ref.name) in renamed or item.ref in pods:
            manifest = copy.deepcopy(dict(item.manifest))
            if not isinstance(manifest.get("metadata"), dict) or not isinstance(manifest.get("spec"), dict):
                continue
            manifest["metadata"]["name"] = f"{item.ref.name}{NEW}"
            if item.ref in pods:
                manifest["spec"]["replicas"] = pods[item.ref]
                owners[replace(item.ref, name=f"{item.ref.name}{NEW}")] = item.ref
            _rename(manifest, renamed)
            manifests.append(manifest)
    return manifests, owners


def _rename(manifest: Mapping[str, Any], renamed: set[tuple[str, str]]) -> None:
    """Let a copy of an object name the new claims and classes."""
    for entry in _mappings(get_field(manifest, "spec.template.spec.resourceClaims")):
        _suffix(entry, "resourceClaimName", "ResourceClaim", renamed)
        _suffix(entry, "resourceClaimTemplateName", "ResourceClaimTemplate", renamed)
    for path in ("spec.devices.requests", "spec.spec.devices.requests"):
        for request in _mappings(get_field(manifest, path)):
            for part in (request.get("exactly"), *_mappings(request.get("firstAvailable"))):
                if isinstance(part, dict):
                    _suffix(part, "deviceClassName", "DeviceClass", renamed)


def _suffix(holder: dict[str, Any], field: str, kind: str, renamed: set[tuple[str, str]]) -> None:
    if (kind, str(holder.get(field))) in renamed:
        holder[field] = f"{holder[field]}{NEW}"


def _mappings(value: Any) -> Iterator[dict[str, Any]]:
    return (item for item in value if isinstance(item, dict)) if isinstance(value, list) else iter(())
