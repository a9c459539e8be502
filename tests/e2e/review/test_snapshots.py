"""A snapshot of a real cluster: what its own objects say runs, and where the real scheduler puts what we say fits."""

from __future__ import annotations

import json
import zlib
from typing import Any

import pytest

from dra_infra.answers.reviewing import compare
from dra_infra.catalog import load_snapshot
from dra_infra.catalog.snapshots import Snapshot
from dra_infra.placement.running import Running
from dra_infra.program_objects import Program, ProgramObject
from dra_infra.review.changes import compare_programs
from dra_infra.review.comparison import Comparison
from dra_infra.review.reviews import find_dangers
from tests.support.lab import DRIVER
from tools.cluster import Api

pytestmark = pytest.mark.e2e

CLAIM = "resource.k8s.io/v1/ResourceClaim"
DEPLOYMENT = "apps/v1/Deployment"
KINDS = (
    "v1/Node",
    "v1/Pod",
    "v1/Secret",
    "apps/v1/ReplicaSet",
    DEPLOYMENT,
    "resource.k8s.io/v1/ResourceSlice",
    "resource.k8s.io/v1/DeviceClass",
    CLAIM,
)


def read(api: Api, *, without: str = "") -> Snapshot:
    """What `kubectl get -A -o json` prints: a list of each kind."""
    lists = [
        {"apiVersion": "v1", "kind": "List", "items": api.list(kind)} for kind in KINDS if kind != without
    ]
    return load_snapshot(json.dumps(each) for each in lists)


def a_program(namespace: str, *, count: int = 2, replicas: int = 2, name: str = "serve") -> Program:
    request = {"name": "gpu", "exactly": {"deviceClassName": DRIVER, "count": count}}
    labels = {"app": name}
    pods = {
        "containers": [
            {"name": "main", "image": "registry.invalid/a:1", "resources": {"claims": [{"name": "gpu"}]}}
        ],
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": name}],
    }
    manifests: list[dict[str, Any]] = [
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaimTemplate",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"spec": {"devices": {"requests": [request]}}},
        },
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": pods},
            },
        },
    ]
    objects = tuple(
        ProgramObject(
            urn=f"urn:pulumi:dev::p::kubernetes:{each['apiVersion']}:{each['kind']}::{name}", manifest=each
        )
        for each in manifests
    )
    return Program(project="p", stack="dev", objects=objects)


def run(api: Api, program: Program) -> None:
    for item in program.objects:
        api.create(item.manifest)
    owner = program.objects[-1].ref
    api.wait_until(
        DEPLOYMENT,
        owner.name,
        lambda each: each["status"].get("readyReplicas") == each["spec"]["replicas"],
        namespace=owner.namespace,
    )


@pytest.fixture
def namespace(cluster_api: Api, request: pytest.FixtureRequest) -> str:
    name = f"snapshot-{zlib.crc32(request.node.name.encode())}"
    cluster_api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    cluster_api.wait_until("v1/ServiceAccount", "default", bool, namespace=name)
    return name


def held(api: Api, namespace: str) -> set[tuple[str, str, str]]:
    return {
        (each["driver"], each["pool"], each["device"])
        for claim in api.list(CLAIM, namespace=namespace)
        for each in claim["status"]["allocation"]["devices"]["results"]
    }


@pytest.mark.parametrize("without", ["", "apps/v1/ReplicaSet"])
def test_what_a_deployment_holds_is_taken_from_everybody_but_itself(
    cluster_api: Api, namespace: str, without: str
) -> None:
    program = a_program(namespace)
    run(cluster_api, program)
    devices = held(cluster_api, namespace)
    assert len(devices) == 4
    snapshot = read(cluster_api, without=without)
    nobody = Program(project="p", stack="dev")
    assert devices <= Running.of(snapshot, nobody).taken.devices
    assert not devices & Running.of(snapshot, program).taken.devices


def test_the_real_scheduler_gives_the_devices_that_are_said_to_be_free(
    cluster_api: Api, namespace: str
) -> None:
    run(cluster_api, a_program(namespace, count=3, replicas=1))
    later = a_program(namespace, count=2, replicas=2, name="later")
    snapshot = read(cluster_api)
    nobody = Program(project="p", stack="dev")
    placement = compare(nobody, later, base_label="main", fleet=snapshot.fleet, snapshot=snapshot).after
    assert placement is not None
    (workload,) = placement.workloads
    run(cluster_api, later)
    expected = {(each.driver, each.pool, each.device) for pod in workload.pods for each in pod.devices}
    before = {
        (each["driver"], each["pool"], each["device"])
        for claim in snapshot.objects
        if claim["kind"] == "ResourceClaim"
        for each in claim.get("status", {}).get("allocation", {}).get("devices", {}).get("results", [])
    }
    assert expected == held(cluster_api, namespace) - before


def test_pods_that_run_are_counted_for_the_deployment_that_goes(cluster_api: Api, namespace: str) -> None:
    program = a_program(namespace, count=1, replicas=3)
    run(cluster_api, program)
    head = Program(project="p", stack="dev", objects=program.objects[:1])
    running = Running.of(read(cluster_api), program, head)
    changes = compare_programs(program, head)
    found = find_dangers(Comparison.of(changes, program, head, running=running))
    assert [str(danger) for danger in found] == [
        f"Deployment {namespace}/serve is deleted, its 3 running pods are killed"
    ]
