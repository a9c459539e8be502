"""Makes one closure of a checked tree.

Upstream: interpreter/planner.go and the Exec methods in interpretable.go of cel-go. Arguments of function calls may
be errors (evalUnary, evalBinary and evalVarArgs of cel-go). `sort` and `sortBy` of lists are those of cel-go's
ext/lists.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any, Final

from dra_infra.kubernetes.cel.interpreter.call_costs import CEL_GO_29, Cost
from dra_infra.kubernetes.cel.interpreter.closures import (
    plan_binary,
    plan_choice,
    plan_constant,
    plan_equality,
    plan_index,
    plan_list,
    plan_logical,
    plan_loop,
    plan_map,
    plan_membership,
    plan_name,
    plan_not_strictly_false,
    plan_or,
    plan_select,
    plan_set,
    plan_tested_branch,
    plan_unary,
    set_of,
)
from dra_infra.kubernetes.cel.interpreter.conversions import CONVERSIONS
from dra_infra.kubernetes.cel.interpreter.functions import functions_of
from dra_infra.kubernetes.cel.interpreter.maps import MAPS, Key
from dra_infra.kubernetes.cel.interpreter.messages import plan_message
from dra_infra.kubernetes.cel.interpreter.operators import (
    is_addable,
    is_comparable,
    method_equal,
    missing_trait,
    negate,
)
from dra_infra.kubernetes.cel.interpreter.scopes import Scope, Step, counted_scope, weigh
from dra_infra.kubernetes.cel.interpreter.text import PARTS, find, find_all, matches
from dra_infra.kubernetes.cel.interpreter.values import (
    LISTS,
    NO_SUCH_OVERLOAD,
    Duration,
    Err,
    Overloads,
    PanicError,
    Timestamp,
    TypeValue,
    UndecidedError,
    Value,
    dispatch,
    go_type,
    items_of,
    narrow,
    type_name,
)
from dra_infra.kubernetes.cel.tree import (
    Call,
    CelType,
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


def _sort_by(values: Any, keys: Any) -> Value:
    """The list in the order of other values; both are known to be lists."""
    items, order = items_of(values), items_of(keys)
    if len(items) != len(order):
        return Err(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, "
            f"but got {len(items)} and {len(order)} elements respectively"
        )
    if not items:
        return values
    if not is_comparable(order[0]):
        return Err("list elements must be comparable")
    if any(type_name(key) != type_name(order[0]) for key in order):
        return Err("list elements must have the same type")
    ranks = [_rank(key) for key in order]
    if len(ranks) > 1 and any(rank != rank for rank in ranks):
        raise UndecidedError("the order of NaN")
    places = sorted(range(len(items)), key=ranks.__getitem__)
    # Go's sort keeps no order among equals in lists longer than it sorts by insertion.
    if len(items) > 12 and any(
        ranks[i] == ranks[j] and method_equal(items[i], items[j]) is not True for i, j in pairwise(places)
    ):
        raise UndecidedError("the order of equal elements")
    return [items[place] for place in places]


def _rank(key: Value) -> Any:
    """The sort key of a value among those of its type."""
    if type(key) is Duration:
        return key.nanos
    return (key.seconds, key.nanos) if type(key) is Timestamp else key


Called = Callable[[list[Value]], Value]
_SORTABLE: Final = frozenset({"int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes"})
_QUADRATIC: Final = frozenset(
    {"distinct", "sort", "@sortByAssociatedKeys", "sets.contains", "sets.equivalent", "sets.intersects"}
)
"""Functions that compare every element of a list with every other, or cost the server as much."""


def implementation_of(
    function: str, functions: Mapping[str, Overloads], kinds: list[CelType], *, has_constant_pattern: bool
) -> Called:
    """Returns what a call of a function runs.

    Args:
        function: The name.
        functions: The overloads of every function.
        kinds: The static types of the arguments, that of a receiver first.
        has_constant_pattern: Whether the second argument is a constant; a pattern is then compiled ahead, and what is
            no text fails in other words.

    Raises:
        UndecidedError: When the function is not known.
    """
    if has_constant_pattern and function in _PATTERNS:
        return _PATTERNS[function]
    if function in _SINGLETONS:
        return _SINGLETONS[function]
    if function in functions:
        return dispatch(function, narrow(functions[function], kinds))
    raise UndecidedError(f"{function}()")


def plan_call(
    function: str,
    called: Called,
    arguments: list[Step],
    kinds: list[CelType],
    *,
    stops_early: bool,
    cost: Cost | None,
) -> Step:
    """A call of a function by name.

    Args:
        function: The name.
        called: What it runs.
        arguments: The closures of the arguments, that of a receiver first.
        kinds: Their static types.
        stops_early: Whether no argument is evaluated behind one that fails (evalVarArgs upstream).
        cost: The cost of the call where it is counted and known before the result; else None.
    """
    # A map that a macro gathers comes first; it is added to and not copied.
    first = 1 if function == "cel.@mapInsert" else 0
    is_quadratic = function in _QUADRATIC
    counted = _counted_argument(function, kinds)

    def evaluate(scope: Scope) -> Value:
        values: list[Value] = []
        failure: Err | None = None
        for argument in arguments:
            value = argument(scope)
            values.append(value)
            if type(value) is Err and failure is None:
                failure = value
                if stops_early:
                    return failure
        if counted is not None:
            counted(values)
        if failure is not None:
            return failure
        if cost is not None:
            scope.root.tracker.foresee(cost(values, None))
        work = scope.root.work
        for value in values[first:]:
            work.count(value)
        work.spend(_pairs_of(values) if is_quadratic else 0)
        result = called(values)
        if not first:
            work.count(result)
        return result

    return evaluate


def _pairs_of(values: list[Value]) -> int:
    sizes = [len(items_of(value)) for value in values if type(value) in LISTS]
    return max(sizes, default=0) * min(sizes, default=0)


def _size(values: list[Value]) -> Value:
    (value,) = values
    if type(value) in LISTS:
        return len(items_of(value))
    if type(value) in MAPS or type(value) is str or type(value) is bytes:
        return len(value)
    return missing_trait("size", value)


def _matches(values: list[Value]) -> Value:
    return matches(*values) if type(values[0]) is str else missing_trait("matches", values[0])


def _sort(values: list[Value]) -> Value:
    (items,) = values
    return _sort_by(items, items) if type(items) in LISTS else missing_trait("sort", items)


def _sort_associated(values: list[Value]) -> Value:
    items, keys = values
    if type(items) not in LISTS:
        return missing_trait("@sortByAssociatedKeys", items)
    return _sort_by(items, keys) if type(keys) in LISTS else Err(f"{NO_SUCH_OVERLOAD}: {go_type(keys)}")


def _of_texts(operation: Callable[..., Value]) -> Called:
    def call(values: list[Value]) -> Value:
        if (
            type(values[0]) is not str
            or type(values[1]) is not str
            or any(type(each) is not int for each in values[2:])
        ):
            return Err(NO_SUCH_OVERLOAD)
        return operation(*values)

    return call


_PATTERNS: Final[dict[str, Called]] = {
    "matches": _of_texts(matches),
    "find": _of_texts(find),
    "findAll": _of_texts(find_all),
}
_SINGLETONS: Final[dict[str, Called]] = {
    **{name: _of_texts(operation) for name, operation in PARTS.items()},
    "size": _size,
    "matches": _matches,
    "sort": _sort,
    "@sortByAssociatedKeys": _sort_associated,
}
"""Functions with one implementation for all types, which need a trait of the first argument's type."""


