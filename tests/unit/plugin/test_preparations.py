from __future__ import annotations

import errno
import os
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from dra_infra.errors import PluginError
from dra_infra.plugin import disk
from dra_infra.plugin.claims import Claim
from dra_infra.plugin.disk import LARGEST, MOST_PARTS
from tests.unit.plugin.faults import SPEC, Node, claim_of, codes, uid_of


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def refused(call, *arguments: object) -> list[str]:
    with pytest.raises(PluginError) as caught:
        call(*arguments)
    return codes(caught.value)


def test_a_claim_is_prepared_once_and_answered_the_same(node: Node):
    first = node.plugin.prepare(claim_of(1, "gpu-0", "gpu-1"))
    assert node.plugin.prepare(claim_of(1, "gpu-0", "gpu-1")) == first
    node.restart()
    assert node.plugin.prepare(claim_of(1, "gpu-0", "gpu-1")) == first
    assert node.check() == {uid_of(1)}


def test_a_release_works_twice_and_for_a_claim_that_nobody_knows(node: Node):
    node.plugin.prepare(claim_of(1, "gpu-0"))
    for uid in (uid_of(1), uid_of(1), uid_of(2)):
        node.plugin.release(uid)
    assert node.check() == frozenset()
    assert refused(node.plugin.release, "../x") == ["invalid-claim-uid"]


def with_configs(size: int, of: str = "x") -> Claim:
    claim = claim_of(1, "gpu-0", "gpu-1")
    return replace(claim, devices=tuple(replace(each, configs=(of * size,)) for each in claim.devices))


