from __future__ import annotations

import errno
import json
import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_infra.errors import PluginError
from dra_infra.plugin.checkpoint import Checkpoint
from dra_infra.plugin.claims import Claim, ClaimDevice, DeviceNode, Edits, Hook, Mount, Record
from dra_infra.plugin.disk import LARGEST, MOST_PARTS, Disk, Folder
from dra_infra.plugin.record_format import DamagedError, NewerError, _checksum, decode, encode
from tests.unit.plugin.faults import claim_of, codes, uid_of

FROZEN = Path(__file__).parent / "frozen" / "format-1.json"
"""As format 1 was released. A file like it is on nodes: it is never written anew, and every later release reads it."""

UID = uid_of(1)
BOOT = "8c7b4f0e-6a52-4b0e-9a55-0d6f6c9b1d2a"
RECORD = Record(
    claim=Claim(
        uid=UID,
        namespace="ml",
        name="trainer-x7k2p",
        devices=(
            ClaimDevice(
                pool="node-1",
                device="gpu-0",
                request="gpu",
                configs=(
                    '{"apiVersion":"resource.nvidia.com/v1beta1","kind":"GpuConfig","sharing":{"strategy":"TimeSlicing"}}',
                ),
            ),
            ClaimDevice(
                pool="node-1",
                device="gpu-1",
                request="watch",
                subrequest="any",
                share_id="5d9a0e6e-3e8f-4b43-9a4c-2f5a9d0c7b11",
                admin_access=True,
                capacity=(("memory", "10Gi"),),
            ),
        ),
        pod_claim_name="gpus",
    ),
    state="completed",
    preparation="0a1b2c3d",
    boot_id=BOOT,
    edits=(
        Edits(env=("GPU_DEVICE_0=gpu-0", "NVIDIA_VISIBLE_DEVICES=void")),
        Edits(
            device_nodes=(
                DeviceNode(path="/dev/nvidia1", host_path="/run/nvidia/driver/dev/nvidia1", permissions="rw"),
                DeviceNode(
                    path="/dev/nvidia-caps/nvidia-cap3", type="c", major=236, minor=3, file_mode=0o444, gid=0
                ),
            ),
            mounts=(
                Mount(host_path="/usr/bin/nvidia-smi", container_path="/usr/bin/nvidia-smi"),
                Mount(host_path="/run/x", container_path="/run/x", options=("nosuid", "rbind")),
            ),
            additional_gids=(44,),
            hooks=(
                Hook(
                    name="createContainer",
                    path="/usr/bin/nvidia-cdi-hook",
                    arguments=("nvidia-cdi-hook", "update-ldcache"),
                    env=("NVIDIA_CTK_DEBUG=false",),
                ),
            ),
        ),
    ),
)


def test_a_checkpoint_of_the_first_release_is_read():
    assert decode(FROZEN.read_bytes(), uid=UID) == RECORD


def test_format_1_is_written_as_it_was_released():
    assert encode(RECORD) + b"\n" == FROZEN.read_bytes()


def test_a_started_record_comes_back():
    started = replace(RECORD, state="started", edits=())
    assert decode(encode(started), uid=UID) == started


@given(st.data())
def test_no_damaged_file_is_taken_for_a_record(data: st.DataObject):
    whole = encode(RECORD)
    place = data.draw(st.integers(0, len(whole) - 1))
    damaged = data.draw(
        st.sampled_from([whole[:place], whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :]])
    )
    try:
        assert decode(damaged, uid=UID) == RECORD
    except (DamagedError, NewerError):
        return
    # Where it is read all the same, nothing that is said was changed.
    assert json.loads(damaged) == json.loads(whole)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is empty"),
        (b"[" * 100_000, "is no JSON"),
        (b"\0" * 100, "is no JSON"),
        (b'{"format": 1, "record": "\xff"}', "is no JSON"),
        (b'{"format": ' + b"9" * 5000 + b"}", "is no JSON"),
        (b"[]", "has no format"),
        (b'{"format": true}', "has no format"),
        (b'{"format": 1, "record": {}}', "checksum"),
        (b"x" * (LARGEST + 1), "more than"),
        (b"[" * (MOST_PARTS + 1), "more than"),
        (b'{"format": 1, "record": [' + b"{}," * MOST_PARTS + b"0]}", "more than"),
        (encode(replace(RECORD, edits=())), "lacks something"),
        (encode(replace(RECORD, preparation=7)), "another type"),  # type: ignore[arg-type]
        (encode(replace(RECORD, claim=replace(RECORD.claim, uid=uid_of(2)))), "another claim"),
    ],
)
def test_what_is_wrong_with_a_file_is_told(content: bytes, says: str):
    with pytest.raises(DamagedError, match=says):
        decode(content, uid=UID)


