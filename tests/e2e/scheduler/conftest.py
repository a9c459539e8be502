"""One control plane with a scheduler for all scenarios of a process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.scheduler.stage import Stage
from tools.cluster import ControlPlane


@pytest.fixture(scope="session")
def stage(binaries: Callable[[str], Path]) -> Iterator[Stage]:
    """The control plane of the newest minor, empty but for what scenarios before left to the garbage collector."""
    with ControlPlane(binaries=binaries) as plane, plane.api() as api:
        yield Stage(api)
