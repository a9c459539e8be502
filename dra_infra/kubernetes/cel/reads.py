"""Attributes and capacities that an expression reads, and whether it makes sure first that they are there.

A read of a missing one fails the scheduling of the whole pod, so it must be dominated by a test: `has(...)`, `in` or
optional syntax on the same attribute. `&&` and `||` absorb an error of one side when the other decides, therefore a
test on either side guards the other.

Paths say where a value of an expression comes from in a device, and how large the API server lets it be there.
Upstream: `sizeEstimator` of `dynamic-resource-allocation/cel/compile.go`, and `exprPaths` of cel-go's
`checker/cost.go`. A path is a slice there, and slices that grow out of one share its memory while there is room: a
path of four parts changes when another is made from the same three. Sizes depend on it, so it is so here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple, TypeAlias

from dra_infra.kubernetes.api.limits import MAX_DRIVER_NAME, MAX_ENTRIES, MAX_IDENTIFIER, MAX_VALUE_LENGTH
from dra_infra.kubernetes.cel.tree import (
    Call,
    CheckedTree,
    Comprehension,
    Const,
    Ident,
    Node,
    Select,
    children,
    is_bind,
)

ReadKind: TypeAlias = Literal["attribute", "capacity"]
Key: TypeAlias = tuple[ReadKind, str, str]
Facts: TypeAlias = frozenset[Key]


class Read(NamedTuple):
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


class _Place(NamedTuple):
    """The map that a name or a node stands for: the device, all domains, or one.

    All domains under a name of cel.bind lose the empty map for a domain that a device lacks, so no test of an
    attribute below them is safe. Behind `.?` and `[?...]` all is optional up to `value()` or `orValue(...)`.
    """

    kind: ReadKind | Literal["device"]
    domain: str | None = None
    unsafe: bool = False
    optional: bool = False

    @property
    def is_safe(self) -> bool:
        """True where a test of what is below ends without an error."""
        return self.optional or not self.unsafe


_ROOTS: Final[dict[str, _Place]] = {
    "device": _Place("device"),
    "device.attributes": _Place("attribute"),
    "device.capacity": _Place("capacity"),
}
_NONE: Final[Facts] = frozenset()
_READS: Final = frozenset({"_[_]", "_?._", "_[?_]"})
_UNWRAPS: Final = frozenset({"value", "orValue"})
_JOINS: Final = frozenset({"_&&_", "_||_"})


def find_reads(tree: CheckedTree) -> tuple[tuple[Read, ...], Known]:
    """Every read whose domain and identifier are literal, sorted, and what the result says about what a device has.

    A read whose key is computed is not found.
    """
    finder = _Finder()
    known = finder.visit(tree.root, {})
    reads = sorted(Read(*key, guarded=key not in known.unguarded) for key in finder.found)
    return tuple(reads), known


def join_reads(clauses: Sequence[tuple[Iterable[Read], Known]]) -> tuple[Read, ...]:
    """The reads of clauses joined by `&&`: each clause's own, and what is known of it by itself."""
    keys = {(read.kind, read.domain, read.identifier) for reads, _ in clauses for read in reads}
    unguarded: set[Key] = set()
    for index, (_, known) in enumerate(clauses):
        if known.unguarded:
            others = [other.when_true for place, (_, other) in enumerate(clauses) if place != index]
            unguarded |= known.unguarded.difference(*others)
    return tuple(sorted(Read(*key, guarded=key not in unguarded) for key in keys))


def find_facts(root: Node) -> Known:
    """Finds the attributes and capacities that a device has, or lacks, when an expression or clause is true."""
    return _Finder().visit(root, {})


class Known(NamedTuple):
    """The facts about a node.

    Args:
        when_true: What exists when it is true.
        when_false: What exists when it is false.
        unguarded: What it reads without having made sure.
    """

    when_true: Facts = _NONE
    when_false: Facts = _NONE
    unguarded: Facts = _NONE


NOTHING_KNOWN: Final = Known()


