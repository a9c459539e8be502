from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pynvml
import pytest

from dra_infra.errors import PluginError
from dra_infra.plugin.back_ends.nvml import NvmlBackEnd
from dra_infra.plugin.claims import Claim
from tests.unit.plugin.driver_tree import VERSION, make_tree
from tests.unit.plugin.fake_nvml import FakeGpu, FakeMig, FakeNvml, FakeProfile
from tests.unit.plugin.faults import claim_of, codes

PROFILE = FakeProfile(shape="1_SLICE", id=19, memory_mib=9984)
MIG = "gpu-0-mig-1g10gb-19-0"


KINDS_OF_ERRORS = (
    pynvml.NVML_ERROR_GPU_IS_LOST,
    pynvml.NVML_ERROR_NOT_SUPPORTED,
    pynvml.NVML_ERROR_NOT_FOUND,
    pynvml.NVML_ERROR_UNKNOWN,
)
"""Those that are told apart, and one for all others."""

FUNCTIONS = sorted(name[1:] for name in vars(FakeNvml) if name.startswith("_nvml"))


@pytest.fixture
def fake() -> FakeNvml:
    mig = FakeMig(uuid="MIG-0", gi=3, ci=1, profile=PROFILE, start=0, size=1)
    parted = FakeGpu(minor=0, uuid="GPU-0", mig_mode=True, profiles=(PROFILE,), migs=[mig])
    return FakeNvml(parted, FakeGpu(minor=1, uuid="GPU-1"), driver_version=VERSION)


@pytest.fixture
def plugin(fake: FakeNvml, tmp_path: Path) -> Iterator[NvmlBackEnd]:
    root = make_tree(tmp_path / "root")
    made = NvmlBackEnd(pynvml=fake, driver_root=str(root), toolkit="", system=root)
    yield made
    made.close()


def with_config(claim: Claim, kind: str, **fields) -> Claim:
    config = json.dumps({"apiVersion": "resource.nvidia.com/v1beta1", "kind": kind, **fields})
    return replace(claim, devices=tuple(replace(each, configs=(config,)) for each in claim.devices))


def refusal(plugin: NvmlBackEnd, claim: Claim) -> str:
    with pytest.raises(PluginError) as caught:
        plugin.prepare(claim)
    [problem] = caught.value.problems
    assert problem.code == "needs-vendor-driver"
    assert "DraDriver" in problem.hint
    assert str(claim) in problem.path
    return problem.message


@pytest.mark.parametrize("interval", ["Short", "Medium", "Long"])
def test_slices_of_time_are_not_set(interval: str, plugin: NvmlBackEnd):
    sharing = {"strategy": "TimeSlicing", "timeSlicingConfig": {"interval": interval}}
    assert interval in refusal(plugin, with_config(claim_of(1, "gpu-1"), "GpuConfig", sharing=sharing))


@pytest.mark.parametrize(
    ("device", "kind", "fields"),
    [
        ("gpu-1", "GpuConfig", {}),
        ("gpu-1", "GpuConfig", {"sharing": {"strategy": "TimeSlicing"}}),
        (
            "gpu-1",
            "GpuConfig",
            {"sharing": {"strategy": "TimeSlicing", "timeSlicingConfig": {"interval": "Default"}}},
        ),
        (MIG, "MigDeviceConfig", {}),
        (MIG, "MigDeviceConfig", {"sharing": {"strategy": "TimeSlicing"}}),
    ],
)
def test_a_config_that_changes_nothing_is_taken(device: str, kind: str, fields, plugin: NvmlBackEnd):
    assert len(plugin.prepare(with_config(claim_of(1, device), kind, **fields))) == 1


@pytest.mark.parametrize(("device", "kind"), [("gpu-1", "GpuConfig"), (MIG, "MigDeviceConfig")])
def test_no_daemon_is_started_for_mps(device: str, kind: str, plugin: NvmlBackEnd):
    claim = with_config(claim_of(1, device), kind, sharing={"strategy": "MPS", "mpsConfig": {}})
    assert "MPS" in refusal(plugin, claim)


def test_no_gpu_is_passed_through(plugin: NvmlBackEnd):
    assert "VFIO" in refusal(plugin, with_config(claim_of(1, "gpu-1"), "VfioDeviceConfig"))
    assert "VFIO" in refusal(plugin, claim_of(1, "gpu-vfio-0"))


def test_no_mig_device_is_made_and_no_mode_changed(plugin: NvmlBackEnd, fake: FakeNvml):
    assert "making this MIG device" in refusal(plugin, claim_of(1, "gpu-1-mig-1g10gb-19-0"))
    assert "out of MIG mode" in refusal(plugin, claim_of(1, "gpu-0"))
    # Somebody switches it while the plugin runs.
    fake.gpus[1].mig_mode = True
    assert "out of MIG mode" in refusal(plugin, claim_of(1, "gpu-1"))


def test_a_config_that_nvidias_driver_would_not_decode_is_refused_as_there(plugin: NvmlBackEnd):
    with pytest.raises(PluginError) as caught:
        plugin.prepare(with_config(claim_of(1, "gpu-1"), "GpuConfig", speed="fast"))
    assert codes(caught.value) == ["config-field-not-known"]


@pytest.mark.parametrize("device", ["gpu-1", MIG])
@pytest.mark.parametrize("error", [pynvml.NVML_ERROR_GPU_IS_LOST, pynvml.NVML_ERROR_NOT_FOUND])
def test_a_device_that_is_gone_is_not_given_out(device: str, error: int, plugin: NvmlBackEnd, fake: FakeNvml):
    plugin.inventory()
    fake.fail("nvmlDeviceGetHandleByUUID", error)
    with pytest.raises(PluginError) as caught:
        plugin.prepare(claim_of(1, device))
    [problem] = caught.value.problems
    assert problem.code == "device-not-allocatable"
    assert str(pynvml.NVMLError(error)) in problem.message


def test_all_devices_that_are_not_there_are_told_at_once(plugin: NvmlBackEnd):
    with pytest.raises(PluginError) as caught:
        plugin.prepare(claim_of(1, "gpu-0", "gpu-1", "gpu-9", "gpu-vfio-3"))
    assert codes(caught.value) == ["needs-vendor-driver", "device-not-allocatable", "needs-vendor-driver"]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_whatever_fails_only_explained_errors_come_out(function: str, fake: FakeNvml, tmp_path: Path):
    """Each function, before the start and after it."""
    root = make_tree(tmp_path / "root")
    for error, late in itertools.product(KINDS_OF_ERRORS, (False, True)):
        fake.failing.clear()
        plugin = NvmlBackEnd(pynvml=fake, driver_root=str(root), toolkit="", system=root)
        if late:
            plugin.inventory()
        fake.fail(function, error)
        with suppress(PluginError):
            plugin.inventory()
        with suppress(PluginError):
            plugin.prepare(claim_of(1, MIG, "gpu-1"))
        plugin.release(claim_of(1, MIG, "gpu-1"))
        plugin.close()


def test_nothing_is_changed_by_preparing_and_releasing(plugin: NvmlBackEnd, fake: FakeNvml):
    """Every function that was called asks; the library's others begin with nvmlDeviceSet, Create, Destroy, Reset."""
    plugin.prepare(claim_of(1, MIG, "gpu-1"))
    plugin.release(claim_of(1, MIG, "gpu-1"))
    writing = [name for name in set(fake.calls) if "Get" not in name and "Event" not in name]
    assert writing == ["nvmlInitWithFlags"]
