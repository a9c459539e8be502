"""Cost estimates of function and operator calls, and of the size of their results.

They say what calls of Kubernetes' own functions and of cel-go's cost at most, and how large their results are at
most. A size is a range (smallest, largest). Sizes and costs are 64 bits wide and stay at the top when they overflow.

Upstream: `k8s.io/apiserver/pkg/cel/library/cost.go`; `functionCost` of cel-go's `checker/cost.go`, and the estimators
of `ext/sets.go` and `ext/lists.go`. The functions of networks are among the latter because their overloads differ.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias

from dra_infra.kubernetes.cel.reads import Path, Size, size_of_elements
from dra_infra.kubernetes.cel.tree import Call, CelType, Const

Estimate: TypeAlias = tuple[int, Size | None]
"""The cost of a call without that of its operands, and the size of its result where it says something about it."""


class Operands(NamedTuple):
    """The operands of a call, as far as an estimator asks for them.

    Args:
        call: The call.
        target: Size of the target of a method; None of a function.
        sizes: Sizes of the arguments.
        target_type: Type of the target.
        target_path: Where the target comes from.
    """

    call: Call
    target: Size | None
    sizes: Sequence[Size]
    target_type: CelType
    target_path: Path


Estimator: TypeAlias = Callable[[Operands], Estimate | None]
"""None means that a call of this shape costs as any other: 1."""

LIMIT: Final = 2**64 - 1
UNKNOWN: Final[Size] = (0, LIMIT)
NOMINAL: Final[Estimate] = (1, None)

TRAVERSAL: Final = 0.1
"""Cost of going over one character."""

_PATTERN: Final = 0.25
_FORMAT_PATTERN: Final = 128


def scale(amount: int, factor: float) -> int:
    """*amount* times *factor*, rounded up as Go's floating point does."""
    product = math.ceil(float(amount) * factor)
    return min(product, LIMIT)


def times(left: Size, right: Size) -> Size:
    """The size of *left* parts of size *right*."""
    return min(left[0] * right[0], LIMIT), min(left[1] * right[1], LIMIT)


def plus(left: Size, right: Size) -> Size:
    """The size of both together."""
    return min(left[0] + right[0], LIMIT), min(left[1] + right[1], LIMIT)


def int_literal(call: Call, place: int) -> int | None:
    """The argument at *place* if it is written as an int."""
    argument = call.args[place] if place < len(call.args) else None
    if isinstance(argument, Const) and argument.kind == "int64_value" and isinstance(argument.value, int):
        return argument.value
    return None


def fixed(cost: int) -> Estimator:
    """The estimator of calls that always cost the same."""
    return lambda _operands: (cost, None)


def _parse(operands: Operands) -> Estimate | None:
    return (scale(operands.sizes[0][1], TRAVERSAL), None) if operands.sizes else None


def _parse_url(operands: Operands) -> Estimate | None:
    return (scale(operands.sizes[0][1], TRAVERSAL), operands.sizes[0]) if len(operands.sizes) == 1 else None


def _parse_selector(operands: Operands) -> Estimate | None:
    if len(operands.sizes) != 1:
        return None
    length = operands.sizes[0][1]
    return 10 + scale(length, TRAVERSAL) + scale(scale(length, 0.5), 50.0), None


def _compare_canonical(operands: Operands) -> Estimate | None:
    return (scale(operands.sizes[0][1], 2 * TRAVERSAL), None) if operands.sizes else None


def _ip(operands: Operands) -> Estimate | None:
    return NOMINAL if operands.target is not None else _parse(operands)


def _go_over(operands: Operands) -> Estimate | None:
    if operands.target is None:
        return None
    if not operands.target_type.parameters:
        # A text, or what only a device knows.
        return scale(operands.target[1], TRAVERSAL), None
    per_element = 1
    if operands.target_type.parameters[0].name in ("string", "bytes"):
        # Of a map this is the type of its keys, but the size of its values.
        per_element += scale((size_of_elements(operands.target_path) or UNKNOWN)[1], TRAVERSAL)
    return min(operands.target[1] * per_element, LIMIT), None


def _includes(operands: Operands) -> Estimate | None:
    if operands.target is None or operands.target_type.parameters:
        return _go_over(operands)
    return operands.target[1], None


def _transform(operands: Operands) -> Estimate | None:
    return None if operands.target is None else (scale(operands.target[1], TRAVERSAL), operands.target)


