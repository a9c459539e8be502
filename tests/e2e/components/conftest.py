"""The API servers of all minors, one at a time, which nobody acts on."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dra_infra.kubernetes.api import SUPPORTED_MINORS
from tests.support.charts import TESTDATA, find_testdata
from tests.support.parity.gate_sets import ALL, gates_of
from tools.cluster import Api
from tools.cluster.api_server import api_server


def pytest_report_header() -> str:
    """Say whether the definitions of other projects are here."""
    found = find_testdata(os.environ)
    return f"definitions of other projects: {found or f'NOT HERE, so their tests skip: set {TESTDATA}'}"


@pytest.fixture(scope="session")
def folder_of_crds() -> Path:
    """The definitions of other projects; tests that need them are skipped where they are not here."""
    found = find_testdata(os.environ)
    if found is None:
        pytest.skip(f"definitions of other projects are not here: set {TESTDATA} to the folder with crds/")
    return found / "crds"


@pytest.fixture(scope="module", params=SUPPORTED_MINORS)
def minor(request: pytest.FixtureRequest) -> str:
    """One supported minor after the other."""
    return str(request.param)


@pytest.fixture(scope="module")
def server(minor: str, binaries: Callable[[str], Path]) -> Iterator[Api]:
    """The API server of the minor with its default gates."""
    with api_server(minor, binaries=binaries) as plane, plane.api() as api:
        yield api


@pytest.fixture(scope="module")
def server_with_all_gates(minor: str, binaries: Callable[[str], Path]) -> Iterator[Api]:
    """The API server of the minor with every gate of DRA on, alphas too."""
    with (
        api_server(minor, feature_gates=gates_of(minor, ALL), binaries=binaries) as plane,
        plane.api() as api,
    ):
        yield api
