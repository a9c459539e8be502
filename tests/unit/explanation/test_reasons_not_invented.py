"""Reasons that `explain` gives only where they hold: pools, running pods, priorities, and bugs of a minor."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.allocator.known import a_claim as a_plain_claim
from tests.support.allocator.known import a_leaf, a_slice, counting, drawing, valued
from tests.support.explanation import asked
from tests.support.explanation.pending_pods import (
    Object,
    a_claim,
    a_class,
    a_gpu,
    a_node,
    a_pod,
    answer,
    asking,
    running,
    slice_of,
)
from tests.support.explanation.pending_table import around, row


def ask(objects: Sequence[Object], folder: Path) -> tuple[dict[str, Any], str]:
    """The answer as data and as text."""
    asked_row = row("a pod", objects, [], None)
    return (
        json.loads(answer(asked_row, objects, folder, as_json=True)),
        answer(asked_row, objects, folder, as_json=False),
    )


def pool_of_counts(*counts: int, **rest: Any) -> list[Object]:
    """A slice of the pool of node n0 for each count, with one GPU each."""
    return [
        slice_of(a_gpu(f"gpu-{at}"), name=f"s{at}", count=count, **rest) for at, count in enumerate(counts)
    ]


@pytest.mark.parametrize("counts", [(1, 2), (2, 1), (2, 3), (3, 2)])
def test_a_pool_whose_slices_disagree_is_not_decided_and_says_why(counts: tuple[int, ...], tmp_path: Path):
    objects = [a_node(), a_class(), *pool_of_counts(*counts), a_claim(asking()), a_pod("gpus")]
    found, told = ask(objects, tmp_path)
    assert found["verdict"] == "not-decided"
    assert [each["code"] for each in found["causes"]] == ["slice-counts-differ"]
    assert f"disagree on resourceSliceCount ({min(counts)} and {max(counts)})" in told
    assert "slices are published" not in told
    assert "cannot fit" not in told


def test_a_pod_fits_on_another_node_than_the_one_with_the_pool_in_doubt(tmp_path: Path):
    whole = slice_of(a_gpu("gpu-0"), node="n1")
    objects = [
        a_node(),
        a_node("n1"),
        a_class(),
        *pool_of_counts(1, 2),
        whole,
        a_claim(asking()),
        a_pod("gpus"),
    ]
    found, told = ask(objects, tmp_path)
    assert found["verdict"] == "fits"
    assert found["answer"]["node"] == "n1"
    assert "not known: resource pool gpu.nvidia.com/n0" in told


def test_more_slices_than_they_claim_are_a_slice_that_was_left(tmp_path: Path):
    found, told = ask(
        [a_node(), a_class(), *pool_of_counts(1, 1), a_claim(asking()), a_pod("gpus")], tmp_path
    )
    assert [each["code"] for each in found["causes"]] == ["pool-incomplete"]
    assert "2 slices are published, and they claim 1" in told
    assert "delete the slice that an earlier run of the driver left" in told


def test_a_pool_with_newer_slices_for_another_node_is_obsolete_and_not_incomplete(tmp_path: Path):
    old = slice_of(a_gpu("gpu-0"), name="old", pool="p", count=2)
    new = slice_of(a_gpu("gpu-0"), name="new", pool="p", generation=2, node="n1")
    objects = [a_node(), a_node("n1", cpu="0"), a_class(), old, new, a_claim(asking()), a_pod("gpus")]
    found, _ = ask(objects, tmp_path)
    assert [each["code"] for each in found["causes"]] == ["pool-obsolete"]


@pytest.mark.parametrize(
    ("minor", "gate", "spec"),
    [
        (
            "1.37",
            "DRADeviceCompatibilityGroups",
            {"consumesCounters": [{"counterSet": "c", "counters": {}, "compatibilityGroups": ["a"]}]},
        ),
        ("1.36", "DRAPartitionableDevices", {}),
    ],
)
def test_a_slice_that_a_gate_hides_is_not_for_a_node_that_is_gone(minor: str, gate: str, spec: Object):
    counters = {} if spec else {"sharedCounters": [{"name": "c", "counters": {"x": {"value": "1"}}}]}
    slice_ = a_slice({"name": "d0", **spec}, **counters)
    on = frozenset({"DRAPartitionableDevices"}) if spec else frozenset()
    found = asked.answer(minor, slices=[slice_], claims=[a_plain_claim(a_leaf())], asked=on)
    texts = [step.text for tree in found.requests for step in tree.steps if step.removed]
    assert texts == [f"the scheduler ignores their slice, because the gate {gate} is off"]


def test_what_the_pods_before_take_is_not_held_by_running_pods():
    whole, half = drawing("whole", 2), drawing("half", 1)
    slices = counting(2, "1.37", a_slice(whole, half))
    found = asked.answer(slices=slices, claims=[a_plain_claim(a_leaf())], pods=2)
    assert found.placed == 1
    assert found.nearest == "enough devices match, but too much of the counters that they share is in use"


def test_a_pod_with_priority_waits_for_the_pods_that_have_its_devices(tmp_path: Path):
    old = running("old", "gpu-0", priority=1)
    objects = around(*old, devices=[a_gpu("gpu-0")], pod=a_pod("gpus", priority=1000))
    _, told = ask(objects, tmp_path)
    assert (
        "no scheduler up to 1.38 preempts a pod for its devices, so it waits until one of these ends" in told
    )
    assert "Pod ml/old" in told
    assert "(preemption)" not in told


BY_POINTER = "distinctAttribute takes equal values of two devices for distinct"
FORGETS = "distinctAttribute compares only with the last device of each request"
DISTINCT = [{"distinctAttribute": "k8s.io/root"}]


@pytest.mark.parametrize(
    ("minor", "values", "asked_for", "bugs"),
    [
        ("1.34", "xx", 2, [BY_POINTER]),
        ("1.35", "xyx", 3, [FORGETS]),
        (
            "1.34",
            "xyx",
            3,
            [f"{BY_POINTER} and {FORGETS}"],
        ),
        ("1.34", "xyz", 3, []),
        ("1.36", "xy", 2, []),
    ],
)
def test_a_pod_that_fits_only_because_of_bugs_says_so(
    minor: str, values: str, asked_for: int, bugs: list[str]
):
    devices = [valued(f"d{at}", value) for at, value in enumerate(values)]
    claim = a_plain_claim(a_leaf(asked_for), constraints=DISTINCT)
    found = asked.answer(minor, slices=[a_slice(*devices)], claims=[claim])
    assert found.verdict == "fits"
    assert [*found.quirks] == bugs
