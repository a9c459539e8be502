"""Compiles expressions that differ in quantities only once for all.

Programs ask for 40Gi here and 41Gi there, and compiling takes most of the time of a check. The type of an expression does
not depend on what a text literal says, and the checker does not look into the argument of `quantity`; it stands in the
tree as it was written. So quantities are compiled as zeros of the same length, which leaves every position where it is,
and put into the tree behind that. This is held against the compilation of the text itself in
tests/unit/kubernetes/cel/test_masking.py.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from dra_infra.kubernetes.cel.tree import CheckedTree, Const, walk, with_constants

_QUANTITY: Final = re.compile(r'\bquantity\("([0-9A-Za-z.+-]+)"\)')
_UNCERTAIN: Final = ("'", "\\", "`", "//", '"""')
"""Where one of these is in a text, telling where a literal ends is the parser's business."""


class Masked(NamedTuple):
    """A text whose quantities are zeros, and what they are by the offset of their quote."""

    text: str
    values: dict[int, str]


def mask(text: str) -> Masked | None:
    """*text* without its quantities; None when it has none, or when it is not certain that it has."""
    if "quantity(" not in text or any(each in text for each in _UNCERTAIN):
        return None
    values: dict[int, str] = {}
    parts: list[str] = []
    end = 0
    for match in _QUANTITY.finditer(text):
        start = match.start(1)
        values[start - 1] = match[1]
        parts += [text[end:start], "0" * len(match[1])]
        end = match.end(1)
    return Masked("".join([*parts, text[end:]]), values) if values else None


def unmask(tree: CheckedTree, values: dict[int, str]) -> CheckedTree | None:
    """The tree of the text itself; None when its literals are not where they should be."""
    at = {identity: values[place] for identity, place in tree.positions.items() if place in values}
    found = {
        node.id: at[node.id]
        for node in walk(tree.root)
        if isinstance(node, Const) and node.id in at and node.value == "0" * len(at[node.id])
    }
    if len(found) < len(values):
        return None
    return CheckedTree(
        root=with_constants(tree.root, found),
        types=tree.types,
        positions=tree.positions,
        references=tree.references,
    )
