"""The files of an image: what a layer has, in an order and with attributes that do not depend on who builds it."""

from __future__ import annotations

import io
import stat
import tarfile
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Final

_FOLDER: Final = 0o755
_LINK: Final = 0o777


@dataclass(frozen=True)
class Entry:
    """One file, folder or symbolic link.

    Args:
        kind: As tarfile has it: `REGTYPE`, `DIRTYPE` or `SYMTYPE`.
        mode: Permissions.
        data: Content of a file, or the place that it is read from.
        target: Where a link points.
    """

    kind: bytes
    mode: int
    data: bytes | Path = b""
    target: str = ""


@dataclass
class Tree:
    """Entries by their path without a leading `/`; folders above an entry are made with it."""

    entries: dict[str, Entry] = field(default_factory=dict)

    @classmethod
    def of_folder(cls, folder: Path) -> Tree:
        """Everything below a folder. Of permissions only "may be executed" counts, so that no umask has a say.

        Raises:
            ValueError: For sockets, devices and the like, of which an image has none.
        """
        tree = cls()
        for path in sorted(folder.rglob("*")):
            name = str(path.relative_to(folder))
            found = path.lstat()
            if stat.S_ISLNK(found.st_mode):
                tree.add_link(name, str(path.readlink()))
            elif stat.S_ISDIR(found.st_mode):
                tree.add_folder(name)
            elif stat.S_ISREG(found.st_mode):
                tree.add_file(name, path, executable=bool(found.st_mode & stat.S_IXUSR))
            else:
                raise ValueError(f"{name} is neither a file, a folder nor a link")
        return tree

    def add_file(self, name: str, data: bytes | Path, *, executable: bool = False) -> None:
        """A file of root's that all may read."""
        self._add(name, Entry(tarfile.REGTYPE, 0o755 if executable else 0o644, data))

    def add_folder(self, name: str, mode: int = _FOLDER) -> None:
        """A folder; its mode counts also where it was made before, with an entry in it."""
        self._add(name, Entry(tarfile.DIRTYPE, mode))

    def add_link(self, name: str, target: str) -> None:
        """A symbolic link."""
        self._add(name, Entry(tarfile.SYMTYPE, _LINK, target=target))

    def to_tar(self) -> bytes:
        """The entries as a tar archive: sorted, of root, of 1970."""
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
            for name in sorted(self.entries):
                entry = self.entries[name]
                data = entry.data.read_bytes() if isinstance(entry.data, Path) else entry.data
                described = tarfile.TarInfo(name)
                described.type, described.mode, described.linkname = entry.kind, entry.mode, entry.target
                described.size = len(data)
                archive.addfile(described, io.BytesIO(data))
        return packed.getvalue()

    def _add(self, name: str, entry: Entry) -> None:
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts:
            raise ValueError(f"{name} is no path below the root of an image")
        for above in path.parents:
            if above.parts:
                self.entries.setdefault(str(above), Entry(tarfile.DIRTYPE, _FOLDER))
        self.entries[str(path)] = entry
