"""Devices with binding conditions in front of the real scheduler, with the rights that the plugin is to have and no more."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from dra_infra.client.kinds import CLAIMS
from dra_infra.client.kubeconfig import Account, User
from dra_infra.plugin.api_server.binding import Binder
from dra_infra.plugin.api_server.claim_reading import ClaimReader
from dra_infra.plugin.api_server.client import Api as PluginApi
from dra_infra.plugin.api_server.refusals import ApiError
from dra_infra.plugin.back_ends.sim import SimulatedBackEnd
from dra_infra.plugin.back_ends.sim_commands import Commands, bind, fail, hold, write_commands
from dra_infra.plugin.claims import ClaimReference
from dra_infra.specs.node_plugin.rights import rules
from tests.e2e.plugin.conftest import NODE
from tests.support.plugin.publishing import PATIENCE, Remembering, wait_until
from tools.cluster import Api, ControlPlane, NodeStandIn, create_fleet, node

pytestmark = pytest.mark.e2e

CLAIM = "resource.k8s.io/v1/ResourceClaim"
DRIVER = "gpu.example.com"
RULES = rules(DRIVER, binding_conditions=True)
"""Those of the component: all that the plugin does at the API server, and no more."""


def as_plugin(plane: ControlPlane, api: Api) -> PluginApi:
    """The plugin's client with the token of a pod on the node."""
    rbac = "rbac.authorization.k8s.io"
    subject = {"kind": "ServiceAccount", "name": "plugin", "namespace": "default"}
    role = {"apiGroup": rbac, "kind": "ClusterRole", "name": "plugin"}
    pod = {"nodeName": NODE, "serviceAccountName": "plugin", "containers": [{"name": "a", "image": "none"}]}
    for each in (
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": "plugin", "namespace": "default"},
        },
        {"apiVersion": f"{rbac}/v1", "kind": "ClusterRole", "metadata": {"name": "plugin"}, "rules": RULES},
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "plugin"},
            "roleRef": role,
            "subjects": [subject],
        },
    ):
        api.create(each)
    made = api.create(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "plugin", "namespace": "default"},
            "spec": pod,
        }
    )
    bound = {"apiVersion": "v1", "kind": "Pod", "name": "plugin", "uid": made["metadata"]["uid"]}
    asked = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"boundObjectRef": bound},
    }
    path = "/api/v1/namespaces/default/serviceaccounts/plugin/token"
    token = api.request("POST", path, json=asked)["status"]["token"]
    account = Account(name="plugin", server=plane.url, ca=plane.connection.ca, user=User(token=token))
    plugin = PluginApi(account, {})
    # The authorizer sees a role a moment after it was made.
    wait_until(lambda: may_list(plugin))
    return plugin


def may_list(plugin: PluginApi) -> bool:
    try:
        plugin.list(CLAIMS)
    except ApiError as error:
        if error.status != httpx.codes.FORBIDDEN:
            raise
        return False
    return True


class Stage:
    """A simulated node whose devices have binding conditions, and pods that want one."""

    def __init__(self, plane: ControlPlane, api: Api, publish: Callable[..., Any], folder: Path) -> None:
        self.api = api
        self.commands = folder / "commands.yaml"
        self.said = hold(Commands())
        write_commands(self.commands, self.said)
        self.back_end = SimulatedBackEnd("example", node=NODE, folder=folder / "sim", commands=self.commands)
        self.plugin = as_plugin(plane, api)
        self.observer = Remembering()
        self.binder = Binder(
            self.plugin, back_end=self.back_end, bindings=self.back_end, node=NODE, observer=self.observer
        )
        publisher, told = publish(self.plugin, self.back_end)
        assert publisher.wait(PATIENCE), told.publishings
        assert told.problems == []
        self.binder.start()
        self._numbers = itertools.count()

    def say(self, claim: str, **how: str) -> None:
        self.said = bind(self.said, f"default/{claim}", **how)
        write_commands(self.commands, self.said)

    def pod(self, name: str) -> None:
        request = {"name": "gpu", "exactly": {"deviceClassName": DRIVER}}
        self.api.create(
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceClaim",
                "metadata": {"name": name, "namespace": "default"},
                "spec": {"devices": {"requests": [request]}},
            }
        )
        self.api.create(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "namespace": "default"},
                "spec": {
                    "containers": [
                        {"name": "a", "image": "none", "resources": {"claims": [{"name": "gpu"}]}}
                    ],
                    "resourceClaims": [{"name": "gpu", "resourceClaimName": name}],
                },
            }
        )

    def allocated(self, name: str) -> str:
        def device(claim: dict[str, Any]) -> str:
            results = claim.get("status", {}).get("allocation", {}).get("devices", {}).get("results", [])
            return str(results[0]["device"]) if results else ""

        return device(self.api.wait_until(CLAIM, name, device))