def _replace(operands: Operands) -> Estimate | None:
    if operands.target is None or len(operands.sizes) < 2:
        return None
    old, new = operands.sizes[0], operands.sizes[1]
    most, kept_most = _replaced(operands.target[1], old[0], is_kept=new[1] <= old[0])
    least, kept_least = _replaced(operands.target[0], old[1], is_kept=old[1] <= new[0])
    return scale(operands.target[1], 2 * TRAVERSAL), plus(times((least, most), new), (kept_least, kept_most))


def _replaced(length: int, old: int, *, is_kept: bool) -> tuple[int, int]:
    """How many parts of length *old* are replaced in a text, and how much of it stays."""
    if old == 0:
        return min(length + 1, LIMIT), length
    return (0, length) if is_kept else (min(math.ceil(float(length) / float(old)), LIMIT), 0)


def _split(operands: Operands) -> Estimate | None:
    if operands.target is None:
        return None
    count = int_literal(operands.call, 1)
    most = operands.target[1] if count is None else count & LIMIT
    return scale(operands.target[1], 2 * TRAVERSAL), (0, most)


def _join(operands: Operands) -> Estimate | None:
    if operands.target is None:
        return None
    least, most = operands.target
    size: Size = (0, 0)
    if operands.target_type.parameters:
        size = times(operands.target, size_of_elements(operands.target_path) or UNKNOWN)
    if operands.sizes:
        size = plus(size, times(operands.sizes[0], (max(least - 1, 0), max(most - 1, 0))))
    return scale(size[1], TRAVERSAL), size


def match_cost(text: Size, pattern: Size) -> int:
    """Cost of matching *text* with a regular expression."""
    # One more than the length, or matching an empty text would be free.
    traversal = scale(min(text[1] + 1, LIMIT), TRAVERSAL)
    return min(traversal * scale(pattern[1], _PATTERN), LIMIT)


def _find(operands: Operands) -> Estimate | None:
    if operands.target is None or not operands.sizes:
        return None
    return match_cost(operands.target, operands.sizes[0]), (0, operands.target[1])


def _validate(operands: Operands) -> Estimate | None:
    if not operands.sizes:
        return None
    return scale(scale(operands.sizes[0][1], TRAVERSAL), _FORMAT_PATTERN * _PATTERN), None


BY_FUNCTION: Final[dict[str, Estimator]] = {
    "check": fixed(350_000),
    **dict.fromkeys(("fieldSelector", "labelSelector"), _parse_selector),
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _go_over),
    "includes": _includes,
    "url": _parse_url,
    **dict.fromkeys(("lowerAscii", "upperAscii", "substring", "trim"), _transform),
    "replace": _replace,
    "split": _split,
    "join": _join,
    **dict.fromkeys(("find", "findAll"), _find),
    **dict.fromkeys(("cidr", "isIP", "isCIDR", "quantity", "isQuantity", "semver", "isSemver"), _parse),
    "ip": _ip,
    "ip.isCanonical": _compare_canonical,
    "validate": _validate,
}
"""Estimators of Kubernetes by the name of a function, whatever its overload."""


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


def _contains_text(cost: int) -> Estimator:
    return lambda operands: (cost + scale(operands.sizes[0][1], TRAVERSAL), None)


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


def _sort(factor: float) -> Estimator:
    def estimate(operands: Operands) -> Estimate | None:
        if operands.target is None or operands.sizes:
            return None
        return _new_list(factor, times(operands.target, operands.target))

    return estimate


def _sort_by(factor: float) -> Estimator:
    def estimate(operands: Operands) -> Estimate | None:
        if operands.target is None or len(operands.sizes) != 1:
            return None
        return _new_list(factor, times(operands.sizes[0], operands.sizes[0]))

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
    "lists_range": _range,
    "list_reverse": _reverse,
    "list_distinct": _sort(2.0),
    **{f"list_{kind}_sort": _sort(2.0) for kind in _NUMBERS},
    **{f"list_{kind}_sort": _sort(2.0 + TRAVERSAL) for kind in _TEXTS},
    **{f"list_{kind}_sortByAssociatedKeys": _sort_by(2.0) for kind in _NUMBERS},
    **{f"list_{kind}_sortByAssociatedKeys": _sort_by(2.0 + TRAVERSAL) for kind in _TEXTS},
    "cidr_contains_ip_ip": fixed(_ADDRESS_COST),
    "cidr_contains_ip_string": _contains_text(_ADDRESS_COST),
    "cidr_contains_cidr": fixed(_RANGE_COST),
    "cidr_contains_cidr_string": _contains_text(_RANGE_COST),
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
