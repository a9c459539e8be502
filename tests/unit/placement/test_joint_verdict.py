"""The verdict on all workloads at once, beside trying every order of arrival and every node."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from dra_infra.fleet import Fleet, NodePool
from dra_infra.kubernetes.api import Node
from dra_infra.placement import fillings, orders
from tests.support.placing import place

from . import conftest as build

ANSWERS = {(True, False): "always", (True, True): "depends-on-order", (False, True): "never"}


def find_ends(free, pods):
    """Every end of every order of arrival, on every node that takes a pod: (one with all pods placed, one without)."""

    def play(state, left, on):
        ends = set()
        for which, each in enumerate(pods):
            for node in range(len(free.cluster.nodes)) if left[which] else ():
                if free.refusals(each.plan)[node] or (each.on_each and (which, node) in on):
                    continue
                usable = state.nodes_for(each.plan)
                if (usable is not None and node not in usable) or not list(
                    state.open_nodes(each.plan, [node])
                ):
                    continue
                outcome = state.attempt(each.plan, node)
                if isinstance(outcome, orders.Chosen):
                    after = state.fork()
                    after.commit(each.plan, node, outcome)
                    rest = tuple(number - (place == which) for place, number in enumerate(left))
                    ends |= play(after, rest, {*on, (which, node)})
        return ends or {not any(left)}

    ends = play(free.state(), tuple(each.count for each in pods), frozenset())
    return True in ends, False in ends


@pytest.fixture
def seen(monkeypatch):
    """What the verdict was asked about: the free fleet and its equal pods."""
    found = []
    group = fillings.group_pods

    def note(free, workloads, **options):
        pods = group(free, workloads, **options)
        if not options:
            found[:] = [free, pods]
        return pods

    monkeypatch.setattr("dra_infra.placement.joint_verdict.group_pods", note)
    return found


def a_partitioned(node, *, slices=4):
    """A GPU of which either the whole or parts of one or two memory slices can be had."""
    counters = {f"memory-slice-{each}": {"value": "1"} for each in range(slices)}

    def a_part(name, first, length):
        used = {f"memory-slice-{each}": {"value": "1"} for each in range(first, first + length)}
        return build.a_device(
            name, {"length": length}, consumesCounters=[{"counterSet": "gpu", "counters": used}]
        )

    parts = [
        a_part(f"gpu-{length}-{first}", first, length)
        for length in (1, 2, 4)
        for first in range(0, slices, length)
    ]
    counted = build.a_slice(
        node, [], name=f"{node}-counters", count=2, sharedCounters=[{"name": "gpu", "counters": counters}]
    )
    return counted, build.a_slice(node, parts, name=f"{node}-devices", count=2)


NODES = st.lists(st.sampled_from(["1", "2", "3", "parts"]), min_size=1, max_size=3)
PODS = st.lists(
    st.fixed_dictionaries(
        {
            "count": st.integers(1, 3),
            "length": st.sampled_from([None, None, 1, 2]),
            "replicas": st.integers(1, 2),
            "cpu": st.sampled_from(["0", "1", "2"]),
            "kind": st.sampled_from(["Deployment", "Deployment", "DaemonSet"]),
            "shared": st.sampled_from([False, False, False, True]),
            "plain": st.sampled_from([False, False, True]),
            "beside": st.sampled_from(
                ["", "", "", "apart", "apart-zone", "near", "near-own", "spread", "port"]
            ),
        }
    ),
    min_size=1,
    max_size=3,
)


WITH_A_CLAIM = {
    "count": 1, "length": None, "replicas": 1, "cpu": "0", "kind": "Deployment", "shared": False, "plain": False, "beside": "",
}  # fmt: skip
SHORT_WITHOUT_CLAIMS = [WITH_A_CLAIM, {**WITH_A_CLAIM, "replicas": 2, "cpu": "2", "plain": True}]
"""Pods of which those without claims alone ask for more CPU than a node has."""


def beside(how, own, other):
    """Fields of a pod spec by which pods of others, or its own, decide where it goes."""

    def near(app, key):
        return [{"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key}]

    required = "requiredDuringSchedulingIgnoredDuringExecution"
    if how == "apart-zone":
        return {"affinity": {"podAntiAffinity": {required: near(own, "zone")}}}
    if how == "apart":
        return {"affinity": {"podAntiAffinity": {required: near(own, "kubernetes.io/hostname")}}}
    if how in ("near", "near-own"):
        app = own if how == "near-own" else other
        return {"affinity": {"podAffinity": {required: near(app, "zone")}}}
    if how == "spread":
        (term,) = near(own, "zone")
        return {"topologySpreadConstraints": [{**term, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}]}
    return {}


def a_platform(nodes, pods):
    slices = [
        each
        for number, kind in enumerate(nodes)
        for each in (
            a_partitioned(f"n{number}") if kind == "parts" else [build.gpus(f"n{number}", int(kind))]
        )
    ]
    named = tuple(
        build.a_node(
            f"n{number}",
            labels={"zone": "ab"[number % 2]},
            allocatable={"cpu": "3", "memory": "1Gi", "pods": "4"},
        )
        for number in range(len(nodes))
    )
    manifests = [build.a_class()]
    for number, each in enumerate(pods):
        length = each["length"]
        driver = build.DRIVER
        tests = [f'device.attributes["{driver}"].?length.orValue(0) == {length}'] if length else []
        asks = f"{'claim' if each['shared'] else 'template'}:t{number}"
        request = build.a_request("gpu", *tests, count=1 if length else each["count"])
        make = build.a_claim if each["shared"] else build.a_template
        manifests.append(make(f"t{number}", request))
        manifests.append(
            build.a_deployment(
                f"w{number}",
                *(() if each["plain"] else (asks,)),
                replicas=each["replicas"],
                kind=each["kind"],
                labels={"app": f"w{number}"},
                requests={"cpu": each["cpu"]},
                **beside(each["beside"], f"w{number}", f"w{(number + 1) % len(pods)}"),
            )
        )
        if each["beside"] == "port":
            (container,) = manifests[-1]["spec"]["template"]["spec"]["containers"]
            container["ports"] = [{"containerPort": 80, "hostPort": 80}]
    return build.a_fleet(*slices, nodes=named), manifests


BESIDE_ALL_ORDERS = settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
"""For tests that ask the allocator in every order of arrival."""


@BESIDE_ALL_ORDERS
@given(nodes=NODES, pods=PODS)
def test_verdict_is_that_of_all_orders_of_arrival(seen, nodes, pods):
    fleet, manifests = a_platform(nodes, pods)
    seen.clear()
    joint = place(manifests, fleet).joint
    if not seen:
        assert joint.verdict == "always"
        return
    assert joint.verdict == ANSWERS[find_ends(*seen)], joint.reasons
    assert (joint.works is not None) == (joint.verdict in ("always", "depends-on-order"))
    assert (joint.fails is not None) >= (joint.verdict == "depends-on-order")


@BESIDE_ALL_ORDERS
@given(nodes=NODES, pods=PODS)
@example(nodes=["1"], pods=SHORT_WITHOUT_CLAIMS)
def test_those_whom_a_proof_names_never_fit_without_the_others_either(seen, nodes, pods):
    fleet, manifests = a_platform(nodes, pods)
    for short in place(manifests, fleet).joint.shortages:
        assert short.asked == sum(amount for _, amount in short.by) > short.there
        named = {who.rpartition("/")[2] for who, _ in short.by}
        left = [
            each for each in manifests if each["metadata"]["name"] in named or "template" not in each["spec"]
        ]
        seen.clear()
        assert place(left, fleet).joint.works is None
        assert not seen or not find_ends(*seen)[0]


@pytest.mark.parametrize(
    ("claimed", "plain", "named"),
    [
        # Each workload alone requests more than the three CPUs of the node, and one is enough for the proof.
        ((2, 2), (2, 2), {"w0": 4_000}),
        # Only both together request more.
        ((1, 2), (1, 2), {"w0": 2_000, "w1": 2_000}),
        # Those without devices alone request more.
        ((1, 0), (2, 2), {"w1": 4_000}),
        ((1, 1), (2, 2), {"w1": 4_000}),
    ],
)
def test_a_proof_names_pods_without_devices_as_it_names_others(claimed, plain, named):
    """Two workloads with so many pods, and so many CPUs for each pod."""
    pods = [
        WITH_A_CLAIM | {"replicas": replicas, "cpu": str(cpu), "plain": is_plain}
        for (replicas, cpu), is_plain in ((claimed, False), (plain, True))
    ]
    fleet, manifests = a_platform(["2"], pods)
    joint = place(manifests, fleet).joint
    assert joint.verdict == "never"
    assert {who: amount for short in joint.shortages for who, amount in short.by} == {
        f"Deployment ml/{name}": amount for name, amount in named.items()
    }


AMOUNTS = ("100m", "500m", "1", "1500m", "2")


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    nodes=NODES,
    pods=PODS,
    cpu=st.lists(st.sampled_from(AMOUNTS), min_size=3, max_size=3),
    limit=st.integers(1, 20),
    are_apart=st.booleans(),
)
def test_where_states_are_too_many_no_verdict_is_wrong(seen, monkeypatch, nodes, pods, cpu, limit, are_apart):
    monkeypatch.setattr("dra_infra.placement.joint_verdict._FEW", limit // 2)
    monkeypatch.setattr("dra_infra.placement.joint_verdict.FILLINGS_LIMIT", limit)
    requests = [
        {**each, **({"kind": "Deployment", "beside": ""} if are_apart else {}), "cpu": amount}
        for each, amount in zip(pods, cpu, strict=False)
    ]
    fleet, manifests = a_platform(nodes, requests)
    seen.clear()
    joint = place(manifests, fleet).joint
    if seen and joint.verdict != "not-decided":
        assert joint.verdict == ANSWERS[find_ends(*seen)], joint.reasons


def test_pods_of_many_sizes_of_cpu_are_decided_where_their_states_are_not_all_known(monkeypatch):
    monkeypatch.setattr("dra_infra.placement.joint_verdict.FILLINGS_LIMIT", 200)
    amounts = {"cpu": "64", "memory": "1Ti", "pods": "110"}
    nodes = [build.a_node(f"n{number}", allocatable=amounts) for number in range(40)]
    fleet = build.a_fleet(*(build.gpus(each.name) for each in nodes), nodes=nodes)
    manifests = [build.a_class(), build.a_template("t", build.a_request())]
    for number in range(30):
        cpu = {"cpu": str(number + 1)}
        manifests += [build.a_deployment(f"w{number}", "template:t", replicas=2, requests=cpu)]
    assert place(manifests, fleet).joint.verdict == "always"
    small = build.a_fleet(*(build.gpus(f"n{number}") for number in range(10)), nodes=nodes[:10])
    joint = place(manifests, small).joint
    (short,) = joint.shortages
    assert (joint.verdict, short.what, short.nodes) == ("never", "cpu", 10)
    assert (short.show(short.asked), short.show(short.there)) == ("930 cpu", "640 cpu")
    assert (len(short.by), sum(amount for _, amount in short.by)) == (30, short.asked)
    (told,) = joint.reasons
    assert told == (
        "930 cpu asked (60 cpu by Deployment ml/w29, 58 cpu by Deployment ml/w28, 56 cpu by Deployment ml/w27, "
        "54 cpu by Deployment ml/w26, 52 cpu by Deployment ml/w25, 50 cpu by Deployment ml/w24, 600 cpu by others); "
        "10 nodes (n0..9) can serve pods that ask for 640 cpu at once"
    )


def sizes(build_, nodes, **pods):
    """Nodes of eight GPUs, and a Deployment `wN` for pods with N GPUs each."""
    fleet = build_.a_fleet(*(build_.gpus(f"n{number}") for number in range(nodes)))
    manifests = [build_.a_class()]
    for name, replicas in pods.items():
        manifests.append(build_.a_template(f"t{name[1:]}", build_.a_request(count=int(name[1:]))))
        manifests.append(build_.a_deployment(name, f"template:t{name[1:]}", replicas=replicas))
    return place(manifests, fleet).joint


def test_an_assignment_that_first_fit_misses_is_found_and_played():
    joint = sizes(build, 4, w3=4, w5=4)
    assert joint.verdict == "depends-on-order"
    assert joint.works.pending == ()
    assert sum(each.pods for each in joint.works.arrivals) == 8
    assert joint.fails.pending == ((build.ObjectRef("Deployment", "w5", "ml"), 2),)


def test_an_order_that_places_all_pods_is_told_where_the_walk_comes_to_no_end(monkeypatch):
    halted = orders.Ends(halted="the attempt of Deployment ml/b ends on a node")
    monkeypatch.setattr("dra_infra.placement.joint_verdict.walk", lambda *_: halted)
    monkeypatch.setattr(
        "dra_infra.placement.joint_verdict.find_bounds", lambda *_, **__: fillings.Halted("late")
    )
    shared = [build.a_class(), build.a_claim("pair", build.a_request(count=2))]
    users = [build.a_deployment(name, "claim:pair") for name in ("a", "b")]
    joint = place([*shared, *users], build.a_fleet(build.gpus("n0"), build.gpus("n1"))).joint
    assert (joint.verdict, joint.reasons) == ("not-decided", (halted.halted,))
    assert joint.works is not None


def test_without_the_solver_what_counting_leaves_open_is_not_decided_and_says_what_to_install(monkeypatch):
    monkeypatch.setattr("dra_infra.placement.joint_verdict.has_solver", lambda: False)
    joint = sizes(build, 3, w5=1, w4=1, w3=3, w2=3)
    assert joint.verdict == "not-decided"
    assert "pip install 'highspy>=1.11,<1.16'" in joint.reasons[0]
    assert sizes(build, 2, w1=2, w8=1).verdict == "depends-on-order"
    # The pods that wait in the first order come first in the next.
    assert sizes(build, 4, w3=4, w5=4).verdict == "depends-on-order"
    assert sizes(build, 4, w2=4, w1=4).verdict == "always"
    assert sizes(build, 4, w5=5).verdict == "never"


def test_the_solvers_bound_is_told_with_weights_that_a_reader_can_add_up():
    # Of 13 devices on a node of 16 that two sizes of pods leave, no count of devices alone tells.
    joint = sizes(build, 2, w3=3, w4=2, w5=1)
    assert joint.verdict == "never"
    assert joint.reasons[0].startswith(("at most", "22 devices asked"))


def test_states_with_few_pods_decide_where_nodes_have_too_many(monkeypatch):
    monkeypatch.setattr("dra_infra.placement.joint_verdict._FEW", 1)
    monkeypatch.setattr("dra_infra.placement.joint_verdict.FILLINGS_LIMIT", 4)
    joint = sizes(build, 6, w1=4, w2=2, w7=1)
    assert joint.verdict == "always"
    assert "others can close at most 4 of 6 nodes to Deployment ml/w7" in joint.reasons
    assert sizes(build, 6, w1=4, w2=2, w8=1).verdict == "depends-on-order"
    joint = sizes(build, 6, w1=48)
    assert (joint.verdict, joint.reasons) == ("not-decided", ("nodes have more than 5,000 states",))
    # Where pods wait in the first order, others are tried.
    assert sizes(build, 4, w3=4, w5=4).verdict == "depends-on-order"


def test_a_quota_refuses_in_every_order():
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "team", "namespace": "ml"},
        "spec": {"hard": {"pods": "3"}},
    }
    manifests = [build.a_class(), build.a_template("t", build.a_request()), quota]
    two = [build.a_deployment(name, "template:t", replicas=2) for name in ("a", "b")]
    joint = place([*manifests, *two], build.a_fleet(build.gpus("n"))).joint
    assert joint.verdict == "never"
    assert "ResourceQuota ml/team allows 3 of pods" in joint.reasons[0]


def test_many_pods_on_many_equal_nodes_are_one_program():
    joint = sizes(build, 300, w1=300, w2=150, w4=75)
    assert (joint.verdict, joint.works.pending) == ("always", ())
    assert any("of 300 nodes" in reason for reason in joint.reasons)


@pytest.mark.parametrize(
    ("zones", "verdict"), [("ab" * 6, "always"), ("a" * 7 + "b" * 5, "depends-on-order")]
)
def test_nodes_that_hang_together_are_told_apart_by_their_places_alone(zones, verdict):
    nodes = [build.a_node(f"n{number:02}", labels={"zone": zone}) for number, zone in enumerate(zones)]
    fleet = build.a_fleet(*(build.gpus(each.name, 1) for each in nodes), nodes=nodes)
    manifests = [
        build.a_class(),
        build.a_template("t", build.a_request()),
        build.a_deployment("w", "template:t", replicas=6, labels={"app": "w"}, **beside("near", "w", "w")),
    ]
    assert place(manifests, fleet).joint.verdict == verdict


def test_pods_that_hang_together_are_decided_by_bounds_where_states_are_too_many(monkeypatch):
    monkeypatch.setattr(orders, "STATES_LIMIT", 1)
    nodes = [build.a_node(f"n{number:02}", labels={"zone": f"z{number % 4}"}) for number in range(36)]
    fleet = build.a_fleet(*(build.gpus(each.name) for each in nodes), nodes=nodes)

    def judge(replicas):
        manifests = [build.a_class(), build.a_template("t", build.a_request())]
        for name, how in (("a", "near"), ("b", "near"), ("c", "spread"), ("d", "apart-zone")):
            fields = beside(how, name, name)
            number = 4 if how == "apart-zone" else replicas
            labels = {"app": name}
            manifests.append(build.a_deployment(name, "template:t", replicas=number, labels=labels, **fields))
        return place(manifests, fleet).joint

    always = judge(9)
    assert (always.verdict, always.works.pending) == ("always", ())
    assert "others leave nodes open to Deployment ml/d in 4 of 4 places by zone" in always.reasons
    # Together, a and b leave no node of a zone to c.
    assert judge(45).verdict == "depends-on-order"
    never = judge(100)
    assert never.verdict == "never"
    assert never.reasons[0].startswith("304 devices asked")


def test_pods_of_one_look_keep_each_other_off_their_zones():
    nodes = [build.a_node(f"n{zone}", labels={"zone": zone}) for zone in "ab"]
    fleet = build.a_fleet(build.gpus("na", 3), build.gpus("nb", 1), nodes=nodes)
    manifests = [build.a_class(), build.a_template("t", build.a_request())]
    for name in ("p1", "p2", "free"):
        pod = build.a_pod(name, "template:t", **(beside("apart-zone", "x", "") if name != "free" else {}))
        pod["metadata"]["labels"] = {"app": "x"} if name != "free" else {}
        manifests.append(pod)
    joint = place(manifests, fleet).joint
    assert joint.verdict == "depends-on-order"
    assert joint.works.pending == ()


def test_pods_that_others_tell_apart_by_labels_are_not_equal(monkeypatch):
    # The answer is that of the walk.
    monkeypatch.setattr(
        "dra_infra.placement.joint_verdict.find_bounds", lambda *_, **__: fillings.Halted("not asked")
    )
    nodes = [build.a_node(f"n{number}", labels={"zone": "ab"[number]}) for number in range(2)]
    fleet = build.a_fleet(build.gpus("n0", 3), build.gpus("n1", 3), nodes=nodes)
    manifests = [build.a_class(), build.a_template("t", build.a_request())]
    for app in ("other", "wanted", "near"):
        pod = build.a_pod(app, "template:t", **(beside("near", "", "wanted") if app == "near" else {}))
        manifests.append({**pod, "metadata": {**pod["metadata"], "labels": {"app": app}}})
    assert place(manifests, fleet).joint.verdict == "always"


def test_the_proof_names_each_workload_of_equal_pods_and_the_nodes():
    manifests = [
        build.a_class(),
        build.a_template("t", build.a_request()),
        *(build.a_deployment(name, "template:t", replicas=count) for name, count in (("a", 9), ("b", 8))),
    ]
    joint = place(manifests, a_fleet_of("64", 2)).joint
    (short,) = joint.shortages
    assert short.by == (("Deployment ml/a", 9), ("Deployment ml/b", 8))
    assert (short.nodes, short.where) == (2, "n0..1")
    assert joint.reasons == (
        (
            "17 devices asked (9 devices by Deployment ml/a, 8 devices by Deployment ml/b); 2 nodes (n0..1) can serve pods "
            "that ask for 16 devices at once"
        ),
    )


def of_models(nodes, **pods):
    """Nodes of eight GPUs of a model each, and workloads for one GPU of some models each, named by these: `a` or `a_or_b`."""
    fleet = build.a_fleet(
        *(
            build.a_slice(f"n{node}", [build.a_device(f"g{each}", {"model": model}) for each in range(8)])
            for node, model in enumerate(nodes)
        )
    )
    manifests = [build.a_class()]
    for name, replicas in pods.items():
        tests = " || ".join(
            f'device.attributes["{build.DRIVER}"].model == "{each}"' for each in name.split("_or_")
        )
        called = name.replace("_", "-")
        manifests += [
            build.a_template(called, build.a_request("gpu", tests)),
            build.a_deployment(called, f"template:{called}", replicas=replicas),
        ]
    return place(manifests, fleet).joint.shortages


@pytest.mark.parametrize(
    ("pods", "named", "asked", "there"),
    [
        # All pods together are short too, and pods of the other model fit.
        ({"a": 20, "b": 8, "a_or_b": 1}, {"a": 20}, 20, 8),
        ({"a": 8, "b": 20}, {"b": 20}, 20, 8),
        # Of two that are short alone it is the one with fewer pods, ...
        ({"a": 20, "b": 9}, {"b": 9}, 9, 8),
        # ... and of equally many the first.
        ({"b": 9, "a": 9}, {"a": 9}, 9, 8),
        # Neither is short alone, and those of the third model have nothing to do with it.
        ({"a": 8, "a_or_b": 9, "c": 8}, {"a": 8, "a-or-b": 9}, 17, 16),
        ({"a_or_b": 12, "b_or_c": 13, "d": 1}, {"a-or-b": 12, "b-or-c": 13}, 25, 24),
    ],
)
def test_the_proof_names_the_fewest_that_are_short(pods, named, asked, there):
    (short,) = of_models("abcd", **pods)
    assert dict(short.by) == {f"Deployment ml/{name}": number for name, number in named.items()}
    assert (short.asked, short.there) == (asked, there)
    assert short.beside == (("Deployment ml/a-or-b",) if pods.get("a_or_b") == 1 else ())


def test_too_little_of_a_resource_names_those_whose_asking_is_counted():
    """Pods of zone a ask for 10 CPU more than there are; those of zone b have room, and one may go to both."""
    nodes = [
        build.a_node(name, labels={"zone": zone}, allocatable={"cpu": cpu, "memory": "1Ti", "pods": "110"})
        for name, zone, cpu in (("n0", "a", "20"), ("n1", "b", "64"))
    ]
    fleet = build.a_fleet(*(build.gpus(each.name) for each in nodes), nodes=nodes)
    manifests = [build.a_class(), build.a_template("t", build.a_request())]
    for name, cpu, selector in (("here", "10", "a"), ("there", "18", "b"), ("both", "2", "")):
        fields = {"nodeSelector": {"zone": selector}} if selector else {}
        manifests.append(build.a_deployment(name, "template:t", replicas=3, requests={"cpu": cpu}, **fields))
    (short,) = place(manifests, fleet).joint.shortages
    assert short.by == (("Deployment ml/here", 30_000),)
    assert (short.what, short.asked, short.there, short.where) == ("cpu", 30_000, 20_000, "n0")
    assert short.beside == ("Deployment ml/both",)


def a_fleet_of(cpu, count, gpus=8):
    nodes = [
        build.a_node(f"n{number}", allocatable={"cpu": cpu, "memory": "1Ti", "pods": "110"})
        for number in range(count)
    ]
    return build.a_fleet(*(build.gpus(each.name, gpus) for each in nodes), nodes=nodes)


def with_web(fleet, replicas, cpu, *, kind="Deployment", **fields):
    """A pod with a GPU and 60 CPU, beside pods without claims."""
    asks = [build.a_class(), build.a_template("t", build.a_request())]
    gpu = build.a_deployment("gpu", "template:t", requests={"cpu": "60"})
    web = build.a_deployment("web", replicas=replicas, kind=kind, requests={"cpu": cpu}, **fields)
    return place([*asks, gpu, web], fleet)


def test_pods_without_claims_take_what_pods_with_claims_need():
    assert with_web(a_fleet_of("64", 2), 9, "1").joint.verdict == "always"
    assert with_web(a_fleet_of("64", 2), 10, "1").joint.verdict == "depends-on-order"
    joint = with_web(a_fleet_of("64", 2), 8, "8").joint
    assert joint.verdict == "depends-on-order"
    assert (joint.works.pending, joint.fails.pending[0][0].name) == ((), "gpu")
    joint = with_web(a_fleet_of("64", 2), 9, "8").joint
    assert (joint.verdict, joint.reasons) == (
        "never",
        (
            (
                "132 cpu asked (60 cpu by Deployment ml/gpu, 72 cpu by Deployment ml/web); 2 nodes (n0..1) can serve pods "
                "that ask for 128 cpu at once"
            ),
        ),
    )


def test_a_pod_without_claims_that_can_be_left_pending_is_named():
    manifests = [build.a_class(), build.a_template("t", build.a_request())]
    for name, cpu, claims in (("gpu", "60", ["template:t"]), ("small", "4", ()), ("large", "64", ())):
        manifests.append(build.a_deployment(name, *claims, requests={"cpu": cpu}))
    joint = place(manifests, a_fleet_of("64", 2)).joint
    assert joint.verdict == "depends-on-order"
    assert joint.fails.pending == ((build.ObjectRef("Deployment", "large", "ml"), 1),)
    assert joint.works.pending == ()


def test_a_daemon_without_claims_is_on_every_node_that_takes_it():
    assert with_web(a_fleet_of("64", 3), None, "4", kind="DaemonSet").joint.verdict == "always"
    joint = with_web(a_fleet_of("64", 1), None, "5", kind="DaemonSet").joint
    assert joint.verdict == "never"
    assert with_web(a_fleet_of("64", 3), None, "5", kind="DaemonSet").joint.verdict == "never"


def test_a_node_is_never_filled_with_more_than_one_pod_of_a_daemon_set():
    pod = {"count": 1, "length": None, "replicas": 2, "cpu": "0", "kind": "Deployment", "shared": False}
    pods = [
        {**pod, "plain": False, "beside": "near-own"},
        {**pod, "plain": True, "beside": "apart-zone"},
        {**pod, "plain": True, "beside": "", "kind": "DaemonSet", "cpu": "1"},
    ]
    fleet, manifests = a_platform(["2", "2", "parts"], pods)
    assert place(manifests, fleet).joint.verdict == "always"


def test_pods_without_claims_that_no_node_of_the_cluster_lets_in_never_run():
    placement = with_web(a_fleet_of("64", 2), 99, "8", nodeSelector={"pool": "cpu"})
    (web,) = (each for each in placement.workloads if each.owner.name == "web")
    assert (placement.joint.verdict, web.verdict) == ("never", "does-not-fit")
    assert (web.reasons[0].code, web.reasons[0].nodes) == ("node-refuses-pod", 2)


def test_pods_without_claims_that_no_node_of_a_partial_fleet_lets_in_are_left_open():
    fleet = replace(a_fleet_of("64", 2), is_partial=True)
    placement = with_web(fleet, 99, "8", nodeSelector={"pool": "cpu"})
    assert (placement.joint.verdict, [each.owner.name for each in placement.workloads]) == ("always", ["gpu"])
    (web,) = placement.left_out
    assert (web.verdict, web.replicas) == ("not-decided", 99)
    assert [each.code for each in web.reasons] == ["fleet-is-partial", "node-refuses-pod"]


def test_a_daemon_without_claims_that_no_node_of_a_partial_fleet_lets_in_is_named():
    fleet = replace(a_fleet_of("64", 2), is_partial=True)
    placement = with_web(fleet, None, "8", kind="DaemonSet", nodeSelector={"pool": "cpu"})
    assert (placement.joint.verdict, placement.left_out) == ("always", ())
    assert placement.notes == (f"DaemonSet ml/web is left out: no node of {fleet.name} lets its pods in",)


def test_pods_without_claims_wait_for_a_node_that_a_pool_may_get():
    fleet = replace(a_fleet_of("64", 2), is_partial=True)
    added = Node(name="n9", labels={"pool": "cpu"}, allocatable={"cpu": "64", "pods": "10"})
    pool = NodePool(name="cpu", machine="m", now=0, spare=(Fleet(name="cpu", nodes=(added,)),))
    placement = with_web(replace(fleet, pools=(pool,)), 1, "8", nodeSelector={"pool": "cpu"})
    assert placement.left_out == ()
    assert [each.verdict for each in placement.workloads] == ["fits", "does-not-fit"]


def test_pods_without_claims_are_judged_where_there_are_no_others_too():
    fleet = a_fleet_of("64", 2)
    placement = place([build.a_deployment("web", replicas=3, requests={"cpu": "64"})], fleet)
    assert placement.joint.verdict == "never"
    assert [(each.owner.name, each.verdict) for each in placement.workloads] == [("web", "does-not-fit")]


def test_pods_without_claims_that_fit_are_no_workloads_of_the_answer():
    placement = place([build.a_deployment("web", replicas=2, requests={"cpu": "64"})], a_fleet_of("64", 2))
    assert (placement.workloads, placement.joint.verdict) == ((), "always")


def test_hundreds_of_pods_without_claims_are_decided_by_what_they_take_together():
    fleet = a_fleet_of("192", 30)
    manifests = [build.a_class(), build.a_template("t", build.a_request(count=4))]
    manifests += [build.a_deployment("w", "template:t", replicas=20, requests={"cpu": "32"})]
    for number in range(60):
        cpu = {"cpu": f"{100 + 25 * number}m", "memory": f"{64 + number}Mi"}
        manifests.append(build.a_deployment(f"p{number:02}", replicas=9, requests=cpu))
    joint = place(manifests, fleet).joint
    assert joint.verdict == "always"
    assert "others can close at most" in joint.reasons[0]
    manifests.append(build.a_deployment("large", replicas=30, requests={"cpu": "150"}))
    joint = place(manifests, fleet).joint
    assert (joint.verdict, joint.fails.pending[0][0].name) == ("depends-on-order", "large")


def test_a_quota_that_refuses_a_pod_without_claims_is_told():
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "team", "namespace": "ml"},
        "spec": {"hard": {"pods": "3"}},
    }
    manifests = [build.a_class(), build.a_template("t", build.a_request()), quota]
    manifests += [build.a_deployment("a", "template:t"), build.a_deployment("web", replicas=4)]
    joint = place(manifests, a_fleet_of("64", 2)).joint
    assert joint.verdict == "never"
    assert joint.reasons[0].startswith("Deployment ml/web: 3 of 4 pods are made")
