from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dra_infra.program import home_folder


@pytest.fixture
def folder(tmp_path: Path):
    made = tmp_path / "home"
    made.mkdir()
    yield made
    # What Python's own removal could not.
    subprocess.run(["rm", "-rf", str(made)], check=True)


def dig(folder: Path, levels: int) -> None:
    """Make a folder in a folder, and so on, deeper than a path may be long."""
    current = os.open(folder, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir("d" * 50, dir_fd=current)
        inner = os.open("d" * 50, os.O_RDONLY, dir_fd=current)
        os.close(current)
        current = inner
    os.close(os.open("bottom", os.O_CREAT | os.O_WRONLY, dir_fd=current))
    os.close(current)


def test_a_folder_of_4000_levels_is_removed(folder: Path):
    dig(folder, 4000)
    assert home_folder.remove(folder)
    assert not folder.exists()


def test_folders_without_permissions_and_names_of_any_bytes_are_removed(folder: Path):
    inner = Path(os.fsdecode(os.fsencode(folder) + b"/\xff\n"))
    (inner / "closed" / "deeper").mkdir(parents=True)
    (inner / "closed" / "file").touch()
    for each in (inner / "closed" / "deeper", inner / "closed", inner, folder):
        each.chmod(0)
    assert home_folder.remove(folder)
    assert not folder.exists()


def test_links_are_removed_and_not_followed(folder: Path, tmp_path: Path):
    outside = tmp_path / "outside"
    outside.mkdir(mode=0o500)
    (tmp_path / "file").touch()
    (folder / "inner").mkdir()
    for place in (folder, folder / "inner"):
        (place / "folder").symlink_to(outside)
        (place / "file").symlink_to(tmp_path / "file")
    assert home_folder.remove(folder)
    assert (tmp_path / "file").exists()
    assert outside.stat().st_mode & 0o777 == 0o500


def test_a_link_in_the_place_of_the_folder_is_not_followed(folder: Path, tmp_path: Path):
    (folder / "file").touch()
    link = tmp_path / "link"
    link.symlink_to(folder)
    assert not home_folder.remove(link)
    assert (folder / "file").exists()


def test_what_has_gone_already_is_removed(tmp_path: Path):
    assert home_folder.remove(tmp_path / "home")


def test_what_cannot_be_removed_is_told(folder: Path, monkeypatch: pytest.MonkeyPatch):
    def refuse(*_arguments: object, **_named: object) -> None:
        raise OSError(5, "Input/output error")

    (folder / "file").touch()
    monkeypatch.setattr(os, "unlink", refuse)
    assert not home_folder.remove(folder)


def test_bytes_and_files_are_counted_at_every_level(folder: Path):
    (folder / "a" / "b").mkdir(parents=True)
    (folder / "a" / "b" / "file").write_bytes(b"x" * 100_000)
    assert not home_folder.is_above(folder, most_bytes=200_000, most_files=3)
    assert home_folder.is_above(folder, most_bytes=90_000, most_files=3)
    assert home_folder.is_above(folder, most_bytes=200_000, most_files=2)


def test_holes_in_files_do_not_count(folder: Path):
    with (folder / "file").open("wb") as file:
        file.truncate(2**30)
    assert not home_folder.is_above(folder, most_bytes=200_000, most_files=3)


def test_links_are_not_followed_when_files_are_counted(folder: Path):
    (folder / "link").symlink_to("/")
    assert not home_folder.is_above(folder, most_bytes=200_000, most_files=3)


def test_what_cannot_be_counted_is_above(folder: Path):
    dig(folder, 100)
    assert home_folder.is_above(folder, most_bytes=2**40, most_files=2**40)


@pytest.mark.skipif(os.geteuid() == 0 or sys.platform == "win32", reason="nothing is closed to root")
def test_a_folder_that_is_closed_is_above(folder: Path):
    (folder / "closed").mkdir(mode=0)
    assert home_folder.is_above(folder, most_bytes=2**40, most_files=2**40)
