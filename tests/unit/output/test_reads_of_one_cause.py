"""Reads without a guard that have one cause are one line, with how many they are and the mend for all."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from dra_infra.advice.objects import validate
from dra_infra.errors import Place, Problem
from dra_infra.output.repeated_problems import merge_repeated
from dra_infra.target import ClusterTarget

NEWEST = ClusterTarget(kubernetes="1.37")
CODE = "cel-unguarded-read"


def found(*requests: tuple[str, Sequence[str]]) -> list[Problem]:
    """The problems of a claim with a request for each class and its expressions, each at a line of its own."""
    made = [
        {
            "name": f"r{number}",
            "exactly": {
                "deviceClassName": of,
                "selectors": [{"cel": {"expression": each}} for each in expressions],
            },
        }
        for number, (of, expressions) in enumerate(requests)
    ]
    claim = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "c", "namespace": "ml"},
        "spec": {"devices": {"requests": made}},
    }
    problems = validate([claim], NEWEST)
    return [
        each.at(Place(file="c.yaml", line=line)) for line, each in enumerate(problems, 1) if each.code == CODE
    ]


def foreign(name: str) -> str:
    """A test of an attribute of a driver that is not known."""
    return f'device.attributes["x.example.com"].{name} == 1'


def memory(amount: str) -> str:
    """A test of memory, which GPUs with unified memory do not have."""
    return f'device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("{amount}")) >= 0'


def test_one_read_stays_as_it_is():
    problems = found(("x", [foreign("a")]))
    assert len(problems) == 1
    assert merge_repeated(problems) == tuple(problems)


@pytest.mark.parametrize("number", [2, 3, 9])
def test_reads_of_one_attribute_are_one_line_with_one_mend(number: int):
    problems = found(*((f"x{at}", [foreign("a")]) for at in range(number)))
    (merged,) = merge_repeated(problems)
    assert len(problems) == number
    assert (
        merged.hint == 'put has(device.attributes["x.example.com"].a) && in front of each test that reads it'
    )
    assert f"the same at {number - 1} other" in merged.message
    assert "c.yaml:" in merged.message


def test_reads_of_several_attributes_with_one_cause_are_one_line_with_each_guard():
    (merged,) = merge_repeated(found(("x", [foreign("a"), foreign("b")])))
    assert "attribute x.example.com/a and attribute x.example.com/b are read" in merged.message
    assert merged.hint.endswith(
        'has(device.attributes["x.example.com"].a) && and has(device.attributes["x.example.com"].b) &&'
    )


def test_reads_of_two_causes_are_two_lines():
    problems = found(("x", [foreign("a")]), ("gpu.nvidia.com", [memory("40Gi")]), ("y", [foreign("a")]))
    merged = merge_repeated(problems)
    assert [each.message.count("the same at") for each in merged] == [1, 0]
    assert len(merged) == 2


def test_other_problems_keep_their_place_between_the_reads():
    other = Problem(path="ResourceClaim ml/c.spec", code="missing-field", message="x", place=Place(file="a"))
    first, second = found(("x", [foreign("a")]), ("y", [foreign("a")]))
    assert [each.code for each in merge_repeated([first, other, second])] == [CODE, "missing-field"]
