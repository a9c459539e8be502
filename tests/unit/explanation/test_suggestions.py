"""Edits: each kind where it is the one that helps, and all of them held against the allocator."""

from __future__ import annotations

import random

import pytest
import yaml

from dra_infra.explanation.edit_selectors import yaml_text
from dra_infra.explanation.explain import explain
from dra_infra.explanation.records import Explanation, Suggestion
from dra_infra.explanation.suggesting import Suggesting
from dra_infra.kubernetes.scheduler.allocator import Allocated, AllocatedState, AllocationError, Failed
from tests.support import draws
from tests.support.allocator.cases import MINORS, draw_case
from tests.support.allocator.known import (
    a_claim,
    a_leaf,
    a_slice,
    counting,
    drawing,
    selecting,
    sized,
    valued,
)
from tests.support.explanation.asked import a_holder, answer, question_of

SIZE = "device.attributes['a.example.com'].size"
COLOUR = "device.attributes['a.example.com'].colour"


def lines(found: Explanation) -> list[tuple[str, str]]:
    return [(each.kind, each.line) for each in found.suggestions]


def only(found: Explanation, kind: str) -> Suggestion:
    (suggestion,) = [each for each in found.suggestions if each.kind == kind]
    return suggestion


def test_fewer_devices_are_as_many_as_there_are():
    found = answer(slices=[a_slice("d0", "d1")], claims=[a_claim(a_leaf(5))])
    suggestion = only(found, "fewer-devices")
    assert suggestion.line == "count: 2"
    assert suggestion.where == "ResourceClaim ml/c0: spec.devices.requests[0].exactly.count"
    assert suggestion.node == "n0"


def test_fewer_partitions_are_as_many_as_their_counters_allow():
    slices = counting(4, "1.37", a_slice(*(drawing(f"d{number}", 2) for number in range(4))))
    assert only(answer(slices=slices, claims=[a_claim(a_leaf(4))]), "fewer-devices").line == "count: 2"


def test_a_bound_is_lowered_to_the_value_that_is_there():
    claim = a_claim(a_leaf(selectors=selecting(f"{SIZE} >= 8")))
    found = answer(slices=[a_slice(sized("d0", 2), sized("d1", 5))], claims=[claim])
    assert only(found, "lower-bound").line == f"expression: {SIZE} >= 5"


def test_a_strict_bound_is_lowered_below_the_value_that_is_there():
    claim = a_claim(a_leaf(selectors=selecting(f"{SIZE} > 8")))
    found = answer(slices=[a_slice(sized("d0", 5))], claims=[claim])
    assert only(found, "lower-bound").line == f"expression: {SIZE} > 4"


def test_an_amount_is_lowered_to_the_amount_that_is_there():
    device = {"name": "d0", "capacity": {"mem": {"value": "40Gi"}}}
    text = "device.capacity['a.example.com'].mem.compareTo(quantity('80Gi')) >= 0"
    found = answer(slices=[a_slice(device)], claims=[a_claim(a_leaf(selectors=selecting(text)))])
    assert only(found, "lower-bound").line == "expression: " + text.replace("'80Gi'", '"40Gi"')


def test_the_nearest_value_that_is_there_is_taken_for_one_that_is_not():
    devices = [
        {"name": f"d{number}", "attributes": {"colour": {"string": value}}}
        for number, value in enumerate(("1g.10gb", "7g.80gb"))
    ]
    claim = a_claim(a_leaf(selectors=selecting(f"{COLOUR} == '1g.12gb'")))
    suggestion = only(answer(slices=[a_slice(*devices)], claims=[claim]), "other-value")
    assert suggestion.line == f'expression: {COLOUR} == "1g.10gb"'


def test_a_clause_is_dropped_and_the_others_stay():
    text = f"{SIZE} >= 1 && device.driver == 'b.example.com'"
    found = answer(slices=[a_slice(sized("d0", 1))], claims=[a_claim(a_leaf(selectors=selecting(text)))])
    assert ("drop-clause", f"expression: {SIZE} >= 1") in lines(found)


def test_a_selector_without_a_clause_left_is_deleted():
    claim = a_claim(a_leaf(selectors=selecting("device.driver == 'b.example.com'")))
    assert ("drop-clause", "(delete this selector)") in lines(answer(slices=[a_slice("d0")], claims=[claim]))


