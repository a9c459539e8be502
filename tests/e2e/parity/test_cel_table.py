"""Expressions picked by hand, in every environment of every release, beside Kubernetes' own CEL packages."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from random import Random

import pytest

from dra_infra.kubernetes.cel import Environment, check_expression
from dra_infra.kubernetes.cel.environment import ADDITIONS
from tests.support.parity.cel_calls import CALLS_OF_ONE, CALLS_OF_TWO, VALUES
from tests.support.parity.cel_comparison import MINORS, UNDECIDED, Judges, compare, environments, run
from tests.support.parity.cel_table import DEEP, EXPRESSIONS

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def judges(binaries: Callable[[str], Path]) -> Iterator[Judges]:
    with Judges(binaries) as started:
        yield started


@pytest.mark.parametrize("minor", MINORS)
def test_every_expression_of_the_table_gets_the_verdict_of_the_server(judges: Judges, minor: int):
    cases = product(EXPRESSIONS, environments(minor))
    tally = run(judges, cases, minor=minor)
    tally.write("table")
    assert not tally.wrong, "\n\n".join(tally.wrong[:10])


def test_no_verdict_on_an_expression_of_the_table_is_withheld():
    assert {text for text in EXPRESSIONS if check_expression(text).undecided} == set()


@pytest.mark.parametrize("text", DEEP)
def test_deep_nesting_is_never_guessed(judges: Judges, text: str):
    environment = Environment(stored=False)
    checked = check_expression(text, environment=environment)
    outcome, words = compare(judges.ask(text, environment), checked, environment)
    assert outcome in ("equal", UNDECIDED), words


def test_derived_attributes_may_have_the_types_that_the_server_allows(judges: Judges):
    tally = run(judges, product(EXPRESSIONS, environments(37)), minor=37, derived=True)
    tally.write("derived")
    assert not tally.wrong, "\n\n".join(tally.wrong[:10])


@pytest.mark.parametrize("minor", MINORS)
def test_every_function_takes_the_types_that_the_server_takes(judges: Judges, minor: int):
    random = Random(minor)  # noqa: S311  (a seeded choice of test cases)
    calls = [call.format(value) for call in CALLS_OF_ONE for value in VALUES]
    calls += random.sample(
        [call.format(*two) for call in CALLS_OF_TWO for two in product(VALUES, VALUES)], 4000
    )
    offered = environments(minor)
    tally = run(judges, ((call, random.choice(offered)) for call in calls), minor=minor)
    tally.write("calls")
    assert not tally.wrong, "\n\n".join(tally.wrong[:10])


def test_the_table_names_every_function_of_every_library():
    declared = {
        re.split(r"(?<!\\)\.", line.split(": ")[1].split("(")[0])[-1].replace("\\", "")
        for addition in ADDITIONS
        for line in addition.functions
    }
    text = "\n".join(EXPRESSIONS)
    # Operators, and what macros become, are not written as calls.
    called = {name for name in declared if not name.startswith("_") and "@" not in name}
    assert {name for name in called if not re.search(rf"\b{re.escape(name)}\(", text)} == set()
