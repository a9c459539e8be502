"""kill -9 at every step, one by one and at random: the next start puts everything right."""

from __future__ import annotations

import errno
import os
import tempfile
from itertools import count
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from dra_infra.errors import PluginError
from dra_infra.plugin.claims import Claim
from tests.unit.plugin.faults import SPEC, FaultyDisk, Killed, Node, claim_of, codes, uid_of


def refusals(call, *arguments: object) -> list[str]:
    try:
        call(*arguments)
    except PluginError as error:
        return codes(error)
    return []


def killed_at(node: Node, step: int, call, *arguments: object) -> bool:
    node.faults.arm(step)
    try:
        call(*arguments)
    except Killed:
        return True
    finally:
        node.faults.arm(None)
    return False


def test_a_kill_at_any_step_of_prepare_leaves_all_or_nothing(tmp_path: Path):
    steps = []
    for step in count():
        (folder := tmp_path / str(step)).mkdir()
        node = Node(folder)
        before = node.plugin.prepare(claim_of(1, "gpu-7"))
        died = killed_at(node, step, node.plugin.prepare, claim_of(2, "gpu-0", "gpu-1"))
        node.restart()
        steps.append(uid_of(2) in node.check())
        assert node.plugin.prepare(claim_of(1, "gpu-7")) == before
        node.plugin.prepare(claim_of(2, "gpu-0", "gpu-1"))
        assert node.check() == {uid_of(1), uid_of(2)}
        if not died:
            break
    # The rename of the completed record is the last step: a kill before it is undone.
    assert len(steps) == 15
    assert steps == [False] * 14 + [True]


def test_a_kill_at_any_step_of_release_is_finished_by_the_next_start_or_the_kubelets_next_call(
    tmp_path: Path,
):
    steps = []
    for step in count():
        (folder := tmp_path / str(step)).mkdir()
        node = Node(folder)
        kept = node.plugin.prepare(claim_of(1, "gpu-7"))
        node.plugin.prepare(claim_of(2, "gpu-0", "gpu-1"))
        died = killed_at(node, step, node.plugin.release, uid_of(2))
        node.restart()
        steps.append(uid_of(2) in node.check())
        node.plugin.release(uid_of(2))
        assert node.check() == {uid_of(1)}
        assert node.plugin.prepare(claim_of(1, "gpu-7")) == kept
        if not died:
            break
    assert steps == [True] + [False] * (len(steps) - 1)
    assert len(steps) == 8


def test_a_kill_at_any_step_of_recovery_is_recovered_from(tmp_path: Path):
    for half_way in range(14):
        for step in count():
            (folder := tmp_path / f"{half_way}-{step}").mkdir()
            node = Node(folder)
            node.plugin.prepare(claim_of(1, "gpu-7"))
            assert killed_at(node, half_way, node.plugin.prepare, claim_of(2, "gpu-0", "gpu-1"))
            died = killed_at(node, step, node.restart)
            node.restart()
            assert uid_of(1) in node.check()
            if not died:
                break


@pytest.mark.parametrize("what", ["full", "read-only"])
def test_a_disk_that_refuses_at_any_step_of_prepare_leaves_what_was(tmp_path: Path, what: str):
    refused = 0
    for step in count():
        (folder := tmp_path / str(step)).mkdir()
        node = Node(folder)
        before = node.plugin.prepare(claim_of(1, "gpu-7"))
        node.faults.arm(step, what)
        told = refusals(node.plugin.prepare, claim_of(2, "gpu-0"))
        node.faults.arm(None)
        if not told:
            break
        assert told == ["plugin-folder-not-usable"]
        refused += 1
        assert node.check() == {uid_of(1)}
        assert node.plugin.prepare(claim_of(1, "gpu-7")) == before
        node.plugin.prepare(claim_of(2, "gpu-0"))
        assert node.check() == {uid_of(1), uid_of(2)}
    assert refused == 12


def test_claims_are_released_on_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    node = Node(tmp_path)
    node.plugin.prepare(claim_of(1, "gpu-0"))

    def full(self: FaultyDisk, path: Path, content: bytes, mode: int) -> None:
        path.touch()
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(FaultyDisk, "write_new", full)
    assert refusals(node.plugin.prepare, claim_of(2, "gpu-1")) == ["plugin-folder-not-usable"]
    node.restart()
    node.plugin.release(uid_of(1))
    assert node.check() == frozenset()


def test_a_release_that_the_disk_refuses_goes_on_at_the_kubelets_next_call(tmp_path: Path):
    refused = 0
    for step in count():
        (folder := tmp_path / str(step)).mkdir()
        node = Node(folder)
        node.plugin.prepare(claim_of(1, "gpu-0"))
        node.faults.arm(step, "read-only")
        told = refusals(node.plugin.release, uid_of(1))
        node.faults.arm(None)
        node.plugin.release(uid_of(1))
        assert node.check() == frozenset()
        if not told:
            break
        assert told == ["plugin-folder-not-usable"]
        refused += 1
    assert refused == 5


