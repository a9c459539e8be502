"""CEL for device selectors: check an expression, evaluate it on devices, and write one in Python.

No file, network or Pulumi type belongs here. The engine is loaded on first use, not on import. The package can be
called: `dra.cel("...")` is the escape hatch that users type (ADR 3).
"""

from __future__ import annotations

import sys
from types import ModuleType

from dra_infra.cel.amount import CapacityAmount, VersionAttribute, capacity, version
from dra_infra.cel.attribute import Attribute, attribute
from dra_infra.cel.check import Checked, check_expression
from dra_infra.cel.device_view import DeviceView
from dra_infra.cel.evaluate import Failed, Match, NoMatch, Program, Verdict, compile_expression
from dra_infra.cel.gpu import gpu
from dra_infra.cel.reads import Read
from dra_infra.cel.selector import Selector, cel, driver

__all__ = [
    "Attribute",
    "CapacityAmount",
    "Checked",
    "DeviceView",
    "Failed",
    "Match",
    "NoMatch",
    "Program",
    "Read",
    "Selector",
    "Verdict",
    "VersionAttribute",
    "attribute",
    "capacity",
    "cel",
    "check_expression",
    "compile_expression",
    "driver",
    "gpu",
    "version",
]


class _CallablePackage(ModuleType):
    def __call__(self, text: str) -> Selector:
        return cel(text)


# Importing a subpackage binds it in its parent and so shadows a function of the same name there (ADR 3).
sys.modules[__name__].__class__ = _CallablePackage
