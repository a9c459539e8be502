"""Every expression of a table that Kubernetes itself answered: the DRA `cel` package, whose version the table names.

A verdict may be withheld but never wrong. Which ones are withheld, and which error texts are worded in another way,
stands in the golden files, so that neither list grows unseen; `DRA_INFRA_UPDATE_GOLDEN=1` writes them anew.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from dra_infra.kubernetes.api import DeviceAttribute, DeviceCapacity
from dra_infra.kubernetes.cel import DeviceView, check_expression, compile_expression
from dra_infra.kubernetes.cel.evaluate import Failed, Match, Verdict

FOLDER = Path(__file__).parent
TABLE = json.loads((FOLDER / "kubernetes-1.37.1.json").read_text())
ROWS: list[dict[str, Any]] = TABLE["expressions"]
VIEWS = [
    DeviceView(
        device["driver"],
        {name: DeviceAttribute.from_manifest(value) for name, value in device["attributes"].items()},
        {name: DeviceCapacity.from_manifest(value) for name, value in device["capacity"].items()},
        device["allowMultipleAllocations"],
    )
    for device in TABLE["devices"]
]
REFUSED = [row for row in ROWS if "refused" in row]
ACCEPTED = [row for row in ROWS if "refused" not in row]


def verdicts(row: dict[str, Any]) -> list[tuple[Verdict, Any]]:
    program = compile_expression(row["expression"])
    return [(program.evaluate(view), truth) for view, truth in zip(VIEWS, row["results"], strict=True)]


def is_withheld(row: dict[str, Any]) -> bool:
    if check_expression(row["expression"]).undecided:
        return True
    return "results" in row and any(
        isinstance(verdict, Failed) and not verdict.decided for verdict, _ in verdicts(row)
    )


def is_worded_differently(row: dict[str, Any]) -> bool:
    checked = check_expression(row["expression"])
    if "refused" in row:
        return not checked.undecided and checked.detail != row["refused"]
    return any(
        isinstance(verdict, Failed) and verdict.decided and verdict.text != truth
        for verdict, truth in verdicts(row)
    )


def compare_with_golden(name: str, lines: list[str]) -> None:
    path = FOLDER / "golden" / name
    text = "".join(f"{line}\n" for line in lines)
    if os.environ.get("DRA_INFRA_UPDATE_GOLDEN") == "1":
        path.write_text(text)
    assert path.is_file(), f"{path.name} is missing: run with DRA_INFRA_UPDATE_GOLDEN=1"
    assert text == path.read_text()


@pytest.mark.parametrize("row", REFUSED, ids=[row["expression"] for row in REFUSED])
def test_what_the_server_refuses_is_refused(row: dict[str, Any]):
    checked = check_expression(row["expression"])
    assert checked.errors or checked.undecided


@pytest.mark.parametrize("row", ACCEPTED, ids=[row["expression"] for row in ACCEPTED])
def test_what_the_server_accepts_gets_its_verdict_on_every_device(row: dict[str, Any]):
    assert not check_expression(row["expression"]).errors
    for verdict, truth in verdicts(row):
        if isinstance(verdict, Failed):
            assert isinstance(truth, str) or not verdict.decided
        else:
            assert isinstance(verdict, Match) is truth


def test_the_verdicts_that_are_withheld_are_the_known_ones():
    compare_with_golden("withheld.txt", [json.dumps(row["expression"]) for row in ROWS if is_withheld(row)])


def test_the_error_texts_that_differ_are_the_known_ones():
    compare_with_golden(
        "worded-differently.txt",
        [json.dumps(row["expression"]) for row in ROWS if is_worded_differently(row)],
    )
