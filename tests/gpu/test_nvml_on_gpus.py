from __future__ import annotations

import ctypes
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pynvml
import pytest

from dra_infra.catalog.drivers import drivers
from dra_infra.catalog.mig import MigProfile, mig_profiles_of
from dra_infra.catalog.records import gpu_products
from dra_infra.kubernetes.api import Device, Quantity
from dra_infra.plugin.back_ends.nvml import NvmlBackEnd
from dra_infra.plugin.back_ends.nvml_gpus import version
from dra_infra.plugin.cdi import make_spec
from dra_infra.plugin.claims import Claim, ClaimDevice, DeviceNode, Edits, Record
from dra_infra.plugin.publishing.pools import lay_out
from tests.gpu.conftest import DRIVER_ROOT

pytestmark = pytest.mark.e2e

UID = "00000001-0000-4000-8000-0000000000ab"
CUDA = """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
count = ctypes.c_int()
for result in (cuda.cuInit(0), cuda.cuDeviceGetCount(ctypes.byref(count))):
    assert result == 0, f"CUDA says {result}"
print(count.value)
"""


def value(device: Device, name: str) -> Any:
    attribute = (device.attributes or {}).get(name)
    if attribute is None:
        return None
    return attribute.string if attribute.string is not None else attribute.version or attribute.int_


def claim_of(*names: str) -> Claim:
    devices = tuple(ClaimDevice(pool="node-1", device=name, request="gpu") for name in sorted(names))
    return Claim(uid=UID, namespace="ml", name="gpus", devices=devices)


def whole(back_end: NvmlBackEnd) -> dict[str, Device]:
    devices = back_end.inventory().devices
    return {value(each, "uuid"): each for each in devices if value(each, "type") == "gpu"}


def test_every_gpu_and_mig_device_of_nvidia_smi_is_there(back_end: NvmlBackEnd, smi_list: str, smi):
    parted = {gpu["uuid"] for gpu in smi if gpu["mig.mode.current"] == "Enabled"}
    listed = set(re.findall(r"UUID: ((?:GPU|MIG)-[^)]+)\)", smi_list)) - parted
    assert {value(each, "uuid") for each in back_end.inventory().devices} == listed


def test_gpus_are_what_nvidia_smi_says(back_end: NvmlBackEnd, smi: Sequence[Mapping[str, str]]):
    found = whole(back_end)
    for gpu in smi:
        device = found.get(gpu["uuid"])
        if device is None:
            assert gpu["mig.mode.current"] == "Enabled"
            continue
        assert value(device, "productName") == gpu["name"]
        assert value(device, "driverVersion") == version(gpu["driver_version"])
        assert value(device, "cudaComputeCapability") == version(gpu["compute_cap"])
        address = gpu["pci.bus_id"].lower()
        assert value(device, "resource.kubernetes.io/pciBusID") == address[4:]
        if gpu["memory.total"].isdigit():
            assert device.capacity
            total = Quantity.parse(device.capacity["memory"].value).nanos // 10**9
            assert total // 1024**2 == int(gpu["memory.total"])


def test_names_are_the_minor_numbers_that_the_kernel_module_gave(back_end: NvmlBackEnd):
    for device in whole(back_end).values():
        address = value(device, "resource.kubernetes.io/pciBusID")
        text = Path(f"/proc/driver/nvidia/gpus/{address}/information").read_text()
        told = dict(re.findall(r"^([^:\n]+):\s*(.*?)\s*$", text, re.MULTILINE))
        assert device.name == f"gpu-{told['Device Minor']}"
        assert value(device, "uuid") == told["GPU UUID"]


def test_root_and_numa_node_are_those_of_the_kernel(back_end: NvmlBackEnd):
    for device in back_end.inventory().devices:
        place = Path("/sys/bus/pci/devices") / value(device, "resource.kubernetes.io/pciBusID")
        root = value(device, "resource.kubernetes.io/pcieRoot")
        assert root is None or f"/{root}/" in str(place.resolve())
        numa = int((place / "numa_node").read_text())
        assert value(device, "resource.kubernetes.io/numaNode") == (numa if numa >= 0 else None)


