from __future__ import annotations

import errno
import os
import socket
from pathlib import Path

import pytest

from dra_infra.errors import PluginError
from dra_infra.plugin.disk import Disk, Folder
from dra_infra.plugin.locks import PreparationLock
from tests.unit.plugin.faults import codes


def test_a_file_is_on_the_disk_before_it_has_its_name_and_its_name_when_it_is_settled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    done: list[str] = []
    sync = os.fsync
    rename = Disk.rename

    def fsync(handle: int) -> None:
        done.append("folder" if Path(f"/proc/self/fd/{handle}").is_dir() else "file")
        sync(handle)

    def renamed(self: Disk, old: Path, new: Path) -> None:
        done.append("rename")
        rename(self, old, new)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(Disk, "rename", renamed)
    Folder(tmp_path).replace("a.json", b"1", settle=True)
    assert done == ["file", "rename", "folder"]
    assert (tmp_path / "a.json").read_bytes() == b"1"


def test_files_have_the_mode_that_was_asked_for_under_any_mask(tmp_path: Path):
    before = os.umask(0o077)
    try:
        Folder(tmp_path, mode=0o644).replace("spec.json", b"{}")
        Folder(tmp_path).replace("own.json", b"{}")
    finally:
        os.umask(before)
    modes = {file.name: file.stat().st_mode & 0o777 for file in tmp_path.iterdir()}
    assert modes == {"spec.json": 0o644, "own.json": 0o600}


@pytest.mark.parametrize(
    ("number", "hint"), [(errno.ENOSPC, "make room"), (errno.EROFS, "writable"), (errno.EACCES, "user")]
)
def test_what_the_file_system_refuses_is_told_and_the_old_file_stays(tmp_path: Path, number: int, hint: str):
    class Refusing(Disk):
        def write_new(self, path: Path, content: bytes, mode: int) -> None:
            path.write_bytes(content[:1])
            raise OSError(number, os.strerror(number))

    Folder(tmp_path).replace("a.json", b"old")
    with pytest.raises(PluginError) as caught:
        Folder(tmp_path, Refusing()).replace("a.json", b"new")
    [problem] = caught.value.problems
    assert (problem.code, problem.path) == ("plugin-folder-not-usable", str(tmp_path / "a.json"))
    assert os.strerror(number) in problem.message
    assert hint in problem.hint
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == {"a.json": b"old"}


def test_a_link_in_the_place_of_a_file_is_not_followed(tmp_path: Path):
    (folder := tmp_path / "folder").mkdir()
    secret = tmp_path / "secret"
    secret.write_text("secret")
    (folder / "a.json").symlink_to(secret)
    assert Folder(folder).read("a.json") == b""
    Folder(folder).replace("a.json", b"ours")
    assert secret.read_text() == "secret"
    assert not (folder / "a.json").is_symlink()


def test_what_is_no_plain_file_has_no_content(tmp_path: Path):
    (tmp_path / "folder.json").mkdir()
    os.mkfifo(tmp_path / "pipe.json")
    read = Folder(tmp_path).read
    assert (read("folder.json"), read("pipe.json"), read("none.json")) == (b"", b"", None)


def test_a_socket_and_a_file_that_alone_cannot_be_read_have_no_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as opened:
        opened.bind("socket.json")
    (tmp_path / "file.json").write_bytes(b"1")
    folder = Folder(tmp_path)
    assert folder.read("socket.json") == b""
    for number, found in ((errno.EIO, b""), (errno.EACCES, b""), (errno.EMFILE, None)):

        def refusing(*_: object, number: int = number, **__: object) -> int:
            raise OSError(number, os.strerror(number))

        with monkeypatch.context() as patched:
            patched.setattr(os, "open", refusing)
            if found is None:
                # Nothing is wrong with the file: it must not be taken for damaged.
                with pytest.raises(PluginError):
                    folder.read("file.json")
            else:
                assert folder.read("file.json") == found


@pytest.mark.parametrize("full", [False, True])
def test_a_folder_in_the_place_of_a_file_makes_way_and_keeps_what_is_in_it(tmp_path: Path, full: bool):
    folder = Folder(tmp_path)
    for change in (
        lambda: folder.replace("a.json", b"1"),
        lambda: folder.remove("a.json"),
        lambda: folder.rename("b.json", "a.json"),
    ):
        (place := tmp_path / "a.json").unlink(missing_ok=True)
        (tmp_path / "b.json").write_bytes(b"2")
        place.mkdir()
        if full:
            (place / "theirs").write_text("theirs")
        change()
        assert not place.is_dir()
    kept = sorted(file.read_text() for file in tmp_path.glob(".a.json.*.folder/theirs"))
    assert kept == ["theirs"] * 3 * full
    assert full or not [file for file in tmp_path.iterdir() if file.is_dir()]


def test_a_half_written_file_that_cannot_be_removed_stays(tmp_path: Path):
    class Stuck(Disk):
        def remove(self, path: Path) -> None:
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    (tmp_path / ".ours.json.12345678.tmp").touch()
    Folder(tmp_path, Stuck()).remove_temporary(bool)
    assert len(list(tmp_path.iterdir())) == 1


def test_a_folder_that_is_not_there_is_told(tmp_path: Path):
    for call in (
        Folder(tmp_path / "none").names,
        lambda: PreparationLock(tmp_path / "none" / "lock").acquire().__enter__(),
    ):
        with pytest.raises(PluginError) as caught:
            call()
        assert codes(caught.value) == ["plugin-folder-not-usable"]


def test_only_our_own_half_written_files_are_taken_away(tmp_path: Path):
    others = {".vendor.json.12345678.tmp", "spec.1234.tmp", ".ours.json", "ours.json"}
    for name in (*others, ".ours.json.12345678.tmp"):
        (tmp_path / name).touch()
    Folder(tmp_path).remove_temporary(lambda name: name == "ours.json")
    assert {file.name for file in tmp_path.iterdir()} == others


def test_a_turn_tells_whether_another_instance_had_one_since(tmp_path: Path):
    one, two = PreparationLock(tmp_path / "lock"), PreparationLock(tmp_path / "lock")
    told = []
    for lock in (one, one, two, one, one):
        with lock.acquire() as others:
            told.append(others)
    assert told == [True, False, True, True, False]


def test_a_turn_that_another_instance_or_thread_does_not_end_is_told(tmp_path: Path):
    held, other = (
        PreparationLock(tmp_path / "lock", patience=0.01),
        PreparationLock(tmp_path / "lock", patience=0.01),
    )
    with held.acquire():
        for waiting in (other, held):
            with pytest.raises(PluginError) as caught, waiting.acquire():
                pass
            assert codes(caught.value) == ["turn-not-had"]
    with other.acquire() as others:
        assert others


def test_a_caller_that_has_little_time_left_waits_no_longer(tmp_path: Path):
    held, other = PreparationLock(tmp_path / "lock"), PreparationLock(tmp_path / "lock")
    with held.acquire():
        for waiting in (other, held):
            for within in (0.01, -1.0):
                with pytest.raises(PluginError) as caught, waiting.acquire(within=within):
                    pass
                assert codes(caught.value) == ["turn-not-had"]
