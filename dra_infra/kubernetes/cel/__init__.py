"""CEL of device selectors as each minor has it: checked, with its cost, and evaluated on devices.

`tree`, the syntax of expressions, is a public module too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dra_infra.kubernetes.front_door import find_homes, load_late

if TYPE_CHECKING:
    from dra_infra.kubernetes.cel.check import check_derived as check_derived
    from dra_infra.kubernetes.cel.check import check_expression as check_expression
    from dra_infra.kubernetes.cel.dependencies import Dependencies as Dependencies
    from dra_infra.kubernetes.cel.dependencies import find_dependencies as find_dependencies
    from dra_infra.kubernetes.cel.device_view import DeviceView as DeviceView
    from dra_infra.kubernetes.cel.diagnostics import find_hint as find_hint
    from dra_infra.kubernetes.cel.environment import Environment as Environment
    from dra_infra.kubernetes.cel.evaluate import compile_expression as compile_expression
    from dra_infra.kubernetes.cel.parsing.tokens import SyntaxRefusedError as SyntaxRefusedError
    from dra_infra.kubernetes.cel.parsing.tokens import Token as Token
    from dra_infra.kubernetes.cel.parsing.tokens import read_literal as read_literal
    from dra_infra.kubernetes.cel.parsing.tokens import tokenize as tokenize
    from dra_infra.kubernetes.cel.reads import find_facts as find_facts
    from dra_infra.kubernetes.cel.source_text import split_conjunction as split_conjunction

# The source: a name is public when it stands here, behind its module.
_HOMES = find_homes(
    {
        "check": (
            "check_derived",
            "check_expression",
        ),
        "dependencies": (
            "Dependencies",
            "find_dependencies",
        ),
        "device_view": ("DeviceView",),
        "diagnostics": ("find_hint",),
        "environment": ("Environment",),
        "evaluate": ("compile_expression",),
        "parsing.tokens": (
            "SyntaxRefusedError",
            "Token",
            "read_literal",
            "tokenize",
        ),
        "reads": ("find_facts",),
        "source_text": ("split_conjunction",),
    }
)

__all__ = sorted(_HOMES)  # noqa: PLE0605  (the table is the source)

if not TYPE_CHECKING:
    # Type checkers would take any name for one that there is.
    __getattr__, __dir__ = load_late(__name__, _HOMES)
