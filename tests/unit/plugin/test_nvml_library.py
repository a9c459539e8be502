from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pynvml
import pytest

from dra_infra.errors import PluginError, Problem
from dra_infra.plugin.back_ends.nvml import NvmlBackEnd
from tests.unit.plugin.fake_nvml import ERRORS, FakeGpu, FakeNvml
from tests.unit.plugin.faults import claim_of


def told(fake: FakeNvml, system: Path, **more) -> Problem:
    plugin = NvmlBackEnd(pynvml=fake, system=system, toolkit="", **more)
    with pytest.raises(PluginError) as caught:
        plugin.inventory()
    [problem] = caught.value.problems
    plugin.close()
    return problem


@pytest.mark.parametrize("error", ERRORS)
def test_whatever_nvml_says_at_its_start_is_a_clear_error(error: int, tmp_path: Path):
    fake = FakeNvml(FakeGpu(minor=0, uuid="GPU-0"))
    fake.fail("nvmlInitWithFlags", error)
    problem = told(fake, tmp_path)
    assert problem.code == "nvml-not-usable"
    assert "/dev/nvidiactl is not there" in problem.message
    assert "/proc/driver/nvidia/version is not there" in problem.message
    assert problem.hint


@pytest.mark.parametrize(
    ("error", "said", "hint"),
    [
        (pynvml.NVML_ERROR_LIBRARY_NOT_FOUND, "libnvidia-ml.so.1 was not found", "--driver-root"),
        (pynvml.NVML_ERROR_DRIVER_NOT_LOADED, "kernel module nvidia is not loaded", "modprobe"),
        (pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH, "different versions", "restart the node"),
        (pynvml.NVML_ERROR_NO_PERMISSION, "may not be asked", "root"),
        (pynvml.NVML_ERROR_MEMORY, "Insufficient Memory", "dmesg"),
    ],
)
def test_the_usual_errors_say_what_to_do(error: int, said: str, hint: str, tmp_path: Path):
    fake = FakeNvml()
    fake.fail("nvmlInitWithFlags", error)
    problem = told(fake, tmp_path)
    assert said in problem.message
    assert hint in problem.hint


def test_what_is_there_of_the_driver_is_told(tmp_path: Path):
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/nvidiactl").touch()
    module = tmp_path / "proc/driver/nvidia/version"
    module.parent.mkdir(parents=True)
    module.write_text("NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.126.20  Mon Jan  5\n")
    fake = FakeNvml()
    fake.fail("nvmlInitWithFlags", pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH)
    message = told(fake, tmp_path).message
    assert "/dev/nvidiactl is there" in message
    assert "/dev/nvidia0 is not there" in message
    assert "/proc/driver/nvidia/version says 580.126.20" in message


def test_no_gpu_is_an_error_that_says_where_to_look(tmp_path: Path):
    problem = told(FakeNvml(), tmp_path)
    assert problem.code == "nvml-not-usable"
    assert "sees no GPU" in problem.message
    assert "vfio-pci" in problem.hint


def test_a_library_that_cannot_be_loaded_is_named(tmp_path: Path):
    library = tmp_path / "usr/lib64/libnvidia-ml.so.1"
    library.parent.mkdir(parents=True)
    library.write_bytes(b"no library")
    fake = FakeNvml()
    fake.nvmlLib = None
    problem = told(fake, tmp_path, driver_root=str(tmp_path))
    assert problem.code == "nvml-not-usable"
    assert str(library) in problem.message


def test_a_library_is_found_by_links_that_start_at_the_root_of_the_node(tmp_path: Path):
    folder = tmp_path / "usr/lib/x86_64-linux-gnu"
    (folder / "nvidia/current").mkdir(parents=True)
    (folder / "nvidia/current/libnvidia-ml.so.1").write_bytes(b"no library")
    alternatives = tmp_path / "etc/alternatives"
    alternatives.mkdir(parents=True)
    (folder / "libnvidia-ml.so.1").symlink_to("/etc/alternatives/libnvidia-ml.so.1")
    (alternatives / "libnvidia-ml.so.1").symlink_to(
        f"/{folder.relative_to(tmp_path)}/nvidia/current/libnvidia-ml.so.1"
    )
    fake = FakeNvml()
    fake.nvmlLib = None
    message = told(fake, tmp_path, driver_root=str(tmp_path)).message
    assert f"{folder}/libnvidia-ml.so.1 cannot be loaded" in message, "it was found, and is none"


def test_nvml_is_asked_again_after_it_failed_and_claims_are_released_without_it(tmp_path: Path):
    fake = FakeNvml(FakeGpu(minor=0, uuid="GPU-0"))
    fake.fail("nvmlInitWithFlags", pynvml.NVML_ERROR_DRIVER_NOT_LOADED)
    plugin = NvmlBackEnd(pynvml=fake, system=tmp_path, toolkit="")
    with pytest.raises(PluginError):
        plugin.prepare(claim_of(1, "gpu-0"))
    plugin.release(claim_of(1, "gpu-0"))
    fake.failing.clear()
    assert [each.name for each in plugin.inventory().devices] == ["gpu-0"]
    plugin.close()


def test_the_real_bindings_on_a_machine_without_a_driver_say_what_was_tried():
    """No fake: nvidia-ml-py itself. In a process of its own, for the bindings keep what they loaded."""
    if Path("/proc/driver/nvidia/version").exists():
        pytest.skip("this machine has NVIDIA's driver")
    program = (
        "from dra_infra.errors import PluginError\n"
        "from dra_infra.plugin.back_ends.nvml import NvmlBackEnd\n"
        "plugin = NvmlBackEnd()\n"
        "try:\n    plugin.inventory()\n"
        "except PluginError as error:\n    print(error.problems[0].code, error.problems[0].message)\n"
        "plugin.close()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(
        "nvml-not-usable libnvidia-ml.so.1 was not found: tried /libnvidia-ml.so.1, "
    )
    assert "/usr/lib64/libnvidia-ml.so.1" in done.stdout
    assert "/dev/nvidiactl is not there" in done.stdout
