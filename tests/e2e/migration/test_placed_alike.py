"""Pods before and after a migration, on the real scheduler: the same kinds of machines take them.

Each kind of machine is there twice: with a device plugin, as the node's allocatable says, and with a DRA driver, as its slices say.
A pod asks for one kind at a time, so that the scheduler says of each whether it takes the pod.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from dra_infra.catalog import load_fleet
from dra_infra.migration.device_plugin import read_plugin_config
from dra_infra.migration.estate import migrate_objects
from dra_infra.migration.needs import Settings
from tests.support.migration.device_plugin_cases import Case, case
from tools.cluster import Api, ControlPlane, NodeStandIn, create_fleet

pytestmark = pytest.mark.e2e

POD = "v1/Pod"
TEMPLATE = "resource.k8s.io/v1/ResourceClaimTemplate"
KINDS = ("hgx-h100", "a100-80gb", "t4")
KIND, SIDE = "example.com/kind", "example.com/side"
SHARING, POOL = "g4dn.xlarge, g4dn.xlarge shares=2, a2-highgpu-1g mig=1g.5gb*2 shares=2", "example.com/pool"
CASES = (
    "whole-gpu",
    "eight-gpus",
    "product-label",
    "memory-label",
    "compute-labels",
    "family-terms",
    "count-label",
    "two-containers",
)


def the_nodes() -> list[dict[str, Any]]:
    """Every kind of machine on both sides, with the labels of GPU feature discovery on both."""
    made: list[dict[str, Any]] = []
    for kind in KINDS:
        fleet = load_fleet(f"{kind} x 1")
        gpus = str(len(fleet.slices[0].spec.devices or ()))
        for each in fleet.to_manifests():
            if each["kind"] != "Node":
                made += [each] if each not in made else []
                continue
            driver = copy.deepcopy(each)
            driver["metadata"]["labels"] |= {KIND: kind, SIDE: "driver", "zone": "a"}
            plugin = copy.deepcopy(driver)
            plugin["metadata"]["name"] = f"plugin-{kind}"
            plugin["metadata"]["labels"] |= {SIDE: "plugin", "kubernetes.io/hostname": f"plugin-{kind}"}
            for part in ("capacity", "allocatable"):
                plugin["status"].setdefault(part, {})["nvidia.com/gpu"] = gpus
            made += [driver, plugin]
    for each in load_fleet(SHARING, driver="0.5").to_manifests():
        if each["kind"] == "Node":
            each["metadata"]["labels"][POOL] = each["metadata"]["name"].rpartition("-")[0]
        made += [each] if each not in made else []
    return made


@pytest.fixture(scope="module")
def api(binaries: Callable[[str], Path]) -> Iterator[Api]:
    with ControlPlane(binaries=binaries) as plane, NodeStandIn(plane.connection), plane.api() as api:
        create_fleet(api, the_nodes())
        api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ml"}})
        api.wait_until("v1/ServiceAccount", "default", bool, namespace="ml")
        yield api


def pod_of(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The pod that an object makes."""
    spec = manifest["spec"] if manifest["kind"] == "Pod" else manifest["spec"]["template"]["spec"]
    metadata = {"namespace": "ml"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": copy.deepcopy(spec)}


def is_told(pods: list[dict[str, Any]]) -> bool:
    return all(
        pod["spec"].get("nodeName")
        or any(each["type"] == "PodScheduled" for each in pod["status"].get("conditions", []))
        for pod in pods
    )


def kinds_that_take(api: Api, pod: Mapping[str, Any], side: str) -> set[str]:
    """The kinds of machines of one side that take a pod."""
    taken: set[str] = set()
    for kind in KINDS:
        one = copy.deepcopy(dict(pod))
        one["metadata"]["name"] = name = f"{side}-{kind}"
        one["spec"]["nodeSelector"] = {**one["spec"].get("nodeSelector", {}), KIND: kind, SIDE: side}
        api.create(one)
        (seen,) = api.wait_for(POD, is_told, namespace="ml")
        if seen["spec"].get("nodeName"):
            taken.add(kind)
        api.delete(POD, name, namespace="ml")
        api.wait_for(POD, lambda pods: not pods, namespace="ml")
    return taken


@pytest.mark.parametrize("row", CASES)
def test_the_kinds_of_machines_that_took_a_pod_take_it_after_its_migration(api: Api, row: str):
    found: Case = case(row)
    (was,) = found.input
    (done,) = found.migrate()
    assert done.manifest is not None
    before = kinds_that_take(api, pod_of(was), "plugin")
    for each in done.added:
        api.create(dict(each))
    after = kinds_that_take(api, pod_of(done.manifest), "driver")
    for each in done.added:
        api.delete(TEMPLATE, each["metadata"]["name"], namespace="ml")
    assert after == before != set()


def places_of(api: Api, pods: list[dict[str, Any]]) -> list[str]:
    """The names of the nodes that take pods of all these, with an empty one for each that waits."""
    for number, each in enumerate(pods):
        api.create({**each, "metadata": {"namespace": "ml", "name": f"pod-{number}"}})
    seen = api.wait_for(POD, lambda found: len(found) == len(pods) and is_told(found), namespace="ml")
    for number in range(len(pods)):
        api.delete(POD, f"pod-{number}", namespace="ml")
    api.wait_for(POD, lambda found: not found, namespace="ml")
    return sorted(str(each["spec"].get("nodeName") or "") for each in seen)


def test_a_whole_gpu_beside_shares_is_shared_with_nobody(api: Api):
    slicing = {"renameByDefault": True, "resources": [{"name": "nvidia.com/gpu", "replicas": 2}]}
    plugin = read_plugin_config({"version": "v1", "sharing": {"timeSlicing": slicing}}, file="plugin.yaml")
    pods: dict[str, dict[str, Any]] = {}
    for name in ("nvidia.com/gpu", "nvidia.com/gpu.shared"):
        container = {"name": "main", "image": "registry.example/a:1", "resources": {"limits": {name: 1}}}
        spec = {"nodeSelector": {POOL: "g4dn.xlarge"}, "containers": [container]}
        about = {"namespace": "ml", "name": name.rpartition(".")[2].replace("/", "-")}
        was = {"apiVersion": "v1", "kind": "Pod", "metadata": about, "spec": spec}
        [done] = migrate_objects([was], Settings(plugin=plugin))
        assert done.manifest is not None
        [template] = done.added
        api.create(dict(template))
        pods[name] = pod_of(done.manifest)
    whole, share = pods["nvidia.com/gpu"], pods["nvidia.com/gpu.shared"]
    assert places_of(api, [whole, whole]) == ["", "g4dn.xlarge-0"]
    assert places_of(api, [share, share, share]) == ["", "g4dn.xlarge-1", "g4dn.xlarge-1"]


def test_claims_share_no_mig_device_whose_driver_shares_devices(api: Api):
    request = {"name": "mig", "exactly": {"deviceClassName": "mig.nvidia.com"}}
    spec = {"spec": {"devices": {"requests": [request]}}}
    about = {"name": "mig", "namespace": "ml"}
    api.create({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": about, "spec": spec})  # fmt: skip
    claims = {"resourceClaims": [{"name": "mig", "resourceClaimTemplateName": "mig"}]}
    container = {"name": "main", "image": "registry.example/a:1", "resources": {"claims": [{"name": "mig"}]}}
    chosen = {"nodeSelector": {POOL: "a2-highgpu-1g"}, "containers": [container]}
    pod = {"apiVersion": "v1", "kind": "Pod", "spec": {**chosen, **claims}}
    assert places_of(api, [pod, pod, pod]) == ["", "a2-highgpu-1g-0", "a2-highgpu-1g-0"]
