from __future__ import annotations

import errno
import os
import stat
import threading
from pathlib import Path

import pytest

from dra_infra.cli.written_files import LinkedFolderError, hint_for, open_folder, put_in_place


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, and beside it `elsewhere`."""
    (tmp_path / "here").mkdir()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here"


@pytest.mark.parametrize("path", ["link/report", "a/link/report", "a/../link/report", "../here/link/report"])
def test_a_link_below_the_current_folder_is_not_followed(here: Path, path: str):
    (here / "a").mkdir()
    for link in (here / "link", here / "a" / "link"):
        link.symlink_to(here.parent / "elsewhere")
    for file in (Path(path), here / path):
        with pytest.raises(LinkedFolderError) as caught:
            put_in_place(file, b"new")
        assert caught.value.errno == errno.ELOOP
        assert "link is a link, and links in the current folder are not followed" in str(caught.value)
        assert hint_for(caught.value, "") == (
            f"remove the link, or name the folder that it leads to: {here.parent / 'elsewhere'}"
        )
    assert not list((here.parent / "elsewhere").iterdir())


@pytest.mark.parametrize("git", ["file", "folder"])
def test_a_link_in_a_repository_elsewhere_is_not_followed(here: Path, git: str):
    top = here.parent / "repository"
    (top / "a").mkdir(parents=True)
    (top / ".git").mkdir() if git == "folder" else (top / ".git").write_text("gitdir: x\n")
    (top / "a" / "link").symlink_to(here.parent / "elsewhere")
    with pytest.raises(LinkedFolderError, match=f"{top}/a/link is a link, and links in {top} are not"):
        put_in_place(top / "a" / "link" / "report", b"new")


def test_a_link_in_a_named_folder_is_not_followed(here: Path):
    (named := here.parent / "named").mkdir()
    (named / "link").symlink_to("../elsewhere")
    put_in_place(named / "link" / "report", b"new")
    with pytest.raises(LinkedFolderError):
        put_in_place(named / "link" / "report", b"newer", guarded=[named])
    assert (here.parent / "elsewhere" / "report").read_bytes() == b"new"


def test_links_of_the_user_and_of_the_system_are_followed(here: Path):
    home = here.parent / "home"
    home.symlink_to(here.parent / "disk")
    (here.parent / "disk" / "own").mkdir(parents=True)
    (here.parent / "disk" / "further").symlink_to("own")
    put_in_place(home / "own" / "a", b"new")
    put_in_place(home / "further" / "b", b"new")
    put_in_place(Path("../home/further/../own/c"), b"new")
    assert sorted(each.name for each in (here.parent / "disk" / "own").iterdir()) == ["a", "b", "c"]


def test_the_current_folder_may_be_reached_by_a_link(
    here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "alias").symlink_to(here)
    monkeypatch.chdir(tmp_path / "alias")
    put_in_place(Path("a"), b"new")
    put_in_place(tmp_path / "alias" / "b", b"new")
    assert sorted(each.name for each in here.iterdir()) == ["a", "b"]


def test_a_link_of_the_user_leads_to_a_repository_whose_links_are_not_followed(here: Path):
    top = here.parent / "repository"
    (top / ".git").mkdir(parents=True)
    (top / "link").symlink_to("../elsewhere")
    (here.parent / "alias").symlink_to(top)
    put_in_place(here.parent / "alias" / "report", b"new")
    with pytest.raises(LinkedFolderError):
        put_in_place(here.parent / "alias" / "link" / "report", b"new")
    assert (top / "report").read_bytes() == b"new"


@pytest.mark.skipif(not Path("/proc/self").is_symlink(), reason="needs /proc")
def test_links_of_the_system_count_where_its_root_is_the_current_folder(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir("/")
    with open_folder(Path("proc/self/fdinfo")) as folder:
        assert folder.real == Path(f"/proc/{os.getpid()}/fdinfo")


def test_links_that_lead_in_a_circle_have_an_end(here: Path):
    (here.parent / "a").symlink_to("b")
    (here.parent / "b").symlink_to("a")
    with pytest.raises(OSError, match="symbolic links") as caught:
        put_in_place(here.parent / "a" / "report", b"new")
    assert caught.value.errno == errno.ELOOP


def test_files_that_are_changed_in_place_may_be_reached_by_links_that_stay_in_the_repository(here: Path):
    (here / "a").mkdir()
    (here / ".git" / "hooks").mkdir(parents=True)
    links = {"link": "a", "out": "../elsewhere", "back": "../elsewhere/in", "git": ".git/hooks"}
    for name, target in links.items():
        (here / name).symlink_to(target)
    (here.parent / "elsewhere" / "in").symlink_to("../here/a")
    for name in ("link", "back"):
        with open_folder(Path(name), within=True) as folder:
            assert folder.real == here / "a"
    for name in ("out", "git"):
        with pytest.raises(LinkedFolderError), open_folder(Path(name), within=True):
            pass


def test_a_link_that_takes_the_place_of_an_open_folder_gets_nothing(here: Path):
    made: list[Path] = []
    with open_folder(Path("a/b"), made=made) as folder:
        (here / "a").rename(here / "moved")
        (here / "a").symlink_to(here.parent / "elsewhere")
        (here.parent / "elsewhere" / "b").mkdir()
        folder.put("report", b"new")
    assert made == [here / "a", here / "a" / "b"]
    assert (here / "moved" / "b" / "report").read_bytes() == b"new"
    assert not list((here.parent / "elsewhere" / "b").iterdir())


@pytest.mark.parametrize("path", ["absent/report", "file/report", ".", "..", "/"])
def test_what_is_no_place_for_a_file_is_refused(here: Path, path: str):
    (here / "file").write_text("")
    with pytest.raises(OSError, match=r"No such file|Not a directory|Is a directory"):
        put_in_place(Path(path), b"new")
    assert [each.name for each in here.iterdir()] == ["file"]


def test_a_folder_in_the_place_of_the_file_stays(here: Path):
    (here / "report").mkdir()
    with pytest.raises(IsADirectoryError):
        put_in_place(Path("report"), b"new")
    assert [each.name for each in here.iterdir()] == ["report"]


def test_a_replaced_file_keeps_its_permissions_and_a_new_one_has_the_usual(here: Path):
    (here / "private").write_text("old")
    (here / "private").chmod(0o600)
    old = os.umask(0o027)
    try:
        for name in ("private", "new"):
            put_in_place(Path(name), b"new")
        put_in_place(Path("secret"), b"new", 0o600)
    finally:
        os.umask(old)
    modes = {each.name: stat.S_IMODE(each.stat().st_mode) for each in here.iterdir()}
    assert modes == {"private": 0o600, "new": 0o640, "secret": 0o600}


def test_a_link_in_the_place_of_the_file_is_replaced(here: Path):
    target = here.parent / "elsewhere" / "target"
    target.write_text("old")
    target.chmod(0o600)
    for file in (here / "report", here.parent / "report"):
        file.symlink_to(target)
        put_in_place(file, b"new")
        assert not file.is_symlink()
        assert file.read_bytes() == b"new"
        assert stat.S_IMODE(file.stat().st_mode) != 0o600
    assert target.read_text() == "old"


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="needs /dev/fd")
def test_a_pipe_that_the_user_names_is_written_to(here: Path):
    del here
    reader, writer = os.pipe()
    read: list[bytes] = []
    thread = threading.Thread(target=lambda: read.append(os.read(reader, 100)))
    thread.start()
    put_in_place(Path(f"/dev/fd/{writer}"), b"new")
    os.close(writer)
    thread.join()
    os.close(reader)
    assert read == [b"new"]


@pytest.mark.skipif(os.geteuid() == 0 or not hasattr(os, "O_PATH"), reason="root may read every folder")
def test_a_folder_that_may_be_entered_and_not_read_is_passed(here: Path):
    (here / "a" / "b").mkdir(parents=True)
    (here / "a").chmod(0o300)
    try:
        put_in_place(here / "a" / "b" / "report", b"new")
    finally:
        (here / "a").chmod(0o700)
    assert (here / "a" / "b" / "report").read_bytes() == b"new"
