"""Messages, and optional values before 1.37, evaluate as recorded of Kubernetes' packages (`messages.json`)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dra_infra.kubernetes.api import DeviceAttribute, DeviceCapacity
from dra_infra.kubernetes.cel import DeviceView, Environment, compile_expression
from dra_infra.kubernetes.cel.evaluate import Failed, Match

ROWS: list[dict[str, Any]] = json.loads(Path(__file__).with_name("messages.json").read_text())
BEFORE = "before 1.37"
DEVICE: dict[str, Any] = {
    "driver": "a.b",
    "attributes": {"v": {"version": "1.0.0"}},
    "capacity": {"q": {"value": "2"}},
}
_VIEW = DeviceView("a.b", {"v": DeviceAttribute(version="1.0.0")}, {"q": DeviceCapacity(value="2")})


def expected(row: dict[str, Any], minor: int) -> Any:
    return row.get(BEFORE, row["result"]) if minor < 37 else row["result"]


@pytest.mark.parametrize("minor", [34, 36, 37])
def test_messages_are_what_they_are_in_the_server(minor: int):
    found = {}
    for row in ROWS:
        verdict = compile_expression(row["expression"], Environment(minor)).evaluate(_VIEW)
        found[row["expression"]] = verdict.text if isinstance(verdict, Failed) else isinstance(verdict, Match)
    assert found == {row["expression"]: expected(row, minor) for row in ROWS}


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        (
            "google.protobuf.Value{string_value: 'a', bool_value: true} == 'a'",
            "a google.protobuf.Value of several fields, of which any counts",
        ),
        (
            "google.protobuf.Timestamp{seconds: 253402300800} == timestamp(0)",
            "a timestamp outside the years 1 to 9999",
        ),
        (
            "google.protobuf.Any{type_url: 'x'} == null",
            "a google.protobuf.Any, which holds any message that is linked into the server",
        ),
        (
            "google.protobuf.Value{list_value: dyn({'a': 1})} == []",
            "a map for a google.protobuf.ListValue",
        ),
    ],
)
def test_what_is_not_known_of_a_message_is_not_decided(expression: str, reason: str):
    assert compile_expression(expression).evaluate(_VIEW) == Failed(reason, decided=False)
