"""Selectors against devices, each expression once per kind of device.

Two devices are of one kind for an expression when they agree in everything that it reads. A fleet has thousands of
devices and few kinds.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TypeAlias

from dra_infra.cel import DeviceView, Failed, Match, Program, compile_expression
from dra_infra.errors import ProblemsError
from dra_infra.model.resource_slice import DeviceAttribute
from dra_infra.simulation.demand import Request, Selector
from dra_infra.simulation.dependencies import Dependencies, find_dependencies
from dra_infra.simulation.inventory import Inventory, PublishedDevice
from dra_infra.simulation.outcomes import Aborted, Halt, NotDecided

Value: TypeAlias = tuple[str, object]
"""Type and value of an attribute; lists are tuples."""

_SCALARS = ("string", "int_", "bool_", "version")
_LISTS = ("strings", "ints", "bools", "versions")


class DeviceMatching:
    """Verdicts of selectors on the devices of an inventory."""

    def __init__(self, inventory: Inventory) -> None:
        self._inventory = inventory
        self._views: dict[int, DeviceView] = {}
        self._kinds: dict[Dependencies, tuple[int, ...]] = {}
        self._programs: dict[str, Program | str] = {}
        self._verdicts: dict[tuple[str, int], Match | Failed | None] = {}

    def judge(self, request: Request, device: int) -> bool | Halt:
        """Whether a device passes all selectors of a request, or why the search ends when it comes to the device.

        The text of an error in a selector of the request itself starts with a colon: the claim's name belongs before it.
        """
        for selector in request.selectors:
            verdict = self.test(selector, device)
            if verdict is not True:
                return verdict
        return True

    def test(self, selector: Selector, device: int) -> bool | Halt:
        """One selector on one device."""
        program = self._program(selector.expression)
        prefix = f"class {selector.class_name}" if selector.class_name else ""
        claim = None if selector.class_name else 0
        if isinstance(program, str):
            return Aborted(f"{prefix}: selector #{selector.index}: CEL compile error: {program}", claim)
        key = (selector.expression, self.kinds(self.reads([selector]))[device])
        if key not in self._verdicts:
            verdict = program.evaluate(self._view(device))
            self._verdicts[key] = verdict if isinstance(verdict, (Match, Failed)) else None
        known = self._verdicts[key]
        if not isinstance(known, Failed):
            return known is not None
        path = self._inventory.devices[device].path
        if not known.decided:
            where = f"{prefix or 'the request'}: selector #{selector.index} on device {path}"
            return NotDecided("cel-not-decided-here", f"{where}: {known.text}")
        return Aborted(
            f"{prefix}: selector #{selector.index} on device {path}: CEL runtime error: {_enhance(known.text)}",
            claim,
        )

    def reads(self, selectors: Iterable[Selector]) -> Dependencies:
        """Everything that the selectors read, None when one of them may read anything."""
        union: set[tuple[str, str, str]] = set()
        for selector in selectors:
            program = self._program(selector.expression)
            reads = find_dependencies(selector.expression) if isinstance(program, Program) else frozenset()
            if reads is None:
                return None
            union |= reads
        return frozenset(union)

    def kinds(self, reads: Dependencies) -> tuple[int, ...]:
        """A number per device, equal for devices that agree in driver, taints and everything that is read."""
        kinds = self._kinds.get(reads)
        if kinds is None:
            numbers: dict[Hashable, int] = {}
            wanted = None if reads is None else sorted(reads)
            kinds = self._kinds[reads] = tuple(
                numbers.setdefault(_describe(device, wanted), len(numbers))
                for device in self._inventory.devices
            )
        return kinds

    def _program(self, expression: str) -> Program | str:
        program = self._programs.get(expression)
        if program is None:
            try:
                program = compile_expression(expression)
            except ProblemsError as error:
                program = error.problems[0].message
            self._programs[expression] = program
        return program

    def _view(self, device: int) -> DeviceView:
        view = self._views.get(device)
        if view is None:
            published = self._inventory.devices[device]
            view = self._views[device] = DeviceView(
                published.driver,
                published.device.attributes or {},
                published.device.capacity or {},
                _shares(published),
            )
        return view


def lookup_attribute(device: PublishedDevice, name: str) -> Value | None:
    """The attribute of a qualified name: spelled so, or without the domain when that is the driver's.

    Source: lookupAttribute of the allocator.
    """
    attributes = device.device.attributes or {}
    attribute = attributes.get(name)
    if attribute is None:
        domain, slash, identifier = name.partition("/")
        if slash and domain == device.driver:
            attribute = attributes.get(identifier)
    return None if attribute is None else _plain(attribute)


def _describe(device: PublishedDevice, reads: list[tuple[str, str, str]] | None) -> Hashable:
    taints = tuple((taint.key, taint.value, taint.effect) for taint in device.device.taints or ())
    fixed = (device.driver, taints, bool(device.not_modelled), _shares(device))
    if reads is None:
        attributes = {name: _plain(value) for name, value in (device.device.attributes or {}).items()}
        capacity = {name: value.value for name, value in (device.device.capacity or {}).items()}
        return (*fixed, frozenset(attributes.items()), frozenset(capacity.items()))
    return (*fixed, *(_read_value(device, *read) for read in reads))


def _shares(device: PublishedDevice) -> bool:
    return device.device.allow_multiple_allocations is True


def _read_value(device: PublishedDevice, source: str, domain: str, identifier: str) -> Hashable:
    if not identifier:
        named = device.device.attributes if source == "attributes" else device.device.capacity
        return any((name.rpartition("/")[0] or device.driver) == domain for name in named or ())
    # Where a device has both spellings of a name, CEL takes either; both must agree for one kind.
    names = [f"{domain}/{identifier}", identifier] if domain == device.driver else [f"{domain}/{identifier}"]
    if source == "capacity":
        capacity = device.device.capacity or {}
        return tuple(capacity[name].value if name in capacity else None for name in names)
    attributes = device.device.attributes or {}
    return tuple(_plain(attributes[name]) if name in attributes else None for name in names)


def _plain(attribute: DeviceAttribute) -> Value:
    for name in _SCALARS:
        value = getattr(attribute, name)
        if value is not None:
            return name, value
    for name in _LISTS:
        values = getattr(attribute, name)
        if values is not None:
            return name, tuple(values)
    return "none", ()


def _enhance(text: str) -> str:
    """The scheduler's hint on the most common error; EnhanceRuntimeError in dynamic-resource-allocation/cel."""
    if "no such key:" not in text:
        return text
    return (
        f"{text}. consider using CEL optional chaining (.? followed by orValue()) or guarding the check with has() "
        "for optional fields"
    )