class _Finder:
    def __init__(self) -> None:
        self.found: set[Key] = set()

    def visit(self, node: Node, names: Mapping[str, _Place]) -> Known:
        """Note the reads of *node*; each node is visited once, whatever is known around it."""
        kind = type(node)
        if kind is Const or kind is Ident:
            return NOTHING_KNOWN
        if isinstance(node, Select):
            return self._access(node, node.operand, node.field, names, test=node.test_only)
        if isinstance(node, Call):
            return self._call(node, names)
        if isinstance(node, Comprehension):
            return self._comprehension(node, names)
        return self._visit_all(children(node), names)

    def _call(self, call: Call, names: Mapping[str, _Place]) -> Known:
        function, args = call.function, call.args
        if function in _JOINS and len(args) == 2:
            return self._joined(*args, names, every=function == "_&&_")
        if function == "!_":
            known = self.visit(args[0], names)
            return Known(known.when_false, known.when_true, known.unguarded)
        if function == "_?_:_":
            condition, then, otherwise = args
            return self._chosen(condition, then, otherwise, names)
        if len(args) == 2:
            first, second = args
            if function == "@in" and isinstance(first, Const) and isinstance(first.value, str):
                place = _place(second, names)
                if (
                    place is not None
                    and place.kind != "device"
                    and place.domain is not None
                    and not place.unsafe
                    and not place.optional
                ):
                    return Known(when_true=frozenset({(place.kind, place.domain, first.value)}))
            elif function in _READS and isinstance(second, Const) and isinstance(second.value, str):
                return self._access(call, first, second.value, names, optional=function != "_[_]")
        return self._visit_all(children(call), names)

    def _visit_all(self, nodes: tuple[Node, ...], names: Mapping[str, _Place]) -> Known:
        unguarded = _NONE
        for node in nodes:
            unguarded |= self.visit(node, names).unguarded
        return Known(unguarded=unguarded) if unguarded else NOTHING_KNOWN

    def _access(
        self,
        node: Node,
        container: Node,
        key: str,
        names: Mapping[str, _Place],
        *,
        test: bool = False,
        optional: bool = False,
    ) -> Known:
        place = _place(container, names)
        if place is None:
            return self._visit_all(children(node), names)
        if place.domain is None or place.kind == "device":
            return NOTHING_KNOWN
        found: Key = (place.kind, place.domain, key)
        if test and place.is_safe:
            return Known(when_true=frozenset({found}))
        self.found.add(found)
        is_optional = place.optional or (optional and not place.unsafe)
        return NOTHING_KNOWN if is_optional else Known(unguarded=frozenset({found}))

    def _joined(self, left: Node, right: Node, names: Mapping[str, _Place], *, every: bool) -> Known:
        first, second = self.visit(left, names), self.visit(right, names)
        if every:
            unguarded = (first.unguarded - second.when_true) | (second.unguarded - first.when_true)
            return Known(first.when_true | second.when_true, first.when_false & second.when_false, unguarded)
        unguarded = (first.unguarded - second.when_false) | (second.unguarded - first.when_false)
        return Known(first.when_true & second.when_true, first.when_false | second.when_false, unguarded)

    def _chosen(self, condition: Node, then: Node, otherwise: Node, names: Mapping[str, _Place]) -> Known:
        chooses = self.visit(condition, names)
        unguarded = (
            chooses.unguarded
            | (self.visit(then, names).unguarded - chooses.when_true)
            | (self.visit(otherwise, names).unguarded - chooses.when_false)
        )
        return Known(unguarded=unguarded)

    def _comprehension(self, node: Comprehension, names: Mapping[str, _Place]) -> Known:
        if is_bind(node):
            place = _place(node.accu_init, names)
            inner = _without(names, node.accu_var)
            if place is None:
                unguarded = self.visit(node.accu_init, names).unguarded
            else:
                unguarded = _NONE
                is_all = place.kind != "device" and place.domain is None
                inner[node.accu_var] = place._replace(unsafe=place.unsafe or is_all)
            known = self.visit(node.result, inner)
            return known._replace(unguarded=known.unguarded | unguarded)
        inner = _without(names, node.iter_var, node.iter_var2, node.accu_var)
        unguarded = self._visit_all((node.iter_range, node.accu_init), names).unguarded
        unguarded |= self._visit_all((node.condition, node.step, node.result), inner).unguarded
        return Known(unguarded=unguarded)


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
            if outer is None or outer.domain is not None:
                return None
            optional = outer.optional or (isinstance(node, Call) and node.function != "_[_]")
            if outer.kind == "device":
                root = _ROOTS.get(f"device.{key}")
                return root and root._replace(optional=optional)
            return outer._replace(domain=key, optional=optional)
        case Call(function=function) if function in _UNWRAPS:
            inner = _place(children(node)[0], names)
            return inner and inner._replace(optional=False)
    return None


