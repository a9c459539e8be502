"""Which part of a device a node of an expression stands for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from dra_infra.catalog.drivers import Section
from dra_infra.cel.tree import Call, Comprehension, Const, Ident, Node, Select


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
    """What *node* reads, None for anything else; `has(...)` reads nothing."""
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
    """What *node* reads, or tests for, in any spelling: `has(a.b)`, `"b" in a`, `a.?b`, `a[?"b"]`."""
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
