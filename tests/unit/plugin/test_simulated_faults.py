"""Simulated devices do what a file tells them: fail, go, come back, keep pods waiting."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from dra_infra.errors import PluginError, Problem
from dra_infra.plugin.back_end import Health
from dra_infra.plugin.back_ends.sim import SimulatedBackEnd
from dra_infra.plugin.back_ends.sim_commands import (
    Commands,
    bind,
    disturb,
    fail,
    heal,
    hold,
    read_commands,
    unhold,
    withdraw,
    write_commands,
)
from dra_infra.plugin.claims import ClaimReference
from tests.unit.plugin.faults import claim_of, codes, uid_of

NODE = "node-1"


class Told:
    """A node whose devices are told what to do."""

    def __init__(self, folder: Path, fleet: str = "hgx-h100 driver=0.5") -> None:
        self.path = folder / "commands.yaml"
        self.noticed: list[Problem] = []
        self.back_end = SimulatedBackEnd(
            fleet,
            node=NODE,
            folder=folder / "sim",
            commands=self.path,
            boot_id="boot-1",
            noticed=self.noticed.extend,
        )

    def tell(self, commands: Commands) -> None:
        write_commands(self.path, commands)

    def taints(self) -> dict[str, list[tuple[str, str, str]]]:
        devices = self.back_end.inventory().devices
        return {
            each.name: [(taint.key, taint.value or "", taint.effect) for taint in each.taints]
            for each in devices
            if each.taints
        }


@pytest.fixture
def told(tmp_path: Path) -> Told:
    return Told(tmp_path)


def test_an_xid_taints_the_device_and_shows_in_its_health_until_it_is_healed(told: Told):
    before = told.back_end.inventory()
    told.tell(fail(Commands(), "gpu-3", xid=79, message="fell off the bus"))
    assert told.taints() == {"gpu-3": [("gpu.nvidia.com/xid", "79", "NoSchedule")]}
    assert told.back_end.inventory().health == {
        "gpu-3": Health(state="unhealthy", message="fell off the bus")
    }
    told.tell(heal(read_commands(told.path), "gpu-3"))
    assert told.back_end.inventory() == before


def test_an_xid_that_programs_cause_keeps_no_pod_away(told: Told):
    told.tell(fail(Commands(), "gpu-3", xid=31))
    assert told.taints() == {"gpu-3": [("gpu.nvidia.com/xid", "31", "None")]}
    assert told.back_end.inventory().health["gpu-3"].state == "healthy"


def test_a_lost_gpu_takes_its_mig_devices_with_it(tmp_path: Path):
    told = Told(tmp_path, "a100-80gb mig=1g.10gb*7 driver=0.5")
    told.tell(fail(Commands(), "gpu-2"))
    assert len(told.taints()) == 7
    assert {taint for each in told.taints().values() for taint in each} == {
        ("gpu.nvidia.com/gpu-lost", "", "NoSchedule")
    }
    assert all(name.startswith("gpu-2-mig-") for name in told.taints())


def test_an_xid_of_a_mig_device_is_that_devices_alone(tmp_path: Path):
    told = Told(tmp_path, "hgx-h100 dynamic-mig driver=0.5")
    told.tell(fail(Commands(), "gpu-0-mig-1g10gb-19-0", xid=94))
    assert list(told.taints()) == ["gpu-0-mig-1g10gb-19-0"]


def test_a_pretended_device_gets_a_taint_of_its_own_driver(tmp_path: Path):
    told = Told(tmp_path, "example")
    told.tell(fail(Commands(), "gpu-1", message="too hot"))
    assert told.taints() == {"gpu-1": [("gpu.example.com/unhealthy", "", "NoSchedule")]}
    assert told.back_end.inventory().health["gpu-1"] == Health(state="unhealthy", message="too hot")


def test_a_device_that_is_gone_is_neither_offered_nor_prepared(told: Told):
    told.back_end.prepare(claim_of(1, "gpu-1"))
    told.tell(withdraw(Commands(), "gpu-1"))
    assert "gpu-1" not in [each.name for each in told.back_end.inventory().devices]
    with pytest.raises(PluginError) as caught:
        told.back_end.prepare(claim_of(2, "gpu-1"))
    assert codes(caught.value) == ["device-not-allocatable"]
    told.back_end.release(claim_of(1, "gpu-1"))
    assert not told.back_end.hardware.uses()


def test_preparing_fails_with_the_text_that_was_given_and_what_was_done_is_undone(tmp_path: Path):
    told = Told(tmp_path, "hgx-h100 dynamic-mig")
    device = "gpu-0-mig-1g10gb-19-0"
    told.tell(disturb(Commands(), claim="ml/claim-1", error="the GPU does not answer"))
    with pytest.raises(PluginError) as caught:
        told.back_end.prepare(claim_of(1, device))
    assert codes(caught.value) == ["sim-told-to-fail"]
    assert caught.value.problems[0].path == "ResourceClaim ml/claim-1"
    assert caught.value.problems[0].message == "the GPU does not answer"
    assert list(told.back_end.hardware.made()) == [device]
    told.back_end.release(claim_of(1, device))
    assert not told.back_end.hardware.made()
    told.back_end.prepare(claim_of(2, device))


def test_preparing_takes_longer_for_the_device_that_is_named_and_ends_with_the_back_end(told: Told):
    told.tell(disturb(Commands(), device="gpu-1", seconds=600))
    told.back_end.prepare(claim_of(1, "gpu-0"))
    slow = threading.Thread(target=told.back_end.prepare, args=[claim_of(2, "gpu-1")])
    slow.start()
    slow.join(0.05)
    assert slow.is_alive()
    told.back_end.close()
    slow.join(60)
    assert not slow.is_alive()


def test_a_mig_device_takes_its_time_to_be_made_and_no_time_where_it_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    back_end = SimulatedBackEnd(
        "hgx-h100 dynamic-mig", node=NODE, folder=tmp_path, boot_id="boot-1", mig_delay=0.05
    )
    began = time.monotonic()
    back_end.prepare(claim_of(1, "gpu-0-mig-1g10gb-19-0"))
    assert time.monotonic() - began >= 0.05
    waits: list[float] = []
    monkeypatch.setattr(back_end._commands.ended, "wait", waits.append)
    back_end.prepare(claim_of(1, "gpu-0-mig-1g10gb-19-0"))
    assert waits == []
    back_end.prepare(claim_of(2, "gpu-1-mig-1g10gb-19-0"))
    assert waits == [0.05]


def test_a_pod_waits_for_a_device_until_a_command_says_that_it_is_bound(told: Told):
    reference = ClaimReference(namespace="ml", name="trainer", uid=uid_of(1))
    told.tell(hold(Commands(), "gpu-6"))
    waiting = {each.name: each for each in told.back_end.inventory().devices if each.binding_conditions}
    assert list(waiting) == ["gpu-6"]
    assert waiting["gpu-6"].binding_conditions == ["BindingConditions"]
    assert waiting["gpu-6"].binding_failure_conditions == ["BindingFailureConditions"]
    assert told.back_end.binding(reference, "gpu-6") is None
    told.tell(bind(read_commands(told.path), "ml/trainer", failed="no room"))
    failed = told.back_end.binding(reference, "gpu-6")
    assert failed
    assert (failed.state, failed.message) == ("failed", "no room")
    told.tell(bind(read_commands(told.path), uid_of(1), device="gpu-6"))
    met = told.back_end.binding(reference, "gpu-6")
    assert met
    assert met.state == "met"
    assert told.back_end.binding(ClaimReference(namespace="x", name="y", uid=uid_of(2)), "gpu-6") is None


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("devices: [gpu-0]", "devices"),
        ("devices: {gpu-3: {xidd: 79}}", "devices.gpu-3.xidd"),
        ("devices: {gpu-3: {xid: many}}", "devices.gpu-3.xid"),
        ("prepare: [{seconds: -1}]", "prepare.0.seconds"),
        ("bindings: [{state: met}]", "bindings.0.claim"),
        ("devices: {gpu-3", ""),
    ],
)
def test_a_malformed_file_is_told_once_and_the_last_good_one_holds(told: Told, text: str, where: str):
    told.tell(fail(Commands(), "gpu-3", xid=79))
    before = told.back_end.inventory()
    told.path.write_text(text)
    assert told.back_end.inventory() == before
    assert told.back_end.inventory() == before
    assert [each.code for each in told.noticed] == ["sim-commands-malformed"]
    assert told.noticed[0].path == (f"{told.path}: {where}" if where else str(told.path))
    told.path.unlink()
    assert not told.taints()


def test_a_device_that_is_not_there_is_warned_of_and_the_others_fail(told: Told):
    told.tell(fail(fail(Commands(), "gpu-33"), "gpu-3", xid=79))
    assert list(told.taints()) == ["gpu-3"]
    assert [(each.code, each.severity) for each in told.noticed] == [("sim-commands-malformed", "warning")]
    assert told.noticed[0].path.endswith("gpu-33")
    assert told.noticed[0].hint == "did you mean gpu-3?"
    told.tell(fail(Commands(), "card-1"))
    assert not told.taints()
    assert told.noticed[-1].hint == "it has gpu-0, gpu-1, gpu-2 and 5 more"


def test_who_watches_is_called_when_the_file_changes(told: Told):
    called = threading.Event()
    told.back_end.watch(called.set)
    try:
        told.tell(fail(Commands(), "gpu-3", xid=79))
        # As another thread may do at any time: it is the first to see the change.
        told.back_end.inventory()
        assert called.wait(60)
    finally:
        told.back_end.close()


def test_what_is_written_is_what_is_read_and_is_both_yaml_and_json(tmp_path: Path):
    commands = hold(
        bind(disturb(fail(withdraw(Commands(), "gpu-1"), "gpu-0", xid=79), seconds=2), "ml/a"), "gpu-2"
    )
    write_commands(tmp_path / "commands", commands)
    assert read_commands(tmp_path / "commands") == commands
    assert json.loads((tmp_path / "commands").read_text())["devices"]["gpu-0"] == {"xid": 79}
    assert heal(commands).devices == {}
    assert heal(commands).prepare == ()
    assert heal(commands).bindings == commands.bindings
    assert unhold(hold(commands, "gpu-3"), "gpu-2").binding_conditions == ("gpu-3",)
    assert (
        unhold(hold(commands)) == unhold(commands) == commands.model_copy(update={"binding_conditions": ()})
    )


def test_a_gpu_that_is_passed_through_is_offered_in_no_other_way(tmp_path: Path):
    told = Told(tmp_path, "l40s vfio")
    names = [each.name for each in told.back_end.inventory().devices]
    told.back_end.prepare(claim_of(1, "gpu-vfio-0"))
    assert set(names) - {each.name for each in told.back_end.inventory().devices} == {"gpu-0"}
    with pytest.raises(PluginError) as caught:
        told.back_end.prepare(claim_of(2, "gpu-0"))
    assert codes(caught.value) == ["device-held"]
    told.back_end.release(claim_of(1, "gpu-vfio-0"))
    assert [each.name for each in told.back_end.inventory().devices] == names


@pytest.mark.parametrize(
    ("change", "where"),
    [
        (lambda: fail(Commands(), "gpu-0", xid=0), "sim: devices.gpu-0.xid"),
        (lambda: fail(Commands(), ""), "sim: devices."),
        (lambda: disturb(Commands(), seconds=-1), "sim: prepare.0.seconds"),
        (lambda: bind(Commands(), ""), "sim: bindings.0.claim"),
        (lambda: bind(Commands(), "trainer"), "sim: bindings.0.claim"),
        (lambda: bind(Commands(), "ml/a/b"), "sim: bindings.0.claim"),
        (lambda: bind(Commands(), "ml/a", device="GPU_0"), "sim: bindings.0.device"),
        (lambda: disturb(Commands(), claim="trainer", seconds=1), "sim: prepare.0.claim"),
        (lambda: fail(Commands(), "GPU_0"), "sim: devices.GPU_0"),
        (lambda: hold(Commands(), "GPU_0"), "sim: bindingConditions.0"),
        (lambda: unhold(hold(Commands()), "gpu-0"), "sim: bindingConditions: gpu-0"),
    ],
)
def test_a_command_that_cannot_be_is_refused_before_it_is_written(change: Callable[[], Commands], where: str):
    with pytest.raises(PluginError) as caught:
        change()
    assert codes(caught.value) == ["sim-commands-malformed"]
    assert caught.value.problems[0].path.startswith(where)
