"""What the developer of a tenant can do to the nodes and to the devices of others, with a token, on the real API servers."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

import dra_infra as dra
from dra_infra.kubernetes.api import SUPPORTED_MINORS
from dra_infra.program.synth import synth_function
from tests.e2e.attacks.conftest import Loot
from tools.cluster import Api, ApiError
from tools.cluster.api import PATIENCE
from tools.cluster.api_server import api_server, control_plane

pytestmark = pytest.mark.e2e

Spec = dict[str, Any]
DEVELOPER: Final = "dev"
GUARDED: Final = "speech"
"""A tenant whose pods Pod Security lets do anything, such as those that need IPC_LOCK: guardrails alone hold it."""

_NUMBERS = itertools.count()


def company() -> None:
    """Two tenants with a developer each, who may have no device; one of them refuses no pod by Pod Security."""
    roles = dra.GpuRoles("gpus")
    for name, level in (("vision", None), (GUARDED, "privileged")):
        members = {"developer": [f"serviceaccount:{name}/{DEVELOPER}"]}
        dra.GpuTenant(name, quota={"h100": 0}, roles=roles, members=members, pod_security=level)  # type: ignore[arg-type]
    dra.GpuGuardrails("gpus", classes={GUARDED: ["h100"]}, host_paths={GUARDED: ["/mnt/datasets"]})


@dataclass(frozen=True)
class World:
    """A server with the objects of the company, and clients with the tokens of the developers."""

    admin: Api
    developers: Mapping[str, Api]


def objects_of(program: Callable[[], None], minor: str) -> list[dict[str, Any]]:
    made = synth_function(program, config={"dra-infra:kubernetes": minor})
    assert [str(each) for each in made.problems if each.severity == "error"] == []
    return sorted((each.manifest for each in made.objects), key=lambda each: each["kind"] != "Namespace")


@pytest.fixture(scope="module", params=SUPPORTED_MINORS)
def world(request: pytest.FixtureRequest, binaries: Callable[[str], Path]) -> Iterator[World]:
    with ExitStack() as closing:
        plane = closing.enter_context(api_server(request.param, binaries=binaries))
        admin = closing.enter_context(plane.api())
        for manifest in objects_of(company, request.param):
            admin.create(manifest)
        connections = {
            name: replace(plane.connection, token=token(admin, name)) for name in ("vision", GUARDED)
        }
        developers = {name: closing.enter_context(Api(each)) for name, each in connections.items()}
        # Rights and policies are in force a moment after they were made.
        for name, developer in developers.items():
            until(lambda name=name, developer=developer: not refusal(developer, name, spec()))
        until(lambda: "mount" in refusal(admin, GUARDED, spec(volumes=[host_path("/probe")])))
        yield World(admin, developers)


def token(admin: Api, namespace: str) -> str:
    metadata = {"name": DEVELOPER, "namespace": namespace}
    admin.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{DEVELOPER}/token"
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    return str(admin.request("POST", path, json=asked)["status"]["token"])


def until(holds: Callable[[], Any]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def spec(context: Spec | None = None, **pod: Any) -> Spec:
    container = {"name": "c", "image": "none", **({"securityContext": context} if context else {})}
    return {"containers": [container], **pod}


def host_path(path: str) -> Spec:
    return {"name": "v", "hostPath": {"path": path}}


def refusal(api: Api, namespace: str, pod: Spec) -> str:
    """Why a pod was refused; empty where it was made."""
    name = f"p-{next(_NUMBERS)}"
    manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": pod}
    try:
        api.request("POST", f"/api/v1/namespaces/{namespace}/pods", json=manifest)
    except ApiError as error:
        if error.status != httpx.codes.FORBIDDEN:
            raise
        return str(error)
    return ""


TAKES_THE_NODE: Final[dict[str, Spec]] = {
    "a privileged container": spec({"privileged": True}),
    "a privileged init container": spec(
        initContainers=[{"name": "i", "image": "none", "securityContext": {"privileged": True}}]
    ),
    "the whole file system of the node": spec(volumes=[host_path("/")]),
    "the first GPU of the node": spec(volumes=[host_path("/dev/nvidia0")]),
    "all processes of the node": spec(hostPID=True),
    "the network of the node": spec(hostNetwork=True),
    "shared memory of the node": spec(hostIPC=True),
    "the capability to mount": spec({"capabilities": {"add": ["SYS_ADMIN"]}}),
    "the pod of the report, on a node of the attacker's choice": spec(
        {"privileged": True}, hostPID=True, nodeName="any-node", volumes=[host_path("/")]
    ),
}


@pytest.mark.parametrize("case", TAKES_THE_NODE)
def test_a_developer_takes_a_node_by_a_pod(world: World, loot: Loot, case: str):
    said = refusal(world.developers["vision"], "vision", TAKES_THE_NODE[case])
    loot.add_if(not said, case)
    assert not said or 'violates PodSecurity "baseline:latest"' in said


def test_a_developer_adds_a_privileged_container_to_a_pod_that_runs(world: World, loot: Loot):
    metadata = {"name": f"runs-{next(_NUMBERS)}", "namespace": "vision"}
    world.admin.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec()})
    container = {"name": "more", "image": "none", "securityContext": {"privileged": True}}
    path = f"/api/v1/namespaces/vision/pods/{metadata['name']}/ephemeralcontainers"
    # The role has no right to; Pod Security refuses those who have.
    for who, api in (("the developer", world.developers["vision"]), ("an administrator", world.admin)):
        answer = api._client.patch(
            path,
            content=json.dumps({"spec": {"ephemeralContainers": [container]}}),
            headers={"Content-Type": "application/strategic-merge-patch+json"},
        )
        assert answer.status_code in (httpx.codes.OK, httpx.codes.FORBIDDEN)
        loot.add_if(answer.is_success, f"a privileged container by {who}")


@pytest.mark.parametrize("subresource", ["", "/status", "/finalize"])
def test_a_developer_takes_the_label_of_the_namespace_away(world: World, loot: Loot, subresource: str):
    there = world.admin.get("v1/Namespace", "vision")
    labels = {
        key: "privileged" if key.startswith("pod-security.kubernetes.io/") else text
        for key, text in there["metadata"]["labels"].items()
    }
    changed = {**there, "metadata": {**there["metadata"], "labels": labels}}
    for method, headers, body in (
        ("PUT", "application/json", changed),
        ("PATCH", "application/merge-patch+json", {"metadata": {"labels": labels}}),
    ):
        with pytest.raises(ApiError) as refused:
            world.developers["vision"].request(
                method,
                f"/api/v1/namespaces/vision{subresource}",
                content=json.dumps(body),
                headers={"Content-Type": headers},
            )
        assert refused.value.status == 403
    now = world.admin.get("v1/Namespace", "vision")["metadata"]["labels"]
    loot.add_if(
        now.get("pod-security.kubernetes.io/enforce") != "baseline", "a namespace that refuses no pod"
    )


MOUNTS: Final = (
    *("/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-caps/nvidia-cap1", "/dev/dri", "/dev", "/dev/", "/"),
    # The same devices by other names: links to device numbers, the root of a process, that of a driver container.
    *("/dev/char/195:0", "/proc/1/root/dev/nvidia0", "/run/nvidia/driver/dev/nvidia0", "//dev//nvidia0"),
    *("/run/containerd/containerd.sock", "/var/lib/kubelet", "/mnt", "/mnt/datasets/link-to-dev"),
)


@pytest.mark.parametrize("path", MOUNTS)
def test_a_developer_mounts_devices_where_guardrails_alone_hold_the_namespace(
    world: World, loot: Loot, path: str
):
    said = refusal(world.developers[GUARDED], GUARDED, spec(volumes=[host_path(path)]))
    loot.add_if(not said, f"{path} of the node")


def test_a_developer_chooses_the_node_where_guardrails_alone_hold_the_namespace(world: World, loot: Loot):
    said = refusal(world.developers[GUARDED], GUARDED, spec(nodeName="a-node-with-taints"))
    loot.add_if(not said, "a pod on a node that the scheduler did not choose")


def test_what_developers_need_is_let_in(world: World):
    own: Spec = {
        "runAsUser": 0,
        "capabilities": {"add": ["CHOWN", "NET_BIND_SERVICE"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    volumes = [
        {"name": "shm", "emptyDir": {"medium": "Memory"}},
        {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
        {"name": "settings", "configMap": {"name": "settings", "optional": True}},
    ]
    claims = [{"name": "gpu", "resourceClaimTemplateName": "trainer"}]
    with_devices = spec(own, volumes=volumes, resourceClaims=claims)
    with_devices["containers"][0]["resources"] = {"claims": [{"name": "gpu"}]}
    for name, developer in world.developers.items():
        assert refusal(developer, name, with_devices) == ""
    # Guardrails say nothing of what Pod Security is for, and let in the paths that they are told of.
    more = {"capabilities": {"add": ["IPC_LOCK"]}}
    assert refusal(world.developers[GUARDED], GUARDED, spec(more, volumes=[host_path("/mnt/datasets")])) == ""
    assert "IPC_LOCK" in refusal(world.developers["vision"], "vision", spec(more))


def small_company() -> None:
    """A tenant of one device, in which somebody has the role `edit` of Kubernetes beside the developer."""
    members = {"developer": [f"serviceaccount:vision/{DEVELOPER}"]}
    dra.GpuTenant("vision", quota={"h100": 1}, roles=dra.GpuRoles("gpus"), members=members)


def small_guardrails() -> None:
    dra.GpuGuardrails("gpus", classes={"vision": ["h100"]}, most_devices=8)


EDITOR: Final[dict[str, Any]] = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "RoleBinding",
    "metadata": {"name": "editor", "namespace": "vision"},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"},
    "subjects": [{"kind": "User", "name": "editor", "apiGroup": "rbac.authorization.k8s.io"}],
}
AS_EDITOR: Final = {"Impersonate-User": "editor"}
GROUPS_OF_PODS: Final = {"1.36": "v1alpha2", "1.37": "v1beta1"}
"""The version of scheduling.k8s.io that has PodGroups with claims, by minor."""


@pytest.fixture(scope="module", params=SUPPORTED_MINORS)
def minor_of_cluster(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def cluster(minor_of_cluster: str, binaries: Callable[[str], Path]) -> Iterator[World]:
    """A cluster whose controllers make pods and claims; from 1.36 on also claims of PodGroups."""
    minor = minor_of_cluster
    gates = {"GenericWorkload": True, "DRAWorkloadResourceClaims": True} if minor in GROUPS_OF_PODS else {}
    with ExitStack() as closing:
        plane = closing.enter_context(control_plane(minor, binaries=binaries, feature_gates=gates))
        admin = closing.enter_context(plane.api())
        for manifest in objects_of(small_company, minor):
            admin.create(manifest)
        # Templates that were there before anybody refused them.
        for name, requests in TEMPLATES.items():
            admin.create(
                {
                    "apiVersion": "resource.k8s.io/v1",
                    "kind": "ResourceClaimTemplate",
                    "metadata": {"name": name, "namespace": "vision"},
                    "spec": {"spec": {"devices": {"requests": requests}}},
                }
            )
        for manifest in (*objects_of(small_guardrails, minor), EDITOR):
            admin.create(manifest)
        connection = replace(plane.connection, token=token(admin, "vision"))
        developer = closing.enter_context(Api(connection))
        until(lambda: not refusal(developer, "vision", spec()))
        until(lambda: "nodeName" in refusal(admin, "vision", spec(nodeName="probe")))
        until(lambda: admin.get("v1/ResourceQuota", "vision", namespace="vision").get("status"))
        yield World(admin, {"vision": developer})


def request_for(device_class: str, count: int = 1) -> dict[str, Any]:
    return {"name": f"{device_class}-{count}", "exactly": {"deviceClassName": device_class, "count": count}}


TEMPLATES: Final = {
    "one": [request_for("h100")],
    "forbidden": [request_for("a100")],
    "many": [request_for("h100", 9)],
}


def workload(kind: str, pod: Spec) -> tuple[str, dict[str, Any]]:
    """The path and the manifest of a workload."""
    name = f"w-{next(_NUMBERS)}"
    template: dict[str, Any] = {"metadata": {"labels": {"app": name}}, "spec": pod}
    version, plural, inner = {
        "Deployment": ("apps/v1", "deployments", {"selector": {"matchLabels": {"app": name}}}),
        "StatefulSet": ("apps/v1", "statefulsets", {"selector": {"matchLabels": {"app": name}}}),
        "Job": ("batch/v1", "jobs", {}),
    }[kind]
    if kind == "Job":
        template["spec"] = {**pod, "restartPolicy": "Never"}
    inner = {**inner, "template": template}
    manifest = {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": inner}
    return f"/apis/{version}/namespaces/vision/{plural}", manifest


def messages(api: Api) -> str:
    return "\n".join(str(each.get("message")) for each in api.list("v1/Event", namespace="vision"))


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "Job"])
def test_a_developer_takes_a_node_by_a_workload(cluster: World, loot: Loot, kind: str):
    """The server takes a workload whose pods it refuses, so whoever makes it has to be told."""
    pod = TAKES_THE_NODE["the pod of the report, on a node of the attacker's choice"]
    path, manifest = workload(kind, pod)
    answer = cluster.developers["vision"]._client.post(path, json=manifest)
    assert answer.status_code == httpx.codes.CREATED
    loot.add_if("would violate PodSecurity" not in answer.headers.get("Warning", ""), "no warning")
    name = manifest["metadata"]["name"]

    def pods() -> list[Any]:
        return cluster.admin.list("v1/Pod", namespace="vision", label_selector=f"app={name}")

    def is_refused() -> bool:
        return any(
            name in line and 'violates PodSecurity "baseline:latest"' in line
            for line in messages(cluster.admin).splitlines()
        )

    until(lambda: pods() or is_refused())
    loot.add_if(pods(), "its pods")


def group_of_pods(minor: str, *templates: str) -> dict[str, Any]:
    claims = [{"name": f"c-{each}", "resourceClaimTemplateName": each} for each in templates]
    return {
        "apiVersion": f"scheduling.k8s.io/{GROUPS_OF_PODS[minor]}",
        "kind": "PodGroup",
        "metadata": {"name": f"g-{next(_NUMBERS)}", "namespace": "vision"},
        "spec": {"schedulingPolicy": {"basic": {}}, "resourceClaims": claims},
    }


def test_a_group_of_pods_gets_round_quota_and_guardrails(cluster: World, minor_of_cluster: str, loot: Loot):
    minor = minor_of_cluster
    admin = cluster.admin
    if minor not in GROUPS_OF_PODS:
        pytest.skip(f"Kubernetes {minor} has no claims of PodGroups")
    path = f"/apis/scheduling.k8s.io/{GROUPS_OF_PODS[minor]}/namespaces/vision/podgroups"

    def claims() -> list[dict[str, Any]]:
        return admin.list("resource.k8s.io/v1/ResourceClaim", namespace="vision")

    with pytest.raises(ApiError) as refused:
        cluster.developers["vision"].request("POST", path, json=group_of_pods(minor, "one"))
    loot.add_if(refused.value.status != httpx.codes.FORBIDDEN, "a PodGroup of the developer")
    admin.request("POST", path, json=group_of_pods(minor, "one"), headers=AS_EDITOR)
    until(claims)
    used = "h100.deviceclass.resource.k8s.io/devices"
    until(
        lambda: admin.get("v1/ResourceQuota", "vision", namespace="vision")["status"]["used"].get(used) == "1"
    )
    for template, words in {
        "one": "exceeded quota: vision",
        "forbidden": "may use the device classes h100",
        "many": "may ask for at most 8 devices",
    }.items():
        admin.request("POST", path, json=group_of_pods(minor, template), headers=AS_EDITOR)
        until(lambda words=words: words in messages(admin) or len(claims()) > 1)
    loot.add_if(len(claims()) > 1, "a claim beyond the quota or against the guardrails")
