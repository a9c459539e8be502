"""Expressions of ValidatingAdmissionPolicies: compiled as the API server compiles them, and evaluated on a request.

An expression reads `object`, `oldObject`, `request`, `namespaceObject` and `params`, and the policy's `variables`, each of
which is evaluated when it is first read. What stands for a value that is not known here has no answer (`UndecidedError`).

Upstream: compile.go, composition.go and activation.go in `k8s.io/apiserver/pkg/admission/plugin/cel`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from dra_infra.kubernetes.api.limits import MAX_COST
from dra_infra.kubernetes.cel.check import Checked, find_tree, refuse_literals
from dra_infra.kubernetes.cel.environment import Environment, PolicyScope
from dra_infra.kubernetes.cel.interpreter import Interpreter, UndecidedError
from dra_infra.kubernetes.cel.interpreter.maps import NativeMap, OpenMap
from dra_infra.kubernetes.cel.interpreter.values import INT64, Err, Value
from dra_infra.kubernetes.cel.literals import inspect
from dra_infra.kubernetes.cel.tree import DYN, CelType, Ident, walk

__all__ = [
    "ANY",
    "BOOL",
    "TEXT",
    "TEXT_OR_NULL",
    "Activation",
    "Compiled",
    "Err",
    "OutOfBudgetError",
    "PolicyScope",
    "UndecidedError",
    "Value",
    "compile_policy_expression",
    "partly_known",
    "read_value",
    "variable_type",
]

BOOL: Final = ("bool",)
TEXT: Final = ("string",)
TEXT_OR_NULL: Final = ("string", "null_type")
ANY: Final = ()

_BUDGET: Final = (
    "validation failed due to running out of cost budget, no further validation rules will be run"
)


class OutOfBudgetError(Exception):
    """The expressions of a policy cost more together than the server allows."""

    def __init__(self) -> None:
        super().__init__(_BUDGET)


@dataclass(frozen=True, slots=True)
class Compiled:
    """An expression.

    Args:
        text: As it is written.
        kind: The type of its result; `dyn` where it does not compile.
        refusal: Why the server does not compile it, in its words; empty when it does.
        undecided: Why it is not known whether it does; empty when it is.
        interpreter: Evaluates it; None where it does not compile.
    """

    text: str
    kind: CelType = DYN
    refusal: str = ""
    undecided: str = ""
    interpreter: Interpreter | None = None


@lru_cache(maxsize=1024)
def compile_policy_expression(text: str, environment: Environment, returns: tuple[str, ...]) -> Compiled:
    """Compile an expression.

    Args:
        text: The expression.
        environment: The server, with the scope of the policy.
        returns: Names of the types that the result may have; any where there is none (`BOOL`, `TEXT`, `ANY`).
    """
    try:
        tree = find_tree(text, environment)
    except RecursionError:
        return Compiled(text, undecided="the expression is nested too deeply to be checked here")
    if isinstance(tree, Checked):
        return Compiled(text, refusal=tree.detail, undecided=tree.undecided)
    findings = inspect(tree)
    refused = refuse_literals(text, findings)
    if refused is not None:
        return Compiled(text, refusal=refused.detail, undecided=refused.undecided or _crash(refused))
    kind = tree.type_of(tree.root)
    if returns and str(kind) not in returns:
        return Compiled(text, refusal=_wrong_type(kind, returns))
    if findings.refusal:
        return Compiled(text, kind, refusal=f"program instantiation failed: {findings.refusal}")
    if any(isinstance(each, Ident) and each.name.startswith("authorizer") for each in walk(tree.root)):
        return Compiled(text, kind, undecided="what the authorizer says is known to the server alone")
    return Compiled(text, kind, interpreter=Interpreter(tree, environment.minor))


def _crash(refused: Checked) -> str:
    return "" if refused.detail else refused.problems[0].message


def _wrong_type(kind: CelType, returns: tuple[str, ...]) -> str:
    if len(returns) == 1:
        return f"must evaluate to {returns[0]} but got {kind}"
    return f"must evaluate to one of [{' '.join(returns)}] but got {kind}"


_KEPT: Final = frozenset(
    {"any", "bool", "bytes", "double", "duration", "int", "null_type", "string", "timestamp", "uint"}
)


def variable_type(kind: CelType) -> CelType:
    """The type that a variable has for the expressions behind it (convertCelTypeToDeclType)."""
    if kind.name in _KEPT:
        return kind
    if kind.name in ("list", "map"):
        return CelType(kind.name, tuple(map(variable_type, kind.parameters)))
    return DYN


class _Named(dict[str, Value]):
    """Values by name; a name that is declared and has none is not known here."""

    def __missing__(self, name: str) -> Value:
        raise UndecidedError(f"{name} is read, and who asks is not known here")


class Activation:
    """The values that expressions read, with the budget that they share.

    Args:
        values: `object`, `oldObject`, `request`, `namespaceObject` and `params`.
        variables: The policy's variables, compiled.
        budget: What all may cost together.
    """

    def __init__(self, values: Mapping[str, Value], variables: Mapping[str, Compiled], budget: int) -> None:
        self._values = _Named(values)
        self._values["variables"] = OpenMap(self._variable, "all variables of a policy at once")
        self._variables = variables
        self._found: dict[str, Value] = {}
        self._is_exact = True
        self.budget = budget

    def evaluate(self, compiled: Compiled) -> Value:
        """The value of an expression, which may be an `Err` with the server's text.

        Raises:
            UndecidedError: When it is not known here.
            OutOfBudgetError: When it and those before it cost too much.
        """
        if compiled.undecided:
            raise UndecidedError(compiled.undecided)
        if compiled.interpreter is None:
            return Err(f"compilation error: {compiled.refusal}")
        value = compiled.interpreter.evaluate(self._values)
        self._spend(compiled.interpreter)
        if type(value) is Err:
            return Err(f"expression '{compiled.text}' resulted in error: {value.text}")
        return value

    def _spend(self, interpreter: Interpreter) -> None:
        try:
            self.budget -= interpreter.measure(self._values)
        except UndecidedError:
            # It depends on the order of a map, so it is at most what one expression may cost.
            self.budget -= MAX_COST
            self._is_exact = False
        if self.budget < 0:
            if self._is_exact:
                raise OutOfBudgetError
            raise UndecidedError("whether the expressions of the policy cost too much together")

    def _variable(self, name: str) -> tuple[Value] | None:
        if name not in self._variables:
            return None
        if name not in self._found:
            self._found[name] = self._compose(name, self._variables[name])
        return (self._found[name],)

    def _compose(self, name: str, compiled: Compiled) -> Value:
        if compiled.undecided:
            raise UndecidedError(compiled.undecided)
        if compiled.interpreter is None:
            return Err(f'composited variable "{name}" fails to compile: {compiled.refusal}')
        value = compiled.interpreter.evaluate(self._values)
        self._spend(compiled.interpreter)
        if type(value) is Err:
            return Err(f'composited variable "{name}" fails to evaluate: {value.text}')
        return value


def read_value(data: Any) -> Value:
    """Plain JSON data as the server gives it to expressions.

    Raises:
        UndecidedError: When a number does not fit.
    """
    if isinstance(data, Mapping):
        return NativeMap.of((str(key), read_value(value)) for key, value in data.items())
    if isinstance(data, (list, tuple)):
        return [read_value(item) for item in data]
    if isinstance(data, int) and not isinstance(data, bool) and data not in INT64:
        raise UndecidedError(f"{data} is beyond 64 bits")
    return data


def partly_known(
    known: Mapping[str, Value],
    reason: Callable[[str], str],
    absent: Collection[str] = (),
    *,
    is_gone_over: bool = False,
) -> OpenMap:
    """A map of which some keys are known; a read of any other, or of the map as a whole, has no answer.

    Args:
        known: Values of keys.
        reason: Says why the value of a key is not known; `*` stands for all of them.
        absent: Keys that are known not to be there.
        is_gone_over: Whether loops go over the known keys; else they have no answer either.
    """

    def look_up(key: str) -> tuple[Value] | None:
        if key in known:
            return (known[key],)
        if key in absent:
            return None
        raise UndecidedError(reason(key))

    return OpenMap(look_up, reason("*"), [*known] if is_gone_over else None)
