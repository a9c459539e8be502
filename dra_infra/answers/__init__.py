"""Answers to questions about objects on a cluster: every command, `dra_infra.testing` and whoever embeds the tool asks here (ADR 21).

```python
from dra_infra.answers import read_scene, simulate

answer = simulate(read_scene("infra/", fleet="hgx-h100 x 4"))
```

Names load when they are first used: a scene needs no engine before a program is read.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dra_infra.answers.checking import Checked as Checked
    from dra_infra.answers.checking import check as check
    from dra_infra.answers.diagnosing import diagnose as diagnose
    from dra_infra.answers.draining import PlannedDrain as PlannedDrain
    from dra_infra.answers.draining import plan_drain as plan_drain
    from dra_infra.answers.explaining import Explained as Explained
    from dra_infra.answers.explaining import explain as explain
    from dra_infra.answers.making_room import RoomAnswer as RoomAnswer
    from dra_infra.answers.making_room import find_room as find_room
    from dra_infra.answers.migrating import Migration as Migration
    from dra_infra.answers.migrating import migrate as migrate
    from dra_infra.answers.observing import ClusterStatus as ClusterStatus
    from dra_infra.answers.observing import LiveStatus as LiveStatus
    from dra_infra.answers.observing import observe as observe
    from dra_infra.answers.observing import observe_snapshot as observe_snapshot
    from dra_infra.answers.reading import read_scene as read_scene
    from dra_infra.answers.reviewing import Reviewed as Reviewed
    from dra_infra.answers.reviewing import compare as compare
    from dra_infra.answers.reviewing import review as review
    from dra_infra.answers.scene import Scene as Scene
    from dra_infra.answers.simulating import Simulation as Simulation
    from dra_infra.answers.simulating import simulate as simulate
    from dra_infra.answers.snapshotting import take_snapshot as take_snapshot
    from dra_infra.answers.upgrading import read_upgrade as read_upgrade
    from dra_infra.answers.upgrading import upgrade as upgrade
    from dra_infra.answers.validating import ValidationReport as ValidationReport
    from dra_infra.answers.validating import validate as validate

_HOMES = {
    "Checked": "checking",
    "ClusterStatus": "observing",
    "Explained": "explaining",
    "LiveStatus": "observing",
    "Migration": "migrating",
    "PlannedDrain": "draining",
    "Reviewed": "reviewing",
    "RoomAnswer": "making_room",
    "Scene": "scene",
    "Simulation": "simulating",
    "ValidationReport": "validating",
    "check": "checking",
    "compare": "reviewing",
    "diagnose": "diagnosing",
    "explain": "explaining",
    "find_room": "making_room",
    "migrate": "migrating",
    "observe": "observing",
    "observe_snapshot": "observing",
    "plan_drain": "draining",
    "read_scene": "reading",
    "read_upgrade": "upgrading",
    "review": "reviewing",
    "simulate": "simulating",
    "take_snapshot": "snapshotting",
    "upgrade": "upgrading",
    "validate": "validating",
}

__all__ = [*_HOMES]  # noqa: PLE0604  (names of the table)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(_HOMES)
