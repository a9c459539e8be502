"""Pods with claims compute on the GPUs of this machine: real servers, kubelet, containerd and runc, and our plugin.

It needs what `make tools` builds besides, root, iproute2, and a C compiler for the program that computes.
"""

from __future__ import annotations

import contextlib
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dra_infra.plugin.back_ends.nvml import NvmlBackEnd
from dra_infra.plugin.back_ends.nvml_library import LIBRARY_FOLDERS
from tests.e2e.node.conftest import node_api, node_plane, real_node, workloads
from tests.gpu.conftest import DRIVER_ROOT
from tests.support.node.plugin_process import PluginProcess
from tests.support.node.workloads import CLAIM, Workloads, request
from tools import build, debian, oci_archive
from tools.cluster import Api
from tools.errors import ToolError
from tools.node import RealNode, images

__all__ = ["node_api", "node_plane", "real_node", "workloads"]

pytestmark = pytest.mark.e2e

PROGRAM = Path(__file__).with_name("cuda_probe.c")
IMAGE = "dra-infra.invalid/cuda:1"
SLICE = "resource.k8s.io/v1/ResourceSlice"
CLASS = "gpu.nvidia.com"


@pytest.fixture(scope="session")
def binaries() -> Callable[[str], Path]:
    """Finds what `make tools` built; without it there are no servers and no kubelet."""

    def find(name: str) -> Path:
        with contextlib.suppress(ToolError):
            return build.binary(name)
        return pytest.skip("`make tools` was not run on this machine")

    return find


@pytest.fixture(scope="module")
def device_class(node_api: Api) -> Iterator[None]:
    """The class of NVIDIA's chart."""
    expression = f"device.driver == '{CLASS}' && device.attributes['{CLASS}'].type == 'gpu'"
    node_api.create(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceClass",
            "metadata": {"name": CLASS},
            "spec": {"selectors": [{"cel": {"expression": expression}}]},
        }
    )
    yield
    node_api.delete("resource.k8s.io/v1/DeviceClass", CLASS)


