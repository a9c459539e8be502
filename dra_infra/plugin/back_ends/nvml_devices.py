"""GPUs and MIG devices as release line 0.5 of NVIDIA's driver publishes them, and their container edits.

Names and types are those of deviceinfo.go and mig.go in kubernetes-sigs/dra-driver-nvidia-gpu, without the driver's
alpha gates.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Final

from dra_infra.errors import PluginError
from dra_infra.kubernetes.api import Device, DeviceAttribute, DeviceCapacity, Quantity
from dra_infra.plugin.back_ends.driver_files import (
    VISIBLE_NONE,
    DriverRoot,
    capability_nodes,
    common_files,
    missing,
)
from dra_infra.plugin.back_ends.nvml_gpus import Gpu
from dra_infra.plugin.back_ends.nvml_library import Nvml
from dra_infra.plugin.back_ends.nvml_mig import MigDevice
from dra_infra.plugin.back_ends.toolkit import Toolkit, find_toolkit, joined
from dra_infra.plugin.claims import Edits

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
    """Attributes that a GPU and its MIG devices have in common."""
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


class NvmlEdits:
    """Edits from NVIDIA's toolkit where it is installed, else from the driver's files as we find them.

    Args:
        toolkit: Path of nvidia-ctk; None to look for it, empty or /dev/null to do without.
    """

    def __init__(self, nvml: Nvml, root: DriverRoot, *, toolkit: str | None = None) -> None:
        self._nvml = nvml
        self._root = root
        program = find_toolkit(root) if toolkit is None else toolkit
        self._toolkit = Toolkit(program, root) if program and program != os.devnull else None

    @property
    def source(self) -> str:
        """Source of the edits, for a person."""
        return self._toolkit.program if self._toolkit else "the driver's files, found without nvidia-ctk"

    def whole(self, gpu: Gpu) -> Edits:
        """Edits for a whole GPU.

        Raises:
            PluginError: `toolkit-failed`, `driver-files-missing`.
        """
        if self._toolkit:
            return _alone(self._toolkit.edits(gpu.uuid))
        return _alone(self._files(gpu))

    def mig(self, gpu: Gpu, mig: MigDevice) -> Edits:
        """Edits for a MIG device: the GPU's device file, and the two that open the instances.

        These are added to what the toolkit says, which may lack them (issue 787 of NVIDIA's driver).

        Raises:
            PluginError: `toolkit-failed`, `driver-files-missing`.
        """
        if self._toolkit:
            edits, named = self._toolkit.edits_or_common(mig.uuid)
            if not named:
                edits = joined(edits, self._own(gpu))
        else:
            edits = self._files(gpu)
        nodes = capability_nodes(self._root, gpu.minor, mig.gpu_instance, mig.compute_instance)
        return _alone(joined(edits, Edits(device_nodes=nodes)))

    def _files(self, gpu: Gpu) -> Edits:
        # As it is part of files' names, with the zeros that the published version lacks.
        version = self._nvml.maybe("nvmlSystemGetDriverVersion")
        if not version:
            hint = "see `nvidia-smi` on the node"
            raise PluginError([missing("libcuda.so", "NVML does not tell the driver's version", hint)])
        return joined(common_files(self._root, str(version)), self._own(gpu))

    def _own(self, gpu: Gpu) -> Edits:
        return Edits(device_nodes=(self._root.node(f"/dev/nvidia{gpu.minor}"),))


def _alone(edits: Edits) -> Edits:
    """Add the variable that keeps the toolkit's runtime hook from adding anything."""
    return joined(edits, Edits(env=(VISIBLE_NONE,)))
