"""Which Go built a binary, read from the binary itself: Go writes it there, stripped or not (debug/buildinfo)."""

from __future__ import annotations

import mmap
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_MAGIC = b"\xff Go buildinf:"
_ALIGNMENT = 16
_FLAGS = 15
_INLINE = 2
"""Since Go 1.18 both texts follow the header; older ones are pointed to, and are none of ours."""

_HEADER = 32
_LONGEST = 1 << 20


def read(path: Path) -> str | None:
    """What ``go version`` of that Go prints, such as ``go version go1.26.8 linux/amd64``; None where the file has no such thing."""
    if not path.stat().st_size:
        return None
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        place = content.find(_MAGIC)
        while place >= 0:
            header = content[place : place + _HEADER]
            # The magic is also in programs that look for it.
            if place % _ALIGNMENT == 0 and len(header) == _HEADER and header[_FLAGS] & _INLINE:
                version, after = _text(content, place + _HEADER)
                settings, _ = _text(content, after)
                found = dict(re.findall(r"^build\t(GOOS|GOARCH)=(\w+)$", settings, re.MULTILINE))
                if version and len(found) == 2:
                    return f"go version {version} {found['GOOS']}/{found['GOARCH']}"
            place = content.find(_MAGIC, place + 1)
    return None


def _text(content: mmap.mmap, place: int) -> tuple[str, int]:
    """A text behind its length, which is a varint; and where what follows begins."""
    length = shift = 0
    while True:
        byte = content[place] if place < len(content) else 0
        length |= (byte & 0x7F) << shift
        place = place + 1
        shift = shift + 7
        if byte < 0x80 or shift > 63:
            break
    length = min(length, _LONGEST)
    return content[place : place + length].decode("utf-8", "replace"), place + length
