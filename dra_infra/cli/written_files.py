"""Writes files into folders that no stranger's link chooses.

A repository is a stranger's content, and it can hold a link in the place of any folder or file. The rule for every path
that a command writes to:

- A link in a git working tree, below the current folder, or below an input or output folder of the command is not
  followed. A command that would have to follow one does not write the file.
- Any other link is the user's or the system's, and is followed: `/tmp` on macOS, a home on another disk, `/dev/stdout`.
- A link in the place of the file itself is replaced by the file.

Paths are resolved part by part, each relative to the open folder before it. A link that takes the place of a folder in
the meantime is not followed either.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_FOLDER: Final = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
"""Flags that open a folder. With O_PATH it need not be readable, as a home of others is not."""

_MOST_LINKS: Final = 40
"""Links in one path after which Linux gives up too (MAXSYMLINKS in include/linux/namei.h)."""


class LinkedFolderError(OSError):
    """A part of a path is a link that is not followed.

    Args:
        link: The part.
        root: The folder below which no link is followed.
    """

    def __init__(self, link: Path, root: Path) -> None:
        below = "the current folder" if root == Path.cwd() else str(root)
        super().__init__(errno.ELOOP, f"{_shown(link)} is a link, and links in {below} are not followed")
        self.hint = f"remove the link, or name the folder that it leads to: {os.path.realpath(link)}"


def hint_for(error: OSError, otherwise: str) -> str:
    """Return what to do about a file that was not written: about the link, or *otherwise* where none is in the way."""
    return error.hint if isinstance(error, LinkedFolderError) else otherwise


@dataclass(frozen=True, slots=True)
class Folder:
    """An open folder, which stays the same one whatever takes its name.

    Args:
        real: Its path without links.
        number: Its file descriptor.
        is_guarded: Whether a link in it may be a stranger's.
    """

    real: Path
    number: int
    is_guarded: bool

    def state(self, name: str) -> os.stat_result | None:
        """Return the state of a file, or of a link itself; None where nothing has the name.

        Raises:
            OSError: Of the system.
        """
        try:
            return os.lstat(name, dir_fd=self.number)
        except FileNotFoundError:
            return None

    def read(self, name: str) -> bytes:
        """Return the content of a regular file.

        Raises:
            OSError: Of the system; ELOOP for a link.
        """
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        with os.fdopen(os.open(name, flags, dir_fd=self.number), "rb") as stream:
            return stream.read()

    def put(self, name: str, content: bytes, mode: int | None = None) -> None:
        """Write a file whole or not at all, in the place of a file or link of that name.

        A device or pipe, such as /dev/stdout, is written to instead.

        Args:
            name: Name of the file in the folder.
            content: All of it.
            mode: Its permissions. None keeps those of the file that is replaced; a new file gets the usual ones.

        Raises:
            OSError: Of the system.
        """
        if name in ("", ".", ".."):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        there = self.state(name)
        if self._is_stream(name, there):
            with os.fdopen(os.open(name, os.O_WRONLY | os.O_CLOEXEC, dir_fd=self.number), "wb") as stream:
                stream.write(content)
            return
        if mode is None and there and stat.S_ISREG(there.st_mode):
            mode = there.st_mode & 0o777
        beside = self.put_beside(content, mode)
        try:
            self.rename(beside, name)
        except BaseException:
            self.remove(beside)
            raise

    def put_beside(self, content: bytes, mode: int | None = None) -> str:
        """Write a new file under a hidden name, and return the name.

        Raises:
            OSError: Of the system; nothing is left then.
        """
        name = new_name()
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            number = os.open(name, flags, 0o666 if mode is None else 0o600, dir_fd=self.number)
            with os.fdopen(number, "wb") as stream:
                if mode is not None:
                    os.fchmod(number, mode)
                stream.write(content)
        except BaseException:
            # An interruption leaves nothing behind either.
            self.remove(name)
            raise
        return name

    def rename(self, name: str, other: str) -> None:
        """Give a file another name, in the place of a file or link that has it.

        Raises:
            OSError: Of the system.
        """
        os.rename(name, other, src_dir_fd=self.number, dst_dir_fd=self.number)

    def remove(self, name: str) -> None:
        """Remove a file if it is there and the system allows it."""
        with suppress(OSError):
            os.unlink(name, dir_fd=self.number)

    def _is_stream(self, name: str, there: os.stat_result | None) -> bool:
        if there and stat.S_ISLNK(there.st_mode) and not self.is_guarded:
            try:
                there = os.stat(name, dir_fd=self.number)
            except OSError:
                return False
        kind = stat.S_IFMT(there.st_mode) if there else stat.S_IFREG
        return kind not in (stat.S_IFREG, stat.S_IFLNK, stat.S_IFDIR)


def new_name() -> str:
    """Return a hidden file name that nothing has yet."""
    return f".dra-infra-{os.urandom(8).hex()}"


def put_in_place(
    file: Path, content: bytes, mode: int | None = None, *, guarded: Sequence[Path] = ()
) -> None:
    """Write *file* as `Folder.put` does, in a folder that is there; *guarded* is as in `open_folder`.

    Raises:
        LinkedFolderError: For a link that is not followed.
        OSError: Of the system.
    """
    with open_folder(file.parent, guarded) as folder:
        folder.put(file.name, content, mode)


@contextmanager
def open_folder(
    path: Path, guarded: Sequence[Path] = (), *, made: list[Path] | None = None, within: bool = False
) -> Iterator[Folder]:
    """Open a folder without following a link that may be a stranger's.

    Args:
        path: The folder.
        guarded: Input and output folders of the command, in which links are not followed.
        made: List that gets each folder that was created. Without it the folder must be there.
        within: Follow a link if the folder turns out to be in the same repository or guarded folder as the link.

    Raises:
        LinkedFolderError: For a link that is not followed.
        OSError: Of the system.
    """
    walk = _Walk(path, guarded)
    try:
        walk.go(made, within=within)
        yield Folder(walk.real, walk.number, walk.root_of(walk.real) is not None)
    finally:
        os.close(walk.number)


class _Walk:
    """Goes along a path, folder by folder."""

    def __init__(self, path: Path, guarded: Sequence[Path]) -> None:
        here = Path.cwd()
        # Nobody checks a repository out as the root of the file system, which has the system's own links.
        roots = () if here == Path(here.anchor) else (here,)
        self._guarded = {*roots, *(Path(os.path.realpath(each)) for each in guarded)}
        self._parts = [each for each in reversed(path.parts) if each != path.anchor]
        self.real = Path(path.anchor) if path.anchor else here
        self.number = os.open(path.anchor or ".", _FOLDER)

    def root_of(self, folder: Path) -> Path | None:
        """Return the outermost folder around *folder* in which no link is followed."""
        around = reversed((folder, *folder.parents))
        return next(
            (each for each in around if each in self._guarded or os.path.lexists(each / ".git")), None
        )

    def go(self, made: list[Path] | None, *, within: bool) -> None:
        """Go to the end of the path, as `open_folder` describes it."""
        followed: list[tuple[Path, Path]] = []
        links = 0
        while self._parts:
            part = self._parts.pop()
            target = self._enter(part, made)
            if target is None:
                continue
            links += 1
            if links > _MOST_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
            root = self.root_of(self.real)
            if root is not None:
                followed.append((self.real / part, root))
                if not within:
                    raise LinkedFolderError(*followed[-1])
            if target.anchor:
                self._move(os.open(target.anchor, _FOLDER), Path(target.anchor))
            self._parts += [each for each in reversed(target.parts) if each != target.anchor]
        for link, root in followed:
            if not self.real.is_relative_to(root) or ".git" in self.real.relative_to(root).parts:
                raise LinkedFolderError(link, root)

    def _enter(self, part: str, made: list[Path] | None) -> Path | None:
        """Go into a folder; where *part* is a link, return what it leads to."""
        real = self.real.parent if part == ".." else self.real / part
        try:
            self._move(os.open(part, _FOLDER, dir_fd=self.number), real)
        except FileNotFoundError:
            if made is None:
                raise
            with suppress(FileExistsError):
                os.mkdir(part, dir_fd=self.number)
                made.append(real)
            self._move(os.open(part, _FOLDER, dir_fd=self.number), real)
        except OSError as error:
            # What O_NOFOLLOW and O_DIRECTORY return for a link differs by system.
            if error.errno not in (errno.ELOOP, errno.ENOTDIR):
                raise
            try:
                return Path(os.readlink(part, dir_fd=self.number))
            except OSError:
                raise error from None
        return None

    def _move(self, number: int, real: Path) -> None:
        os.close(self.number)
        self.number = number
        self.real = real


def _shown(path: Path) -> str:
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)
