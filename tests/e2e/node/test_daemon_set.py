"""The plugin as users run it: our image in containerd, installed by the component, updated and removed by Pulumi."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import dra_infra as dra
from dra_infra.plugin.claims import ClaimReference
from dra_infra.program.synth import synth_function
from tests.e2e.node.conftest import NODE
from tests.support.lab import Lab
from tests.support.node.workloads import CLAIM, Workloads
from tests.support.plugin.kubelet import Connection
from tools.cluster import Api, ControlPlane
from tools.image import plugin_image
from tools.node import RealNode
from tools.pulumi_home import PulumiHome

pytestmark = pytest.mark.e2e

DRIVER, NAMESPACE, NAME = "gpu.nvidia.com", "dra-infra-plugin", "node-plugin"
CLAIMS = 1000
# Bytes; the container is given 256 MB.
MEMORY = 70e6
SLICE, EVENT, POD = "resource.k8s.io/v1/ResourceSlice", "v1/Event", "v1/Pod"


@pytest.fixture(scope="module")
def imported(real_node: RealNode) -> RealNode:
    """The node with the image."""
    real_node.import_images(plugin_image.build().archive)
    return real_node


@pytest.fixture(scope="module")
def project(
    home: PulumiHome, node_plane: ControlPlane, imported: RealNode, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Lab]:
    """A project whose stack has the plugin, until the module ends."""
    environment = {"KUBECONFIG": str(node_plane.kubeconfig)}
    lab = Lab.create(
        tmp_path_factory.mktemp("daemon-set"), home=home, namespace="default", environment=environment
    )
    lab.up(program(imported))
    yield lab
    lab.stack.destroy()


def program(node: RealNode, **more: Any) -> str:
    arguments = {
        "back_end": "sim",
        "fleet": "hgx-h100",
        "kubelet_root": str(node.kubelet_root),
        "cdi_folder": str(node.cdi_folder),
        **more,
    }
    words = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
    return f"""
import dra_infra as dra
plugin = dra.NodePlugin("{NAME}", {words})
dra.GpuClaimTemplate("one", device_class=plugin.device_classes["{DRIVER}"], object_name="one", namespace="default")
"""


@pytest.fixture
def pods(node_api: Api) -> Iterator[Pods]:
    found = Pods(node_api, "default")
    yield found
    found.remove_all()


class Pods(Workloads):
    """Pods with a GPU each, in the namespace of the project's claim template."""

    def start(self, name: str) -> None:
        claimed = {"resources": {"claims": [{"name": "gpu"}]}}
        container = self.container(script="env; cat /var/run/dra-infra/*/*.json", **claimed)
        self.pod(name, container, resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "one"}])

    def complaints(self) -> list[str]:
        """What the kubelet could not do for pods."""
        return [
            f"{each['involvedObject']['name']}: {each['message']}"
            for each in self.api.list(EVENT, namespace=self.namespace)
            if each.get("reason", "").startswith("Failed")
        ]

    def remove_all(self) -> None:
        for pod in self.api.list(POD, namespace=self.namespace):
            self.api.delete(POD, pod["metadata"]["name"], namespace=self.namespace, missing_ok=True)
        for kind in (POD, CLAIM):
            self.api.wait_for(kind, lambda found: not found, namespace=self.namespace)


def plugin_pods(api: Api) -> list[Mapping[str, Any]]:
    return api.list(POD, namespace=NAMESPACE)


def is_ready(pod: Mapping[str, Any]) -> bool:
    conditions = pod["status"].get("conditions", [])
    ready = any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
    return ready and "deletionTimestamp" not in pod["metadata"]


def told(api: Api, pods: list[Mapping[str, Any]]) -> str:
    """What the cluster says of the plugin's pods, for whoever reads that a test failed where nobody can look."""
    lines = [f"{NODE}: {in_short(api.get('v1/Node', NODE))}"]
    for pod in pods:
        name = pod["metadata"]["name"]
        lines += [f"{name}: ends {pod['metadata'].get('deletionTimestamp')}, {in_short(pod)}"]
        lines += [f"  {each}" for each in pod["status"].get("containerStatuses", [])]
        # It may have no log: then the answer says why.
        lines += Workloads(api, NAMESPACE).ask_for_log(name, "plugin").text.splitlines()[-12:]
    events = sorted(api.list(EVENT, namespace=NAMESPACE), key=lambda each: each["lastTimestamp"] or "")
    lines += [
        f"{each['lastTimestamp']} {each['involvedObject']['name']}: {each['message']}"
        for each in events[-12:]
    ]
    return "\n".join(lines)


def in_short(item: Mapping[str, Any]) -> str:
    conditions = item["status"].get("conditions", [])
    return ", ".join(
        f"{each['type']} {each['status']} since {each['lastTransitionTime']}" for each in conditions
    )


