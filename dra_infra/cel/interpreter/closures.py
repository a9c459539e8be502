"""The closures of single nodes (the Exec methods in cel-go's interpreter/interpretable.go)."""

from __future__ import annotations

from collections.abc import Callable

from dra_infra.cel.interpreter.arithmetic import operate
from dra_infra.cel.interpreter.comparing import equal
from dra_infra.cel.interpreter.maps import Map, key_of, print_value
from dra_infra.cel.interpreter.qualifying import is_present, qualify
from dra_infra.cel.interpreter.scopes import Scope, Step
from dra_infra.cel.interpreter.values import (
    NO_SUCH_OVERLOAD,
    NONE,
    Err,
    MutableList,
    OptionalValue,
    Uint,
    Value,
)
from dra_infra.cel.tree import Const


def plan_constant(node: Const) -> Step:
    """A literal."""
    value: Value = node.value
    if node.kind == "uint64_value":
        value = Uint(value)
    elif node.kind == "double_value":
        value = float(value)
    return lambda _scope: value


def plan_name(name: str) -> Step:
    """A variable."""
    return lambda scope: scope.resolve(name)


def plan_select(operand: Step, field: str, *, test_only: bool) -> Step:
    """`operand.field`, or `has(operand.field)`."""

    def evaluate(scope: Scope) -> Value:
        target = operand(scope)
        if type(target) is Err:
            return target
        return is_present(target, field) if test_only else qualify(target, field, optional=False)

    return evaluate


def plan_index(operand: Step, index: Step, *, optional: bool) -> Step:
    """`operand[index]`, or `operand[?index]`."""

    def evaluate(scope: Scope) -> Value:
        target = operand(scope)
        if type(target) is Err or target is NONE:
            return target
        key = index(scope)
        return key if type(key) is Err else qualify(target, key, optional=optional)

    return evaluate


def plan_logical(terms: list[Step], *, decisive: bool) -> Step:
    """A chain of `&&`, which false decides, or of `||`, which true does; errors count when nothing decides."""

    def evaluate(scope: Scope) -> Value:
        failure: Value = None
        for term in terms:
            value = term(scope)
            if value is decisive:
                return decisive
            if failure is None and type(value) is not bool:
                failure = value if type(value) is Err else Err(NO_SUCH_OVERLOAD)
        return not decisive if failure is None else failure

    return evaluate


def plan_choice(condition: Step, then: Step, otherwise: Step) -> Step:
    """`condition ? then : otherwise`."""

    def evaluate(scope: Scope) -> Value:
        value = condition(scope)
        if type(value) is bool:
            return then(scope) if value else otherwise(scope)
        return value if type(value) is Err else Err(NO_SUCH_OVERLOAD)

    return evaluate


def plan_equality(left: Step, right: Step, *, negated: bool) -> Step:
    """`left == right`, or `left != right`."""

    def evaluate(scope: Scope) -> Value:
        first, second = left(scope), right(scope)
        for value in (first, second):
            if type(value) is Err:
                return value
            scope.root.work.count(value)
        result = equal(first, second)
        return result is not True if negated else result

    return evaluate


def plan_not_strictly_false(operand: Step) -> Step:
    """Whether a loop goes on."""
    return lambda scope: operand(scope) is not False


def plan_or(operand: Step, otherwise: Step, *, unwraps: bool) -> Step:
    """`operand.or(otherwise)`, or `operand.orValue(otherwise)`."""

    def evaluate(scope: Scope) -> Value:
        value = operand(scope)
        if type(value) is Err:
            return value
        if type(value) is not OptionalValue:
            return Err(NO_SUCH_OVERLOAD)
        if value is NONE:
            return otherwise(scope)
        return value.value if unwraps else value

    return evaluate


def plan_unary(operation: Callable[[Value], Value], operand: Step) -> Step:
    """An operator of one operand."""

    def evaluate(scope: Scope) -> Value:
        value = operand(scope)
        return value if type(value) is Err else operation(value)

    return evaluate


def plan_binary(function: str, left: Step, right: Step) -> Step:
    """An operator of two operands."""

    def evaluate(scope: Scope) -> Value:
        first, second = left(scope), right(scope)
        if type(first) is Err:
            return first
        if type(second) is Err:
            return second
        if type(first) is not MutableList:
            # What a macro gathers is added to and not copied.
            scope.root.work.count(first)
        scope.root.work.count(second)
        return operate(function, first, second)

    return evaluate


def plan_list(elements: list[Step], optional: frozenset[int]) -> Step:
    """A list literal."""

    def evaluate(scope: Scope) -> Value:
        found = []
        for index, element in enumerate(elements):
            value = element(scope)
            if type(value) is Err:
                return value
            if index in optional:
                if type(value) is not OptionalValue:
                    told = "cannot initialize optional list element from non-optional value"
                    return Err(f"{told} {print_value(value)}")
                if value is NONE:
                    continue
                value = value.value
            found.append(value)
        return found

    return evaluate


def plan_map(entries: list[tuple[Step, Step, bool]]) -> Step:
    """A map literal."""

    def evaluate(scope: Scope) -> Value:
        found = Map()
        for key_step, value_step, optional in entries:
            key = key_step(scope)
            if type(key) is Err:
                return key
            value = value_step(scope)
            if type(value) is Err:
                return value
            if optional:
                if type(value) is not OptionalValue:
                    told = f"cannot initialize optional entry '{print_value(key)}' from non-optional value"
                    return Err(f"{told} {print_value(value)}")
                if value is NONE:
                    found.entries.pop(key_of(key), None)
                    continue
                value = value.value
            found.entries[key_of(key)] = (key, value)
        return found

    return evaluate
