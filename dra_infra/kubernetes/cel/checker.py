"""Finds the types of an expression as the server's checker does, and what is wrong with it in the server's words.

Upstream: `checker/checker.go` and `checker/env.go` of cel-go.
"""

from __future__ import annotations

import dataclasses
from collections import ChainMap
from collections.abc import Sequence
from typing import Final, NamedTuple

from dra_infra.kubernetes.cel.declarations import (
    DEVICE,
    Declarations,
    Overload,
    declarations,
    declared_name,
    message_of,
)
from dra_infra.kubernetes.cel.diagnostics import Diagnostic, diagnose
from dra_infra.kubernetes.cel.environment import Environment
from dra_infra.kubernetes.cel.tree import (
    DYN,
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
)
from dra_infra.kubernetes.cel.unification import (
    ERROR,
    Bindings,
    assign,
    is_dynamic,
    is_message,
    is_parameter,
    is_same,
    most_general,
    spell,
    substitute,
    unwrap_optional,
)

_BOOL: Final = CelType("bool")
_INT: Final = CelType("int")
_LITERALS: Final = {
    "bool_value": _BOOL,
    "bytes_value": CelType("bytes"),
    "double_value": CelType("double"),
    "int64_value": _INT,
    "null_value": CelType("null_type"),
    "string_value": CelType("string"),
    "uint64_value": CelType("uint"),
}
_LOGICAL: Final = frozenset({"_&&_", "_||_"})
_GLOBALS_FIRST: Final = 36
"""Last minor whose checker looks for a dotted name among the declared ones before it looks at the variables of loops."""


class Typed(NamedTuple):
    """The types of a tree, and the errors, as the checker found them.

    Args:
        tree: The tree with types, names of fields of the device made variables.
        errors: What is wrong, in the order in which it was found.
    """

    tree: CheckedTree
    errors: tuple[Diagnostic, ...]


def find_types(text: str, root: Node, positions: dict[int, int], environment: Environment) -> Typed:
    """Checks a parsed expression."""
    checker = _Checker(text, positions, environment)
    checked = checker.check(root)
    types = {
        identity: substitute(kind, checker.bound, dynamic=True) for identity, kind in checker.types.items()
    }
    tree = CheckedTree(root=checked, types=types, positions=positions, references=checker.references)
    return Typed(tree, tuple(checker.errors))


