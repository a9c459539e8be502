"""The recorded values that the CEL tests use are what Kubernetes' package answers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.parity.judge import Judge
from tests.unit.kubernetes.cel.test_interpreter import ANSWERS

pytestmark = pytest.mark.e2e

TABLE = json.loads(
    (Path(__file__).parents[2] / "unit" / "kubernetes" / "cel" / "values-1.37.1.json").read_text()
)


def test_the_recorded_values_are_what_kubernetes_answers(binaries: Callable[[str], Path]):
    assert len(TABLE["expressions"]) > 400
    with Judge(binaries("cel-judge")) as judge:
        for recorded in TABLE["expressions"]:
            question = {"expression": recorded["expression"], "devices": TABLE["devices"], "derived": True}
            assert judge.ask(question)["results"] == recorded["results"], recorded["expression"]


def test_the_interpreters_corner_cases_are_what_kubernetes_answers(binaries: Callable[[str], Path]):
    with Judge(binaries("cel-judge")) as judge:
        for expression, value in ANSWERS.items():
            question = {"expression": expression, "devices": [{"driver": "a.b"}], "derived": True}
            assert judge.ask(question).get("results") == [value], expression
