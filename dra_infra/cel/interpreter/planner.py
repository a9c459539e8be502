"""Makes one closure of a checked tree (interpreter/planner.go and the Exec methods in interpretable.go of cel-go)."""

from __future__ import annotations

from typing import Final

from dra_infra.cel.interpreter.arithmetic import negate
from dra_infra.cel.interpreter.calls import plan_call
from dra_infra.cel.interpreter.closures import (
    plan_binary,
    plan_choice,
    plan_constant,
    plan_equality,
    plan_index,
    plan_list,
    plan_logical,
    plan_map,
    plan_name,
    plan_not_strictly_false,
    plan_or,
    plan_select,
    plan_unary,
)
from dra_infra.cel.interpreter.conversions import CONVERSIONS
from dra_infra.cel.interpreter.functions import functions_of
from dra_infra.cel.interpreter.loops import plan_loop
from dra_infra.cel.interpreter.membership import plan_membership
from dra_infra.cel.interpreter.scopes import Scope, Step
from dra_infra.cel.interpreter.values import NO_SUCH_OVERLOAD, Err, TypeValue, UndecidedError
from dra_infra.cel.interpreter.work import weigh
from dra_infra.cel.tree import (
    Call,
    CheckedTree,
    Comprehension,
    Const,
    Ident,
    ListLiteral,
    MapLiteral,
    Node,
    Select,
    children,
)

_BINARY: Final = frozenset({"_+_", "_-_", "_*_", "_/_", "_%_", "_<_", "_<=_", "_>_", "_>=_"})
_INDEXES: Final = {"_[_]": False, "_[?_]": True, "_?._": True}
_LOGICAL: Final = {"_&&_": False, "_||_": True}
_UNARY: Final = {
    "!_": lambda value: not value if type(value) is bool else Err(NO_SUCH_OVERLOAD),
    "-_": negate,
}


class Planner:
    """Plans one tree for the server of one minor version."""

    def __init__(self, tree: CheckedTree, minor: int) -> None:
        self._tree = tree
        self._functions = functions_of(minor)
        self._locals: list[str] = []

    def plan(self, node: Node) -> Step:
        """The closure that evaluates a node.

        Raises:
            UndecidedError: When it holds something that is not known here.
        """
        if not isinstance(node, Const) and self._is_constant(node):
            value = self._plan(node)(Scope({}, None))
            return lambda _scope: value
        return self._plan(node)

    def _is_constant(self, node: Node) -> bool:
        """Whether the server computes the node ahead of every device (decOptimize)."""
        match node:
            case Const():
                return True
            case Ident(name=name):
                return self._tree.type_of(node).name == "type" and name not in self._locals
            case ListLiteral(optional_indices=()) | MapLiteral(message=""):
                return all(map(self._is_constant, children(node)))
            case Call(function=function, args=(argument,), target=None) if function in CONVERSIONS:
                return self._is_constant(argument)
        return False

    def _plan(self, node: Node) -> Step:
        match node:
            case Const():
                return plan_constant(node)
            case Ident(name=name):
                if self._is_constant(node):
                    return lambda _scope: TypeValue(name)
                return plan_name(name)
            case Select(operand=operand, field=field, test_only=test_only):
                return plan_select(self.plan(operand), field, test_only=test_only)
            case Call():
                return self._plan_call(node)
            case ListLiteral():
                return plan_list(
                    [self.plan(element) for element in node.elements], frozenset(node.optional_indices)
                )
            case MapLiteral():
                if node.message:
                    raise UndecidedError(f"a {node.message}")
                return plan_map(
                    [(self.plan(entry.key), self.plan(entry.value), entry.optional) for entry in node.entries]
                )
            case Comprehension():
                return self._plan_loop(node)

    def _plan_call(self, call: Call) -> Step:
        function = call.function
        if function in _LOGICAL:
            return plan_logical([self.plan(term) for term in _terms(call)], decisive=_LOGICAL[function])
        operands = children(call)
        steps = [self.plan(operand) for operand in operands]
        if function == "_?_:_":
            return plan_choice(*steps)
        if function in _INDEXES:
            return plan_index(steps[0], steps[1], optional=_INDEXES[function])
        if function in ("_==_", "_!=_"):
            return plan_equality(steps[0], steps[1], negated=function == "_!=_")
        if function == "@not_strictly_false":
            return plan_not_strictly_false(steps[0])
        if function in ("or", "orValue"):
            return plan_or(steps[0], steps[1], unwraps=function == "orValue")
        if function == "@in":
            constant = self._is_constant(operands[1])
            is_list = self._tree.type_of(operands[1]).name == "list"
            return plan_membership(steps[0], steps[1], may_be_set=constant and is_list)
        if function in _UNARY:
            return plan_unary(_UNARY[function], steps[0])
        if function in _BINARY:
            return plan_binary(function, steps[0], steps[1])
        kinds = [self._tree.type_of(operand) for operand in operands]
        constant = len(operands) > 1 and self._is_constant(operands[1]) and kinds[1].name == "string"
        return plan_call(function, self._functions, steps, kinds, has_constant_pattern=constant)

    def _plan_loop(self, loop: Comprehension) -> Step:
        init, values = self.plan(loop.accu_init), self.plan(loop.iter_range)
        names = (loop.accu_var, loop.iter_var, loop.iter_var2)
        self._locals.extend(names)
        condition, step, result = (self.plan(part) for part in (loop.condition, loop.step, loop.result))
        del self._locals[-len(names) :]
        weight = weigh(loop.condition) + weigh(loop.step)
        return plan_loop(names, values, init, condition, step, result, weight=weight)


def _terms(call: Call) -> list[Node]:
    """The operands of a chain of one logical operator, from left to right."""
    found: list[Node] = []
    waiting: list[Node] = [call]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Call) and node.function == call.function:
            waiting.extend(reversed(node.args))
        else:
            found.append(node)
    return found
