"""What is left of an expression when the type of the device is known.

What every device of the type has is a constant or stands for itself, tests on it are true, tests on what none has are
false, and `&&`, `||`, `!` and `?:` are decided where that decides them. `&&` and `||` absorb an error of one side when
the other decides, hence dropping a side that does not decide, or keeping one that does, is right whatever the other is.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from dra_infra.catalog.drivers import DeviceType, drivers
from dra_infra.cel.tree import Call, Comprehension, Const, Ident, ListLiteral, Node, Select, is_bind
from dra_infra.validation.advice.places import Names, Place, bound, find_accessed, hidden

TRUE: Final = Const("bool_value", value=True)
FALSE: Final = Const("bool_value", value=False)
DRIVER: Final = "device.driver"
_KINDS: Final = {bool: "bool_value", int: "int64_value", str: "string_value"}


def specialise(root: Node, device: DeviceType | None) -> Node:
    """What is left of *root* on a device of this type; None stands for every device of an unknown driver."""
    return _Specialiser(device).visit(root, {})


def present(place: Place) -> Ident:
    """Stands for a value that every device of the type has."""
    return Ident(f"{place.section} {place.name}")


class _Specialiser:
    def __init__(self, device: DeviceType | None) -> None:
        self._device = device

    def visit(self, node: Node, names: Names) -> Node:
        """*node* with what is known put in."""
        if isinstance(node, Const):
            return node
        if isinstance(node, Ident):
            known = node.name == DRIVER and self._device is not None
            return Const("string_value", self._device.driver) if known and self._device else node
        place = find_accessed(node, names)
        if place is not None:
            return self._accessed(node, place)
        if isinstance(node, Call):
            target = None if node.target is None else self.visit(node.target, names)
            args = tuple([self.visit(argument, names) for argument in node.args])
            return _fold(Call(node.function, args, target, node.id))
        if isinstance(node, Comprehension):
            return self._loop(node, names)
        if isinstance(node, Select):
            return Select(self.visit(node.operand, names), node.field, node.test_only, node.id)
        if isinstance(node, ListLiteral):
            return replace(node, elements=tuple([self.visit(element, names) for element in node.elements]))
        return node

    def _accessed(self, node: Node, place: Place) -> Node:
        if isinstance(node, Select):
            return self._tested(node, place) if node.test_only else self._read(node, place)
        if isinstance(node, Call) and node.function in ("_[_]", "@in"):
            return self._read(node, place) if node.function == "_[_]" else self._tested(node, place)
        return node

    def _read(self, node: Node, place: Place) -> Node:
        if self._device is None or not place.identifier:
            return node
        entry = self._device.published(place.section, place.name)
        if entry is None or entry.absent:
            return node
        if entry.value is not None and entry.type in ("string", "int", "bool"):
            return Const(_KINDS[type(entry.value)], entry.value)
        return present(place)

    def _tested(self, node: Node, place: Place) -> Node:
        if self._device is None:
            return node
        if not place.identifier:
            # An unknown domain passes has() as well, and fails `in`: only what is certain for both is said.
            return node
        presence = self._device.presence(place.section, place.name)
        if presence == "never":
            # Below an unsafe name the test may fail with an error instead.
            return node if place.unsafe else FALSE
        return TRUE if presence == "always" else node

    def _loop(self, node: Comprehension, names: Names) -> Node:
        if is_bind(node):
            result = self.visit(node.result, bound(node, names))
            if isinstance(result, Const):
                return result
            return replace(node, accu_init=self.visit(node.accu_init, names), result=result)
        inner = hidden(node, names)
        return replace(
            node,
            iter_range=self.visit(node.iter_range, names),
            condition=self.visit(node.condition, inner),
            step=self.visit(node.step, inner),
            result=self.visit(node.result, inner),
        )


def _fold(node: Call) -> Node:
    match node.function:
        case "_&&_":
            return _joined(node, decisive=FALSE, neutral=TRUE)
        case "_||_":
            return _joined(node, decisive=TRUE, neutral=FALSE)
        case "!_":
            return node if (value := _decided(node.args[0])) is None else _truth(not value)
        case "_?_:_":
            value = _decided(node.args[0])
            return node if value is None else node.args[1 if value else 2]
        case "_==_" | "_!=_":
            equal = _equal(*node.args)
            return node if equal is None else _truth(equal == (node.function == "_==_"))
        case "@in" if isinstance(node.args[1], ListLiteral):
            found = [_equal(node.args[0], element) for element in node.args[1].elements]
            return node if None in found else _truth(any(found))
        case "contains" | "startsWith" | "endsWith":
            return _texts(node)
    return node


def _decided(node: Node) -> bool | None:
    return node.value if isinstance(node, Const) and isinstance(node.value, bool) else None


def _joined(node: Call, *, decisive: Const, neutral: Const) -> Node:
    left, right = node.args
    if decisive in (left, right):
        return decisive
    if left == neutral:
        return right
    return left if right == neutral else node


def _equal(left: Node, right: Node) -> bool | None:
    if isinstance(left, Const) and isinstance(right, Const):
        return left.value == right.value if left.kind == right.kind else None
    if isinstance(left, Const):
        left, right = right, left
    if (
        isinstance(left, Ident)
        and left.name == DRIVER
        and isinstance(right, Const)
        and right.value in drivers()
    ):
        # What is left of device.driver belongs to a driver that is not known.
        return False
    return None


def _texts(node: Call) -> Node:
    if not (isinstance(node.target, Const) and isinstance(node.target.value, str) and len(node.args) == 1):
        return node
    text, argument = node.target.value, node.args[0]
    if not (isinstance(argument, Const) and isinstance(argument.value, str)):
        return node
    part = argument.value
    match node.function:
        case "contains":
            return _truth(part in text)
        case "startsWith":
            return _truth(text.startswith(part))
    return _truth(text.endswith(part))


def _truth(value: bool) -> Const:  # noqa: FBT001  (the value itself)
    return TRUE if value else FALSE
