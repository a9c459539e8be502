"""Whether every program and library of an image finds the libraries that it is linked against, read from the files.

Source of the layout: the ELF specification, `elf.h`. Only 64-bit little-endian files are read: those of amd64 and arm64.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_MAGIC: Final = b"\x7fELF\x02\x01"
_LOAD, _DYNAMIC = 1, 2
_NEEDED, _STRING_TABLE, _OLD_PATH, _PATH = 1, 5, 15, 29


@dataclass(frozen=True)
class Linked:
    """What a file says of its libraries.

    Args:
        needs: Names of libraries.
        folders: Where it looks first, with `$ORIGIN` for its own folder.
    """

    needs: tuple[str, ...]
    folders: tuple[str, ...]


def read(data: bytes) -> Linked | None:
    """What a program or library is linked against; None for other files."""
    if not data.startswith(_MAGIC):
        return None
    table, size, count = (*struct.unpack_from("<Q", data, 32), *struct.unpack_from("<HH", data, 54))
    headers = [struct.unpack_from("<IIQQQQQQ", data, table + number * size) for number in range(count)]
    loaded = [
        (address, offset, length) for kind, _, offset, address, _, length, *_ in headers if kind == _LOAD
    ]
    dynamic = [
        struct.unpack_from("<qQ", data, place)
        for kind, _, offset, _, _, length, *_ in headers
        if kind == _DYNAMIC
        for place in range(offset, offset + length, 16)
    ]
    strings = next((value for tag, value in dynamic if tag == _STRING_TABLE), None)
    if strings is None:
        return Linked((), ())
    start = next(
        offset + strings - address
        for address, offset, length in loaded
        if address <= strings < address + length
    )

    def text(at: int) -> str:
        return data[start + at : data.index(b"\0", start + at)].decode()

    return Linked(
        needs=tuple(text(value) for tag, value in dynamic if tag == _NEEDED),
        folders=tuple(
            each for tag, value in dynamic if tag in (_OLD_PATH, _PATH) for each in text(value).split(":")
        ),
    )


def missing(root: Path) -> Iterator[str]:
    """Each library that a file below *root* needs and that is not there, with the file."""
    usual = [*root.glob("usr/lib/*-linux-gnu*"), root / "usr/lib", root / "usr/lib64"]
    for path in sorted(root.rglob("*")):
        if path.is_symlink() or not path.is_file():
            continue
        with path.open("rb") as file:
            if file.read(len(_MAGIC)) != _MAGIC:
                continue
        linked = read(path.read_bytes())
        own = [_folder(root, path, each) for each in linked.folders] if linked else []
        for name in linked.needs if linked else ():
            if not any((folder / name).exists() for folder in (*own, *usual)):
                yield f"{path.relative_to(root)} needs {name}"


def _folder(root: Path, path: Path, written: str) -> Path:
    if written.startswith("$ORIGIN"):
        return path.parent / written.removeprefix("$ORIGIN").lstrip("/")
    return root / written.lstrip("/")
