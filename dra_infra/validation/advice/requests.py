"""Advice on the requests of a claim: classes, counts, tolerations, and alternatives that are never taken."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from dra_infra.cel.release import Environment
from dra_infra.model.resource_claim import DeviceClaim, DeviceRequest, DeviceSubRequest, ExactDeviceRequest
from dra_infra.validation.advice.findings import Finding
from dra_infra.validation.advice.study import study

MAX_DEVICES: Final = 32
"""Most devices that the scheduler allocates to one claim (AllocationResultsMaxSize in k8s.io/api/resource/v1)."""

MAX_TOLERATIONS: Final = 16
"""DeviceTolerationsMaxLength in k8s.io/api/resource/v1; the API server does not check it."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """One set of devices that is asked for: a request, or an alternative of one.

    Args:
        path: Of the leaf.
        name: `request`, or `request/alternative`.
        request: What is asked for.
    """

    path: str
    name: str
    request: ExactDeviceRequest | DeviceSubRequest

    @property
    def is_all(self) -> bool:
        """Whether it asks for all devices instead of a number."""
        return self.request.allocation_mode == "All"

    @property
    def count(self) -> int:
        """How many devices it takes at least."""
        return 1 if self.is_all else self.request.count or 1

    @property
    def selectors(self) -> tuple[str, ...]:
        """The expressions of its selectors."""
        return tuple(each.cel.expression for each in self.request.selectors or () if each.cel is not None)


def leaves_of(request: DeviceRequest, path: str) -> tuple[Leaf, ...]:
    """What *request* asks for, the alternatives in their order."""
    if request.exactly is not None:
        return (Leaf(f"{path}.exactly", request.name, request.exactly),)
    return tuple(
        Leaf(f"{path}.firstAvailable[{index}]", f"{request.name}/{sub.name}", sub)
        for index, sub in enumerate(request.first_available or ())
    )


def check_counts(requests: Sequence[Sequence[Leaf]]) -> Iterator[Finding]:
    """Whether one claim can hold the devices of all requests, however few each takes."""
    total = sum(min((leaf.count for leaf in leaves), default=0) for leaves in requests)
    if total > MAX_DEVICES:
        yield Finding(
            "too-many-devices",
            f"{total} devices are asked for, the scheduler allocates at most {MAX_DEVICES} per claim",
            f"ask for {MAX_DEVICES} or fewer, and use several claims or pods",
        )


def check_tolerations(leaf: Leaf) -> Iterator[Finding]:
    """Whether a request has more tolerations than the API allows."""
    count = len(leaf.request.tolerations or ())
    if count > MAX_TOLERATIONS:
        yield Finding(
            "too-many-tolerations",
            f"{count} tolerations, the API allows {MAX_TOLERATIONS} per request without checking it",
            "leave out the key to tolerate all taints: {operator: Exists}",
        )


def find_shadowed(
    leaves: Sequence[Leaf], claim: DeviceClaim, environment: Environment
) -> Iterator[tuple[Leaf, Leaf]]:
    """Alternatives that are never taken, each with an earlier one that fits wherever it would."""
    for index, later in enumerate(leaves):
        for earlier in leaves[:index]:
            if _covers(earlier, later, environment) and not _is_bound(earlier, claim):
                yield later, earlier
                break


def _covers(earlier: Leaf, later: Leaf, environment: Environment) -> bool:
    """Whether *earlier* is satisfied by any devices that satisfy *later*."""
    first, second = earlier.request, later.request
    if first.device_class_name != second.device_class_name or earlier.is_all != later.is_all:
        return False
    if earlier.count > later.count or (earlier.is_all and set(earlier.selectors) != set(later.selectors)):
        return False
    if (first.capacity is not None and first.capacity != second.capacity) or first.derived_attributes:
        return False
    if any(each not in (first.tolerations or ()) for each in second.tolerations or ()):
        return False
    return _parts(earlier, environment) <= _parts(later, environment)


def _parts(leaf: Leaf, environment: Environment) -> frozenset[object]:
    """What its devices must pass, each part by its tree; by its text where it does not compile."""
    parts: set[object] = set()
    for text in leaf.selectors:
        found = study(text, environment)
        parts.update((text,) if found is None else [clause.node for clause in found.clauses])
    return frozenset(parts)


def _is_bound(leaf: Leaf, claim: DeviceClaim) -> bool:
    """Whether a constraint names just this alternative, so that it may fail where a later one does not."""
    return any(leaf.name in (constraint.requests or ()) for constraint in claim.constraints or ())
