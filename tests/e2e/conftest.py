"""Real parts for end-to-end tests: built binaries and a control plane made of them.

A missing binary fails the test that needs it. Skipping would let a broken `make tools` pass for success.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tools import build
from tools.cluster import Api, ControlPlane
from tools.errors import ToolError


@pytest.fixture(scope="session")
def binaries() -> Callable[[str], Path]:
    """Finds a built binary by its name; fails the test when `make tools` has not been run."""

    def find(name: str) -> Path:
        try:
            return build.binary(name)
        except ToolError as error:
            failure = str(error)
        # Outside of the handler, or pytest shows the handled exception before the hint.
        pytest.fail(failure, pytrace=False)

    return find


@pytest.fixture(scope="session")
def control_plane(binaries: Callable[[str], Path]) -> Iterator[ControlPlane]:
    """A control plane for all tests that keep to namespaces of their own and leave nodes, slices and classes alone."""
    with ControlPlane(binaries=binaries) as plane:
        yield plane


@pytest.fixture
def fresh_control_plane(binaries: Callable[[str], Path]) -> Iterator[ControlPlane]:
    """An empty control plane for one test; takes about 3 s to start."""
    with ControlPlane(binaries=binaries) as plane:
        yield plane


@pytest.fixture(scope="session")
def api(control_plane: ControlPlane) -> Iterator[Api]:
    """The administrator of the shared control plane."""
    with control_plane.api() as client:
        yield client
