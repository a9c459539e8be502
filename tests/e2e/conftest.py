"""Real parts for end-to-end tests: built binaries and a control plane made of them.

A missing binary fails the test that needs it. Skipping would let a broken `make tools` pass for success.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.lab import DRIVER, Lab
from tools import build
from tools.cluster import Api, ControlPlane, NodeStandIn, create_fleet, node
from tools.errors import ToolError
from tools.pulumi_home import WARM_MODULES, PulumiHome, assemble, choose_host, choose_provider
from tools.warm_python import warm_python

ATTACKER_GOT = "the attacker got"
"""Name of the property by which tests of `attacks/` say what their attacker got."""


def pytest_report_header() -> str:
    """Say which Kubernetes provider and Python host the engine uses: a stand-in is named as one."""
    return f"kubernetes provider: {choose_provider(os.environ)}, Python host: {choose_host(os.environ)}"


# Here and not beside the attacks: a run in several processes loads only this file where it prints.
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what the attacker of each attack got."""
    reports = [*terminalreporter.stats.get("passed", ()), *terminalreporter.stats.get("failed", ())]
    told = [
        (each.nodeid, got) for each in reports for name, got in each.user_properties if name == ATTACKER_GOT
    ]
    if told:
        terminalreporter.section("attacks")
    for nodeid, got in sorted(told):
        terminalreporter.line(f"{nodeid.partition('attacks/')[2] or nodeid}: the attacker got {got}")


DEVICES = 128
"""On the node of the shared cluster: the most that a slice holds, for what tests leave behind keeps its devices."""


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


@pytest.fixture(scope="session")
def home(binaries: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[PulumiHome]:
    """The engine's parts; `DRA_INFRA_PROVIDER=vendor` takes the vendor's Kubernetes provider, `DRA_INFRA_HOST=vendor` its host.

    Its Python processes are copies of a warm one, which halves the time of a command. `cold_home` is as users have it.
    """
    directory = tmp_path_factory.mktemp("pulumi")
    with warm_python(directory, *WARM_MODULES) as warm:
        yield assemble(
            directory,
            warm=warm,
            binaries=binaries,
            provider=choose_provider(os.environ),
            host=choose_host(os.environ),
        )


@pytest.fixture(scope="session")
def cold_home(binaries: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> PulumiHome:
    """The same where each process starts by itself."""
    return assemble(
        tmp_path_factory.mktemp("cold-pulumi"),
        binaries=binaries,
        provider=choose_provider(os.environ),
        host=choose_host(os.environ),
    )


@pytest.fixture(scope="session")
def cluster(binaries: Callable[[str], Path]) -> Iterator[ControlPlane]:
    """A control plane with one node of many devices, whose pods run and whose Jobs finish."""
    slice_of_devices = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": "node-a"},
        "spec": {
            "driver": DRIVER,
            "nodeName": "node-a",
            "pool": {"name": "node-a", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": f"device-{index}"} for index in range(DEVICES)],
        },
    }
    device_class = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": DRIVER},
        "spec": {"selectors": [{"cel": {"expression": f"device.driver == '{DRIVER}'"}}]},
    }
    with ControlPlane(binaries=binaries) as plane, NodeStandIn(plane.connection):
        with plane.api() as api:
            create_fleet(api, [node("node-a"), slice_of_devices, device_class])
        yield plane


@pytest.fixture(scope="session")
def cluster_api(cluster: ControlPlane) -> Iterator[Api]:
    """The administrator of the cluster."""
    with cluster.api() as client:
        yield client


@pytest.fixture(scope="session")
def make_lab(
    home: PulumiHome, cluster: ControlPlane, cluster_api: Api, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[], Lab]:
    """Makes projects, each with a stack and a namespace of its own."""
    numbers = itertools.count(1)

    def make() -> Lab:
        namespace = f"lab-{next(numbers)}"
        cluster_api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        cluster_api.wait_until("v1/ServiceAccount", "default", bool, namespace=namespace)
        return Lab.create(
            tmp_path_factory.mktemp(namespace),
            home=home,
            namespace=namespace,
            environment={"KUBECONFIG": str(cluster.kubeconfig)},
        )

    return make


@pytest.fixture
def lab(make_lab: Callable[[], Lab]) -> Lab:
    """A project of this test."""
    return make_lab()
