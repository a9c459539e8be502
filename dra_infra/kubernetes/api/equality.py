"""Equality of plain JSON data of two sides, where Python's own would take `true`, `1` and `1.0` for one value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def is_same_json(one: Any, other: Any) -> bool:
    """Return whether two values are the same JSON: `true`, `1` and `1.0` are three values.

    The order of keys does not count, because clients send objects with sorted keys.
    """
    if one != other:
        return False
    # Python compares and writes large objects much faster than the loop below.
    return repr(one) == repr(other) or _has_same_types(one, other)


def is_same_value(one: Any, other: Any) -> bool:
    """Return whether two values of an object, whose schema is not known here, are equal to an API server.

    As `is_same_json`, but a field that is absent equals one that is null, or an empty list or map
    (`apiequality.Semantic.DeepEqual`).
    """
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return all(is_same_value(one.get(key), other.get(key)) for key in {*one, *other})
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(is_same_value, one, other))
    if one is None or other is None:
        return _is_nothing(one) and _is_nothing(other)
    return is_same_json(one, other)


def _has_same_types(one: Any, other: Any) -> bool:
    """Return whether numbers and truth values have the same types in two values that are equal to Python."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return all(_has_same_types(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return all(map(_has_same_types, one, other))
    return type(one) is type(other) or not isinstance(one, (bool, int, float))


def _is_nothing(value: Any) -> bool:
    return value is None or (isinstance(value, (Mapping, list, tuple)) and not value)