Size: TypeAlias = tuple[int, int]
"""Smallest and largest: characters of a text, bytes, elements of a list, or entries of a map."""


@dataclass(frozen=True, slots=True)
class Place:
    """One place of a device: `by_step` leads on by a name, `otherwise` from any other name."""

    size: Size
    by_step: Mapping[str, Place] = field(default_factory=dict)
    otherwise: Place | None = None

    def step(self, name: str) -> Place | None:
        """The place that one more part of a path leads to."""
        return self.by_step.get(name, self.otherwise)


class PathOfThree:
    """A path of three parts, with the room for a fourth that all paths made from it share."""

    __slots__ = ("longer", "name", "place")

    def __init__(self, place: Place) -> None:
        self.place = place
        self.name = ""
        self.longer = PathOfFour(self)


class PathOfFour:
    """A path of four parts."""

    __slots__ = ("shorter",)

    def __init__(self, shorter: PathOfThree) -> None:
        self.shorter = shorter


class Elsewhere:
    """A path that leads to no place of a device, whatever is appended to it."""

    __slots__ = ()


ELSEWHERE: Final = Elsewhere()

Path: TypeAlias = Place | PathOfThree | PathOfFour | Elsewhere | None
"""None stands for the empty path, which literals and results of calls have. A name that is appended to it is its first part."""


def _map(size_of_key: int, value: Place, otherwise: Place | None = None) -> Place:
    key = Place((0, size_of_key))
    return Place((0, MAX_ENTRIES), {"@keys": key, "@items": value, "@values": value}, otherwise)


_ATTRIBUTE: Final = Place((0, MAX_VALUE_LENGTH))
_FIELDS: Final = {
    "driver": Place((0, MAX_DRIVER_NAME)),
    "allowMultipleAllocations": Place((0, 1)),
    "attributes": _map(MAX_DRIVER_NAME, _map(MAX_IDENTIFIER, _ATTRIBUTE, _ATTRIBUTE)),
    "capacity": _map(MAX_DRIVER_NAME, _map(MAX_IDENTIFIER, Place((0, 0)))),
}
_DEVICE: Final = Place((0, 0), _FIELDS)
ROOTS: Final[dict[str, Path]] = {
    "device": _DEVICE,
    **{f"device.{name}": place for name, place in _FIELDS.items()},
}
"""The paths of the variables."""


def append(path: Path, part: str) -> Path:
    """A path with one more part; none of more than four leads anywhere."""
    if path is None:
        # The field `device` of any literal counts as the variable of that name.
        return _DEVICE if part == "device" else ELSEWHERE
    if isinstance(path, PathOfThree):
        path.name = part
        return path.longer
    if isinstance(path, Place):
        place = path.step(part)
        if place is None:
            return ELSEWHERE
        return place if path is _DEVICE else PathOfThree(place)
    return ELSEWHERE


def size_at(path: Path) -> Size | None:
    """The range of sizes at the end of a path, None where the server knows of none."""
    if isinstance(path, Place):
        return path.size
    if isinstance(path, PathOfThree):
        return path.place.size
    if isinstance(path, PathOfFour):
        place = path.shorter.place.step(path.shorter.name)
        return place.size if place else None
    return None


def size_of_elements(path: Path) -> Size | None:
    """The range of sizes of what the value at a path holds."""
    if isinstance(path, PathOfThree):
        place = path.place.step("@items")
    elif isinstance(path, Place) and path is not _DEVICE:
        place = path.step("@items")
    else:
        return None
    return place.size if place else None
