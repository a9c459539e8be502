"""`dra-infra drain` against the real eviction controller, scheduler and API server: who goes, who stays, who comes back."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from dra_infra.catalog import load_fleet
from tests.e2e.cluster.conftest import FLEET, GPUS, Run, namespace, rule
from tools.cluster import Api, Connection, ControlPlane, NodeStandIn, create_fleet
from tools.cluster.api_server import control_plane

pytestmark = pytest.mark.e2e

SPACE = "drained"
POD, CLAIM, RULE = "v1/Pod", "resource.k8s.io/v1/ResourceClaim", "resource.k8s.io/v1/DeviceTaintRule"
EXISTS = {"operator": "Exists"}
TOLERATIONS: dict[str, list[dict[str, Any]]] = {
    "plain": [],
    "tolerant": [{**EXISTS, "effect": "NoExecute"}],
    "other": [{**EXISTS, "effect": "NoSchedule"}],
    "shortly": [{**EXISTS, "effect": "NoExecute", "tolerationSeconds": 1}],
    "empty": [EXISTS],
}
"""Pods by name, with what their claims tolerate."""


def a_template(name: str, tolerations: list[dict[str, Any]]) -> dict[str, Any]:
    exactly = {"deviceClassName": GPUS, "tolerations": tolerations}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name, "namespace": SPACE},
        "spec": {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}},
    }


def a_pod(name: str, node: str, *, template: str = "") -> dict[str, Any]:
    container: dict[str, Any] = {"name": "main", "image": "registry.invalid/main:1"}
    spec: dict[str, Any] = {"nodeSelector": {"kubernetes.io/hostname": node}, "containers": [container]}
    if template:
        container["resources"] = {"claims": [{"name": "gpu"}]}
        spec["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": template}]
    else:
        container["resources"] = {"limits": {f"deviceclass.resource.kubernetes.io/{GPUS}": "1"}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": SPACE, "labels": {"app": name}},
        "spec": spec,
    }


def is_running(pod: dict[str, Any]) -> bool:
    return bool(pod["status"].get("phase") == "Running")


@pytest.fixture(scope="module")
def plane(binaries: Callable[[str], Path]) -> Iterator[ControlPlane]:
    """A control plane of its own, for devices of it are tainted."""
    with ControlPlane(binaries=binaries) as plane, NodeStandIn(plane.connection), plane.api() as api:
        create_fleet(api, load_fleet(FLEET).to_manifests())
        api.create(namespace(SPACE))
        api.wait_until("v1/ServiceAccount", "default", bool, namespace=SPACE)
        for name, tolerations in TOLERATIONS.items():
            api.create(a_template(name, tolerations))
        yield plane


@pytest.fixture(scope="module")
def api(plane: ControlPlane) -> Iterator[Api]:
    with plane.api() as api:
        yield api


@pytest.fixture
def nodes(api: Api) -> list[str]:
    return sorted(each["metadata"]["name"] for each in api.list("v1/Node"))


def on_call(api: Api, plane: ControlPlane, folder: Path, *verbs: str) -> Path:
    """A kubeconfig of who may list what a drain looks at, and do *verbs* to rules."""
    name = f"on-call-{len(verbs)}"
    group = "rbac.authorization.k8s.io"
    subject = {"kind": "ServiceAccount", "name": name, "namespace": "default"}
    rules = [
        rule([""], ["pods"]),
        rule(["resource.k8s.io"], ["resourceslices", "resourceclaims"]),
        rule(["resource.k8s.io"], ["devicetaintrules"], "list", *verbs),
    ]
    role = {"apiGroup": group, "kind": "ClusterRole", "name": name}
    for each in (
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": "default"}},
        {"apiVersion": f"{group}/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules},
        {
            "apiVersion": f"{group}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": name},
            "roleRef": role,
            "subjects": [subject],
        },
    ):
        api.create(each)
    token = api.request(
        "POST",
        f"/api/v1/namespaces/default/serviceaccounts/{name}/token",
        json={"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}},
    )["status"]["token"]
    file = folder / "config"
    file.write_text(Connection(url=plane.connection.url, token=token, ca=plane.connection.ca).kubeconfig())
    return file


def test_a_node_is_drained_of_those_that_the_controller_evicts_and_given_back(
    api: Api, plane: ControlPlane, nodes: list[str], dra_infra: Run, tmp_path: Path
) -> None:
    node = nodes[0]
    for name in TOLERATIONS:
        api.create(a_pod(name, node, template=name))
    api.create(a_pod("bridge", node))
    for name in (*TOLERATIONS, "bridge"):
        api.wait_until(POD, name, is_running, namespace=SPACE)
    reads = on_call(api, plane, tmp_path)

    shown = dra_infra("drain", node, "--kubeconfig", reads, "--json")
    assert shown.code == 0, shown.err
    found = {each["pod"]: each for each in json.loads(shown.out)["evictions"]}
    assert {name for name, each in found.items() if not each["stays"]} == {
        "plain",
        "other",
        "shortly",
        "empty",
    }
    assert [name for name, each in found.items() if each["stays"]] == ["bridge"]
    assert [name for name, each in found.items() if each["comesBack"]] == ["empty", "shortly"]
    assert found["shortly"]["afterSeconds"] == 1
    assert api.list(RULE) == []

    refused = dra_infra("drain", node, "--kubeconfig", reads, "--yes")
    assert refused.code == 2
    assert "[cluster-forbidden]" in refused.err

    # With the same number of pods, or the command would have ended with 1 before anything was evicted.
    writes = tmp_path / "writes"
    writes.mkdir()
    may = on_call(api, plane, writes, "get", "create", "patch", "delete")
    done = dra_infra("drain", node, "--kubeconfig", may, "--yes", "--reason", "INC-1", timeout=180)
    assert done.code == 0, done.err
    assert "4 pods would be evicted in 1 namespace" in done.out
    assert "drained: 4 pods were evicted, and 1 stays by an extended resource;" in done.out
    assert {each["metadata"]["name"] for each in api.list(POD, namespace=SPACE)} == {"tolerant", "bridge"}
    (made,) = api.list(RULE)
    assert made["spec"]["taint"]["effect"] == "NoExecute"
    assert made["metadata"]["annotations"]["dra-infra/reason"] == "INC-1"

    # A second run finds nothing to do, and touches no rule that evicts already.
    again = dra_infra("drain", node, "--kubeconfig", may, "--yes", timeout=180)
    assert again.code == 0, again.err
    assert api.list(RULE)[0]["metadata"]["uid"] == made["metadata"]["uid"]

    back = dra_infra("drain", node, "--kubeconfig", may, "--undo")
    assert back.code == 0, back.err
    assert api.list(RULE) == []
    for name in ("tolerant", "bridge"):
        api.delete(POD, name, namespace=SPACE)


@contextmanager
def older(
    minor: str, gates: dict[str, bool], binaries: Callable[[str], Path]
) -> Iterator[tuple[ControlPlane, Api, str]]:
    """Servers of an older minor with a node, and on it two pods, of which one tolerates what a drain does."""
    with (
        control_plane(minor, binaries=binaries, feature_gates=gates) as plane,
        NodeStandIn(plane.connection),
        plane.api() as api,
    ):
        create_fleet(api, load_fleet("hgx-h100").to_manifests())
        api.create(namespace(SPACE))
        api.wait_until("v1/ServiceAccount", "default", bool, namespace=SPACE)
        (node,) = (each["metadata"]["name"] for each in api.list("v1/Node"))
        for name in ("plain", "tolerant"):
            api.create(a_template(name, TOLERATIONS[name]))
            api.create(a_pod(name, node, template=name))
        for name in ("plain", "tolerant"):
            api.wait_until(POD, name, is_running, namespace=SPACE)
        yield plane, api, node


@pytest.mark.parametrize(("minor", "version"), [("1.35", "v1alpha3"), ("1.36", "v1beta2")])
def test_a_node_of_an_older_minor_is_drained(
    minor: str, version: str, binaries: Callable[[str], Path], dra_infra: Run
) -> None:
    gates = {"DRADeviceTaints": True, "DRADeviceTaintRules": True}
    of_minor = f"resource.k8s.io/{version}/DeviceTaintRule"
    with older(minor, gates, binaries) as (plane, api, node):
        done = dra_infra("drain", node, "--kubeconfig", plane.kubeconfig, "--yes", timeout=180)
        assert done.code == 0, done.out + done.err
        assert [each["metadata"]["name"] for each in api.list(POD, namespace=SPACE)] == ["tolerant"]
        assert [each["spec"]["taint"]["effect"] for each in api.list(of_minor)] == ["NoExecute"]
        assert dra_infra("drain", node, "--kubeconfig", plane.kubeconfig, "--undo").code == 0
        assert api.list(of_minor) == []


def test_1_34_has_no_rule_without_an_effect_so_nothing_is_written(
    binaries: Callable[[str], Path], dra_infra: Run
) -> None:
    with older("1.34", {"DRADeviceTaints": True}, binaries) as (plane, api, node):
        shown = dra_infra("drain", node, "--kubeconfig", plane.kubeconfig, "--json")
        done = dra_infra("drain", node, "--kubeconfig", plane.kubeconfig, "--yes")
        assert done.code == 2
        assert "[drain-refused]" in done.err
        assert "1.35" in done.err
        assert api.list("resource.k8s.io/v1alpha3/DeviceTaintRule") == []
        # Its scheduler does not write tolerations into allocations, where the eviction controller looks for them.
        assert {each["pod"] for each in json.loads(shown.out)["evictions"]} == {"plain", "tolerant"}
        selector = {"driver": GPUS, "pool": node}
        taint = {"key": "example.com/mine", "effect": "NoExecute"}
        api.create(
            {
                "apiVersion": "resource.k8s.io/v1alpha3",
                "kind": "DeviceTaintRule",
                "metadata": {"name": "mine"},
                "spec": {"deviceSelector": selector, "taint": taint},
            }
        )
        api.wait_for(POD, lambda pods: not pods, namespace=SPACE)


def test_a_toleration_with_an_empty_effect_is_a_loop(
    api: Api, plane: ControlPlane, nodes: list[str], dra_infra: Run
) -> None:
    node = nodes[1]
    done = dra_infra("drain", node, "--kubeconfig", plane.kubeconfig, "--yes", timeout=180)
    assert done.code == 0, done.err
    labels = {"app": "loop"}
    pod = a_pod("loop", node, template="empty")["spec"]
    api.create(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "loop", "namespace": SPACE},
            "spec": {
                "replicas": 1,
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": pod},
            },
        }
    )
    seen: set[str] = set()

    def placed_thrice(pods: list[dict[str, Any]]) -> bool:
        seen.update(
            each["metadata"]["uid"]
            for each in pods
            if each["metadata"]["labels"].get("app") == "loop" and each["spec"].get("nodeName") == node
        )
        return len(seen) >= 3

    api.wait_for(POD, placed_thrice, namespace=SPACE)
    api.delete("apps/v1/Deployment", "loop", namespace=SPACE)
    assert dra_infra("drain", node, "--kubeconfig", plane.kubeconfig, "--undo").code == 0


def test_a_device_is_found_by_its_uuid_and_a_rule_of_others_is_not_touched(
    api: Api, plane: ControlPlane, dra_infra: Run
) -> None:
    slices = api.list("resource.k8s.io/v1/ResourceSlice")
    spec = next(each["spec"] for each in slices if each["spec"]["driver"] == GPUS)
    device = spec["devices"][0]
    uuid = device["attributes"]["uuid"]["string"]
    shown = json.loads(dra_infra("drain", uuid, "--kubeconfig", plane.kubeconfig, "--json").out)
    pool = spec["pool"]["name"]
    assert [(each["pool"], each["device"]) for each in shown["devices"]] == [(pool, device["name"])]
    name = f"drain-{GPUS}-{pool}-{device['name']}"
    api.create(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceTaintRule",
            "metadata": {"name": name},
            "spec": {"taint": {"key": "example.com/mine", "effect": "NoSchedule"}},
        }
    )
    said = dra_infra("drain", uuid, "--kubeconfig", plane.kubeconfig, "--yes")
    assert said.code == 2
    assert "[drain-name-taken]" in said.err
    assert dra_infra("drain", uuid, "--kubeconfig", plane.kubeconfig, "--undo").code == 0
    assert [each["metadata"]["name"] for each in api.list(RULE)] == [name]
    api.delete(RULE, name)


def test_a_target_that_is_not_there_is_told(plane: ControlPlane, nodes: list[str], dra_infra: Run) -> None:
    said = dra_infra("drain", f"{nodes[0]}/gpu-00", "--kubeconfig", plane.kubeconfig)
    assert said.code == 2
    assert "[subject-not-known]" in said.err
    assert "did you mean" in said.err
