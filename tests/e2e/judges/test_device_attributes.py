"""Attributes that no API server stores or that a gate hides: over-long versions, and lists, on all minors."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dra_infra.kubernetes.api import DeviceAttribute
from dra_infra.kubernetes.cel import DeviceView, Environment, compile_expression
from dra_infra.kubernetes.cel.evaluate import Failed, Match
from tests.support.parity.judge import Judge

pytestmark = pytest.mark.e2e

_LISTS: dict[str, Any] = {
    "bs": {"bools": [True]},
    "is": {"ints": []},
    "ss": {"strings": ["x", "y"]},
    "vs": {"versions": ["1.0.0"]},
}
_LONG = f"1.0.0-{'a' * 400}"
_DEVICES: list[dict[str, Any]] = [
    {"driver": "a.b", "attributes": {"s": {"string": "q"}, "v": {"version": _LONG}}},
    {"driver": "a.b", "attributes": {"s": {"string": "q"}, **_LISTS}},
    *({"driver": "a.b", "attributes": {"s": {"string": "q"}, name: _LISTS[name]}} for name in _LISTS),
    {"driver": "a.b", "attributes": {"v": {"version": f"{'1' * 5000}.0.0"}}},
]
_ATTRIBUTES = 'device.attributes["a.b"]'
_EXPRESSIONS = (
    f"{_ATTRIBUTES}.s == 'q'",
    f"{_ATTRIBUTES}.ss == ['x', 'y']",
    f"'x' in {_ATTRIBUTES}.ss",
    f"{_ATTRIBUTES}.is == []",
    f"{_ATTRIBUTES}.vs == [semver('1.0.0')]",
    f"{_ATTRIBUTES}.v.major() == 1",
    f"{_ATTRIBUTES}.v == semver('{_LONG}')",
    f"isSemver('{_LONG}')",
    f"isSemver('{'1' * 5000}.0.0')",
    f"semver('{'1' * 5000}.0.0').major() == 1",
    f"semver('v{'0' * 5000}1.0.0', true).major() == 1",
    f"semver('1.0.0-{'1' * 30}').major() == 1",
    "semver('18446744073709551615.0.0').major() == -1",
    "semver('18446744073709551616.0.0').major() == 0",
)
_NAME = re.compile(r"attribute (?:bs|is|ss|vs):")
"""Of several lists the server names any."""


@pytest.mark.parametrize("gate", [True, False], ids=["gate", "no-gate"])
@pytest.mark.parametrize("minor", [34, 35, 36, 37])
def test_devices_are_read_as_the_server_reads_them(
    binaries: Callable[[str], Path], minor: int, *, gate: bool
):
    environment = Environment(minor, list_attributes=gate)
    reads_lists = minor > 36 or (minor == 36 and gate)
    views = [
        DeviceView(
            device["driver"],
            {name: DeviceAttribute.from_manifest(value) for name, value in device["attributes"].items()},
            reads_lists=reads_lists,
        )
        for device in _DEVICES
    ]
    disabled = [] if gate else ["DRAListTypeAttributes"]
    seen: set[Any] = set()
    with Judge(binaries("cel-judge" if minor == 37 else f"cel-judge-1.{minor}")) as judge:
        for expression in _EXPRESSIONS:
            answer = judge.ask({"expression": expression, "devices": _DEVICES, "disabled": disabled})
            program = compile_expression(expression, environment)
            for view, theirs in zip(views, answer["results"], strict=True):
                verdict = program.evaluate(view)
                ours = verdict.text if isinstance(verdict, Failed) else isinstance(verdict, Match)
                assert _NAME.sub("", str(ours)) == _NAME.sub("", str(theirs)), expression
                seen.add(ours if isinstance(ours, bool) else "failed")
    assert seen == {True, False, "failed"}


_TWICE: dict[str, Any] = {
    "driver": "a.b",
    "attributes": {
        "x": {"int": 1},
        "a.b/x": {"int": 2},
        "t": {"int": 1},
        "a.b/t": {"bool": True},
        "y": {"string": "q"},
    },
}
_ON_TWICE = {
    "true": True,
    "device.driver == 'a.b'": True,
    f"{_ATTRIBUTES}.y == 'q'": True,
    f"{_ATTRIBUTES}.x > 0": True,
    f"{_ATTRIBUTES}.x == 3": False,
    f"{_ATTRIBUTES}.x in [1, 2]": True,
    f"has({_ATTRIBUTES}.x)": True,
    f"{_ATTRIBUTES}.size() == 3": True,
    f"{_ATTRIBUTES}.x == 1 || {_ATTRIBUTES}.y == 'q'": True,
    f"{_ATTRIBUTES}.t == 1 || {_ATTRIBUTES}.t == true": True,
    f"{_ATTRIBUTES}.x == 1": None,
    f"{_ATTRIBUTES}.x + 1 == 3": None,
    f"type({_ATTRIBUTES}.t) == bool": None,
    f"{_ATTRIBUTES}.x == 1 && {_ATTRIBUTES}.y == 'q'": None,
}
"""What expressions are on a device with attributes in two spellings; None where the server answers at random."""


@pytest.mark.parametrize("minor", [34, 35, 36, 37])
def test_an_attribute_in_two_spellings_is_undecided_where_the_server_answers_at_random(
    binaries: Callable[[str], Path], minor: int
):
    attributes = {name: DeviceAttribute.from_manifest(value) for name, value in _TWICE["attributes"].items()}
    view = DeviceView(_TWICE["driver"], attributes)
    with Judge(binaries("cel-judge" if minor == 37 else f"cel-judge-1.{minor}")) as judge:
        for expression, expected in _ON_TWICE.items():
            answers = judge.ask({"expression": expression, "devices": [_TWICE] * 60})["results"]
            verdict = compile_expression(expression, Environment(minor)).evaluate(view)
            if expected is None:
                assert set(answers) == {True, False}, expression
                assert isinstance(verdict, Failed), expression
                assert not verdict.decided
            else:
                assert set(answers) == {expected}, expression
                assert isinstance(verdict, Match) == expected, expression
