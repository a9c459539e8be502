"""What nodes see of the slices of others, and what they need not see."""

from __future__ import annotations

from typing import Any

import pytest

from dra_infra.catalog import load_fleet
from dra_infra.kubernetes.scheduler.allocator import Allocator
from dra_infra.target import ClusterTarget
from tests.support.allocator.answers import allocator_of, answers_of, node_of
from tests.support.allocator.cases import MINORS, make_case
from tests.support.allocator.known import a_claim, a_leaf, a_slice, counting, drawing

NODES = [{"metadata": {"name": name, "labels": {}}} for name in ("n0", "n1")]


def partitions(node: str, minor: str, **changes: Any) -> list[dict[str, Any]]:
    """A pool of one node with two partitions and their counters."""
    here = a_slice(drawing("d0"), drawing("d1"), name=f"{node}-devices", pool=node, nodeName=node)
    slices = counting(1, minor, here, nodeName=node)
    slices[-1]["metadata"]["name"] = f"{node}-counters" if minor != "1.34" else f"{node}-devices"
    slices[0]["spec"]["devices"][0].update(changes)
    return slices


@pytest.mark.parametrize("minor", MINORS)
def test_a_node_looks_at_its_own_partitions_only(minor: str):
    fleet = load_fleet("a100-80gb x 3 dynamic-mig", kubernetes=minor)
    (release,) = ClusterTarget(kubernetes=minor).releases
    allocator = Allocator(release, fleet.slices, fleet.classes)
    for node in fleet.nodes:
        assert [pool.id.pool for pool in allocator.pools(node)] == [node.name]


@pytest.mark.parametrize("minor", MINORS)
def test_a_broken_pool_of_another_node_is_seen_where_its_counters_are(minor: str):
    unknown = [{"counterSet": "none", "counters": {"slots": {"value": "1"}}}]
    slices = [*partitions("n0", minor), *partitions("n1", minor, consumesCounters=unknown)]
    case = make_case(minor, slices=slices, claims=[a_claim(a_leaf(None))], nodes=NODES)
    pools = allocator_of(case).pools(node_of(NODES[0]))
    assert [bool(pool.invalid) for pool in pools] == ([False, True] if minor in ("1.35", "1.36") else [False])


@pytest.mark.parametrize("minor", MINORS)
def test_partitions_of_several_nodes_have_the_same_answer_on_each(minor: str):
    slices = [*partitions("n0", minor), *partitions("n1", minor)]
    for count, fits in ((1, True), (2, False)):
        case = make_case(minor, slices=slices, claims=[a_claim(a_leaf(count))], nodes=NODES)
        assert ["results" in each for each in answers_of(case)] == [fits] * 2
