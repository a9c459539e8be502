"""Random expressions of all libraries on devices, beside Kubernetes' own packages: never another verdict, value, error or cost.

`DRA_INFRA_PARITY_N` expressions, from the seed `DRA_INFRA_PARITY_SEED`.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from dra_infra.kubernetes.api import DeviceAttribute, DeviceCapacity
from dra_infra.kubernetes.cel import (
    DeviceView,
    Environment,
    check_derived,
    check_expression,
    compile_expression,
)
from dra_infra.kubernetes.cel.evaluate import Failed, Match, derive_attribute
from tests.support.parity.cel_comparison import keep_evaluations
from tests.support.parity.cost_generator import CostGenerator
from tests.support.parity.evaluation_generator import EvaluationGenerator, devices
from tests.support.parity.judge import Judge
from tests.support.parity.plan import VARIABLE

pytestmark = pytest.mark.e2e

SEED = int(os.environ.get("DRA_INFRA_PARITY_SEED", "1"))
COUNT = max(1500, int(os.environ.get(VARIABLE, "0")))
_ORDERED = (".all(", ".exists(", ".map(k", ".transformMap(")
"""Macros that may go over a map, where the error of which entry comes first is random upstream."""

_TIMES = 40
"""How often the server is asked again: with two entries all answers are of one of them once in 2**39 times."""


def view(device: dict[str, Any]) -> DeviceView:
    return DeviceView(
        device["driver"],
        {name: DeviceAttribute.from_manifest(value) for name, value in device["attributes"].items()},
        {name: DeviceCapacity.from_manifest(value) for name, value in device["capacity"].items()},
        device["allowMultipleAllocations"],
    )


def without_lists(device: dict[str, Any]) -> dict[str, Any]:
    """The device as a server before 1.36 knows it."""
    kept = {
        name: value for name, value in device["attributes"].items() if not next(iter(value)).endswith("s")
    }
    return device | {"attributes": kept}


def ask_once_more(judge: Judge, question: dict[str, Any], place: int) -> Any:
    return judge.ask(question)["results"][place]


def compare(
    expression: str, ours: Any, truth: Any, counts: Counter[str], ask_again: Callable[[], Any]
) -> list[str]:
    """What is wrong with our answer; an error is a text in *truth*. One of several that the server gives is right."""
    counts["pairs"] += 1
    if isinstance(ours, Failed) and not ours.decided:
        counts["undecided"] += 1
        return []
    found = ours.text if isinstance(ours, Failed) else ours
    if found == truth:
        return []
    if isinstance(ours, Failed) and any(macro in expression for macro in _ORDERED):
        counts["asked again"] += 1
        if any(ask_again() == found for _ in range(_TIMES)):
            return []
    return [f"{expression}\n  ours   {found}\n  server {truth}"]


def test_every_value_is_the_servers(binaries: Callable[[str], Path]):
    asked = devices()
    views = [view(device) for device in asked]
    wrong: list[str] = []
    counts: Counter[str] = Counter()
    with Judge(binaries("cel-judge")) as judge:
        for expression in EvaluationGenerator(SEED).expressions(COUNT):
            if check_derived(expression).undecided:
                counts.update(("pairs", "undecided"))
                continue
            question = {"expression": expression, "devices": asked, "derived": True}
            answer = judge.ask(question)
            for place, (each, truth) in enumerate(zip(views, answer.get("results", ()), strict=False)):
                ours = derive_attribute(expression, each)
                # An empty list is left out of the server's JSON.
                plain = (
                    {key: value for key, value in ours.items() if value != []}
                    if isinstance(ours, dict)
                    else ours
                )
                wrong += compare(
                    expression, plain, truth, counts, partial(ask_once_more, judge, question, place)
                )
    counts["wrong"] = len(wrong)
    keep_evaluations("values", 37, counts)
    assert not wrong, "\n\n".join(wrong[:10])
    assert counts["pairs"] >= min(3000, COUNT * 2)
    assert counts["undecided"] <= max(2, counts["pairs"] // 1000)


@pytest.mark.parametrize("minor", [34, 35, 36, 37])
def test_every_verdict_is_the_servers(binaries: Callable[[str], Path], minor: int):
    asked = devices() if minor > 35 else [without_lists(device) for device in devices()]
    views = [view(device) for device in asked]
    environment = Environment(minor)
    wrong: list[str] = []
    counts: Counter[str] = Counter()
    with Judge(binaries("cel-judge" if minor == 37 else f"cel-judge-1.{minor}")) as judge:
        for expression in EvaluationGenerator(SEED * 100 + minor, only_bool=True).expressions(COUNT):
            if check_expression(expression, environment=environment).undecided:
                counts.update(("pairs", "undecided"))
                continue
            question = {"expression": expression, "devices": asked}
            answer = judge.ask(question)
            for place, (each, truth) in enumerate(zip(views, answer.get("results", ()), strict=False)):
                verdict = compile_expression(expression, environment).evaluate(each)
                ours = verdict if isinstance(verdict, Failed) else isinstance(verdict, Match)
                wrong += compare(
                    expression, ours, truth, counts, partial(ask_once_more, judge, question, place)
                )
    counts["wrong"] = len(wrong)
    keep_evaluations("verdicts", minor, counts)
    assert not wrong, "\n\n".join(wrong[:10])
    assert counts["pairs"] >= COUNT
    assert counts["undecided"] <= max(2, counts["pairs"] // 1000)


@pytest.mark.parametrize("minor", [34, 35, 36, 37])
def test_every_cost_at_run_time_is_the_servers(binaries: Callable[[str], Path], minor: int):
    device = without_lists(devices()[0])
    seen = view(device)
    environment = Environment(minor)
    wrong: list[str] = []
    counts: Counter[str] = Counter()
    with Judge(binaries("cel-judge" if minor == 37 else f"cel-judge-1.{minor}")) as judge:
        above = "[[1]].flatten(1000001) == [1]"
        for expression in (above, *CostGenerator(SEED * 100 + minor).expressions(max(300, COUNT // 20))):
            question = {"expression": expression, "devices": [device]}
            answer = judge.ask(question)
            if "results" not in answer or check_expression(expression, environment=environment).errors:
                # Which expressions compile is compared in test_cel_generated.py.
                continue
            program = compile_expression(expression, environment)
            verdict = program.evaluate(seen)
            ours = verdict if isinstance(verdict, Failed) else isinstance(verdict, Match)
            wrong += compare(
                expression, ours, answer["results"][0], counts, partial(ask_once_more, judge, question, 0)
            )
            cost = program.cost(seen)
            spent = answer["spent"][0]
            counts["exceeded"] += "actual cost limit exceeded" in str(answer["results"][0])
            if None not in (cost, spent) and cost != spent:
                wrong.append(f"{expression}\n  costs {cost}\n  server {spent}")
    counts["wrong"] = len(wrong)
    keep_evaluations("costs", minor, counts)
    assert not wrong, "\n\n".join(wrong[:10])
    assert counts["pairs"] >= 150
    assert counts["exceeded"] >= 1
    assert counts["undecided"] <= max(2, counts["pairs"] // 1000)
