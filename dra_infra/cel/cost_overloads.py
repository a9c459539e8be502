"""What calls of cel-go's functions and operators cost at most, and how large their results are at most.

Upstream: `functionCost` of cel-go's `checker/cost.go`, and the estimators of `ext/sets.go` and `ext/lists.go`. The
functions of networks are here because their overloads differ.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from dra_infra.cel.cost_functions import (
    BY_FUNCTION,
    LIMIT,
    TRAVERSAL,
    Estimate,
    Estimator,
    Operands,
    fixed,
    int_literal,
    match_cost,
    plus,
    scale,
    times,
)
from dra_infra.cel.paths import Size

_NEW_LIST: Final = 10
_ADDRESS_BYTES: Final = 16
_ADDRESS_COST: Final = scale(2 * _ADDRESS_BYTES, TRAVERSAL)
_RANGE_COST: Final = _ADDRESS_COST + scale(_ADDRESS_BYTES, TRAVERSAL) + 1
_MAX_LIST_VALUES: Final = 48
_GLOBAL_MATCHES: Final = 37
"""First minor that counts `matches(text, pattern)` as a match; before, it counts as one."""


def _matches(operands: Operands) -> Estimate | None:
    if operands.target is None or len(operands.sizes) != 1:
        return None
    return match_cost(operands.target, operands.sizes[0]), None


def _match_globally(operands: Operands) -> Estimate | None:
    if operands.target is not None or len(operands.sizes) != 2:
        return None
    return match_cost(operands.sizes[0], operands.sizes[1]), None


def _contains_address_text(operands: Operands) -> Estimate | None:
    return _ADDRESS_COST + scale(operands.sizes[0][1], TRAVERSAL), None


def _contains_range_text(operands: Operands) -> Estimate | None:
    return _RANGE_COST + scale(operands.sizes[0][1], TRAVERSAL), None


def _format(operands: Operands) -> Estimate | None:
    return None if operands.target is None else (scale(operands.target[1], TRAVERSAL), None)


def _to_bytes(operands: Operands) -> Estimate | None:
    # Here and in _quote upstream's largest size wraps around.
    return scale(operands.sizes[0][1], TRAVERSAL), (operands.sizes[0][0], operands.sizes[0][1] * 4 & LIMIT)


def _to_text(operands: Operands) -> Estimate | None:
    return scale(operands.sizes[0][1], TRAVERSAL), (operands.sizes[0][0] // 4, operands.sizes[0][1])


def _quote(operands: Operands) -> Estimate | None:
    return scale(operands.sizes[0][1], TRAVERSAL), (
        operands.sizes[0][0] + 2 & LIMIT,
        operands.sizes[0][1] * 2 + 2 & LIMIT,
    )


def _begins(operands: Operands) -> Estimate | None:
    return (scale(operands.sizes[0][1], TRAVERSAL), None) if len(operands.sizes) == 1 else None


def _contains(operands: Operands) -> Estimate | None:
    if operands.target is None or len(operands.sizes) != 1:
        return None
    return min(scale(operands.target[1], TRAVERSAL) * scale(operands.sizes[0][1], TRAVERSAL), LIMIT), None


def _in_list(operands: Operands) -> Estimate | None:
    return scale(operands.sizes[1][1], 1.0), None


def _compare(operands: Operands) -> Estimate | None:
    return scale(min(operands.sizes[0][1], operands.sizes[1][1]), TRAVERSAL), None


def _concatenate(operands: Operands) -> Estimate | None:
    size = plus(operands.sizes[0], operands.sizes[1])
    return scale(size[1], TRAVERSAL), size


def _concatenate_lists(operands: Operands) -> Estimate | None:
    return 1, plus(operands.sizes[0], operands.sizes[1])


def _compare_sets(factor: float) -> Estimator:
    def estimate(operands: Operands) -> Estimate | None:
        if len(operands.sizes) != 2:
            return None
        return scale(times(operands.sizes[0], operands.sizes[1])[1], factor) + 1, None

    return estimate


def _new_list(factor: float, size: Size) -> Estimate:
    return scale(size[1], factor) + 1 + _NEW_LIST, size


def _slice(operands: Operands) -> Estimate | None:
    if operands.target is None or len(operands.sizes) != 2:
        return None
    start, end = int_literal(operands.call, 0), int_literal(operands.call, 1)
    length = (operands.target[1] if end is None else max(end, 0)) - max(start or 0, 0) & LIMIT
    return _new_list(1.0, (length, length))


def _range(operands: Operands) -> Estimate | None:
    if operands.target is not None or len(operands.sizes) != 1:
        return None
    count = int_literal(operands.call, 0)
    length = LIMIT if count is None else max(count, 0)
    return _new_list(1.0, (length, length))


def _reverse(operands: Operands) -> Estimate | None:
    return None if operands.target is None or operands.sizes else _new_list(1.0, operands.target)


def _flatten(operands: Operands) -> Estimate | None:
    if operands.target is None or len(operands.sizes) > 1:
        return None
    depth = int_literal(operands.call, 0) if operands.sizes else 1
    return _new_list(float(LIMIT if depth is None else max(depth, 0)), operands.target)


def _distinct(operands: Operands) -> Estimate | None:
    return (
        None
        if operands.target is None or operands.sizes
        else _new_list(2.0, times(operands.target, operands.target))
    )


def _sort(factor: float) -> Estimator:
    def estimate(operands: Operands) -> Estimate | None:
        return (
            None
            if operands.target is None or operands.sizes
            else _new_list(factor, times(operands.target, operands.target))
        )

    return estimate


def _sort_by(factor: float) -> Estimator:
    def estimate(operands: Operands) -> Estimate | None:
        return (
            None
            if operands.target is None or len(operands.sizes) != 1
            else _new_list(factor, times(operands.sizes[0], operands.sizes[0]))
        )

    return estimate


_TEXTS: Final = ("string", "bytes")
_NUMBERS: Final = ("int", "uint", "double", "bool", "google.protobuf.Duration", "google.protobuf.Timestamp")
_BY_OVERLOAD: Final[dict[str, Estimator]] = {
    "list_sets_contains_list": _compare_sets(1.0),
    "list_sets_intersects_list": _compare_sets(1.0),
    "list_sets_equivalent_list": _compare_sets(2.0),
    "list_slice": _slice,
    "list_flatten": _flatten,
    "list_flatten_int": _flatten,
    # cel-go says lists_range.
    "list_range": _range,
    "list_reverse": _reverse,
    "list_distinct": _distinct,
    **{f"list_{kind}_sort": _sort(2.0) for kind in _NUMBERS},
    **{f"list_{kind}_sort": _sort(2.0 + TRAVERSAL) for kind in _TEXTS},
    **{f"list_{kind}_sortByAssociatedKeys": _sort_by(2.0) for kind in _NUMBERS},
    **{f"list_{kind}_sortByAssociatedKeys": _sort_by(2.0 + TRAVERSAL) for kind in _TEXTS},
    "cidr_contains_ip_ip": fixed(_ADDRESS_COST),
    "cidr_contains_ip_string": _contains_address_text,
    "cidr_contains_cidr": fixed(_RANGE_COST),
    "cidr_contains_cidr_string": _contains_range_text,
    "string_format": _format,
    "string_to_bytes": _to_bytes,
    "bytes_to_string": _to_text,
    "strings_quote": _quote,
    "starts_with_string": _begins,
    "ends_with_string": _begins,
    "in_list": _in_list,
    "matches": _match_globally,
    "matches_string": _matches,
    "contains_string": _contains,
    "add_string": _concatenate,
    "add_bytes": _concatenate,
    "add_list": _concatenate_lists,
    "dra_includes_dyn_dyn": fixed(_MAX_LIST_VALUES),
    "equals": _compare,
    "not_equals": _compare,
    **{
        f"{operator}_{kind}": _compare
        for operator in ("less", "less_equals", "greater", "greater_equals")
        for kind in _TEXTS
    },
}


@lru_cache(maxsize=1024)
def estimators(function: str, overloads: tuple[str, ...], minor: int) -> tuple[Estimator | None, ...]:
    """One estimator per overload, None where it costs as any other; nothing at all when all do."""
    found = tuple(
        None
        if overload == "matches" and minor < _GLOBAL_MATCHES
        else _BY_OVERLOAD.get(overload, BY_FUNCTION.get(function))
        for overload in overloads
    )
    return found if any(found) else ()
