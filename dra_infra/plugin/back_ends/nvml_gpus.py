"""GPUs and MIG devices of a node, as NVML and the kernel report them.

What is asked, and what each answer is called, is that of NVIDIA's DRA driver (getGpuInfo and getMigDevices in
nvlib.go of kubernetes-sigs/dra-driver-nvidia-gpu), with the words of go-nvlib (device.go). Unlike there, a GPU that
does not answer does not keep the others from being found, and what is not answered is left out.

The kernel says in sysfs which root complex and NUMA node a PCI device has.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from dra_infra.errors import Problem
from dra_infra.plugin.back_ends.nvml_library import Nvml, left_out
from dra_infra.plugin.back_ends.nvml_mig import MigDevice, find_mig_devices

_ADDRESS: Final = re.compile(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]")
_LONG_DOMAIN: Final = re.compile(r"0000(?=[0-9a-f]{4}:)")


def bus_id(written: str) -> str | None:
    """An address as the standard attribute `pciBusID` has it; None where it is none.

    NVML writes domains with eight digits (GetPCIBusID of go-nvlib takes four off), Kubernetes wants four
    (verifyPCIBDFFormat of k8s.io/dynamic-resource-allocation).
    """
    address = _LONG_DOMAIN.sub("", written.lower(), count=1)
    return address if _ADDRESS.fullmatch(address) else None


def pcie_root(address: str, sysfs: Path) -> str | None:
    """The root complex of a device, `pci0000:64`: the first folder of its path, as resolvePCIeRoot of the same has it."""
    try:
        path = (sysfs / "bus/pci/devices" / address).readlink()
    except OSError:
        return None
    parts = path.parts
    if "devices" not in parts or parts[-1] != address:
        return None
    root = parts[parts.index("devices") + 1]
    return root if root.startswith("pci") else None


def numa_node(address: str, sysfs: Path) -> int | None:
    """The NUMA node of a device; None where the kernel says none, which it writes as -1."""
    try:
        node = int((sysfs / "bus/pci/devices" / address / "numa_node").read_text())
    except (OSError, ValueError):
        return None
    return node if node >= 0 else None


_ARCHITECTURES: Final = {
    "KEPLER": "Kepler",
    "MAXWELL": "Maxwell",
    "PASCAL": "Pascal",
    "VOLTA": "Volta",
    "TURING": "Turing",
    "AMPERE": "Ampere",
    "ADA": "Ada Lovelace",
    "HOPPER": "Hopper",
    "BLACKWELL": "Blackwell",
    "RUBIN": "Rubin",
    "UNKNOWN": "Unknown",
}
_BRANDS: Final = {
    "UNKNOWN": "Unknown",
    "QUADRO": "Quadro",
    "TESLA": "Tesla",
    "NVS": "NVS",
    "GRID": "Grid",
    "GEFORCE": "GeForce",
    "TITAN": "Titan",
    "NVIDIA_VAPPS": "NvidiaVApps",
    "NVIDIA_VPC": "NvidiaVPC",
    "NVIDIA_VCS": "NvidiaVCS",
    "NVIDIA_VWS": "NvidiaVWS",
    "NVIDIA_CLOUD_GAMING": "NvidiaCloudGaming",
    "QUADRO_RTX": "QuadroRTX",
    "NVIDIA_RTX": "NvidiaRTX",
    "NVIDIA": "Nvidia",
    "GEFORCE_RTX": "GeForceRTX",
    "TITAN_RTX": "TitanRTX",
}
_ADDRESSING: Final = {"ATS": "ATS", "HMM": "HMM", "NONE": "None"}

_VERSION: Final = re.compile(r"\d+(\.\d+){0,2}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Gpu:
    """A GPU; None is what was not answered.

    Args:
        minor: Number of its device file, /dev/nvidia0; not the index of nvidia-smi.
        memory: Bytes.
        mig: Its MIG devices; None where it is not in MIG mode, so that it is given out as a whole.
    """

    minor: int
    uuid: str
    product_name: str | None
    brand: str | None
    architecture: str | None
    compute_capability: str | None
    driver_version: str | None
    cuda_driver_version: str | None
    addressing_mode: str | None
    pci_bus_id: str | None
    pcie_root: str | None
    numa_node: int | None
    memory: int | None
    mig: tuple[MigDevice, ...] | None
    handle: Any = field(compare=False, repr=False)


def find_gpus(nvml: Nvml, sysfs: Path) -> tuple[tuple[Gpu, ...], tuple[Problem, ...]]:
    """All GPUs that can be given out, and why others cannot.

    Returns:
        The GPUs in NVML's order, and `gpu-left-out` for each GPU and MIG device that is not among them.

    Raises:
        PluginError: `nvml-not-usable`.
    """
    gpus = []
    problems = []
    for index in range(nvml.count()):
        try:
            gpu, more = _find_gpu(nvml, index, sysfs)
        except (nvml.pynvml.NVMLError, UnicodeError) as error:
            problems.append(left_out(f"GPU {index}", f"does not answer: {error}"))
            continue
        gpus.append(gpu)
        problems.extend(more)
    return tuple(gpus), tuple(problems)


def _find_gpu(nvml: Nvml, index: int, sysfs: Path) -> tuple[Gpu, tuple[Problem, ...]]:
    asked, pynvml = nvml.maybe, nvml.pynvml
    handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    # Names of devices, and who they are: without these two it cannot be given out.
    minor = int(pynvml.nvmlDeviceGetMinorNumber(handle))
    uuid = str(pynvml.nvmlDeviceGetUUID(handle))
    memory = asked("nvmlDeviceGetMemoryInfo", handle)
    total = int(memory.total) if memory is not None and memory.total else None
    pci = asked("nvmlDeviceGetPciInfo", handle)
    address = bus_id(_text(pci.busId)) if pci is not None else None
    mig: tuple[MigDevice, ...] | None = None
    problems: tuple[Problem, ...] = ()
    if in_mig_mode(nvml, handle):
        mig, problems = find_mig_devices(nvml, handle, minor=minor, memory=total)
    gpu = Gpu(
        minor=minor,
        uuid=uuid,
        handle=handle,
        product_name=asked("nvmlDeviceGetName", handle) or None,
        brand=_named(pynvml, "NVML_BRAND_", _BRANDS, asked("nvmlDeviceGetBrand", handle)),
        architecture=_named(
            pynvml, "NVML_DEVICE_ARCH_", _ARCHITECTURES, asked("nvmlDeviceGetArchitecture", handle)
        ),
        compute_capability=_joined(asked("nvmlDeviceGetCudaComputeCapability", handle)),
        driver_version=version(asked("nvmlSystemGetDriverVersion")),
        # Not the second version, which needs libcuda, and a plugin's container has none.
        cuda_driver_version=_cuda(asked("nvmlSystemGetCudaDriverVersion")),
        addressing_mode=_named(
            pynvml,
            "NVML_DEVICE_ADDRESSING_MODE_",
            _ADDRESSING,
            asked("nvmlDeviceGetAddressingMode", handle),
        ),
        pci_bus_id=address,
        pcie_root=pcie_root(address, sysfs) if address else None,
        numa_node=numa_node(address, sysfs) if address else None,
        memory=total,
        mig=mig,
    )
    return gpu, problems


def version(written: str | None) -> str | None:
    """A version of three numbers without leading zeros, as semver of the driver prints it; None where it is none."""
    if not written or not _VERSION.fullmatch(written):
        return None
    numbers = [*map(int, written.split(".")), 0, 0]
    return ".".join(map(str, numbers[:3]))


def in_mig_mode(nvml: Nvml, handle: Any) -> bool:
    """True where a GPU is in MIG mode; GPUs and libraries that know nothing of MIG are not. Any other error leaves the GPU out."""
    pynvml = nvml.pynvml
    try:
        current, _pending = pynvml.nvmlDeviceGetMigMode(handle)
    except pynvml.NVMLError as error:
        if error.value in (pynvml.NVML_ERROR_NOT_SUPPORTED, pynvml.NVML_ERROR_FUNCTION_NOT_FOUND):
            return False
        raise
    return bool(current == pynvml.NVML_DEVICE_MIG_ENABLE)


def _named(pynvml: Any, prefix: str, words: dict[str, str], number: int | None) -> str | None:
    """The word for one of NVML's numbers; a number of a newer library has none."""
    numbers = {getattr(pynvml, prefix + name): word for name, word in words.items()}
    return None if number is None else numbers.get(number)


def _joined(pair: tuple[int, int] | None) -> str | None:
    return version(f"{pair[0]}.{pair[1]}") if pair else None


def _cuda(number: int | None) -> str | None:
    """13.0.0 for 13000: thousands are the major number, tens the minor."""
    return version(f"{number // 1000}.{number % 1000 // 10}") if number else None


def _text(value: bytes | str) -> str:
    return value.decode("ascii", "replace") if isinstance(value, bytes) else value
