from __future__ import annotations

from itertools import count

import pytest

from dra_infra.explanation.explain import explain
from dra_infra.kubernetes.scheduler.node_filters import NodeRefusal
from tests.support.allocator.cases import make_case
from tests.support.allocator.known import (
    a_claim,
    a_leaf,
    a_slice,
    counting,
    distinct_values,
    drawing,
    selecting,
    sized,
    valued,
)
from tests.support.explanation.asked import a_holder, answer, question_of

SIZE = "device.attributes['a.example.com'].?size.orValue(0)"
TWO = [{"metadata": {"name": name, "labels": {}}} for name in ("n0", "n1")]


def test_what_fits_is_told_with_node_and_devices():
    found = answer(slices=[a_slice("d0", "d1")], claims=[a_claim(a_leaf(2))])
    assert (found.verdict, found.node) == ("fits", "n0")
    assert found.devices == ("a.example.com/p/d0", "a.example.com/p/d1")


def test_more_than_there_is_is_proved():
    found = answer(slices=[a_slice("d0", "d1")], claims=[a_claim(a_leaf(9))])
    assert found.proof == "9 devices for request r0 of ResourceClaim ml/c0 are asked for; 2 match"


def test_the_proof_is_about_the_best_node():
    slices = [a_slice("d0"), a_slice("d0", "d1", name="t", pool="q", nodeName="n1")]
    found = answer(slices=slices, nodes=TWO, claims=[a_claim(a_leaf(3))])
    assert found.proof.endswith("are asked for; on the best node, n1, 2 match")
    assert found.node == "n1"


def test_a_topology_that_is_not_there_is_proved_by_its_largest_group():
    devices = [valued(f"d{number}", "xxxyyzz"[number]) for number in range(7)]
    claim = a_claim(a_leaf(4), constraints=[{"matchAttribute": "k8s.io/root"}])
    found = answer(slices=[a_slice(*devices)], claims=[claim])
    assert found.proof == "4 devices with one value of k8s.io/root are asked for; the largest group has 3"


def test_counters_are_part_of_the_proof():
    slices = counting(4, "1.37", a_slice(*(drawing(f"d{number}", 2) for number in range(3))))
    found = answer(slices=slices, claims=[a_claim(a_leaf(3))])
    assert found.proof.endswith("are asked for; the counters that they share allow 2 of the 3 that match")


def test_a_selector_that_nothing_passes_is_the_proof():
    claim = a_claim(a_leaf(selectors=selecting(f"{SIZE} > 1 && {SIZE} < 1")))
    found = answer(slices=[a_slice(sized("d0", 2))], claims=[claim])
    assert found.proof == (
        f"no device that can be had passes request r0, selector #0 of ResourceClaim ml/c0: {SIZE} < 1"
    )


def test_devices_that_others_have_are_no_proof():
    found = answer(
        slices=[a_slice("d0")], claims=[a_claim(a_leaf())], holders=[a_holder("a", "d0", user="x")]
    )
    assert found.proof == ""
    (tree,) = found.requests
    assert tree.steps[-1].rule == "in-use"
    assert tree.steps[-1].holders == ("ResourceClaim ml/a (Pod ml/x)",)


def test_what_only_a_search_can_tell_is_told_as_searched():
    devices = [
        {"name": f"d{number}", "attributes": {"k8s.io/a": {"int": one}, "k8s.io/b": {"int": other}}}
        for number, (one, other) in enumerate(((1, 1), (1, 2), (2, 1)))
    ]
    constraints = [{"matchAttribute": "k8s.io/a"}, {"matchAttribute": "k8s.io/b"}]
    found = answer(slices=[a_slice(*devices)], claims=[a_claim(a_leaf(2), constraints=constraints)])
    assert found.proof.startswith("every combination of devices was tried")


def test_nodes_that_refuse_the_pod_are_counted_with_their_devices():
    slices = [a_slice("d0"), a_slice("d0", "d1", name="t", pool="q", nodeName="n1")]
    case = make_case("1.37", slices=slices, nodes=TWO, claims=[a_claim(a_leaf(2))])
    found = explain(
        question_of(case, refusals={"n1": (NodeRefusal("the node is cordoned", "unschedulable"),)})
    )
    assert [(each.text, each.nodes, each.example) for each in found.refusals] == [
        ("the node is cordoned", 1, "n1")
    ]
    step = found.requests[0].steps[0]
    assert (step.rule, step.text, step.removed) == ("node", "the node is cordoned", 2)


def test_devices_of_pools_that_give_nothing_are_counted():
    found = answer(slices=[a_slice("d0", "d1", count=2)], claims=[a_claim(a_leaf())])
    step = found.requests[0].steps[0]
    assert (step.rule, step.removed) == ("pool", 2)
    assert step.text == "resource pool a.example.com/p is incomplete: 1 of 2 slices are published"


