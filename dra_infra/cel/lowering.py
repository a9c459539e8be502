"""The walk that lowers a tree: domains, names of `cel.bind`, and the nodes it builds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from dra_infra.cel import natives
from dra_infra.cel.tree import (
    Call,
    CelType,
    CheckedTree,
    Comprehension,
    Const,
    Entry,
    Ident,
    ListLiteral,
    MapLiteral,
    Node,
    Select,
    is_bind,
)

DOMAIN_MAPS: Final = {"device.attributes": "@a/", "device.capacity": "@c/"}
"""The maps by domain, and the prefix of the variable that holds the map of one domain, `{}` if there is none."""

TRUE: Final = Const("bool_value", value=True)
FALSE: Final = Const("bool_value", value=False)
ZERO: Final = Const("int64_value", 0)
UNUSED: Final = "@unused"
"""Variable of a loop over nothing, which binds a name.

By its usual name, `#unused`, the engine takes such a loop for one to be evaluated lazily, and then finds the name bound
already, to whatever an earlier loop left behind that ended before its last element.
"""
DEFER: Final = Call("@defer", ())
"""Leaves the verdict to the interpreter, for an operand of another type than usual."""


class NotLoweredError(Exception):
    """The tree is beyond what the engine is known to evaluate as the server does."""


class Lowering:
    """One walk over one tree.

    Args:
        tree: The checked tree.
        rewrites: How to lower a call, by function; the others must be in `natives.NATIVE`.
    """

    def __init__(self, tree: CheckedTree, rewrites: Mapping[str, Rewrite]) -> None:
        self._tree = tree
        self._rewrites = rewrites
        self._aliases: dict[str, str] = {}
        self._temporaries = 0
        self.variables: set[str] = set()

    def type_of(self, node: Node) -> CelType:
        """The static type of a node of the checked tree."""
        return self._tree.type_of(node)

    def visit(self, node: Node) -> Node:
        """The lowered node.

        Raises:
            NotLoweredError: When that is not possible.
        """
        match node:
            case Const():
                return node
            case Ident():
                if self.domain_map(node) or node.name == "device" or self.type_of(node).name == "type":
                    raise NotLoweredError
                return node
            case Select():
                return self._visit_select(node)
            case Call():
                return self._visit_call(node)
            case ListLiteral():
                return ListLiteral(tuple(map(self.visit, node.elements)), node.optional_indices)
            case MapLiteral():
                return MapLiteral(tuple(map(self._visit_entry, node.entries)))
            case Comprehension():
                return self._visit_comprehension(node)

    def rebuild(self, node: Call) -> Node:
        """The same call of lowered operands."""
        target = None if node.target is None else self.visit(node.target)
        return Call(node.function, tuple(map(self.visit, node.args)), target)

    def let(self, value: Node, body: Callable[[Node], Node]) -> Node:
        """*body* of *value*, bound to a name unless that is a plain read, so that nothing grows by being repeated."""
        if _is_plain_read(value):
            return body(value)
        self._temporaries += 1
        name = f"@t{self._temporaries}"
        return Comprehension(
            iter_var=UNUSED,
            iter_var2="",
            iter_range=ListLiteral(()),
            accu_var=name,
            accu_init=value,
            condition=FALSE,
            step=Ident(name),
            result=body(Ident(name)),
        )

    def guard(self, value: Node, body: Callable[[Node], Node]) -> Node:
        """*body* of *value*, unless that turns out to be a version or quantity."""
        return self.let(value, lambda it: choose(has_type(it, "bytes"), DEFER, body(it)))

    def domain_map(self, node: Node) -> str:
        """The map by domain that *node* is, by its own name or by one that cel.bind gave it; empty if it is none."""
        if not isinstance(node, Ident):
            return ""
        return node.name if node.name in DOMAIN_MAPS else self._aliases.get(node.name, "")

    def is_device_map(self, node: Node) -> bool:
        """Whether *node* is a map of the device: by domain, or of one domain."""
        if isinstance(node, Select) and not node.test_only:
            node = node.operand
        elif isinstance(node, Call) and node.function == "_[_]":
            node = node.args[0]
        return bool(self.domain_map(node))

    def whole(self, node: Node) -> Node:
        """*node* lowered, where the map by domain itself, with only the domains that exist, is meant."""
        name = self.domain_map(node)
        return Ident(name) if name else self.visit(node)

    def domain_of(self, container: Node, key: Node) -> Node | None:
        """`container[key]` where the container is a map by domain, else None."""
        name = self.domain_map(container)
        if not name:
            return None
        if isinstance(key, Const) and isinstance(key.value, str):
            return self._domain(name, key.value)
        whole = Ident(name)
        return self.let(
            self.visit(key),
            lambda it: choose(Call("@in", (it, whole)), Call("_[_]", (whole, it)), MapLiteral(())),
        )

    def unless_empty(self, container: Node, through: Node, as_is: Callable[[Node], Node]) -> Node:
        """*through*, but *as_is* where the map by domain goes by a name of cel.bind and is empty.

        cel-go replaces an empty map that it binds by one of its own, and with that the empty maps for unknown domains
        are gone (evalFold in interpreter/interpretable.go).
        """
        name = self.domain_map(container)
        if isinstance(container, Ident) and container.name == name:
            return through
        whole = Ident(name)
        return choose(Call("_==_", (Call("size", (whole,)), ZERO)), as_is(whole), through)

    def _domain(self, name: str, domain: str) -> Node:
        variable = DOMAIN_MAPS[name] + domain
        self.variables.add(variable)
        return Ident(variable)

    def _visit_call(self, node: Call) -> Node:
        rewrite = self._rewrites.get(node.function)
        if rewrite is not None:
            return rewrite(self, node)
        if node.function not in natives.NATIVE:
            raise NotLoweredError
        return self.rebuild(node)

    def _visit_entry(self, entry: Entry) -> Entry:
        return Entry(self.visit(entry.key), self.visit(entry.value), entry.optional)

    def _visit_select(self, node: Select) -> Node:
        if name := self.domain_map(node.operand):
            through = TRUE if node.test_only else self._domain(name, node.field)
            return self.unless_empty(
                node.operand, through, lambda whole: Select(whole, node.field, node.test_only)
            )
        operand = self.visit(node.operand)
        if not node.test_only or self.type_of(node.operand).name in ("map", "optional_type"):
            return Select(operand, node.field, node.test_only)
        return self.let(
            operand, lambda it: choose(has_type(it, "map"), Select(it, node.field, test_only=True), DEFER)
        )

    def _visit_comprehension(self, node: Comprehension) -> Node:
        bound = self.domain_map(node.accu_init) if is_bind(node) else ""
        if not is_bind(node) and not self._is_quantifier(node):
            raise NotLoweredError
        iter_range = self.whole(node.iter_range)
        outside = self._aliases
        hidden = (node.iter_var, node.iter_var2, node.accu_var)
        accu_init = node.accu_init if bound else self.visit(node.accu_init)
        self._aliases = {alias: name for alias, name in outside.items() if alias not in hidden}
        try:
            if bound:
                self._aliases[node.accu_var] = bound
                return self.visit(node.result)
            return Comprehension(
                iter_var=UNUSED if is_bind(node) else node.iter_var,
                iter_var2=node.iter_var2,
                iter_range=iter_range,
                accu_var=node.accu_var,
                accu_init=accu_init,
                condition=self.visit(node.condition),
                step=self.visit(node.step),
                result=self.visit(node.result),
            )
        finally:
            self._aliases = outside

    def _is_quantifier(self, loop: Comprehension) -> bool:
        """Whether it is all(), exists() or existsOne(), whose result does not hang on the order of a map."""
        values = loop.iter_range
        is_empty = isinstance(values, ListLiteral) and not values.elements
        return isinstance(loop.accu_init, Const) and not is_empty


Rewrite: TypeAlias = Callable[[Lowering, Call], Node]


def has_type(value: Node, kind: str) -> Node:
    """`type(value) == kind`."""
    return Call("_==_", (Call("type", (value,)), Ident(kind)))


def choose(condition: Node, then: Node, otherwise: Node) -> Node:
    """`condition ? then : otherwise`."""
    return Call("_?_:_", (condition, then, otherwise))


def _is_plain_read(node: Node) -> bool:
    while isinstance(node, Select) and not node.test_only:
        node = node.operand
    return isinstance(node, Const | Ident)
