"""The answer for one workload where its first order of arrival leaves pods pending and another does not."""

from __future__ import annotations

import pytest

from dra_infra.placement import scheduling
from dra_infra.placement.placement import JointVerdict
from tests.support.placing import place

from .conftest import (
    a_claim,
    a_class,
    a_deployment,
    a_device,
    a_fleet,
    a_node,
    a_request,
    a_slice,
    a_template,
    codes,
    gpus,
)
from .test_around import apart, near, spread, term
from .test_other_kinds import a_volcano_job

CLASSES = [a_class(), a_template("one", a_request()), a_claim("shared", a_request())]


def a_zoned(zones):
    """Nodes with so many GPUs, each node in its zone."""
    nodes = [a_node(name, labels={"zone": zone}) for name, (zone, _) in zones.items()]
    slices = [gpus(name, count) for name, (_, count) in zones.items() if count]
    return a_fleet(*slices, nodes=nodes)


def a_networked(*local):
    """Nodes of which some have a GPU, and one GPU that all of them see."""
    nodes = [a_node(name) for name in ("a", "b")]
    net = a_slice("net", [a_device("net-0")], allNodes=True)
    return a_fleet(*(gpus(name, 1) for name in local), net, nodes=nodes)


def answers(manifests, fleet):
    placement = place([*CLASSES, *manifests], fleet)
    return {each.owner.name: each for each in placement.workloads}, placement.joint


def a_pair(**affinity):
    return a_deployment("web", "template:one", replicas=2, labels={"app": "web"}, **affinity)


def test_pods_near_each_other_fit_where_not_the_first_node_has_room_for_all_around_it():
    fleet = a_zoned({"a": ("x", 1), "b": ("y", 1), "c": ("y", 1)})
    found, joint = answers([a_pair(affinity=near(term("zone")))], fleet)
    assert (found["web"].verdict, found["web"].more_pods, found["web"].reasons) == ("fits", 0, ())
    assert joint.verdict == "depends-on-order"


def test_pods_near_each_other_that_no_zone_holds_do_not_fit():
    fleet = a_zoned({"a": ("x", 1), "b": ("y", 1)})
    found, joint = answers([a_pair(affinity=near(term("zone")))], fleet)
    assert (found["web"].verdict, codes(found["web"])) == ("does-not-fit", ["too-few-nodes"])
    assert joint.verdict == "never"


def test_a_daemon_set_fits_where_its_pods_share_what_all_nodes_see_when_another_node_is_first():
    found, joint = answers([a_deployment("agent", "claim:shared", kind="DaemonSet")], a_networked("a"))
    assert (found["agent"].verdict, found["agent"].replicas) == ("fits", 2)
    assert joint.verdict == "depends-on-order"


def test_pods_that_find_room_only_beside_others_fit_and_that_is_told():
    agent = a_deployment("agent", "claim:shared", kind="DaemonSet")
    found, joint = answers([agent, a_pair()], a_networked("a", "b"))
    assert joint.works is not None
    assert found["agent"].verdict == "fits"
    assert codes(found["agent"])[0] == "fits-beside-others"
    found, joint = answers([agent], a_networked("a", "b"))
    assert (found["agent"].verdict, joint.verdict) == ("does-not-fit", "never")


def test_what_the_search_leaves_open_is_not_decided_and_the_verdict_on_all_is_searched_for(monkeypatch):
    judged = []

    def judge(*args):
        judged.append(args)
        return JointVerdict(verdict="not-decided", reasons=("too many",))

    monkeypatch.setattr(scheduling, "judge_jointly", judge)
    fleet = a_zoned({"a": ("x", 1), "b": ("y", 1), "c": ("y", 1)})
    found, _ = answers([a_pair(affinity=near(term("zone")))], fleet)
    assert (found["web"].verdict, codes(found["web"])) == ("not-decided", ["orders-not-all-tried"])
    assert "too many" in found["web"].reasons[0].message
    assert len(judged) == 2


@pytest.mark.parametrize("rules", [{}, {"affinity": apart(term("zone"))}, {"affinity": apart(term())}])
def test_pods_of_which_first_fit_places_the_most_are_not_searched_for(monkeypatch, rules):
    monkeypatch.setattr(scheduling._Scheduler, "_judge_beside", lambda *_: pytest.fail("searched"))
    found, _ = answers([a_pair(**rules)], a_zoned({"a": ("x", 1)}))
    assert (found["web"].verdict, codes(found["web"])) == ("does-not-fit", ["too-few-nodes"])
    fits, _ = answers([a_pair(topologySpreadConstraints=spread())], a_zoned({"a": ("x", 2)}))
    assert fits["web"].verdict == "fits"


def test_a_gang_by_itself_is_not_held_to_be_near_pods_of_others(build):
    gang = a_volcano_job(build, "train", ("m", 1, "template:one"), ("w", 1, "template:one"))
    for task in gang["spec"]["tasks"]:
        task["template"]["spec"]["affinity"] = near(term("zone", app="web"))
    fleet = a_zoned({"a": ("x", 2), "b": ("x", 2)})
    placement = place([*CLASSES, gang, a_pair()], fleet)
    assert {each.verdict for each in placement.workloads} == {"fits"}
    assert placement.joint.works is not None


def test_a_daemon_set_that_no_node_lets_in_has_no_pods_and_fits():
    agent = a_deployment("agent", "template:one", kind="DaemonSet", nodeSelector={"gpu": "other"})
    found, joint = answers([agent], a_zoned({"a": ("x", 1)}))
    assert (found["agent"].verdict, found["agent"].replicas, joint.verdict) == ("fits", 0, "always")
    assert str(found["agent"].reasons[0]) == "no node lets its pods in, so it has none"
