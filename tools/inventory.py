"""What is built and what is not, one row per binary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tools import cache
    from tools.toolsets import Toolset

_HEADING = ("binary", "version", "size", "seconds", "state")
_NUMBERS = ("size", "seconds")


@dataclass(frozen=True, kw_only=True)
class Row:
    """One binary.

    Args:
        name: Name of the binary.
        toolset: Name of its toolset.
        version: Version that go.mod pins.
        state: ``built`` just now, ``cached`` from before, or ``missing``.
        bytes: Size, 0 when missing.
        seconds: How long this run built its whole toolset, 0 when it did not.
        path: Where it lies, None when missing.
    """

    name: str
    toolset: str
    version: str
    state: str
    bytes: int = 0
    seconds: float = 0.0
    path: str | None = None


def of_build(toolset: Toolset, built: cache.Built, *, is_fresh: bool) -> list[Row]:
    """Rows of a finished build, made by this run when *is_fresh*."""
    return [
        Row(
            name=name,
            toolset=toolset.name,
            version=built.version,
            state="built" if is_fresh else "cached",
            bytes=size,
            seconds=built.seconds if is_fresh else 0.0,
            path=str(built.folder / name),
        )
        for name, size in built.sizes.items()
    ]


def of_cache(chosen: Iterable[Toolset], find: Callable[[Toolset], cache.Built | None]) -> list[Row]:
    """Rows of what *find* finds, and of what it does not."""
    found = []
    for toolset in chosen:
        if (built := find(toolset)) is not None:
            found += of_build(toolset, built, is_fresh=False)
        else:
            found += [
                Row(name=name, toolset=toolset.name, version=toolset.version, state="missing")
                for name in sorted(toolset.binaries)
            ]
    return found


def table(rows: Sequence[Row]) -> str:
    """The rows for people."""
    cells = [
        (
            row.name,
            row.version,
            f"{row.bytes / 1e6:.1f} MB" if row.bytes else "",
            f"{row.seconds:.0f}" if row.seconds else "",
            row.state,
        )
        for row in rows
    ]
    widths = [max(map(len, column)) for column in zip(_HEADING, *cells, strict=True)]
    lines = (
        "  ".join(
            cell.rjust(width) if title in _NUMBERS else cell.ljust(width)
            for title, cell, width in zip(_HEADING, line, widths, strict=True)
        )
        for line in (_HEADING, *cells)
    )
    return "\n".join(line.rstrip() for line in lines)