@pytest.fixture
def stage(fresh_control_plane: ControlPlane, publish: Callable[..., Any], tmp_path: Path) -> Iterator[Stage]:
    plane = fresh_control_plane
    device_class = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": DRIVER},
        "spec": {"selectors": [{"cel": {"expression": f"device.driver == '{DRIVER}'"}}]},
    }
    with plane.api() as api, NodeStandIn(plane.connection):
        create_fleet(api, [node(NODE), device_class])
        made = Stage(plane, api, publish, tmp_path)
        yield made
        made.binder.stop()
        made.back_end.close()


def test_a_pod_waits_until_its_device_is_ready(stage: Stage) -> None:
    stage.pod("trainer")
    device = stage.allocated("trainer")
    assert stage.api.get("v1/Pod", "trainer")["status"]["phase"] == "Pending"
    assert not stage.api.get("v1/Pod", "trainer")["spec"].get("nodeName")
    stage.say("trainer")
    stage.api.wait_until("v1/Pod", "trainer", lambda pod: pod["status"]["phase"] == "Running")
    claim = stage.api.get(CLAIM, "trainer")
    [entry] = claim["status"]["devices"]
    assert entry["device"] == device
    assert [(each["type"], each["status"]) for each in entry["conditions"]] == [
        (each, "True") for each in claim["status"]["allocation"]["devices"]["results"][0]["bindingConditions"]
    ]
    # What the kubelet would ask for then.
    reference = ClaimReference(namespace="default", name="trainer", uid=claim["metadata"]["uid"])
    read = ClaimReader(stage.plugin, driver=DRIVER, node=NODE).read(reference)
    assert [each.device for each in read.devices] == [device]
    assert stage.observer.problems == []


def test_what_another_instance_said_meanwhile_is_not_overwritten(stage: Stage) -> None:
    stage.pod("trainer")
    device = stage.allocated("trainer")
    before = stage.api.get(CLAIM, "trainer")
    stage.say("trainer")
    stage.api.wait_until(CLAIM, "trainer", lambda claim: claim["status"].get("devices"))
    entry = {"driver": DRIVER, "pool": NODE, "device": device, "conditions": []}
    names = ("namespace", "name", "uid", "resourceVersion")
    old = {"metadata": {name: before["metadata"][name] for name in names}, "status": {"devices": [entry]}}
    with pytest.raises(ApiError) as caught:
        stage.plugin.apply_status(CLAIMS, old, manager=f"dra-infra-plugin/{DRIVER}")
    assert caught.value.status == httpx.codes.CONFLICT
    assert stage.api.get(CLAIM, "trainer")["status"]["devices"][0]["conditions"]


def test_a_device_that_fails_is_taken_from_the_pod_and_another_one_is_chosen(stage: Stage) -> None:
    stage.pod("trainer")
    first = stage.allocated("trainer")
    # Without a taint the scheduler would choose it again.
    stage.said = fail(bind(stage.said, "default/trainer"), first)
    stage.say("trainer", device=first, failed="no room")
    stage.api.wait_until("v1/Pod", "trainer", lambda pod: pod["status"]["phase"] == "Running")
    assert stage.allocated("trainer") != first
