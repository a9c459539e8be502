"""The folder that a reviewed program writes to: how much lies in it, and its removal.

What lies there is a stranger's: names of any bytes, thousands of levels, folders without permissions, and links. No
function here recurses, follows a link, or needs a path longer than the system allows.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import secrets
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_UNIT: Final = 512
"""Bytes of a block in `st_blocks`, whatever the file system."""

_READABLE: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OWN: Final = 0o700


def make() -> Path:
    """Make the folder, among the temporary files of the user."""
    return Path(tempfile.mkdtemp(prefix="dra-infra-program-"))


def is_above(folder: Path, *, most_bytes: int, most_files: int) -> bool:
    """Whether more lies in *folder* than it may; also if that cannot be counted. The program may be running.

    Args:
        folder: The folder.
        most_bytes: Bytes on the disk.
        most_files: Files, folders and links.
    """
    size = count = 0
    folders = [os.fsencode(folder)]
    for each in folders:
        try:
            with os.scandir(each) as entries:
                for entry in entries:
                    count += 1
                    with contextlib.suppress(FileNotFoundError):
                        size += entry.stat(follow_symlinks=False).st_blocks * _UNIT
                    if size > most_bytes or count > most_files:
                        return True
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
        except (FileNotFoundError, NotADirectoryError):
            # It has gone meanwhile.
            continue
        except OSError:
            # The program closed it, or its path has too many levels to look at.
            return True
    return False


def remove(folder: Path) -> bool:
    """Remove *folder* and everything in it. True where nothing is left.

    Each folder inside is first moved to the top, so that neither the depth nor the length of a path matters.
    """
    try:
        top = os.open(folder, _READABLE)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    try:
        os.fchmod(top, _OWN)
        # The program cannot guess these names.
        prefix = secrets.token_hex(16)
        numbers = itertools.count()
        names = (f"{prefix}-{number}" for number in numbers)
        waiting = _clear(top, top, names)
        while waiting:
            name = waiting.pop()
            inner = _open(name, top)
            try:
                waiting += _clear(inner, top, names)
            finally:
                os.close(inner)
            os.rmdir(name, dir_fd=top)
        folder.rmdir()
    except OSError:
        return False
    finally:
        os.close(top)
    return True


def _clear(folder: int, top: int, names: Iterator[str]) -> list[str]:
    """Remove the files of *folder*, and move its folders to *top* under new *names*, which are returned."""
    moved = []
    with os.scandir(folder) as entries:
        # A list, because the names that are new may appear among the entries.
        found = [(each.name, each.is_dir(follow_symlinks=False)) for each in entries]
    for name, is_folder in found:
        if not is_folder:
            os.unlink(name, dir_fd=folder)
            continue
        # A folder that is moved gets another parent, so it must be writable itself.
        os.close(_open(name, folder))
        moved.append(next(names))
        os.rename(name, moved[-1], src_dir_fd=folder, dst_dir_fd=top)
    return moved


def _open(name: str, folder: int) -> int:
    """Open the folder *name* in *folder*, with all rights of its owner."""
    try:
        opened = os.open(name, _READABLE, dir_fd=folder)
    except PermissionError:
        if sys.platform.startswith("linux"):
            # A link that takes the place of the folder meanwhile must not change what it points at.
            itself = os.open(name, os.O_PATH | _READABLE, dir_fd=folder)
            try:
                os.chmod(f"/proc/self/fd/{itself}", _OWN)  # noqa: PTH101  (it is not a path)
            finally:
                os.close(itself)
        else:
            os.chmod(name, _OWN, dir_fd=folder, follow_symlinks=False)
        opened = os.open(name, _READABLE, dir_fd=folder)
    os.fchmod(opened, _OWN)
    return opened
