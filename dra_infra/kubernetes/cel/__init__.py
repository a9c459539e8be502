"""CEL of device selectors as each minor has it: check an expression, and evaluate it on devices.

The engine and the names below are loaded when they are first used: who checks an expression needs no interpreter.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from dra_infra.kubernetes.cel.check import Checked as Checked
    from dra_infra.kubernetes.cel.check import check_expression as check_expression
    from dra_infra.kubernetes.cel.device_view import DeviceView as DeviceView
    from dra_infra.kubernetes.cel.evaluate import Failed as Failed
    from dra_infra.kubernetes.cel.evaluate import Match as Match
    from dra_infra.kubernetes.cel.evaluate import NoMatch as NoMatch
    from dra_infra.kubernetes.cel.evaluate import Program as Program
    from dra_infra.kubernetes.cel.evaluate import Verdict as Verdict
    from dra_infra.kubernetes.cel.evaluate import compile_expression as compile_expression
    from dra_infra.kubernetes.cel.reads import Read as Read

# No module of the package has the name of one of these: importing it would put it in their place.
_HOMES: Final = {
    "Checked": "check",
    "DeviceView": "device_view",
    "Failed": "evaluate",
    "Match": "evaluate",
    "NoMatch": "evaluate",
    "Program": "evaluate",
    "Read": "reads",
    "Verdict": "evaluate",
    "check_expression": "check",
    "compile_expression": "evaluate",
}

__all__ = sorted(_HOMES)  # noqa: PLE0605  (the table is the one list of names)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
