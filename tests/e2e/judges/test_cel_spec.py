"""cel-spec's conformance cases that compile in the server's environment, as the server and its specification have them.

`CEL_SPEC` names a folder with a copy of cel-spec, from github.com/google/cel-spec; nothing of it is kept here.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dra_infra.kubernetes.cel import DeviceView, Environment, check_expression, compile_expression
from dra_infra.kubernetes.cel.evaluate import Failed, Match
from tests.support.parity.cel_comparison import UNDECIDED, WRONG, compare
from tests.support.parity.judge import Judge
from tests.support.parity.textproto import Message, read

pytestmark = pytest.mark.e2e

_FOLDER = os.environ.get("CEL_SPEC", "")
_NEEDS = ("bindings", "type_env", "container", "disable_check", "disable_macros", "check_only", "locale")
"""What a case may need that no selector has."""


def _literal(value: Message) -> str | None:
    """A value as CEL writes it; None for a message."""
    ((kind, (held,)),) = ((name, given) for name, given in value.items())
    if kind in ("int64_value", "bool_value"):
        return f"({held})"
    if kind == "uint64_value":
        return f"{held}u"
    if kind == "double_value":
        is_number = held.lower().lstrip("-") not in ("nan", "inf", "infinity")
        return f"double({json.dumps(held if is_number else held.lower().replace('infinity', 'inf'))})"
    if kind == "string_value":
        return json.dumps(held.decode())
    if kind == "bytes_value":
        return "b'" + "".join(f"\\x{byte:02x}" for byte in held) + "'"
    if kind == "null_value":
        return "null"
    if kind == "type_value":
        return str(held.decode())
    if kind == "list_value":
        parts = [_literal(each) for each in held.get("values", [])]
        return None if None in parts else f"[{', '.join(map(str, parts))}]"
    if kind == "map_value":
        pairs = [(_literal(each["key"][0]), _literal(each["value"][0])) for each in held.get("entries", [])]
        return (
            None
            if any(None in pair for pair in pairs)
            else f"{{{', '.join(f'{key}: {item}' for key, item in pairs)}}}"
        )
    return None


def _cases(folder: Path) -> Iterator[tuple[str, str]]:
    """The name of each case, and an expression that is true when the value is the one that cel-spec wants."""
    for path in sorted(folder.glob("tests/simple/testdata/*.textproto")):
        for section in read(path.read_text(encoding="utf-8"))["section"]:
            for test in section.get("test", []):
                name = f"{path.stem}/{section['name'][0].decode()}/{test['name'][0].decode()}"
                text = test["expr"][0].decode()
                if any(need in test for need in _NEEDS):
                    continue
                if "eval_error" in test:
                    yield f"{name} (error)", f"dyn({text}) == 1"
                    continue
                wanted = _literal(test["value"][0]) if "value" in test else "(true)"
                if wanted is not None:
                    is_nan = wanted == 'double("nan")'
                    yield name, f"({text}) != ({text})" if is_nan else f"dyn({text}) == {wanted}"


@pytest.mark.skipif(not _FOLDER, reason="CEL_SPEC names no folder with a copy of github.com/google/cel-spec")
@pytest.mark.parametrize("minor", [34, 35, 36, 37])
def test_the_specifications_cases_are_as_the_server_has_them(
    binaries: Callable[[str], Path], minor: int, record_property: Callable[[str, Any], None]
):
    environment = Environment(minor)
    view = DeviceView("a.b")
    counts: Counter[str] = Counter()
    wrong: list[str] = []
    with Judge(binaries("cel-judge" if minor == 37 else f"cel-judge-1.{minor}")) as judge:
        for name, expression in _cases(Path(_FOLDER)):
            counts["cases"] += 1
            answer = judge.ask({"expression": expression, "devices": [{"driver": "a.b"}]})
            checked = check_expression(expression, environment=environment)
            outcome, told = compare(answer, checked, environment)
            counts[outcome] += 1
            if outcome == WRONG:
                wrong.append(f"{name}: {expression}\n{told}")
            if outcome in (WRONG, UNDECIDED) or "results" not in answer:
                continue
            counts["compile"] += 1
            verdict = compile_expression(expression, environment).evaluate(view)
            if isinstance(verdict, Failed) and not verdict.decided:
                counts["not decided on a device"] += 1
                continue
            ours = verdict.text if isinstance(verdict, Failed) else isinstance(verdict, Match)
            theirs = answer["results"][0]
            if ours != theirs:
                wrong.append(f"{name}: {expression}\n  ours   {ours}\n  server {theirs}")
            counts["as specified"] += isinstance(ours, str) if name.endswith(" (error)") else ours is True
    print(f"1.{minor}: {dict(counts)}")
    assert not wrong, "\n\n".join(wrong[:10])
    assert counts["compile"] > 700
    assert counts["as specified"] > counts["compile"] * 0.95