def test_a_reboot_forgets_what_was_prepared(tmp_path: Path):
    node = Node(tmp_path)
    before = node.plugin.prepare(claim_of(1, "gpu-0"))
    node.reboot()
    assert node.check() == frozenset()
    after = node.plugin.prepare(claim_of(1, "gpu-0"))
    assert not set(before) & set(after)


LIVES = 1000 if os.environ.get("DRA_INFRA_SOAK") else 60
"""Sequences of prepare, release, kill, reboot and damage, each of up to 30."""

CLAIMS = st.integers(1, 5)
DEVICES = st.sets(st.integers(0, 3), min_size=1, max_size=2)
STEPS = st.none() | st.integers(0, 30)


class Life(RuleBasedStateMachine):
    """Two instances take turns, as in a rolling update; `answered` is what the kubelet was told."""

    node_kind = Node
    names = ("gpu-0", "gpu-1", "gpu-2", "gpu-3")

    @initialize()
    def begin(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.node = self.node_kind(Path(self.folder.name))
        self.other = self.node.start()
        self.answered: dict[str, tuple[Claim, tuple[str, ...]]] = {}
        self.unsure: set[str] = set()

    def teardown(self) -> None:
        self.folder.cleanup()

    def survive(self, step: int | None, call, *arguments: object) -> bool:
        """Whether the call was answered; a killed instance is started anew."""
        died = step is not None and killed_at(self.node, step, call, *arguments)
        if died:
            self.node.plugin = self.node.start()
        elif step is None:
            call(*arguments)
        return not died

    @rule()
    def the_other_instance_is_asked(self) -> None:
        self.node.plugin, self.other = self.other, self.node.plugin

    @rule(number=CLAIMS, devices=DEVICES, step=STEPS)
    def prepare(self, number: int, devices: set[int], step: int | None) -> None:
        claim = claim_of(number, *(self.names[each] for each in sorted(devices)))
        told: list[tuple[str, ...]] = []
        refused = refusals(self.survive, step, lambda: told.append(self.node.plugin.prepare(claim)))
        if refused:
            holders = {*self.answered, *self.unsure}
            assert refused in (["claim-prepared-otherwise"], ["device-held"])
            assert claim.uid in holders if refused == ["claim-prepared-otherwise"] else holders - {claim.uid}
            return
        if told:
            before = self.answered.get(claim.uid)
            assert before is None or before == (claim, told[0])
            self.answered[claim.uid] = (claim, told[0])
            self.unsure.discard(claim.uid)
        elif claim.uid not in self.answered:
            self.unsure.add(claim.uid)

    @rule(number=CLAIMS, step=STEPS)
    def release(self, number: int, step: int | None) -> None:
        uid = uid_of(number)
        known = self.answered.pop(uid, None)
        if self.survive(step, self.node.plugin.release, uid):
            self.unsure.discard(uid)
        elif known:
            self.unsure.add(uid)

    @rule(step=STEPS)
    def restart(self, step: int | None) -> None:
        self.survive(step, self.node.restart)

    @rule()
    def reboot(self) -> None:
        self.node.reboot()
        self.other = self.node.start()
        self.answered.clear()
        self.unsure.clear()

    @precondition(lambda self: self.answered)
    @rule(data=st.data(), cut=st.integers(0, 40))
    def damage_a_record(self, data: st.DataObject, cut: int) -> None:
        uid = data.draw(st.sampled_from(sorted(self.answered)))
        claim, ids = self.answered[uid]
        file = self.node.claims / f"{uid}.json"
        file.write_bytes(file.read_bytes()[:-cut] if cut else b"")
        self.node.restart()
        assert self.node.plugin.not_restored() == {uid}
        with pytest.raises(PluginError) as caught:
            self.node.plugin.prepare(claim_of(9, claim.devices[0].device))
        assert codes(caught.value) == ["device-held"]
        assert self.node.plugin.prepare(claim) == ids
        assert not (self.node.claims / f"{uid}.unreadable").exists()

    @precondition(lambda self: self.answered)
    @rule(data=st.data())
    def lose_a_spec(self, data: st.DataObject) -> None:
        uid = data.draw(st.sampled_from(sorted(self.answered)))
        (self.node.cdi / SPEC.format(uid)).unlink()
        self.node.restart()

    @invariant()
    def everything_agrees(self) -> None:
        if hasattr(self, "node"):
            prepared = self.node.check()
            assert set(self.answered) <= prepared <= {*self.answered, *self.unsure}
            self.unsure &= prepared
            ids = [each for _, told in self.answered.values() for each in told]
            assert len(ids) == len(set(ids))


TestLife = Life.TestCase
TestLife.settings = settings(max_examples=LIVES, stateful_step_count=30, deadline=None)
