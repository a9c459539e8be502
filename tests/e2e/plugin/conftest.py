"""Publishers against the real API servers, with nobody who acts on what they publish."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dra_infra.client.kubeconfig import find_account
from dra_infra.kubernetes.api import SUPPORTED_MINORS
from dra_infra.plugin.api_server.client import Api as PluginApi
from dra_infra.plugin.back_end import BackEnd
from dra_infra.plugin.publishing.publisher import Publisher
from tests.support.parity.gate_sets import ALL, DEFAULT, gates_of
from tests.support.plugin.publishing import Remembering
from tools.cluster import Api, ControlPlane
from tools.cluster.api_server import api_server
from tools.cluster.control_plane import parts

NODE = "node-1"


def plugin_api(plane: ControlPlane, kubeconfig: Path | None = None) -> PluginApi:
    """The plugin's client, as the administrator or the user of a kubeconfig."""
    return PluginApi(find_account(kubeconfig or plane.kubeconfig, None, {}), {})


@pytest.fixture(scope="module", params=SUPPORTED_MINORS)
def minor(request: pytest.FixtureRequest) -> str:
    """One supported minor after the other."""
    return str(request.param)


@pytest.fixture(scope="module", params=[ALL, DEFAULT])
def gate_set(request: pytest.FixtureRequest) -> str:
    """Every gate on, or the gates that the minor ships."""
    return str(request.param)


@pytest.fixture(scope="module")
def server_of_minor(minor: str, gate_set: str, binaries: Callable[[str], Path]) -> Iterator[ControlPlane]:
    """The API server of the minor."""
    with api_server(minor, feature_gates=gates_of(minor, gate_set), binaries=binaries) as plane:
        yield plane


@pytest.fixture
def server(binaries: Callable[[str], Path]) -> Iterator[ControlPlane]:
    """The API server of the newest minor, which the node restriction holds to what a node may do, for one test."""
    with ControlPlane(components=(parts.ETCD, parts.APISERVER), nodes=[NODE], binaries=binaries) as plane:
        with plane.api() as api:
            make_node(api)
        yield plane


def make_node(api: Api, name: str = NODE) -> None:
    """A node that nobody is behind."""
    api.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})


@pytest.fixture
def publish() -> Iterator[Callable[..., tuple[Publisher, Remembering]]]:
    """Starts publishers, which end with the test."""
    running: list[Publisher] = []

    def start(api: PluginApi, back_end: BackEnd, node: str = NODE) -> tuple[Publisher, Remembering]:
        observer = Remembering()
        publisher = Publisher(api, back_end=back_end, node=node, observer=observer)
        publisher.start()
        running.append(publisher)
        return publisher, observer

    yield start
    for each in running:
        each.stop()
