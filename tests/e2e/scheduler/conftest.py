"""One control plane with a scheduler for all scenarios of a process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.scheduler.submission import OTHER_MAKERS, Submission
from tests.support.scheduler.controllers import JOBSET, LWS, running_controllers
from tests.support.scheduler.stage import Stage
from tools.cluster import ControlPlane, NodeStandIn


@pytest.fixture(scope="session")
def stage(binaries: Callable[[str], Path]) -> Iterator[Stage]:
    """The control plane of the newest minor, empty but for what scenarios before left to the garbage collector."""
    with ControlPlane(binaries=binaries) as plane, plane.api() as api:
        yield Stage(api)


@pytest.fixture(scope="module")
def submission(binaries: Callable[[str], Path]) -> Iterator[Submission]:
    """Another one with somebody who answers for the pods of its nodes: controllers make some pods when others are ready."""
    with (
        ControlPlane(binaries=binaries) as plane,
        NodeStandIn(plane.connection, finish_jobs=False),
        plane.api() as api,
        plane.api() as watching,
    ):
        yield Submission(Stage(api), watching, plane)


@pytest.fixture
def submission_to_others(binaries: Callable[[str], Path], tmp_path: Path) -> Iterator[Submission]:
    """One more with the controllers of LeaderWorkerSet and JobSet."""
    with (
        ControlPlane(binaries=binaries) as plane,
        NodeStandIn(plane.connection, finish_jobs=False),
        plane.api() as api,
        running_controllers(plane, api, binaries, tmp_path, (LWS, JOBSET)),
        plane.api() as watching,
    ):
        yield Submission(Stage(api), watching, plane, OTHER_MAKERS)
