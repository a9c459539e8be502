"""The servers of each minor expose what rules and the dashboard name, and the dashboard's queries return series of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dra_infra.kubernetes.api import SUPPORTED_MINORS
from dra_infra.target import ClusterTarget, Release
from tests.e2e.monitoring.conftest import Tool
from tests.support.monitoring.dashboards import ask, queries_of
from tests.support.monitoring.scraping import Sample, missing, named_in_catalogue, read
from tools.cluster import Api, ControlPlane, NodeStandIn, create_fleet, node
from tools.cluster.api import PATIENCE
from tools.cluster.api_server import control_plane

pytestmark = pytest.mark.e2e

CLAIM = "resource.k8s.io/v1/ResourceClaim"
DRIVER = "gpu.acme.example"
SERVERS = ("kube-controller-manager", "kube-scheduler")
READY = "acme.example/ready"


@pytest.fixture(scope="module", params=SUPPORTED_MINORS)
def minor(request: pytest.FixtureRequest) -> str:
    """One supported minor after the other."""
    return str(request.param)


@pytest.fixture(scope="module")
def release(minor: str) -> Release:
    return ClusterTarget(kubernetes=minor).releases[0]


@pytest.fixture(scope="module")
def samples(minor: str, release: Release, binaries: Callable[[str], Path]) -> Iterator[list[Sample]]:
    """What the servers expose when one pod has got a device, one waits, and one had a device made ready for it."""
    with control_plane(minor, binaries=binaries) as plane, NodeStandIn(plane.connection), plane.api() as api:
        create_fleet(api, [node("n1"), device_class(), *slices(release)])
        for name, count, kind in (("one", 1, "plain"), ("many", 9, "plain"), ("bound", 1, "bound")):
            if kind == "bound" and "DRADeviceBindingConditions" not in release.gates:
                continue
            api.create(template(name, count, kind))
            api.create(pod(name))
        api.wait_until(
            "v1/Pod", "one", lambda each: each["status"].get("phase") == "Running", namespace="default"
        )
        if "DRADeviceBindingConditions" in release.gates:
            make_ready(api)
        yield scrape(plane, release)


def scrape(plane: ControlPlane, release: Release) -> list[Sample]:
    """The samples of both servers, once nothing is missing any more, or PATIENCE is over."""
    deadline = time.monotonic() + PATIENCE
    while True:
        found = [each for server in SERVERS for each in read(server, plane.metrics(server))]
        if not missing(found, release, *SERVERS) or time.monotonic() > deadline:
            return found


def device_class() -> dict[str, Any]:
    selectors = [{"cel": {"expression": f"device.driver == '{DRIVER}'"}}]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "acme"},
        "spec": {"selectors": selectors},
    }


def slices(release: Release) -> Iterator[dict[str, Any]]:
    devices: list[dict[str, Any]] = [{"name": "gpu-0", "attributes": {"kind": {"string": "plain"}}}]
    if "DRADeviceBindingConditions" in release.gates:
        conditions = {
            "bindsToNode": True,
            "bindingConditions": [READY],
            "bindingFailureConditions": ["acme.example/broken"],
        }
        devices.append({"name": "gpu-1", "attributes": {"kind": {"string": "bound"}}, **conditions})
    pool = {"name": "n1", "generation": 1, "resourceSliceCount": 1}
    yield {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": "n1"},
        "spec": {"driver": DRIVER, "nodeName": "n1", "pool": pool, "devices": devices},
    }


def template(name: str, count: int, kind: str) -> dict[str, Any]:
    select = {"cel": {"expression": f"device.attributes['{DRIVER}'].kind == '{kind}'"}}
    exactly = {"deviceClassName": "acme", "count": count, "selectors": [select]}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}},
    }


def pod(name: str) -> dict[str, Any]:
    container = {
        "name": "main",
        "image": "registry.invalid/main:1",
        "resources": {"claims": [{"name": "gpu"}]},
    }
    claims = [{"name": "gpu", "resourceClaimTemplateName": name}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [container], "resourceClaims": claims},
    }


def make_ready(api: Api) -> None:
    """Say what a driver says of its device, for which the scheduler waits."""

    def results(claim: dict[str, Any]) -> list[dict[str, Any]]:
        allocation = claim.get("status", {}).get("allocation", {})
        return [
            each for each in allocation.get("devices", {}).get("results", []) if each["device"] == "gpu-1"
        ]

    claims = api.wait_for(CLAIM, lambda found: any(map(results, found)), namespace="default")
    [claim] = filter(results, claims)
    condition = {
        "type": READY,
        "status": "True",
        "reason": "Ready",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    device = {"driver": DRIVER, "pool": "n1", "device": "gpu-1", "conditions": [condition]}
    status = {"status": {"devices": [device]}}
    api.patch(CLAIM, claim["metadata"]["name"], status, namespace="default", subresource="status")


def test_every_metric_of_the_servers_is_exposed_with_its_labels(
    samples: list[Sample], release: Release
) -> None:
    assert missing(samples, release, *SERVERS) == {}


def test_a_metric_that_is_called_otherwise_is_missed(samples: list[Sample], release: Release) -> None:
    other = replace(release, minor="1.34" if release.minor == "1.37" else "1.37")
    assert {"claims", "claims_made"} <= missing(samples, other, *SERVERS).keys()


def test_every_query_of_the_dashboard_returns_series(
    samples: list[Sample], minor: str, release: Release, promtool: Tool, tmp_path: Path
) -> None:
    queries = queries_of(minor, *SERVERS)
    assert len(queries) >= 4
    code, said = ask(promtool, tmp_path, queries, named_in_catalogue(samples, release))
    assert code == 0, said
    # What nobody exposes returns none.
    code, said = ask(promtool, tmp_path, ["sum(nobody_exposes_this)"], named_in_catalogue(samples, release))
    assert code != 0