def test_slices_of_a_node_that_is_not_there_are_counted():
    found = answer(slices=[a_slice("d0", nodeName="gone")], claims=[a_claim(a_leaf())])
    step = found.requests[0].steps[0]
    assert (step.rule, step.text, step.removed) == (
        "no-node",
        "slices are for node gone, which is not there",
        1,
    )


def test_each_entry_of_a_prioritized_list_has_its_tree():
    entries = [a_leaf(selectors=selecting(f"{SIZE} > 9")), a_leaf(2)]
    found = answer(slices=[a_slice(sized("d0", 1))], claims=[a_claim(entries)])
    assert [(tree.request, tree.count, tree.left) for tree in found.requests] == [
        ("r0/s0", 1, 0),
        ("r0/s1", 2, 1),
    ]


def test_an_error_of_cel_names_claim_selector_and_device():
    claim = a_claim(a_leaf(selectors=selecting("device.attributes['a.example.com'].size == 1")))
    found = answer(slices=[a_slice(sized("d0", 2), "d1")], claims=[claim])
    assert found.error is not None
    assert found.error.text.startswith(
        "claim ml/c0: selector #0 on device a.example.com/p/d1: CEL runtime error"
    )
    assert (found.error.claim, found.error.where, found.error.device) == (
        "ResourceClaim ml/c0",
        "request r0, selector #0",
        "a.example.com/p/d1",
    )
    assert found.requests[0].steps[-1].rule == "error"


def test_an_error_on_one_node_is_one_for_the_pod():
    claim = a_claim(a_leaf(selectors=selecting("device.attributes['a.example.com'].size == 1")))
    slices = [a_slice(sized("d0", 1)), a_slice("d0", name="t", pool="q", nodeName="n1")]
    found = answer(slices=slices, nodes=TWO, claims=[claim])
    assert found.verdict == "does-not-fit"
    assert found.error is not None


def test_a_bug_of_the_minor_is_named_where_it_decides():
    case = distinct_values("1.34")
    assert explain(question_of(case)).verdict == "fits"
    slices = counting(
        3, "1.35", a_slice(drawing("d0", 2, taints=[{"key": "k", "effect": "NoSchedule"}]), drawing("d1", 2))
    )
    found = answer("1.35", slices=slices, claims=[a_claim(a_leaf())])
    assert found.quirks == (
        "a device that is refused for a taint, a constraint or its capacity keeps its counters",
    )


@pytest.mark.parametrize("after", [0, 3, 200])
def test_the_end_of_the_time_is_told_and_never_hangs(after):
    asked = count()
    devices = [sized(f"d{number}", number) for number in range(12)]
    case = make_case("1.37", slices=[a_slice(*devices)], claims=[a_claim(a_leaf(13))])
    found = explain(question_of(case), is_late=lambda: next(asked) >= after)
    assert found.verdict in ("does-not-fit", "not-decided")
    if after < 200:
        assert any("--timeout" in each for each in found.unknown)


def test_a_search_that_takes_for_ever_leaves_it_open():
    devices = [
        valued(
            f"d{number:02}",
            f"{number % 2}",
            attributes={"k8s.io/root": {"string": str(number % 2)}, "k8s.io/b": {"int": number % 3}},
        )
        for number in range(30)
    ]
    constraints = [{"matchAttribute": "k8s.io/root"}, {"distinctAttribute": "k8s.io/b"}]
    claim = a_claim(a_leaf(3), a_leaf(3), constraints=constraints)
    found = answer(slices=[a_slice(*devices)], claims=[claim])
    assert found.verdict in ("does-not-fit", "not-decided")


@pytest.mark.parametrize("count", [2, None])
def test_of_a_class_that_is_missing_only_what_holds_for_any_is_told(count: int | None):
    claim = a_claim(a_leaf(count, device_class="gone"), constraints=[{"matchAttribute": "k8s.io/root"}])
    found = answer(slices=[a_slice(valued("d0", "x"), valued("d1", "y"))], claims=[claim])
    assert found.error is not None
    assert "could not retrieve device class gone" in found.error.text
    (tree,) = found.requests
    assert (tree.device_class, tree.candidates, tree.left) == ("gone", 2, 2)
    # Of all devices: the class may take one of the two, which has one value.
    told = "2 devices with one value of k8s.io/root are asked for; the largest group has 1"
    assert (found.proof, found.beyond) == ("", told if count else "")


def test_what_counting_tells_of_pools_that_are_not_whole_is_told_with_that():
    found = answer(slices=[a_slice("d0", count=2)], claims=[a_claim(a_leaf(3))])
    assert found.beyond.endswith("are asked for; 1 match, as far as pools are published")
