from __future__ import annotations

import inspect
import re
from pathlib import Path

import pynvml
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_infra.catalog.drivers import drivers
from dra_infra.catalog.gpu_publication import is_estimated
from dra_infra.catalog.mig import mig_products, mig_profiles_of
from dra_infra.catalog.records import fleet_kinds, gpu_products
from dra_infra.errors import PluginError, Problem
from dra_infra.kubernetes.api import Device
from dra_infra.plugin.back_ends.nvml import NvmlBackEnd
from dra_infra.plugin.back_ends.nvml_gpus import find_gpus, version
from dra_infra.plugin.back_ends.nvml_library import Nvml
from tests.unit.plugin.catalogue_gpus import fake_of, make_sysfs, profile_of, published
from tests.unit.plugin.fake_nvml import ERRORS, OPTIONAL, FakeGpu, FakeMig, FakeNvml, FakeProfile

KINDS = sorted(
    name for name, kind in fleet_kinds().items() if kind.gpu and gpu_products()[kind.gpu].memory_mib
)
NAMED = [
    product
    for product in mig_products()
    if gpu_products()[product].memory_mib and any(each.memory_mib for each in mig_profiles_of(product))
]
SMALL = FakeProfile(shape="1_SLICE", id=19, memory_mib=9984, multiprocessors=16)


def back_end(fake: FakeNvml, system: Path, **more) -> NvmlBackEnd:
    return NvmlBackEnd(pynvml=fake, system=system, toolkit="", **more)


def inventory(fake: FakeNvml, system: Path, **more) -> tuple[Device, ...]:
    plugin = back_end(fake, system, **more)
    try:
        return plugin.inventory().devices
    finally:
        plugin.close()


def inventory_or_problems(fake: FakeNvml, system: Path) -> tuple[tuple[Device, ...], tuple[Problem, ...]]:
    try:
        return inventory(fake, system), ()
    except PluginError as error:
        return (), tuple(error.problems)


def mig_gpu(minor: int = 0, *migs: FakeMig | None) -> FakeGpu:
    return FakeGpu(minor=minor, uuid=f"GPU-{minor}", mig_mode=True, profiles=(SMALL,), migs=list(migs))


def small(gi: int, start: int, **more) -> FakeMig:
    return FakeMig(uuid=f"MIG-{gi}", gi=gi, profile=SMALL, start=start, size=1, **more)


def test_the_fake_has_functions_of_the_bindings_with_their_arguments():
    faked = {name[1:]: each for name, each in vars(FakeNvml).items() if name.startswith("_nvml")}
    assert len(faked) > 25
    for name, function in faked.items():
        real = inspect.signature(inspect.unwrap(getattr(pynvml, name))).parameters.values()
        needed = [each for each in real if each.default is inspect.Parameter.empty]
        mine = list(inspect.signature(function).parameters)[1:]
        assert len(needed) <= len(mine) <= len(real), name


@pytest.mark.parametrize("kind", KINDS)
def test_gpus_are_published_as_nvidias_driver_publishes_them(kind: str, tmp_path: Path):
    expected = published(kind)
    make_sysfs(kind, tmp_path)
    found = inventory(fake_of(kind, expected), tmp_path)
    assert [each.name for each in found] == [each.name for each in expected]
    for mine, theirs in zip(found, expected, strict=True):
        assert mine.attributes == theirs.attributes
        assert mine.capacity == theirs.capacity
    assert found == expected


@pytest.mark.parametrize(
    ("kind", "profiles"),
    [
        ("hgx-h100", ("3g.40gb", "2g.20gb", "1g.10gb+me", "1g.10gb")),
        ("hgx-h100", ("1g.20gb", "4g.40gb")),
        ("a100-80gb", ("7g.80gb",)),
        ("a100-40gb", ("3g.20gb", "1g.5gb", "1g.5gb", "1g.10gb")),
        ("a30", ("1g.6gb+me", "1g.6gb", "1g.6gb")),
    ],
)
def test_mig_devices_are_published_as_nvidias_driver_publishes_them(
    kind: str, profiles: tuple[str, ...], tmp_path: Path
):
    assert not is_estimated(fleet_kinds()[kind].gpu, profiles)
    expected = published(f"{kind} mig={'+'.join(f'{name}' for name in profiles)}")
    make_sysfs(kind, tmp_path)
    found = inventory(fake_of(kind, expected, mig=profiles), tmp_path)
    assert found == expected


