"""Hints in the words of programs that are not in Python: `count: 1` in place of `count=1`, `devicePlugin` of `device_plugin`."""

from __future__ import annotations

import re
from typing import Final

from dra_infra.output.report_data import camel_case

_VALUES: Final = {"True": "true", "False": "false", "None": "null"}
_CALL: Final = re.compile(r"\b(?P<kind>[A-Z]\w+)\((?P<arguments>[a-z_]+=[^()]*)\)")
"""A component with arguments: `GpuClaimTemplate(count=1)`."""
_ARGUMENT: Final = re.compile(
    r"(?<![\w./=-])(?P<name>[a-z][a-z0-9_]*)=(?!=)(?P<value>'[^']*'|\"[^\"]*\"|\{[^}]*\}|[\w.]+)"
)
_NAME: Final = re.compile(r"(?<![\w./:-])[a-z][a-z0-9]*(?:_[a-z0-9]+)+(?![\w/-])")
_LITERAL: Final = re.compile(r"\b(?:True|False|None)\b|'(?P<text>[^'\"]*)'")


def in_properties(text: str) -> str:
    """Return a text in which arguments of Python are properties; commands to type, and functions of `dra`, stay as they are."""
    if any(each in text for each in ("kubectl ", "pulumi ", "dra.")):
        return text
    text = text.replace('count="all"', "allDevices: true")
    text = _CALL.sub(lambda found: f"{found['kind']} with {found['arguments']}", text)
    text = _ARGUMENT.sub(lambda found: f"{camel_case(found['name'])}: {_value(found['value'])}", text)
    return _NAME.sub(lambda found: camel_case(found[0]), text)


def _value(text: str) -> str:
    return _LITERAL.sub(lambda found: _VALUES.get(found[0], f'"{found["text"]}"'), text)
