"""The table of pending pods: every cause is named, and every change that is offered fits when it is carried out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.explanation.pending_pairs import PAIRS_BEHIND, TABLE
from tests.support.explanation.pending_pods import (
    PendingPod,
    a_claim,
    a_class,
    a_node,
    a_pod,
    answer,
    asking,
    gpus,
    is_written,
    slice_of,
    with_change,
)
from tests.support.explanation.pending_table import BAD_NODE, MEMORY, row


def test_the_table_has_no_row_twice():
    assert len({row.name for row in TABLE}) == len(TABLE) >= 60


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.name)
def test_a_pending_pod_hears_its_causes_and_what_would_fit(row: PendingPod, tmp_path: Path):
    told = answer(row, row.objects, tmp_path / "before", as_json=False)
    assert [each for each in row.says if each not in told] == [], told
    found = json.loads(answer(row, row.objects, tmp_path / "before", as_json=True))
    assert found["verdict"] == row.verdict
    suggestions = found["answer"]["suggestions"] if found["answer"] else []
    if row.edit is not None:
        kind, *lines = row.edit
        assert any(
            sorted(each["kind"].split(" + ")) == sorted(kind.split(" + "))
            and all(any(line in change["line"] for change in each["changes"]) for line in lines)
            for each in suggestions
        ), told
    for number, each in enumerate(suggestions):
        assert all(change["line"] in told for change in each["changes"])
        if is_written(each):
            changed = with_change(row.objects, each)
            assert json.loads(answer(row, changed, tmp_path / str(number), as_json=True))["fits"], each


@pytest.mark.parametrize("row", PAIRS_BEHIND, ids=lambda row: row.name)
def test_each_of_two_causes_keeps_the_pod_waiting_by_itself(row: PendingPod, tmp_path: Path):
    fits = [
        json.loads(answer(row, objects, tmp_path / str(number), as_json=True))["fits"]
        for number, objects in enumerate((*row.mended, row.whole))
    ]
    assert fits == [False, False, True]


def test_of_many_further_causes_those_of_the_most_devices_are_told(tmp_path: Path):
    nodes = [a_node(f"n{at}", **BAD_NODE) for at in range(9)]
    slices = [slice_of(*gpus(2), node=f"n{at}", count=2) for at in range(9)]
    claim = a_claim(asking(MEMORY.format("100Gi")))
    many = row("many", [*nodes, a_class(), *slices, claim, a_pod("gpus")], [], None)
    told = answer(many, many.objects, tmp_path, as_json=False)
    assert "        18 of them also fail request r0, selector #0" in told
    assert told.count("is incomplete: 1 of 2 slices are published") == 5
    assert "        4 more causes keep some of them away\n" in told
