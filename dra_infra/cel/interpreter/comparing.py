"""Equality and order of values, of numbers of different types too.

Upstream: Equal and Compare of each type in cel-go's common/types.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from dra_infra.cel.interpreter.maps import MAPS, Map
from dra_infra.cel.interpreter.urls import URL
from dra_infra.cel.interpreter.values import (
    CIDR,
    IP,
    LISTS,
    NO_SUCH_OVERLOAD,
    NOTHING,
    ConcatList,
    Duration,
    Err,
    Format,
    MutableList,
    OptionalValue,
    QuantityValue,
    Timestamp,
    TypeValue,
    Uint,
    Value,
    items_of,
)
from dra_infra.model.semver import Semver

_NUMBERS: Final = (int, Uint, float)
_NAN: Final = "NaN values cannot be ordered"


def equal(left: Value, right: Value) -> bool | Err:
    """`left == right`, where null equals nothing else (types.Equal)."""
    if left is None or right is None:
        return left is None and right is None
    return method_equal(left, right)


def method_equal(left: Value, right: Value) -> bool | Err:
    """Equal of the left value's type."""
    return _EQUAL[type(left)](left, right)


def list_contains(items: list[Value], sought: Value) -> bool:
    """Whether an element equals what is sought; errors of comparing count as false."""
    return any(method_equal(sought, item) is True for item in items)


def compare(left: Value, right: Value) -> int | Err:
    """-1, 0 or 1; the left value's type is known to have an order."""
    kind = type(left)
    if kind in _NUMBERS:
        return _compare_numbers(left, right)
    if kind is not type(right):
        return Err(NO_SUCH_OVERLOAD)
    if kind is Duration:
        return _order(left.nanos, right.nanos)
    if kind is Timestamp:
        return _order((left.seconds, left.nanos), (right.seconds, right.nanos))
    return _order(left, right)


def _order(left: Any, right: Any) -> int:
    return -1 if left < right else 1 if left > right else 0


def _compare_numbers(left: Value, right: Value) -> int | Err:
    if type(left) is float and math.isnan(left):
        return Err(_NAN)
    if type(right) not in _NUMBERS:
        return Err(NO_SUCH_OVERLOAD)
    if type(right) is float and math.isnan(right):
        return Err(_NAN)
    return _order_numbers(left, right)


def _order_numbers(left: Value, right: Value) -> int:
    if type(left) is float and type(right) is not float:
        return _order_float(left, right)
    if type(right) is float and type(left) is not float:
        return -_order_float(right, left)
    return _order(left, right)


def _order_float(left: float, right: int) -> int:
    """As cel-go: out of the range of the other type first, then as floats, however much that rounds."""
    low, high = (0.0, float(2**64 - 1)) if type(right) is Uint else (-float(2**63), float(2**63 - 1))
    return -1 if left < low else 1 if left > high else _order(left, float(right))


def _equal_numbers(left: Value, right: Value) -> bool:
    if type(right) not in _NUMBERS:
        return False
    if any(type(each) is float and math.isnan(each) for each in (left, right)):
        return False
    return _order_numbers(left, right) == 0


def _equal_plain(left: Value, right: Value) -> bool:
    return type(left) is type(right) and bool(left == right)


def _equal_timestamps(left: Timestamp, right: Value) -> bool:
    return type(right) is Timestamp and (left.seconds, left.nanos) == (right.seconds, right.nanos)


def _equal_lists(left: Value, right: Value) -> bool | Err:
    if type(right) not in LISTS:
        return False
    ours, theirs = items_of(left), items_of(right)
    if len(ours) != len(theirs):
        return False
    failure: Err | None = None
    for mine, other in zip(ours, theirs, strict=True):
        result = equal(mine, other)
        if result is False:
            return False
        if failure is None and type(result) is Err:
            failure = result
    # A plain list takes an error of comparing for equality.
    return failure if failure is not None and type(left) is ConcatList else True


def _equal_maps(left: Map, right: Value) -> bool:
    if type(right) not in MAPS or len(left) != len(right):
        return False
    for key, value in left.entries.values():
        found = right.find(key)
        if found is None or equal(value, found[0]) is False:
            return False
    return True


def _equal_optionals(left: OptionalValue, right: Value) -> bool | Err:
    if type(right) is not OptionalValue:
        return False
    if left.value is NOTHING or right.value is NOTHING:
        return left.value is right.value
    return method_equal(left.value, right.value)


def _equal_quantities(left: QuantityValue, right: Value) -> bool | Err:
    if type(right) is not QuantityValue or right.is_pointer:
        return Err(NO_SUCH_OVERLOAD)
    return left.amount.value == right.amount.value


def _equal_opaque(left: Value, right: Value) -> bool | Err:
    return bool(left == right) if type(left) is type(right) else Err(NO_SUCH_OVERLOAD)


def _equal_urls(left: URL, right: Value) -> bool | Err:
    return left.text() == right.text() if type(right) is URL else Err(NO_SUCH_OVERLOAD)


def _equal_formats(left: Format, right: Value) -> bool | Err:
    return left.name == right.name if type(right) is Format else Err(NO_SUCH_OVERLOAD)


_EQUAL: Final[dict[type, Callable[[Any, Any], bool | Err]]] = {
    **dict.fromkeys((bool, str, bytes, type(None), Duration, TypeValue), _equal_plain),
    **dict.fromkeys(_NUMBERS, _equal_numbers),
    **dict.fromkeys((list, ConcatList, MutableList), _equal_lists),
    **dict.fromkeys(MAPS, _equal_maps),
    **dict.fromkeys((Semver, IP, CIDR), _equal_opaque),
    Timestamp: _equal_timestamps,
    OptionalValue: _equal_optionals,
    QuantityValue: _equal_quantities,
    URL: _equal_urls,
    Format: _equal_formats,
}
