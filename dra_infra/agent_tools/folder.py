"""Files of the folder that the server was started in, opened so that no name and no link leads out of it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dra_infra.errors import Problem, ProgramError

SUFFIXES: Final = (".yaml", ".yml", ".json", ".jsonl", ".ndjson")
"""Files of a folder that are read; a test keeps them equal to those of the commands."""

MOST_FILES: Final = 2_000
"""Files of one call."""

MOST_BYTES: Final = 32 * 2**20
"""Bytes that the files of one call have together."""

_DEEPEST: Final = 40
"""Folders inside each other."""

_MOST_ENTRIES: Final = 200_000
"""Entries of folders that are looked at for one call."""

_OPEN: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_HINT: Final = (
    "name a file or folder of the folder that `dra-infra mcp` was started in; links are not followed"
)


@dataclass(frozen=True, slots=True)
class CopiedFile:
    """A file of the folder.

    Args:
        name: Its name, seen from the folder: `manifests/claim.yaml`.
        content: All of it.
    """

    name: str
    content: bytes


class Folder:
    """The folder that the server was started in, and how much of it one call has read.

    Args:
        root: The folder.
        argument: Argument of the call, for problems.
    """

    def __init__(self, root: Path, argument: str) -> None:
        self._root = root
        self._argument = argument
        self._entries = 0
        self._files = 0
        self._bytes = 0

    def read(self, path: str) -> Iterator[CopiedFile]:
        """Yield a file, or the YAML and JSON files of a folder and of those in it, sorted, without hidden ones.

        Args:
            path: Its name: relative to the folder, or the whole path of something in it.

        Raises:
            ProgramError: `path-leads-out`, `file-unreadable` or `call-too-large`.
        """
        parts = self._parts_of(path)
        name = "/".join(parts)
        descriptor = self._open_root()
        try:
            for part in parts:
                inner = self._open(part, name, beside=descriptor)
                os.close(descriptor)
                descriptor = inner
            if stat.S_ISDIR(os.fstat(descriptor).st_mode):
                yield from self._walk(descriptor, parts)
            else:
                yield self._copy(descriptor, name)
        finally:
            os.close(descriptor)

    def _parts_of(self, path: str) -> list[str]:
        """Return the names of a path, below the folder.

        Raises:
            ProgramError: `path-leads-out`.
        """
        written = Path(path)
        if written.is_absolute():
            tops = {self._root, Path(os.path.realpath(self._root))}
            below = next((written.relative_to(top) for top in tops if written.is_relative_to(top)), None)
        else:
            below = written
        if below is None or "\0" in path or not {"..", ".git"}.isdisjoint(below.parts):
            raise self._refuse("path-leads-out", path, "is not in the folder of the server", _HINT)
        return list(below.parts)

    def _open_root(self) -> int:
        try:
            return os.open(self._root, _OPEN | os.O_DIRECTORY)
        except OSError as error:
            raise self._refuse("file-unreadable", ".", error.strerror or str(error), _HINT) from None

    def _open(self, part: str, name: str, *, beside: int) -> int:
        try:
            return os.open(part, _OPEN, dir_fd=beside)
        except OSError as error:
            # A link is refused with ELOOP, and by some systems with EMLINK.
            if stat.S_ISLNK(_mode_of(part, beside)):
                raise self._refuse("path-leads-out", name, "is a link, or leads through one", _HINT) from None
            raise self._refuse("file-unreadable", name, error.strerror or str(error), _HINT) from None

    def _walk(self, top: int, parts: list[str]) -> Iterator[CopiedFile]:
        for entry_name in self._names_in(top, parts):
            name = "/".join([*parts, entry_name])
            is_manifest = entry_name.endswith(SUFFIXES)
            mode = _mode_of(entry_name, top)
            if stat.S_ISLNK(mode) and is_manifest:
                raise self._refuse("path-leads-out", name, "is a link", _HINT)
            if stat.S_ISLNK(mode) or not (is_manifest or stat.S_ISDIR(mode)):
                continue
            descriptor = self._open(entry_name, name, beside=top)
            try:
                if stat.S_ISDIR(os.fstat(descriptor).st_mode):
                    yield from self._walk(descriptor, [*parts, entry_name])
                else:
                    yield self._copy(descriptor, name)
            finally:
                os.close(descriptor)

    def _names_in(self, top: int, parts: list[str]) -> list[str]:
        """Return the sorted names of a folder, without hidden ones.

        Raises:
            ProgramError: `call-too-large`.
        """
        where = "/".join(parts)
        if len(parts) > _DEEPEST:
            raise self._refuse("call-too-large", where, f"has more than {_DEEPEST} levels", _SMALLER)
        names = []
        with os.scandir(top) as entries:
            for entry in entries:
                self._entries += 1
                if self._entries > _MOST_ENTRIES:
                    message = f"has more than {_MOST_ENTRIES:,} entries"
                    raise self._refuse("call-too-large", where, message, _SMALLER)
                if not entry.name.startswith("."):
                    names.append(entry.name)
        return sorted(names)

    def _copy(self, descriptor: int, name: str) -> CopiedFile:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise self._refuse("file-unreadable", name, "is no file", _HINT)
        self._files += 1
        room = MOST_BYTES - self._bytes
        with os.fdopen(os.dup(descriptor), "rb") as opened:
            content = opened.read(room + 1)
        self._bytes += len(content)
        if self._files > MOST_FILES or len(content) > room:
            message = f"a call reads at most {MOST_FILES:,} files with {MOST_BYTES >> 20} MiB"
            raise self._refuse("call-too-large", name, message, _SMALLER)
        return CopiedFile(name, content)

    def _refuse(self, code: str, path: str, message: str, hint: str) -> ProgramError:
        shown = path if len(path) <= _LONGEST_NAME else f"{path[:_LONGEST_NAME]}…"
        return ProgramError(
            [Problem(path=self._argument, code=code, message=f"{shown!r}: {message}", hint=hint)]
        )


_SMALLER: Final = "name fewer files, or run the command dra-infra in a shell"
_LONGEST_NAME: Final = 200


def _mode_of(name: str, beside: int) -> int:
    """Return the mode of an entry of a folder, whose link is not followed; 0 where it cannot be told."""
    try:
        return os.stat(name, dir_fd=beside, follow_symlinks=False).st_mode
    except OSError:
        return 0
