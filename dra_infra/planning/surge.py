"""Whether the fleet holds two generations of pods at once: all that runs before the change, and the first new pods."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from dra_infra.model.fleet import Fleet
from dra_infra.model.metadata import ObjectRef
from dra_infra.model.program import Program
from dra_infra.planning.replacement import get_field
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
    known = {item.ref: item.manifest for item in base.objects}
    renamed = {
        (item.ref.kind, item.ref.name)
        for item in head.objects
        if item.ref.kind in _NAMES and known.get(item.ref) != item.manifest
    }
    manifests = [item.manifest for item in base.objects]
    owners: dict[ObjectRef, ObjectRef] = {}
    for item in head.objects:
        if (item.ref.kind, item.ref.name) in renamed or item.ref in surges:
            manifest = copy.deepcopy(dict(item.manifest))
            if not isinstance(manifest.get("metadata"), dict) or not isinstance(manifest.get("spec"), dict):
                continue
            manifest["metadata"]["name"] = f"{item.ref.name}{NEW}"
            if item.ref in surges:
                manifest["spec"]["replicas"] = surges[item.ref]
                owners[replace(item.ref, name=f"{item.ref.name}{NEW}")] = item.ref
            _rename(manifest, renamed)
            manifests.append(manifest)
    placement = place(manifests, fleet, taken=taken, last=frozenset(owners))
    return {
        owners[workload.owner]: len(workload.pods)
        for workload in placement.workloads
        if workload.owner in owners and workload.verdict != "not-decided"
    }


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
