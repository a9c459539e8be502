"""What the server computes ahead of every device, and refuses when it cannot: conversions and patterns of constants.

Upstream: decOptimize and decRegexOptimizer of cel-go's interpreter/decorators.go; numbers, durations and times are read
as Go's strconv and time packages read them.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache
from typing import Final

from dra_infra.cel.declare import run_environment
from dra_infra.cel.tree import Call, CheckedTree, Const, Node
from dra_infra.cel.wire import encode_parsed

CONVERSIONS: Final = frozenset(
    {"bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"}
)
"""Functions that are computed ahead when their argument is a constant."""

_DIGITS: Final = "[0-9](?:_?[0-9])*"
_HEX_DIGITS: Final = "[0-9a-fA-F](?:_?[0-9a-fA-F])*"
_DECIMAL = re.compile(
    rf"[+-]?(?:{_DIGITS}(?:\.(?:{_DIGITS})?)?|\.{_DIGITS})(?:[eE][+-]?{_DIGITS})?", re.ASCII
)
_HEXADECIMAL = re.compile(
    rf"[+-]?0[xX](?:_?{_HEX_DIGITS}(?:\.(?:{_HEX_DIGITS})?)?|\.{_HEX_DIGITS})[pP][+-]?{_DIGITS}", re.ASCII
)
_INFINITE = re.compile(r"[+-]?inf(?:inity)?|nan", re.ASCII | re.IGNORECASE)
_OLDEST: Final = 34
"""Minor version whose conversions are those of all others, and duration(int), which later checkers do not know."""
_PATTERN_ERRORS: Final = {
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid repetition size": "invalid repeat count",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
}
_ANY_BYTE = re.compile(r"(?<!\\)(?:\\\\)*\\C")


def refuse_constant(tree: CheckedTree, node: Node) -> str:
    """Why the server cannot compute a constant of the tree, in its words; empty when it can."""
    # Hardly any expression holds such a constant, so the interpreter loads with the first.
    from dra_infra.cel.interpreter import Interpreter
    from dra_infra.cel.interpreter.values import Err

    value = Interpreter(CheckedTree(root=node, types=tree.types, positions={}), _OLDEST).evaluate({})
    return value.text if isinstance(value, Err) else ""


def read_double(text: str) -> float | None:
    """*text* as Go's ParseFloat reads it; None when it does not."""
    plain = text.replace("_", "")
    if _INFINITE.fullmatch(text):
        return float(text)
    if _DECIMAL.fullmatch(text):
        value = float(plain)
    elif _HEXADECIMAL.fullmatch(text):
        try:
            value = float.fromhex(plain)
        except OverflowError:
            return None
    else:
        return None
    return value if math.isfinite(value) else None


@lru_cache(maxsize=1024)
def refuse_pattern(pattern: str) -> str:
    """Why a regular expression does not compile in Go, in its words; empty when it does."""
    error = evaluate_error(Call("matches", (Const("string_value", pattern),), Const("string_value", "")))
    if not error:
        # The engine's dialect knows one escape more.
        return "error parsing regexp: invalid escape sequence: `\\C`" if _ANY_BYTE.search(pattern) else ""
    reason = error.partition("invalid regular expression: ")[2]
    if reason.startswith("trailing \\"):
        return "error parsing regexp: trailing backslash at end of expression: ``"
    name, _, place = reason.partition(": ")
    return f"error parsing regexp: {_PATTERN_ERRORS.get(name, name)}: `{place}`"


def evaluate_error(node: Node) -> str:
    """The engine's error for an expression without variables; empty when it has a value."""
    value = run_environment().deserialize(encode_parsed(node)).eval(data={})
    return str(value.value()) if value.type().name() == "ERROR" else ""
