"""A real node beside a control plane: kubelet, containerd and runc, which run the pods of these tests."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dra_infra.catalog import load_fleet
from tests.support.node.invariants import settled
from tests.support.node.plugin_process import PluginProcess
from tests.support.node.workloads import Workloads
from tools.cluster import Api, ControlPlane, create_fleet
from tools.node import RealNode

NODE = "real-node"
FLEET = "hgx-h100"

_NUMBERS = itertools.count(1)


@pytest.fixture(scope="session")
def node_plane(binaries: Callable[[str], Path]) -> Iterator[ControlPlane]:
    """A control plane that knows the node by name."""
    with ControlPlane(binaries=binaries, nodes=[NODE]) as plane:
        yield plane


@pytest.fixture(scope="session")
def node_api(node_plane: ControlPlane) -> Iterator[Api]:
    """The administrator of the cluster that the node is in."""
    with node_plane.api() as api:
        yield api


@pytest.fixture(scope="module")
def real_node(node_plane: ControlPlane, binaries: Callable[[str], Path]) -> Iterator[RealNode]:
    """The node, fresh for each module: it starts in 2 s."""
    with RealNode(node_plane, name=NODE, binaries=binaries) as node:
        yield node


@pytest.fixture
def workloads(node_api: Api, real_node: RealNode) -> Iterator[Workloads]:
    """Pods and claims in a namespace of this test, which are gone when it ends."""
    namespace = f"node-{next(_NUMBERS)}"
    node_api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    node_api.wait_until("v1/ServiceAccount", "default", bool, namespace=namespace)
    made = Workloads(node_api, namespace)
    yield made
    try:
        made.remove_all()
    finally:
        node_api.delete("v1/Namespace", namespace)


@pytest.fixture(scope="module")
def device_classes(node_api: Api) -> Iterator[None]:
    """The classes of NVIDIA's driver, for the time of a module: others install their own."""
    classes = [one for one in load_fleet(FLEET).to_manifests() if one["kind"] == "DeviceClass"]
    create_fleet(node_api, classes)
    yield
    for one in classes:
        node_api.delete("resource.k8s.io/v1/DeviceClass", one["metadata"]["name"])


@pytest.fixture(scope="module")
def plugin(
    request: pytest.FixtureRequest,
    device_classes: None,
    real_node: RealNode,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[PluginProcess]:
    """The node plugin, registered, with devices of the module's ``FLEET``."""
    fleet = getattr(request.module, "FLEET", FLEET)
    process = PluginProcess(real_node, tmp_path_factory.mktemp("plugin") / "plugin.log", fleet=fleet)
    with contextlib.closing(process):
        process.start()
        yield process


@pytest.fixture
def claims(
    plugin: PluginProcess, workloads: Workloads, node_api: Api, real_node: RealNode
) -> Iterator[Workloads]:
    """Pods and claims for devices of the plugin; when the test has ended, nothing of them is left anywhere."""
    yield workloads
    # A test that failed between an end and a start would leave the next one pods that nobody can end.
    for part in (real_node.containerd, real_node.kubelet):
        if not part.is_running:
            part.start()
    if not plugin.is_running:
        plugin.start()
    workloads.remove_all()
    assert settled(node_api, real_node) == frozenset()