def test_a_taint_is_tolerated_by_its_own_value():
    device = {"name": "d0", "taints": [{"key": "xid", "value": "79", "effect": "NoSchedule"}]}
    found = answer(slices=[a_slice(device)], claims=[a_claim(a_leaf())])
    assert only(found, "tolerate").line == '- {key: xid, operator: Equal, value: "79", effect: NoSchedule}'


def test_a_constraint_is_dropped():
    claim = a_claim(a_leaf(2), constraints=[{"matchAttribute": "k8s.io/root"}])
    found = answer(slices=[a_slice(valued("d0", "x"), valued("d1", "y"))], claims=[claim])
    assert only(found, "drop-constraint").where == "ResourceClaim ml/c0: spec.devices.constraints[0]"


def test_less_capacity_is_what_is_left_of_the_device():
    device = {"name": "d0", "capacity": {"mem": {"value": "4"}}, "allowMultipleAllocations": True}
    claim = a_claim(a_leaf(capacity={"requests": {"mem": "9"}}))
    assert only(answer(slices=[a_slice(device)], claims=[claim]), "lower-capacity").line == "mem: 4"


def test_another_class_is_named_for_one_that_is_not_there():
    found = answer(slices=[a_slice("d0")], claims=[a_claim(a_leaf(device_class="anny"))])
    assert found.error is not None
    assert '"anny" not found' in found.error.text
    assert only(found, "other-class").line == "deviceClassName: any"


def test_the_fewest_claims_are_freed_with_the_pods_that_use_them():
    holders = [
        a_holder("small", "d0", user="a"),
        a_holder("large", "d1", "d2", user="b"),
    ]
    found = answer(slices=[a_slice("d0", "d1", "d2")], claims=[a_claim(a_leaf(2))], holders=holders)
    suggestion = only(found, "free-claims")
    assert suggestion.text == "free the claim: ResourceClaim ml/large (Pod ml/b)"
    assert suggestion.line == "kubectl delete pod -n ml b"


def test_claims_that_only_do_together_are_freed_together():
    holders = [a_holder("one", "d0"), a_holder("two", "d1")]
    found = answer(slices=[a_slice("d0", "d1")], claims=[a_claim(a_leaf(2))], holders=holders)
    assert "free 2 claims" in only(found, "free-claims").text


def test_nodes_are_added_for_the_pods_that_find_no_room():
    found = answer(slices=[a_slice("d0")], claims=[a_claim(a_leaf())], pods=3)
    assert found.placed == 1
    assert only(found, "add-nodes").text == "add 2 nodes like n0"


def test_a_missing_attribute_is_tested_first():
    claim = a_claim(a_leaf(selectors=selecting(f"{SIZE} > 1")))
    found = answer(slices=[a_slice("d0", sized("d1", 2))], claims=[claim])
    assert found.error is not None
    assert found.error.device == "a.example.com/p/d0"
    assert only(found, "guard").line == f"expression: has({SIZE}) && {SIZE} > 1"


def test_a_change_that_two_devices_lead_to_is_told_once():
    device = {"name": "d0", "attributes": {"colour": {"bool": True}}}
    claim = a_claim(a_leaf(selectors=selecting(f"{COLOUR} == 'true'")))
    found = answer(slices=[a_slice(device, sized("d1", 1))], claims=[claim])
    assert [each.kind for each in found.suggestions] == ["other-comparison", "drop-clause"]


def test_two_changes_are_only_tried_when_asked():
    device = sized("d0", 1, taints=[{"key": "k", "effect": "NoSchedule"}])
    claim = a_claim(a_leaf(), a_leaf(), constraints=[{"matchAttribute": "k8s.io/root"}])
    slices = [a_slice(device, valued("d1", "x"))]
    assert not answer(slices=slices, claims=[claim]).suggestions
    found = answer(slices=slices, claims=[claim], deep=True)
    assert "tolerate + drop-constraint" in [each.kind for each in found.suggestions]


