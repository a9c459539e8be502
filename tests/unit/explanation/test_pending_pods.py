"""The table of pending pods: every cause is named, and every change that is offered fits when it is carried out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.explanation.pending_pods import PendingPod, answer, is_written, with_change
from tests.unit.explanation.pending_table import TABLE


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
