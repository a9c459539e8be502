"""Our answer to a case in the words of the judge, and whether both agree."""

from __future__ import annotations

import json
from typing import Any

from dra_infra.kubernetes.api import AllocationResult, DeviceClass, Node, ResourceClaim, ResourceSlice, nanos
from dra_infra.kubernetes.scheduler.allocator import (
    Allocated,
    AllocatedState,
    Allocator,
    DeviceID,
    Failed,
    Variant,
)
from tests.support.allocator.cases import Case


def state_of(case: Case) -> AllocatedState:
    """What is allocated in a case."""
    allocated = case.allocated
    consumed: dict[DeviceID, dict[str, int]] = {
        _name(each): {name: nanos(text) for name, text in each["capacity"].items()}
        for each in allocated.get("capacity", ())
    }
    return AllocatedState(
        devices=map(_name, allocated.get("devices", ())),
        shared=map(_name, allocated.get("shares", ())),
        consumed=consumed,
    )


def allocator_of(case: Case, variant: Variant | None = None, *, prune: bool = True) -> Allocator:
    """The allocator of a case, or another variant of it."""
    return Allocator(
        case.variant if variant is None else variant,
        [ResourceSlice.from_manifest(each) for each in case.slices],
        [DeviceClass.from_manifest(each) for each in case.classes],
        state_of(case),
        prune=prune,
    )


def node_of(manifest: dict[str, Any]) -> Node:
    """A node of a case."""
    return Node(name=manifest["metadata"]["name"], labels=manifest["metadata"].get("labels", {}))


def answers_of(case: Case, variant: Variant | None = None, *, prune: bool = True) -> list[str]:
    """The outcome on each node, as JSON text; shares have the id `share`."""
    allocator = allocator_of(case, variant, prune=prune)
    claims = [ResourceClaim.from_manifest(each) for each in case.claims]
    found = []
    for manifest in case.nodes:
        node = node_of(manifest)
        declared = frozenset(manifest.get("status", {}).get("declaredFeatures", ()))
        outcome = allocator.allocate(node, claims, declared=declared)
        if isinstance(outcome, Allocated):
            found.append(_compact({"allocations": [_written(each) for each in outcome.results]}))
        elif isinstance(outcome, Failed):
            answer: dict[str, Any] = {"error": outcome.text}
            if outcome.on_node:
                answer["onNode"] = True
            if outcome.crashes:
                answer["panicked"] = True
            found.append(_compact({**answer, "allocations": None}))
        else:
            found.append('{"allocations":null}')
    return found


def find_difference(
    case: Case, theirs: list[list[Any]], variant: Variant | None = None, *, prune: bool = True
) -> str:
    """What is different, in words; empty when nothing is.

    Args:
        case: The case.
        theirs: By node, the different answers of the judge's runs, as JSON data.
        variant: To answer with in place of the case's.
        prune: Whether with proofs.
    """
    for node, (ours, known) in enumerate(zip(answers_of(case, variant, prune=prune), theirs, strict=True)):
        texts = [_compact(each) for each in known]
        if ours not in texts:
            return f"node {node}: ours\n{ours}\ntheirs\n" + "\n".join(texts[:4])
        if case.is_ordered and len(texts) > 1:
            return f"node {node}: upstream gives {len(texts)} answers where one was expected"
    return ""


def _written(result: AllocationResult) -> Any:
    """As Go writes it; an amount that was computed is written as it is, which need not be how a parsed one would be."""
    written = json.loads(result.to_go_json())
    for each, picked in zip(written["devices"].get("results", ()), result.devices.results or (), strict=True):
        if picked.consumed_capacity:
            each["consumedCapacity"] = dict(sorted(picked.consumed_capacity.items()))
    return written


def _name(each: dict[str, Any]) -> DeviceID:
    return DeviceID(each["driver"], each["pool"], each["device"])


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
