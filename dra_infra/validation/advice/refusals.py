"""Better hints for expressions that the server refuses: the comparison as it must be written."""

from __future__ import annotations

import json
import re
from typing import Final

from dra_infra.cel.diagnostics import find_hint
from dra_infra.validation.advice.findings import MAX_QUOTED

_READ: Final = (
    r"""device\.capacity(?:\[\s*(?:"[^"]*"|'[^']*')\s*\]|\.\w+)(?:\.\w+|\[\s*(?:"[^"]*"|'[^']*')\s*\])"""
)
_COMPARED: Final = re.compile(
    rf"""(?P<read>{_READ})\s*(?P<operator>[<>]=?|[!=]=)\s*(?:(?P<number>\d[\d_.]*)|(?P<quote>["'])(?P<text>[^"']*)(?P=quote))"""
)
_CALLED: Final = re.compile(
    rf"""(?P<read>{_READ})\.(?P<method>compareTo|isGreaterThan|isLessThan)\((?:(?P<number>\d[\d_.]*)|(?P<quote>["'])(?P<text>[^"']*)(?P=quote))\)"""
)
_UNITLESS: Final = re.compile(r"[0-9]{1,4}")


def explain_refusal(value: str, detail: str) -> str:
    """What to write instead of an expression that does not compile, empty when that is not known.

    Args:
        value: The expression, as the server prints bad values or as it was written.
        detail: The server's report.
    """
    if "kubernetes.Quantity" in detail:
        expression = _unquoted(value)
        compared = _COMPARED.search(expression)
        if compared is not None:
            return _write(f"{compared['read']}.compareTo({_amount(compared)}) {compared['operator']} 0")
        called = _CALLED.search(expression)
        if called is not None:
            ends = " >= 0" if called["method"] == "compareTo" else ""
            return _write(f"{called['read']}.{called['method']}({_amount(called)}){ends}")
    return find_hint(detail, _unquoted(value))


def _unquoted(value: str) -> str:
    try:
        text = json.loads(value) if value.startswith('"') else value
    except ValueError:
        return value
    return text if isinstance(text, str) else value


def _write(line: str) -> str:
    return f"write {line}" if len(line) <= MAX_QUOTED else ""


def _amount(match: re.Match[str]) -> str:
    text = match["number"] or match["text"]
    # A small number of memory is one of gibibytes.
    unit = "Gi" if "emory" in match["read"] and _UNITLESS.fullmatch(text) and text != "0" else ""
    return f'quantity("{text}{unit}")'
