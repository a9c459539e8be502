"""Advice on ResourceClaims: device requests, class selectors, constraints and opaque configuration.

Advice on requests covers classes, counts, tolerations, and alternatives of a prioritized list that are never taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dra_infra.advice.findings import Finding, Place
from dra_infra.advice.reach import Reach
from dra_infra.advice.references import KnownObjects, check_class_name
from dra_infra.advice.selectors import check_absence, check_name, check_reads, check_selectors
from dra_infra.advice.study import study
from dra_infra.catalog.drivers import Pins
from dra_infra.errors import Problem
from dra_infra.kubernetes.api import (
    DeviceClaim,
    DeviceConstraint,
    DeviceRequest,
    DeviceSubRequest,
    DeviceToleration,
    ExactDeviceRequest,
    expressions_of,
)
from dra_infra.kubernetes.api.limits import MAX_RESULTS, MAX_TOLERATIONS
from dra_infra.kubernetes.cel import Environment


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
        """True when it asks for all devices instead of a number."""
        return self.request.allocation_mode == "All"

    @property
    def count(self) -> int:
        """How many devices it takes at least."""
        return 1 if self.is_all else self.request.count or 1

    @property
    def selectors(self) -> tuple[str, ...]:
        """The expressions of its selectors."""
        return expressions_of(self.request.selectors)


def leaves_of(request: DeviceRequest, path: str) -> tuple[Leaf, ...]:
    """The single requests of *request*: itself, or its alternatives in their order."""
    return tuple(Leaf(f"{path}.{field}", name, leaf) for name, field, leaf in request.leaves)


def check_counts(requests: Sequence[Sequence[Leaf]]) -> Iterator[Finding]:
    """Check that one claim can hold the devices of all requests, however few each takes."""
    total = sum(min((leaf.count for leaf in leaves), default=0) for leaves in requests)
    if total > MAX_RESULTS:
        yield Finding(
            "too-many-devices",
            f"{total} devices are asked for, the scheduler allocates at most {MAX_RESULTS} per claim",
            f"ask for {MAX_RESULTS} or fewer, and use several claims or pods",
        )


def check_tolerations(leaf: Leaf) -> Iterator[Finding]:
    """Check that there are no more tolerations than the API allows, and that none lets a pod in that is evicted then."""
    tolerations = leaf.request.tolerations or ()
    count = len(tolerations)
    if count > MAX_TOLERATIONS:
        yield Finding(
            "too-many-tolerations",
            f"{count} tolerations, the API allows {MAX_TOLERATIONS} per request without checking it",
            "leave out the key to tolerate all taints: {operator: Exists, effect: NoSchedule}",
        )
    for index, each in enumerate(tolerations):
        if not each.effect and not any(_stands_in(other, each) for other in tolerations):
            # claimEvictionTime in pkg/controller/devicetainteviction compares the effect before it asks ToleratesTaint.
            yield Finding(
                "toleration-without-effect",
                f"tolerations[{index}] has no effect: the scheduler lets pods have devices with a taint NoExecute, and the "
                "controller that evicts for device taints deletes them at once, for it wants that effect written",
                "write effect: NoSchedule, and to stay on devices with a taint NoExecute a second one with that effect",
            )


def _stands_in(other: DeviceToleration, toleration: DeviceToleration) -> bool:
    """True where another toleration lets pods stay on what this one lets them have."""
    if other.effect != "NoExecute" or other.key not in ("", toleration.key):
        return False
    # An empty operator is Equal.
    return other.operator == "Exists" or (toleration.operator != "Exists" and other.value == toleration.value)


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
    """True when any devices that satisfy *later* satisfy *earlier* too."""
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
    """The conditions that its devices must pass, each by its tree; by its text where it does not compile."""
    parts: set[object] = set()
    for text in leaf.selectors:
        found = study(text, environment)
        parts.update((text,) if found is None else [clause.node for clause in found.clauses])
    return frozenset(parts)


def _is_bound(leaf: Leaf, claim: DeviceClaim) -> bool:
    """True when a constraint names just this alternative, so that it may fail where a later one does not."""
    return any(leaf.name in (constraint.requests or ()) for constraint in claim.constraints or ())


_PARTITIONS = {f"gpu.nvidia.com/partition{size}": size for size in (1, 2, 4, 8)}


class Context(NamedTuple):
    """The server, the other objects and the drivers that advice on a claim depends on."""

    environment: Environment
    known_objects: KnownObjects
    pins: Pins


def advise_claim(claim: DeviceClaim, path: str, context: Context) -> Iterator[Problem]:
    """Advice on the devices part of a claim at *path*."""
    requests = [
        leaves_of(request, f"{path}.requests[{index}]") for index, request in enumerate(claim.requests or ())
    ]
    for finding in check_counts(requests):
        yield finding.at(f"{path}.requests")
    reached: dict[str, Reach] = {}
    for leaves in requests:
        for leaf in leaves:
            problems, reached[leaf.name] = _advise_leaf(leaf, context)
            yield from problems
        for later, earlier in find_shadowed(leaves, claim, context.environment):
            place = later.path.rpartition("[")[2].removesuffix("]")
            yield Finding(
                "request-shadowed",
                f"{later.name} is never taken: {earlier.name} comes first and fits wherever it does",
                f"leave firstAvailable[{place}] out, or write it before {earlier.name}",
            ).at(later.path)
    for index, constraint in enumerate(claim.constraints or ()):
        yield from _advise_constraint(constraint, f"{path}.constraints[{index}]", requests, reached, context)
    yield from _advise_configuration(claim, path, requests, reached)


def class_selectors(name: str, known_objects: KnownObjects, pins: Pins) -> tuple[str, ...] | None:
    """The expressions of a class, of the input before those that drivers ship; None when it is not known."""
    own = known_objects.classes.get(name)
    if own is not None:
        return expressions_of(own.spec.selectors)
    shipped = pins.classes.get(name)
    return (shipped.expression,) if shipped is not None else None


def _advise_leaf(leaf: Leaf, context: Context) -> tuple[list[Problem], Reach]:
    name = leaf.request.device_class_name or ""
    finding = check_class_name(name, context.known_objects, context.pins)
    problems = [finding.at(f"{leaf.path}.deviceClassName")] if finding is not None else []
    problems += [finding.at(f"{leaf.path}.tolerations") for finding in check_tolerations(leaf)]
    before = class_selectors(name, context.known_objects, context.pins) or ()
    by = f"DeviceClass {name}" if before else ""
    places = [index for index, each in enumerate(leaf.request.selectors or ()) if each.cel is not None]
    found, reach = check_selectors(leaf.selectors, before, context.pins, context.environment, by)
    problems += [
        finding.at(f"{leaf.path}.selectors[{places[index]}].cel.expression") for index, finding in found
    ]
    problems += _advise_rest(leaf, reach, context)
    return problems, reach


def _advise_rest(leaf: Leaf, reach: Reach, context: Context) -> Iterator[Problem]:
    for index, derived in enumerate(leaf.request.derived_attributes or ()):
        found = study(derived.expression or "", context.environment, derived=True)
        if found is not None:
            for finding in check_reads(found, reach, context.pins):
                yield finding.at(f"{leaf.path}.derivedAttributes[{index}].expression")
    wanted = leaf.request.capacity.requests if leaf.request.capacity is not None else None
    for name in wanted or ():
        drivers = {device.driver for device in reach.known}
        domain, slash, identifier = name.rpartition("/")
        if slash or len(drivers) == 1:
            place = Place("capacity", domain if slash else next(iter(drivers)), identifier)
            missing = _judge_name(place, reach, context)
            if missing is None and drivers == {place.domain}:
                entries = [
                    device.published("capacity", f"{place.domain}/{identifier}") for device in reach.known
                ]
                is_prefixed = any(entry is not None and entry.is_prefixed for entry in entries)
                if bool(slash) != is_prefixed:
                    spelled = f"{place.domain}/{identifier}" if is_prefixed else identifier
                    missing = _check_spelling(
                        name, spelled, place.domain, str(wanted[name]) if wanted else ""
                    )
            if missing is not None:
                yield missing.at(f"{leaf.path}.capacity.requests")


def _check_spelling(name: str, spelled: str, driver: str, amount: str) -> Finding:
    """Return that a capacity is requested under a name that no slice has.

    The allocator looks names up letter by letter (requestsContainNonExistCapacity), and most drivers leave their own domain out.
    """
    return Finding(
        "capacity-name-prefixed",
        f"no device has a capacity called {name}: up to Kubernetes 1.37 names are compared letter by letter, and {driver} "
        f"publishes {spelled}",
        f"write {spelled}: {amount}",
    )


def _advise_constraint(
    constraint: DeviceConstraint,
    path: str,
    requests: Sequence[Sequence[Leaf]],
    reached: Mapping[str, Reach],
    context: Context,
) -> Iterator[Problem]:
    field = "matchAttribute" if constraint.match_attribute else "distinctAttribute"
    name = constraint.match_attribute or constraint.distinct_attribute or ""
    domain, slash, identifier = name.rpartition("/")
    bound = [
        leaf
        for leaves in requests
        for leaf in leaves
        if not constraint.requests
        or leaf.name in constraint.requests
        or leaf.name.partition("/")[0] in constraint.requests
    ]
    derived = {each.name for leaf in bound for each in leaf.request.derived_attributes or ()}
    if not slash or name in derived:
        return
    place = Place("attribute", domain, identifier)
    findings = [_judge_name(place, reached[leaf.name], context) for leaf in bound] or [
        check_name(place, context.pins)
    ]
    union = Reach(tuple(device for leaf in bound for device in reached[leaf.name].devices))
    if all(findings) and len({each.driver for each in union.known}) == 1:
        findings = [_judge_name(place, union, context)]
    for finding in dict.fromkeys(found for found in findings if found is not None):
        yield _spoken(finding, field).at(f"{path}.{field}")
    size = _PARTITIONS.get(name) if constraint.match_attribute else None
    if size is not None and not any(findings):
        others = [leaf for leaves in requests for leaf in leaves if leaf not in bound]
        beside = [leaf for leaf in others if any(each.driver == domain for each in reached[leaf.name].known)]
        yield from _check_partition(size, bound, beside, f"{path}.{field}")


def _judge_name(place: Place, reach: Reach, context: Context) -> Finding | None:
    finding = check_name(place, context.pins)
    if (
        finding is None
        and reach.known
        and not any(each.published(place.section, place.name) for each in reach.known)
    ):
        finding = check_absence(place, reach.known, context.pins)
    return finding


def _spoken(finding: Finding, field: str) -> Finding:
    """The finding with a hint for a constraint, which names an attribute without any CEL."""
    _, separator, name = finding.hint.partition(", or ")
    if separator and name.endswith(" in a constraint"):
        return Finding(
            finding.code, finding.message, f"write {field}: {name.removesuffix(' in a constraint')}"
        )
    if finding.code == "attribute-is-capacity":
        hint = f"constraints compare attributes only: {field}: gpu.nvidia.com/productName gives cards of one size"
        return Finding(finding.code, finding.message, hint)
    return finding


def _check_partition(
    size: int, bound: Sequence[Leaf], beside: Sequence[Leaf], path: str
) -> Iterator[Problem]:
    counts = {leaf.name.partition("/")[0]: leaf.count for leaf in bound if not leaf.is_all}
    total = sum(counts.values())
    if counts and total != size and not any("/" in leaf.name for leaf in bound):
        yield Finding(
            "partition-size",
            f"{total} GPUs must share a partition of {size}: the driver prepares whole partitions only",
            f"write count: {size}, or matchAttribute: gpu.nvidia.com/partition{total}"
            if total in _PARTITIONS.values()
            else f"write count: {size}",
        ).at(path)
    elif beside:
        yield Finding(
            "partition-size",
            f"{beside[0].name} asks for GPUs beside the partition of {size}: the driver prepares claims of one whole "
            "partition only",
            f"move {beside[0].name} to a claim of its own",
        ).at(path)


def _advise_configuration(
    claim: DeviceClaim, path: str, requests: Sequence[Sequence[Leaf]], reached: Mapping[str, Reach]
) -> Iterator[Problem]:
    parents = {
        leaves[0].name.partition("/")[0]: leaves for leaves in requests if leaves and "/" in leaves[0].name
    }
    names_of_all = [{leaf.name, leaf.name.partition("/")[0]} for leaves in requests for leaf in leaves]
    for index, config in enumerate(claim.config or ()):
        driver = config.opaque.driver if config.opaque is not None else ""
        # The allocator of 1.37 names none where all are named.
        names_all = all(names & {*(config.requests or ())} for names in names_of_all)
        for position, name in enumerate(config.requests or ()):
            leaves = parents.get(name, ())
            if not any(each.driver == driver for leaf in leaves for each in reached[leaf.name].known):
                continue
            names = ", ".join(leaf.name for leaf in leaves)
            yield Finding(
                "config-not-applied",
                f"{'before Kubernetes 1.37 ' if names_all else ''}{driver} compares names of requests letter by "
                f"letter, and never sees {name!r} of a prioritized list",
                f"write requests: [{names}], or leave requests out",
            ).at(f"{path}.config[{index}].requests[{position}]")
