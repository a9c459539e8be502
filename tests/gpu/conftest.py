"""The NVML back end on real GPUs. Nothing here is faked: on a machine without a GPU each test fails and says what it lacks.

It needs Python with the plugin's requirements and pytest, NVIDIA's driver with nvidia-smi, and root for device files.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping

import pytest

from dra_infra.errors import PluginError
from dra_infra.plugin.back_ends.nvml import NvmlBackEnd

_QUERIES = ("uuid", "name", "pci.bus_id", "memory.total", "driver_version", "compute_cap", "mig.mode.current")


@pytest.fixture(scope="session")
def smi() -> list[Mapping[str, str]]:
    """What `nvidia-smi --query-gpu` says of each GPU."""
    query = f"--query-gpu={','.join(_QUERIES)}"
    text = _run("nvidia-smi", query, "--format=csv,noheader,nounits")
    return [
        dict(zip(_QUERIES, map(str.strip, line.split(",")), strict=True))
        for line in text.splitlines()
        if line
    ]


@pytest.fixture(scope="session")
def smi_list() -> str:
    """What `nvidia-smi -L` says: GPUs and MIG devices."""
    return _run("nvidia-smi", "-L")


@pytest.fixture(scope="session", params=["toolkit", "files"])
def back_end(request: pytest.FixtureRequest) -> Iterator[NvmlBackEnd]:
    """The back end as a node has it: with nvidia-ctk where that is installed, and without."""
    made = NvmlBackEnd(
        driver_root=os.environ.get("NVIDIA_DRIVER_ROOT", "/"),
        toolkit=None if request.param == "toolkit" else "",
    )
    if request.param == "toolkit" and "without" in made.edits_from:
        pytest.skip("nvidia-ctk is not installed here")
    try:
        made.inventory()
    except PluginError as error:
        # Outside of the handler, or pytest shows the handled exception before it.
        told = "\n".join(str(problem) for problem in error.problems)
    else:
        yield made
        made.close()
        return
    pytest.fail(told, pytrace=False)


def _run(*command: str) -> str:
    try:
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout
    except (OSError, subprocess.SubprocessError) as error:
        told = f"{' '.join(command)}: {error}"
    return pytest.fail(told, pytrace=False)