@pytest.mark.parametrize("depth", range(900, 1000, 5))
def test_no_depth_of_a_file_is_an_error_that_nobody_expected(depth: int):
    nested = b"[" * depth + b"]" * depth
    with pytest.raises(DamagedError):
        decode(b'{"format": 1, "checksum": "", "record": ' + nested + b"}", uid=UID)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(st.data())
def test_a_record_with_something_else_in_any_place_is_read_or_called_damaged(data: st.DataObject):
    document = json.loads(encode(RECORD))
    place = document
    while isinstance(place, dict | list) and place:
        key = data.draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
        if not isinstance(place[key], dict | list) or data.draw(st.booleans()):
            place[key] = data.draw(JSON)
            break
        place = place[key]
    if data.draw(st.booleans()):
        document["checksum"] = _checksum(document.get("record"))
    with suppress(DamagedError, NewerError):
        decode(json.dumps(document).encode(), uid=UID)


def test_devices_with_the_same_config_have_one_text_in_memory():
    claim = claim_of(1, "gpu-0", "gpu-1")
    devices = tuple(replace(each, configs=('{"kind":"GpuConfig"}',)) for each in claim.devices)
    record = Record(
        claim=replace(claim, devices=devices), state="started", preparation="0a1b2c3d", boot_id="boot-1"
    )
    first, second = decode(encode(record), uid=UID).claim.devices
    assert first.configs[0] is second.configs[0]


def test_a_damaged_file_is_set_aside_loudly_at_each_start_and_kept(tmp_path: Path):
    (tmp_path / f"{UID}.json").write_bytes(encode(RECORD)[:-20])
    for _ in range(2):
        checkpoint = Checkpoint(Folder(tmp_path))
        [problem] = checkpoint.load(BOOT)
        assert (problem.code, problem.path) == ("checkpoint-unreadable", str(tmp_path / f"{UID}.unreadable"))
        assert checkpoint.unreadable == {UID}
        assert not checkpoint.records
        assert (tmp_path / f"{UID}.unreadable").read_bytes() == encode(RECORD)[:-20]


class Stuck(Disk):
    """A folder in which one file can be neither renamed nor removed, as one that is immutable or a mount point."""

    def rename(self, old: Path, new: Path) -> None:
        self.remove(old)
        super().rename(old, new)

    def remove(self, path: Path) -> None:
        if path.name.startswith(UID):
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))


@pytest.mark.parametrize("content", [b"", encode(RECORD)])
@pytest.mark.parametrize("end", ["json", "unreadable"])
def test_a_file_that_cannot_be_moved_is_told_and_the_others_are_read(
    tmp_path: Path, content: bytes, end: str
):
    other = replace(RECORD, claim=replace(RECORD.claim, uid=uid_of(2)))
    (tmp_path / f"{UID}.{end}").write_bytes(content)
    (tmp_path / f"{uid_of(2)}.json").write_bytes(encode(other))
    checkpoint = Checkpoint(Folder(tmp_path, Stuck()))
    told = {problem.code: problem.path for problem in checkpoint.load(BOOT)}
    assert checkpoint.records.keys() == ({UID, uid_of(2)} if content else {uid_of(2)})
    assert checkpoint.unreadable == (set() if content else {UID})
    expected = {"checkpoint-unreadable"} if not content else set()
    expected |= {"plugin-folder-not-usable"} if bool(content) == (end == "unreadable") else set()
    assert told.keys() == expected
    assert set(told.values()) <= {str(tmp_path / f"{UID}.{end}")}


def test_a_newer_file_is_set_aside_and_taken_back_by_the_release_that_wrote_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    newer = encode(RECORD).replace(b'"format": 1', b'"format": 2')
    (tmp_path / f"{UID}.json").write_bytes(newer)
    checkpoint = Checkpoint(Folder(tmp_path))
    [problem] = checkpoint.load(BOOT)
    assert problem.code == "checkpoint-newer"
    assert checkpoint.unreadable == {UID}
    monkeypatch.setattr("dra_infra.plugin.record_format.FORMAT", 2)
    assert checkpoint.load(BOOT) == ()
    assert checkpoint.records == {UID: RECORD}
    assert (tmp_path / f"{UID}.json").read_bytes() == newer


def test_files_of_others_are_left_alone(tmp_path: Path):
    for name in ("notes.json", f"{UID}.json.bak", f"{UID.upper()}.json", "lock"):
        (tmp_path / name).write_text("not ours")
    checkpoint = Checkpoint(Folder(tmp_path))
    assert checkpoint.load(BOOT) == ()
    assert not checkpoint.records
    assert len(list(tmp_path.iterdir())) == 4


