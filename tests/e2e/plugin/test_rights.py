"""What the component's service account may do, asked of a real API server with the tokens of its pods."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import dra_infra as dra
from dra_infra.program.synth import synth_function
from tools.cluster import Api, ApiError, ControlPlane, create_fleet, node
from tools.cluster.api import PATIENCE

pytestmark = pytest.mark.e2e

DRIVER, NAMESPACE, NAME = "gpu.example.com", "dra-infra-plugin", "node-plugin"
SLICE, POD = "resource.k8s.io/v1/ResourceSlice", "v1/Pod"
OURS = ("node-a", "node-b")
RIGHTS = ("ClusterRole", "ValidatingAdmissionPolicy")


@pytest.fixture(scope="module")
def plane(binaries: Callable[[str], Path]) -> Iterator[ControlPlane]:
    with ControlPlane(binaries=binaries) as control_plane:
        yield control_plane


@pytest.fixture(scope="module")
def admin(plane: ControlPlane) -> Iterator[Api]:
    """The administrator of a cluster of two nodes, on which the component's objects are."""
    with plane.api() as api:
        create_fleet(api, [node(each) for each in OURS])
        objects = {each.manifest["kind"]: each.manifest for each in component()}
        for kind in ("Namespace", *(each for each in objects if each != "Namespace")):
            api.create(objects[kind])
        yield api


@pytest.fixture(scope="module")
def tokens(plane: ControlPlane, admin: Api) -> Iterator[Mapping[str, Api]]:
    """A client for each node, with a token as the kubelet puts it into the pod of that node."""
    with ExitStack() as closing:
        found: dict[str, Api] = {}
        for name in OURS:
            pods = admin.wait_for(
                POD, lambda pods, name=name: any(on(pod) == name for pod in pods), namespace=NAMESPACE
            )
            (pod,) = [each for each in pods if on(each) == name]
            bound = {"kind": "Pod", "apiVersion": "v1", **ids(pod)}
            found[name] = closing.enter_context(client(plane, admin, bound))
        # The policy is in force a moment after it was made, and the role's rights too.
        not_mine = a_slice("not-mine", "node-b")
        until(
            lambda: (
                "writes slices of that node alone"
                in refusal(lambda: found["node-a"].create(not_mine, dry_run=True))
            )
        )
        yield found


def component(**more: Any) -> list[Any]:
    return list(synth_function(lambda: dra.NodePlugin(NAME, back_end="sim", **more)).objects)


def on(pod: Mapping[str, Any]) -> str | None:
    return pod["spec"].get("nodeName")


def ids(item: Mapping[str, Any]) -> dict[str, Any]:
    return {key: item["metadata"][key] for key in ("name", "uid")}


def client(plane: ControlPlane, admin: Api, bound: Mapping[str, Any] | None, account: str = NAME) -> Api:
    path = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{account}/token"
    spec = {"boundObjectRef": dict(bound)} if bound else {}
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
    token = admin.request("POST", path, json=asked)["status"]["token"]
    return Api(replace(plane.connection, token=token))


def a_slice(name: str, node_name: str | None = "node-a", **spec: Any) -> dict[str, Any]:
    pool = {"name": node_name or "all", "generation": 1, "resourceSliceCount": 1}
    place = {"nodeName": node_name} if node_name else {}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": name},
        "spec": {"driver": DRIVER, "pool": pool, "devices": [{"name": "gpu-0"}], **place, **spec},
    }


def update(api: Api, manifest: Mapping[str, Any]) -> Any:
    path = f"/apis/resource.k8s.io/v1/resourceslices/{manifest['metadata']['name']}"
    return api.request("PUT", path, json=dict(manifest))


@contextmanager
def refused(text: str, status: int = 403) -> Iterator[None]:
    with pytest.raises(ApiError) as caught:
        yield
    assert caught.value.status == status
    assert text in str(caught.value)


def refusal(call: Callable[[], Any]) -> str:
    """Why a call was refused; empty where it was not."""
    try:
        call()
    except ApiError as error:
        return str(error)
    return ""


