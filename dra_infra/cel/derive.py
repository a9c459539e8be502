"""The values of derived attributes, which Kubernetes computes from 1.37 on from an expression and a device."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from dra_infra.cel.check import Checked, check_derived
from dra_infra.cel.device_view import DeviceView
from dra_infra.cel.evaluate import Failed
from dra_infra.errors import InvalidSpecError

if TYPE_CHECKING:
    from dra_infra.cel.interpreter import Interpreter

_MINOR = 37


def derive_attribute(expression: str, view: DeviceView) -> dict[str, Any] | Failed:
    """The value of a derived attribute on a device, as the API writes one: `{"int": 3}`.

    Raises:
        InvalidSpecError: With the problems of `check_derived`, when the expression does not compile.
    """
    from dra_infra.cel.interpreter import UndecidedError, read_attribute

    checked, interpreter = _plan(expression)
    if checked.errors:
        raise InvalidSpecError(checked.errors)
    if interpreter is None:
        return Failed(checked.undecided, decided=False)
    if view.failure:
        return Failed(view.failure, decided=view.is_decided)
    try:
        result = read_attribute(interpreter.evaluate(view.variables()))
    except UndecidedError as error:
        return Failed(str(error), decided=False)
    return Failed(result) if isinstance(result, str) else result


@lru_cache(maxsize=1024)
def _plan(expression: str) -> tuple[Checked, Interpreter | None]:
    from dra_infra.cel.interpreter import Interpreter

    checked = check_derived(expression)
    return checked, Interpreter(checked.tree, _MINOR) if checked.tree is not None else None
