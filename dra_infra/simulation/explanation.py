"""Why a node cannot give a pod its devices: the first thing that no device, or too few of them, pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dra_infra.simulation.branches import Branch, holds_no_answer
from dra_infra.simulation.demand import Constraint, Request, Selector
from dra_infra.simulation.dependencies import find_dependencies
from dra_infra.simulation.inventory import Inventory, PublishedDevice
from dra_infra.simulation.matching import DeviceMatching, lookup_attribute
from dra_infra.simulation.node_groups import NodeGroups
from dra_infra.simulation.node_view import NodeView, prevents_allocation
from dra_infra.simulation.workloads import Entry

_SHOWN_TEXT = 160
_SHOWN_VALUES = 3


@dataclass(frozen=True, slots=True)
class Finding:
    """Why one node does not do; findings with equal code and text are told together.

    Args:
        code: Stable slug.
        text: The message, with `{best}` where the number of the best node goes.
        best: That number on this node.
    """

    code: str
    text: str
    best: int = 0


class NodeExplanation:
    """Explains one group of nodes on which the claims of a pod cannot be allocated while all devices are free."""

    def __init__(
        self,
        inventory: Inventory,
        matching: DeviceMatching,
        groups: NodeGroups,
        group: int,
        entries: Sequence[Entry],
    ) -> None:
        self._inventory = inventory
        self._matching = matching
        self._view: NodeView = groups.view(group)
        self._indices = inventory.positions(groups.examples[group])
        self._devices = [inventory.devices[index] for index in self._indices]
        self._entries = entries
        self._requests = [(entry, request) for entry in entries for request in entry.demand.requests]

    def find(self) -> Finding:
        """The first reason, in the order in which a person would look for it."""
        if not self._devices:
            return self._explain_no_devices()
        for number, (_, request) in enumerate(self._requests):
            finding = self._explain_request(number, request)
            if finding is not None:
                return finding
        return self._explain_together() or self._explain_constraints()

    def _explain_no_devices(self) -> Finding:
        for pool in self._view.pools:
            if pool.state != "usable":
                return Finding(
                    "no-device-matches", f"resource pool {pool.name} is {pool.state}: {pool.reason}"
                )
        return Finding("no-device-matches", "no devices are published for the node")

    def _explain_request(self, number: int, request: Request) -> Finding | None:
        name = self._name(number)
        left: Sequence[int] = self._indices
        for selector in request.selectors:
            passed = [index for index in left if self._matching.test(selector, index) is True]
            if not passed:
                return Finding("no-device-matches", self._describe_selector(name, selector, left))
            left = passed
        tolerated = (self._view.matches[number] & self._view.tolerated[number]).bit_count()
        if not tolerated or (request.count is None and tolerated < len(left)):
            return self._explain_taints(name, request)
        wanted = 1 if request.count is None else request.count
        if tolerated < wanted:
            number_of = "1 device" if wanted == 1 else f"{wanted} devices"
            text = f"{name} needs {number_of}, the largest node has {{best}} that match"
            return Finding("too-few-devices", text, tolerated)
        return None

    def _describe_selector(self, name: str, selector: Selector, left: Sequence[int]) -> str:
        where = f"class {selector.class_name}" if selector.class_name else name
        count = f"{len(left)} devices" if len(left) > 1 else "1 device"
        before = "" if len(left) == len(self._indices) else " that pass what comes before"
        values = self._describe_values(selector, left)
        text = f"selector #{selector.index} of {where} matches none of {count}{before}: {_shorten(selector.expression)}"
        return _literal(f"{text} ({values})" if values else text)

    def _describe_values(self, selector: Selector, left: Sequence[int]) -> str:
        """What the devices have where the selector looks, a few distinct values of each attribute."""
        shown = []
        for source, domain, identifier in sorted(find_dependencies(selector.expression) or ()):
            if not identifier:
                continue
            devices = [self._inventory.devices[index] for index in left]
            values = sorted({_show(device, source, domain, identifier) for device in devices})
            more = f" and {len(values) - _SHOWN_VALUES} more" if len(values) > _SHOWN_VALUES else ""
            shown.append(f"{identifier} is {', '.join(values[:_SHOWN_VALUES])}{more}")
        return "; ".join(shown)

    def _explain_taints(self, name: str, request: Request) -> Finding:
        tainted = [device for device in self._devices if prevents_allocation(device, request)]
        taints = sorted(
            {
                f"{taint.key}{'=' + taint.value if taint.value else ''}:{taint.effect}"
                for device in tainted
                for taint in device.device.taints or ()
                if taint.effect != "None"
            }
        )
        code = "device-tainted" if request.count is not None else "all-devices-blocked"
        return Finding(
            code, _literal(f"{name} does not tolerate the taints of the devices: {', '.join(taints)}")
        )

    def _explain_together(self) -> Finding | None:
        """Whether the requests get in each other's way even without constraints."""
        branches: list[Branch] = []
        for number, (_, request) in enumerate(self._requests):
            allowed = self._view.matches[number] & self._view.tolerated[number]
            wanted = allowed.bit_count() if request.count is None else request.count
            branches.append(Branch(number, wanted, allowed))
        if not holds_no_answer(branches):
            return None
        union = 0
        for branch in branches:
            union |= branch.allowed
        wanted = sum(branch.wanted for branch in branches)
        text = f"the {len(branches)} requests need {wanted} different devices, the largest node has {{best}} that match"
        return Finding("too-few-devices", text, union.bit_count())

    def _explain_constraints(self) -> Finding:
        number = 0
        for entry in self._entries:
            for index, constraint in enumerate(entry.demand.constraints):
                text, best = self._explain_constraint(entry, number, constraint)
                if text:
                    where = f"constraint #{index} of {entry.object} ({constraint.kind}Attribute {constraint.attribute})"
                    return Finding("constraint-not-met", f"{_literal(where)} {text}", best)
            number += len(entry.demand.requests)
        return Finding(
            "constraint-not-met", "no choice of devices meets all requests and constraints at once"
        )

    def _explain_constraint(self, entry: Entry, first: int, constraint: Constraint) -> tuple[str, int]:
        allowed, wanted = 0, 0
        for number, request in enumerate(entry.demand.requests, first):
            if constraint.covers(request.name):
                mask = self._view.matches[number] & self._view.tolerated[number]
                wanted += mask.bit_count() if request.count is None else request.count
                allowed |= mask
        sizes: dict[int, int] = {}
        for position, value in enumerate(self._view.values[constraint.attribute]):
            if value >= 0 and allowed >> position & 1:
                sizes[value] = sizes.get(value, 0) + 1
        if not sizes:
            return "is not met: no matching device has the attribute", 0
        if constraint.kind == "distinct":
            text = f"needs {wanted} devices with different values, the best node has {{best}}"
            return (text, len(sizes)) if len(sizes) < wanted else ("", 0)
        text = f"needs {wanted} devices with one value, the best node has {{best}}"
        return (text, max(sizes.values())) if max(sizes.values()) < wanted else ("", 0)

    def _name(self, number: int) -> str:
        entry, request = self._requests[number]
        return _literal(f"request {request.name} of {entry.object}")


def _show(device: PublishedDevice, source: str, domain: str, identifier: str) -> str:
    if source == "capacity":
        capacity = device.device.capacity or {}
        found = capacity.get(f"{domain}/{identifier}")
        if found is None and domain == device.driver:
            found = capacity.get(identifier)
        return "absent" if found is None else found.value
    value = lookup_attribute(device, f"{domain}/{identifier}")
    if value is None:
        return "absent"
    return f'"{value[1]}"' if value[0] in ("string", "version") else str(value[1]).lower()


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN_TEXT else f"{line[: _SHOWN_TEXT - 1]}…"


def _literal(text: str) -> str:
    """Keep braces of names and expressions apart from the one placeholder."""
    return text.replace("{", "{{").replace("}", "}}")