def until(holds: Callable[[], Any]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_slices_of_the_own_node_are_made_changed_and_deleted(tokens: Mapping[str, Api]):
    api = tokens["node-a"]
    made = api.create(a_slice("own"))
    changed = copy.deepcopy(made)
    changed["spec"]["devices"].append({"name": "gpu-1"})
    changed["spec"]["pool"]["generation"] = 2
    assert len(update(api, changed)["spec"]["devices"]) == 2
    api.delete(SLICE, "own")
    api.wait_gone(SLICE, "own")


@pytest.mark.parametrize(
    ("manifest", "said"),
    [
        (a_slice("bad", "node-b"), "the plugin of node node-a writes slices of that node alone"),
        (a_slice("bad", None, allNodes=True), "writes slices of that node alone"),
        (
            a_slice("bad", pool={"name": "node-b", "generation": 9, "resourceSliceCount": 1}),
            "the pool of a slice of node node-a has that name",
        ),
        (a_slice("bad", driver="gpu.nvidia.com"), "the driver of its slices is gpu.example.com"),
    ],
    ids=["of another node", "of all nodes", "in the pool of another node", "of another driver"],
)
def test_a_slice_that_is_not_of_the_own_node_is_refused(
    tokens: Mapping[str, Api], manifest: dict[str, Any], said: str
):
    with refused(said):
        tokens["node-a"].create(manifest)


def test_slices_of_another_node_are_neither_changed_nor_deleted(tokens: Mapping[str, Api]):
    made = tokens["node-b"].create(a_slice("theirs", "node-b"))
    made["spec"]["devices"] = []
    with refused("the plugin of node node-a writes slices of that node alone"):
        update(tokens["node-a"], made)
    with refused("the plugin of node node-a writes slices of that node alone"):
        tokens["node-a"].delete(SLICE, "theirs")
    tokens["node-b"].delete(SLICE, "theirs")


def test_slices_of_another_driver_on_the_own_node_are_left_alone(admin: Api, tokens: Mapping[str, Api]):
    admin.create(a_slice("of-nvidia", driver="gpu.nvidia.com"))
    with refused("the driver of its slices is gpu.example.com"):
        tokens["node-a"].delete(SLICE, "of-nvidia")
    admin.delete(SLICE, "of-nvidia")


def test_a_token_of_no_pod_writes_nothing(plane: ControlPlane, admin: Api, tokens: Mapping[str, Api]):
    assert tokens
    with client(plane, admin, None) as api, refused("this token is of no node"):
        api.create(a_slice("own"))


def test_whoever_is_not_the_plugin_is_not_asked_for_a_node(admin: Api, tokens: Mapping[str, Api]):
    assert tokens
    admin.create(a_slice("of-admin", "node-b"))
    admin.delete(SLICE, "of-admin")


def rules_of(api: Api) -> set[tuple[str, str, str, str]]:
    """Every single right, as group, resource, name and verb."""
    asked = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectRulesReview",
        "spec": {"namespace": NAMESPACE},
    }
    answer = api.request("POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", json=asked)
    return single(answer["status"]["resourceRules"])


def single(rules: list[dict[str, Any]]) -> set[tuple[str, str, str, str]]:
    return {
        (group, resource, name, verb)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for name in rule.get("resourceNames") or [""]
        for verb in rule["verbs"]
    }


def test_the_rights_are_those_of_the_component_and_no_others(
    plane: ControlPlane, admin: Api, tokens: Mapping[str, Api]
):
    admin.wait_until("v1/ServiceAccount", "default", bool, namespace=NAMESPACE)
    with client(plane, admin, None, "default") as anybody:
        of_all = rules_of(anybody)
    (role,) = [each.manifest for each in component() if each.manifest["kind"] == "ClusterRole"]
    assert rules_of(tokens["node-a"]) - of_all == single(role["rules"])


