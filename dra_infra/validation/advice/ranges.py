"""What several tests that must all be true leave of the values at a place."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dra_infra.validation.advice.comparisons import NEGATED, Test, passes


def contradicts(tests: Iterable[Test]) -> bool:
    """Whether it is proven that no value passes all *tests* of some place."""
    groups: dict[tuple[Any, str], list[Test]] = {}
    for test in tests:
        if test.operator == "never":
            return True
        groups.setdefault((test.place, test.kind), []).append(test)
    return any(_is_empty(group, kind) for (_, kind), group in groups.items() if len(group) > 1)


def implies(known: Iterable[Test], test: Test) -> bool:
    """Whether it is proven that what passes all of *known* passes *test*."""
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
    (low, low_strict), (high, high_strict) = lower, upper
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
        value, strict = test.values[0], not test.operator.endswith("=")
        if found is None or (value > found[0] if sign == ">" else value < found[0]):
            found = value, strict
        elif value == found[0]:
            found = value, found[1] or strict
    return found
