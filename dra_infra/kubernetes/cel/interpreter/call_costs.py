"""Costs of calls at run time, by the sizes of its arguments and of its result.

Upstream: costCall in interpreter/runtimecost.go of cel-go, the trackers in its ext/{lists,sets}.go, and CallCost in
k8s.io/apiserver/pkg/cel/library/cost.go. The trackers come first, then Kubernetes' costs, then cel-go's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, TypeAlias

from dra_infra.kubernetes.api.semver import Semver
from dra_infra.kubernetes.cel.interpreter.maps import MAPS, OpenMap
from dra_infra.kubernetes.cel.interpreter.urls import URL
from dra_infra.kubernetes.cel.interpreter.values import (
    CIDR,
    IP,
    LISTS,
    NONE,
    Format,
    OptionalValue,
    QuantityValue,
    Value,
    items_of,
)

Cost: TypeAlias = Callable[[list[Value], Value], int]
"""The cost by the values of the arguments and the result, each of which may be an error."""

_TRAVERSAL: Final = 0.1
_PATTERN: Final = 0.25
_LIST: Final = 10
_UNSIGNED: Final = 2**64
CEL_GO_29: Final = 37
"""First minor with cel-go 0.29; the others here have 0.26."""


def size_of(value: Value) -> int:
    """How much a value holds; 1 for one without parts."""
    kind = type(value)
    if kind is OpenMap:
        # It is compared with null alone, or the comparison is not decided.
        return 1
    if kind is str or kind is bytes or kind in MAPS:
        return len(value)
    if kind in LISTS:
        return len(items_of(value))
    if kind is IP:
        return 4 if value.family == 4 else 16
    return -(-value.bits // 8) if kind is CIDR else 1


def _size_inside(value: Value) -> int:
    """How much a value holds, and an optional as much as its value, as cel-go looks into it."""
    while type(value) is OptionalValue and value is not NONE:
        value = value.value
    return size_of(value)


def _traversal(size: int, factor: float = _TRAVERSAL) -> int:
    return math.ceil(size * factor)


def _fixed(cost: int) -> Cost:
    return lambda _arguments, _result: cost


def _going_over(value: Value) -> int:
    """Going over all that a value holds, rounded down for each text."""
    kind = type(value)
    if kind is str:
        return int(len(value.encode()) * _TRAVERSAL)
    if kind is bytes:
        return int(len(value) * _TRAVERSAL)
    if kind in LISTS:
        return sum(map(_going_over, items_of(value)))
    if kind in MAPS:
        return sum(_going_over(key) + _going_over(each) for key, each in value.entries.values())
    return 1


def _of_first(factor: float = _TRAVERSAL) -> Cost:
    return lambda arguments, _result: _traversal(size_of(arguments[0]), factor)


def _match(text: int, pattern: int) -> int:
    return math.ceil((1.0 + text) * _TRAVERSAL) * _traversal(pattern, _PATTERN)


_PATTERN_SIZES: Final = {
    **dict.fromkeys(("DNS1123Label", "DNS1035Label", "DNS1123LabelPrefix", "DNS1035LabelPrefix"), 30),
    **dict.fromkeys(("DNS1123Subdomain", "QualifiedName", "DNS1123SubdomainPrefix"), 60),
    "LabelValue": 40,
    "URI": 1103,
    "uuid": 70,
    "byte": 84,
    **dict.fromkeys(("date", "datetime"), 71),
}
"""Characters of the pattern that stands for a named format."""


def _validate(arguments: list[Value], _result: Value) -> int:
    named, text = arguments
    return _match(size_of(text), _PATTERN_SIZES[named.name]) if type(named) is Format else 1


def _contains_address(overload: str, arguments: list[Value]) -> int:
    cost = _traversal(2 * size_of(arguments[0]))
    return cost + (_traversal(size_of(arguments[1])) if overload == "cidr_contains_ip_string" else 0)


def _contains_range(overload: str, arguments: list[Value]) -> int:
    size = size_of(arguments[0])
    cost = _traversal(2 * size) + _traversal(size) + 1
    return cost + (_traversal(size_of(arguments[1])) if overload == "cidr_contains_cidr_string" else 0)


_BY_FUNCTION: Final[dict[str, Cost]] = {
    "check": _fixed(350_000),
    **dict.fromkeys(
        ("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf", "includes"),
        lambda arguments, _result: _going_over(arguments[0]),
    ),
    **dict.fromkeys(
        ("url", "lowerAscii", "upperAscii", "substring", "trim", "cidr", "isIP", "isCIDR", "ip"), _of_first()
    ),
    **dict.fromkeys(("quantity", "isQuantity", "semver", "isSemver"), _of_first()),
    **dict.fromkeys(("replace", "split", "ip.isCanonical"), _of_first(2 * _TRAVERSAL)),
    "join": lambda _arguments, result: _traversal(size_of(result), 2 * _TRAVERSAL),
    **dict.fromkeys(
        ("find", "findAll"), lambda arguments, _result: _match(size_of(arguments[0]), size_of(arguments[1]))
    ),
    "validate": _validate,
}
"""Costs of Kubernetes by the name of a function."""


def _new_list(factor: float, size: int) -> int:
    return int(size * factor) + 1 + _LIST


def _flatten(arguments: list[Value], _result: Value) -> int:
    depth = _depth(arguments)
    cost = _unsigned(size_of(arguments[0]) * (depth if depth >= 0 else 1.0))
    return min(cost + 1 + _LIST, _UNSIGNED - 1)


def _flatten_before_29(arguments: list[Value], _result: Value) -> int:
    # cel-go 0.26 has no bounds: the cost of a negative depth wraps around to a small or a huge one.
    return (_unsigned(size_of(arguments[0]) * _depth(arguments)) + 1 + _LIST) % _UNSIGNED


def _depth(arguments: list[Value]) -> float:
    return float(arguments[1]) if len(arguments) == 2 else 1.0


def _unsigned(number: float) -> int:
    """Return a whole number of 64 bits as Go makes it on amd64: a negative one wraps, and one that is too large is 2**63."""
    return int(number) % _UNSIGNED if number < _UNSIGNED else _UNSIGNED // 2


def _comparing_all(place: int) -> Cost:
    """The cost of comparing each element of a list with each other."""

    def cost(arguments: list[Value], _result: Value) -> int:
        items = items_of(arguments[place])
        is_text = bool(items) and type(items[0]) in (str, bytes)
        return _new_list(2.0 + _TRAVERSAL if is_text else 2.0, len(items) ** 2)

    return cost


def _comparing_sets(factor: float) -> Cost:
    return lambda arguments, _result: 1 + int(size_of(arguments[0]) * size_of(arguments[1]) * factor)


_LIST_TYPES: Final = (
    "int",
    "uint",
    "double",
    "bool",
    "string",
    "bytes",
    "google.protobuf.Duration",
    "google.protobuf.Timestamp",
)
_TRACKERS: Final[dict[str, Cost]] = {
    **dict.fromkeys(
        ("list_slice", "lists_range", "list_reverse"),
        lambda _arguments, result: _new_list(1.0, size_of(result)),
    ),
    "list_distinct": _comparing_all(0),
    **{f"list_{kind}_sort": _comparing_all(0) for kind in _LIST_TYPES},
    **{f"list_{kind}_sortByAssociatedKeys": _comparing_all(1) for kind in _LIST_TYPES},
    **dict.fromkeys(("list_sets_contains_list", "list_sets_intersects_list"), _comparing_sets(1.0)),
    "list_sets_equivalent_list": _comparing_sets(2.0),
}
"""Costs by overload that come before those by function."""


def _least(arguments: list[Value], _result: Value) -> int:
    return _traversal(min(_size_inside(arguments[0]), _size_inside(arguments[1])))


def _equal(arguments: list[Value], result: Value) -> int:
    at_once = (QuantityValue, IP, CIDR, Format, URL, Semver)
    return 1 if type(arguments[0]) in at_once else _least(arguments, result)


def _of_place(place: int, factor: float = _TRAVERSAL) -> Cost:
    return lambda arguments, _result: _traversal(_size_inside(arguments[place]), factor)


def _matches(arguments: list[Value], _result: Value) -> int:
    return _match(_size_inside(arguments[0]), _size_inside(arguments[1]))


_STANDARD: Final[dict[str, Cost]] = {
    **dict.fromkeys(("string_to_bytes", "bytes_to_string", "strings_quote", "string_format"), _of_place(0)),
    "in_list": _of_place(1, 1.0),
    **{
        f"{operator}_{kind}": _least
        for operator in ("less", "less_equals", "greater", "greater_equals")
        for kind in ("string", "bytes")
    },
    "equals": _equal,
    "not_equals": _least,
    **dict.fromkeys(
        ("add_string", "add_bytes"),
        lambda arguments, _result: _traversal(_size_inside(arguments[0]) + _size_inside(arguments[1])),
    ),
    "matches_string": _matches,
    "contains_string": lambda arguments, _result: (
        _traversal(_size_inside(arguments[0])) * _traversal(_size_inside(arguments[1]))
    ),
}
"""Costs of cel-go by overload; every other call costs 1."""
_NEW: Final[dict[str, Cost]] = {
    **dict.fromkeys(("starts_with_string", "ends_with_string"), _of_place(1)),
    "matches": _matches,
}
_OLD: Final[dict[str, Cost]] = dict.fromkeys(("starts_with_string", "ends_with_string"), _of_place(0))


def call_cost(function: str, overload: str, minor: int) -> Cost:
    """The cost of a call.

    Args:
        function: Its name.
        overload: The only overload that the checker left; empty where it left several.
        minor: Of the server.
    """
    if overload in ("list_flatten", "list_flatten_int"):
        return _flatten if minor >= CEL_GO_29 else _flatten_before_29
    if overload in _TRACKERS:
        return _TRACKERS[overload]
    if function == "ip" and overload == "cidr_ip":
        return _fixed(1)
    if function == "containsIP":
        return lambda arguments, _result: _contains_address(overload, arguments)
    if function == "containsCIDR":
        return lambda arguments, _result: _contains_range(overload, arguments)
    if function in _BY_FUNCTION and not (function == "includes" and minor < CEL_GO_29):
        return _BY_FUNCTION[function]
    return (_STANDARD | (_NEW if minor >= CEL_GO_29 else _OLD)).get(overload, _fixed(1))
