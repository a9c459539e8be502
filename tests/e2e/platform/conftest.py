"""Charts, and projects that install them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.charts import REAL_CHARTS, TESTDATA, ChartFolder, find_testdata, provide
from tests.support.lab import Lab
from tools.cluster import Api, ControlPlane
from tools.pulumi_home import PulumiHome


def pytest_report_header() -> str:
    """Say what the charts of these tests are."""
    testdata = find_testdata(os.environ)
    made_of = str(testdata) if testdata else f"NOT HERE, so most tests skip: set {TESTDATA}"
    return f"values and CRDs of charts: {made_of}; real charts: {os.environ.get(REAL_CHARTS) or 'none'}"


@pytest.fixture(scope="session")
def testdata() -> Path:
    """Values and CRDs of real charts; the tests that need them are skipped where they are not here."""
    found = find_testdata(os.environ)
    if found is None:
        pytest.skip(
            f"values and CRDs of real charts are not here: set {TESTDATA} to the folder that has them"
        )
    return found


@pytest.fixture(scope="session")
def chart(testdata: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], ChartFolder]:
    """Finds or makes the chart of a name and version."""
    folder = tmp_path_factory.mktemp("charts")
    return lambda name, version: provide(folder, name, version, testdata)


@pytest.fixture
def make_platform_lab(
    home: PulumiHome, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[ControlPlane], Lab]:
    """Makes projects on a cluster; releases make their namespaces themselves."""

    def make(plane: ControlPlane) -> Lab:
        return Lab.create(
            tmp_path_factory.mktemp("platform"),
            home=home,
            namespace="platform",
            environment={"KUBECONFIG": str(plane.kubeconfig)},
        )

    return make


@pytest.fixture(scope="module")
def plane(binaries: Callable[[str], Path]) -> Iterator[ControlPlane]:
    """A cluster of these tests: releases make objects without a namespace, which other tests would see."""
    with ControlPlane(binaries=binaries) as control_plane:
        yield control_plane


@pytest.fixture(scope="module")
def plane_api(plane: ControlPlane) -> Iterator[Api]:
    """The administrator of that cluster."""
    with plane.api() as client:
        yield client


@pytest.fixture
def platform_lab(make_platform_lab: Callable[[ControlPlane], Lab], plane: ControlPlane) -> Iterator[Lab]:
    """A project whose releases are uninstalled after the test."""
    lab = make_platform_lab(plane)
    yield lab
    lab.stack.destroy().check()
