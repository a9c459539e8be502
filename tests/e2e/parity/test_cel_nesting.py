"""Expressions that are nested up to the server's limit and past it, beside Kubernetes' own CEL packages: never another verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.support.parity.cel_comparison import EQUAL, MINORS, Judges, environments, run

pytestmark = pytest.mark.e2e

CHAINS: Final = {
    "sum": lambda depth: f"1{'+1' * depth} > 0",
    "product in a sum": lambda depth: f"1{'+1*2' * depth} > 0",
    "relations": lambda depth: f"true{' == true' * depth}",
    "members": lambda depth: f"device{'.a' * depth} == 1",
    "methods": lambda depth: f'"a"{".lowerAscii()" * depth} == "a"',
    "indexes": lambda depth: f"dyn([]){'[0]' * depth} == 1",
    "in a list": lambda depth: f"[1{'+1' * depth}].size() > 0",
    "in a map": lambda depth: f"{{1{'+1' * depth}: 1}}.size() > 0",
    "in an argument": lambda depth: f"dyn(1{'+1' * depth}) == 1",
    "in a choice": lambda depth: f"true ? 1{'+1' * depth} > 0 : false",
    "in a loop": lambda depth: f"[1].all(x, 1{'+1' * depth} > 0)",
    "clauses": lambda depth: f"true{' && true' * depth}",
}
NESTED: Final = {
    "brackets": lambda depth: f"{'(' * depth}true{')' * depth}",
    "sums": lambda depth: f"{'1+1*(' * depth}1{')' * depth} > 0",
    "lists": lambda depth: f"{'[' * depth}{']' * depth}.size() >= 0",
    "maps": lambda depth: (
        f'{chr(123)}"a":{(chr(123) + chr(34) + "a" + chr(34) + ":") * depth}1{chr(125) * depth}{chr(125)}.size() == 1'
    ),
    "choices": lambda depth: f"{'true ? true : ' * depth}false",
    "choices in conditions": lambda depth: f"{'(true ? ' * depth}true{' : false)' * depth}",
    "choices of devices": lambda depth: (
        "".join(f'device.driver == "{at}" ? true : ' for at in range(depth)) + "false"
    ),
    "indexes of lists": lambda depth: f"{'[' * depth}1{']' * depth}{'[0]' * depth} == 1",
    "calls": lambda depth: f"{'int(' * depth}1{')' * depth} == 1",
    "negations": lambda depth: f"{'!(' * depth}true{')' * depth}",
    "sums in brackets": lambda depth: f"{'(1+' * depth}1{')' * depth} > 0",
    "brackets in clauses": lambda depth: f"{'true && (' * depth}true{')' * depth}",
    "clauses in brackets": lambda depth: f"{'(true && ' * depth}true{')' * depth}",
    "loops": lambda depth: f"{'[1].all(a,' * depth}true{')' * depth}",
    "maps of loops": lambda depth: f"{'[1].map(a,' * depth}1{')' * depth}.size() == 1",
}
# Tried once to the limit: the server takes half a minute for types of so many parts.
DEEP_TYPES: Final = ("lists", "maps", "indexes of lists", "maps of loops")


@pytest.fixture(scope="module")
def judges(binaries: Callable[[str], Path]) -> Iterator[Judges]:
    with Judges(binaries) as started:
        yield started


@pytest.mark.parametrize("minor", MINORS)
def test_nothing_is_nested_so_deep_that_it_gets_another_verdict(judges: Judges, minor: int):
    environment = environments(minor)[0]
    expressions = [
        *(form(depth) for form in CHAINS.values() for depth in (20, 90, 248, 249, 250, 251)),
        *(
            form(depth)
            for name, form in NESTED.items()
            for depth in (24, 98, 200, 249, 250)
            if name not in DEEP_TYPES or not 98 < depth < 250
        ),
    ]
    tally = run(judges, ((each, environment) for each in expressions), minor=minor)
    assert not tally.wrong, "\n\n".join(tally.wrong[:10])
    assert tally.counts[EQUAL] == len(expressions), tally.counts
