"""Nodes of one shape: what a search finds on one of them is what it would find on each."""

from __future__ import annotations

import copy
from random import Random

import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from dra_infra.fleet import Fleet
from dra_infra.kubernetes.api import ObjectRef, ResourceSlice
from dra_infra.placement.cluster import Cluster
from dra_infra.placement.cluster_state import Attempts, InUse, SharedPools
from dra_infra.placement.demand import Demand, read_demand
from dra_infra.placement.outcomes import Aborted, Chosen, Impossible
from tests.support.allocator.answers import node_of, state_of
from tests.support.allocator.cases import MINORS, Case, draw_case

COPIES = 3


def cloned(case: Case, random: Random) -> Case:
    """The case with copies of its nodes, and of the slices and allocations that belong to one node alone."""
    nodes = list(case.nodes)
    slices = list(case.slices)
    allocated = copy.deepcopy(case.allocated)
    for number in range(1, COPIES):
        for node in case.nodes:
            twin = copy.deepcopy(node)
            twin["metadata"]["name"] += f"-{number}"
            nodes.append(twin)
        slices += [_twin(each, number, random) for each in case.slices if each["spec"].get("nodeName")]
        for kind, entries in case.allocated.items():
            # Most copies have the same in use, some less of it.
            kept = [each for each in entries if random.random() < 0.8]
            allocated[kind] += [{**each, "pool": f"{each['pool']}-{number}"} for each in kept]
    return Case(
        **{
            **{name: getattr(case, name) for name in ("minor", "release", "variant", "asked", "classes", "claims")},
            "nodes": nodes,
            "slices": slices,
            "allocated": allocated,
        }
    )  # fmt: skip


def _twin(slice_, number, random):
    twin = copy.deepcopy(slice_)
    twin["metadata"]["name"] += f"-{number}"
    twin["spec"]["nodeName"] += f"-{number}"
    twin["spec"]["pool"]["name"] += f"-{number}"
    renames = random.random() < 0.5
    for device in twin["spec"].get("devices", ()):
        if random.random() < 0.03:
            device.get("attributes", {}).pop("size", None)
        root = device.get("attributes", {}).get("k8s.io/root")
        if renames and root and "string" in root:
            root["string"] += f"-{number}"
    return twin


def read(case):
    """The cluster of a case, and what its claims ask for."""
    fleet = Fleet(
        name="test",
        nodes=tuple(node_of(each) for each in case.nodes),
        slices=tuple(ResourceSlice.from_manifest(each) for each in case.slices),
    )
    classes = {
        each["metadata"]["name"]: {"apiVersion": "resource.k8s.io/v1", **each} for each in case.classes
    }
    demands = []
    for number, claim in enumerate(case.claims):
        manifest = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", **claim}
        demand = read_demand(manifest, ObjectRef("ResourceClaim", f"c{number}"), classes, case.release)
        assume(isinstance(demand, Demand))
        demands.append(demand)
    return Cluster(fleet, case.release), demands


@pytest.mark.parametrize("minor", MINORS)
@settings(max_examples=150, deadline=None)
@given(random=st.randoms(use_true_random=False))
def test_remembered_outcomes_are_those_of_a_search_on_the_node_itself(minor, random):
    case = cloned(draw_case(random, minor), random)
    cluster, demands = read(case)
    attempts = Attempts(cluster)
    in_use = InUse(cluster, SharedPools(cluster), state_of(case))
    shapes = attempts.shapes(demands)
    event(f"{len(set(shapes))} shapes of {len(cluster.nodes)} nodes")
    for node in range(len(cluster.nodes)):
        expected = cluster.search(node, demands, in_use.state)
        found = attempts.attempt(node, demands, in_use)
        event(type(found).__name__)
        if isinstance(found, (Aborted, Impossible)):
            # The words are those for the first node of the shape.
            assert type(found) is type(expected)
        else:
            assert found == expected


@pytest.mark.parametrize("minor", MINORS)
@settings(max_examples=60, deadline=None)
@given(random=st.randoms(use_true_random=False))
def test_what_is_in_use_is_followed_as_it_grows(minor, random):
    case = cloned(draw_case(random, minor), random)
    cluster, demands = read(case)
    attempts = Attempts(cluster)
    shared = SharedPools(cluster)
    in_use = InUse(cluster, shared, state_of(case))
    for _ in range(4):
        for node in range(len(cluster.nodes)):
            outcome = attempts.attempt(node, demands[:1], in_use)
            if isinstance(outcome, Chosen):
                in_use.take(node, outcome.picks)
            # A fresh look at the same state finds what the kept one knows.
            assert InUse(cluster, shared, in_use.state).of(node) == in_use.of(node)
