"""The recorded values of messages, and of optional values before 1.37, are what Kubernetes' packages answer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.parity.judge import Judge
from tests.unit.kubernetes.cel.test_messages import DEVICE, ROWS, expected

pytestmark = pytest.mark.e2e


@pytest.mark.parametrize("minor", [34, 35, 36, 37])
def test_the_recorded_values_are_what_kubernetes_answers(binaries: Callable[[str], Path], minor: int):
    assert len(ROWS) > 100
    with Judge(binaries("cel-judge" if minor == 37 else f"cel-judge-1.{minor}")) as judge:
        for row in ROWS:
            answer = judge.ask({"expression": row["expression"], "devices": [DEVICE]})
            assert answer["results"] == [expected(row, minor)], row["expression"]
