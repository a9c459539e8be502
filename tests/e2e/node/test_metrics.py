"""The kubelet and the node plugin expose what rules and the dashboard name, and the dashboard's queries return series of it."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from dra_infra.plugin.claims import ClaimReference
from dra_infra.target import ClusterTarget
from tests.e2e.monitoring.conftest import Tool, promtool
from tests.e2e.node.conftest import FLEET
from tests.support.monitoring.dashboards import ask, queries_of
from tests.support.monitoring.scraping import Sample, missing, named_in_catalogue, read
from tests.support.node.plugin_process import PluginProcess
from tests.support.node.workloads import Workloads
from tools.cluster import Api
from tools.cluster.api import PATIENCE
from tools.node import RealNode

__all__ = ["promtool"]
pytestmark = pytest.mark.e2e

KUBELET, PLUGIN = "kubelet", "dra-infra-plugin"
MINOR = "1.37"
RELEASE = ClusterTarget(kubernetes=MINOR).releases[0]
KUBELET_PORT = 10250


@pytest.fixture(scope="module")
def plugin(
    device_classes: None, real_node: RealNode, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[PluginProcess]:
    """The plugin, which serves its metrics at a free port."""
    log = tmp_path_factory.mktemp("plugin") / "plugin.log"
    options = ("--metrics-address", "127.0.0.1:0")
    process = PluginProcess(real_node, log, fleet=FLEET, options=options)
    with contextlib.closing(process):
        process.start()
        yield process


def kubelet_text(api: Api, node: str) -> str:
    addresses = api.get("v1/Node", node)["status"]["addresses"]
    [address] = [each["address"] for each in addresses if each["type"] == "InternalIP"]
    url = f"https://{address}:{KUBELET_PORT}/metrics"
    # It made its certificate itself, on this machine.
    return httpx.get(url, verify=False, trust_env=False).raise_for_status().text  # noqa: S501


def plugin_text(plugin: PluginProcess) -> str:
    [line] = [
        each for each in map(json.loads, plugin.log_of_this_life.splitlines()) if "metrics are" in str(each)
    ]
    return httpx.get(f"http://127.0.0.1:{line['port']}/metrics", trust_env=False).raise_for_status().text


@pytest.fixture
def samples(
    claims: Workloads, node_api: Api, real_node: RealNode, plugin: PluginProcess
) -> Callable[[], list[Sample]]:
    """What both expose once a pod runs with a device, and a claim that nobody knows was refused."""
    claims.claim("one")
    claims.pod_with_claim("pod", "one")
    claims.wait_running("pod")
    unknown = ClaimReference(namespace="default", name="unknown", uid="00000000-0000-4000-8000-000000000000")
    with plugin.called() as kubelet:
        assert kubelet.prepare(unknown)[unknown.uid].error

    def scrape() -> list[Sample]:
        return [
            *read(KUBELET, kubelet_text(node_api, real_node.name)),
            *read(PLUGIN, plugin_text(plugin)),
        ]

    return scrape


def test_every_metric_is_exposed_with_its_labels_and_queries_return_series(
    samples: Callable[[], list[Sample]], promtool: Tool, tmp_path: Path
) -> None:
    deadline = time.monotonic() + PATIENCE
    while (absent := missing(found := samples(), RELEASE, KUBELET, PLUGIN)) and time.monotonic() < deadline:
        continue
    assert absent == {}
    queries = queries_of(MINOR, KUBELET, PLUGIN)
    assert len(queries) >= 5
    code, said = ask(promtool, tmp_path, queries, named_in_catalogue(found, RELEASE))
    assert code == 0, said
    # Without the kubelet none of its metrics is there.
    alone = [each for each in found if each.labels["job"] == PLUGIN]
    assert {"node_operations", "driver_calls", "claims_in_use"} <= missing(alone, RELEASE, KUBELET).keys()
