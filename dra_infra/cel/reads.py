"""Which attributes and capacities an expression reads, and whether it makes sure first that they are there.

A read of a missing one fails the scheduling of the whole pod, so it must be dominated by a test: `has(...)`, `in` or
optional syntax on the same attribute. `&&` and `||` absorb an error of one side when the other decides, therefore a
test on either side guards the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from dra_infra.cel.tree import Call, CheckedTree, Comprehension, Const, Ident, Node, Select, children, is_bind

ReadKind: TypeAlias = Literal["attribute", "capacity"]
Key: TypeAlias = tuple[ReadKind, str, str]
Facts: TypeAlias = frozenset[Key]
Known: TypeAlias = tuple[Facts, Facts]
"""What exists when an expression is true, and what when it is false."""


@dataclass(frozen=True, slots=True, order=True)
class Read:
    """One attribute or capacity that an expression reads.

    Args:
        kind: `attribute` or `capacity`.
        domain: The part before the slash.
        identifier: The part behind it.
        guarded: Whether every read of it is preceded by a test that it exists.
    """

    kind: ReadKind
    domain: str
    identifier: str
    guarded: bool


@dataclass(frozen=True, slots=True)
class _Place:
    """What a name or a node stands for: all domains, or one.

    All domains under a name of cel.bind lose the empty map for a domain that a device lacks, so no test of an
    attribute below them is safe.
    """

    kind: ReadKind
    domain: str | None = None
    unsafe: bool = False


_ROOTS: Final[dict[str, _Place]] = {
    "device.attributes": _Place("attribute"),
    "device.capacity": _Place("capacity"),
}
_NONE: Final[Facts] = frozenset()
_READS: Final = frozenset({"_[_]", "_?._", "_[?_]"})


def find_reads(tree: CheckedTree) -> tuple[Read, ...]:
    """Every read whose domain and identifier are literal, sorted. One whose key is computed is not found."""
    finder = _Finder()
    finder.visit(tree.root, _NONE, {})
    return tuple(sorted(Read(*key, guarded=guarded) for key, guarded in finder.found.items()))


class _Finder:
    def __init__(self) -> None:
        self.found: dict[Key, bool] = {}

    def visit(self, node: Node, facts: Facts, names: Mapping[str, _Place]) -> Known:
        """Note the reads of *node* and give what is known to exist when it is true, and when it is false."""
        match node:
            case Select(operand=operand, field=field, test_only=test_only):
                known = self._access(operand, field, names, facts, test=test_only)
            case Call(args=(Const(value=str() as key), container)) if node.function == "@in":
                known = self._sought(container, key, names)
            case Call(args=(container, Const(value=str() as key))) if node.function in _READS:
                known = self._access(container, key, names, facts, optional=node.function != "_[_]")
            case Call(function="_&&_" | "_||_", args=(left, right)):
                known = self._joined(left, right, facts, names, every=node.function == "_&&_")
            case Call(function="!_", args=(operand,)):
                when_true, when_false = self.visit(operand, facts, names)
                known = when_false, when_true
            case Call(function="_?_:_", args=(condition, then, otherwise)):
                known = self._chosen(condition, then, otherwise, facts, names)
            case Comprehension():
                known = self._comprehension(node, facts, names)
            case _:
                known = None
        return known or self._visit_all(node, facts, names)

    def _visit_all(self, node: Node, facts: Facts, names: Mapping[str, _Place]) -> Known:
        for child in children(node):
            self.visit(child, facts, names)
        return _NONE, _NONE

    def _sought(self, container: Node, key: str, names: Mapping[str, _Place]) -> Known | None:
        place = _place(container, names)
        if place is None or place.domain is None or place.unsafe:
            return None
        return frozenset({(place.kind, place.domain, key)}), _NONE

    def _access(
        self,
        container: Node,
        key: str,
        names: Mapping[str, _Place],
        facts: Facts,
        *,
        test: bool = False,
        optional: bool = False,
    ) -> Known | None:
        place = _place(container, names)
        if place is None:
            return None
        if place.domain is None:
            return _NONE, _NONE
        found: Key = (place.kind, place.domain, key)
        if test and not place.unsafe:
            return frozenset({found}), _NONE
        self._note(found, guarded=not place.unsafe and (optional or found in facts))
        return _NONE, _NONE

    def _note(self, key: Key, *, guarded: bool) -> None:
        self.found[key] = self.found.get(key, True) and guarded

    def _joined(
        self, left: Node, right: Node, facts: Facts, names: Mapping[str, _Place], *, every: bool
    ) -> Known:
        left_true, left_false = _Finder().visit(left, facts, names)
        right_true, right_false = _Finder().visit(right, facts, names)
        self.visit(left, facts | (right_true if every else right_false), names)
        self.visit(right, facts | (left_true if every else left_false), names)
        if every:
            return left_true | right_true, left_false & right_false
        return left_true & right_true, left_false | right_false

    def _chosen(
        self, condition: Node, then: Node, otherwise: Node, facts: Facts, names: Mapping[str, _Place]
    ) -> Known:
        when_true, when_false = self.visit(condition, facts, names)
        self.visit(then, facts | when_true, names)
        self.visit(otherwise, facts | when_false, names)
        return _NONE, _NONE

    def _comprehension(self, node: Comprehension, facts: Facts, names: Mapping[str, _Place]) -> Known:
        if is_bind(node):
            place = _place(node.accu_init, names)
            if place is None:
                self.visit(node.accu_init, facts, names)
            inner = _without(names, node.accu_var)
            if place is not None:
                inner[node.accu_var] = replace(place, unsafe=place.unsafe or place.domain is None)
            return self.visit(node.result, facts, inner)
        self.visit(node.iter_range, facts, names)
        self.visit(node.accu_init, facts, names)
        inner = _without(names, node.iter_var, node.iter_var2, node.accu_var)
        for part in (node.condition, node.step, node.result):
            self.visit(part, facts, inner)
        return _NONE, _NONE


def _without(names: Mapping[str, _Place], *hidden: str) -> dict[str, _Place]:
    return {name: place for name, place in names.items() if name not in hidden}


def _place(node: Node, names: Mapping[str, _Place]) -> _Place | None:
    match node:
        case Ident(name=name):
            return names.get(name) or _ROOTS.get(name)
        case (
            Select(operand=container, field=key, test_only=False)
            | Call(function="_[_]" | "_?._" | "_[?_]", args=(container, Const(value=str() as key)))
        ):
            outer = _place(container, names)
            return (
                _Place(outer.kind, key, outer.unsafe) if outer is not None and outer.domain is None else None
            )
    return None
