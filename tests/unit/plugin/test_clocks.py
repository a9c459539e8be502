"""A clock that is set while the plugin runs changes nothing: what is compared are seconds that only go forward."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import dra_infra.client
import dra_infra.plugin

CLIENT = Path(dra_infra.client.__file__).parent
PACKAGE = Path(dra_infra.plugin.__file__).parent
TELLS_THE_TIME = {
    "api_server/binding.py": "lastTransitionTime of a condition, for people",
    "service/health.py": "when a device's health was last known, which the kubelet compares with its own clock",
}
"""Modules that read the machine's clock, and what for: they write it down, and compare it with nothing."""

CLOCK = {
    ("time", "time"),
    ("time", "time_ns"),
    ("datetime", "now"),
    ("datetime", "today"),
    ("datetime", "utcnow"),
}


def readings(tree: ast.AST) -> Iterator[ast.AST]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            # Of `time.time`, and of `datetime.datetime.now`.
            holder = getattr(node.value, "id", "") or getattr(node.value, "attr", "")
            if (holder, node.attr) in CLOCK:
                yield node
        if isinstance(node, ast.ImportFrom) and any((node.module, each.name) in CLOCK for each in node.names):
            yield node


@pytest.mark.parametrize(
    ("source", "reads"),
    [
        ("time.time()", True),
        ("datetime.datetime.now(UTC)", True),
        ("datetime.now(UTC)", True),
        ("from time import time_ns", True),
        ("time.monotonic()", False),
        ("from time import monotonic", False),
    ],
)
def test_the_usual_ways_to_read_a_clock_are_found(source: str, reads: bool):
    assert bool(list(readings(ast.parse(source)))) == reads


def test_only_what_is_written_down_for_others_is_read_from_the_machines_clock():
    reading = {
        file.relative_to(PACKAGE).as_posix()
        for file in PACKAGE.rglob("*.py")
        if any(readings(ast.parse(file.read_text())))
    }
    assert reading == TELLS_THE_TIME.keys()


def test_no_token_runs_out_and_no_answer_is_late_by_the_machines_clock():
    assert not [file.name for file in CLIENT.rglob("*.py") if any(readings(ast.parse(file.read_text())))]
