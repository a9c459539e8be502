"""Regular expressions at every limit of Go's are taken and refused as Kubernetes' packages do, in the same words."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from dra_infra.kubernetes.api import DeviceAttribute
from dra_infra.kubernetes.cel import DeviceView, Environment, check_expression, compile_expression
from dra_infra.kubernetes.cel.evaluate import Failed, Match
from tests.support.parity.judge import Judge
from tests.support.parity.pattern_generator import patterns

pytestmark = pytest.mark.e2e

_TEXT = "aabc é☃ K1"
_DEVICE = {"driver": "a.b", "attributes": {"s": {"string": _TEXT}}}
_REASONS = {
    "a class of characters that only some releases of Go know",
    "a regular expression that Go may find nested too deeply",
    "a regular expression that is too large for the engine",
}
_LONGEST = 10 * 1024


def _ours(expression: str, environment: Environment, view: DeviceView) -> tuple[str | bool, str]:
    """What we say of an expression, or why it is not decided."""
    checked = check_expression(expression, environment=environment)
    if checked.errors or checked.undecided:
        return checked.detail, checked.undecided
    verdict = compile_expression(expression, environment).evaluate(view)
    if isinstance(verdict, Failed):
        return verdict.text, "" if verdict.decided else verdict.text
    return isinstance(verdict, Match), ""


@pytest.mark.parametrize("minor", [34, 35, 36, 37])
def test_every_pattern_is_taken_as_the_server_takes_it(binaries: Callable[[str], Path], minor: int):
    environment = Environment(minor)
    view = DeviceView("a.b", {"s": DeviceAttribute(string=_TEXT)})
    counts: Counter[str] = Counter()
    wrong: list[str] = []
    with Judge(binaries("cel-judge" if minor == 37 else f"cel-judge-1.{minor}")) as judge:
        for pattern in dict.fromkeys(patterns()):
            literal = json.dumps(pattern, ensure_ascii=False)
            # One that is known only on a device fails there, in words of its own.
            computed = f"({literal} + device.driver).substring(0, {len(pattern)})"
            for argument in (literal, computed):
                expression = f'device.attributes["a.b"].s.matches({argument})'
                if len(expression.encode()) > _LONGEST:
                    continue
                answer = judge.ask({"expression": expression, "devices": [_DEVICE]})
                theirs = answer["results"][0] if "results" in answer else answer["refused"]
                ours, undecided = _ours(expression, environment, view)
                counts[undecided] += 1
                if not undecided and ours != theirs:
                    wrong.append(f"{expression[:200]}\n  ours   {ours}\n  server {theirs}")
    assert not wrong, "\n\n".join(wrong[:10])
    assert set(counts) == {"", *_REASONS}
    assert counts[""] > 3000
