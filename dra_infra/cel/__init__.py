"""CEL for device selectors: check an expression, evaluate it on devices, and write one in Python.

No file, network or Pulumi type belongs here. The engine is loaded on first use, not on import, and so are the names
below: who checks an expression needs nothing of what writes one. The package can be called: `dra.cel("...")` is the
escape hatch that users type (ADR 3).
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from dra_infra.cel.amount import CapacityAmount as CapacityAmount
    from dra_infra.cel.amount import VersionAttribute as VersionAttribute
    from dra_infra.cel.amount import capacity as capacity
    from dra_infra.cel.amount import version as version
    from dra_infra.cel.any_attribute import attribute as attribute
    from dra_infra.cel.attributes import Attribute as Attribute
    from dra_infra.cel.check import Checked as Checked
    from dra_infra.cel.check import check_expression as check_expression
    from dra_infra.cel.device_view import DeviceView as DeviceView
    from dra_infra.cel.evaluate import Failed as Failed
    from dra_infra.cel.evaluate import Match as Match
    from dra_infra.cel.evaluate import NoMatch as NoMatch
    from dra_infra.cel.evaluate import Program as Program
    from dra_infra.cel.evaluate import Verdict as Verdict
    from dra_infra.cel.evaluate import compile_expression as compile_expression
    from dra_infra.cel.gpu_selectors import gpu as gpu
    from dra_infra.cel.reads import Read as Read
    from dra_infra.cel.selector import Selector as Selector
    from dra_infra.cel.selector import cel as cel
    from dra_infra.cel.selector import driver as driver

# No module of the package has the name of one of these: importing it would put it in their place.
_HOMES: Final = {
    "Attribute": "attributes",
    "CapacityAmount": "amount",
    "Checked": "check",
    "DeviceView": "device_view",
    "Failed": "evaluate",
    "Match": "evaluate",
    "NoMatch": "evaluate",
    "Program": "evaluate",
    "Read": "reads",
    "Selector": "selector",
    "Verdict": "evaluate",
    "VersionAttribute": "amount",
    "attribute": "any_attribute",
    "capacity": "amount",
    "cel": "selector",
    "check_expression": "check",
    "compile_expression": "evaluate",
    "driver": "selector",
    "gpu": "gpu_selectors",
    "version": "amount",
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


class _CallablePackage(ModuleType):
    def __call__(self, text: str) -> Selector:
        from dra_infra.cel.selector import cel

        return cel(text)


# Importing a subpackage binds it in its parent and so shadows a function of the same name there (ADR 3).
sys.modules[__name__].__class__ = _CallablePackage
