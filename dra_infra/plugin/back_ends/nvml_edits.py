"""What a GPU or MIG device changes in a container."""

from __future__ import annotations

import os

from dra_infra.errors import PluginError
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
        """Where they come from, for a person."""
        return self._toolkit.program if self._toolkit else "the driver's files, found without nvidia-ctk"

    def whole(self, gpu: Gpu) -> Edits:
        """Of a whole GPU.

        Raises:
            PluginError: `toolkit-failed`, `driver-files-missing`.
        """
        if self._toolkit:
            return _alone(self._toolkit.edits(gpu.uuid))
        return _alone(self._files(gpu))

    def mig(self, gpu: Gpu, mig: MigDevice) -> Edits:
        """Of a MIG device: the GPU's device file, and the two that open the instances.

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
    """With nothing besides from the runtime hook of the toolkit, which takes the variable for its orders."""
    return joined(edits, Edits(env=(VISIBLE_NONE,)))
