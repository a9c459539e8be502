"""Hints for what a component made, in Python: `dra.gpu.memory >= "79Gi"` in place of CEL, `count=4` of `count: 4`."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Final

from dra_infra.errors import Problem
from dra_infra.selectors.any_attribute import CapacityAmount
from dra_infra.selectors.attributes import Attribute
from dra_infra.selectors.gpu_selectors import Gpu

_READ: Final = r'device\.(?P<section>attributes|capacity)\["(?P<domain>[^"]+)"\]\.(?P<name>\w+)'
_KINDS: Final = {"attributes": "attribute", "capacity": "capacity"}
_VALUE: Final = r'\.compareTo\((?:quantity|semver)\((?P<value>"[^"]*")\)\) (?P<operator>[<>=!]=?) 0'


def _name(found: re.Match[str]) -> str:
    """Names in Python what is read: `dra.gpu.memory`, `dra.attribute("gpu.example.com/index")`."""
    name = f"{found['domain']}/{found['name']}"
    known = _names().get((found["section"], name))
    if known:
        return f"dra.gpu.{known}"
    kind = "version" if "(semver(" in found[0] else _KINDS[found["section"]]
    return f'dra.{kind}("{name}")'


def _constraint(letter: str, rest: str, name: str) -> str:
    return f'dra.{letter.upper()}{rest}Attribute("{name}")'


@cache
def _names() -> dict[tuple[str, str], str]:
    """The names of `dra.gpu`, by section and qualified name."""
    found: dict[tuple[str, str], str] = {}
    for name, value in vars(Gpu).items():
        if isinstance(value, Attribute):
            section = "capacity" if isinstance(value, CapacityAmount) else "attributes"
            found.setdefault((section, value.qualified_name), name)
    return found


_RULES: Final[tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...]] = (
    (re.compile(_READ + _VALUE), lambda found: f"{_name(found)} {found['operator']} {found['value']}"),
    (re.compile(_READ), _name),
    (re.compile(r'quantity\(("[^"]*")\)'), r"\1"),
    (re.compile(r"\.startsWith\("), ".startswith("),
    (re.compile(r"\.endsWith\("), ".endswith("),
    (re.compile(r"== true\b"), "== True"),
    (re.compile(r"\b(m|d)(atch|istinct)Attribute: (\S+)"), lambda found: _constraint(*found.groups())),
    (re.compile(r"\bdeviceClassName: (\S+)"), r'device_class="\1"'),
    (
        re.compile("add the DeviceClass, or a fleet that has it"),
        "make a GpuDeviceClass; or another program makes it: write dra.class_ref(...), and name a fleet that has it",
    ),
    (
        re.compile("label the namespace with (.*admin-access: 'true')"),
        r"write admin_access=True in the GpuTenant that makes the namespace; one that no tenant makes is labelled \1",
    ),
    (
        re.compile("label the namespace with (pod-security[^ ,]*: baseline), even where .*"),
        r'leave pod_security out of the GpuTenant that makes the namespace, or write "baseline"; one that no tenant makes is labelled \1',
    ),
    (re.compile(r"\bcount: (\d+)"), r"count=\1"),
    (re.compile(r"\bnamespace: (\S+)"), r'namespace="\1"'),
)


def in_python(problem: Problem) -> Problem:
    """The problem of an object that a component made, with the line to write as the program has it.

    A read without a guard stays CEL: what is written in Python guards itself.
    """
    if problem.code == "cel-unguarded-read":
        return problem
    hint = problem.hint
    for pattern, written in _RULES:
        hint = pattern.sub(written, hint)
    return replace(problem, hint=hint) if hint != problem.hint else problem
