"""One control plane for all recipes of a process; each finds it empty."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.recipes.reused_plane import ReusedPlane
from tools.cluster import ControlPlane


@pytest.fixture(scope="session")
def reused_plane(binaries: Callable[[str], Path]) -> Iterator[ReusedPlane]:
    """Starts a control plane when one is asked for."""
    with ReusedPlane(lambda: ControlPlane(binaries=binaries)) as reused:
        yield reused


@pytest.fixture
def empty_plane(reused_plane: ReusedPlane) -> Iterator[ControlPlane]:
    """A control plane without nodes, slices, classes, definitions or workloads."""
    yield reused_plane.take()
    reused_plane.give_back()
