"""`x in y`, of which a list of constants is a set upstream (maybeOptimizeSetMembership in cel-go's decorators.go)."""

from __future__ import annotations

from dra_infra.cel.interpreter.comparing import list_contains
from dra_infra.cel.interpreter.maps import MAPS, Key, key_of, other_numbers
from dra_infra.cel.interpreter.scopes import Scope, Step
from dra_infra.cel.interpreter.values import (
    LISTS,
    NO_SUCH_OVERLOAD,
    Err,
    Uint,
    Value,
    items_of,
)


def plan_membership(sought: Step, container: Step, *, may_be_set: bool) -> Step:
    """`sought in container`."""
    if may_be_set:
        items = items_of(container(Scope({}, None)))
        if not items:
            return lambda _scope: False
        if all(type(item) in (bool, int, Uint, float, str) for item in items):
            return _plan_set(sought, frozenset(key for item in items for key in _keys(item)))

    def evaluate(scope: Scope) -> Value:
        value, found = sought(scope), container(scope)
        if type(value) is Err:
            return value
        if type(found) is Err:
            return found
        if type(found) in LISTS:
            scope.root.work.count(found)
        return _contains(found, value)

    return evaluate


def _plan_set(sought: Step, keys: frozenset[Key]) -> Step:
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