class _Checker:
    def __init__(self, text: str, positions: dict[int, int], environment: Environment) -> None:
        self._text = text
        self._positions = positions
        self._declared: Declarations = declarations(environment)
        self._globals_first = environment.minor <= _GLOBALS_FIRST
        self._locals: ChainMap[str, CelType] = ChainMap()
        self._variables = 0
        self.bound: Bindings = {}
        self.types: dict[int, CelType] = {}
        self.references: dict[int, tuple[str, ...]] = {}
        self.errors: list[Diagnostic] = []

    def check(self, node: Node) -> Node:
        """The node with names resolved; its type is kept."""
        match node:
            case Const(kind=kind):
                self.types[node.id] = _LITERALS[kind]
                return node
            case Ident():
                return self._ident(node)
            case Select():
                return self._select(node)
            case Call(function="_?._"):
                return self._optional_select(node)
            case Call():
                return self._call(node)
            case ListLiteral():
                return self._list(node)
            case MapLiteral(message=""):
                return self._map(node)
            case MapLiteral():
                return self._message(node)
            case Comprehension():
                return self._loop(node)

    def _report(self, node: Node | Entry, message: str) -> None:
        self.errors.append(diagnose(self._text, self._positions.get(node.id, 0), message))

    def _undeclared(self, node: Node, name: str) -> None:
        self.types[node.id] = ERROR
        self._report(node, f"undeclared reference to '{name}' (in container '')")

    def _takes(self, target: CelType, source: CelType) -> bool:
        bound = assign(self.bound, (target,), (source,))
        if bound is None:
            return False
        self.bound = bound
        return True

    def _new_variable(self) -> CelType:
        self._variables += 1
        return CelType(f"~_var{self._variables - 1}")

    def _ident(self, node: Ident) -> Node:
        name = node.name.removeprefix(".")
        is_global = name is not node.name
        local = self._locals.get(name)
        if local is not None and (not is_global or self._globals_first):
            self.types[node.id] = local
            self.references[node.id] = ()
            return node if name == node.name else Ident(name, node.id)
        kind = self._declared.names.get(name)
        if kind is None:
            self._undeclared(node, node.name)
            return node
        self.types[node.id] = kind
        self.references[node.id] = ()
        return Ident(f".{name}" if local is not None else name, node.id)

    def _qualified(self, node: Node) -> str:
        """The dotted name that a node may be; empty where it is none."""
        parts: list[str] = []
        while isinstance(node, Select) and not node.test_only:
            parts.append(node.field)
            node = node.operand
        if not isinstance(node, Ident):
            return ""
        if node.name in self._locals and not self._globals_first:
            return ""
        return ".".join([node.name.removeprefix("."), *reversed(parts)])

    def _select(self, node: Select) -> Node:
        if not node.test_only:
            name = self._qualified(node)
            kind = self._declared.names.get(name) if name else None
            if kind is not None:
                self.types[node.id] = kind
                self.references[node.id] = ()
                return Ident(name, node.id)
        operand = self.check(node.operand)
        found = self._field(node, operand, node.field, optional=False)
        self.types[node.id] = _BOOL if node.test_only else substitute(found, self.bound)
        if isinstance(operand, Ident) and self.types[operand.id] == DEVICE and not node.test_only:
            name = operand.name.removeprefix(".")
            if name == "device" and (operand.name != name or name not in self._locals) and found is not ERROR:
                self.references[node.id] = ()
                return Ident(f"device.{node.field}", node.id)
        return dataclasses.replace(node, operand=operand)

    def _optional_select(self, node: Call) -> Node:
        operand, field = node.args
        checked = self.check(operand)
        found = self._field(node, checked, _text_of(field), optional=True)
        self.types[node.id] = substitute(found, self.bound)
        self.references[node.id] = ("select_optional_field",)
        return dataclasses.replace(node, args=(checked, field))

    def _field(self, node: Node, operand: Node, field: str, *, optional: bool) -> CelType:
        """The type of a field, in an optional where the operand is one or *optional* says so."""
        target, is_optional = unwrap_optional(substitute(self.types[operand.id], self.bound))
        found = DYN
        if target.name == "map":
            found = target.parameters[1]
        elif is_message(target):
            found = self._field_of(node, target.name, field) or ERROR
        elif is_parameter(target):
            self._takes(DYN, target)
        elif target != ERROR and not is_dynamic(target):
            self._report(node, f"type '{spell(target)}' does not support field selection")
        return CelType("optional_type", (found,)) if is_optional or optional else found

    def _field_of(self, node: Node | Entry, message: str, field: str) -> CelType | None:
        fields = self._declared.fields.get(message)
        if fields is None:
            self._report(node, f"unexpected failed resolution of '{message}'")
            return None
        found = fields.get(field)
        if found is None:
            self._report(node, f"undefined field '{field}'")
        return found

    def _call(self, node: Call) -> Node:
        args = tuple([self.check(argument) for argument in node.args])
        name = node.function.removeprefix(".")
        target = node.target
        if target is not None:
            prefix = _dotted(target)
            qualified = f"{prefix}.{name}".removeprefix(".") if prefix else ""
            if qualified in self._declared.functions:
                name = qualified
                target = None
            else:
                target = self.check(target)
        overloads = self._declared.functions.get(name)
        if overloads is None:
            self._undeclared(node, node.function)
            return dataclasses.replace(node, args=args, target=target)
        checked = Call(name, args, target, node.id)
        self._resolve(checked, overloads)
        return checked

    def _resolve(self, node: Call, overloads: Sequence[Overload]) -> None:
        parts = node.args if node.target is None else (node.target, *node.args)
        kinds = [self.types[part.id] for part in parts]
        if node.function in _LOGICAL and node.target is None:
            self._resolve_logical(node, kinds, overloads[0].id)
            return
        result: CelType | None = None
        references: list[str] = []
        for overload in overloads:
            if overload.is_member != (node.target is not None):
                continue
            returned, parameters = overload.result, overload.parameters
            if overload.unknown:
                fresh = {each: self._new_variable() for each in overload.unknown}
                returned = substitute(returned, fresh)
                parameters = tuple([substitute(each, fresh) for each in parameters])
            bound = assign(self.bound, kinds, parameters)
            if bound is None:
                continue
            self.bound = bound
            references.append(overload.id)
            found = substitute(returned, bound)
            if result is None:
                result = found
            elif not is_dynamic(result) and not is_same(result, found):
                result = DYN
        if result is None:
            told = [spell(substitute(kind, self.bound, dynamic=True)) for kind in kinds]
            receiver = f"{told.pop(0)}." if node.target is not None else ""
            applied = f"{receiver}({', '.join(told)})"
            self._report(node, f"found no matching overload for '{node.function}' applied to '{applied}'")
            self.types[node.id] = ERROR
            return
        self.types[node.id] = result
        self.references[node.id] = tuple(references)

    def _resolve_logical(self, node: Call, kinds: list[CelType], overload: str) -> None:
        self.types[node.id] = _BOOL
        self.references[node.id] = (overload,)
        for part, kind in zip(node.args, kinds, strict=True):
            if not self._takes(kind, _BOOL):
                self._mismatch(part, _BOOL, kind)
                self.types[node.id] = ERROR

    def _mismatch(self, node: Node, expected: CelType, found: CelType) -> None:
        self._report(node, f"expected type '{spell(expected)}' but found '{spell(found)}'")

    def _expect(self, node: Node, expected: CelType) -> None:
        kind = self.types[node.id]
        if not self._takes(expected, kind):
            self._mismatch(node, expected, kind)

    def _join(self, previous: CelType | None, current: CelType) -> CelType:
        """The most general type of what a list or map holds so far; what differs is the business of `literals`."""
        if previous is None:
            return current
        return most_general(previous, current) if self._takes(previous, current) else DYN

    def _element(self, node: Node, *, optional: bool) -> CelType:
        kind = self.types[node.id]
        if not optional:
            return kind
        found, is_optional = unwrap_optional(kind)
        if not is_optional and not is_dynamic(found):
            self._mismatch(node, CelType("optional_type", (found,)), found)
        return found

    def _list(self, node: ListLiteral) -> Node:
        optional = frozenset(node.optional_indices)
        elements: list[Node] = []
        kind: CelType | None = None
        for index, each in enumerate(node.elements):
            element = self.check(each)
            elements.append(element)
            kind = self._join(kind, self._element(element, optional=index in optional))
        self.types[node.id] = CelType("list", (kind or self._new_variable(),))
        return dataclasses.replace(node, elements=tuple(elements))

    def _map(self, node: MapLiteral) -> Node:
        entries: list[Entry] = []
        keys: CelType | None = None
        values: CelType | None = None
        for entry in node.entries:
            key = self.check(entry.key)
            keys = self._join(keys, self.types[key.id])
            value = self.check(entry.value)
            values = self._join(values, self._element(value, optional=entry.optional))
            entries.append(dataclasses.replace(entry, key=key, value=value))
        keys = keys or self._new_variable()
        values = values or self._new_variable()
        self.types[node.id] = CelType("map", (keys, values))
        return dataclasses.replace(node, entries=tuple(entries))

    def _message(self, node: MapLiteral) -> Node:
        name = node.message.removeprefix(".")
        named = self._type_named(name)
        if named is None:
            self._undeclared(node, node.message)
            return node
        kind = ERROR
        made = name
        if named.name != "type":
            self._report(node, f"'{declared_name(named)}' is not a type")
        elif message := message_of(named.parameters[0]):
            kind = named.parameters[0]
            made = message
        else:
            self._report(node, f"'{declared_name(named.parameters[0])}' is not a message type")
        self.types[node.id] = kind
        entries = tuple([self._initialize(made, entry) for entry in node.entries])
        return MapLiteral(entries, name, node.id)

    def _type_named(self, name: str) -> CelType | None:
        """The type of what the name of a message stands for; older releases look among all names for it."""
        if self._globals_first:
            return self._locals.get(name) or self._declared.names.get(name)
        kind = self._declared.messages.get(name)
        return None if kind is None else CelType("type", (kind,))

    def _initialize(self, message: str, entry: Entry) -> Entry:
        value = self.check(entry.value)
        name = _text_of(entry.key)
        field = self._field_of(entry, message, name) or ERROR
        kind = self._element(value, optional=entry.optional)
        if not self._takes(field, kind):
            self._report(
                entry,
                f"expected type of field '{name}' is '{spell(field)}' but provided type is '{spell(kind)}'",
            )
        return dataclasses.replace(entry, value=value)

    def _loop(self, node: Comprehension) -> Node:
        over = self.check(node.iter_range)
        start = self.check(node.accu_init)
        kind = substitute(self.types[over.id], self.bound)
        gathered = self.types[start.id]
        first, second = self._elements(over, kind, two=bool(node.iter_var2))
        outer = self._locals
        around = outer.new_child({node.accu_var: gathered})
        inner = {node.iter_var: first}
        if node.iter_var2:
            inner[node.iter_var2] = second
        self._locals = around.new_child(inner)
        condition = self.check(node.condition)
        self._expect(condition, _BOOL)
        step = self.check(node.step)
        self._expect(step, gathered)
        self._locals = around
        result = self.check(node.result)
        self._locals = outer
        self.types[node.id] = substitute(self.types[result.id], self.bound)
        return dataclasses.replace(
            node, iter_range=over, accu_init=start, condition=condition, step=step, result=result
        )

    def _elements(self, over: Node, kind: CelType, *, two: bool) -> tuple[CelType, CelType]:
        """The types of the variables of a loop."""
        if kind.name == "list":
            element = kind.parameters[0]
            return (_INT, element) if two else (element, element)
        if kind.name == "map":
            return kind.parameters[0], kind.parameters[1]
        if is_dynamic(kind) or kind == ERROR or is_parameter(kind):
            if kind.name == "any":
                self._report(over, _NO_RANGE.format(spell(kind)))
                return ERROR, ERROR
            self._takes(DYN, kind)
            return DYN, DYN
        self._report(over, _NO_RANGE.format(spell(kind)))
        return ERROR, ERROR


_NO_RANGE: Final = (
    "expression of type '{}' cannot be range of a comprehension (must be list, map, or dynamic)"
)


def _text_of(node: Node) -> str:
    """The text that a literal is."""
    return node.value if isinstance(node, Const) and isinstance(node.value, str) else ""


def _dotted(node: Node) -> str:
    """The dotted name that a node spells; empty where it is none."""
    parts: list[str] = []
    while isinstance(node, Select) and not node.test_only:
        parts.append(node.field)
        node = node.operand
    return ".".join([node.name, *reversed(parts)]) if isinstance(node, Ident) else ""
