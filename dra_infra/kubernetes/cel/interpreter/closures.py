"""Closures of single nodes (the Exec methods in cel-go's interpreter/interpretable.go).

- Selection and indexing, `a.b`, `a[b]`, `a.?b`, `a[?b]` and has(): applyQualifiers and refQualify in cel-go's
  interpreter/attributes.go.
- Macros, which are loops by the time they are evaluated: evalFold in cel-go's interpreter/interpretable.go.
- `x in y`, of which a list of constants is a set upstream: maybeOptimizeSetMembership in cel-go's decorators.go.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from dra_infra.kubernetes.cel.interpreter.maps import (
    MAPS,
    DomainMap,
    Key,
    Map,
    MutableMap,
    NativeMap,
    key_of,
    other_numbers,
    print_value,
)
from dra_infra.kubernetes.cel.interpreter.operators import equal, list_contains, operate
from dra_infra.kubernetes.cel.interpreter.scopes import Loop, Scope, Step
from dra_infra.kubernetes.cel.interpreter.values import (
    LISTS,
    NO_SUCH_OVERLOAD,
    NONE,
    EmptyMessage,
    Err,
    MutableList,
    OptionalValue,
    TypeValue,
    Uint,
    Value,
    go_type,
    items_of,
    type_name,
)
from dra_infra.kubernetes.cel.tree import Const

_KEYS: Final = (str, int, Uint, bool, float)


def qualify(target: Value, key: Value, *, optional: bool) -> Value:
    """`target[key]`, as an optional value when the target or the index is one."""
    if type(target) is OptionalValue and type(key) in _KEYS:
        if target is NONE:
            return NONE
        target = target.value
        optional = True
    found = look_up(target, key)
    if not optional:
        return Err(missing(target, key)) if found is None else found[0]
    if found is None:
        return NONE
    return found[0] if type(found[0]) is Err else OptionalValue(found[0])


def is_present(target: Value, field: str) -> Value:
    """`has(target.field)`."""
    if type(target) is OptionalValue:
        if target is NONE:
            return False
        target = target.value
    found = look_up(target, field)
    if found is not None and type(found[0]) is Err:
        return found[0]
    return found is not None


def look_up(target: Value, key: Value) -> tuple[Value] | None:
    """Returns what a target holds under a key, which may be an error; None when it holds nothing."""
    if type(key) not in _KEYS:
        return (Err(f"invalid qualifier type: {go_type(key)}"),)
    if type(target) in MAPS:
        return target.find(key)  # type: ignore[no-any-return]
    if type(target) is EmptyMessage:
        return (Err(f"no such field '{print_value(key)}'" if type(key) is str else NO_SUCH_OVERLOAD),)
    if type(target) in LISTS:
        index = _index(key)
        if type(index) is Err:
            return (index,)
        items = items_of(target)
        return (items[index],) if 0 <= index < len(items) else None
    return None


def _index(key: Value) -> Value:
    kind = type(key)
    if kind is int:
        return key
    if kind is Uint or kind is float:
        if kind is float and (not math.isfinite(key) or key != int(key)):
            return Err(f"unsupported index value {print_value(key)} in list")
        if -(2**63) < int(key) < 2**63:
            return int(key)
        return Err(f"unsupported index value {print_value(key)} in list")
    return Err(f"unsupported index type '{type_name(key)}' in list")


def missing(target: Value, key: Value) -> str:
    """The error for a key that a target does not hold."""
    if type(target) in LISTS:
        return f"index out of bounds: {print_value(key)}"
    return f"no such key: {key.name if type(key) is TypeValue else print_value(key)}"


def plan_constant(node: Const) -> Step:
    """A literal."""
    value: Value = node.value
    if node.kind == "uint64_value":
        value = Uint(value)
    elif node.kind == "double_value":
        value = float(value)
    return lambda _scope: value


def plan_name(name: str, *, is_local: bool) -> Step:
    """A variable, which outside of loops is one of the device."""
    if is_local:
        return lambda scope: scope.resolve(name)
    return lambda scope: scope.variables[name]


def plan_select(operand: Step, field: str, *, test_only: bool) -> Step:
    """`operand.field`, or `has(operand.field)`."""
    entry = (str, field)

    def evaluate(scope: Scope) -> Value:
        target = operand(scope)
        kind = type(target)
        if kind is NativeMap or kind is DomainMap:
            # Most selections of most selectors.
            found = target.entries.get(entry)
            if found is not None:
                return found[1] if not test_only or type(found[1]) is Err else True
        if kind is Err:
            return target
        return is_present(target, field) if test_only else qualify(target, field, optional=False)

    return evaluate


def plan_tested_branch(operand: Step, field: str) -> Step:
    """`has(operand.field)` as a branch of `c ? a : b`, which upstream is optional where the operand is."""

    def evaluate(scope: Scope) -> Value:
        target = operand(scope)
        if type(target) is OptionalValue:
            return qualify(target, field, optional=True)
        return target if type(target) is Err else is_present(target, field)

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
        first = left(scope)
        second = right(scope)
        for value in (first, second):
            if type(value) is Err:
                return value
            scope.root.work.count(value)
        result = equal(first, second)
        return result is not True if negated else result

    return evaluate


def plan_not_strictly_false(operand: Step) -> Step:
    """Plans the test that a loop goes on (`@not_strictly_false`)."""
    return lambda scope: operand(scope) is not False


def plan_or(operand: Step, otherwise: Step, *, unwraps: bool, is_lenient: bool) -> Step:
    """`operand.or(otherwise)`, or `operand.orValue(otherwise)`.

    Args:
        operand: What may have no value.
        otherwise: What counts then.
        unwraps: Whether it is `orValue`.
        is_lenient: Whether an operand that is no optional value is the result, as it is before 1.37.
    """

    def evaluate(scope: Scope) -> Value:
        value = operand(scope)
        if type(value) is Err:
            return value
        if type(value) is not OptionalValue:
            return value if is_lenient else Err(NO_SUCH_OVERLOAD)
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
        first = left(scope)
        second = right(scope)
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


def plan_loop(
    names: tuple[str, str, str],
    values: Step,
    init: Step,
    condition: Step,
    step: Step,
    result: Step,
    *,
    weight: int,
    gathers: bool,
) -> Step:
    """A loop.

    Args:
        names: Those of the accumulator and of the two variables, the second of which may be empty.
        values: What it goes over.
        init: The first value of the accumulator.
        condition: Whether it goes on.
        step: The next value of the accumulator.
        result: The value at the end.
        weight: What it takes to go round once.
        gathers: Whether the accumulator is neither a bool nor a number.
    """
    has_two = bool(names[2])

    def evaluate(scope: Scope) -> Value:
        loop = Loop(scope, names, init)
        found = values(scope)
        if type(found) is Err:
            return found
        pairs = (_pairs if has_two else _singles)(found, loop, gathers=gathers)
        if isinstance(pairs, Err):
            return pairs
        work = scope.root.work
        for pair in pairs:
            work.spend(weight)
            loop.values = list(pair)
            proceed = condition(loop)
            if proceed is False:
                break
            loop.accumulate(step(loop))
        loop.is_done = True
        return _frozen(result(loop))

    return evaluate


def _singles(values: Value, loop: Loop, *, gathers: bool) -> list[tuple[Value, Value]] | Err:
    if type(values) in LISTS:
        return [(item, None) for item in items_of(values)]
    if type(values) in MAPS:
        return [(key, None) for key in loop.root.arrange(values.keys(), gathers=gathers)]
    return Err(f"got '{go_type(values)}', expected iterable type")


def _pairs(values: Value, loop: Loop, *, gathers: bool) -> list[tuple[Value, Value]] | Err:
    if type(values) in LISTS:
        return list(enumerate(items_of(values)))
    if type(values) in MAPS:
        return [(key, values.get(key)) for key in loop.root.arrange(values.keys(), gathers=gathers)]
    return Err(f"unsupported comprehension range type: {go_type(values)}")


def _frozen(value: Value) -> Value:
    if type(value) is MutableList:
        return list(value.items)
    if type(value) is MutableMap:
        return Map(dict(value.entries))
    return value


def plan_membership(sought: Step, container: Step) -> Step:
    """`sought in container`."""

    def evaluate(scope: Scope) -> Value:
        value = sought(scope)
        found = container(scope)
        if type(value) is Err:
            return value
        if type(found) is Err:
            return found
        if type(found) in LISTS:
            scope.root.work.count(found)
        return _contains(found, value)

    return evaluate


def set_of(items: list[Value]) -> frozenset[Key] | None:
    """The elements of a constant list as a set; None when the server does not make one of them."""
    if any(type(item) not in (bool, int, Uint, float, str) for item in items):
        return None
    return frozenset(key for item in items for key in _keys(item))


def plan_set(sought: Step, keys: frozenset[Key]) -> Step:
    """`sought in [1, 2]`; what is sought in the empty list is not evaluated."""
    if not keys:
        return lambda _scope: False

    def evaluate(scope: Scope) -> Value:
        value = sought(scope)
        return value if type(value) is Err else key_of(value) in keys

    return evaluate


def _contains(container: Value, value: Value) -> Value:
    if type(container) in LISTS:
        return list_contains(items_of(container), value)
    if type(container) in MAPS:
        return container.contains(value)
    return Err(NO_SUCH_OVERLOAD)


def _keys(item: Value) -> list[Key]:
    """The value, and the numbers of other types that equal it."""
    floats = [float(item)] if type(item) in (int, Uint) else []
    return [key_of(each) for each in (item, *other_numbers(item), *floats)]
