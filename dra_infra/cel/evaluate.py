"""Programs, the devices that they are evaluated on, and the three verdicts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from dra_infra.cel.check import check_expression
from dra_infra.cel.declare import run_environment
from dra_infra.cel.device_view import DeviceView
from dra_infra.cel.lower import lower
from dra_infra.cel.release import DEFAULT, Environment
from dra_infra.cel.tree import CheckedTree
from dra_infra.cel.values import take_deferral
from dra_infra.cel.wire import encode_parsed
from dra_infra.errors import InvalidSpecError

if TYPE_CHECKING:
    from dra_infra.cel.interpreter import Interpreter


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
        decided: False when the engine here cannot tell what the server would say (code `cel-not-decided-here`).
    """

    text: str
    decided: bool = True


Verdict: TypeAlias = Match | NoMatch | Failed

MATCH: Final = Match()
NO_MATCH: Final = NoMatch()
_MAX_DEFERRALS: Final = 100
"""The engine leaks a little whenever it leaves a verdict to the interpreter, so after this many it is not asked."""


class Program:
    """An expression that compiled; made by `compile_expression`."""

    __slots__ = (
        "_deferrals",
        "_expression",
        "_interpreter",
        "_minor",
        "_tree",
        "_undecided",
        "_variables",
        "expression",
    )

    def __init__(self, expression: str, environment: Environment = DEFAULT) -> None:
        checked = check_expression(expression, environment=environment)
        if checked.errors:
            raise InvalidSpecError(checked.errors)
        self.expression = expression
        self._undecided = checked.undecided
        self._tree: CheckedTree | None = checked.tree
        self._minor = environment.minor
        self._variables: frozenset[str] = frozenset()
        self._expression: Any = None
        self._interpreter: Interpreter | None = None
        self._deferrals = 0
        if checked.tree is None:
            return
        lowered = lower(checked.tree)
        if lowered is not None:
            self._variables = lowered.variables
            self._expression = run_environment().deserialize(encode_parsed(lowered.root))

    def __repr__(self) -> str:
        return f"Program({self.expression!r})"

    def evaluate(self, view: DeviceView) -> Verdict:
        """The verdict on one device; never raises for what an expression or a device holds."""
        if self._expression is not None and view.is_plain:
            try:
                value = self._expression.eval(view.activation(self._variables))
            except (RuntimeError, ValueError, MemoryError):
                # The engine raises for its own limits of depth, iterations and memory only; upstream has others.
                return self._interpret(view)
            if take_deferral():
                self._deferrals += 1
                if self._deferrals >= _MAX_DEFERRALS:
                    self._expression = None
            # The type comes first: reading a null result releases a None that the engine does not own.
            elif value.type().name() == "BOOL":
                return MATCH if value.value() else NO_MATCH
        return self._interpret(view)

    def _interpret(self, view: DeviceView) -> Verdict:
        if self._tree is None:
            return Failed(self._undecided, decided=False)
        if view.failure:
            return Failed(view.failure, decided=view.is_decided)
        # The usual selectors never come here, so they need not wait for it to load.
        from dra_infra.cel.interpreter import Interpreter, UndecidedError, read_bool

        if self._interpreter is None:
            self._interpreter = Interpreter(self._tree, self._minor)
        try:
            result = read_bool(self._interpreter.evaluate(view.variables()))
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
