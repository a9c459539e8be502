"""The recorded table that the CEL tests use is what Kubernetes' package answers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.parity.judge import Judge

pytestmark = pytest.mark.e2e

TABLE = json.loads(
    (Path(__file__).parents[2] / "unit" / "kubernetes" / "cel" / "kubernetes-1.37.1.json").read_text()
)


def test_the_recorded_table_is_what_kubernetes_answers(binaries: Callable[[str], Path]):
    assert len(TABLE["expressions"]) > 400
    with Judge(binaries("cel-judge")) as judge:
        for recorded in TABLE["expressions"]:
            answer = judge.ask({"expression": recorded["expression"], "devices": TABLE["devices"]})
            expected = {key: value for key, value in recorded.items() if key != "expression"}
            assert {key: answer.get(key) for key in expected} == expected, recorded["expression"]
