"""`dra-infra doctor` of real API servers: healthy ones, broken ones, and ones that may hardly be read."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dra_infra.catalog import load_fleet
from tests.e2e.cluster.conftest import CLAIM, GPUS, Grant, Run, rule
from tools.cluster import Api, ControlPlane, create_fleet
from tools.cluster.api_server import api_server

pytestmark = pytest.mark.e2e

Fleet = list[dict[str, Any]]


@pytest.fixture(scope="module")
def broken(binaries: Callable[[str], Path]) -> Iterator[ControlPlane]:
    """An API server of 1.34 with what goes wrong in clusters, as far as the server itself takes it."""
    with api_server("1.34", binaries=binaries) as plane, plane.api() as api:
        fleet = [dict(each) for each in load_fleet("hgx-h100 x 3", kubernetes="1.34").to_manifests()]
        break_fleet(fleet)
        create_fleet(api, fleet)
        break_claims(api)
        yield plane


def break_fleet(fleet: Fleet) -> None:
    nodes = [each for each in fleet if each["kind"] == "Node"]
    slices = [each for each in fleet if each["kind"] == "ResourceSlice" and each["spec"]["driver"] == GPUS]
    nodes[0]["status"] = {"allocatable": {"nvidia.com/gpu": "8"}, "capacity": {"nvidia.com/gpu": "8"}}
    incomplete = next(each for each in slices if each["spec"]["nodeName"] == nodes[1]["metadata"]["name"])
    incomplete["spec"] = {
        **incomplete["spec"],
        "pool": {**incomplete["spec"]["pool"], "resourceSliceCount": 5},
    }
    bare = nodes[2]["metadata"]["name"]
    fleet[:] = [
        each for each in fleet if each["kind"] != "ResourceSlice" or each["spec"].get("nodeName") != bare
    ]


def break_claims(api: Api) -> None:
    request = {"name": "gpu", "exactly": {"deviceClassName": GPUS}}
    api.create(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": "stuck", "namespace": "default"},
            "spec": {"devices": {"requests": [request]}},
        }
    )
    result = {"request": "gpu", "driver": GPUS, "pool": "gone", "device": "gpu-0"}
    held = {"resource": "pods", "name": "gone", "uid": "11111111-1111-1111-1111-111111111111"}
    api.patch(
        CLAIM,
        "stuck",
        {"status": {"allocation": {"devices": {"results": [result]}}, "reservedFor": [held]}},
        subresource="status",
    )


def report(dra_infra: Run, kubeconfig: Path, *more: str) -> tuple[int, dict[str, Any]]:
    said = dra_infra("doctor", "--kubeconfig", kubeconfig, "--json", *more)
    assert said.code in (0, 1), said.err
    return said.code, json.loads(said.out)


def test_a_healthy_cluster_has_no_findings_but_what_is_true_of_it(
    plane: ControlPlane, dra_infra: Run
) -> None:
    code, found = report(dra_infra, plane.kubeconfig)
    assert (code, found["problems"], found["notSeen"]) == (0, [], [])
    assert any(each.startswith("Kubernetes v1.37.") for each in found["facts"])
    # The administrator may read metrics, so the gates are the server's own.
    assert any(each.startswith("gates of the API server that are off: DRA") for each in found["facts"])


def test_what_is_broken_is_found(broken: ControlPlane, dra_infra: Run) -> None:
    code, found = report(dra_infra, broken.kubeconfig)
    assert code == 1
    assert {each["code"] for each in found["problems"] if each["severity"] == "error"} == {
        "device-plugin-beside-dra",
        "pool-incomplete",
        "driver-not-on-node",
        "claim-reserved",
        "claim-device-gone",
    }
    assert all(each["hint"] and each["path"] and each["message"] for each in found["problems"])


def test_what_a_lister_sees_is_the_same_but_for_the_gates(
    plane: ControlPlane, lister: Path, dra_infra: Run
) -> None:
    code, found = report(dra_infra, lister)
    assert (code, found["problems"], found["notSeen"]) == (0, [], [])
    assert any(each.startswith("gates are not visible") for each in found["facts"])


def test_what_may_not_be_seen_is_not_missing(kubeconfig_of: Grant, dra_infra: Run) -> None:
    code, found = report(dra_infra, kubeconfig_of(rule([""], ["nodes"])))
    assert (code, found["problems"]) == (0, [])
    assert {each["code"] for each in found["notSeen"]} == {"cluster-forbidden"}


def test_a_user_without_rights_gets_no_diagnosis(kubeconfig_of: Grant, dra_infra: Run) -> None:
    said = dra_infra("doctor", "--kubeconfig", kubeconfig_of())
    assert said.code == 2
    assert "[cluster-forbidden]" in said.err


def test_a_driver_that_is_not_there_is_missing(plane: ControlPlane, dra_infra: Run) -> None:
    code, found = report(dra_infra, plane.kubeconfig, "--driver", "nobody.example.com")
    assert code == 1
    assert [each["code"] for each in found["problems"]] == ["driver-missing"]


def test_a_cluster_without_the_api_is_told_once(binaries: Callable[[str], Path], dra_infra: Run) -> None:
    from tools.cluster import components

    chosen = (components.ETCD, components.APISERVER)
    with ControlPlane(components=chosen, binaries=binaries, serves_dra=False) as plane:
        code, found = report(dra_infra, plane.kubeconfig)
    assert code == 1
    assert [each["code"] for each in found["problems"]] == ["dra-not-served"]
    assert found["notSeen"] == []
