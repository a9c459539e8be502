"""Hypothesis strategies for manifests, built from the shapes of the records."""

from __future__ import annotations

from functools import cache
from typing import Any

from hypothesis import strategies as st

from dra_infra.kubernetes.api import Record, v1beta1
from dra_infra.kubernetes.api.decoding import record_of
from dra_infra.kubernetes.api.gates import NEWEST
from dra_infra.kubernetes.api.record import JsonType, ValueShape, known_fields

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
"""Any JSON."""

_SCALARS = {
    JsonType.TEXT: st.sampled_from(["", "a", "gpu.example.com", "é\u2028<", "All", "Exists"]),
    JsonType.INTEGER: st.sampled_from([0, 1, -1, 2**63 - 1, -(2**63)]),
    JsonType.TRUTH: st.booleans(),
    JsonType.QUANTITY: st.sampled_from(["0", "1024Mi", "1.5Gi", "100m", "1e3"]),
    JsonType.TIME: st.sampled_from(["2026-01-02T03:04:05Z", "2026-01-02T03:04:05.5+01:00"]),
    JsonType.RAW: JSON.filter(lambda value: value is not None),
}


@cache
def manifests(kind: str, version: str = "v1", minor: int = NEWEST) -> st.SearchStrategy[dict[str, Any]]:
    """Manifests whose every field has a value of its type; they need not be valid otherwise."""
    instead = v1beta1.SHAPES if version == "v1beta1" else {}
    header = {"apiVersion": st.just(f"resource.k8s.io/{version}"), "kind": st.just(kind)}
    fields = _fields(record_of(kind), minor, instead)
    optional = {name: value for name, value in fields.items() if name not in header}
    return st.fixed_dictionaries(header, optional=optional)


def _fields(type_: type[Record], minor: int, instead: Any) -> dict[str, st.SearchStrategy[Any]]:
    known = known_fields(instead.get(type_, type_), minor)
    return {name: _values(field.value, minor, instead) for name, field in known.items()}


def _values(shape: ValueShape, minor: int, instead: Any) -> st.SearchStrategy[Any]:
    if shape.record is not None:
        return st.fixed_dictionaries({}, optional=_fields(shape.record, minor, instead))
    if shape.item is not None:
        items = _values(shape.item, minor, instead)
        if shape.json_type is JsonType.LIST:
            return st.lists(items, max_size=2)
        return st.dictionaries(st.sampled_from(["a", "b.example.com/c"]), items, max_size=2)
    return _SCALARS[shape.json_type]
