"""Advice findings before they have a path, and the parts of a CEL expression that hints quote.

A `Place` is the part of a device that a node of an expression stands for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from dra_infra.catalog.drivers import Section
from dra_infra.errors import Problem
from dra_infra.kubernetes.cel.tree import Call, Comprehension, Const, Ident, Node, Select

MAX_QUOTED = 200
"""Longest clause, in characters, that a hint repeats."""

STANDARD_DOMAIN: Final = "resource.kubernetes.io"
STANDARD_NAMES: Final = ("numaNode", "pciBusID", "pcieRoot")
"""Attributes that mean the same for every driver (k8s.io/dynamic-resource-allocation/deviceattribute, KEP 6072)."""

_JOINTS: Final = re.compile(r"""\"(?:\\.|[^"\\])*"?|'(?:\\.|[^'\\])*'?|[()\[\]{}?]|&&|\|\|""", re.DOTALL)
_OPENING: Final = frozenset("([{")
_CLOSING: Final = frozenset(")]}")


class Finding(NamedTuple):
    """A warning with the line to write instead, for any place where it is written."""

    code: str
    message: str
    hint: str = ""

    def at(self, path: str) -> Problem:
        """The warning at *path*."""
        return Problem(path=path, code=self.code, message=self.message, hint=self.hint, severity="warning")


def clauses(text: str) -> tuple[str, ...]:
    """The parts of an expression between `&&` outside of brackets; the whole when `||` or `?` joins them looser."""
    return _split(text, "&&", ("||", "?"))


def _split(text: str, wanted: str, looser: tuple[str, ...]) -> tuple[str, ...]:
    parts: list[str] = []
    depth, start = 0, 0
    for match in _JOINTS.finditer(text):
        joint = match[0]
        if joint in _OPENING:
            depth += 1
        elif joint in _CLOSING:
            depth -= 1
        elif depth == 0 and joint in (wanted, *looser) and (joint != "?" or _is_choice(text, match.start())):
            if joint != wanted:
                return (text.strip(),)
            parts.append(text[start : match.start()].strip())
            start = match.end()
    return (*parts, text[start:].strip())


def guarded_clause(text: str, word: str, guard: str) -> str:
    """The first clause of *text* in which *word* is, with a guard before each read in it, on one line; empty where it cannot be quoted."""
    line = next((" ".join(each.split()) for each in clauses(text) if word in each), "")
    parts = _split(line, "||", ())
    # Inside of a choice, or of alternatives in brackets, the guard belongs where no clause is known.
    is_inside = "?" in line or any(word in each and "||" in each for each in parts)
    if not line or len(line) > MAX_QUOTED or is_inside:
        return ""
    return " || ".join(
        f"{guard} && {each}" if word in each and not each.startswith(f"{guard} &&") else each
        for each in parts
    )


def show(text: str) -> str:
    """*text* in quotes, in bounded length."""
    return repr(text if len(text) <= 80 else f"{text[:77]}...")


def _is_choice(text: str, index: int) -> bool:
    """True when a `?` is the operator, and not the mark of `.?name` or `[?"name"]`."""
    before = text[:index].rstrip()[-1:]
    return before not in (".", "[")


class Place(NamedTuple):
    """All attributes or capacities of a device, those of one domain, or one of them.

    Args:
        section: Attributes or capacities.
        domain: Empty for all domains.
        identifier: Empty for all of a domain.
        unsafe: Below a name of cel.bind for all domains, where a domain that a device lacks has no map.
    """

    section: Section
    domain: str = ""
    identifier: str = ""
    unsafe: bool = False

    @property
    def name(self) -> str:
        """`domain/identifier`."""
        return f"{self.domain}/{self.identifier}"

    @property
    def cel(self) -> str:
        """How it is read."""
        field = "attributes" if self.section == "attribute" else "capacity"
        return f'device.{field}["{self.domain}"].{self.identifier}'


Names = Mapping[str, Place]

_ACCESSES: Final = frozenset({"_[_]", "_?._", "_[?_]", "@in"})
ROOTS: Final[Names] = {"device.attributes": Place("attribute"), "device.capacity": Place("capacity")}


def find_place(node: Node, names: Names) -> Place | None:
    """The attribute or capacity that *node* reads, None for anything else; `has(...)` reads nothing."""
    if isinstance(node, Ident):
        return ROOTS.get(node.name) or names.get(node.name)
    if isinstance(node, Select):
        return None if node.test_only else below(find_place(node.operand, names), node.field)
    if isinstance(node, Call) and node.function == "_[_]":
        key = node.args[1]
        if isinstance(key, Const) and isinstance(key.value, str):
            return below(find_place(node.args[0], names), key.value)
    return None


def find_accessed(node: Node, names: Names) -> Place | None:
    """The attribute or capacity that *node* reads, or tests for, in any spelling: `has(a.b)`, `"b" in a`, `a.?b`, `a[?"b"]`."""
    if isinstance(node, Select):
        return below(find_place(node.operand, names), node.field)
    if isinstance(node, Call) and node.function in _ACCESSES and len(node.args) == 2:
        container, key = reversed(node.args) if node.function == "@in" else node.args
        if isinstance(key, Const) and isinstance(key.value, str):
            return below(find_place(container, names), key.value)
    return None


def below(outer: Place | None, key: str) -> Place | None:
    """The place at *key* of another one."""
    if outer is None or outer.identifier:
        return None
    if outer.domain:
        return Place(outer.section, outer.domain, key, outer.unsafe)
    return Place(outer.section, key, "", outer.unsafe)


def bound(node: Comprehension, names: Names) -> dict[str, Place]:
    """The names inside the result of a cel.bind."""
    inner = {name: place for name, place in names.items() if name != node.accu_var}
    place = find_place(node.accu_init, names)
    if place is not None and not place.identifier:
        inner[node.accu_var] = place._replace(unsafe=place.unsafe or not place.domain)
    return inner


def hidden(node: Comprehension, names: Names) -> dict[str, Place]:
    """The names inside a loop."""
    own = (node.iter_var, node.iter_var2, node.accu_var)
    return {name: place for name, place in names.items() if name not in own}
