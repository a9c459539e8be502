"""Headroom of a fleet: per device class and MIG profile how many more claims fit, and how large one can be.

Devices that are free on many nodes, few on each, serve no large claim: the count per node shows such fragmentation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from dra_infra.kubernetes.api import (
    CELDeviceSelector,
    DeviceClaim,
    DeviceClass,
    DeviceClassSpec,
    DeviceRequest,
    DeviceSelector,
    ExactDeviceRequest,
    ObjectMeta,
)
from dra_infra.kubernetes.api.limits import MAX_RESULTS
from dra_infra.placement.cluster_state import Attempts, InUse
from dra_infra.placement.demand import Demand
from dra_infra.placement.outcomes import Chosen
from dra_infra.placement.placement import Headroom, Room

PROFILE: Final = ("gpu.nvidia.com", "profile")
"""Driver and attribute by which NVIDIA's driver tells what a MIG device is."""
CLAIMS_LIMIT: Final = 10_000
"""Claims are counted up to here on one node; shares without a size never end."""


@dataclass(frozen=True, slots=True)
class Probe:
    """A kind of claim that room is counted for.

    Args:
        name: How the answer calls it.
        ask: What a claim of so many devices asks for.
    """

    name: str
    ask: Callable[[int], Demand]


def count_headroom(
    attempts: Attempts, before: InUse, after: InUse, classes: Mapping[str, DeviceClass]
) -> tuple[Headroom, ...]:
    """Count what is left of the nodes that take pods at all, before and after the joint placement.

    Args:
        attempts: Searches on the nodes.
        before: Devices in use before.
        after: Devices in use after.
        classes: The classes whose claims are counted, by name.
    """
    nodes = [number for number, node in enumerate(attempts.cluster.nodes) if not node.unschedulable]
    found = []
    for probe in probes_of(attempts, classes):
        first, then = (find_room(attempts, in_use, nodes, probe) for in_use in (before, after))
        if first.claims:
            found.append(Headroom(name=probe.name, before=first, after=then))
    return tuple(found)


def probes_of(attempts: Attempts, classes: Mapping[str, DeviceClass]) -> Iterator[Probe]:
    """One probe per class, and one per MIG profile that the fleet has, by name."""
    for name in sorted(classes):
        yield Probe(name, _asking(classes[name], f"class {name}"))
    driver, attribute = PROFILE
    profiles: set[str] = set()
    for slice_ in attempts.cluster.slices:
        if slice_.spec.driver == driver:
            for device in slice_.spec.devices or ():
                found = (device.attributes or {}).get(attribute)
                if found is not None and found.string:
                    profiles.add(found.string)
    for profile in sorted(profiles):
        expression = (
            f'device.driver == "{driver}" && '
            f'device.attributes["{driver}"].?{attribute}.orValue("") == {_quote(profile)}'
        )
        selector = DeviceSelector(cel=CELDeviceSelector(expression=expression))
        selecting = DeviceClass(
            metadata=ObjectMeta(name="profile"), spec=DeviceClassSpec(selectors=[selector])
        )
        yield Probe(f"MIG {profile}", _asking(selecting, f"profile {profile}"))


def find_room(attempts: Attempts, in_use: InUse, nodes: Sequence[int], probe: Probe) -> Room:
    """How much fits of one kind of claim, beside what is in use.

    Args:
        attempts: Searches on the nodes.
        in_use: What is in use.
        nodes: The nodes that count.
        probe: The kind of claim.
    """
    one = (probe.ask(1),)
    shapes = attempts.shapes(one)
    filled = in_use.fork()
    known: dict[Hashable, int] = {}
    counts: Counter[int] = Counter()
    largest = 0
    for node in nodes:
        # A fill changes what other nodes see only where they share a pool; then `filled` says so.
        key = (shapes[node], filled.of(node))
        claims = known.get(key)
        if claims is None or in_use.is_shared:
            claims = known[key] = fill(attempts, filled if in_use.is_shared else filled.fork(), node, one)
            largest = max(largest, _find_largest(attempts, in_use, node, probe, at_least=largest))
        if claims:
            counts[claims] += 1
    return Room(
        claims=sum(claims * number for claims, number in counts.items()),
        largest=largest,
        per_node=dict(sorted(counts.items(), reverse=True)),
    )


def fill(attempts: Attempts, in_use: InUse, node: int, demands: Sequence[Demand]) -> int:
    """Return how many such claims a node takes one after the other; *in_use* has their devices then."""
    for claims in range(CLAIMS_LIMIT):
        outcome = attempts.attempt(node, demands, in_use)
        if not isinstance(outcome, Chosen):
            return claims
        in_use.take(node, outcome.picks)
    return CLAIMS_LIMIT


def _find_largest(attempts: Attempts, in_use: InUse, node: int, probe: Probe, *, at_least: int) -> int:
    """The most devices that a claim gets; by halves, for who can have n devices can have fewer."""
    low = at_least
    high = max(at_least, min(MAX_RESULTS, _count_free(attempts, in_use, node)))
    while low < high:
        middle = (low + high + 1) // 2
        if isinstance(attempts.attempt(node, (probe.ask(middle),), in_use), Chosen):
            low = middle
        else:
            high = middle - 1
    return low


def _count_free(attempts: Attempts, in_use: InUse, node: int) -> int:
    """Return how many devices of a node nobody has; `MAX_RESULTS` where several claims can share one.

    A search for more devices than there are tries all orders of them where the allocator of the minor proves nothing.
    """
    devices = [each for pool in attempts.cluster.pools(node) for each in pool.devices]
    if any(each.shareable for each in devices):
        return MAX_RESULTS
    return sum(not in_use.state.is_allocated(each.id) for each in devices)


def _asking(class_: DeviceClass, key: str) -> Callable[[int], Demand]:
    def ask(count: int) -> Demand:
        exactly = ExactDeviceRequest(
            device_class_name=class_.metadata.name, allocation_mode="ExactCount", count=count
        )
        devices = DeviceClaim(requests=[DeviceRequest(name="one", exactly=exactly)])
        return Demand(devices, (class_,), f"headroom: {count} of {key}")

    return ask


def _quote(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
