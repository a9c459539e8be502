from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pynvml
import pytest

from dra_infra.plugin.back_end import Inventory
from dra_infra.plugin.back_ends import nvml_health
from dra_infra.plugin.back_ends.nvml import NvmlBackEnd
from dra_infra.plugin.back_ends.nvml_health import IGNORED_XIDS
from tests.unit.plugin.fake_nvml import ERRORS, FakeGpu, FakeMig, FakeNvml, FakeProfile

PROFILE = FakeProfile(shape="1_SLICE", id=19, memory_mib=9984)
LOST = pynvml.NVML_ERROR_GPU_IS_LOST


class Watched:
    """A back end, and each change that it tells."""

    def __init__(self, fake: FakeNvml, system: Path, **more: Any) -> None:
        self.fake = fake
        self.back_end = NvmlBackEnd(pynvml=fake, system=system, toolkit="", **more)
        self.changes = threading.Semaphore(0)
        self.back_end.watch(self.changes.release)
        self.first = self.back_end.inventory()

    def next(self) -> Inventory:
        assert self.changes.acquire(timeout=60), "nothing was told"
        return self.back_end.inventory()

    def taints(self, inventory: Inventory) -> dict[str, list[tuple[str, str, str]]]:
        return {
            each.name: [(taint.key, taint.value, taint.effect) for taint in each.taints or ()]
            for each in inventory.devices
        }


@contextmanager
def watching(fake: FakeNvml, system: Path, **more: Any) -> Iterator[Watched]:
    watched = Watched(fake, system, **more)
    try:
        yield watched
    finally:
        watched.back_end.close()


@pytest.fixture
def two() -> FakeNvml:
    return FakeNvml(FakeGpu(minor=0, uuid="GPU-0"), FakeGpu(minor=1, uuid="GPU-1"))


@pytest.fixture
def mig() -> FakeNvml:
    migs = [FakeMig(uuid=f"MIG-{gi}", gi=gi, profile=PROFILE, start=gi - 1, size=1) for gi in (1, 2)]
    return FakeNvml(FakeGpu(minor=0, uuid="GPU-0", mig_mode=True, profiles=(PROFILE,), migs=migs))


def test_a_critical_xid_taints_its_gpu_and_stays(two: FakeNvml, tmp_path: Path):
    with watching(two, tmp_path) as watched:
        assert watched.first.health == {}
        two.tell(minor=1, xid=79)
        found = watched.next()
        assert watched.taints(found) == {"gpu-0": [], "gpu-1": [("gpu.nvidia.com/xid", "79", "NoSchedule")]}
        assert found.health["gpu-1"].state == "unhealthy"
        assert "79" in found.health["gpu-1"].message
        two.tell(minor=1, xid=48)
        assert watched.taints(watched.next())["gpu-1"] == [("gpu.nvidia.com/xid", "48", "NoSchedule")]


@pytest.mark.parametrize("xid", sorted(IGNORED_XIDS))
def test_an_ignored_xid_is_told_and_keeps_nobody_away(xid: int, two: FakeNvml, tmp_path: Path):
    with watching(two, tmp_path) as watched:
        two.tell(minor=0, xid=xid)
        found = watched.next()
        assert watched.taints(found)["gpu-0"] == [("gpu.nvidia.com/xid", str(xid), "None")]
        assert found.health == {}


def test_an_ignored_xid_does_not_take_a_critical_one_back(two: FakeNvml, tmp_path: Path):
    with watching(two, tmp_path) as watched:
        two.tell(minor=0, xid=79)
        watched.next()
        two.tell(minor=0, xid=13)
        two.tell(minor=1, xid=13)
        found = watched.next()
        assert watched.taints(found) == {
            "gpu-0": [("gpu.nvidia.com/xid", "79", "NoSchedule")],
            "gpu-1": [("gpu.nvidia.com/xid", "13", "None")],
        }


def test_the_same_event_again_tells_nothing_new(two: FakeNvml, tmp_path: Path):
    with watching(two, tmp_path) as watched:
        for xid in (79, 79, 79, 95):
            two.tell(minor=0, xid=xid)
        watched.next()
        watched.next()
        assert not watched.changes.acquire(blocking=False)


def test_an_xid_of_a_mig_device_taints_that_one(mig: FakeNvml, tmp_path: Path):
    with watching(mig, tmp_path) as watched:
        mig.tell(minor=0, xid=63, gi=2, ci=0)
        taints = watched.taints(watched.next())
        assert not taints["gpu-0-mig-1g10gb-19-0"]
        assert taints["gpu-0-mig-1g10gb-19-1"] == [("gpu.nvidia.com/xid", "63", "NoSchedule")]


def test_an_xid_of_a_whole_gpu_taints_all_its_mig_devices(mig: FakeNvml, tmp_path: Path):
    with watching(mig, tmp_path, driver="gpu.example.com") as watched:
        mig.tell(minor=0, xid=79)
        assert set(map(tuple, watched.taints(watched.next()).values())) == {
            (("gpu.example.com/xid", "79", "NoSchedule"),)
        }


