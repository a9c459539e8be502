"""Everything of a device that can decide the result of a selector.

Devices that agree in it need one evaluation. Unlike `dra_infra.kubernetes.cel.reads`, which looks for reads without a guard,
this counts tests as well and gives up where a key is computed.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TypeAlias

from dra_infra.kubernetes.cel.check import check_expression
from dra_infra.kubernetes.cel.tree import Call, Const, Ident, Node, Select, children

Dependencies: TypeAlias = frozenset[tuple[str, str, str]] | None
"""(`attributes` or `capacity`, domain, id) of all values that matter; None when it may be anything.

An empty id stands for whether the device has the domain at all.
"""

_SOURCES = {"device.attributes": "attributes", "device.capacity": "capacity"}
_FREE = frozenset({"device.driver", "device.allowMultipleAllocations"})
"""Fields that devices of one kind agree in anyway."""


@lru_cache(maxsize=4096)
def find_dependencies(expression: str) -> Dependencies:
    """The attributes and capacities that decide the result of an expression that compiles."""
    tree = check_expression(expression).tree
    if tree is None:
        return None
    found: set[tuple[str, str, str]] = set()
    waiting = [tree.root]
    while waiting:
        node = waiting.pop()
        read = _read_of(node)
        if read is not None:
            found.add(read)
        elif isinstance(node, Ident) and node.name.startswith("device") and node.name not in _FREE:
            return None
        else:
            waiting.extend(children(node))
    return frozenset(found)


def _read_of(node: Node) -> tuple[str, str, str] | None:
    """The name that `device.attributes["domain"].id` reads, in any of its spellings, tests included."""
    match node:
        case Select(operand=operand, field=identifier):
            return _join(operand, identifier)
        case Call(
            function="_[_]" | "_[?_]" | "_?._", target=None, args=(operand, Const(value=str(identifier)))
        ):
            return _join(operand, identifier)
        case Call(
            function="@in",
            target=None,
            args=(
                Const(value=str(domain)),
                Ident(name="device.attributes" | "device.capacity" as name),
            ),
        ):
            return _SOURCES[name], domain, ""
        case Call(function="@in", target=None, args=(Const(value=str(identifier)), operand)):
            return _join(operand, identifier)
    return None


def _join(domain_map: Node, identifier: str) -> tuple[str, str, str] | None:
    """The read of an id in a map of one domain; None when the node is not such a map."""
    match domain_map:
        case Call(
            function="_[_]" | "_[?_]" | "_?._",
            target=None,
            args=(Ident(name="device.attributes" | "device.capacity" as name), Const(value=str(domain))),
        ):
            return _SOURCES[name], domain, identifier
        case Select(operand=Ident(name="device.attributes" | "device.capacity" as name), field=domain):
            return _SOURCES[name], domain, identifier
    return None