def until(holds: Callable[[], Any], timeout: float = 180.0) -> Any:
    deadline = time.monotonic() + timeout
    while not (found := holds()):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return found


@contextmanager
def watched(look: Callable[[], None]) -> Iterator[None]:
    """Look again and again while the body runs; what fails there fails here."""
    ended = threading.Event()
    failures = []

    def run() -> None:
        while not ended.is_set():
            try:
                look()
            except BaseException as error:  # noqa: BLE001  (handed on below)
                failures.append(error)
                return
            time.sleep(0.05)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
    if failures:
        raise failures[0]


def specs(node: RealNode) -> list[Path]:
    return list(node.cdi_folder.glob("*claim*"))


def test_the_component_runs_the_image_and_the_node_has_the_devices_of_the_fleet(project: Lab, node_api: Api):
    assert NAME in project.names()
    (pod,) = plugin_pods(node_api)
    assert is_ready(pod)
    assert pod["spec"]["nodeName"] == NODE
    found = [each["spec"] for each in node_api.list(SLICE) if each["spec"]["driver"] == DRIVER]
    assert {each["nodeName"] for each in found} == {NODE}
    assert sum(len(each["devices"]) for each in found) == 8


def test_a_pod_gets_its_simulated_gpu(project: Lab, pods: Pods, imported: RealNode):
    assert project
    pods.start("trainer")
    pods.wait_running("trainer")
    printed = pods.wait_for_log("trainer", '"driver": "gpu.nvidia.com"')
    assert "NVIDIA_VISIBLE_DEVICES=void" in printed
    assert "GPU_DEVICE_" in printed
    assert len(specs(imported)) == 1
    pods.delete("trainer")
    until(lambda: not specs(imported))


def test_the_container_has_no_capability_and_cannot_write_its_root(project: Lab, node_api: Api):
    assert project
    (pod,) = plugin_pods(node_api)
    process = process_of(pod)
    facts = facts_of(process)
    assert {facts[name] for name in ("CapEff", "CapPrm", "CapBnd", "CapInh", "CapAmb")} == {"0" * 16}
    assert facts["NoNewPrivs"] == "1"
    assert facts["Seccomp"] == "2"
    (root,) = [line for line in read(process / "mountinfo").splitlines() if line.split()[4] == "/"]
    assert "ro" in root.split()[5].split(",")


def test_the_kubelets_folders_can_be_written_by_root_alone(project: Lab, imported: RealNode):
    # Why the plugin runs as root: it has to make a socket in each of them.
    assert project
    for name in ("plugins_registry", "plugins"):
        found = (imported.kubelet_root / name).stat()
        assert (found.st_uid, found.st_mode & 0o022) == (0, 0)


def test_a_thousand_prepared_claims_take_no_more_than_seventy_megabytes(
    project: Lab, node_api: Api, imported: RealNode
):
    assert project
    (pod,) = plugin_pods(node_api)
    with many_claims(node_api) as made, Connection(service(imported)) as kubelet:
        assert [each.uid for each in made if kubelet.prepare(each)[each.uid].error] == []
        assert len(specs(imported)) == CLAIMS
        assert resident(process_of(pod)) < MEMORY
        assert [each.uid for each in made if kubelet.release(each)[each.uid].error] == []
    assert specs(imported) == []


@contextmanager
def many_claims(api: Api) -> Iterator[list[ClaimReference]]:
    """Claims that one pod has, all for one device: with admin access any number may. No kubelet gets to know the pod."""
    namespace = "many"
    label = {"resource.kubernetes.io/admin-access": "true"}
    api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": label}})
    nowhere = {"nodeSelector": {"there-is": "none"}}
    pods = Workloads(api, namespace)
    owner = pods.pod("owner", **nowhere)["metadata"]
    request = {"name": "gpu", "exactly": {"deviceClassName": DRIVER, "adminAccess": True}}
    result = {"request": "gpu", "driver": DRIVER, "pool": NODE, "device": "gpu-0", "adminAccess": True}
    status = {
        "allocation": {"devices": {"results": [result]}},
        "reservedFor": [{"resource": "pods", "name": owner["name"], "uid": owner["uid"]}],
    }
    made = []
    try:
        for number in range(CLAIMS):
            claim = pods.claim(f"claim-{number}", request)["metadata"]
            api.patch(CLAIM, claim["name"], {"status": status}, namespace=namespace, subresource="status")
            made.append(ClaimReference(namespace=namespace, name=claim["name"], uid=claim["uid"]))
        yield made
    finally:
        api.delete("v1/Namespace", namespace)
        api.wait_gone("v1/Namespace", namespace, timeout=180)


def service(node: RealNode) -> Path:
    """The socket at which the kubelet calls the plugin."""
    (socket,) = (node.kubelet_root / "plugins" / DRIVER).glob("*.sock")
    return socket


