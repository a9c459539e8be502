"""Macros, which are loops by the time they are evaluated (evalFold in cel-go's interpreter/interpretable.go)."""

from __future__ import annotations

from dra_infra.cel.interpreter.maps import MAPS, Map, MutableMap
from dra_infra.cel.interpreter.scopes import Loop, Scope, Step
from dra_infra.cel.interpreter.values import LISTS, Err, MutableList, Value, go_type, items_of


def plan_loop(
    names: tuple[str, str, str],
    values: Step,
    init: Step,
    condition: Step,
    step: Step,
    result: Step,
    *,
    weight: int,
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
    """
    has_two = bool(names[2])

    def evaluate(scope: Scope) -> Value:
        loop = Loop(scope, names, init)
        found = values(scope)
        if type(found) is Err:
            return found
        pairs = _pairs(found, loop) if has_two else _singles(found, loop)
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


def _singles(values: Value, loop: Loop) -> list[tuple[Value, Value]] | Err:
    if type(values) in LISTS:
        return [(item, None) for item in items_of(values)]
    if type(values) in MAPS:
        return [(key, None) for key in loop.root.arrange(values.keys())]
    return Err(f"got '{go_type(values)}', expected iterable type")


def _pairs(values: Value, loop: Loop) -> list[tuple[Value, Value]] | Err:
    if type(values) in LISTS:
        return list(enumerate(items_of(values)))
    if type(values) in MAPS:
        return [(key, values.get(key)) for key in loop.root.arrange(values.keys())]
    return Err(f"unsupported comprehension range type: {go_type(values)}")


def _frozen(value: Value) -> Value:
    if type(value) is MutableList:
        return list(value.items)
    if type(value) is MutableMap:
        return Map(dict(value.entries))
    return value
