"""Compiled programs, the devices that they are evaluated on, their verdicts, and derived attributes.

The verdicts are `Match`, `NoMatch` and `Failed`. Derived attributes are computed by Kubernetes from 1.37 on from an
expression and a device.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, TypeAlias

from dra_infra.kubernetes.cel.check import Checked, check_derived, check_expression
from dra_infra.kubernetes.cel.device_view import DeviceView
from dra_infra.kubernetes.cel.environment import DEFAULT, Environment
from dra_infra.kubernetes.cel.interpreter import Interpreter, UndecidedError, read_attribute, read_bool
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
NO_MATCH: Final = NoMatch()


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
        try:
            result = read_bool(self._interpreter.evaluate(view.variables, is_small=view.is_small))
        except UndecidedError as error:
            return Failed(str(error), decided=False)
        if isinstance(result, str):
            return Failed(result)
        return MATCH if result else NO_MATCH

    def cost(self, view: DeviceView) -> int | None:
        """Counts what the evaluation on one device costs the server, up to its end; None where that is not known here."""
        if self._interpreter is None or view.failure:
            return None
        try:
            return self._interpreter.measure(view.variables)
        except UndecidedError:
            return None


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
        result = read_attribute(interpreter.evaluate(view.variables, is_small=view.is_small))
    except UndecidedError as error:
        return Failed(str(error), decided=False)
    return Failed(result) if isinstance(result, str) else result


@lru_cache(maxsize=1024)
def _plan(expression: str) -> tuple[Checked, Interpreter | None]:
    checked = check_derived(expression)
    return checked, None if checked.tree is None else Interpreter(checked.tree, _MINOR)
