"""Fields that a server clears without a word because their feature gate is off.

Upstream: DropDisabledFields in pkg/api/resourceclaimspec/util.go and the strategies in pkg/registry/resource; before
1.35 the strategies alone, where two things differ: tolerations of claims and `distinctAttribute` stay (nothing drops
the first, and the loop for the second edits a copy), and the scheduler ignores them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

from dra_infra.model.device_class import DeviceClassSpec
from dra_infra.model.record import Record
from dra_infra.model.resource_claim import DeviceClaim, DeviceRequest, DeviceSubRequest, ExactDeviceRequest
from dra_infra.model.target import Release

AnyRecord = TypeVar("AnyRecord", bound=Record)


class Dropped(NamedTuple):
    """One field that a server clears, or keeps and ignores.

    Args:
        path: The field, in the shape of v1.
        gate: The gate that is off.
        kept: Whether the server stores the field all the same, and its scheduler ignores it.
    """

    path: str
    gate: str
    kept: bool = False


_LEAF_GATES: Mapping[str, str] = {
    "admin_access": "DRAAdminAccess",
    "tolerations": "DRADeviceTaints",
    "capacity": "DRAConsumableCapacity",
    "derived_attributes": "DRADerivedAttributes",
}
_NAMES: Mapping[str, str] = {
    "admin_access": "adminAccess",
    "derived_attributes": "derivedAttributes",
}


def drop_from_claim(
    claim: DeviceClaim, path: str, release: Release, old: DeviceClaim | None = None
) -> tuple[DeviceClaim, tuple[Dropped, ...]]:
    """*claim* as a server of *release* sees it behind its gates, and what it lost.

    A feature that the *old* claim used stays usable in an update.
    """
    off = {
        gate
        for gate in ("DRAPrioritizedList", *_LEAF_GATES.values())
        if not release.enabled(gate) and not (old is not None and gate in used_gates(old))
    }
    found = tuple(_dropped(claim, path, release, off)) if off else ()
    if not any(not each.kept for each in found):
        return claim, found
    requests = claim.requests and [_without(request, release, off) for request in claim.requests]
    constraints = claim.constraints
    if constraints and "DRAConsumableCapacity" in off and not _keeps_quietly(release):
        constraints = [_unset(each, {"distinct_attribute"}) for each in constraints]
    return _changed(claim, requests=requests, constraints=constraints), found


def drop_from_class(
    spec: DeviceClassSpec, release: Release, old: DeviceClassSpec | None = None
) -> tuple[DeviceClassSpec, tuple[Dropped, ...]]:
    """*spec* of a class as a server of *release* sees it behind its gates, and what it lost."""
    gate = "DRAExtendedResource"
    in_use = old is not None and old.extended_resource_name is not None
    if spec.extended_resource_name is None or release.enabled(gate) or in_use:
        return spec, ()
    return _unset(spec, {"extended_resource_name"}), (Dropped("spec.extendedResourceName", gate),)


def _keeps_quietly(release: Release) -> bool:
    return release.number < 35


def _dropped(claim: DeviceClaim, path: str, release: Release, off: set[str]) -> Iterator[Dropped]:
    for index, request in enumerate(claim.requests or ()):
        at = f"{path}.requests[{index}]"
        ladder = request.first_available or ()
        if ladder and "DRAPrioritizedList" in off:
            yield Dropped(f"{at}.firstAvailable", "DRAPrioritizedList")
            ladder = ()
        leaves: list[tuple[str, ExactDeviceRequest | DeviceSubRequest]] = [
            (f"{at}.firstAvailable[{position}]", sub) for position, sub in enumerate(ladder)
        ]
        if request.exactly is not None:
            leaves.append((f"{at}.exactly", request.exactly))
        for place, leaf in leaves:
            for field, gate in _LEAF_GATES.items():
                # An empty list of tolerations or derived attributes is nothing that is lost.
                value = getattr(leaf, field, None)
                if gate in off and value is not None and value != []:
                    kept = field == "tolerations" and _keeps_quietly(release)
                    yield Dropped(f"{place}.{_NAMES.get(field, field)}", gate, kept=kept)
    if "DRAConsumableCapacity" in off:
        for index, constraint in enumerate(claim.constraints or ()):
            if constraint.distinct_attribute is not None:
                yield Dropped(
                    f"{path}.constraints[{index}].distinctAttribute",
                    "DRAConsumableCapacity",
                    kept=_keeps_quietly(release),
                )


def _without(request: DeviceRequest, release: Release, off: set[str]) -> DeviceRequest:
    fields = {
        field
        for field, gate in _LEAF_GATES.items()
        if gate in off and not (field == "tolerations" and _keeps_quietly(release))
    }
    ladder = request.first_available
    if "DRAPrioritizedList" in off:
        ladder = None
    elif ladder:
        ladder = [_unset(sub, fields) for sub in ladder]
    exactly = request.exactly and _unset(request.exactly, fields)
    return _changed(request, exactly=exactly, first_available=ladder)


def used_gates(claim: DeviceClaim) -> frozenset[str]:
    """The gates whose fields *claim* has."""
    used = set()
    for request in claim.requests or ():
        if request.first_available:
            used.add("DRAPrioritizedList")
        for leaf in (*(request.first_available or ()), *([request.exactly] if request.exactly else [])):
            used.update(
                gate for field, gate in _LEAF_GATES.items() if getattr(leaf, field, None) not in (None, [])
            )
    if any(each.distinct_attribute is not None for each in claim.constraints or ()):
        used.add("DRAConsumableCapacity")
    return frozenset(used)


def _unset(record: AnyRecord, fields: set[str]) -> AnyRecord:
    set_ones = {field for field in fields & record.model_fields_set if getattr(record, field) is not None}
    return _changed(record, **dict.fromkeys(set_ones)) if set_ones else record


def _changed(record: AnyRecord, **values: Any) -> AnyRecord:
    return record.model_copy(update=values)
