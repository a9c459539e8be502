"""Compiled programs, the devices that they are evaluated on, their verdicts, and derived attributes.

The verdicts are `Match`, `NoMatch` and `Failed`. Derived attributes are computed by Kubernetes from 1.37 on from an
expression and a device.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, TypeAlias

from dra_infra.kubernetes.api.equality import is_same_json
from dra_infra.kubernetes.cel.check import Checked, check_derived, check_expression
from dra_infra.kubernetes.cel.dependencies import find_dependencies
from dra_infra.kubernetes.cel.device_view import DeviceView
from dra_infra.kubernetes.cel.environment import DEFAULT, Environment
from dra_infra.kubernetes.cel.interpreter import Interpreter, UndecidedError, read_attribute, read_bool
from dra_infra.kubernetes.cel.interpreter.values import Value
from dra_infra.kubernetes.problems import InvalidSpecError


@dataclass(frozen=True, slots=True)
class Match:
    """The device passes the selector."""


@dataclass(frozen=True, slots=True)
class NoMatch:
    """The device does not pass the selector."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The expression has no result on the device, which ends the scheduling of the whole pod.

    Args:
        text: The error as the scheduler reports it, `no such key: nope`; the wording is exact where it is known.
        decided: False when it is not known here what the server would say (code `cel-not-decided-here`).
    """

    text: str
    decided: bool = True


Verdict: TypeAlias = Match | NoMatch | Failed

MATCH: Final = Match()
"""The expression is true for the device."""
NO_MATCH: Final = NoMatch()
"""The expression is false for the device."""


class Program:
    """An expression that compiled; made by `compile_expression`."""

    __slots__ = ("_interpreter", "_undecided", "expression")

    def __init__(self, expression: str, environment: Environment = DEFAULT) -> None:
        checked = check_expression(expression, environment=environment)
        if checked.errors:
            raise InvalidSpecError(checked.errors)
        self.expression = expression
        self._undecided = checked.undecided
        self._interpreter = None if checked.tree is None else Interpreter(checked.tree, environment.minor)

    def __repr__(self) -> str:
        return f"Program({self.expression!r})"

    def evaluate(self, view: DeviceView) -> Verdict:
        """The verdict on one device; never raises for what an expression or a device holds."""
        if self._interpreter is None:
            return Failed(self._undecided, decided=False)
        if view.failure:
            return Failed(view.failure, decided=view.is_decided)
        if not view.ambiguity:
            return _judge(self._interpreter, view.variables, is_small=view.is_small)
        ways = _list_ways(self.expression, view)
        verdicts = {_judge(self._interpreter, way, is_small=view.is_small) for way in ways}
        return verdicts.pop() if len(verdicts) == 1 else Failed(view.ambiguity, decided=False)

    def matches(self, view: DeviceView) -> bool | None:
        """Check that one device passes; None where the expression has no result on it, or none that is known here."""
        verdict = self.evaluate(view)
        return None if isinstance(verdict, Failed) else verdict == MATCH

    def cost(self, view: DeviceView) -> int | None:
        """Counts what the evaluation on one device costs the server, up to its end; None where that is not known here."""
        if self._interpreter is None or view.failure:
            return None
        try:
            costs = {self._interpreter.measure(way) for way in _list_ways(self.expression, view)}
        except UndecidedError:
            return None
        return costs.pop() if len(costs) == 1 else None


def _list_ways(expression: str, view: DeviceView) -> Sequence[Mapping[str, Value]]:
    """List what an expression may read of a device, once for each choice between two values; nothing where these are too many."""
    if not view.ambiguity:
        return (view.variables,)
    return view.list_ways(find_dependencies(expression)) or ()


def _judge(interpreter: Interpreter, variables: Mapping[str, Value], *, is_small: bool) -> Verdict:
    try:
        result = read_bool(interpreter.evaluate(variables, is_small=is_small))
    except UndecidedError as error:
        return Failed(str(error), decided=False)
    if isinstance(result, str):
        return Failed(result)
    return MATCH if result else NO_MATCH


@lru_cache(maxsize=4096)
def compile_expression(text: str, environment: Environment = DEFAULT) -> Program:
    """Compile a selector expression; compiled programs are kept.

    Args:
        text: The expression.
        environment: The release that evaluates it.

    Raises:
        InvalidSpecError: With the problems of `check_expression`, when the expression does not compile.
    """
    return Program(text, environment)


_MINOR = 37


def derive_attribute(expression: str, view: DeviceView) -> dict[str, Any] | Failed:
    """The value of a derived attribute on a device, as the API writes one: `{"int": 3}`.

    Raises:
        InvalidSpecError: With the problems of `check_derived`, when the expression does not compile.
    """
    checked, interpreter = _plan(expression)
    if checked.errors:
        raise InvalidSpecError(checked.errors)
    if interpreter is None:
        return Failed(checked.undecided, decided=False)
    if view.failure:
        return Failed(view.failure, decided=view.is_decided)
    try:
        ways = _list_ways(expression, view)
        results = [read_attribute(interpreter.evaluate(way, is_small=view.is_small)) for way in ways]
    except UndecidedError as error:
        return Failed(str(error), decided=False)
    result = results[0] if results else ""
    if not results or not all(is_same_json(each, result) for each in results):
        return Failed(view.ambiguity, decided=False)
    return Failed(result) if isinstance(result, str) else result


@lru_cache(maxsize=1024)
def _plan(expression: str) -> tuple[Checked, Interpreter | None]:
    checked = check_derived(expression)
    return checked, None if checked.tree is None else Interpreter(checked.tree, _MINOR)