@pytest.mark.parametrize(
    "do",
    [
        lambda api: api.list("v1/Secret"),
        lambda api: api.list("v1/Node"),
        lambda api: api.list(POD, namespace=NAMESPACE),
        lambda api: api.delete("resource.k8s.io/v1/ResourceClaim", "any", namespace="default"),
        lambda api: api.request(
            "PATCH",
            "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/any/status",
            json={},
            headers={"Content-Type": "application/merge-patch+json"},
        ),
        lambda api: api.request("DELETE", "/apis/resource.k8s.io/v1/resourceslices"),
        lambda api: api.request(
            "PATCH",
            "/apis/resource.k8s.io/v1/resourceslices/any",
            json={},
            headers={"Content-Type": "application/merge-patch+json"},
        ),
        lambda api: api.request("GET", "/apis/resource.k8s.io/v1/resourceslices/any"),
    ],
    ids=[
        *("secrets", "all nodes", "pods", "delete claims", "claims' status"),
        *("all slices", "patch slices", "get a slice"),
    ],
)
def test_what_the_plugin_does_not_do_it_may_not_do(tokens: Mapping[str, Api], do: Callable[[Api], Any]):
    with refused("forbidden"):
        do(tokens["node-a"])


class TestBindingConditions:
    """Conditions of devices in claims: a right of its own, and for claims of the own node alone."""

    @pytest.fixture(autouse=True)
    def _role(self, admin: Api, tokens: Mapping[str, Api]) -> Iterator[None]:
        rights = {
            bool(more): [each.manifest for each in component(**more) if each.manifest["kind"] in RIGHTS]
            for more in ({}, {"binding_conditions": True})
        }
        for each in rights[True]:
            admin.apply(each)
        yield
        for each in rights[False]:
            admin.apply(each)
        # As at the beginning: the authorizer sees it a moment later.
        until(lambda: "forbidden" in refusal(lambda: self.write(tokens["node-a"], "any", "node-a")))

    @staticmethod
    def a_claim(admin: Api, name: str, node_name: str) -> None:
        """A claim that has a device of a node, as the scheduler would write it."""
        request = {"name": "gpu", "exactly": {"deviceClassName": DRIVER}}
        admin.create(
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceClaim",
                "metadata": {"name": name, "namespace": "default"},
                "spec": {"devices": {"requests": [request]}},
            }
        )
        result = {"request": "gpu", "driver": DRIVER, "pool": node_name, "device": "gpu-0"}
        field = {"key": "metadata.name", "operator": "In", "values": [node_name]}
        allocation = {
            "devices": {"results": [result]},
            "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [field]}]},
        }
        admin.patch(
            "resource.k8s.io/v1/ResourceClaim",
            name,
            {"status": {"allocation": allocation}},
            namespace="default",
            subresource="status",
        )

    @staticmethod
    def write(api: Api, name: str, pool: str) -> Any:
        condition = {
            "type": "Ready",
            "status": "True",
            "reason": "DeviceReady",
            "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        device = {"driver": DRIVER, "pool": pool, "device": "gpu-0", "conditions": [condition]}
        return api.patch(
            "resource.k8s.io/v1/ResourceClaim",
            name,
            {"status": {"devices": [device]}},
            namespace="default",
            subresource="status",
        )

    def test_are_written_into_claims_of_the_own_node(self, admin: Api, tokens: Mapping[str, Api]):
        self.a_claim(admin, "mine", "node-a")
        # The authorizer sees a changed role a moment later.
        until(lambda: not refusal(lambda: self.write(tokens["node-a"], "mine", "node-a")))
        written = admin.get("resource.k8s.io/v1/ResourceClaim", "mine", namespace="default")
        assert written["status"]["devices"][0]["conditions"][0]["type"] == "Ready"
        # Of claims of another node the same account writes nothing.
        self.a_claim(admin, "theirs", "node-b")
        with refused("cannot arbitrary-node:patch resource", 422):
            self.write(tokens["node-a"], "theirs", "node-b")
        assert self.write(tokens["node-b"], "theirs", "node-b")
        for name in ("mine", "theirs"):
            admin.delete("resource.k8s.io/v1/ResourceClaim", name, namespace="default")