def test_what_is_prepared_can_be_read_again_however_long_its_configs_are(node: Node):
    claim = with_configs(LARGEST // 3)
    ids = node.plugin.prepare(claim)
    node.restart()
    assert node.plugin.prepare(claim) == ids
    node.plugin.release(claim.uid)
    assert refused(node.plugin.prepare, with_configs(LARGEST // 2)) == ["claim-too-large"]
    assert refused(node.plugin.prepare, with_configs(MOST_PARTS // 2, of="{")) == ["claim-too-large"]
    assert node.check() == frozenset()


def test_a_claim_prepared_again_has_other_ids(node: Node):
    first = node.plugin.prepare(claim_of(1, "gpu-0"))
    node.plugin.release(uid_of(1))
    assert not set(first) & set(node.plugin.prepare(claim_of(1, "gpu-0")))


def test_a_device_is_given_once(node: Node):
    node.plugin.prepare(claim_of(1, "gpu-0"))
    with pytest.raises(PluginError) as caught:
        node.plugin.prepare(claim_of(2, "gpu-1", "gpu-0"))
    [problem] = caught.value.problems
    assert (problem.code, problem.path) == ("device-held", "ResourceClaim ml/claim-2: device node-1/gpu-0")
    assert "ml/claim-1" in problem.message
    assert node.check() == {uid_of(1)}


def test_shares_and_admin_access_have_a_device_together(node: Node):
    for number, share, admin in ((1, "a", False), (2, "b", False), (3, "", True)):
        node.plugin.prepare(claim_of(number, "gpu-0", share=share, admin=admin))
    assert len(node.plugin.prepared()) == 3
    assert refused(node.plugin.prepare, claim_of(4, "gpu-0")) == ["device-held"]


def test_a_claim_that_was_allocated_anew_waits_for_its_release(node: Node):
    node.plugin.prepare(claim_of(1, "gpu-0"))
    assert refused(node.plugin.prepare, claim_of(1, "gpu-1")) == ["claim-prepared-otherwise"]
    node.plugin.release(uid_of(1))
    node.plugin.prepare(claim_of(1, "gpu-1"))
    assert node.check() == {uid_of(1)}


def test_a_back_end_that_fails_leaves_nothing_behind(node: Node):
    node.devices.broken = True
    with pytest.raises(PluginError, match="does not answer"):
        node.plugin.prepare(claim_of(1, "gpu-0"))
    node.devices.broken = False
    assert node.check() == frozenset()
    node.plugin.prepare(claim_of(2, "gpu-0"))
    assert node.check() == {uid_of(2)}


def test_a_spec_that_is_gone_is_written_again_at_start_and_when_asked(node: Node):
    node.plugin.prepare(claim_of(1, "gpu-0"))
    spec = node.cdi / SPEC.format(uid_of(1))
    before = spec.read_bytes()
    for call in (node.restart, lambda: node.plugin.prepare(claim_of(1, "gpu-0"))):
        spec.unlink()
        call()
        assert spec.read_bytes() == before


def damage(node: Node, number: int, *ends: str) -> None:
    for end in ends or ("json",):
        (node.claims / f"{uid_of(number)}.{end}").write_bytes(b"\0" * 100)
    node.restart()


def lose(node: Node, number: int) -> None:
    (node.cdi / SPEC.format(uid_of(number))).unlink()
    damage(node, number, "json", "started")


def test_a_claim_with_a_damaged_record_is_restored_from_its_spec_and_the_claim(node: Node):
    ids = node.plugin.prepare(claim_of(1, "gpu-0"))
    damage(node, 1)
    assert [problem.code for problem in node.plugin.recover()] == ["checkpoint-unreadable"]
    assert node.plugin.not_restored() == {uid_of(1)}
    # Others go on, but for its device.
    assert refused(node.plugin.prepare, claim_of(2, "gpu-0")) == ["device-held"]
    node.plugin.prepare(claim_of(3, "gpu-1"))
    assert refused(node.plugin.prepare, claim_of(1, "gpu-2")) == ["claim-prepared-otherwise"]
    assert node.plugin.prepare(claim_of(1, "gpu-0")) == ids
    assert node.plugin.not_restored() == frozenset()
    assert node.check() == {uid_of(1), uid_of(3)}


def test_what_was_set_aside_goes_when_there_is_a_record_again_and_after_a_crash_in_between(node: Node):
    node.plugin.prepare(claim_of(1, "gpu-0"))
    damage(node, 1)
    aside = node.claims / f"{uid_of(1)}.unreadable"
    damaged = aside.read_bytes()
    assert node.plugin.restore(claim_of(1, "gpu-0"))
    assert not aside.exists()
    aside.write_bytes(damaged)
    node.restart()
    assert node.check() == {uid_of(1)}


def test_only_a_lost_claim_is_restored(node: Node):
    ids = node.plugin.prepare(claim_of(1, "gpu-0"))
    assert not node.plugin.restore(claim_of(1, "gpu-0"))
    damage(node, 1)
    assert node.plugin.restore(claim_of(1, "gpu-0"))
    assert node.plugin.prepare(claim_of(1, "gpu-0")) == ids
    node.plugin.release(uid_of(1))
    # Nobody would release it again.
    assert not node.plugin.restore(claim_of(1, "gpu-0"))
    assert node.check() == set()


def test_a_file_that_is_found_damaged_later_than_at_the_start_is_told_once(node: Node):
    node.plugin.prepare(claim_of(1, "gpu-0"))
    (node.claims / f"{uid_of(1)}.json").write_bytes(b"\0")
    node.devices.broken = True
    for _ in range(2):
        # After a failure all files are read again.
        assert refused(node.plugin.prepare, claim_of(2, "gpu-1")) == ["device-held"]
    assert [each.code for each in node.noticed] == ["checkpoint-unreadable"]


def test_a_claim_that_was_not_restored_is_released(node: Node):
    node.plugin.prepare(claim_of(1, "gpu-0"))
    damage(node, 1)
    node.plugin.release(uid_of(1))
    node.plugin.prepare(claim_of(2, "gpu-0"))
    assert node.check() == {uid_of(2)}


def test_without_record_and_spec_nothing_is_given_until_the_claim_is_back_or_released(node: Node):
    node.plugin.prepare(claim_of(1, "gpu-0"))
    lose(node, 1)
    assert refused(node.plugin.prepare, claim_of(2, "gpu-1")) == ["claim-not-restored"]
    node.plugin.prepare(claim_of(3, "gpu-0", admin=True))
    node.plugin.release(uid_of(3))
    node.plugin.prepare(claim_of(1, "gpu-0"))
    node.plugin.prepare(claim_of(2, "gpu-1"))
    assert node.check() == {uid_of(1), uid_of(2)}
    node.plugin.release(uid_of(1))
    assert node.check() == {uid_of(2)}


def test_what_a_preparation_began_with_tells_which_devices_a_claim_without_record_and_spec_has(node: Node):
    ids = node.plugin.prepare(claim_of(1, "gpu-0"))
    (node.cdi / SPEC.format(uid_of(1))).unlink()
    damage(node, 1)
    assert refused(node.plugin.prepare, claim_of(2, "gpu-0")) == ["device-held"]
    node.plugin.prepare(claim_of(3, "gpu-1"))
    assert refused(node.plugin.prepare, claim_of(1, "gpu-2")) == ["claim-prepared-otherwise"]
    assert node.plugin.prepare(claim_of(1, "gpu-0")) == ids
    assert node.check() == {uid_of(1), uid_of(3)}


def unreadable_for_now(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """Have the next read of each of these files fail, as where the process has no descriptor left."""
    left = list(names)
    read = disk._read

    def fail_once(path: Path) -> bytes:
        if path.name in left:
            left.remove(path.name)
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return read(path)

    monkeypatch.setattr(disk, "_read", fail_once)


@pytest.mark.parametrize("spec", [True, False], ids=["spec", "no-spec"])
def test_a_record_that_cannot_be_read_for_a_moment_keeps_its_claim(
    node: Node, monkeypatch: pytest.MonkeyPatch, spec: bool
):
    ids = node.plugin.prepare(claim_of(1, "gpu-0"))
    if not spec:
        (node.cdi / SPEC.format(uid_of(1))).unlink()
    unreadable_for_now(monkeypatch, f"{uid_of(1)}.json")
    node.plugin = node.start()
    assert [problem.code for problem in node.plugin.recover()] == ["plugin-folder-not-usable"]
    assert node.ready() == {uid_of(1): {"gpu-0"}}
    assert refused(node.plugin.prepare, claim_of(2, "gpu-0")) == ["device-held"]
    node.plugin.prepare(claim_of(3, "gpu-1"))
    assert node.plugin.prepare(claim_of(1, "gpu-0")) == ids
    assert node.check() == {uid_of(1), uid_of(3)}


def test_a_record_of_another_boot_that_cannot_be_read_for_a_moment_is_undone(
    node: Node, monkeypatch: pytest.MonkeyPatch
):
    node.plugin.prepare(claim_of(1, "gpu-0"))
    unreadable_for_now(monkeypatch, f"{uid_of(1)}.json")
    node.reboot()
    node.plugin.prepare(claim_of(2, "gpu-0"))
    assert node.check() == {uid_of(2)}


def test_a_claim_of_which_no_file_can_be_read_for_a_moment_keeps_the_devices_of_its_spec(
    node: Node, monkeypatch: pytest.MonkeyPatch
):
    ids = node.plugin.prepare(claim_of(1, "gpu-0"))
    names = [f"{uid_of(1)}.json", f"{uid_of(1)}.started"]
    unreadable_for_now(monkeypatch, *names, names[1])
    node.restart()
    assert refused(node.plugin.prepare, claim_of(2, "gpu-0")) == ["device-held"]
    assert node.plugin.prepare(claim_of(1, "gpu-0")) == ids
    assert node.check() == {uid_of(1)}


def test_a_release_that_began_and_cannot_be_read_for_a_moment_is_not_found_again_after_it_was_prepared(
    node: Node, monkeypatch: pytest.MonkeyPatch
):
    ids = node.plugin.prepare(claim_of(1, "gpu-0"))
    (node.claims / f"{uid_of(1)}.json").rename(node.claims / f"{uid_of(1)}.releasing")
    unreadable_for_now(monkeypatch, f"{uid_of(1)}.releasing")
    node.restart()
    assert refused(node.plugin.prepare, claim_of(2, "gpu-0")) == ["device-held"]
    assert node.plugin.prepare(claim_of(1, "gpu-0")) == ids
    assert node.check() == {uid_of(1)}


def test_claims_of_which_nothing_is_left_do_not_wait_for_each_other(node: Node):
    for number in (1, 2):
        node.plugin.prepare(claim_of(number, f"gpu-{number}"))
    for number in (1, 2):
        lose(node, number)
    assert refused(node.plugin.prepare, claim_of(3, "gpu-3")) == ["claim-not-restored"]
    for number in (1, 2):
        assert node.plugin.restore(claim_of(number, f"gpu-{number}"))
    node.plugin.prepare(claim_of(3, "gpu-3"))
    assert node.check() == {uid_of(1), uid_of(2), uid_of(3)}


def test_a_lost_checkpoint_folder_gives_no_device_away(node: Node):
    ids = node.plugin.prepare(claim_of(1, "gpu-0"))
    for file in node.claims.glob(f"{uid_of(1)}.*"):
        file.unlink()
    node.restart()
    assert refused(node.plugin.prepare, claim_of(2, "gpu-0")) == ["device-held"]
    assert node.plugin.prepare(claim_of(1, "gpu-0")) == ids
    assert node.check() == {uid_of(1)}


def test_one_claim_that_cannot_be_undone_keeps_no_other_back(node: Node, monkeypatch: pytest.MonkeyPatch):
    node.plugin.prepare(claim_of(1, "gpu-0"))
    release = node.devices.release
    failure = PluginError(refused_problem())

    def failing(claim: object) -> None:
        raise failure

    monkeypatch.setattr(node.devices, "release", failing)
    assert refused(node.plugin.release, uid_of(1)) == ["device-held"]
    node.restart()
    assert [problem.message for problem in node.plugin.recover()] == ["is busy"]
    node.plugin.prepare(claim_of(2, "gpu-1"))
    assert refused(node.plugin.prepare, claim_of(3, "gpu-0")) == ["device-held"]
    monkeypatch.setattr(node.devices, "release", release)
    node.plugin.release(uid_of(1))
    assert node.check() == {uid_of(2)}


def test_a_back_end_with_a_bug_at_one_claim_keeps_no_other_back(node: Node, monkeypatch: pytest.MonkeyPatch):
    node.plugin.prepare(claim_of(1, "gpu-0"))
    release = node.devices.release

    def failing(claim: object) -> None:
        raise OSError("no such device")

    monkeypatch.setattr(node.devices, "release", failing)
    with pytest.raises(OSError, match="no such device"):
        node.plugin.release(uid_of(1))
    node.plugin.prepare(claim_of(2, "gpu-1"))
    node.restart()
    [problem] = node.plugin.recover()
    assert (problem.code, problem.path) == ("plugin-failed", f"recover claim {uid_of(1)}")
    assert refused(node.plugin.prepare, claim_of(3, "gpu-0")) == ["device-held"]
    monkeypatch.setattr(node.devices, "release", release)
    node.plugin.release(uid_of(1))
    assert node.check() == {uid_of(2)}


def test_a_back_end_that_fails_at_a_claim_and_at_undoing_it_is_told_of_both(
    node: Node, monkeypatch: pytest.MonkeyPatch
):
    def failing(claim: object) -> None:
        raise OSError("no such device")

    for step in ("prepare", "release"):
        monkeypatch.setattr(node.devices, step, failing)
    with pytest.raises(PluginError) as caught:
        node.plugin.prepare(claim_of(1, "gpu-0"))
    assert [(each.code, each.path) for each in caught.value.problems] == [
        ("plugin-failed", f"prepare claim {uid_of(1)}"),
        ("plugin-failed", f"undo claim {uid_of(1)}"),
    ]
    # Whose traceback the log has.
    assert isinstance(caught.value.__cause__, OSError)


def test_edits_that_are_none_are_told_as_a_bug_and_undone(node: Node, monkeypatch: pytest.MonkeyPatch):
    prepare = node.devices.prepare

    def wrong(claim: Claim) -> list[str]:
        prepare(claim)
        return ["/dev/gpu0"]

    monkeypatch.setattr(node.devices, "prepare", wrong)
    assert refused(node.plugin.prepare, claim_of(1, "gpu-0")) == ["plugin-failed"]
    assert node.check() == frozenset()


def refused_problem() -> list:
    from dra_infra.errors import Problem

    return [Problem(path="device gpu-0", code="device-held", message="is busy")]


def test_sixteen_callers_at_once_get_one_preparation(node: Node):
    other = node.start()
    answers: list[tuple[str, ...]] = []
    callers = [
        threading.Thread(target=lambda plugin=plugin: answers.append(plugin.prepare(claim_of(1, "gpu-0"))))
        for plugin in (node.plugin, other) * 8
    ]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert len(answers) == 16
    assert len(set(answers)) == 1
    assert node.check() == {uid_of(1)}
