"""The verdict on all workloads where errors end attempts, compared with every order of arrival.

The scheduler tries a pod on all nodes that its filters let through. An error on one of them ends the attempt, also if
other nodes can take the pod. A DaemonSet's pod may only go to its own node.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from dra_infra.placement import fillings, joint_verdict
from dra_infra.placement.outcomes import Aborted, Chosen
from tests.support.placing import place

from . import conftest as build

ANSWERS = {(True, False): "always", (True, True): "depends-on-order", (False, True): "never"}
MODEL = f"{build.DRIVER}/model"
READS = f"device.attributes['{build.DRIVER}'].size == 1"
CLAIMS = {
    "one": build.a_template("one", build.a_request()),
    "two": build.a_template("two", build.a_request(count=2)),
    "all": build.a_template("all", build.a_request(allocationMode="All")),
    # All devices of n0 have to be of one model: the attempt ends at the first that is not.
    "all-of-one-model": build.a_template(
        "all-of-one-model", build.a_request(allocationMode="All"), constraints=[{"matchAttribute": MODEL}]
    ),
    # A device without a size ends the attempt.
    "sized": build.a_template("sized", build.a_request("gpu", READS)),
    "all-shared": build.a_claim(
        "all-shared", build.a_request(allocationMode="All"), constraints=[{"matchAttribute": MODEL}]
    ),
    "sized-shared": build.a_claim("sized-shared", build.a_request("gpu", READS)),
}
SHARED = ("all-shared", "sized-shared")

DEVICES = st.lists(
    st.sampled_from([{"model": "a"}, {"model": "b"}, {"model": "a", "size": 1}]), min_size=1, max_size=2
)
NODES = st.lists(DEVICES, min_size=1, max_size=3)
PODS = st.lists(
    st.fixed_dictionaries(
        {
            "claim": st.sampled_from(tuple(CLAIMS)),
            "replicas": st.integers(1, 2),
            "kind": st.sampled_from(["Deployment", "Deployment", "DaemonSet"]),
            "apart": st.booleans(),
        }
    ),
    min_size=1,
    max_size=3,
)


def a_platform(nodes, pods):
    slices = [
        build.a_slice(f"n{number}", [build.a_device(f"d{index}", each) for index, each in enumerate(devices)])
        for number, devices in enumerate(nodes)
    ]
    manifests = [build.a_class(), *CLAIMS.values()]
    for number, each in enumerate(pods):
        name = f"w{number}"
        term = {"labelSelector": {"matchLabels": {"app": name}}, "topologyKey": "kubernetes.io/hostname"}
        apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        manifests.append(
            build.a_deployment(
                name,
                f"{'claim' if each['claim'] in SHARED else 'template'}:{each['claim']}",
                replicas=each["replicas"],
                kind=each["kind"],
                labels={"app": name},
                **({"affinity": apart} if each["apart"] else {}),
            )
        )
    return build.a_fleet(*slices), manifests


def find_ends(free, pods):
    """Return whether an order of arrival places all pods, and whether one leaves a pod that no attempt places any more."""
    nodes = range(len(free.cluster.nodes))
    seen = {}

    def is_open(state, plan, node):
        usable = state.nodes_for(plan)
        return (
            not free.refusals(plan)[node]
            and (usable is None or node in usable)
            and bool(list(state.open_nodes(plan, [node])))
        )

    def moves(state, number, on):
        each = pods[number]
        outcomes = {node: state.attempt(each.plan, node) for node in nodes if is_open(state, each.plan, node)}
        if each.on_each:
            return {node: outcome for node, outcome in outcomes.items() if (number, node) not in on}
        is_aborted = any(isinstance(outcome, Aborted) for outcome in outcomes.values())
        return {} if is_aborted else outcomes

    def play(state, waiting, on):
        key = waiting, tuple(sorted(on.items())), tuple(map(state.claims_key, nodes))
        if key in seen:
            return seen[key]
        ends = set()
        for number in range(len(pods)):
            for node, outcome in (moves(state, number, on) if waiting[number] else {}).items():
                if isinstance(outcome, Chosen):
                    after = state.fork()
                    after.commit(pods[number].plan, node, outcome)
                    rest = tuple(count - (which == number) for which, count in enumerate(waiting))
                    ends |= play(after, rest, {**on, (number, node): on.get((number, node), 0) + 1})
        seen[key] = ends or {not any(waiting)}
        return seen[key]

    ends = play(free.state(), tuple(each.count for each in pods), {})
    return True in ends, False in ends


@pytest.fixture
def judged(monkeypatch):
    """The free fleet and the workloads that a joint verdict is about."""
    found = []
    judge = joint_verdict.judge_jointly

    def note(free, workloads, *rest):
        found.append((free, workloads))
        return judge(free, workloads, *rest)

    monkeypatch.setattr("dra_infra.placement.scheduling.judge_jointly", note)
    return found


def a_pod(claim, kind="Deployment", replicas=1, *, apart=False):
    return {"claim": claim, "kind": kind, "replicas": replicas, "apart": apart}


# A pod that the walk leaves pending is not placed by first fit on a node before the one with the error.
LEFT_BY_THE_WALK = (
    [[{"model": "a"}], [{"model": "a"}, {"model": "b"}]],
    [a_pod("all-of-one-model"), a_pod("one")],
)
# One of two pods of a DaemonSet never binds.
DAEMON_ON_ONE_OF_TWO = (
    [[{"model": "a"}, {"model": "b"}], [{"model": "a"}, {"model": "a"}]],
    [a_pod("all-of-one-model", "DaemonSet")],
)

# The one claim of both pods is allocated on no node, for the error on n0 ends each attempt.
CLAIM_OF_TWO_PODS = ([[{"model": "a"}], [{"model": "a", "size": 1}]], [a_pod("sized-shared", replicas=2)])


@settings(
    max_examples=200,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(nodes=NODES, pods=PODS)
@example(*LEFT_BY_THE_WALK)
@example(*DAEMON_ON_ONE_OF_TWO)
@example(*CLAIM_OF_TWO_PODS)
def test_the_verdict_is_that_of_all_orders_of_arrival(judged, nodes, pods):
    fleet, manifests = a_platform(nodes, pods)
    judged.clear()
    joint = place(manifests, fleet).joint
    if not judged:
        # A workload is not decided alone: as it fills a node, its pods come to a device with an error.
        assert joint.verdict == "not-decided"
        return
    free, workloads = judged[-1]
    assert joint.verdict == ANSWERS[find_ends(free, fillings.group_pods(free, workloads))], joint.reasons
    assert (joint.works is not None) == (joint.verdict in ("always", "depends-on-order"))
    assert joint.works is None or not joint.works.pending
    assert joint.fails is None or joint.fails.pending


def test_a_daemon_set_counts_the_nodes_that_take_its_pod_beside_one_with_an_error():
    fleet, manifests = a_platform(*DAEMON_ON_ONE_OF_TWO)
    (answer,) = place(manifests, fleet).workloads
    assert (answer.verdict, answer.replicas, build.codes(answer)) == (
        "does-not-fit",
        2,
        ["allocation-aborted"],
    )
    assert [pod.node for pod in answer.pods] == ["n1"]