@pytest.mark.parametrize("product", NAMED)
def test_profiles_have_the_names_that_nvidia_smi_prints(product: str, tmp_path: Path):
    """As go-nvlib makes them of the memory that NVML tells, for every product of which the catalogue knows it."""
    total = gpu_products()[product].memory_mib
    for profile in (each for each in mig_profiles_of(product) if each.memory_mib):
        fake_profile = profile_of(profile, product)
        mig = FakeMig(
            uuid="MIG-1", gi=1, profile=fake_profile, start=profile.placements[0], size=profile.memory_slices
        )
        gpu = FakeGpu(
            minor=0, uuid="GPU-0", memory_mib=total, mig_mode=True, profiles=(fake_profile,), migs=[mig]
        )
        [device] = inventory(FakeNvml(gpu), tmp_path)
        assert device.attributes["profile"].string in (profile.name, profile.older_name)


@given(
    failing=st.dictionaries(
        st.tuples(st.sampled_from(OPTIONAL), st.sampled_from([None, 0, 1])), st.sampled_from(ERRORS)
    )
)
def test_what_is_not_answered_is_left_out_and_nothing_is_made_up(failing, tmp_path_factory):
    """Any subset of queries fails, with any error: what is left says what NVML said."""
    kind = "hgx-h100"
    expected = {each.name: each for each in published(kind)}
    system = tmp_path_factory.mktemp("system")
    make_sysfs(kind, system)
    fake = fake_of(kind, tuple(expected.values()))
    for (function, minor), error in failing.items():
        fake.fail(function, error, minor=minor)
    found, problems = inventory_or_problems(fake, system)
    if problems:
        # Nobody answers: each GPU is named.
        assert [problem.code for problem in problems] == ["gpu-left-out"] * len(expected)
        return
    release = drivers()["gpu.nvidia.com"].newest
    lost = {f"gpu-{minor}" for (_, minor), error in failing.items() if error == pynvml.NVML_ERROR_GPU_IS_LOST}
    assert {each.name for each in found} >= set(expected) - lost - {"gpu-None"}
    for device in found:
        known = expected[device.name]
        assert (device.attributes or {}).items() <= (known.attributes or {}).items()
        assert (device.capacity or {}).items() <= (known.capacity or {}).items()
        assert {"type", "uuid"} <= set(device.attributes or {})
        assert Device.model_validate(device.model_dump(by_alias=True, exclude_none=True)) == device
        for name in device.attributes or {}:
            qualified = name if "/" in name else f"gpu.nvidia.com/{name}"
            assert release.devices["gpu"].presence("attribute", qualified) != "never"


@pytest.mark.parametrize(
    "function", ["nvmlDeviceGetHandleByIndex", "nvmlDeviceGetUUID", "nvmlDeviceGetMinorNumber"]
)
@pytest.mark.parametrize("error", ERRORS)
def test_one_broken_gpu_does_not_hide_the_others(function: str, error: int, tmp_path: Path):
    fake = FakeNvml(*(FakeGpu(minor=minor, uuid=f"GPU-{minor}") for minor in range(3)))
    fake.fail(function, error, minor=1)
    noticed: list[Problem] = []
    found = inventory(fake, tmp_path, noticed=noticed.extend)
    assert [each.name for each in found] == ["gpu-0", "gpu-2"]
    [problem] = noticed
    assert (problem.path, problem.code, problem.severity) == ("GPU 1", "gpu-left-out", "warning")
    assert str(pynvml.NVMLError(error)) in problem.message
    assert "restart the plugin" in problem.hint


def test_a_gpu_that_does_not_say_whether_it_is_in_mig_mode_is_left_out(tmp_path: Path):
    fake = FakeNvml(FakeGpu(minor=0, uuid="GPU-0"), FakeGpu(minor=1, uuid="GPU-1"))
    fake.fail("nvmlDeviceGetMigMode", pynvml.NVML_ERROR_UNKNOWN, minor=0)
    fake.fail("nvmlDeviceGetMigMode", pynvml.NVML_ERROR_FUNCTION_NOT_FOUND, minor=1)
    assert [each.name for each in inventory(fake, tmp_path)] == ["gpu-1"]


def test_a_gpu_in_mig_mode_without_mig_devices_is_not_published(tmp_path: Path):
    noticed: list[Problem] = []
    fake = FakeNvml(mig_gpu(0), FakeGpu(minor=1, uuid="GPU-1"))
    assert [each.name for each in inventory(fake, tmp_path, noticed=noticed.extend)] == ["gpu-1"]
    [problem] = noticed
    assert (problem.path, problem.code) == ("gpu-0", "gpu-left-out")
    with pytest.raises(PluginError) as caught:
        inventory(FakeNvml(mig_gpu(0)), tmp_path)
    assert [(each.code, each.severity) for each in caught.value.problems] == [("gpu-left-out", "error")]


