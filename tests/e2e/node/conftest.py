"""A real node beside a control plane: kubelet, containerd and runc, which run the pods of these tests."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.node.workloads import Workloads
from tools.cluster import Api, ControlPlane
from tools.node import RealNode

NODE = "real-node"

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
    """The node, fresh for each module: it starts in 2 s, and a machine has one at a time."""
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
    made.remove_all()