def _counted_argument(function: str, kinds: list[CelType]) -> Callable[[list[Value]], None] | None:
    """The check of an argument that the server fails over when it counts the cost of a call; None for most calls."""
    if function == "distinct":
        return lambda values: _expect_list(values[0])
    if function in ("sort", "@sortByAssociatedKeys"):
        kind = kinds[-1]
        element = kind.parameters[0] if kind.name == "list" else kind
        if element.name == "wrapper":
            element = element.parameters[0]
        if kind.name == "list" and element.name in _SORTABLE:
            return lambda values: _expect_list(values[-1])
    if function == "flatten" and len(kinds) == 2:
        return lambda values: _expect_int(values[1])
    return None


def _expect_list(value: Value) -> None:
    if type(value) not in LISTS:
        missing = "Contains" if is_addable(value) else "Add"
        raise PanicError(
            f"internal error: interface conversion: {go_type(value)} is not traits.Lister: missing method {missing}"
        )


def _expect_int(value: Value) -> None:
    if type(value) is not int:
        raise PanicError(f"internal error: interface conversion: ref.Val is {go_type(value)}, not types.Int")


_BINARY: Final = frozenset({"_+_", "_-_", "_*_", "_/_", "_%_", "_<_", "_<=_", "_>_", "_>=_"})
INDEXES: Final = {"_[_]": False, "_[?_]": True, "_?._": True}
LOGICAL: Final = {"_&&_": False, "_||_": True}
_UNARY: Final = {
    "!_": lambda value: not value if type(value) is bool else Err(NO_SUCH_OVERLOAD),
    "-_": negate,
}


_ENUM_VALUES: Final = {"google.protobuf.NullValue.NULL_VALUE": 0}


