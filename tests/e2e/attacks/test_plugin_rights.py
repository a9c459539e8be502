"""What whoever has the token of one node's plugin can do to the claims of the others, on the real API servers."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

import dra_infra as dra
from dra_infra.client.kinds import CLAIMS
from dra_infra.client.kubeconfig import Account, User
from dra_infra.kubernetes.api import SUPPORTED_MINORS
from dra_infra.plugin.api_server.client import Api as PluginApi
from dra_infra.program.synth import synth_function
from tests.e2e.attacks.conftest import Loot
from tools.cluster import Api, ApiError, ControlPlane
from tools.cluster.api import PATIENCE
from tools.cluster.api_server import api_server

pytestmark = pytest.mark.e2e

DRIVER, NAMESPACE, NAME = "gpu.example.com", "dra-infra-plugin", "node-plugin"
OTHER = "net.example.com"
CLAIM = "resource.k8s.io/v1/ResourceClaim"
NODES = ("node-a", "node-b")
GRANULAR = "DRAResourceClaimGranularStatusAuthorization"
"""By which servers from 1.36 on compare the node by themselves. Where it is off the policy alone does."""

SERVERS = [*((each, {}) for each in SUPPORTED_MINORS), ("1.37", {GRANULAR: False})]
REFUSED = (403, 422)
_NUMBERS = itertools.count()


@dataclass(frozen=True)
class World:
    """A server with the objects of the component, and clients with the tokens that somebody may have got."""

    plane: ControlPlane
    admin: Api
    tokens: Mapping[str, str]
    clients: Mapping[str, Api]
    is_granular: bool

    def claim(
        self,
        *places: tuple[str, str],
        nodes: tuple[str, ...] = ("node-a",),
        said: int = 1,
        data: str = "",
        pods: int = 1,
    ) -> str:
        """A claim that is allocated devices of drivers and pools, of the first *said* of which something is said."""
        name = f"claim-{next(_NUMBERS)}"
        request = {
            "name": "gpu",
            "exactly": {
                "deviceClassName": DRIVER,
                "allocationMode": "ExactCount",
                "count": max(1, len(places)),
            },
        }
        self.admin.create(
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceClaim",
                "metadata": {"name": name, "namespace": "default", "labels": {"app": "trainer"}},
                "spec": {"devices": {"requests": [request]}},
            }
        )
        devices = [
            {"driver": driver, "pool": pool, "device": f"d-{number}"}
            for number, (driver, pool) in enumerate(places)
        ]
        fields = [{"key": "metadata.name", "operator": "In", "values": [each]} for each in nodes]
        selector = {"nodeSelectorTerms": [{"matchFields": [each]} for each in fields]}
        allocation = {
            "devices": {"results": [{"request": "gpu", **each} for each in devices]},
            "nodeSelector": selector,
        }
        reserved = [{"resource": "pods", "name": f"p-{each}", "uid": f"u-{each}"} for each in range(pods)]
        status: dict[str, Any] = {"allocation": allocation, "reservedFor": reserved} if places else {}
        filler = {"data": {"text": data}} if data else {}
        if said:
            status["devices"] = [{**each, **filler, "conditions": [condition()]} for each in devices[:said]]
        self.admin.patch(CLAIM, name, {"status": status}, namespace="default", subresource="status")
        return name

    def status(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = self.admin.get(CLAIM, name, namespace="default").get("status", {})
        return found


def condition(type_: str = "Ready", status: str = "False") -> dict[str, Any]:
    when = "2026-01-01T00:00:00Z"
    return {
        "type": type_,
        "status": status,
        "reason": "Said",
        "message": "",
        "lastTransitionTime": when,
    }


def entry(driver: str, pool: str, number: int = 0, status: str = "True") -> dict[str, Any]:
    return {
        "driver": driver,
        "pool": pool,
        "device": f"d-{number}",
        "conditions": [condition(status=status)],
    }


@pytest.fixture(scope="module", params=SERVERS, ids=lambda each: "-".join([each[0], *each[1]]))
def world(request: pytest.FixtureRequest, binaries: Callable[[str], Path]) -> Iterator[World]:
    minor, gates = request.param
    with ExitStack() as closing:
        plane = closing.enter_context(api_server(minor, feature_gates=gates, binaries=binaries))
        admin = closing.enter_context(plane.api())
        made = synth_function(lambda: dra.NodePlugin(NAME, back_end="sim", binding_conditions=True)).objects
        objects = sorted((each.manifest for each in made), key=lambda each: each["kind"] != "Namespace")
        for each in objects:
            admin.create(each)
        for name in NODES:
            admin.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
        tokens = {name: token(admin, pod_on(admin, name)) for name in NODES} | {"": token(admin, None)}
        clients = {
            name: closing.enter_context(Api(replace(plane.connection, token=each)))
            for name, each in tokens.items()
        }
        found = World(plane, admin, tokens, clients, minor >= "1.36" and not gates)
        # Policy and rights are in force a moment after they were made.
        mine = found.claim((DRIVER, "node-a"))
        until(lambda: not refusal(lambda: write(clients["node-a"], mine, [entry(DRIVER, "node-a")])))
        until(lambda: "of no node" in refusal(lambda: clients[""].create(a_slice(), dry_run=True)))
        yield found


def a_slice() -> dict[str, Any]:
    pool = {"name": "node-a", "generation": 1, "resourceSliceCount": 1}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": "any"},
        "spec": {"driver": DRIVER, "nodeName": "node-a", "pool": pool, "devices": []},
    }


def pod_on(admin: Api, node: str) -> dict[str, Any]:
    spec = {
        "nodeName": node,
        "serviceAccountName": NAME,
        "containers": [{"name": "plugin", "image": "none"}],
    }
    metadata = {"name": f"plugin-{node}", "namespace": NAMESPACE}
    made = admin.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    return {"kind": "Pod", "apiVersion": "v1", "name": metadata["name"], "uid": made["metadata"]["uid"]}


def token(admin: Api, bound: Mapping[str, Any] | None) -> str:
    path = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{NAME}/token"
    spec = {"boundObjectRef": dict(bound)} if bound else {}
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
    return str(admin.request("POST", path, json=asked)["status"]["token"])


def write(
    api: Api, name: str, devices: object, *, version: str = "v1", subresource: str = "/status", **more: Any
) -> None:
    """Patch what somebody says of devices, and *more* of the claim."""
    status = {"status": {"devices": devices}} if devices is not None else {}
    api.request(
        "PATCH",
        f"/apis/resource.k8s.io/{version}/namespaces/default/resourceclaims/{name}{subresource}",
        content=json.dumps({**status, **more}),
        headers={"Content-Type": "application/merge-patch+json"},
    )


def refusal(call: Callable[[], Any]) -> str:
    """Why a call was refused; empty where it was not."""
    try:
        call()
    except ApiError as error:
        # Refused as such; a policy that cannot be evaluated, or costs too much, would refuse everybody.
        if error.status not in REFUSED or "resulted in error" in str(error) or "cost" in str(error):
            raise
        return str(error)
    return ""


def until(holds: Callable[[], Any]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def attempt(loot: Loot, world: World, what: str, name: str, call: Callable[[str], Any]) -> None:
    """Try it on a claim, and see what that says then."""
    before = world.admin.get(CLAIM, name, namespace="default")
    said = refusal(lambda: call(name))
    after = world.admin.get(CLAIM, name, namespace="default")
    loot.add_if(not said and after != before, what)


def test_the_token_of_another_node_changes_nothing(world: World, loot: Loot):
    thief = world.clients["node-b"]
    written = [entry(DRIVER, "node-a")]
    for version, devices in (("v1", written), ("v1beta2", written), ("v1beta1", written), ("v1", [])):
        attempt(
            loot,
            world,
            f"what is said of a device of node-a, by {version}: {devices or 'nothing'}",
            world.claim((DRIVER, "node-a")),
            lambda name, version=version, devices=devices: write(thief, name, devices, version=version),
        )
    both = world.claim((DRIVER, "node-a"), (DRIVER, "node-b"), nodes=("node-b",), said=2)
    attempt(
        loot,
        world,
        "a device of node-a in a claim that has one of node-b too",
        both,
        lambda name: write(thief, name, [entry(DRIVER, "node-a"), entry(DRIVER, "node-b", 1, "False")]),
    )


def test_a_token_of_no_node_changes_nothing(world: World, loot: Loot):
    name = world.claim((DRIVER, "node-a"))
    attempt(
        loot,
        world,
        "a device that is said to be ready",
        name,
        lambda name: write(world.clients[""], name, [entry(DRIVER, "node-a")]),
    )


@pytest.mark.parametrize("who", ["node-a", "node-b"])
def test_no_token_changes_who_has_which_devices(world: World, loot: Loot, who: str):
    thief = world.clients[who]
    given = world.status(world.claim((DRIVER, "node-a")))
    pod = {"resource": "pods", "name": "thief", "uid": "thief"}
    for what, status in {
        "an allocation taken back": {"allocation": None, "reservedFor": None, "devices": None},
        "a claim that is reserved for nobody": {"reservedFor": None},
        "a claim that is reserved for a pod of the attacker": {"reservedFor": [pod]},
        "an allocation taken back, with a word of its own device": {**given, "allocation": None},
    }.items():
        claim = world.claim((DRIVER, "node-a"))
        attempt(loot, world, what, claim, lambda name, status=status: write(thief, name, None, status=status))
    taken = {"allocation": given["allocation"], "reservedFor": [pod]}
    attempt(
        loot,
        world,
        "a claim that is allocated by the attacker",
        world.claim(said=0),
        lambda name: write(thief, name, None, status=taken),
    )


@pytest.mark.parametrize("who", ["node-a", "node-b"])
def test_no_token_changes_what_a_claim_is(world: World, loot: Loot, who: str):
    thief, name = world.clients[who], world.claim((DRIVER, "node-a"))
    own = [entry(DRIVER, "node-a")]
    gone = {"apiVersion": "v1", "kind": "Pod", "name": "gone", "uid": "gone"}
    for what, metadata in {
        "its labels": {"labels": {"app": "thief"}},
        "its annotations": {"annotations": {"thief": "here"}},
        "its finalizers": {"finalizers": ["example.com/for-ever"]},
        "its owner, by which it is collected": {"ownerReferences": [gone]},
    }.items():
        refusal(lambda metadata=metadata: write(thief, name, own, metadata=metadata))
        found = world.admin.get(CLAIM, name, namespace="default")["metadata"]
        (field,) = metadata
        loot.add_if(found.get(field) == metadata[field], what)
        attempt(
            loot,
            world,
            f"{what}, not by the status",
            name,
            lambda name, metadata=metadata: write(thief, name, None, subresource="", metadata=metadata),
        )


def test_what_other_drivers_say_of_their_devices_stays(world: World, loot: Loot):
    own = world.clients["node-a"]
    name = world.claim((DRIVER, "node-a"), (OTHER, "node-a"), (DRIVER, "node-b"), said=3)
    said = world.status(name)["devices"]
    for what, devices in {
        "another driver's device that is said to be ready": [
            said[0],
            entry(OTHER, "node-a", 1),
            said[2],
        ],
        "another driver's word, gone": [said[0], said[2]],
        "the word of another node, gone": [said[0], said[1]],
        "another node's device that is said to be ready": [said[0], said[1], entry(DRIVER, "node-b", 2)],
        "all of it": [],
    }.items():
        attempt(loot, world, what, name, lambda name, devices=devices: write(own, name, devices))


def test_the_plugin_writes_what_it_has_to(world: World):
    """By its own client and with server-side apply, also into claims as large as a server lets them be."""
    account = Account(
        name="plugin",
        server=world.plane.url,
        ca=world.plane.connection.ca,
        user=User(token=world.tokens["node-a"]),
    )
    plugin = PluginApi(account, {})
    places = [(DRIVER, "node-a"), *([(OTHER, "far")] * 30), (DRIVER, "node-a")]
    for name in (
        world.claim((DRIVER, "node-a"), said=0),
        world.claim((OTHER, "far"), (DRIVER, "node-a"), said=1),
        world.claim(*places, said=31, data="x" * 9000, pods=256),
    ):
        before = world.admin.get(CLAIM, name, namespace="default")
        number = len(before["status"]["allocation"]["devices"]["results"]) - 1
        written = plugin.apply_status(
            CLAIMS,
            {
                "metadata": {
                    key: before["metadata"][key] for key in ("namespace", "name", "uid", "resourceVersion")
                },
                "status": {"devices": [entry(DRIVER, "node-a", number)]},
            },
            manager=f"dra-infra-plugin/{DRIVER}",
        )
        ready = [
            each["device"]
            for each in written["status"]["devices"]
            if each["conditions"][0]["status"] == "True"
        ]
        assert ready == [f"d-{number}"]
        others = [each for each in written["status"]["devices"] if each["device"] != f"d-{number}"]
        assert others == before["status"].get("devices", [])
        # The same as a list, in another order, and its own entry taken back.
        write(world.clients["node-a"], name, list(reversed(written["status"]["devices"])))
        write(world.clients["node-a"], name, others)


def test_a_claim_that_several_nodes_may_use_is_not_kept_from_the_node_that_has_a_device_of_it(world: World):
    name = world.claim((OTHER, "far"), (DRIVER, "node-a"), nodes=NODES, said=1)
    said = world.status(name)["devices"]
    refused = refusal(lambda: write(world.clients["node-a"], name, [*said, entry(DRIVER, "node-a", 1)]))
    if world.is_granular:
        # The server's own check, which wants one node; an allocation with a device of one node names that one alone.
        assert "associated-node" in refused or "arbitrary-node" in refused
    assert bool(refused) == world.is_granular


def test_a_claim_that_changed_meanwhile_is_a_conflict_and_no_refusal(world: World):
    name = world.claim((DRIVER, "node-a"))
    old = world.admin.get(CLAIM, name, namespace="default")["metadata"]["resourceVersion"]
    world.admin.patch(
        CLAIM,
        name,
        {"status": {"allocation": None, "reservedFor": None}},
        namespace="default",
        subresource="status",
    )
    with pytest.raises(ApiError) as caught:
        write(
            world.clients["node-a"],
            name,
            [entry(DRIVER, "node-a")],
            metadata={"resourceVersion": old},
        )
    assert caught.value.status == 409
