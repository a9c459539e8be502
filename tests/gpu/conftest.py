"""The NVML back end on real GPUs. Nothing here is faked: on a machine without a GPU each test fails and says what it lacks.

It needs Python with the plugin's requirements and pytest, NVIDIA's driver with nvidia-smi, and root for device files.
NVIDIA_DRIVER_ROOT is the driver's folder where that is not the root.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from dra_infra.errors import PluginError
from dra_infra.plugin.back_ends.driver_files import DriverRoot
from dra_infra.plugin.back_ends.nvml import NvmlBackEnd
from dra_infra.plugin.back_ends.toolkit import find_toolkit

ALONE = importlib.util.find_spec("tools") is None or importlib.util.find_spec("httpx") is None
"""True where the plugin is installed without what our servers and nodes are started with."""

collect_ignore = ["test_pods_on_gpus.py"] if ALONE else []

DRIVER_ROOT = os.environ.get("NVIDIA_DRIVER_ROOT", "/")

_QUERIES = ("uuid", "name", "pci.bus_id", "memory.total", "driver_version", "compute_cap", "mig.mode.current")


def pytest_report_header() -> str:
    """Say what is left out where the plugin is installed alone."""
    return "NOT RUN: pods on GPUs, for the plugin is installed alone" if ALONE else "pods run on a real node"


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
        driver_root=DRIVER_ROOT,
        toolkit=_toolkit() if request.param == "toolkit" else "",
    )
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


def _toolkit() -> str:
    """NVIDIA's toolkit: the one that is installed, else the one that our files build."""
    if installed := find_toolkit(DriverRoot(here=Path(DRIVER_ROOT))):
        return installed
    try:
        from tools import build
        from tools.errors import ToolError
    except ImportError:
        return pytest.skip("nvidia-ctk is not installed here")
    with contextlib.suppress(ToolError):
        return str(build.binary("nvidia-ctk", toolset="nvidia-ctk"))
    return pytest.skip("nvidia-ctk is neither installed nor built: python -m tools.build --only nvidia-ctk")


def _run(*command: str) -> str:
    try:
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout
    except (OSError, subprocess.SubprocessError) as error:
        told = f"{' '.join(command)}: {error}"
    return pytest.fail(told, pytrace=False)