def test_no_pair_holds_a_change_that_does_alone():
    tainted = sized("d0", 5, taints=[{"key": "k", "effect": "NoSchedule"}])
    claim = a_claim(a_leaf(selectors=selecting(f"{SIZE} >= 5")))
    found = answer(slices=[a_slice(tainted, sized("d1", 4))], claims=[claim], deep=True)
    assert [each.kind for each in found.suggestions] == ["lower-bound", "tolerate", "drop-clause"]


def test_at_most_five_are_told():
    text = f"{SIZE} >= 9 && {COLOUR} == 'x'"
    devices = [sized(f"d{number}", number) for number in range(8)]
    found = answer(
        slices=[a_slice(*devices)], claims=[a_claim(a_leaf(9, selectors=selecting(text)))], deep=True
    )
    assert len(found.suggestions) <= 5


@pytest.mark.draws
@pytest.mark.parametrize("minor", MINORS)
def test_every_edit_fits_when_the_allocator_is_asked_again(minor, monkeypatch):
    proven = []
    real = Suggesting._try

    def checked(self, *edits):
        fits = real(self, *edits)
        if fits:
            changed = self.question
            for edit in edits:
                changed = edit.apply(changed)
            node = next(each for each in changed.nodes if each.name == self.found[-1][1].node)
            outcome = changed.cluster.allocate(node, changed.asked, declared=changed.declared_by(node))
            assert isinstance(outcome, Allocated)
            proven.append(edits)
        return fits

    monkeypatch.setattr(Suggesting, "_try", checked)
    for seed in draws.seeds(180):
        case = draw_case(random.Random(f"edits {minor} {seed}"), minor)  # noqa: S311  (not for secrets)
        explain(question_of(case), is_deep=seed % 10 == 0)
    assert len(proven) > 30


@pytest.mark.draws
@pytest.mark.parametrize("minor", MINORS)
def test_verdict_and_proof_are_the_allocators(minor):
    proven = 0
    for seed in draws.seeds(100):
        case = draw_case(random.Random(f"verdict {minor} {seed}"), minor)  # noqa: S311  (not for secrets)
        question = question_of(case)
        try:
            outcomes = [
                question.cluster.allocate(node, question.asked, declared=question.declared_by(node))
                for node in question.nodes
            ]
        except AllocationError:
            continue
        found = explain(question)
        ended = any(isinstance(each, Failed) and not each.on_node for each in outcomes)
        fits = any(isinstance(each, Allocated) for each in outcomes) and not ended
        assert found.verdict == ("fits" if fits else "does-not-fit")
        if found.proof:
            free = question.cluster.with_state(AllocatedState())
            for node in question.nodes:
                outcome = free.allocate(node, question.asked, declared=question.declared_by(node))
                assert not isinstance(outcome, Allocated), (seed, found.proof)
            proven += 1
        assert (found.error is not None) == ended
    assert proven > 5


def test_a_class_of_another_driver_is_no_help():
    classes = [
        {
            "metadata": {"name": f"{driver}s"},
            "spec": {"selectors": selecting(f"device.driver == '{driver}.example.com'")},
        }
        for driver in ("a", "b")
    ]
    slices = [a_slice("d0", driver="b.example.com")]
    found = answer(slices=slices, classes=classes, claims=[a_claim(a_leaf(device_class="as"))])
    assert found.suggestions == ()


def test_a_class_of_the_same_driver_is_tried():
    test = "device.driver == 'a.example.com'"
    classes = [
        {"metadata": {"name": "small"}, "spec": {"selectors": selecting(f"{test} && {SIZE} < 2")}},
        {"metadata": {"name": "large"}, "spec": {"selectors": selecting(f"{test} && {SIZE} > 1")}},
    ]
    claim = a_claim(a_leaf(device_class="large"))
    found = answer(slices=[a_slice(sized("d0", 1))], classes=classes, claims=[claim])
    assert only(found, "other-class").line == "deviceClassName: small"


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("has(x) && y", "has(x) && y"),
        ("!x", "'!x'"),
        ("'a' in x", "'''a'' in x'"),
        ("x == 'a: b'", "'x == ''a: b'''"),
        ("x == 'a #b'", "'x == ''a #b'''"),
    ],
)
def test_an_expression_is_written_so_that_yaml_reads_it_back(text, written):
    assert yaml_text(text) == written
    assert yaml.safe_load(f"expression: {written}") == {"expression": text}
