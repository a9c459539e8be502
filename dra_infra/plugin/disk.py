"""Small files that are there whole or not at all, also after a crash at any step."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final

from dra_infra.errors import PluginError

TEMPORARY: Final = ".tmp"
"""End of the name of a file that is being written. Runtimes read `.json` and `.yaml` only (scanSpecDirs of the CDI library)."""

LARGEST: Final = 8 * 1024 * 1024
"""Bytes of a file that is read. A claim of 32 devices takes one or two where each has a hundred mounts and long configs."""

MOST_PARTS: Final = 200_000
"""Objects and lists of JSON that is parsed: an object of seven bytes takes 200 in memory, of which the plugin's pod has 256 MiB."""

LOOK: Final = "see the folder's permissions and its mount"
"""Hint for whoever does not know more."""

_HINTS: Final = {
    errno.ENOSPC: "make room on the file system; what was prepared before stays prepared",
    errno.EDQUOT: "raise the quota; what was prepared before stays prepared",
    errno.EROFS: "mount the folder writable",
    errno.EACCES: "run the plugin as a user that may write there",
    errno.EPERM: "run the plugin as a user that may write there",
}


_OF_ONE_FILE: Final = frozenset(
    {
        *(errno.ELOOP, errno.ENXIO, errno.ENODEV, errno.EISDIR),
        *(errno.EACCES, errno.EPERM, errno.EIO, errno.EBADMSG, errno.EUCLEAN),
    }
)
"""Why one file cannot be read where others can: no plain file, another user's, on a bad place of the disk."""


def may_be_parsed(content: bytes) -> bool:
    """True where JSON has neither so many bytes nor so many parts that reading it would take the plugin's memory."""
    return len(content) <= LARGEST and content.count(b"{") + content.count(b"[") <= MOST_PARTS


class Disk:
    """The steps that change a file system, one by one: tests take its place and stop the plugin at each of them."""

    def write_new(self, path: Path, content: bytes, mode: int) -> None:
        """Write a file that is not there yet."""
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "wb", buffering=0) as file:
            # Not as the creating mode, of which the process's mask takes some away.
            os.fchmod(handle, mode)
            rest = memoryview(content)
            while rest:
                rest = rest[file.write(rest) :]

    def rename(self, old: Path, new: Path) -> None:
        """Put *old* in the place of *new*, in one step."""
        old.replace(new)

    def remove(self, path: Path) -> None:
        """Take a file away."""
        path.unlink()

    def settle(self, path: Path) -> None:
        """Sync the content of a file to the disk, or the names of a folder: each may be lost without the other."""
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


