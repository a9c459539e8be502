"""Operators of arithmetic, equality and order, with cel-go's checks for overflow.

Upstream: common/types/overflow.go, and the functions in common/stdlib/standard.go, which need a trait of the left
operand's type. Equality and order hold for numbers of different types too: Equal and Compare of each type in cel-go's
common/types.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from dra_infra.kubernetes.api.semver import Semver
from dra_infra.kubernetes.cel.interpreter.maps import MAPS, Map
from dra_infra.kubernetes.cel.interpreter.urls import URL
from dra_infra.kubernetes.cel.interpreter.values import (
    ABSENT,
    CIDR,
    INT64,
    IP,
    LISTS,
    MAX_SECONDS,
    MIN_SECONDS,
    NO_SUCH_OVERLOAD,
    UINT64,
    ConcatList,
    Duration,
    EmptyMessage,
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

_NUMBERS: Final = (int, Uint, float)
_EXACT: Final = frozenset({bool, int, str, bytes})
"""Types whose values of one type are equal where Python says so."""
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
    """Looks for an element that equals what is sought; errors of comparing count as false."""
    return any(method_equal(sought, item) is True for item in items)


def compare(left: Value, right: Value) -> int | Err:
    """-1, 0 or 1; the left value's type is known to have an order."""
    kind = type(left)
    if kind in _NUMBERS:
        return _compare_numbers(left, right)
    if kind is not type(right):
        return Err(NO_SUCH_OVERLOAD)
    if kind is Duration:
        return order(left.nanos, right.nanos)
    if kind is Timestamp:
        return order((left.seconds, left.nanos), (right.seconds, right.nanos))
    return order(left, right)


def order(left: Any, right: Any) -> int:
    """-1, 0 or 1, as one value is less than the other, equal or greater."""
    if left < right:
        return -1
    return 1 if left > right else 0


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
    return order(left, right)


def _order_float(left: float, right: int) -> int:
    """As cel-go: out of the range of the other type first, then as floats, however much that rounds."""
    low, high = (0.0, float(2**64 - 1)) if type(right) is Uint else (-float(2**63), float(2**63 - 1))
    if left < low:
        return -1
    return 1 if left > high else order(left, float(right))


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
    kinds = set(map(type, ours))
    if kinds <= _EXACT and kinds == set(map(type, theirs)) and len(kinds) == 1:
        return ours == theirs
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
    if left.value is ABSENT or right.value is ABSENT:
        return left.value is right.value
    return method_equal(left.value, right.value)


def _equal_quantities(left: QuantityValue, right: Value) -> bool | Err:
    if type(right) is not QuantityValue or right.is_pointer:
        return Err(NO_SUCH_OVERLOAD)
    return left.amount.compare(right.amount) == 0


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
    EmptyMessage: lambda _, right: type(right) is EmptyMessage,
    Err: lambda left, _: left,
    QuantityValue: _equal_quantities,
    URL: _equal_urls,
    Format: _equal_formats,
}


Binary: TypeAlias = Callable[[Any, Any], Value]

_COMPARABLE: Final = (bool, int, Uint, float, str, bytes, Duration, Timestamp)
_RECEIVERS: Final = (str, Duration, Timestamp)


def missing_trait(function: str, value: Value) -> Err:
    """The error for an operand whose type has no such operator."""
    return Err(NO_SUCH_OVERLOAD if type(value) in _RECEIVERS else f"{NO_SUCH_OVERLOAD}: {function}")


def operate(function: str, left: Value, right: Value) -> Value:
    """`left function right`, for two operands that are no errors."""
    if function in _ORDERS:
        if type(left) not in _COMPARABLE:
            return missing_trait(function, left)
        found = compare(left, right)
        return found if type(found) is Err else found in _ORDERS[function]
    operation = _OPERATIONS[function].get(type(left))
    return missing_trait(function, left) if operation is None else operation(left, right)


def negate(value: Value) -> Value:
    """`-value`."""
    kind = type(value)
    if kind is bool:
        return Err(NO_SUCH_OVERLOAD)
    if kind is float:
        return -value
    if kind is int:
        return _int(-value)
    if kind is Duration:
        return _duration(-value.nanos)
    return missing_trait("-_", value)


def _int(result: int) -> Value:
    return result if result in INT64 else Err("integer overflow")


def _uint(result: int) -> Value:
    return Uint(result) if result in UINT64 else Err("unsigned integer overflow")


def _duration(nanos: int) -> Value:
    return Duration(nanos) if nanos in INT64 else Err("integer overflow")


