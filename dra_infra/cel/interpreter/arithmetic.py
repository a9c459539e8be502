"""The operators of arithmetic and order, with cel-go's checks for overflow.

Upstream: common/types/overflow.go, and the functions in common/stdlib/standard.go, which need a trait of the left
operand's type.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from dra_infra.cel.interpreter.comparing import compare
from dra_infra.cel.interpreter.values import (
    INT64,
    LISTS,
    MAX_SECONDS,
    MIN_SECONDS,
    NO_SUCH_OVERLOAD,
    UINT64,
    ConcatList,
    Duration,
    Err,
    MutableList,
    Timestamp,
    Uint,
    Value,
    items_of,
)

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
        order = compare(left, right)
        return order if type(order) is Err else order in _ORDERS[function]
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
    """Whether a value has `+`."""
    return type(value) in _ADD


def is_comparable(value: Value) -> bool:
    """Whether a value has an order."""
    return type(value) in _COMPARABLE
