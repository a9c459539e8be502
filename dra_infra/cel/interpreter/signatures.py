"""Which overload of a function takes which values at run time.

A list counts by its first element, as upstream (IsAssignableRuntimeType in common/types/types.go).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, TypeAlias

from dra_infra.cel.interpreter.values import LISTS, NO_SUCH_OVERLOAD, Err, Value, items_of, type_name
from dra_infra.cel.tree import CelType

Implementation: TypeAlias = Callable[..., Value]
Overload: TypeAlias = tuple[tuple[str, ...], Implementation]
Overloads: TypeAlias = tuple[Overload, ...]
Matcher: TypeAlias = Callable[[Value], bool]

_STATIC_NAMES: Final = {"duration": "google.protobuf.Duration", "timestamp": "google.protobuf.Timestamp"}


@lru_cache(maxsize=256)
def matcher(parameter: str) -> Matcher:
    """Whether a value fits `string`, `any`, or `list<any>`."""
    if parameter == "any":
        return lambda _value: True
    if parameter.startswith("list<"):
        element = matcher(parameter[5:-1])
        return lambda value: type(value) in LISTS and all(map(element, items_of(value)[:1]))
    return lambda value: type_name(value) == parameter


def no_such_overload(function: str, arguments: list[Value]) -> Err:
    """The error that names the types of the arguments."""
    return Err(f"{NO_SUCH_OVERLOAD}: {function}({', '.join(map(type_name, arguments))})")


def dispatch(function: str, overloads: Overloads) -> Callable[[list[Value]], Value]:
    """A function that calls the first overload that takes its arguments."""
    table = [(list(map(matcher, parameters)), implementation) for parameters, implementation in overloads]

    def call(arguments: list[Any]) -> Value:
        for matchers, implementation in table:
            if len(matchers) == len(arguments) and all(
                fits(argument) for fits, argument in zip(matchers, arguments, strict=True)
            ):
                return implementation(*arguments)
        return no_such_overload(function, arguments)

    return call


def narrow(overloads: Overloads, kinds: list[CelType]) -> Overloads:
    """The overloads that the checker leaves, by the static types of the arguments; all where it leaves none."""
    left = tuple(
        overload
        for overload in overloads
        if len(overload[0]) == len(kinds)
        and all(_may_be(parameter, kind) for parameter, kind in zip(overload[0], kinds, strict=True))
    )
    return left or overloads


def _may_be(parameter: str, kind: CelType) -> bool:
    if parameter == "any" or kind.name in ("dyn", "any") or not kind.name:
        return True
    if parameter.startswith("list<"):
        return kind.name == "list" and all(_may_be(parameter[5:-1], element) for element in kind.parameters)
    return parameter == _STATIC_NAMES.get(kind.name, kind.name)
