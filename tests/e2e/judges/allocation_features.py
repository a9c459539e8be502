"""Which features of the allocator a case has, for the table in docs/parity.md."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from dra_infra.kubernetes.scheduler.allocator import Pool
from tests.support.allocator.answers import allocator_of, node_of
from tests.support.allocator.cases import Case

LEAST: Final = 50
"""Cases that each feature has to be in, for each minor that has the feature."""


def _slices(case: Case) -> Iterator[dict[str, Any]]:
    return (each["spec"] for each in case.slices)


def _devices(case: Case) -> Iterator[dict[str, Any]]:
    return (device for spec in _slices(case) for device in spec.get("devices", ()))


def _requests(case: Case) -> Iterator[dict[str, Any]]:
    return (each for claim in case.claims for each in claim["spec"]["devices"]["requests"])


def _leaves(case: Case) -> Iterator[dict[str, Any]]:
    for request in _requests(case):
        yield from request.get("firstAvailable", ()) or ([request["exactly"]] if "exactly" in request else ())


def _constraints(case: Case) -> Iterator[dict[str, Any]]:
    return (each for claim in case.claims for each in claim["spec"]["devices"].get("constraints", ()))


def _policies(case: Case) -> Iterator[dict[str, Any]]:
    for device in _devices(case):
        for capacity in device.get("capacity", {}).values():
            yield capacity.get("requestPolicy", {})


def _has(field: str) -> Callable[[Case], bool]:
    return lambda case: any(device.get(field) for device in _devices(case))


def _asks(field: str) -> Callable[[Case], bool]:
    return lambda case: any(field in leaf for leaf in _leaves(case))


def _is_local(spec: dict[str, Any], field: str) -> bool:
    return bool(spec.get(field))


def _pools(case: Case) -> list[Pool]:
    allocator = allocator_of(case)
    return [pool for node in case.nodes for pool in allocator.pools(node_of(node))]


def _has_lists(case: Case) -> bool:
    return any(
        key.endswith("s")
        for device in _devices(case)
        for value in device.get("attributes", {}).values()
        for key in value
    )


def _generations(case: Case) -> bool:
    found: dict[tuple[str, str], set[int]] = {}
    for spec in _slices(case):
        found.setdefault((spec["driver"], spec["pool"]["name"]), set()).add(spec["pool"]["generation"])
    return any(len(each) > 1 for each in found.values())


_GATED: Final[dict[str, tuple[str, Callable[[Case], bool]]]] = {
    "prioritized list": (
        "prioritized_list",
        lambda case: any("firstAvailable" in each for each in _requests(case)),
    ),
    "admin access": ("admin_access", lambda case: any(leaf.get("adminAccess") for leaf in _leaves(case))),
    "taints": ("device_taints", _has("taints")),
    "tolerations": ("device_taints", _asks("tolerations")),
    "shared counters": ("partitionable_devices", _has("consumesCounters")),
    "per-device node selection": (
        "partitionable_devices",
        lambda case: any(_is_local(spec, "perDeviceNodeSelection") for spec in _slices(case)),
    ),
    "compatibility groups": (
        "compatibility_groups",
        lambda case: any(
            each.get("compatibilityGroups")
            for device in _devices(case)
            for each in device.get("consumesCounters", ())
        ),
    ),
    "capacity requests": ("consumable_capacity", _asks("capacity")),
    "shareable devices": ("consumable_capacity", _has("allowMultipleAllocations")),
    "shares in use": ("consumable_capacity", lambda case: bool(case.allocated.get("shares"))),
    "policy: valid values": (
        "consumable_capacity",
        lambda case: any("validValues" in policy for policy in _policies(case)),
    ),
    "policy: valid range": (
        "consumable_capacity",
        lambda case: any("validRange" in policy for policy in _policies(case)),
    ),
    "policy: fractional range": (
        "fractional_capacity_range",
        lambda case: any(policy.get("default") == "500m" for policy in _policies(case)),
    ),
    "binding conditions": ("binding_conditions", _has("bindingConditions")),
    "list attributes": ("list_attributes", _has_lists),
    "derived attributes": ("derived_attributes", _asks("derivedAttributes")),
    "optional node operations": (
        "optional_node_operations",
        lambda case: any(_is_local(spec, "skipNodeOperations") for spec in _slices(case)),
    ),
}
"""Features of gates: the field of `Features`, and whether a case has any of it."""

_PLAIN: Final[dict[str, Callable[[Case], bool]]] = {
    "several pools": lambda case: len({(spec["driver"], spec["pool"]["name"]) for spec in _slices(case)}) > 1,
    "pools of several slices": lambda case: any(
        spec["pool"]["resourceSliceCount"] > 1 for spec in _slices(case)
    ),
    "several generations": _generations,
    "slices for all nodes": lambda case: any(_is_local(spec, "allNodes") for spec in _slices(case)),
    "slices with a node selector": lambda case: any(
        _is_local(spec, "nodeSelector") for spec in _slices(case)
    ),
    "devices in use": lambda case: bool(case.allocated.get("devices")),
    "several claims": lambda case: len(case.claims) > 1,
    "several requests": lambda case: len(case.claims[0]["spec"]["devices"]["requests"]) > 1,
    "several devices for a request": lambda case: any(leaf.get("count", 0) > 1 for leaf in _leaves(case)),
    "mode All": lambda case: any(leaf["allocationMode"] == "All" for leaf in _leaves(case)),
    "selectors": _asks("selectors"),
    "matchAttribute": lambda case: any("matchAttribute" in each for each in _constraints(case)),
    "configuration": lambda case: any("config" in claim["spec"]["devices"] for claim in case.claims),
    "more devices than a result holds": lambda case: sum(1 for _ in _devices(case)) > 32,
}

_EXTENDED: Final[dict[str, Callable[[Case], bool]]] = {
    "distinctAttribute": lambda case: any("distinctAttribute" in each for each in _constraints(case)),
    "binds to node": _has("bindsToNode"),
}


def expected_features(number: int) -> list[str]:
    """The features that cases of a minor must have."""
    since = {
        "list_attributes": 36,
        "fractional_capacity_range": 37,
        "derived_attributes": 37,
        "optional_node_operations": 37,
        "compatibility_groups": 37,
    }
    gated = [name for name, (field, _) in _GATED.items() if number >= since.get(field, 34)]
    return [*_PLAIN, *_EXTENDED, *gated, *_outcomes(number)]


def _outcomes(number: int) -> list[str]:
    found = [
        "incomplete pools",
        "invalid pools",
        "outcome: allocated",
        "outcome: impossible",
        "outcome: error",
    ]
    return [*found, "outcome: CEL error", *(["outcome: error of the node"] if number >= 35 else [])]


def features_of(case: Case, theirs: list[list[Any]]) -> set[str]:
    """The features of a case that the variant knows, and what became of it upstream."""
    found = {name for name, test in _PLAIN.items() if test(case)}
    if case.variant.is_extended:
        found |= {name for name, test in _EXTENDED.items() if test(case)}
    features = case.variant.features
    found |= {name for name, (field, test) in _GATED.items() if getattr(features, field) and test(case)}
    pools = _pools(case)
    if any(pool.is_incomplete for pool in pools):
        found.add("incomplete pools")
    if any(pool.invalid for pool in pools):
        found.add("invalid pools")
    for answer in (each for node in theirs for each in node):
        found.add(_outcome(answer))
        if "CEL runtime error" in answer.get("error", ""):
            found.add("outcome: CEL error")
    return found


def _outcome(answer: dict[str, Any]) -> str:
    if "error" in answer:
        return "outcome: error of the node" if answer.get("onNode") else "outcome: error"
    return "outcome: allocated" if answer["allocations"] else "outcome: impossible"
