"""Two instances of the plugin on one node, as a rolling update with a surge has them, or somebody who starts a second one."""

from __future__ import annotations

import itertools
import json
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from dra_infra.plugin.claims import Claim
from tests.e2e.attacks.conftest import Loot
from tests.support.plugin.kubelet import Connection
from tests.support.plugin.whole_plugin import SECONDS, Machine, machine_in, wait_until

pytestmark = pytest.mark.e2e

UIDS = ("00000001-0000-4000-8000-000000000000", "00000002-0000-4000-8000-000000000000")
DEVICES = 8
CLAIMS_OF_A_DEVICE = 4


@pytest.fixture
def machine() -> Iterator[Machine]:
    with tempfile.TemporaryDirectory(dir="/tmp") as folder, machine_in(Path(folder)) as found:
        yield found


def given(machine: Machine) -> Counter[str]:
    """How many claims have each device, by the specs that a runtime reads."""
    specs = [json.loads(each.read_text()) for each in machine.cdi.glob("*.json")]
    names = [device["name"].rpartition("-gpu-")[2] for spec in specs for device in spec["devices"]]
    return Counter(f"gpu-{each}" for each in names)


def test_no_device_is_given_twice_by_two_instances(machine: Machine, loot: Loot) -> None:
    for uid in UIDS:
        machine.start_and_register("--pod-uid", uid)
    wait_until(lambda: machine.told("published"))
    writes = machine.server.writes()
    numbers = itertools.count(1)
    claims = [
        machine.allocate(next(numbers), f"gpu-{number}")
        for _ in range(CLAIMS_OF_A_DEVICE)
        for number in range(DEVICES)
    ]
    kubelets = list(machine.kubelet.plugins.values())

    def prepare(claim: Claim, kubelet: Connection) -> tuple[Claim, str, str]:
        answer = kubelet.prepare(claim, timeout=SECONDS)[claim.uid]
        return claim, answer.error, "".join(each.cdi_device_ids[0] for each in answer.devices)

    def release(claim: Claim, kubelet: Connection) -> str:
        return str(kubelet.release(claim, timeout=SECONDS)[claim.uid].error)

    with ThreadPoolExecutor(16) as callers:
        # Each claim is asked of both: a kubelet that was restarted asks again.
        pairs = [(claim, kubelet) for claim in claims for kubelet in kubelets]
        answers = list(callers.map(lambda pair: prepare(*pair), pairs))
        for device, number in given(machine).items():
            loot.add_if(number != 1, f"{device} for {number} claims")
        prepared = {claim.uid for claim, error, _ in answers if not error}
        loot.add_if(len(prepared) != DEVICES, f"{len(prepared)} claims for {DEVICES} devices")
        refused = {error for _, error, _ in answers if error}
        loot.add_if(not all("[device-held]" in each for each in refused), f"refusals: {refused}")
        ids = {(claim.uid, cdi_id) for claim, error, cdi_id in answers if not error}
        loot.add_if(len(ids) != DEVICES, "a claim with one name at one instance and another at the other")
        errors = set(callers.map(lambda pair: release(*pair), pairs))
        loot.add_if(errors != {""}, f"releases: {errors}")
    loot.add_if(any(machine.prepared()), f"files of claims that were released: {machine.prepared()}")
    loot.add_if(machine.server.writes() != writes, "slices that were written again")


def test_the_instance_that_is_killed_leaves_nothing_that_the_other_does_not_know(
    machine: Machine, loot: Loot
) -> None:
    old = machine.start_and_register("--pod-uid", UIDS[0])
    claim = machine.allocate(1, "gpu-0")
    before = machine.prepare(claim)
    machine.start_and_register("--pod-uid", UIDS[1])
    with Connection(machine.state / f"dra-{UIDS[1]}.sock") as newer:
        machine.kill(old)
        loot.add_if(newer.prepare(claim)[claim.uid] != before, "another answer for a prepared claim")
        other = machine.allocate(2, "gpu-0")
        error = newer.prepare(other)[other.uid].error
        loot.add_if("[device-held]" not in error, f"a device that another claim has: {error or 'given'}")
        loot.add_if(newer.release(claim)[claim.uid].error, "a claim that cannot be released")


TOGETHER = """
import os, pathlib, sys, time
from dra_infra.plugin.command import plugin
folder, look = pathlib.Path(os.environ["MEETING"]), plugin.refuse_others
def look_and_wait(*arguments, **options):
    look(*arguments, **options)
    (folder / f"looked-{os.getpid()}").touch()
    while not (folder / "go").exists():
        time.sleep(0.01)
plugin.refuse_others = look_and_wait
from dra_infra.plugin.command.program import run
sys.exit(run(sys.argv[1:], os.environ))
"""
"""The plugin itself, which goes on when the other one has looked too: else one of the two is registered by chance."""


@pytest.mark.parametrize("uids", [("", ""), UIDS])
def test_of_two_instances_with_state_folders_of_their_own_one_is_left(
    machine: Machine, loot: Loot, uids: tuple[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Neither knows what the other has prepared. They start at once: neither is registered when the other looks."""
    monkeypatch.setenv("MEETING", str(tmp_path))
    processes = [
        machine.start(
            *("--state-folder", str(machine.state.parent / f"state-of-{number}")),
            *(("--pod-uid", uid) if uid else ()),
            program=("-c", TOGETHER),
        )
        for number, uid in enumerate(uids)
    ]

    def ended() -> int:
        return sum(each.poll() is not None for each in processes)

    wait_until(lambda: len(list(tmp_path.glob("looked-*"))) + ended() == 2)
    (tmp_path / "go").touch()
    wait_until(lambda: sum(each["message"] == "started" for each in machine.lines()) + ended() == 2)
    loot.add_if(not ended(), "two instances that give the same devices")
    # Both may have found each other, and are then started anew, one after the other.
    loot.add_if({each.poll() for each in processes} - {None, 1}, "an end without a reason")
    told = "[plugin-already-running]" in machine.log.read_text()
    loot.add_if(ended() and not told, "an end that names no other instance")
