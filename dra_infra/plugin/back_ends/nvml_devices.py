"""GPUs and MIG devices as they are published: what the release line 0.5 of NVIDIA's driver writes for them.

Names and types are those of deviceinfo.go and mig.go in kubernetes-sigs/dra-driver-nvidia-gpu, without the driver's alpha gates.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from dra_infra.model.device import Device, DeviceAttribute, DeviceCapacity
from dra_infra.model.quantity import Quantity
from dra_infra.plugin.back_ends.nvml_gpus import Gpu
from dra_infra.plugin.back_ends.nvml_mig import MigDevice

_LONGEST: Final = 64
"""Characters of an attribute's text: DeviceAttributeMaxValueLength of k8s.io/api/resource/v1."""


def gpu_name(gpu: Gpu) -> str:
    """The name of a whole GPU."""
    return f"gpu-{gpu.minor}"


def mig_name(gpu: Gpu, mig: MigDevice) -> str:
    """The name of a MIG device: gpu-0-mig-1g10gb-me-20-4."""
    profile = re.sub(r"[^a-z0-9-]", "-", mig.profile.lower().replace(".", "")).strip("-")
    return f"gpu-{gpu.minor}-mig-{profile}-{mig.profile_id}-{mig.start}"


def whole_device(gpu: Gpu) -> Device:
    """A GPU that is given out as a whole."""
    return Device(
        name=gpu_name(gpu),
        attributes={**_texts({"type": "gpu", "uuid": gpu.uuid}), **_shared(gpu)},
        capacity=None if gpu.memory is None else _amounts({"memory": gpu.memory}),
    )


def mig_device(gpu: Gpu, mig: MigDevice) -> Device:
    """A MIG device that exists."""
    texts = {"type": "mig", "uuid": mig.uuid, "parentUUID": gpu.uuid, "profile": mig.profile}
    amounts = {
        "memory": mig.memory * 1024**2,
        "multiprocessors": mig.multiprocessors,
        "copyEngines": mig.copy_engines,
        "decoders": mig.decoders,
        "encoders": mig.encoders,
        "jpegEngines": mig.jpeg_engines,
        "ofaEngines": mig.ofa_engines,
        **{f"memorySlice{number}": 1 for number in range(mig.start, mig.start + mig.size)},
    }
    return Device(
        name=mig_name(gpu, mig),
        attributes={**_texts(texts), **_shared(gpu)},
        capacity=_amounts(amounts),
    )


def _shared(gpu: Gpu) -> dict[str, DeviceAttribute]:
    """What a GPU and its MIG devices have in common."""
    versions = {
        "cudaComputeCapability": gpu.compute_capability,
        "driverVersion": gpu.driver_version,
        "cudaDriverVersion": gpu.cuda_driver_version,
    }
    attributes = _texts(
        {
            "productName": gpu.product_name,
            "brand": gpu.brand,
            "architecture": gpu.architecture,
            "addressingMode": gpu.addressing_mode,
            "resource.kubernetes.io/pciBusID": gpu.pci_bus_id,
            "resource.kubernetes.io/pcieRoot": gpu.pcie_root,
        }
    )
    attributes |= {
        name: DeviceAttribute(version=value) for name, value in versions.items() if value is not None
    }
    if gpu.numa_node is not None:
        attributes["resource.kubernetes.io/numaNode"] = DeviceAttribute(int=gpu.numa_node)
    return attributes


def _texts(values: Mapping[str, str | None]) -> dict[str, DeviceAttribute]:
    # One value that the API server refuses would keep all devices of the node from being published.
    return {
        name: DeviceAttribute(string=value)
        for name, value in values.items()
        if value and len(value) <= _LONGEST
    }


def _amounts(values: Mapping[str, int]) -> dict[str, DeviceCapacity]:
    """Whole amounts as the API server prints quantities of the kind BinarySI, 81559Mi, so that what comes back says the same."""
    return {
        name: DeviceCapacity(
            value=Quantity.parse(f"{value // 1024}Ki" if not value % 1024 else f"{value}").canonical()
        )
        for name, value in values.items()
    }
