"""The question of a placement: which pods, on which hardware, beside what, and by whose rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dra_infra.catalog.workload_kinds import workload_kinds
from dra_infra.fleet import Fleet
from dra_infra.kubernetes.api import Release, WorkloadKinds
from dra_infra.kubernetes.scheduler import NOTHING_TAKEN, Taken
from dra_infra.placement.cluster import newest_release


def never_late() -> bool:
    """Return False: the search may take the time that it needs."""
    return False


@dataclass(frozen=True, kw_only=True, slots=True)
class PlacementQuestion:
    """Everything that decides where pods can go.

    Args:
        manifests: The objects of the program. Objects that decide nothing here are skipped. The program's classes come before the fleet's
            of the same name. Markers stand for values that are not known.
        fleet: The hardware.
        taken: What is not free of it.
        release: Whose server stores the objects and whose scheduler allocates.
        kinds: Kinds of objects that make pods.
        is_late: Asked during searches. Once it is true, what is not answered by then is not decided.
    """

    manifests: Sequence[Mapping[str, Any]] = field(repr=False)
    fleet: Fleet
    taken: Taken = field(default=NOTHING_TAKEN, repr=False)
    release: Release = field(default_factory=newest_release)
    kinds: WorkloadKinds = field(default_factory=workload_kinds, repr=False)
    is_late: Callable[[], bool] = never_late