def process_of(pod: Mapping[str, Any]) -> Path:
    """The plugin's process in the machine's /proc."""
    task = pod["status"]["containerStatuses"][0]["containerID"].removeprefix("containerd://")
    (process,) = [
        each
        for each in Path("/proc").glob("[0-9]*")
        if task in read(each / "cgroup") and "dra-infra-plugin" in read(each / "cmdline")
    ]
    return process


def facts_of(process: Path) -> dict[str, str]:
    lines = (line.split(":\t", 1) for line in read(process / "status").splitlines() if ":\t" in line)
    return {name: value.strip() for name, value in lines}


def resident(process: Path) -> int:
    """Bytes."""
    return int(facts_of(process)["VmRSS"].removesuffix(" kB")) * 1024


def read(path: Path) -> str:
    try:
        return path.read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        # Processes end while they are looked at.
        return ""


def test_an_update_leaves_no_moment_without_the_driver(
    project: Lab, pods: Pods, node_api: Api, imported: RealNode
):
    pods.start("before")
    pods.wait_running("before")
    (old,) = plugin_pods(node_api)
    numbers = iter(range(10_000))
    ran: list[str] = []
    lasting: list[str] = []

    def claim_something() -> None:
        name = f"during-{next(numbers)}"
        pods.start(name)
        pods.wait_running(name)
        ran.append(name)
        lasting.append(name)
        if len(lasting) > 3:
            pods.delete(lasting.pop(0))

    def look() -> None:
        if not any(map(is_ready, found := plugin_pods(node_api))):
            pytest.fail(f"no instance is ready:\n{told(node_api, found)}")
        assert [each for each in node_api.list(SLICE) if each["spec"]["driver"] == DRIVER]

    with watched(look), watched(claim_something):
        project.write(program(imported, labels={"release": "2"}))
        result = project.stack.up().check()
        assert result.operations(NAME).count("update") >= 1
        until(lambda: [pod["metadata"]["name"] for pod in plugin_pods(node_api)] != [old["metadata"]["name"]])
        until(lambda: len(plugin_pods(node_api)) == 1)
        # Before, during and after: each ran.
        until(lambda: len(ran) > 3)
    (new,) = plugin_pods(node_api)
    assert new["metadata"]["uid"] != old["metadata"]["uid"]
    assert new["metadata"]["labels"]["release"] == "2"
    assert [each for each in pods.complaints() if "prepare" in each.lower()] == []
    # What the old instance prepared, the new one releases.
    pods.remove_all()
    until(lambda: not specs(imported))


def test_destroying_leaves_nothing(project: Lab, node_api: Api, imported: RealNode):
    project.stack.destroy().check()
    assert project.resources() == []
    for kind in ("ClusterRole", "ClusterRoleBinding"):
        assert node_api.find(f"rbac.authorization.k8s.io/v1/{kind}", NAME) is None
    for kind in ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"):
        assert node_api.find(f"admissionregistration.k8s.io/v1/{kind}", NAME) is None
    assert node_api.find("v1/Namespace", NAMESPACE) is None
    assert node_api.find("resource.k8s.io/v1/DeviceClass", DRIVER) is None
    # The kubelet deletes the slices of a driver that was away for 30 s.
    node_api.wait_for(
        SLICE, lambda items: not [each for each in items if each["spec"]["driver"] == DRIVER], timeout=180
    )
    assert specs(imported) == []
    assert list((imported.kubelet_root / "plugins_registry").glob("*")) == []
    assert list((imported.kubelet_root / "plugins" / DRIVER / "claims").glob("*.json")) == []


def test_nodes_without_nvidias_driver_are_told_what_was_looked_for(node_api: Api, imported: RealNode):
    """The other back end in its container, as far as a machine without a GPU goes."""
    arguments = {
        "back_end": "nvml",
        "driver": "other.example.com",
        "namespace": "gpus",
        "kubelet_root": str(imported.kubelet_root),
        "cdi_folder": str(imported.cdi_folder),
    }
    made = synth_function(lambda: dra.NodePlugin("gpus", **arguments)).objects
    manifests = sorted((each.manifest for each in made), key=lambda each: each["kind"] != "Namespace")
    for each in manifests:
        node_api.create(each)

    (pod,) = node_api.wait_for(
        POD, lambda pods: any(each["status"]["phase"] == "Running" for each in pods), namespace="gpus"
    )
    plugin = Workloads(node_api, "gpus")
    printed = plugin.wait_for_log(pod["metadata"]["name"], "libnvidia-ml.so.1", "plugin", timeout=180)
    assert "/driver-root" in printed
    assert not any(map(is_ready, node_api.list(POD, namespace="gpus")))
    for each in reversed(manifests):
        kind = f"{each['apiVersion']}/{each['kind']}"
        node_api.delete(kind, each["metadata"]["name"], namespace=each["metadata"].get("namespace"))
    node_api.wait_gone("v1/Namespace", "gpus", timeout=180)
