"""Which processes listen at a TCP port, as far as this one may see: /proc shows those of its own namespaces."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_PROC: Final = Path("/proc")
_TABLES: Final = ("net/tcp", "net/tcp6")
_LISTENS: Final = "0A"
"""TCP_LISTEN, as these tables have it (Linux, Documentation/networking/proc_net_tcp.rst)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Listeners:
    """Who listens at a port.

    Args:
        processes: Their ids.
        hidden: Whether there is one besides that cannot be seen from here.
    """

    processes: tuple[int, ...]
    hidden: bool

    def __str__(self) -> str:
        seen = [f"process {each} ({_name(each)})" for each in self.processes]
        return " and ".join([*seen, *(["a process that cannot be seen from here"] if self.hidden else [])])


def find_listeners(port: int) -> Listeners:
    """Who listens at *port*, at any address."""
    sockets = set(_sockets(port))
    found: dict[int, set[str]] = {}
    for process in _processes() if sockets else ():
        if theirs := sockets.intersection(_open_files(process)):
            found[process] = theirs
    seen: set[str] = set().union(*found.values())
    return Listeners(processes=tuple(sorted(found)), hidden=seen != sockets)


def has_open(process: int, file: Path) -> bool:
    """Whether a process has a file open; false where nobody may say."""
    try:
        wanted = file.stat()
        handles = list((_PROC / str(process) / "fd").iterdir())
    except OSError:
        return False
    for each in handles:
        with suppress(OSError):
            if os.path.samestat(each.stat(), wanted):
                return True
    return False


def _sockets(port: int) -> Iterator[str]:
    """Those that listen there, as links in the folders of processes name them."""
    for table in _TABLES:
        # A kernel without IPv6 has no table of it.
        with suppress(OSError):
            for line in (_PROC / table).read_text().splitlines()[1:]:
                _, local, _, state, *others = line.split()
                if state == _LISTENS and int(local.rpartition(":")[2], 16) == port:
                    yield f"socket:[{others[5]}]"


def _processes() -> Iterator[int]:
    return (int(each.name) for each in _PROC.iterdir() if each.name.isdigit())


def _open_files(process: int) -> Iterator[str]:
    # It may end meanwhile, or be somebody else's.
    with suppress(OSError):
        for each in (_PROC / str(process) / "fd").iterdir():
            with suppress(OSError):
                yield str(each.readlink())


def _name(process: int) -> str:
    try:
        return (_PROC / str(process) / "comm").read_text().strip()
    except OSError:
        return "which ended"
