"""Conversions of literals, which Kubernetes computes when it makes a program and refuses when they fail.

Upstream: maybeOptimizeConstUnary in cel-go's interpreter/planner.go; texts are read as Go's strconv reads them.
"""

from __future__ import annotations

import re
from typing import Final

from dra_infra.cel.tree import Const

_INT = re.compile(r"[+-]?[0-9]+", re.ASCII)
_UINT = re.compile(r"[0-9]+", re.ASCII)
_BOOLS: Final = {
    **dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True),
    **dict.fromkeys(("0", "f", "F", "FALSE", "false", "False"), False),
}


def convert_text(function: str, text: str) -> Const | None:
    """The literal that `int("12")` and its kin stand for; None when what Go would say is not known.

    Raises:
        ValueError: With cel-go's text, when the server refuses the conversion.
    """
    refusal = ValueError(f"type conversion error from 'string' to '{function}'")
    if function == "string":
        return Const("string_value", text)
    if function == "bool":
        if text not in _BOOLS:
            raise refusal
        return Const("bool_value", _BOOLS[text])
    if function == "int":
        if not _INT.fullmatch(text) or not -(2**63) <= int(text) < 2**63:
            raise refusal
        return Const("int64_value", int(text))
    if function == "uint":
        if not _UINT.fullmatch(text) or int(text) >= 2**64:
            raise refusal
        return Const("uint64_value", int(text))
    return None
