"""The comment at the top of a snapshot: which kinds were read, so that what is not in the snapshot is not in the cluster."""

from __future__ import annotations

import re
from itertools import takewhile
from typing import Final

MARK: Final = "# A snapshot of a cluster"
"""How the first line of a snapshot begins that `dra-infra snapshot` wrote."""
READ: Final = "#   {}: {}"
"""A kind by its plural, and the `resourceVersion` at which it was listed."""
NOT_SEEN: Final = "# not seen: {} [{}]"
"""A kind by its plural that was not listed, and the code of the reason."""

_READ_LINE: Final = re.compile(r"#   ([a-z]+): .+")
_ABSENT_LINE: Final = re.compile(r"# not seen: ([a-z]+) \[kind-not-served\]")
_MOST_LINES: Final = 200


def find_read_kinds(text: str) -> frozenset[str]:
    """Return the plurals of the kinds that a snapshot holds all objects of, or that its cluster does not have; none without a header.

    A snapshot of some namespaces holds all objects of these.
    """
    if not text.startswith(MARK):
        return frozenset()
    lines = takewhile(lambda line: line.startswith("#"), text.splitlines()[:_MOST_LINES])
    matches = (_READ_LINE.fullmatch(line) or _ABSENT_LINE.fullmatch(line) for line in lines)
    return frozenset(match[1] for match in matches if match)
