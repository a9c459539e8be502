"""The table of pending pods beside Kubernetes' allocator: what waits has no devices there, and each change gives it some."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from tests.support.explanation.pending_pairs import PAIRS_BEHIND, TABLE
from tests.support.explanation.pending_pods import (
    Object,
    PendingPod,
    answer,
    find_case,
    is_written,
    with_change,
)
from tests.support.parity.judge import Judge

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def judge(binaries: Callable[[str], Path]) -> Iterator[Judge]:
    with Judge(binaries("allocator-judge")) as process:
        yield process


def has_devices(judge: Judge, row: PendingPod, objects: Sequence[Object], folder: Path) -> bool:
    """Whether Kubernetes' allocator finds devices for the pod on a node to which it may go."""
    case = find_case(row, objects, folder)
    if case is None:
        return False
    if not case.claims:
        return bool(case.nodes)
    (answers,) = judge.ask({"batch": [case.question()]})
    return any(each.get("allocations") for node in answers for each in node)


@pytest.mark.parametrize("row", [each for each in TABLE if each.is_judged], ids=lambda row: row.name)
def test_a_change_gives_a_pending_pod_devices(judge: Judge, row: PendingPod, tmp_path: Path):
    assert not has_devices(judge, row, row.objects, tmp_path / "before")
    found = json.loads(answer(row, row.objects, tmp_path / "told", as_json=True))
    suggestions = found["answer"]["suggestions"] if found["answer"] else []
    tried = [each for each in suggestions if is_written(each)]
    assert tried or row.edit is None or any(line.startswith("(") for line in row.edit)
    for number, each in enumerate(tried):
        changed = with_change(row.objects, each)
        assert has_devices(judge, row, changed, tmp_path / str(number)), each


@pytest.mark.parametrize("row", PAIRS_BEHIND, ids=lambda row: row.name)
def test_each_of_two_causes_keeps_devices_from_a_pending_pod(judge: Judge, row: PendingPod, tmp_path: Path):
    found = [
        has_devices(judge, row, objects, tmp_path / str(number))
        for number, objects in enumerate((*row.mended, row.whole))
    ]
    assert found == [False, False, True]
