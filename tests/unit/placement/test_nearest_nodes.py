from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dra_infra.placement.free_fleet import FirstFit
from dra_infra.placement.nearest_nodes import NearestNode, find_nearest_node
from dra_infra.placement.open_programs import open_program
from tests.support.placing import ask


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.lists(st.integers(1, 8), min_size=1, max_size=4), st.integers(0, 30), st.integers(1, 8))
def test_what_is_missing_is_what_counting_the_free_gpus_says(build, sizes, running, asked):
    manifests = [
        build.a_class(),
        build.a_template("one", build.a_request(count=1)),
        build.a_template("many", build.a_request(count=asked)),
        build.a_deployment("old", "template:one"),
        build.a_deployment("new", "template:many"),
    ]
    fleet = build.a_fleet(*(build.gpus(f"n{number}", size) for number, size in enumerate(sizes)))
    opened = open_program(ask(manifests, fleet))
    plans = {each.owner.name: each.plan for each in opened.workloads}
    fit = FirstFit(opened.free)
    placed = [fit.place(plans["old"]) for _ in range(running)]
    used = [sum(pod is not None and pod.node == number for pod in placed) for number in range(len(sizes))]
    free = [size - taken for size, taken in zip(sizes, used, strict=True)]
    if fit.place(plans["new"]) is not None:
        assert max(free) >= asked
        return
    found = find_nearest_node(opened.free, fit.state, plans["new"])
    could = [left for size, left in zip(sizes, free, strict=True) if size >= asked]
    if not could:
        assert found is None
        return
    assert isinstance(found, NearestNode)
    assert (found.nodes, found.asked, found.free, found.refused) == (len(could), asked, max(could), "")
    assert f": {asked - max(could)} " in str(found)


def test_requests_that_are_no_single_number_are_told_without_one(build):
    manifests = [
        build.a_class(),
        build.a_template("two", build.a_request("a"), build.a_request("b")),
        build.a_deployment("web", "template:two"),
    ]
    opened = open_program(ask(manifests, build.a_fleet(build.gpus("n0", 3))))
    (workload,) = opened.workloads
    fit = FirstFit(opened.free)
    assert fit.place(workload.plan) is not None
    assert fit.place(workload.plan) is None
    found = find_nearest_node(opened.free, fit.state, workload.plan)
    assert (found.asked, str(found)) == (
        None,
        "n0, the only node that could take it, has not all of its devices free",
    )