class Planner:
    """Plans one tree for the server of one minor version."""

    def __init__(self, tree: CheckedTree, minor: int) -> None:
        self._tree = tree
        self._minor = minor
        self._functions = functions_of(minor)
        self._locals: list[str] = []

    def plan(self, node: Node) -> Step:
        """The closure that evaluates a node.

        Raises:
            UndecidedError: When it holds something that is not known here.
        """
        if not isinstance(node, Const) and self._is_constant(node):
            value = self._plan(node)(counted_scope({}, None))
            return lambda _scope: value
        return self._plan(node)

    def _is_constant(self, node: Node) -> bool:
        """The server computes the node ahead of every device (decOptimize)."""
        match node:
            case Const():
                return True
            case Ident(name=name):
                return name not in self._locals and (
                    name in _ENUM_VALUES or self._tree.type_of(node).name == "type"
                )
            case ListLiteral(optional_indices=()) | MapLiteral(message=""):
                return all(map(self._is_constant, children(node)))
            case Call(function=function, args=(argument,), target=None) if function in CONVERSIONS:
                return self._is_constant(argument)
            case Call(function="@in", args=(_, ListLiteral(elements=()))):
                # Nothing is in an empty list, and what is looked for is not evaluated (maybeOptimizeSetMembership).
                return True
        return False

    def _plan(self, node: Node) -> Step:  # noqa: C901  (one case per kind of node)
        match node:
            case Const():
                return plan_constant(node)
            case Ident(name=name):
                if self._is_constant(node):
                    value: Value = _ENUM_VALUES.get(name, TypeValue(name))
                    return lambda _scope: value
                return plan_name(name, is_local=bool(self._locals))
            case Select(operand=operand, field=field, test_only=test_only):
                return plan_select(self.plan(operand), field, test_only=test_only)
            case Call(function="_[_]", args=(operand, Const(value=str() as key))):
                return plan_select(self.plan(operand), key, test_only=False)
            case Call(function="@in", args=(_, ListLiteral(elements=()))):
                return lambda _scope: False
            case Call():
                return self._plan_call(node)
            case ListLiteral():
                return plan_list(
                    [self.plan(element) for element in node.elements], frozenset(node.optional_indices)
                )
            case MapLiteral():
                if node.message:
                    return self._plan_message(node)
                return plan_map(
                    [(self.plan(entry.key), self.plan(entry.value), entry.optional) for entry in node.entries]
                )
            case Comprehension():
                return self._plan_loop(node)

    def _plan_message(self, node: MapLiteral) -> Step:
        fields = [
            (str(entry.key.value), self.plan(entry.value), entry.optional)
            for entry in node.entries
            if isinstance(entry.key, Const)
        ]
        return plan_message(node.message, fields)

    def _plan_call(self, call: Call) -> Step:
        function = call.function
        if function in LOGICAL:
            return plan_logical([self.plan(term) for term in terms(call)], decisive=LOGICAL[function])
        operands = children(call)
        if function == "_?_:_":
            condition, *branches = operands
            return plan_choice(self.plan(condition), *map(self._plan_branch, branches))
        steps = [self.plan(operand) for operand in operands]
        if function in INDEXES:
            return plan_index(steps[0], steps[1], optional=INDEXES[function])
        if function in ("_==_", "_!=_"):
            return plan_equality(steps[0], steps[1], negated=function == "_!=_")
        if function == "@not_strictly_false":
            return plan_not_strictly_false(steps[0])
        if function in ("or", "orValue"):
            return plan_or(
                steps[0], steps[1], unwraps=function == "orValue", is_lenient=self._minor < CEL_GO_29
            )
        if function == "@in":
            keys = self._set_of(operands[1])
            return plan_membership(steps[0], steps[1]) if keys is None else plan_set(steps[0], keys)
        if function in _UNARY:
            return plan_unary(_UNARY[function], steps[0])
        if function in _BINARY:
            return plan_binary(function, steps[0], steps[1])
        kinds = [self._tree.type_of(operand) for operand in operands]
        constant = len(operands) > 1 and self._is_constant(operands[1]) and kinds[1].name == "string"
        called = implementation_of(function, self._functions, kinds, has_constant_pattern=constant)
        is_dispatched = len(self._tree.references.get(call.id, ())) != 1 and function not in _SINGLETONS
        stops_early = (
            len(operands) > 2 or function == "format" or (constant and function in _PATTERNS) or is_dispatched
        )
        cost = self._foreseen_cost(call)
        return plan_call(function, called, steps, kinds, stops_early=stops_early, cost=cost)

    def _foreseen_cost(self, _call: Call) -> Cost | None:
        """The cost of a call by its arguments; None here, where costs are not counted."""
        return None

    def _plan_branch(self, node: Node) -> Step:
        if isinstance(node, Select) and node.test_only:
            return plan_tested_branch(self.plan(node.operand), node.field)
        return self.plan(node)

    def _set_of(self, node: Node) -> frozenset[Key] | None:
        """The set that the server makes of a constant list on the right of `in`."""
        if not self._is_constant(node) or self._tree.type_of(node).name != "list":
            return None
        return set_of(items_of(Planner.plan(self, node)(counted_scope({}, None))))

    def _plan_loop(self, loop: Comprehension) -> Step:
        init, values = self.plan(loop.accu_init), self.plan(loop.iter_range)
        names = (loop.accu_var, loop.iter_var, loop.iter_var2)
        self._locals.extend(names)
        condition, step, result = (self.plan(part) for part in (loop.condition, loop.step, loop.result))
        del self._locals[-len(names) :]
        weight = weigh(loop.condition) + weigh(loop.step)
        gathers = not isinstance(loop.accu_init, Const)
        return plan_loop(names, values, init, condition, step, result, weight=weight, gathers=gathers)


def terms(call: Call) -> list[Node]:
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
