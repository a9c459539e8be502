"""Calls of functions, whose arguments may be errors (evalUnary, evalBinary and evalVarArgs of cel-go)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from dra_infra.cel.interpreter.arithmetic import is_addable, missing_trait
from dra_infra.cel.interpreter.maps import MAPS
from dra_infra.cel.interpreter.regex import find, find_all, matches
from dra_infra.cel.interpreter.scopes import Scope, Step
from dra_infra.cel.interpreter.signatures import Overloads, dispatch, narrow
from dra_infra.cel.interpreter.sorting import sort, sort_by
from dra_infra.cel.interpreter.text import PARTS
from dra_infra.cel.interpreter.values import (
    LISTS,
    NO_SUCH_OVERLOAD,
    Err,
    PanicError,
    UndecidedError,
    Value,
    go_type,
    items_of,
)
from dra_infra.cel.interpreter.work import Work
from dra_infra.cel.tree import CelType

Called = Callable[[list[Value]], Value]
_SORTABLE: Final = frozenset({"int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes"})
_QUADRATIC: Final = frozenset(
    {"distinct", "sort", "@sortByAssociatedKeys", "sets.contains", "sets.equivalent", "sets.intersects"}
)
"""Functions that compare every element of a list with every other, or cost the server as much."""


def plan_call(
    function: str,
    functions: Mapping[str, Overloads],
    arguments: list[Step],
    kinds: list[CelType],
    *,
    has_constant_pattern: bool,
) -> Step:
    """A call of a function by name.

    Args:
        function: The name.
        functions: The overloads of every function.
        arguments: The closures of the arguments, that of a receiver first.
        kinds: Their static types.
        has_constant_pattern: Whether the second argument is a constant; a pattern is then compiled ahead, and what is
            no text fails in other words.

    Raises:
        UndecidedError: When the function is not known.
    """
    if has_constant_pattern and function in _PATTERNS:
        called = _PATTERNS[function]
    elif function in _SINGLETONS:
        called = _SINGLETONS[function]
    elif function in functions:
        called = dispatch(function, narrow(functions[function], kinds))
    else:
        raise UndecidedError(f"{function}()")
    call = _count_work(function, called)
    counted = _counted_argument(function, kinds)
    all_first = len(arguments) <= 2

    def evaluate(scope: Scope) -> Value:
        values: list[Value] = []
        failure: Err | None = None
        for argument in arguments:
            value = argument(scope)
            values.append(value)
            if type(value) is Err and failure is None:
                failure = value
                if not all_first:
                    return failure
        result = call(values, scope.root.work) if failure is None else failure
        if counted is not None:
            counted(values)
        return result

    return evaluate


def _count_work(function: str, called: Called) -> Callable[[list[Value], Work], Value]:
    # A map that a macro gathers comes first; it is added to and not copied.
    first = 1 if function == "cel.@mapInsert" else 0
    is_quadratic = function in _QUADRATIC

    def call(values: list[Value], work: Work) -> Value:
        for value in values[first:]:
            work.count(value)
        if is_quadratic:
            sizes = [len(items_of(value)) for value in values if type(value) in LISTS]
            work.spend(max(sizes, default=0) * min(sizes, default=0))
        result = called(values)
        if not first:
            work.count(result)
        return result

    return call


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
    return sort(values[0]) if type(values[0]) in LISTS else missing_trait("sort", values[0])


def _sort_by(values: list[Value]) -> Value:
    return sort_by(*values) if type(values[0]) in LISTS else missing_trait("@sortByAssociatedKeys", values[0])


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
    "@sortByAssociatedKeys": _sort_by,
}
"""Functions with one implementation for all types, which need a trait of the first argument's type."""


def _counted_argument(function: str, kinds: list[CelType]) -> Callable[[list[Value]], None] | None:
    """What the server does to count the cost of a call, where that fails on an argument of another type."""
    if function == "distinct":
        return lambda values: _expect_list(values[0])
    if function in ("sort", "@sortByAssociatedKeys"):
        kind = kinds[-1]
        if kind.name == "list" and kind.parameters[0].name in _SORTABLE:
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
