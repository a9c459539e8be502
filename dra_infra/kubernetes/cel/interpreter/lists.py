"""Functions of lists and sets: Kubernetes' own, and cel-go's lists, sets and two-variable macros.

Upstream: k8s.io/apiserver/pkg/cel/library/lists.go; cel-go's ext/{lists,sets,comprehensions}.go.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from dra_infra.kubernetes.api.limits import MAX_COST
from dra_infra.kubernetes.cel.interpreter.maps import Map, insert
from dra_infra.kubernetes.cel.interpreter.operators import (
    add,
    compare,
    is_addable,
    is_comparable,
    list_contains,
    method_equal,
)
from dra_infra.kubernetes.cel.interpreter.text import (
    INDEX_OF,
    INDEX_OF_BEFORE_37,
    LAST_INDEX_OF,
    LAST_INDEX_OF_BEFORE_37,
)
from dra_infra.kubernetes.cel.interpreter.tracker import EXCEEDED
from dra_infra.kubernetes.cel.interpreter.values import (
    LISTS,
    NO_SUCH_OVERLOAD,
    NONE,
    Duration,
    Err,
    OptionalValue,
    Overloads,
    PanicError,
    Uint,
    UndecidedError,
    Value,
    items_of,
    type_name,
)

MAX_ELEMENTS: Final = 100_000_000
_MAX_RANGE: Final = 1_000_000
_MAX_INCLUDED: Final = 48
"""Elements that includes() of 1.36 goes over (ResourceSliceMaxAttributeValuesPerDevice)."""
_SPAN: Final = "google.protobuf.Duration"
_COMPARABLE: Final = ("int", "uint", "double", "bool", _SPAN, "google.protobuf.Timestamp", "string", "bytes")
_ZEROS: Final[dict[str, Value]] = {"int": 0, "uint": Uint(0), "double": 0.0, _SPAN: Duration(0)}


def _is_sorted(values: Any) -> Value:
    items = items_of(values)
    for before, item in zip([None, *items], items):  # noqa: B905  (one longer on purpose)
        if not is_comparable(item):
            return Err(NO_SUCH_OVERLOAD)
        if before is not None and compare(before, item) == 1:
            return False
    return True


def _sum_from(zero: Value) -> Callable[[Any], Value]:
    def total(values: Any) -> Value:
        result = zero
        for item in items_of(values):
            if not is_addable(item):
                return Err(NO_SUCH_OVERLOAD)
            result = add(result, item)
            if type(result) is Err:
                return result
        return result

    return total


def _extreme(name: str, worse: int) -> Callable[[Any], Value]:
    def best(values: Any) -> Value:
        items = items_of(values)
        if not items:
            return Err(f"{name} called on empty list")
        result = items[0]
        if not all(map(is_comparable, items)):
            return Err(NO_SUCH_OVERLOAD)
        for item in items[1:]:
            if compare(result, item) == worse:
                result = item
        return result

    return best


def _position(values: Any, sought: Value) -> int:
    items = items_of(values)
    return next((index for index, item in enumerate(items) if method_equal(item, sought) is True), -1)


def _last_position(values: Any, sought: Value) -> int:
    items = items_of(values)
    return next((i for i in range(len(items) - 1, -1, -1) if method_equal(items[i], sought) is True), -1)


def _includes(target: Value, sought: Value) -> bool:
    if type(target) in LISTS:
        return _position(target, sought) >= 0
    return method_equal(target, sought) is True


def _includes_few(target: Value, sought: Value) -> Value:
    if type(target) not in LISTS or len(items_of(target)) <= _MAX_INCLUDED:
        return _includes(target, sought)
    if _position(items_of(target)[:_MAX_INCLUDED], sought) >= 0:
        return True
    return Err(f"'includes' function cannot be applied to lists longer than {_MAX_INCLUDED} values")


def _slice(values: Any, start: int, end: int) -> Value:
    items = items_of(values)
    if start < 0 or end < 0:
        return Err(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        return Err(f"cannot slice({start}, {end}), start index must be less than or equal to end index")
    if len(items) < end:
        return Err(f"cannot slice({start}, {end}), list is length {len(items)}")
    return items[start:end]


def _flatten(values: Value, depth: Value = 1) -> Value:
    """The type guards are off, so that lists which are flat already pass."""
    if type(values) not in LISTS:
        return Err(f"{NO_SUCH_OVERLOAD}: {type_name(values)}.flatten()")
    if type(depth) is not int:
        return Err(f"{NO_SUCH_OVERLOAD}: {type_name(values)}.flatten({type_name(depth)})")
    return Err("level must be non-negative") if depth < 0 else _flat(items_of(values), depth)


def _flat(items: list[Value], depth: int) -> list[Value]:
    found: list[Value] = []
    for item in items:
        if type(item) in LISTS and depth:
            found.extend(_flat(items_of(item), depth - 1))
        else:
            found.append(item)
    return found


def _distinct(values: Any) -> Value:
    items = items_of(values)
    found: list[Value] = []
    for item in items:
        if not any(method_equal(item, other) is True for other in found):
            found.append(item)
    return found if items else values


def _range_new(size: int) -> Value:
    if size < 0:
        return Err(f"lists.range: size must be non-negative, got {size}")
    if size > _MAX_RANGE:
        return Err(f"lists.range: size {size} exceeds maximum allowed ({_MAX_RANGE})")
    return _range_old(size)


def _range_old(size: int) -> Value:
    if size > MAX_ELEMENTS:
        raise UndecidedError(
            f"a list of more than {MAX_ELEMENTS:,} elements, which a server may lack memory for"
        )
    if size > MAX_COST:
        raise PanicError(EXCEEDED)
    return list(range(size))


def _contains_all(values: Any, sought: Any) -> bool:
    items = items_of(values)
    return all(list_contains(items, item) for item in items_of(sought))


def _intersects(left: Any, right: Any) -> bool:
    items = items_of(right)
    return any(list_contains(items, item) for item in items_of(left))


def _insert_all(target: Map, update: Map) -> Value:
    result: Value = target
    for key, value in list(update.entries.values()):
        result = insert(result, key, value)
        if type(result) is Err:
            return result
    return result


def _unwrap(values: Any) -> Value:
    found = []
    for item in items_of(values):
        if type(item) is not OptionalValue:
            return Err(f"value {type_name(item)} is not optional")
        if item is not NONE:
            found.append(item.value)
    return found


def _each(kinds: tuple[str, ...] | dict[str, Value], implementation: Callable[[Any], Value]) -> Overloads:
    return tuple(((f"list<{kind}>",), implementation) for kind in kinds)


LISTS_LIBRARY: Final[dict[str, Overloads]] = {
    "isSorted": _each(_COMPARABLE, _is_sorted),
    "sum": tuple(((f"list<{kind}>",), _sum_from(zero)) for kind, zero in _ZEROS.items()),
    "max": _each(_COMPARABLE, _extreme("max", -1)),
    "min": _each(_COMPARABLE, _extreme("min", 1)),
    "indexOf": (*INDEX_OF, (("list<any>", "any"), _position)),
    "lastIndexOf": (*LAST_INDEX_OF, (("list<any>", "any"), _last_position)),
    "includes": ((("any", "any"), _includes),),
    "slice": ((("list<any>", "int", "int"), _slice),),
    "flatten": ((("any",), _flatten), (("any", "any"), _flatten)),
    "lists.range": ((("int",), _range_new),),
    "reverse": ((("list<any>",), lambda values: items_of(values)[::-1]),),
    "distinct": ((("list<any>",), _distinct),),
    "sets.contains": ((("list<any>", "list<any>"), _contains_all),),
    "sets.equivalent": (
        (("list<any>", "list<any>"), lambda a, b: _contains_all(a, b) and _contains_all(b, a)),
    ),
    "sets.intersects": ((("list<any>", "list<any>"), _intersects),),
    "cel.@mapInsert": ((("map", "any", "any"), insert), (("map", "map"), _insert_all)),
    "optional.unwrap": ((("list<optional_type>",), _unwrap),),
    "unwrapOpt": ((("list<optional_type>",), _unwrap),),
}
"""Functions of lists, by name."""

_POSITIONS: Final[Overloads] = ((("list<any>", "any"), _position),)
_LAST_POSITIONS: Final[Overloads] = ((("list<any>", "any"), _last_position),)
BEFORE_37: Final[dict[str, Overloads]] = {
    "indexOf": (*INDEX_OF_BEFORE_37, *_POSITIONS),
    "lastIndexOf": (*LAST_INDEX_OF_BEFORE_37, *_LAST_POSITIONS),
    "includes": ((("any", "any"), _includes_few),),
    "lists.range": ((("int",), _range_old),),
}
"""Functions that were others in servers with cel-go 0.26."""