class Folder:
    """A folder of small files, each replaced in one step.

    Args:
        path: The folder; it has to be there.
        disk: What changes it.
        mode: Permissions of its files: CDI specs are read by a runtime that may run as another user.

    Every method raises `PluginError` with `plugin-folder-not-usable` where the file system refuses; what was there before
    is then still there.
    """

    def __init__(self, path: Path, disk: Disk | None = None, *, mode: int = 0o600) -> None:
        self.path = path
        self._disk = disk or Disk()
        self._mode = mode

    def names(self) -> tuple[str, ...]:
        """Names of everything in it, sorted."""
        with explain_os_errors("cannot be read", self.path):
            return tuple(sorted(os.listdir(self.path)))  # noqa: PTH208  (a tenth of the time with 1,000 claims)

    def read(self, name: str) -> bytes | None:
        """Content of a plain file, cut where it is too large; None where there is none.

        A link, a folder, a pipe or the like in its place is neither followed nor opened, and has no content; nor has a
        file that cannot be read while others can.
        """
        path = self.path / name
        with explain_os_errors("cannot be read", path):
            try:
                if not stat.S_ISREG(path.lstat().st_mode):
                    return b""
                return _read(path)
            except FileNotFoundError:
                return None
            except OSError as error:
                if error.errno in _OF_ONE_FILE:
                    return b""
                raise

    def replace(self, name: str, content: bytes, *, sync: bool = False, settle: bool = False) -> None:
        """Put *content* into the place of a file, so that nobody ever reads a part of it.

        With *sync*, that holds after a crash of the machine too: the file is whole then, the old one or not there. With
        *settle*, it is the new file. With neither, it may be cut.
        """
        path = self.path / name
        beside = self.path / f".{name}.{secrets.token_hex(4)}{TEMPORARY}"
        with explain_os_errors("cannot be written", path):
            try:
                self._disk.write_new(beside, content, self._mode)
                if sync or settle:
                    self._disk.settle(beside)
                self._make_way(path)
                self._disk.rename(beside, path)
            except OSError:
                with suppress(OSError):
                    beside.unlink(missing_ok=True)
                raise
            if settle:
                self._disk.settle(self.path)

    def rename(self, old: str, new: str) -> None:
        """Give a file another name; it takes no room, so that it works on a full disk."""
        with explain_os_errors("cannot be renamed", self.path / old):
            self._make_way(self.path / new)
            self._disk.rename(self.path / old, self.path / new)

    def remove(self, *names: str, settle: bool = False) -> None:
        """Take files away; those that are gone already are no error. With *settle*, a crash does not bring them back."""
        removed = False
        for name in names:
            path = self.path / name
            # Asked first: on a read-only mount the kernel refuses to remove what is not there.
            with explain_os_errors("cannot be removed", path), suppress(FileNotFoundError):
                self._make_way(path)
                if os.path.lexists(path):
                    self._disk.remove(path)
                    removed = True
        if removed and settle:
            with explain_os_errors("cannot be written", self.path):
                self._disk.settle(self.path)

    def remove_temporary(self, is_ours: Callable[[str], bool]) -> None:
        """Take away what a crash left half-written. *is_ours* is asked for the name that a file would have got."""
        for name in self.names():
            if (
                name.startswith(".")
                and name.endswith(TEMPORARY)
                and is_ours(name[1 : -len(TEMPORARY)].rpartition(".")[0])
            ):
                # Nobody reads it: one that cannot be removed may stay.
                with suppress(PluginError):
                    self.remove(name)

    def _make_way(self, path: Path) -> None:
        """Remove a folder that is in the place of a file, or rename it where it is not empty.

        What is in it is not ours to delete, and may be on another file system.
        """
        with suppress(FileNotFoundError):
            if not stat.S_ISDIR(path.lstat().st_mode):
                return
            try:
                path.rmdir()
            except OSError:
                self._disk.rename(path, self.path / f".{path.name}.{secrets.token_hex(4)}.folder")


def _read(path: Path) -> bytes:
    with open_plain(path) as file:
        return file.read(LARGEST + 1) if file else b""


@contextmanager
def open_plain(path: Path, *, follow: bool = False) -> Iterator[BinaryIO | None]:
    """Open a plain file to read it; None where something else is in its place, for whose writer nobody waits.

    With *follow*, a link in its place leads to the file; without it, it is refused as `OSError`.
    """
    # Somebody may put a link or a pipe there at any moment: the type is asked of what was opened.
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW))
    try:
        if stat.S_ISREG(os.fstat(handle).st_mode):
            with os.fdopen(handle, "rb", closefd=False) as file:
                yield file
        else:
            yield None
    finally:
        os.close(handle)


@contextmanager
def explain_os_errors(what: str, path: Path) -> Iterator[None]:
    """Raise errors of the file system inside as `PluginError`, code `plugin-folder-not-usable`."""
    try:
        yield
    except OSError as error:
        raise not_usable(path, what, error) from error


def not_usable(path: Path | str, what: str, error: OSError, hint: str = "") -> PluginError:
    """The error for what a file system refuses; without a *hint* of the caller's it is that for the system's reason."""
    return PluginError.of(
        path=str(path),
        code="plugin-folder-not-usable",
        message=f"{what}: {error.strerror or error}",
        hint=hint or _HINTS.get(error.errno or 0, LOOK),
    )
