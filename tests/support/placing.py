"""Places plain objects on a fleet, as most tests ask it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dra_infra.fleet import Fleet
from dra_infra.kubernetes.api import ObjectRef
from dra_infra.placement import scheduling
from dra_infra.placement.placement import Placement
from dra_infra.placement.question import PlacementQuestion


def place(
    manifests: Sequence[Mapping[str, Any]],
    fleet: Fleet,
    *,
    last: frozenset[ObjectRef] = frozenset(),
    with_headroom: bool = False,
    **rest: Any,
) -> Placement:
    """Return where the pods of objects go; *rest* are further fields of the question."""
    return scheduling.place(ask(manifests, fleet, **rest), last=last, with_headroom=with_headroom)


def ask(manifests: Sequence[Mapping[str, Any]], fleet: Fleet, **rest: Any) -> PlacementQuestion:
    """Return the question about objects; a field that is None keeps its default."""
    given = {name: value for name, value in rest.items() if value is not None}
    return PlacementQuestion(manifests=manifests, fleet=fleet, **given)
