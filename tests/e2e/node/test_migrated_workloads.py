"""Workloads on a real node under a device plugin, and after `dra-infra migrate` under the node plugin: what they see is the same.

The device plugin is a stand-in that is registered with the kubelet; everything else is real. A node that starts afresh has one of
them first and the other one then: the way of a migration, and the way back.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import pytest

from dra_infra.catalog import load_fleet
from tests.e2e.node import example_images
from tests.e2e.node.conftest import NODE
from tests.e2e.node.device_plugin_standin import MOUNTS, DevicePlugin
from tests.e2e.node.device_plugin_workloads import (
    ENDING_IMAGES,
    NODE_LABELS,
    SERVED,
    Served,
    Workload,
    batches,
    images,
    migrated,
    workloads,
)
from tests.e2e.node.workload_runs import TERMINATION_MESSAGE, Seen, running, wait_gone
from tests.support.node.invariants import settled
from tests.support.node.plugin_process import PluginProcess
from tools.cluster import Api, ControlPlane, Manifest
from tools.node import RealNode

pytestmark = pytest.mark.e2e

ORDERS: Final = (("device plugin", "claims"), ("claims", "device plugin"))
LOOK: Final = (
    f"{{ ls {MOUNTS} 2>/dev/null; env; echo '{example_images.LAST_LINE}'; }} | tee {TERMINATION_MESSAGE}"
)
WAIT: Final = "trap 'exit 0' TERM\n{}\nwhile :; do sleep 3600 & wait $!; done"

Pods = Sequence[tuple[tuple[str, int], ...]]


def test_thirty_workloads_and_more_are_here():
    ids = [each.id for served in SERVED for each in workloads(served)]
    assert len(set(ids)) == len(ids) >= 30


@pytest.fixture(scope="module")
def namespaces(node_api: Api) -> Iterator[None]:
    """A namespace for each workload, and what a cluster with a device plugin has."""
    runtime = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "nvidia"}}
    node_api.create({**runtime, "handler": "runc"})
    names = [each.id for served in SERVED for each in workloads(served)]
    for name in names:
        node_api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    for name in names:
        node_api.wait_until("v1/ServiceAccount", "default", bool, namespace=name)
    yield
    for name in names:
        node_api.delete("v1/Namespace", name)
    node_api.delete("node.k8s.io/v1/RuntimeClass", "nvidia")


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Mapping[str, Sequence[Manifest]]]:
    """The objects of the workloads after their migration, which is made once."""
    made: dict[str, Mapping[str, Sequence[Manifest]]] = {}

    def of(served: str) -> Mapping[str, Sequence[Manifest]]:
        if served not in made:
            made[served] = migrated(served, tmp_path_factory.mktemp(served))
        return made[served]

    return of


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The images of all workloads."""
    path = tmp_path_factory.mktemp("images") / "workloads.tar"
    scripts = {name: LOOK if name in ENDING_IMAGES else WAIT.format(LOOK) for name in images()}
    example_images.write_scripts(path, scripts)
    return path


@pytest.fixture(scope="module", params=ORDERS, ids=" to ".join)
def order(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """What the node has first, and what then."""
    return request.param


@pytest.fixture(scope="module")
def fresh_node(
    order: tuple[str, ...],
    namespaces: None,
    device_classes: None,
    node_plane: ControlPlane,
    node_api: Api,
    binaries: Callable[[str], Path],
    archive: Path,
) -> Iterator[RealNode]:
    """A node for each order, with the labels of its GPUs that GPU feature discovery gives it."""
    [described] = [each for each in load_fleet("hgx-h100").to_manifests() if each["kind"] == "Node"]
    found = described["metadata"]["labels"].items()
    labels = {**NODE_LABELS, **{name: text for name, text in found if name.startswith("nvidia.com/")}}
    with RealNode(node_plane, name=NODE, binaries=binaries, more_images=[archive]) as node:
        node_api.patch("v1/Node", NODE, {"metadata": {"labels": labels}})
        yield node
        node_api.patch("v1/Node", NODE, {"metadata": {"labels": dict.fromkeys(labels)}})


@pytest.mark.parametrize("served", SERVED)
def test_containers_see_as_many_devices_before_and_after(
    served: str,
    order: tuple[str, ...],
    fresh_node: RealNode,
    node_api: Api,
    changed: Callable[[str], Mapping[str, Sequence[Manifest]]],
    tmp_path: Path,
):
    chosen = workloads(served)
    expected = {each.id: each.expected for each in chosen}
    for step in order:
        if step == "claims":
            with served_by_claims(fresh_node, SERVED[served].fleet, tmp_path / "plugin.log"):
                seen = run(node_api, chosen, changed(served), SERVED[served])
                assert settled(node_api, fresh_node) == frozenset()
            assert by_pod(seen, lambda one: one.named) == expected
            assert not any(one.files for one in seen)
        else:
            objects = {each.id: each.objects for each in chosen}
            with DevicePlugin(fresh_node, node_api, SERVED[served].resources):
                seen = run(node_api, chosen, objects, SERVED[served])
            assert by_pod(seen, lambda one: one.files) == expected
            assert not any(one.named for one in seen)


@contextlib.contextmanager
def served_by_claims(node: RealNode, fleet: str, log: Path) -> Iterator[None]:
    process = PluginProcess(node, log, fleet=fleet)
    with contextlib.closing(process):
        process.start()
        yield
        process.stop()


def run(
    api: Api, chosen: Sequence[Workload], objects: Mapping[str, Sequence[Manifest]], served: Served
) -> list[Seen]:
    """What all containers of all workloads saw, batch by batch; no device is in more of them at once than share it."""
    seen: list[Seen] = []
    for batch in batches(chosen, served.room):
        with running(api, batch, objects) as found:
            seen += found
        at_once = Counter(device for one in found if one.lasts for device in one.files | one.named)
        assert not [device for device, count in at_once.items() if count > (served.shared or 1)]
    wait_gone(api, chosen)
    return seen


def by_pod(seen: Sequence[Seen], devices: Callable[[Seen], frozenset[str]]) -> dict[str, Pods]:
    """By workload: for each pod its containers with the number of devices that each saw."""
    pods: dict[tuple[str, str], list[tuple[str, int]]] = {}
    for one in seen:
        pods.setdefault((one.workload, one.pod), []).append((one.container, len(devices(one))))
    found: dict[str, list[tuple[tuple[str, int], ...]]] = {}
    for (workload, _), containers in pods.items():
        found.setdefault(workload, []).append(tuple(sorted(containers)))
    return found
