"""Device types that get as far as an expression: selectors run in order, and the first false one ends it.

The selectors of the class run before those of the request. A type is out when a selector is false on it, or when the
tests so far cannot all be true of one device. Ranges are what several tests that must all be true leave of the values
at a place.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, Final, Literal, NamedTuple

from dra_infra.advice.comparisons import DRIVER_PLACE, NEGATED, Test, passes
from dra_infra.advice.findings import Place
from dra_infra.advice.study import Residual, Study, study
from dra_infra.catalog.drivers import DeviceType, Pins, drivers
from dra_infra.kubernetes.cel import Environment
from dra_infra.kubernetes.cel.tree import Node


def contradicts(tests: Iterable[Test]) -> bool:
    """True when it is proven that no value passes all *tests* of some place."""
    groups: dict[tuple[Any, str], list[Test]] = {}
    for test in tests:
        if test.operator == "never":
            return True
        groups.setdefault((test.place, test.kind), []).append(test)
    return any(_is_empty(group, kind) for (_, kind), group in groups.items() if len(group) > 1)


def implies(known: Iterable[Test], test: Test) -> bool:
    """True when it is proven that each value that passes all of *known* passes *test*."""
    if test.operator == "always":
        return True
    opposite = NEGATED.get(test.operator)
    same = [each for each in known if (each.place, each.kind) == (test.place, test.kind)]
    return bool(same) and opposite is not None and contradicts([*same, test._replace(operator=opposite)])


def _is_empty(tests: list[Test], kind: str) -> bool:
    candidates = [test.values for test in tests if test.operator in ("==", "in")]
    if candidates:
        return not any(all(passes(value, test) for test in tests) for value in candidates[0])
    if kind == "bool":
        return not any(all(passes(value, test) for test in tests) for value in (True, False))
    lower, upper = _bound(tests, ">"), _bound(tests, "<")
    if lower is None or upper is None:
        return False
    (low, low_strict) = lower
    (high, high_strict) = upper
    if kind == "int" and isinstance(low, int) and isinstance(high, int):
        return bool(low + low_strict > high - high_strict)
    if low == high:
        excluded = any(test.operator == "!=" and test.values[0] == low for test in tests)
        return low_strict or high_strict or excluded
    return bool(low > high)


def _bound(tests: list[Test], sign: str) -> tuple[Any, bool] | None:
    """The tightest bound of that side, and whether the bound itself is outside."""
    found: tuple[Any, bool] | None = None
    for test in tests:
        if not test.operator.startswith(sign):
            continue
        value = test.values[0]
        strict = not test.operator.endswith("=")
        if found is None or (value > found[0] if sign == ">" else value < found[0]):
            found = value, strict
        elif value == found[0]:
            found = value, found[1] or strict
    return found


Outcome = Literal["", "always", "implied", "never"]


class Known(NamedTuple):
    """Facts about the devices of one type that passed the selectors so far.

    Args:
        parts: What is true of them.
        tests: Those parts that are tests of one place.
        present: What they have for certain.
    """

    parts: frozenset[Node] = frozenset()
    tests: tuple[Test, ...] = ()
    present: frozenset[Place] = frozenset()


class Reach(NamedTuple):
    """The types of devices that passed the selectors so far; None stands for drivers that are not known.

    Args:
        devices: With what is known of each.
        whole: Whether no selector was passed yet.
    """

    devices: tuple[tuple[DeviceType | None, Known], ...]
    whole: bool = False

    @property
    def types(self) -> tuple[DeviceType | None, ...]:
        """The types alone."""
        return tuple(device for device, _ in self.devices)

    @property
    def known(self) -> tuple[DeviceType, ...]:
        """The types of known drivers; empty when devices of other drivers may be among them."""
        types = self.types
        return () if None in types else tuple(device for device in types if device is not None)


class Step(NamedTuple):
    """One selector: who reached it, what it does to them, and who is left."""

    study: Study
    before: Reach
    after: Reach
    outcome: Outcome

    @property
    def lacking(self) -> dict[str, tuple[DeviceType | None, ...]]:
        """The reads without a guard by the CEL that reads, with the types that may lack what is read."""
        found: dict[str, list[DeviceType | None]] = {}
        if self.study.unguarded:
            for device, known in self.before.devices:
                residual = self.study.on(device)
                for place in residual.unguarded:
                    # A device with something else of that domain is one of the driver, whose types are known.
                    told = device is None and place.domain in drivers()
                    if told and place.domain in _domains(residual, known, place):
                        continue
                    if place not in known.present:
                        found.setdefault(place.cel, []).append(device)
        return {cel: tuple(devices) for cel, devices in sorted(found.items())}

    @property
    def other_driver(self) -> str:
        """The driver that is not known here and whose devices alone are left, where a test names it."""
        return next(
            (
                str(test.values[0])
                for device, known in self.before.devices
                for test in (*known.tests, *self.study.on(device).tests)
                if device is None and (test.place, test.operator) == (DRIVER_PLACE, "==")
            ),
            "",
        )


def _domains(residual: Residual, known: Known, place: Place) -> set[str]:
    """The domains of which a device that gets to the read of *place* has something for certain."""
    before = [part.ensured for part in residual.parts if place not in part.unguarded]
    return {each.domain for each in known.present.union(*before)}


_NOTHING: Final = Known()


@lru_cache(maxsize=64)
def everything(pins: Pins) -> Reach:
    """Every type of device there may be."""
    return Reach(tuple((device, _NOTHING) for device in (*pins.devices, None)), whole=True)


@lru_cache(maxsize=4096)
def reach_of_class(selectors: tuple[str, ...], pins: Pins, environment: Environment) -> Reach:
    """The types of devices that pass a class with these selectors."""
    reach = everything(pins)
    for text in selectors:
        found = study(text, environment)
        if found is not None:
            reach = advance(found, reach).after
    return reach


def advance(found: Study, before: Reach) -> Step:
    """Let what reached a selector pass it."""
    left: list[tuple[DeviceType | None, Known]] = []
    implied = bool(before.devices)
    for device, known in before.devices:
        residual = found.on(device)
        if residual.decided is False:
            implied = False
            continue
        if residual.decided:
            left.append((device, known))
            continue
        news = [test for test in residual.tests if test not in known.tests]
        if news and contradicts((*known.tests, *news)):
            implied = False
            continue
        implied = implied and _follows(residual, known)
        learned = Known(
            known.parts.union([part.node for part in residual.parts]),
            (*known.tests, *news),
            known.present | residual.present,
        )
        left.append((device, learned))
    outcome: Outcome = ""
    if before.devices and not left:
        outcome = "never"
    elif implied:
        outcome = "always" if before.whole else "implied"
    return Step(found, before, Reach(tuple(left)), outcome)


def is_possible(studies: Sequence[Study], device: DeviceType) -> bool:
    """True unless it is proven that a device of this type fails one of the selectors."""
    tests: list[Test] = []
    for found in studies:
        residual = found.on(device)
        if residual.decided is False:
            return False
        tests.extend(residual.tests)
    return not contradicts(tests)


def _follows(residual: Residual, known: Known) -> bool:
    """True when *known* already says all that the selector asks for."""
    if not known.present.issuperset(residual.unguarded):
        return False
    return all(
        part.node in known.parts or (part.test is not None and implies(known.tests, part.test))
        for part in residual.parts
    )