def test_known_products_are_what_the_catalogue_says(back_end: NvmlBackEnd):
    known = gpu_products()
    devices = [each for each in back_end.inventory().devices if value(each, "productName") in known]
    if not devices:
        pytest.skip("the catalogue does not know these GPUs: add them to gpus.yaml with what was found here")
    for device in devices:
        product = known[value(device, "productName")]
        assert value(device, "architecture") == product.architecture
        assert value(device, "cudaComputeCapability") == product.cuda_compute_capability
        # Which of the two a Tesla card is called is up to the release of the driver.
        names = [{"Tesla": "Nvidia"}.get(brand, brand) for brand in (product.brand, value(device, "brand"))]
        assert names[0] in (None, names[1])


def test_mig_profiles_are_what_the_catalogue_says(back_end: NvmlBackEnd):
    """NVML tells profiles and placements of a GPU outside of MIG mode too: nothing is switched."""
    compared = 0
    for uuid, device in whole(back_end).items():
        profiles = mig_profiles_of(value(device, "productName"))
        if not profiles:
            continue
        compared += 1
        handle = pynvml.nvmlDeviceGetHandleByUUID(uuid)
        assert told_profiles(handle) == sorted(map(known, profiles), key=lambda each: each["name"])
    if not compared:
        pytest.skip("the catalogue knows no MIG profiles of these GPUs")


def told_profiles(handle: Any) -> list[dict[str, Any]]:
    """The profiles that NVML tells of a GPU, by name."""
    found = []
    for number in range(pynvml.NVML_GPU_INSTANCE_PROFILE_COUNT):
        try:
            told = pynvml.nvmlDeviceGetGpuInstanceProfileInfo(handle, number)
        except pynvml.NVMLError:
            continue
        places = (pynvml.c_nvmlGpuInstancePlacement_t * 16)()
        count = ctypes.c_uint(16)
        pynvml.nvmlDeviceGetGpuInstancePossiblePlacements(handle, told.id, places, ctypes.byref(count))
        found.append(
            {
                "name": told.name.removeprefix("MIG "),
                "gi_profile_id": told.id,
                "compute_slices": told.sliceCount,
                "memory_slices": {each.size for each in places[: count.value]},
                "placements": tuple(sorted(each.start for each in places[: count.value])),
                "max_instances": told.instanceCount,
                "memory_mib": told.memorySizeMB,
                "multiprocessors": told.multiprocessorCount,
                "copy_engines": told.copyEngineCount,
                "decoders": told.decoderCount,
                "encoders": told.encoderCount,
                "jpeg_engines": told.jpegCount,
                "ofa_engines": told.ofaCount,
            }
        )
    return sorted(found, key=lambda each: each["name"])


def known(profile: MigProfile) -> dict[str, Any]:
    """The same of the catalogue."""
    plain = {name: getattr(profile, name) for name in profile._fields}
    for name in ("attributes", "older_name", "uncertain"):
        del plain[name]
    return plain | {"memory_slices": {profile.memory_slices}}


def test_devices_have_what_nvidias_driver_publishes_always_and_nothing_besides(back_end: NvmlBackEnd):
    release = drivers()["gpu.nvidia.com"].newest
    for device in back_end.inventory().devices:
        type_ = release.devices[value(device, "type")]
        names = {name if "/" in name else f"gpu.nvidia.com/{name}" for name in device.attributes or {}}
        assert names <= set(type_.attributes)
        always = {name for name in type_.attributes if type_.presence("attribute", name) == "always"}
        assert always <= names


def test_healthy_gpus_are_watched(back_end: NvmlBackEnd):
    told = {name: health.message for name, health in back_end.inventory().health.items()}
    assert told == {}


@pytest.mark.parametrize("minor", ["1.34", "1.35", "1.36", "1.37"])
def test_slices_are_accepted_by_our_own_judge(back_end: NvmlBackEnd, minor: str):
    verdict = pytest.importorskip(
        "dra_infra.kubernetes.apiserver.verdict", reason="the plugin is installed alone"
    )
    from dra_infra.kubernetes.api import GATES, Release

    gates = frozenset(gate for gate, states in GATES.items() if minor in states)
    for manifest in manifests(back_end, int(minor.partition(".")[2])):
        assert verdict.judge(manifest, Release(minor=minor, gates=gates)).status == "accepted"