def test_events_of_other_kinds_and_devices_tell_nothing(two: FakeNvml, mig: FakeNvml, tmp_path: Path):
    with watching(two, tmp_path) as watched:
        two.tell(minor=0, xid=1, type_=pynvml.nvmlEventTypeDoubleBitEccError)
        two.tell(minor=0, xid=79)
        assert watched.taints(watched.next())["gpu-0"] == [("gpu.nvidia.com/xid", "79", "NoSchedule")]
        assert not watched.changes.acquire(blocking=False)
    with watching(mig, tmp_path) as watched:
        mig.tell(minor=0, xid=79, gi=7, ci=0)
        mig.tell(minor=0, xid=80, gi=1, ci=0)
        taints = watched.taints(watched.next())
        assert [taint for _, found in sorted(taints.items()) for taint in found] == [
            ("gpu.nvidia.com/xid", "80", "NoSchedule")
        ]


def test_of_lost_gpus_the_others_are_not_blamed(two: FakeNvml, tmp_path: Path):
    with watching(two, tmp_path) as watched:
        two.fail("nvmlDeviceGetMemoryInfo", LOST, minor=1)
        two.tell_error(LOST)
        found = watched.next()
        assert watched.taints(found) == {
            "gpu-0": [],
            "gpu-1": [("gpu.nvidia.com/gpu-lost", "", "NoSchedule")],
        }
        assert found.health["gpu-1"].state == "unhealthy"


def test_where_nvml_cannot_tell_which_gpu_is_lost_all_are(two: FakeNvml, tmp_path: Path):
    with watching(two, tmp_path) as watched:
        two.fail("nvmlDeviceGetUUID", pynvml.NVML_ERROR_UNKNOWN)
        two.tell(minor=0, xid=79)
        found = watched.next()
        assert set(found.health) == {"gpu-0", "gpu-1"}


@pytest.mark.parametrize("error", [each for each in ERRORS if each != pynvml.NVML_ERROR_TIMEOUT])
def test_no_error_ends_the_watch(error: int, two: FakeNvml, tmp_path: Path, monkeypatch):
    monkeypatch.setattr(nvml_health, "_PAUSE_S", 0.01)
    with watching(two, tmp_path) as watched:
        two.tell_error(error)
        two.tell(minor=0, xid=79)
        while not any(taint[1] == "79" for taint in watched.taints(watched.next())["gpu-0"]):
            pass


@pytest.mark.parametrize("error", [pynvml.NVML_ERROR_UNKNOWN, pynvml.NVML_ERROR_UNINITIALIZED])
def test_gpus_of_which_nvml_tells_no_events_any_more_are_not_called_healthy(
    error: int, two: FakeNvml, tmp_path: Path, monkeypatch
):
    monkeypatch.setattr(nvml_health, "_PAUSE_S", 0.01)
    noticed = []
    with watching(two, tmp_path, noticed=noticed.extend) as watched:
        two.fail("nvmlEventSetWait", error)
        found = watched.next()
        assert {name: each.state for name, each in found.health.items()} == {
            "gpu-0": "unknown",
            "gpu-1": "unknown",
        }
        assert [(each.code, each.severity) for each in noticed] == [("nvml-not-usable", "warning")]
        two.failing.clear()
        two.tell(minor=0, xid=79)
        assert watched.next().health["gpu-0"].state == "unhealthy", "it is asked all the while"


@pytest.mark.parametrize("function", ["nvmlDeviceGetSupportedEventTypes", "nvmlDeviceRegisterEvents"])
def test_a_gpu_that_nvml_cannot_watch_is_marked_and_the_others_are_watched(
    function: str, two: FakeNvml, tmp_path: Path
):
    two.fail(function, pynvml.NVML_ERROR_NOT_SUPPORTED, minor=0)
    with watching(two, tmp_path) as watched:
        assert watched.taints(watched.first) == {
            "gpu-0": [("gpu.nvidia.com/unmonitored", "", "None")],
            "gpu-1": [],
        }
        assert watched.first.health["gpu-0"].state == "unknown"
        two.tell(minor=1, xid=79)
        assert watched.next().health["gpu-1"].state == "unhealthy"


def test_without_events_all_gpus_are_marked(two: FakeNvml, tmp_path: Path):
    two.fail("nvmlEventSetCreate", pynvml.NVML_ERROR_UNKNOWN)
    with watching(two, tmp_path) as watched:
        assert {each.state for each in watched.first.health.values()} == {"unknown"}
        assert len(watched.first.health) == 2
    two.gpus[0].events = 0
    two.failing.clear()
    with watching(two, tmp_path) as watched:
        assert set(watched.first.health) == {"gpu-0"}


def test_a_watch_that_ends_by_what_nobody_expected_is_told(two: FakeNvml, tmp_path: Path):
    noticed = []
    with watching(two, tmp_path, noticed=noticed.extend) as watched:
        for events in two.event_sets:
            events.put("no event")
        found = watched.next()
        assert {each.state for each in found.health.values()} == {"unknown"}
        assert [each.code for each in noticed] == ["plugin-failed"]


@pytest.mark.parametrize("error", ERRORS)
def test_no_error_keeps_the_plugin_from_ending(error: int, two: FakeNvml, tmp_path: Path):
    with watching(two, tmp_path):
        two.fail("nvmlEventSetFree", error)
        two.fail("nvmlShutdown", error)
    assert not any(each.name == "nvml-events" for each in threading.enumerate())


def test_the_thread_ends_at_close(two: FakeNvml, tmp_path: Path):
    with watching(two, tmp_path):
        assert any(each.name == "nvml-events" for each in threading.enumerate())
    assert not any(each.name == "nvml-events" for each in threading.enumerate())
    assert two.freed == 1
    assert not two.event_sets