@pytest.mark.parametrize(
    "uid", ["", "..", "../../etc/passwd", "a/b", UID.upper(), UID + "\n", UID + "\0", "x" * 5000, f"/{UID}"]
)
def test_no_name_leads_out_of_the_folder(tmp_path: Path, uid: str):
    (folder := tmp_path / "claims").mkdir()
    checkpoint = Checkpoint(Folder(folder))
    bad = replace(RECORD, claim=replace(RECORD.claim, uid=uid))
    for call in (
        lambda: checkpoint.begin(bad),
        lambda: checkpoint.forget(uid),
        lambda: checkpoint.begin_release(uid),
    ):
        with pytest.raises(PluginError) as caught:
            call()
        assert codes(caught.value) == ["invalid-claim-uid"]
        assert len(str(caught.value)) < 400
    assert list(tmp_path.rglob("*")) == [folder]


def test_devices_exclude_each_other_but_for_shares_and_admin_access():
    [whole] = claim_of(1, "gpu-0").devices
    [other] = claim_of(1, "gpu-1").devices
    [share] = claim_of(1, "gpu-0", share="a").devices
    [second] = claim_of(1, "gpu-0", share="b").devices
    [watch] = claim_of(1, "gpu-0", admin=True).devices
    elsewhere = replace(whole, pool="node-2")
    every = [whole, other, share, second, watch, elsewhere]
    found = {(every.index(a), every.index(b)) for a in every for b in every if a.excludes(b)}
    assert found == {(0, 0), (1, 1), (2, 2), (3, 3), (5, 5), (0, 2), (2, 0), (0, 3), (3, 0)}


STARTED = replace(RECORD, state="started", edits=())


@pytest.mark.parametrize("end", ["json", "releasing", "unreadable"])
@pytest.mark.parametrize("left", [b"", encode(RECORD)[:-20]])
def test_what_another_boot_left_cut_is_undone_by_what_its_preparation_began_with(
    tmp_path: Path, end: str, left: bytes
):
    (tmp_path / f"{UID}.started").write_bytes(encode(STARTED))
    (tmp_path / f"{UID}.{end}").write_bytes(left)
    checkpoint = Checkpoint(Folder(tmp_path))
    assert checkpoint.load("another boot") == ()
    assert checkpoint.records == {UID: STARTED}
    checkpoint.forget(UID)
    assert not list(tmp_path.iterdir())
    assert not list(checkpoint.sharing(RECORD.claim))


def test_what_this_boot_left_damaged_is_no_preparation_that_only_began(tmp_path: Path):
    (tmp_path / f"{UID}.started").write_bytes(encode(STARTED))
    (tmp_path / f"{UID}.json").write_bytes(encode(RECORD)[:-20])
    for _ in range(2):
        checkpoint = Checkpoint(Folder(tmp_path))
        assert [problem.code for problem in checkpoint.load(BOOT)] == ["checkpoint-unreadable"]
        assert not checkpoint.records
        assert checkpoint.unreadable == {UID}


def test_a_damaged_file_beside_one_that_was_set_aside_earlier_is_told_once(tmp_path: Path):
    (tmp_path / f"{UID}.json").write_bytes(encode(RECORD)[:-20])
    (tmp_path / f"{UID}.unreadable").write_bytes(encode(RECORD)[:-30])
    checkpoint = Checkpoint(Folder(tmp_path))
    [problem] = checkpoint.load(BOOT)
    assert (problem.code, problem.path) == ("checkpoint-unreadable", str(tmp_path / f"{UID}.unreadable"))
    assert checkpoint.unreadable == {UID}
    assert (tmp_path / f"{UID}.unreadable").read_bytes() == encode(RECORD)[:-20]


def test_records_that_share_a_device_are_found_as_they_come_and_go(tmp_path: Path):
    checkpoint = Checkpoint(Folder(tmp_path))
    for uid in (UID, uid_of(2)):
        mine = replace(RECORD, claim=replace(RECORD.claim, uid=uid))
        checkpoint.begin(replace(mine, state="started", edits=()))
        checkpoint.complete(mine)
    checkpoint.forget(UID)
    assert [each.claim.uid for each in checkpoint.sharing(RECORD.claim)] == [uid_of(2)]
    assert not list(checkpoint.sharing(claim_of(3, "gpu-7")))
    again = Checkpoint(Folder(tmp_path))
    again.load(BOOT)
    assert list(again.sharing(RECORD.claim)) == list(checkpoint.sharing(RECORD.claim))
