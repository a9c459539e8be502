"""Equality of two versions of a record, as API servers decide whether an update changes anything.

Servers compare what they decoded with `apiequality.Semantic.DeepEqual` (k8s.io/apimachinery/pkg/api/equality/semantic.go): an
absent list or map equals an empty one, and amounts and times are compared by value. Opaque parameters are JSON text to them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dra_infra.kubernetes.api.equality import is_same_json
from dra_infra.kubernetes.api.go_time import canonical_time
from dra_infra.kubernetes.api.quantity import Quantity
from dra_infra.kubernetes.api.record import JsonType, Record, ValueShape, shape_of


def are_records_equal(one: Record | None, other: Record | None) -> bool:
    """Return whether two records are equal to an API server, after defaulting on both sides."""
    if one is None or other is None or one is other:
        return one is other
    return type(one) is type(other) and all(
        _are_values_equal(field.value, getattr(one, field.name), getattr(other, field.name))
        for field in shape_of(type(one)).fields.values()
    )


def are_lists_equal(one: Sequence[Record] | None, other: Sequence[Record] | None) -> bool:
    """Return whether two lists of records are equal to an API server; None equals an empty list."""
    before, after = one or (), other or ()
    return len(before) == len(after) and all(map(are_records_equal, before, after))


def are_maps_equal(one: Mapping[str, Record] | None, other: Mapping[str, Record] | None) -> bool:
    """Return whether two maps of records are equal to an API server; None equals an empty map."""
    before, after = one or {}, other or {}
    return before.keys() == after.keys() and all(
        are_records_equal(before[name], after[name]) for name in before
    )


def _are_values_equal(shape: ValueShape, one: Any, other: Any) -> bool:
    kind = shape.json_type
    if kind in (JsonType.LIST, JsonType.MAP):
        return _are_collections_equal(shape, one or (), other or ())
    if one is None or other is None:
        return one is other
    if kind is JsonType.RECORD:
        return are_records_equal(one, other)
    if kind is JsonType.QUANTITY:
        return Quantity.parse(one).nanos == Quantity.parse(other).nanos
    if kind is JsonType.TIME:
        return canonical_time(one) == canonical_time(other)
    return is_same_json(one, other)


def _are_collections_equal(shape: ValueShape, one: Any, other: Any) -> bool:
    item = shape.item
    if len(one) != len(other) or item is None:
        return not one and not other
    if isinstance(one, Mapping):
        return one.keys() == other.keys() and all(
            _are_values_equal(item, value, other[key]) for key, value in one.items()
        )
    return all(_are_values_equal(item, value, other[index]) for index, value in enumerate(one))