@pytest.fixture(scope="module")
def plugin(
    back_end: NvmlBackEnd, device_class: None, real_node: RealNode, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[PluginProcess]:
    """The plugin's own command, registered at the kubelet, with the GPUs that are here."""
    toolkit = "/dev/null" if "without" in back_end.edits_from else back_end.edits_from
    process = PluginProcess(
        real_node,
        tmp_path_factory.mktemp("plugin") / "plugin.log",
        fleet=None,
        options=("--driver-root", DRIVER_ROOT, "--toolkit", toolkit),
    )
    with contextlib.closing(process):
        process.start()
        yield process


@pytest.fixture(scope="module")
def image(real_node: RealNode, tmp_path_factory: pytest.TempPathFactory) -> str:
    """An image with busybox, the program that computes, and the C library: nothing of NVIDIA's is in it."""
    folder = tmp_path_factory.mktemp("image")
    program = folder / "cuda-probe"
    done = subprocess.run(
        ["cc", "-O1", "-o", str(program), str(PROGRAM), "-ldl"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    files = {path.lstrip("/"): (Path(path).read_bytes(), 0o755) for path in libraries(program)}
    files["bin/cuda-probe"] = (program.read_bytes(), 0o755)
    parents = {str(each) for path in files for each in list(Path(path).parents)[:-1]}
    folders = dict.fromkeys(sorted(parents - {"bin"}), 493)
    busybox = images.layer(debian.program("busybox-static", "bin/busybox"))
    archive = folder / "image.tar"
    layers = (busybox, oci_archive.layer(files, folders=folders, links={}))
    oci_archive.write(archive, [oci_archive.Image(name=IMAGE, layers=layers, config=images.ENVIRONMENT)])
    real_node.import_images(archive)
    return IMAGE


def libraries(program: Path) -> list[str]:
    """Files of the C library that a program needs, and those that NVIDIA's libraries need of it."""
    printed = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    found = re.findall(r"(/\S+) \(0x", printed)
    [place] = {str(Path(path).parent) for path in found if Path(path).name == "libc.so.6"}
    names = ("libdl.so.2", "libm.so.6", "libpthread.so.0", "librt.so.1")
    return [*found, *(f"{place}/{name}" for name in names if f"{place}/{name}" not in found)]


@pytest.fixture
def pods(
    plugin: PluginProcess, image: str, workloads: Workloads, node_api: Api, real_node: RealNode
) -> Iterator[Workloads]:
    """Pods and claims; when the test has ended they are gone, and so are the specs of their devices."""
    yield workloads
    workloads.remove_all()
    assert not list(real_node.cdi_folder.glob("*.json"))


def computing(pods: Workloads, name: str = "main", *, claim: bool = True) -> dict[str, Any]:
    """A container that computes and stays. Its variable is that of docs/node-plugin.md for images of another family of systems."""
    return pods.container(
        name,
        script="ls /dev; cuda-probe; echo that is all",
        image=IMAGE,
        env=[{"name": "LD_LIBRARY_PATH", "value": ":".join(f"/{folder}" for folder in LIBRARY_FOLDERS)}],
        resources={"claims": [{"name": "gpu"}]} if claim else {},
    )


def devices_of(api: Api) -> list[dict[str, Any]]:
    """What the API server has of the node's devices."""
    return [device for each in api.list(SLICE) for device in each["spec"]["devices"]]


def test_the_server_has_the_devices_as_they_were_found(pods: Workloads, back_end: NvmlBackEnd, node_api: Api):
    stored = {each["name"]: each["attributes"] for each in devices_of(node_api)}
    assert stored.keys() == {each.name for each in back_end.inventory().devices}
    assert all("uuid" in attributes for attributes in stored.values())


def test_a_container_with_a_claim_computes_on_its_gpu_and_the_one_beside_it_sees_none(
    pods: Workloads, node_api: Api
):
    device = devices_of(node_api)[0]
    uuid = device["attributes"]["uuid"]["string"]
    chosen = f"device.attributes['{CLASS}'].uuid == '{uuid}'"
    pods.claim("one", request(selectors=[{"cel": {"expression": chosen}}]))
    pods.pod(
        "pod",
        computing(pods, "with"),
        computing(pods, "without", claim=False),
        resourceClaims=[{"name": "gpu", "resourceClaimName": "one"}],
    )
    told = pods.wait_for_log("pod", "that is all", "with")
    assert re.search(rf"^{uuid} \d+$", told, re.MULTILINE), told
    assert "nvidiactl" in told
    beside = pods.wait_for_log("pod", "that is all", "without")
    assert "no CUDA: libcuda.so.1" in beside
    assert "nvidia" not in beside.replace("no CUDA: libcuda.so.1", "")
    [result] = pods.api.get(CLAIM, "one", namespace=pods.namespace)["status"]["allocation"]["devices"][
        "results"
    ]
    assert result["device"] == device["name"]


def test_a_pod_waits_for_the_gpu_until_the_one_that_has_it_is_gone(pods: Workloads, node_api: Api):
    count = len(devices_of(node_api))
    pods.claim("all", request(count))
    pods.claim("late")
    for name in ("all", "late"):
        pods.pod(
            name,
            pods.container(resources={"claims": [{"name": "gpu"}]}),
            resourceClaims=[{"name": "gpu", "resourceClaimName": name}],
        )
        if name == "all":
            pods.wait_running(name)
    pods.wait_not_placed("late", "cannot allocate all claims")
    pods.delete("all")
    pods.wait_running("late")


def test_a_pod_that_comes_after_a_restart_of_the_plugin_shares_the_gpu_of_the_one_before(
    pods: Workloads, plugin: PluginProcess
):
    pods.claim("one")
    claims = [{"name": "gpu", "resourceClaimName": "one"}]
    pods.pod("before", computing(pods), resourceClaims=claims)
    told = [pods.wait_for_log("before", "that is all")]
    plugin.stop()
    plugin.start()
    pods.pod("after", computing(pods), resourceClaims=claims)
    told.append(pods.wait_for_log("after", "that is all"))
    uuids = {found[1] for each in told if (found := re.search(r"^(GPU-\S+) \d+$", each, re.MULTILINE))}
    assert len(uuids) == 1, told
    assert all(re.search(r"^GPU-\S+ \d+$", each, re.MULTILINE) for each in told), told
