from __future__ import annotations

import ast
import inspect
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import dra_infra as dra
from dra_infra.advice.program import check_program
from dra_infra.codes import CODES
from dra_infra.errors import ProgramError
from dra_infra.program.synth import synth_function
from tests.contract.component_problems import ELSEWHERE, OWN_MODULES, PROBLEMS
from tests.contract.component_reference import (
    COMPONENTS,
    CONFIGS,
    FUNCTIONS,
    RECORDS,
    arguments_of,
    parts_of,
    rendered,
)
from tests.support.pages.problem_pages import area_of

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "components.md"
ROWS = [(group, code, call) for group, rows in PROBLEMS.items() for code, call in rows]


def reported(call: str) -> dict[str, str]:
    """What a call gets, by code: the path without the component."""
    try:
        problems = check_program(synth_function(lambda: eval(call, {"dra": dra})))  # noqa: S307  (our own table)
    except ProgramError as error:
        problems = error.problems
    label = re.compile(r'^\w+(?:\(".*?"\)\.?|$)')
    return {problem.code: label.sub("", problem.path) for problem in reversed(problems)}


def tables() -> dict[str, str]:
    found = {}
    for group, rows in PROBLEMS.items():
        lines = ["| Problem | At |\n| --- | --- |\n"]
        for code, call in rows:
            at = reported(call)[code]
            lines.append(
                f"| [`{code}`](errors/{area_of(code)}.md#{code}) | {f'`{at}`' if at else 'the call itself'} |\n"
            )
        found[group] = "".join(lines)
    return found


def test_the_reference_says_what_signatures_and_docstrings_say():
    written = GUIDE.read_text()
    now = rendered(written, tables())
    if os.environ.get("DRA_INFRA_UPDATE_GOLDEN") == "1":
        GUIDE.write_text(now)
    assert GUIDE.read_text() == now, "run `make golden`, and read what it wrote"


def test_the_reference_has_every_component_record_and_table():
    text = GUIDE.read_text()
    told = parts_of(text)
    assert sorted(told) == sorted(set(told))
    assert [name for name in COMPONENTS if f"<!-- {name}: " not in text] == []
    missing = {*COMPONENTS, *RECORDS, *CONFIGS, *FUNCTIONS} - {"with_capabilities"} - set(told)
    assert missing == set()
    assert {group for group in PROBLEMS if group not in told} == {
        group for group in PROBLEMS if f"problems of {group}" in told
    }


def test_every_public_class_is_in_one_of_the_lists():
    classes = {name for name in dra.__all__ if isinstance(getattr(dra, name), type)}
    listed = {*COMPONENTS, *(f"{name}Args" for name in COMPONENTS), *RECORDS, *CONFIGS}
    assert classes - listed == {"ClassRef", "ClusterTarget", "DeviceConfig", "Problem", "Selector"}


@pytest.mark.parametrize("name", [*COMPONENTS, *RECORDS, *CONFIGS, *FUNCTIONS, "ClusterTarget"])
def test_every_argument_has_a_meaning(name: str):
    for argument in arguments_of(name):
        assert len(argument.meaning.split()) >= 2, argument
        assert argument.meaning.endswith("."), argument


@pytest.mark.parametrize("name", COMPONENTS)
def test_every_component_has_an_example(name: str):
    section = GUIDE.read_text().split(f"\n### {name}\n")[1].partition("\n### ")[0]
    (first, *_) = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    assert f"dra.{name}(" in first


@pytest.mark.parametrize(("group", "code", "call"), ROWS)
def test_a_call_gets_the_problem_that_the_reference_lists(group: str, code: str, call: str):
    assert code in reported(call)


def codes_in(path: Path) -> set[str]:
    """Codes that a module gives to problems of its own."""
    texts: set[Any] = {
        node.value for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Constant)
    }
    return {text for text in texts if isinstance(text, str)} & set(CODES)


def modules_of(patterns: Iterable[str]) -> set[Path]:
    return {path for pattern in patterns for path in (ROOT / "dra_infra").glob(pattern)}


def own_modules() -> Iterator[tuple[str, Sequence[str], Sequence[str]]]:
    """Tables of problems with their modules, and those of all other components with modules of the same name."""
    yield from ((group, patterns, also) for group, (patterns, also) in OWN_MODULES.items())
    listed = modules_of(pattern for patterns, _ in OWN_MODULES.values() for pattern in patterns)
    for name in COMPONENTS:
        module = Path(inspect.getfile(getattr(dra, name)))
        if module not in listed:
            yield name, [f"{folder}/{module.name}" for folder in ("components", "specs")], []


@pytest.mark.parametrize(("group", "patterns", "also"), list(own_modules()))
def test_no_code_of_a_component_is_left_out(group: str, patterns: Sequence[str], also: Sequence[str]):
    paths = modules_of(patterns)
    assert paths
    given = set().union(*map(codes_in, paths))
    listed = {code for name in (group, *also) for code, _ in PROBLEMS.get(name, ())}
    assert given - listed - set(ELSEWHERE) == set()


def test_what_is_left_out_is_not_listed_all_the_same():
    assert set(ELSEWHERE) & {code for _, code, _ in ROWS} == set()
    assert set(ELSEWHERE) <= set(CODES)
