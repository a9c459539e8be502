"""The cheapest growth of node pools, beside trying every size of every pool."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from itertools import product

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from dra_infra.kubernetes.scheduler.fleet import Billing, Fleet, NodePool
from dra_infra.placement import growth as searching
from dra_infra.placement.growth import find_growth
from dra_infra.placement.scheduling import place

from . import conftest as build
from .test_joint_verdict import PODS, a_platform

POOLS = st.lists(
    st.fixed_dictionaries(
        {
            "node": st.sampled_from(["1", "2", "3", "parts"]),
            "now": st.integers(0, 1),
            "spare": st.integers(0, 2),
            "price": st.sampled_from([None, "1", "1.50", "2"]),
        }
    ),
    min_size=1,
    max_size=2,
)


def a_pooled(pools, pods):
    """A platform whose nodes are those of pools, as many as each may have, and then without those to come."""
    kinds = [each["node"] for each in pools for _ in range(each["now"] + each["spare"])]
    whole, manifests = a_platform(kinds, pods)
    names = iter(range(len(kinds)))
    found, there = [], []
    for number, each in enumerate(pools):
        own = [f"n{next(names)}" for _ in range(each["now"] + each["spare"])]
        there += own[: each["now"]]
        found.append(
            NodePool(
                name=f"p{number}",
                machine=each["node"],
                now=each["now"],
                nodes=tuple(own[: each["now"]]),
                spare=tuple(only(whole, [name]) for name in own[each["now"] :]),
                price=None if each["price"] is None else Decimal(each["price"]),
            )
        )
    kept = only(whole, there)
    return replace(
        kept, classes=whole.classes, pools=tuple(found), billing=Billing(currency="USD")
    ), manifests


def only(fleet, names):
    return Fleet(
        name=fleet.name,
        nodes=tuple(each for each in fleet.nodes if each.name in names),
        slices=tuple(each for each in fleet.slices if each.spec.node_name in names),
    )


def find_cheapest(fleet, manifests):
    """What the cheapest growth costs that places all pods, by trying each; None where there is none."""
    costs = []
    priced = all(pool.price is not None for pool in fleet.pools)
    for added in product(*(range(len(pool.spare) + 1) for pool in fleet.pools)):
        placed = place(manifests, fleet.grown(added))
        assert placed.joint.verdict != "not-decided"
        if placed.joint.works:
            prices = [pool.price if priced else 1 for pool in fleet.pools]
            costs.append(sum(price * number for price, number in zip(prices, added, strict=True)))
    return min(costs, default=None)


def check(fleet, manifests):
    found = find_growth(manifests, place(manifests, fleet))
    cheapest = find_cheapest(fleet, manifests)
    assert found.fits == (cheapest is not None), found
    if not found.fits:
        assert (found.verdict, found.added) == ("never-within-limits", (0,) * len(fleet.pools))
        return found
    priced = all(pool.price is not None for pool in fleet.pools)
    assert (found.added_cost if priced else sum(found.added)) == cheapest
    assert found.is_cheapest
    assert (found.verdict == "fits-now") == (not any(found.added))
    assert found.joint.works.pending == ()
    assert 0 <= found.idle <= found.device_count
    return found


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(pools=POOLS, pods=PODS)
def test_growth_is_the_cheapest_of_all_sizes_of_all_pools(pools, pods):
    assume(any(each["now"] + each["spare"] for each in pools))
    check(*a_pooled(pools, pods))


EMPTY = st.lists(
    st.fixed_dictionaries(
        {
            "node": st.sampled_from(["1", "2", "3", "parts"]),
            "now": st.just(0),
            "spare": st.integers(1, 2),
            "price": st.sampled_from(["1", "1.50", "2", "3.25"]),
        }
    ),
    min_size=2,
    max_size=3,
)
DEPLOYMENTS = PODS.map(
    lambda pods: [{**each, "kind": "Deployment", "beside": "", "shared": False} for each in pods]
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(pools=EMPTY, pods=DEPLOYMENTS)
def test_of_empty_pools_with_prices_the_cheapest_together_grow(pools, pods):
    check(*a_pooled(pools, pods))


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(pools=POOLS, pods=PODS, tries=st.sampled_from([1, 64]))
def test_without_an_integer_program_what_is_told_is_true(pools, pods, tries):
    assume(any(each["now"] + each["spare"] for each in pools))
    fleet, manifests = a_pooled(pools, [{**each, "shared": False} for each in pods])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(searching, "has_solver", lambda: False)
        patch.setattr(searching, "TRIES", tries)
        found = find_growth(manifests, place(manifests, fleet))
    cheapest = find_cheapest(fleet, manifests)
    if found.verdict != "not-decided":
        assert found.fits == (cheapest is not None)
    if found.fits and found.is_cheapest:
        priced = all(pool.price is not None for pool in fleet.pools)
        assert (found.added_cost if priced else sum(found.added)) == cheapest


def sizes(pools, **pods):
    """Pools of nodes of eight GPUs by name, now and at most and price; a Deployment `wN` for pods with N GPUs each."""
    nodes, found = [], []
    for name, (now, most, price) in pools.items():
        own = [build.gpus(f"{name}-{number}") for number in range(most)]
        fleets = [build.a_fleet(each) for each in own]
        nodes += own[:now]
        found.append(
            NodePool(
                name=name,
                machine="eight",
                now=now,
                nodes=tuple(each.nodes[0].name for each in fleets[:now]),
                spare=tuple(fleets[now:]),
                price=Decimal(price) if price else None,
            )
        )
    manifests = [build.a_class()]
    for name, replicas in pods.items():
        manifests.append(build.a_template(f"t{name[1:]}", build.a_request(count=int(name[1:]))))
        manifests.append(build.a_deployment(name, f"template:t{name[1:]}", replicas=replicas))
    fleet = replace(build.a_fleet(*nodes), pools=tuple(found), billing=Billing(currency="USD"))
    return find_growth(manifests, place(manifests, fleet))


def test_a_pool_grows_from_zero_and_says_what_it_costs():
    grown = sizes({"a3": (0, 10, "98.32")}, w4=3)
    assert (grown.verdict, grown.added, grown.added_cost) == ("fits-grown", (2,), Decimal("196.64"))
    assert str(grown) == (
        "fits when node pool a3 grows by 2 nodes (0 -> 2 of at most 10), +196.64 USD an hour; 4 of 16 devices of pools idle"
    )


def test_of_two_pools_the_cheaper_one_grows_and_without_prices_the_fewest_nodes_count():
    assert sizes({"dear": (1, 9, "9.99"), "cheap": (0, 9, "0.5")}, w8=3).added == (0, 2)
    assert sizes({"cheap": (0, 9, "0.5"), "dear": (1, 9, "9.99")}, w8=3).added == (2, 0)
    assert sizes({"dear": (1, 9, "0.5"), "cheap": (0, 1, "0.4")}, w8=3).added == (1, 1)
    partly = sizes({"dear": (0, 9, "9.99"), "unknown": (0, 9, None)}, w8=3)
    assert sum(partly.added) == 3
    assert partly.added_cost is None or partly.added == (3, 0)
    assert "(counted in nodes, for there is no price for unknown); " in str(partly)
    assert "no price" not in str(sizes({"a": (0, 9, None), "b": (0, 9, None)}, w8=3))


def test_what_never_fits_is_proven_at_the_limits():
    never = sizes({"a3": (2, 3, None)}, w8=4)
    assert (never.verdict, never.added, never.added_cost) == ("never-within-limits", (0,), None)
    assert never.reasons[0].startswith("with a3 x 3, 32 devices asked")


def test_growth_is_found_for_many_nodes_at_once():
    grown = sizes({"a3": (10, 500, "98.32"), "b2": (0, 500, "97")}, w8=300, w4=301)
    assert grown.added == (0, 441)
    assert grown.is_cheapest
    assert grown.idle == 4


def test_one_pool_without_the_solver_is_searched_by_halves(monkeypatch):
    monkeypatch.setattr(searching, "has_solver", lambda: False)
    grown = sizes({"a3": (2, 400, "98.32")}, w8=120)
    assert (grown.added, grown.is_cheapest) == ((118,), True)
    both = sizes({"a3": (2, 400, "98.32"), "b2": (0, 400, "1")}, w8=120)
    assert (both.added, both.is_cheapest) == ((0, 118), False)
    assert str(both).endswith("a cheaper growth was not ruled out")


def test_devices_that_workloads_share_are_divided_between_them():
    claim = build.a_claim("shared", build.a_request(count=2))
    pods = [build.a_deployment(name, "claim:shared", replicas=1) for name in ("a", "b")]
    node = build.a_fleet(build.gpus("n", 4))
    pool = NodePool(name="p", machine="m", now=0, spare=(node,))
    fleet = replace(build.a_fleet(), pools=(pool,))
    manifests = [build.a_class(), claim, *pods]
    grown = find_growth(manifests, place(manifests, fleet))
    assert (grown.added, grown.idle, grown.device_count) == ((1,), 2, 4)
    assert [sum(held.values()) for held in grown.held.values()] == [1, 1]


def test_a_gpu_in_partitions_is_one_device():
    whole, manifests = a_platform(
        ["parts"],
        [
            {
                "count": 1,
                "length": 1,
                "replicas": 2,
                "cpu": "0",
                "kind": "Deployment",
                "shared": False,
                "plain": False,
                "beside": "",
            }
        ],
    )
    pool = NodePool(name="p", machine="m", now=0, spare=(only(whole, ["n0"]),))
    fleet = replace(whole, nodes=(), slices=(), pools=(pool,))
    grown = find_growth(manifests, place(manifests, fleet))
    assert (grown.verdict, grown.idle, grown.device_count) == ("fits-grown", 0, 1)


def a_growing(zone_of_spare, **rules):
    """A node with a GPU, one more of its kind to come, and one to come to which only the DaemonSet goes; two pods, each with a GPU."""
    labels = {"zone": "x"}
    nodes = [
        build.a_node("now", labels=labels),
        build.a_node("gpu", labels=labels),
        build.a_node("edge", labels={"zone": zone_of_spare, "edge": "yes"}),
    ]
    whole = build.a_fleet(*(build.gpus(node.name, 1) for node in nodes), nodes=nodes)
    pools = tuple(
        NodePool(
            name=name, machine="1", now=len(there), nodes=there, spare=(only(whole, [name]),), price=None
        )
        for name, there in (("gpu", ("now",)), ("edge", ()))
    )
    manifests = [
        build.a_class(),
        build.a_template("one", build.a_request()),
        build.a_deployment(
            "web", "template:one", replicas=2, labels={"app": "web"}, nodeSelector={"zone": "x"}
        ),
        build.a_deployment(
            "agent",
            "template:one",
            kind="DaemonSet",
            labels={"app": "agent"},
            nodeSelector={"edge": "yes"},
            **rules,
        ),
    ]
    return replace(only(whole, ["now"]), classes=whole.classes, pools=pools), manifests


def keep_off(key):
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": "web"}}}
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


@pytest.mark.parametrize("key", ["zone", "kubernetes.io/hostname"])
def test_pods_of_a_daemon_set_that_keep_others_off_their_zone_do_not_rule_out_fewer_nodes(key):
    fleet, manifests = a_growing("x", **keep_off(key))
    assert (place(manifests, fleet.grown((1, 1))).joint.verdict == "never") == (key == "zone")
    assert check(fleet, manifests).added == (1, 0)


def test_a_quota_that_pods_of_a_daemon_set_use_up_does_not_rule_out_fewer_nodes():
    fleet, manifests = a_growing("x")
    quota = build.an_object("ResourceQuota", "team", apiVersion="v1", spec={"hard": {"pods": "2"}})
    assert check(fleet, [*manifests, quota]).added == (1, 0)