def _of_kind(kind: Any, make: Callable[[Any], Value], operation: Callable[[Any, Any], Any]) -> Binary:
    def operate(left: Any, right: Any) -> Value:
        if type(right) is not kind:
            return Err(NO_SUCH_OVERLOAD)
        result = operation(int(left), int(right)) if kind is Uint else operation(left, right)
        return result if type(result) is Err else make(result)

    return operate


def _divide(left: int, right: int) -> int | Err:
    if right == 0:
        return Err("division by zero")
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def _modulo(left: int, right: int) -> int | Err:
    if right == 0:
        return Err("modulus by zero")
    if left == -(2**63) and right == -1:
        return Err("integer overflow")
    rest = abs(left) % abs(right)
    return -rest if left < 0 else rest


def _divide_floats(left: float, right: float) -> float:
    if right != 0:
        return left / right
    if left == 0 or math.isnan(left):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1.0, right)


def _add_lists(left: Any, right: Any) -> Value:
    if type(right) not in LISTS:
        return Err(NO_SUCH_OVERLOAD)
    if type(left) is MutableList:
        left.items.extend(items_of(right))
        return left
    if not items_of(left) or not items_of(right):
        return right if not items_of(left) else left
    return ConcatList([*items_of(left), *items_of(right)])


def _add_duration(left: Duration, right: Any) -> Value:
    if type(right) is Duration:
        return _duration(left.nanos + right.nanos)
    return _shift(right, left.nanos) if type(right) is Timestamp else Err(NO_SUCH_OVERLOAD)


def _add_timestamp(left: Timestamp, right: Any) -> Value:
    return _shift(left, right.nanos) if type(right) is Duration else Err(NO_SUCH_OVERLOAD)


def _subtract_timestamp(left: Timestamp, right: Any) -> Value:
    if type(right) is Duration:
        return Err("integer overflow") if right.nanos == -(2**63) else _shift(left, -right.nanos)
    if type(right) is not Timestamp:
        return Err(NO_SUCH_OVERLOAD)
    seconds = (left.seconds - right.seconds) * 10**9
    total = seconds + left.nanos - right.nanos
    return Duration(total) if seconds in INT64 and total in INT64 else Err("integer overflow")


def _shift(time: Timestamp, nanos: int) -> Value:
    seconds, rest = divmod(time.seconds * 10**9 + time.nanos + nanos, 10**9)
    if not MIN_SECONDS <= seconds <= MAX_SECONDS:
        return Err("timestamp overflow")
    return Timestamp(seconds, rest, time.offset)


_ORDERS: Final = {"_<_": (-1,), "_<=_": (-1, 0), "_>_": (1,), "_>=_": (0, 1)}
_ADD: Final[dict[type, Binary]] = {
    int: _of_kind(int, _int, lambda a, b: a + b),
    Uint: _of_kind(Uint, _uint, lambda a, b: a + b),
    float: _of_kind(float, float, lambda a, b: a + b),
    str: _of_kind(str, str, lambda a, b: a + b),
    bytes: _of_kind(bytes, bytes, lambda a, b: a + b),
    **dict.fromkeys(LISTS, _add_lists),
    Duration: _add_duration,
    Timestamp: _add_timestamp,
}
_OPERATIONS: Final[dict[str, dict[type, Binary]]] = {
    "_+_": _ADD,
    "_-_": {
        int: _of_kind(int, _int, lambda a, b: a - b),
        Uint: _of_kind(Uint, _uint, lambda a, b: a - b),
        float: _of_kind(float, float, lambda a, b: a - b),
        Duration: _of_kind(Duration, _duration, lambda a, b: a.nanos - b.nanos),
        Timestamp: _subtract_timestamp,
    },
    "_*_": {
        int: _of_kind(int, _int, lambda a, b: a * b),
        Uint: _of_kind(Uint, _uint, lambda a, b: a * b),
        float: _of_kind(float, float, lambda a, b: a * b),
    },
    "_/_": {
        int: _of_kind(int, _int, _divide),
        Uint: _of_kind(Uint, _uint, _divide),
        float: _of_kind(float, float, _divide_floats),
    },
    "_%_": {int: _of_kind(int, _int, _modulo), Uint: _of_kind(Uint, _uint, _modulo)},
}


def add(left: Value, right: Value) -> Value:
    """`left + right` for a left operand that can be added to."""
    return _ADD[type(left)](left, right)


def is_addable(value: Value) -> bool:
    """Checks that a value has `+`."""
    return type(value) in _ADD


def is_comparable(value: Value) -> bool:
    """Checks that a value has an order."""
    return type(value) in _COMPARABLE
