"""Definitions of workload kinds, and a control plane with the controllers of two of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.kinds.shapes import CLAIM_TEMPLATE, CLASS, NAMESPACE, RACK, RUNTIMES
from tests.support.charts import find_testdata
from tests.support.components import objects
from tests.support.scheduler.controllers import running_controllers
from tools import workload_crds
from tools.cluster import Api, ControlPlane, NodeStandIn, create_fleet, node
from tools.cluster.api_server import api_server
from tools.workload_crds import Manifest

RACKS = 12
DEVICES = 16

NOT_SERVED = ("nim-operator-main-f63f74d7", "argo-workflows-main-f016ad89")
"""Folders of the test data: no module of the NIM operator is served, and none of Argo after 3.7, which knows no claims."""


@pytest.fixture(scope="session")
def definitions() -> list[Manifest]:
    """All definitions, out of Go modules, or newer ones out of the test data where that is here."""
    found = [*workload_crds.all_definitions()]
    if folder := find_testdata(os.environ):
        newer = [each for name in NOT_SERVED for each in objects.definitions(folder / "crds" / name)]
        names = {each["metadata"]["name"] for each in newer}
        found = [each for each in found if each["metadata"]["name"] not in names] + newer
    return found


@pytest.fixture(scope="session")
def server(binaries: Callable[[str], Path]) -> Iterator[Api]:
    """An API server that nobody acts on."""
    with api_server("1.37", binaries=binaries) as plane, plane.api() as api:
        yield api


@pytest.fixture(scope="session")
def fleet() -> list[Manifest]:
    """A node in each of some racks, with devices of one class."""
    made: list[Manifest] = []
    for index in range(RACKS):
        name = f"node-{index}"
        pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
        devices = [{"name": f"gpu-{number}"} for number in range(DEVICES)]
        amounts = {"cpu": "64", "memory": "512Gi", "pods": "250"}
        status = {"capacity": amounts, "allocatable": amounts}
        made.append({**node(name, labels={RACK: f"rack-{index}"}), "status": status})
        made.append(
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceSlice",
                "metadata": {"name": name},
                "spec": {"driver": CLASS, "nodeName": name, "pool": pool, "devices": devices},
            }
        )
    selector = {"cel": {"expression": f"device.driver == '{CLASS}'"}}
    device_class = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": CLASS},
        "spec": {"selectors": [selector]},
    }
    return [*made, device_class]


@pytest.fixture(scope="session")
def workloads(
    binaries: Callable[[str], Path], fleet: list[Manifest], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Api]:
    """A cluster with the controllers of LeaderWorkerSet, JobSet and TrainJob, whose pods run until a test ends them."""
    with (
        ControlPlane(binaries=binaries) as plane,
        NodeStandIn(plane.connection, finish_jobs=False),
        plane.api() as api,
        running_controllers(plane, api, binaries, tmp_path_factory.mktemp("controllers")),
    ):
        create_fleet(api, fleet)
        api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        api.wait_until("v1/ServiceAccount", "default", bool, namespace=NAMESPACE)
        for each in (CLAIM_TEMPLATE, *RUNTIMES):
            api.create(each)
        yield api
