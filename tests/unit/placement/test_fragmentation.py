"""How large a claim still fits beside what runs: every number is held to placing such claims one by one."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dra_infra.catalog import load_fleet
from dra_infra.placement.fragments import DomainRoom, Fragment, describe_fragments
from tests.support.placing import place

from . import conftest as build

GPU = build.a_class("gpu", 'device.driver == "gpu.nvidia.com"')


def a_workload(name, count, replicas, device_class="gpu"):
    return [
        build.a_template(name, build.a_request(count=count, device_class=device_class)),
        build.a_deployment(name, f"template:{name}", replicas=replicas),
    ]


def find(fleet, *workloads, name="gpu"):
    manifests = [GPU, *(each for workload in workloads for each in workload)]
    placed = place(manifests, fleet, with_headroom=True)
    return next(each for each in placed.fragments if each.name == name)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    nodes=st.integers(1, 2),
    running=st.lists(st.tuples(st.sampled_from([1, 2, 3, 5]), st.integers(1, 2)), max_size=3),
    size=st.sampled_from([1, 2, 4, 8]),
)
def test_as_many_claims_of_a_size_fit_as_pods_with_them_find_a_place(nodes, running, size):
    fleet = load_fleet(f"hgx-h100 x {nodes}")
    workloads = [a_workload(f"w{number}", *each) for number, each in enumerate(running)]
    found = find(fleet, *workloads)
    assert found.whole == 8
    fitting = found.sizes[size]
    for more, fits in ((fitting, True), (fitting + 1, False)):
        if more:
            manifests = [
                GPU,
                *(each for workload in workloads for each in workload),
                *a_workload("z", size, more),
            ]
            placed = next(each for each in place(manifests, fleet).workloads if each.owner.name == "z")
            # Pods that run come first by name, and these get what is left.
            assert (len(placed.pods) == more) == fits, (found, more)
    assert (found.sizes[size] > 0) == (found.largest >= size)


def test_free_devices_on_several_nodes_serve_no_large_claim():
    found = find(load_fleet("hgx-h100 x 2"), a_workload("w", 5, 2))
    assert (found.free, found.largest, found.whole) == (6, 3, 8)
    assert dict(found.sizes) == {1: 6, 2: 2, 4: 0, 8: 0}
    assert found.is_fragmented
    assert [(each.node, each.free, len(each.held)) for each in found.blocked] == [
        ("hgx-h100-0", 3, 5),
        ("hgx-h100-1", 3, 5),
    ]
    assert list(found.advice) == ["2 claims of 2 devices would use 4 of the 6 that are free"]
    assert list(describe_fragments([found]))[2].startswith(
        "gpu: 6 devices free, largest claim 3 (8 on an empty node)"
    )


def test_a_free_fleet_is_not_fragmented():
    found = find(load_fleet("hgx-h100 x 2"))
    assert (found.free, found.largest, found.whole, found.blocked) == (16, 8, 8, ())
    assert not found.is_fragmented
    assert list(describe_fragments([found])) == []


def test_a_rack_with_pods_on_two_nodes_takes_a_group_of_sixteen():
    """NVIDIA's racks have 18 nodes: two are spare beside a group of 16."""
    found = find(load_fleet("gb200-nvl72 x 1"), a_workload("a", 4, 1), a_workload("b", 4, 1))
    (domain,) = found.domains
    assert (domain.nodes, domain.free) == (18, 16)
    assert found.is_fragmented
    (advice,) = found.advice
    assert advice.startswith("a group of 16 of the 18 nodes of NVLink domain ")
    assert advice.endswith(" fits")


@pytest.mark.parametrize(
    ("free", "told"), [(17, ", and 1 more node is free"), (16, ""), (7, ", and 3 more nodes are free")]
)
def test_a_group_is_a_power_of_two(free, told):
    found = Fragment(
        name="g", free=4, largest=4, whole=4, domains=(DomainRoom(name="d", nodes=18, free=free),)
    )
    (advice,) = found.advice
    assert advice.endswith(f"of the 18 nodes of NVLink domain d fits{told}")


def test_a_mig_profile_that_smaller_ones_keep_out_has_nothing_free():
    small = build.a_class("small", 'device.attributes["gpu.nvidia.com"].?profile.orValue("") == "1g.10gb"')
    fleet = load_fleet("a100-80gb dynamic-mig")
    manifests = [small, *a_workload("w", 8, 1, device_class="small")]
    placed = place(manifests, fleet, with_headroom=True)
    large = next(each for each in placed.fragments if each.name == "MIG 7g.80gb")
    assert (large.whole, large.largest) == (8, 6)
    assert len(large.blocked[0].held) == 8


def test_a_cordoned_node_counts_for_nothing():
    fleet = load_fleet("hgx-h100 x 1")
    cordoned = replace(fleet, nodes=tuple(replace(each, unschedulable=True) for each in fleet.nodes))
    assert place([GPU], cordoned, with_headroom=True).fragments == ()


def test_who_has_the_devices_in_the_way_is_named():
    found = find(load_fleet("hgx-h100 x 1"), a_workload("w", 5, 1))
    key = found.blocked[0].held[0]
    named = found.with_holders({key: "ResourceClaim ml/a (Pod p)", ("x", "y", "z"): "nobody"})
    assert named.blocked[0].holders == ("ResourceClaim ml/a (Pod p)",)
    assert "in use, by ResourceClaim ml/a (Pod p)" in str(named.blocked[0])
