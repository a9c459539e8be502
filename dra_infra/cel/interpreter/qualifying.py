"""Selection and indexing: `a.b`, `a[b]`, `a.?b`, `a[?b]` and has().

Upstream: applyQualifiers and refQualify in cel-go's interpreter/attributes.go.
"""

from __future__ import annotations

import math
from typing import Final

from dra_infra.cel.interpreter.maps import MAPS, print_value
from dra_infra.cel.interpreter.values import (
    LISTS,
    NONE,
    Err,
    OptionalValue,
    TypeValue,
    Uint,
    Value,
    go_type,
    items_of,
    type_name,
)

_KEYS: Final = (str, int, Uint, bool, float)


def qualify(target: Value, key: Value, *, optional: bool) -> Value:
    """`target[key]`, as an optional value when the target or the index is one."""
    if type(key) not in _KEYS:
        return Err(f"invalid qualifier type: {go_type(key)}")
    if type(target) is OptionalValue:
        if target is NONE:
            return NONE
        target, optional = target.value, True
    found = _look_up(target, key)
    if not optional:
        return Err(_missing(target, key)) if found is None else found[0]
    if found is None:
        return NONE
    return found[0] if type(found[0]) is Err else OptionalValue(found[0])


def is_present(target: Value, field: str) -> Value:
    """`has(target.field)`."""
    if type(target) is OptionalValue:
        if target is NONE:
            return False
        target = target.value
    found = _look_up(target, field)
    if found is not None and type(found[0]) is Err:
        return found[0]
    return found is not None


def _look_up(target: Value, key: Value) -> tuple[Value] | None:
    if type(target) in MAPS:
        return target.find(key)  # type: ignore[no-any-return]
    if type(target) in LISTS:
        index = _index(key)
        if type(index) is Err:
            return (index,)
        items = items_of(target)
        return (items[index],) if 0 <= index < len(items) else None
    return None


def _index(key: Value) -> Value:
    kind = type(key)
    if kind is int:
        return key
    if kind is Uint or kind is float:
        if kind is float and (not math.isfinite(key) or key != int(key)):
            return Err(f"unsupported index value {print_value(key)} in list")
        if -(2**63) < int(key) < 2**63:
            return int(key)
        return Err(f"unsupported index value {print_value(key)} in list")
    return Err(f"unsupported index type '{type_name(key)}' in list")


def _missing(target: Value, key: Value) -> str:
    if type(target) in LISTS:
        return f"index out of bounds: {print_value(key)}"
    return f"no such key: {key.name if type(key) is TypeValue else print_value(key)}"
