"""The cheapest growth of node pools, beside trying every size of every pool."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from itertools import product

import pytest
import yaml
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from dra_infra.catalog import load_fleet
from dra_infra.catalog.node_pools import price_pools
from dra_infra.fleet import Billing, Fleet, NodePool, SharedLimit
from dra_infra.placement import growth as searching
from dra_infra.placement.growth import find_growth, place_within_limits
from tests.support.placing import ask, place

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
    found = []
    there = []
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
        if not fleet.allows(added):
            continue
        placed = place(manifests, fleet.grown(added))
        assert placed.joint.verdict != "not-decided"
        if placed.joint.works:
            prices = [pool.price if priced else 1 for pool in fleet.pools]
            costs.append(sum(price * number for price, number in zip(prices, added, strict=True)))
    return min(costs, default=None)


def check(fleet, manifests):
    found = find_growth(ask(manifests, fleet), place(manifests, fleet))
    cheapest = find_cheapest(fleet, manifests)
    assert found.fits == (cheapest is not None), found
    if not found.fits:
        assert (found.verdict, found.added) == ("never-within-limits", (0,) * len(fleet.pools))
        return found
    priced = all(pool.price is not None for pool in fleet.pools)
    assert (found.added_cost if priced else sum(found.added)) == cheapest
    assert found.is_cheapest
    assert fleet.allows(found.added)
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


SHARED = st.lists(
    st.tuples(st.integers(0, 5), st.lists(st.integers(0, 3), min_size=3, max_size=3)), min_size=1, max_size=2
)


def shared(fleet, limits, scale=1):
    """The fleet with limits of its pools together; a scale gives amounts that floats hold with an error."""
    return replace(
        fleet,
        limits=tuple(
            SharedLimit(
                pool="p",
                what="nvidia.com/gpu",
                left=left * scale + scale // 7,
                takes=tuple(each * scale + (each and number) for number, each in enumerate(takes))[
                    : len(fleet.pools)
                ],
            )
            for left, takes in limits
        ),
    )


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(pools=EMPTY, pods=DEPLOYMENTS, limits=SHARED, scale=st.sampled_from([1, 10**13]))
def test_machines_of_one_pool_grow_within_the_limits_that_they_share(pools, pods, limits, scale):
    fleet, manifests = a_pooled(pools, pods)
    check(shared(fleet, limits, scale), manifests)


MACHINES = {"g6.xlarge": (1, 4), "g6.12xlarge": (4, 48), "g6.24xlarge": (4, 96), "p5.4xlarge": (1, 16)}
"""GPUs and CPUs of machines of EC2."""


@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(
    prices=st.dictionaries(st.sampled_from(list(MACHINES)), st.integers(1, 9), min_size=1),
    is_priced=st.booleans(),
    gpus=st.integers(1, 9),
    cpus=st.integers(4, 150),
    pods=st.lists(
        st.tuples(st.sampled_from([1, 2, 4]), st.sampled_from(["1", "20"]), st.integers(1, 3)),
        min_size=1,
        max_size=2,
    ),
)
def test_a_nodepool_of_karpenter_grows_by_the_best_combination_of_its_machines(
    tmp_path, prices, is_priced, gpus, cpus, pods
):
    """What limits allow is counted here from a table of machines, and each combination of at most three nodes is placed."""
    machines = list(prices)
    needs = [{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": machines}]
    spec = {
        "limits": {"nvidia.com/gpu": gpus, "cpu": cpus, "nodes": 3},
        "template": {"spec": {"requirements": needs}},
    }
    pool = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "gpu"}, "spec": spec}
    (tmp_path / "fleet.yaml").write_text(yaml.safe_dump(pool))
    fleet = load_fleet(str(tmp_path / "fleet.yaml"))
    if is_priced and fleet.pools:
        fleet = price_pools(fleet, {name: Decimal(price) for name, price in prices.items()})
    manifests = [build.a_class("gpu", 'device.driver == "gpu.nvidia.com"')]
    for number, (count, cpu, replicas) in enumerate(pods):
        manifests.append(build.a_template(f"t{number}", build.a_request(count=count)))
        fields = {"replicas": replicas, "requests": {"cpu": cpu}}
        manifests.append(build.a_deployment(f"w{number}", f"template:t{number}", **fields))
    grown = [pool.machine for pool in fleet.pools]
    costs = []
    for added in product(range(4), repeat=len(grown)):
        taken = [
            sum(MACHINES[name][of] * each for name, each in zip(grown, added, strict=True)) for of in (0, 1)
        ]
        if sum(added) <= 3 and taken[0] <= gpus and taken[1] <= cpus:
            joint = place(manifests, fleet.grown(added)).joint
            assert joint.verdict != "not-decided"
            if joint.works:
                costs.append(
                    sum(
                        (prices[name] if is_priced else 1) * each
                        for name, each in zip(grown, added, strict=True)
                    )
                )
    found = find_growth(ask(manifests, fleet), place(manifests, fleet))
    if found is None:
        assert not costs
    elif costs:
        assert found.is_cheapest
        assert (found.added_cost if is_priced else sum(found.added)) == min(costs)
    else:
        assert found.verdict == found.joint.verdict + "-within-limits" == "never-within-limits"


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(pools=EMPTY, pods=PODS, limits=SHARED, tries=st.sampled_from([1, 64]))
def test_within_limits_that_are_shared_what_is_told_without_an_integer_program_is_true(
    pools, pods, limits, tries
):
    fleet, manifests = a_pooled(pools, [{**each, "shared": False} for each in pods])
    fleet = shared(fleet, limits)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(searching, "has_solver", lambda: False)
        patch.setattr(searching, "TRIES", tries)
        found = find_growth(ask(manifests, fleet), place(manifests, fleet))
    cheapest = find_cheapest(fleet, manifests)
    assert fleet.allows(found.added)
    if found.verdict != "not-decided":
        assert found.fits == (cheapest is not None)
    if found.fits and found.is_cheapest:
        assert found.added_cost == cheapest


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(pools=POOLS, pods=PODS, tries=st.sampled_from([1, 64]))
def test_without_an_integer_program_what_is_told_is_true(pools, pods, tries):
    assume(any(each["now"] + each["spare"] for each in pools))
    fleet, manifests = a_pooled(pools, [{**each, "shared": False} for each in pods])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(searching, "has_solver", lambda: False)
        patch.setattr(searching, "TRIES", tries)
        found = find_growth(ask(manifests, fleet), place(manifests, fleet))
    cheapest = find_cheapest(fleet, manifests)
    if found.verdict != "not-decided":
        assert found.fits == (cheapest is not None)
    if found.fits and found.is_cheapest:
        priced = all(pool.price is not None for pool in fleet.pools)
        assert (found.added_cost if priced else sum(found.added)) == cheapest


def a_platform_of(pools, limits=(), **pods):
    """Pools of nodes of eight GPUs by name, now and at most and price; a Deployment `wN` for pods with N GPUs each."""
    nodes = []
    found = []
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
    billing = Billing(currency="USD")
    return replace(build.a_fleet(*nodes), pools=tuple(found), limits=limits, billing=billing), manifests


def sizes(*args, **pods):
    fleet, manifests = a_platform_of(*args, **pods)
    return find_growth(ask(manifests, fleet), place(manifests, fleet))


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


def gpus(left):
    return (SharedLimit(pool="gpu", what="nvidia.com/gpu", left=left, takes=(8, 8)),)


def test_that_all_pods_fit_only_beyond_what_machines_may_have_together_is_proven_in_numbers():
    both = {"gpu/a": (0, 4, "2"), "gpu/b": (0, 4, "1")}
    assert sizes(both, gpus(40), w8=5).added == (1, 4)
    never = sizes(both, gpus(39), w8=5)
    assert (never.verdict, never.joint.verdict, never.added) == ("never-within-limits", "never", (0, 0))
    assert str(never) == (
        "never within the limits: further nodes with which all pods fit have at least 40 nvidia.com/gpu of node pool gpu, "
        "and its limit leaves 39"
    )
    assert sizes(both, gpus(39), w8=9).reasons[0].startswith("with gpu/a x 4 and gpu/b x 4, 72 devices asked")


def test_what_fits_only_beyond_the_limits_never_does_in_the_placement_within_them():
    fleet, manifests = a_platform_of({"gpu/a": (0, 4, "2"), "gpu/b": (0, 4, "1")}, gpus(39), w8=5)
    placement = place_within_limits(ask(manifests, fleet))
    assert [each.verdict for each in placement.workloads] == ["fits"]
    assert (placement.joint.verdict, placement.growth.verdict) == ("never", "never-within-limits")
    assert placement.headroom == ()
    assert placement.fleet.name.endswith(
        " with gpu/a x 4, gpu/b x 4, more than limits of node pools allow together"
    )


def test_more_pods_of_an_autoscaler_never_fit_where_the_fewest_do_not():
    fleet, manifests = a_platform_of({"gpu/a": (0, 4, "2"), "gpu/b": (0, 4, "1")}, gpus(39), w8=5)
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "w8"}
    scaler = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "w8", "namespace": manifests[-1]["metadata"].get("namespace", "default")},
        "spec": {"scaleTargetRef": target, "minReplicas": 5, "maxReplicas": 8},
    }
    placement = place_within_limits(ask([*manifests, scaler], fleet))
    assert placement.joint_at_most == placement.joint == placement.growth.joint
    assert placement.joint.verdict == "never"


@pytest.mark.parametrize(("left", "verdict"), [(320, "fits-grown"), (312, "not-decided")])
def test_without_the_solver_limits_that_are_shared_are_kept_for_many_nodes(monkeypatch, left, verdict):
    monkeypatch.setattr(searching, "has_solver", lambda: False)
    found = sizes({"gpu/a": (0, 40, "2"), "gpu/b": (0, 40, "1")}, gpus(left), w8=40)
    assert (found.verdict, found.added) == (verdict, (0, 40) if found.fits else (0, 0))
    assert not (found.fits and found.is_cheapest)
    assert found.joint.works if found.fits else found.joint.verdict == "not-decided"


def test_of_equally_few_nodes_without_prices_those_with_fewer_devices_grow():
    large, small = (build.a_fleet(build.gpus(name, count)) for name, count in (("l", 8), ("s", 1)))
    pools = tuple(
        NodePool(name=f"gpu/{each.nodes[0].name}", machine="m", now=0, spare=(each,))
        for each in (large, small)
    )
    manifests = [
        build.a_class(),
        build.a_template("t", build.a_request()),
        build.a_deployment("w", "template:t"),
    ]
    fleet = replace(build.a_fleet(), pools=pools)
    assert find_growth(ask(manifests, fleet), place(manifests, fleet)).added == (0, 1)


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
    grown = find_growth(ask(manifests, fleet), place(manifests, fleet))
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
    grown = find_growth(ask(manifests, fleet), place(manifests, fleet))
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


def cut(pools, **pods):
    fleet, manifests = a_platform_of(pools, **pods)
    return replace(fleet, pools=tuple(replace(each, is_cut=True) for each in fleet.pools)), manifests


@pytest.mark.parametrize(
    ("pods", "verdict", "of_workload"),
    [
        ({"w8": 4}, "not-decided", "not-decided"),
        ({"w9": 1}, "never-within-limits", "does-not-fit"),
        ({"w8": 3}, "fits-grown", "fits"),
    ],
)
def test_never_is_not_said_because_fewer_nodes_are_looked_at_than_limits_allow(pods, verdict, of_workload):
    fleet, manifests = cut({"a3": (2, 3, None)}, **pods)
    placement = place_within_limits(ask(manifests, fleet))
    assert (placement.growth.verdict, placement.workloads[0].verdict) == (verdict, of_workload)
    assert (placement.joint.verdict == "never") == (verdict == "never-within-limits")
    assert ("more nodes than are looked at" in str(placement.growth)) == (verdict == "not-decided")


def test_a_growth_is_not_the_cheapest_where_more_nodes_than_are_looked_at_may_cost_less():
    pools = {"cheap": (0, 2, "1"), "dear": (0, 9, "9.99")}
    fleet, manifests = cut(pools, w8=3)
    grown = find_growth(ask(manifests, fleet), place(manifests, fleet))
    assert (grown.added, grown.is_cheapest) == ((2, 1), False)
    fleet, manifests = cut(pools, w8=2)
    assert find_growth(ask(manifests, fleet), place(manifests, fleet)).is_cheapest
