"""A checked tree, planned once and evaluated on many devices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dra_infra.cel.interpreter.planner import Planner
from dra_infra.cel.interpreter.scopes import Scope
from dra_infra.cel.interpreter.values import Err, PanicError, UndecidedError, Value
from dra_infra.cel.tree import CheckedTree


def _rotate(keys: list[Value]) -> list[Value]:
    return [*keys[1:], keys[0]]


_ORDERS: Final = (lambda keys: keys[::-1], _rotate)


class Interpreter:
    """Evaluates one tree.

    Args:
        tree: What the checker made of the expression.
        minor: Minor version of the server.
    """

    __slots__ = ("_refusal", "_step")

    def __init__(self, tree: CheckedTree, minor: int) -> None:
        self._refusal = ""
        try:
            self._step = Planner(tree, minor).plan(tree.root)
        except UndecidedError as error:
            self._refusal = str(error)

    def evaluate(self, variables: Mapping[str, Value]) -> Value:
        """The value on a device, which may be an `Err`.

        Raises:
            UndecidedError: When it is not known here, or depends on the order of a map, which is random upstream.
        """
        if self._refusal:
            raise UndecidedError(self._refusal)
        scope = Scope(variables, None)
        value = self._run(scope)
        if scope.is_unordered:
            for order in _ORDERS:
                if not _is_alike(value, self._run(Scope(variables, order))):
                    raise UndecidedError("a result that depends on the order of a map")
        return value

    def _run(self, scope: Scope) -> Value:
        try:
            return self._step(scope)
        except PanicError as error:
            return Err(str(error))
        except RecursionError as error:
            raise UndecidedError("an expression nested too deeply") from error


def _is_alike(first: Value, second: Value) -> bool:
    """Whether two results are the same; which of two errors comes first does not matter."""
    if type(first) is not type(second):
        return False
    return True if type(first) is Err else repr(first) == repr(second)
