"""The API servers of all minors, one at a time, which nobody acts on; and a control plane with nodes that are only said to be there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dra_infra.kubernetes.api import SUPPORTED_MINORS
from tools.cluster import Api, ControlPlane, NodeStandIn
from tools.cluster.api_server import api_server


@pytest.fixture(scope="module", params=SUPPORTED_MINORS)
def server(request: pytest.FixtureRequest, binaries: Callable[[str], Path]) -> Iterator[Api]:
    """The API server of one supported minor after the other, with its default gates and all versions of the group."""
    with api_server(request.param, binaries=binaries) as plane, plane.api() as api:
        yield api


@pytest.fixture
def plane(binaries: Callable[[str], Path]) -> Iterator[ControlPlane]:
    with ControlPlane(binaries=binaries) as plane, NodeStandIn(plane.connection):
        yield plane
