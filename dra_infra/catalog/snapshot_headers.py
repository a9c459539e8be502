"""The comment at the top of a snapshot: the server's version and which kinds were read: what is not in it is not in the cluster."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import takewhile
from typing import Final

OF_NAMESPACES: Final = "# Of namespaces: "
"""How the line begins that names the namespaces which were read; a snapshot of all of them has no such line."""
MARK: Final = "# A snapshot of a cluster"
"""How the first line of a snapshot begins that `dra-infra snapshot` wrote."""
SERVER: Final = "# Kubernetes {}"
"""The version of the API server that a snapshot was read from."""
READ: Final = "#   {}: {}"
"""A kind by its plural, and the `resourceVersion` at which it was listed."""
NOT_SEEN: Final = "# not seen: {} [{}]"
"""A kind by its plural that was not listed, and the code of the reason."""

_SERVER_LINE: Final = re.compile(r"# Kubernetes (v?[0-9][0-9A-Za-z.+-]{0,99})")
_READ_LINE: Final = re.compile(r"#   ([a-z]+): .+")
_ABSENT_LINE: Final = re.compile(r"# not seen: ([a-z]+) \[kind-not-served\]")
_MOST_LINES: Final = 200
_LONGEST: Final = 2**20
"""Characters of a header that are read: a snapshot has hundreds of MiB, and names thousands of namespaces at most."""


def find_read_kinds(text: str) -> frozenset[str]:
    """Return the plurals of the kinds that a snapshot holds all objects of, or that its cluster does not have; none without a header.

    A snapshot of some namespaces holds all objects of these.
    """
    matches = (_READ_LINE.fullmatch(line) or _ABSENT_LINE.fullmatch(line) for line in _header_of(text))
    return frozenset(match[1] for match in matches if match)


def find_namespaces(text: str) -> frozenset[str]:
    """Return the namespaces that a snapshot was read from; empty if that is all of them, or if it has no header."""
    named = (line.removeprefix(OF_NAMESPACES) for line in _header_of(text) if line.startswith(OF_NAMESPACES))
    return frozenset(next(named, "").split(", ")) - {""}


def find_server_version(text: str) -> str:
    """Return the version of the API server that a snapshot was read from, as it reported it; empty if its header names none."""
    matches = (_SERVER_LINE.fullmatch(line) for line in _header_of(text))
    return next((match[1] for match in matches if match), "")


def _header_of(text: str) -> Iterator[str]:
    lines = text[:_LONGEST].splitlines()[:_MOST_LINES] if text.startswith(MARK) else ()
    return takewhile(lambda line: line.startswith("#"), lines)