def test_of_mig_devices_those_that_answer_are_published(tmp_path: Path):
    strange = FakeProfile(shape="3_SLICE_GFX", id=77, memory_mib=9984)
    odd = FakeMig(uuid="MIG-9", gi=9, profile=strange, start=4, size=4)
    part = small(3, 3, compute_slices=2)
    fake = FakeNvml(mig_gpu(0, small(1, 0), None, part, small(2, 1), odd))
    fake.gpus[0].profiles = (SMALL, strange)
    noticed: list[Problem] = []
    found = inventory(fake, tmp_path, noticed=noticed.extend)
    assert [each.name for each in found] == ["gpu-0-mig-1g10gb-19-0", "gpu-0-mig-1g10gb-19-1"]
    assert [each.path for each in noticed] == ["MIG device 2 of gpu-0", "MIG device 4 of gpu-0"]
    assert "not as large" in noticed[0].message
    assert "77" in noticed[1].message


def test_older_libraries_tell_profiles_in_their_first_version(tmp_path: Path, monkeypatch):
    fake = FakeNvml(mig_gpu(0, small(1, 0)))
    newer = FakeNvml._nvmlDeviceGetGpuInstanceProfileInfo

    def older(self, handle, profile, version):
        if version != 1:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_FUNCTION_NOT_FOUND)
        return newer(self, handle, profile, version)

    monkeypatch.setattr(FakeNvml, "_nvmlDeviceGetGpuInstanceProfileInfo", older)
    assert [each.name for each in inventory(fake, tmp_path)] == ["gpu-0-mig-1g10gb-19-0"]


def test_mig_devices_have_no_name_without_the_gpus_memory(tmp_path: Path):
    fake = FakeNvml(mig_gpu(0, small(1, 0)), FakeGpu(minor=1, uuid="GPU-1"))
    fake.gpus[0].memory_mib = None
    noticed: list[Problem] = []
    assert [each.name for each in inventory(fake, tmp_path, noticed=noticed.extend)] == ["gpu-1"]
    assert "memory" in noticed[0].message


def test_words_of_newer_libraries_and_values_too_long_are_left_out(tmp_path: Path):
    gpu = FakeGpu(
        minor=0, uuid="GPU-0", name="N" * 65, brand=99, architecture=99, addressing=99, bus_id="1:2.3"
    )
    [device] = inventory(FakeNvml(gpu, driver_version="580.65-beta", cuda=0), tmp_path)
    assert set(device.attributes or {}) == {"type", "uuid", "cudaComputeCapability"}


def test_texts_that_are_none_do_not_hide_other_gpus(tmp_path: Path, monkeypatch):
    """The bindings decode what the library wrote, and a broken GPU may write anything."""

    def broken(self, handle):
        if handle.minor == 0:
            raise UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte")
        return handle.uuid

    fake = FakeNvml(FakeGpu(minor=0, uuid="GPU-0"), FakeGpu(minor=1, uuid="GPU-1"))
    monkeypatch.setattr(FakeNvml, "_nvmlDeviceGetName", broken)
    assert len(inventory(fake, tmp_path)) == 2
    monkeypatch.setattr(FakeNvml, "_nvmlDeviceGetUUID", broken)
    assert [each.name for each in inventory(fake, tmp_path)] == ["gpu-1"]


@pytest.mark.parametrize(
    ("written", "printed"),
    [
        ("570.86.05", "570.86.5"),
        ("580.126", "580.126.0"),
        ("13", "13.0.0"),
        ("1.2.3.4", None),
        ("", None),
        (None, None),
    ],
)
def test_versions_are_semver(written, printed):
    assert version(written) == printed


def test_devices_are_looked_for_once_and_the_session_ends_with_the_plugin(tmp_path: Path):
    fake = FakeNvml(FakeGpu(minor=0, uuid="GPU-0"))
    plugin = back_end(fake, tmp_path)
    assert fake.sessions == 0, "NVML is not needed to release claims"
    assert plugin.inventory() is plugin.inventory()
    assert fake.calls.count("nvmlDeviceGetCount") == 1
    assert fake.sessions == 1
    plugin.close()
    plugin.close()
    assert fake.sessions == 0
    assert fake.freed == 1


def test_discovery_says_all_that_it_knows_of_a_gpu(tmp_path: Path):
    fake = FakeNvml(FakeGpu(minor=3, uuid="GPU-3"))
    nvml = Nvml("/", pynvml=fake)
    [gpu], problems = find_gpus(nvml, tmp_path)
    assert not problems
    assert (gpu.minor, gpu.pci_bus_id, gpu.pcie_root, gpu.numa_node) == (3, "0000:1b:00.0", None, None)
    assert re.fullmatch(r"\d+\.\d+\.\d+", gpu.driver_version or "")