def test_slices_are_accepted_by_a_real_api_server(back_end: NvmlBackEnd):
    pytest.importorskip("tools.cluster", reason="the plugin is installed alone")
    from tools import build
    from tools.cluster import Api, ControlPlane, node
    from tools.errors import ToolError

    try:
        build.binary("kube-apiserver")
    except ToolError:
        pytest.skip("`make tools` was not run on this machine")
    with ControlPlane(binaries=build.binary) as plane, Api.from_kubeconfig(plane.kubeconfig) as api:
        api.create(node("node-1"))
        for manifest in manifests(back_end, 37):
            stored = api.create(manifest)
            assert stored["spec"]["devices"] == manifest["spec"]["devices"], "nothing was dropped or changed"


def manifests(back_end: NvmlBackEnd, minor: int) -> list[dict[str, Any]]:
    specs = lay_out(back_end.inventory(), driver=back_end.driver, node="node-1", minor=minor)
    return [
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": f"node-1-{number}"},
            "spec": {
                **spec,
                "pool": {"name": "node-1", "generation": 1, "resourceSliceCount": len(specs)},
            },
        }
        for number, spec in enumerate(specs)
    ]


def test_what_a_container_gets_is_there_and_opens(back_end: NvmlBackEnd, tmp_path: Path):
    names = [each.name for each in back_end.inventory().devices]
    claim = claim_of(*names)
    edits = tuple(back_end.prepare(claim))
    record = Record(claim=claim, state="completed", preparation="0a1b2c3d", boot_id="boot", edits=edits)
    make_spec(record, back_end.driver)
    for number, each in enumerate(edits):
        assert "NVIDIA_VISIBLE_DEVICES=void" in each.env
        for node in each.device_nodes:
            open_device(node, tmp_path / f"{number}-{Path(node.path).name}")
        for mount in each.mounts:
            assert Path(mount.host_path).exists(), mount
        for hook in each.hooks:
            assert os.access(hook.path, os.X_OK), hook
        own = "/dev/nvidia" + claim.devices[number].device.split("-")[1]
        assert own in [node.path for node in each.device_nodes]


def open_device(node: DeviceNode, place: Path) -> None:
    """Open a device file as a container would; one that is made in the container is made here."""
    path = node.host_path or node.path
    if node.major and not Path(path).exists():
        assert node.type == "c"
        os.mknod(place, 0o600 | 0o020000, os.makedev(node.major, node.minor))
        path = str(place)
    flags = os.O_RDWR if not node.path.startswith("/dev/nvidia-caps/") else os.O_RDONLY
    os.close(os.open(path, flags | os.O_NONBLOCK))


def test_cuda_starts_with_the_libraries_that_a_container_gets(back_end: NvmlBackEnd, tmp_path: Path):
    """In a process that finds NVIDIA's libraries in one folder, under the names that they have in a container."""
    device = back_end.inventory().devices[0]
    [edits] = back_end.prepare(claim_of(device.name))
    folder = library_folder(edits, tmp_path)
    environment = {
        **os.environ,
        "LD_LIBRARY_PATH": str(folder),
        "CUDA_VISIBLE_DEVICES": value(device, "uuid"),
    }
    done = subprocess.run(
        [sys.executable, "-c", CUDA],
        env=environment,
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "1"


def library_folder(edits: Edits, folder: Path) -> Path:
    for mount in edits.mounts:
        name = Path(mount.container_path).name
        if ".so" in name:
            (folder / name).symlink_to(mount.host_path)
    # nvidia-ctk leaves these names to its hook, which has a container's ldconfig make them.
    for name in ("libcuda.so", "libnvidia-ptxjitcompiler.so"):
        soname = folder / f"{name}.1"
        real = next(iter(folder.glob(f"{name}.*.*")), None)
        if real and not soname.exists():
            soname.symlink_to(real)
    return folder


def test_the_commands_check_finds_the_gpus(back_end: NvmlBackEnd):
    command = pytest.importorskip("dra_infra.plugin.command.main", reason="the command is not there yet")
    assert command
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "from dra_infra.plugin.command.main import main; main()",
            "--check",
            "--back-end",
            "nvml",
            "--node-name",
            "node-1",
            "--driver-root",
            DRIVER_ROOT,
            "--toolkit",
            "/dev/null" if "without" in back_end.edits_from else back_end.edits_from,
        ],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )
    # What there is of cluster and kubelet on this machine is not asked here.
    count = len(back_end.inventory().devices)
    told = done.stdout + done.stderr
    assert f"{count} of gpu.nvidia.com" in told
    assert "✓ what containers get" in told
