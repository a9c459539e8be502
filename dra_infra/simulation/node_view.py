"""A node's devices as the claims of one pod see them: bit masks over positions in the order of allocation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dra_infra.model.resource_claim import DeviceToleration
from dra_infra.model.resource_slice import DeviceTaint
from dra_infra.simulation.demand import Demand, Request
from dra_infra.simulation.inventory import Inventory, PoolState, PublishedDevice
from dra_infra.simulation.matching import DeviceMatching, lookup_attribute
from dra_infra.simulation.outcomes import Aborted, Halt, NotDecided

_BLOCKING_EFFECTS = frozenset({"NoSchedule", "NoExecute"})
ABSENT, LISTED = -1, -2


@dataclass(frozen=True, slots=True)
class PoolView:
    """A pool and the range of positions of its devices."""

    name: str
    state: PoolState
    reason: str
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class NodeView:
    """What the search needs to know of a node; masks and lists are per request, requests of all claims in order.

    Args:
        pools: In the order of allocation, those without usable devices too.
        paths: `driver/pool/device` by position.
        matches: Devices that pass the selectors.
        tolerated: Devices without a taint that the request does not tolerate.
        halting: Devices at which the search ends when it comes to them.
        halts: Why, by request and position.
        values: Per attribute of a constraint and position, a number that is equal where the values are.
    """

    pools: tuple[PoolView, ...]
    paths: tuple[str, ...]
    matches: tuple[int, ...]
    tolerated: tuple[int, ...]
    halting: tuple[int, ...]
    halts: Mapping[tuple[int, int], Halt]
    values: Mapping[str, tuple[int, ...]]


def view_node(
    inventory: Inventory, node: int, demands: Sequence[Demand], matching: DeviceMatching
) -> NodeView:
    """Evaluate the selectors and tolerations of the claims on the devices of a node."""
    positions = inventory.positions(node)
    devices = [inventory.devices[index] for index in positions]
    attributes = sorted({each.attribute for demand in demands for each in demand.constraints})
    values = {attribute: number_values(devices, attribute) for attribute in attributes}
    matches: list[int] = []
    tolerated: list[int] = []
    halts: dict[tuple[int, int], Halt] = {}
    for claim, demand in enumerate(demands):
        for request in demand.requests:
            matched, kept, number = 0, 0, len(matches)
            covering = [each.attribute for each in demand.constraints if each.covers(request.name)]
            for position, index in enumerate(positions):
                device = devices[position]
                tolerates = not prevents_allocation(device, request)
                verdict = _judge(device, claim, verdict=matching.judge(request, index))
                if verdict is True and tolerates:
                    verdict = _check_lists(
                        device, [name for name in covering if values[name][position] == LISTED]
                    )
                if verdict is True:
                    matched |= 1 << position
                elif verdict is not False:
                    halts[number, position] = verdict
                kept |= tolerates << position
            matches.append(matched)
            tolerated.append(kept)
    halting = [0] * len(matches)
    for number, position in halts:
        halting[number] |= 1 << position
    return NodeView(
        pools=_view_pools(inventory, node),
        paths=tuple(device.path for device in devices),
        matches=tuple(matches),
        tolerated=tuple(tolerated),
        halting=tuple(halting),
        halts=halts,
        values=values,
    )


def number_values(devices: Sequence[PublishedDevice], attribute: str) -> tuple[int, ...]:
    """Equal numbers for equal values of an attribute, counted by first appearance; `ABSENT` or `LISTED` for others."""
    numbers: dict[tuple[str, object], int] = {}
    numbered = []
    for device in devices:
        value = lookup_attribute(device, attribute)
        if value is None:
            numbered.append(ABSENT)
        elif isinstance(value[1], tuple):
            numbered.append(LISTED)
        else:
            numbered.append(numbers.setdefault(value, len(numbers)))
    return tuple(numbered)


def prevents_allocation(device: PublishedDevice, request: Request) -> bool:
    """Whether the device has a taint that the request does not tolerate."""
    return any(
        taint.effect in _BLOCKING_EFFECTS
        and not any(_tolerates(toleration, taint) for toleration in request.tolerations)
        for taint in device.device.taints or ()
    )


def _tolerates(toleration: DeviceToleration, taint: DeviceTaint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    return toleration.operator == "Exists"


def _judge(device: PublishedDevice, claim: int, *, verdict: bool | Halt) -> bool | Halt:
    if isinstance(verdict, Aborted):
        return Aborted(verdict.text, claim) if verdict.text.startswith(":") else verdict
    if verdict is True and device.not_modelled:
        return NotDecided("not-modelled", device.not_modelled)
    return verdict


def _check_lists(device: PublishedDevice, attributes: Sequence[str]) -> bool | Halt:
    if attributes:
        what = f"device {device.path}: list values of attribute {attributes[0]} in a constraint"
        return NotDecided("not-modelled", what)
    return True


def _view_pools(inventory: Inventory, node: int) -> tuple[PoolView, ...]:
    views: list[PoolView] = []
    start = 0
    for pool in inventory.pools[node]:
        views.append(PoolView(pool.name, pool.state, pool.reason, start, start + len(pool.devices)))
        start += len(pool.devices)
    return tuple(views)
