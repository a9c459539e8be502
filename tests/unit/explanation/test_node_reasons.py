from __future__ import annotations

import pytest

from dra_infra.explanation.node_reasons import NodeReason
from tests.support.allocator.cases import MINORS
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
from tests.support.explanation.asked import find

SIZE = "device.attributes['a.example.com'].?size.orValue(0)"
ROOT = "k8s.io/root"


def said(found: NodeReason) -> str:
    return found.text.format(best=found.best)


def test_node_without_devices_says_so():
    found = find(slices=[a_slice("d0", nodeName="other")], claims=[a_claim(a_leaf())])
    assert (found.code, said(found)) == ("no-device-matches", "no devices are published for the node")


def test_pool_that_misses_slices_is_named_with_how_many_are_there():
    found = find(slices=[a_slice("d0", count=2)], claims=[a_claim(a_leaf())])
    assert found.code == "no-device-matches"
    assert said(found) == "resource pool a.example.com/p is incomplete: 1 of 2 slices are published"


def test_pool_that_contradicts_itself_is_named_with_why():
    found = find(slices=[a_slice("d0", "d0")], claims=[a_claim(a_leaf())])
    assert said(found) == "resource pool a.example.com/p is invalid: duplicate device name d0"


def test_pool_that_moves_away_is_named():
    slices = [a_slice("d0", count=2), a_slice("d1", name="t", generation=2, nodeName="n1", count=2)]
    found = find(slices=slices, claims=[a_claim(a_leaf())])
    assert "resource pool a.example.com/p is obsolete: slices of a newer generation" in said(found)


def test_selector_that_nothing_passes_is_shown_with_what_is_there():
    claim = a_claim(a_leaf(device_class="a", selectors=selecting(f"{SIZE} > 4")))
    found = find(slices=[a_slice(sized("d0", 1), sized("d1", 3))], claims=[claim])
    assert found.code == "no-device-matches"
    assert said(found) == (
        f"selector #0 of request r0 of ResourceClaim ml/c0 matches none of 2 devices: {SIZE} > 4 (size is 1, 3)"
    )


def test_selector_counts_what_passes_those_before_it():
    both = [*selecting(f"{SIZE} > 1"), *selecting(f"{SIZE} < 3")]
    found = find(slices=[a_slice(sized("d0", 1), sized("d1", 3))], claims=[a_claim(a_leaf(selectors=both))])
    assert said(found) == (
        "selector #1 of request r0 of ResourceClaim ml/c0 matches none of 1 device that pass what comes before: "
        f"{SIZE} < 3 (size is 3)"
    )


def test_selector_of_a_class_is_told_as_such():
    slices = [a_slice("d0", driver="b.example.com")]
    found = find(slices=slices, claims=[a_claim(a_leaf(device_class="a"))])
    assert said(found).startswith("selector #0 of class a matches none of 1 device: ")


def test_braces_of_an_expression_stay():
    claim = a_claim(a_leaf(selectors=selecting("{'{best}': 1} == {'x': 1}")))
    assert "{'{best}': 1}" in said(find(slices=[a_slice("d0")], claims=[claim]))


def test_too_few_devices_are_counted():
    found = find(slices=[a_slice("d0", "d1")], claims=[a_claim(a_leaf(3))])
    assert (found.code, found.best) == ("too-few-devices", 2)
    assert said(found) == (
        "request r0 of ResourceClaim ml/c0 needs 3 devices, the largest node has 2 that match"
    )


def test_requests_that_need_more_together_are_counted_together():
    found = find(slices=[a_slice("d0", "d1")], claims=[a_claim(a_leaf(2), a_leaf())])
    assert said(found) == "the 2 requests need 3 different devices, the largest node has 2 that match"


def test_only_the_requests_are_named_that_are_in_each_others_way():
    slices = [a_slice(sized("d0", 1), sized("d1", 2), sized("d2", 2))]
    one = a_leaf(selectors=selecting(f"{SIZE} == 1"))
    found = find(slices=slices, claims=[a_claim(one, one, a_leaf())])
    assert said(found) == (
        "request r0 of ResourceClaim ml/c0 and request r1 of ResourceClaim ml/c0 need 2 different devices, "
        "the largest node has 1 that match"
    )


@pytest.mark.parametrize(("count", "code"), [(1, "device-tainted"), (None, "all-devices-blocked")])
def test_taints_that_are_not_tolerated_are_named(count, code):
    device = {"name": "d0", "taints": [{"key": "xid", "value": "79", "effect": "NoSchedule"}]}
    found = find(slices=[a_slice(device)], claims=[a_claim(a_leaf(count))])
    assert found.code == code
    assert said(found).endswith("does not tolerate the taints of the devices: xid=79:NoSchedule")


def test_devices_in_use_are_told_apart_from_too_few():
    used = [{"driver": "a.example.com", "pool": "p", "device": "d0"}]
    found = find(slices=[a_slice("d0", "d1")], claims=[a_claim(a_leaf(2))], allocated={"devices": used})
    assert (found.code, said(found)) == (
        "devices-in-use",
        "enough devices match, but too many of them are in use",
    )


def test_counters_in_use_are_told_as_such():
    used = [{"driver": "a.example.com", "pool": "p", "device": "whole"}]
    slices = counting(4, "1.37", a_slice(drawing("whole", 3), drawing("half", 2)))
    found = find(slices=slices, claims=[a_claim(a_leaf())], allocated={"devices": used})
    assert (found.code, said(found)) == (
        "devices-in-use",
        "enough devices match, but too much of the counters that they share is in use",
    )


@pytest.mark.parametrize("minor", MINORS)
def test_counters_of_a_device_that_selectors_refuse_decide_nothing_for_another_driver(minor):
    # 1.35 keeps counters by the name of the pool: those of the driver that it asks for first stand for both.
    first = counting(1, minor, a_slice(drawing("used"), drawing("free"), driver="a.example.com"))
    second = counting(2, minor, a_slice(drawing("used"), drawing("free"), name="t", driver="b.example.com"))
    second[-1]["metadata"]["name"] += "-b"
    used = [
        {"driver": driver, "pool": "p", "device": "used"} for driver in ("a.example.com", "b.example.com")
    ]
    leaf = a_leaf(selectors=selecting("device.driver == 'b.example.com'"))
    found = find(minor, slices=[*first, *second], claims=[a_claim(leaf, leaf)], allocated={"devices": used})
    assert (found.code, said(found)) == (
        "devices-in-use",
        "enough devices match, but too many of them are in use",
    )


def test_partitions_that_do_not_go_together_are_counted():
    slices = counting(4, "1.37", a_slice(*(drawing(f"d{number}", 2) for number in range(3))))
    found = find(slices=slices, claims=[a_claim(a_leaf(3))])
    assert (found.code, found.best) == ("counters-exceeded", 2)
    assert said(found) == (
        "request r0 of ResourceClaim ml/c0 needs 3 devices at once, the counters that they share allow 2 on the best node"
    )


def test_partition_that_is_larger_than_its_counters_is_named():
    found = find(slices=counting(4, "1.37", a_slice(drawing("d0", 5))), claims=[a_claim(a_leaf())])
    assert found.code == "counters-exceeded"
    assert said(found).endswith("matches devices that take more than all of counter set set")


def test_capacity_that_no_device_has_is_named_with_what_there_is():
    devices = [
        {"name": name, "capacity": {"mem": {"value": value}}}
        for name, value in (("d0", "2Gi"), ("d1", "3Gi"))
    ]
    claim = a_claim(a_leaf(capacity={"requests": {"mem": "4Gi"}}))
    found = find(slices=[a_slice(*devices)], claims=[claim])
    assert found.code == "capacity-too-small"
    assert said(found) == (
        "request r0 of ResourceClaim ml/c0 asks for 4Gi of mem of a device, and no device that matches has it: "
        "mem is 2Gi, mem is 3Gi"
    )


@pytest.mark.parametrize(
    ("kind", "rest"),
    [
        ("matchAttribute", "needs 3 devices with one value, the best node has 2"),
        ("distinctAttribute", "needs 3 devices with different values, the best node has 2"),
    ],
)
def test_constraint_is_told_with_its_largest_group(kind, rest):
    devices = [valued(f"d{number}", "xxyy"[number]) for number in range(4)]
    claim = a_claim(a_leaf(3), constraints=[{kind: ROOT}])
    found = find(slices=[a_slice(*devices)], claims=[claim])
    assert found.code == "constraint-not-met"
    assert said(found) == f"constraint #0 of ResourceClaim ml/c0 ({kind} {ROOT}) {rest}"


def test_constraint_on_what_no_device_has_says_so():
    claim = a_claim(a_leaf(), constraints=[{"matchAttribute": ROOT}])
    assert "no matching device has the attribute" in said(find(slices=[a_slice("d0")], claims=[claim]))


def test_two_constraints_that_only_fail_together_are_told_in_general():
    devices = [
        {"name": f"d{number}", "attributes": {"k8s.io/a": {"int": one}, "k8s.io/b": {"int": other}}}
        for number, (one, other) in enumerate(((1, 1), (1, 2), (2, 1)))
    ]
    constraints = [{"matchAttribute": "k8s.io/a"}, {"matchAttribute": "k8s.io/b"}]
    found = find(slices=[a_slice(*devices)], claims=[a_claim(a_leaf(2), constraints=constraints)])
    assert found.code == "constraint-not-met"
    assert said(found) == "no choice of devices meets all requests and constraints at once"


def test_nearest_entry_of_a_prioritized_list_is_told():
    entries = [a_leaf(selectors=selecting(f"{SIZE} > 9")), a_leaf(selectors=selecting(f"{SIZE} > 1"))]
    device = sized("d0", 2, taints=[{"key": "k", "effect": "NoSchedule"}])
    found = find(slices=[a_slice(device)], claims=[a_claim(entries)])
    assert (found.code, said(found)) == (
        "device-tainted",
        "request r0/s1 of ResourceClaim ml/c0 does not tolerate the taints of the devices: k:NoSchedule",
    )


def test_class_that_is_not_there_is_told_in_the_schedulers_words():
    found = find(slices=[a_slice("d0")], claims=[a_claim(a_leaf(device_class="ghost"))])
    assert found.code == "allocation-aborted"
    assert 'deviceclass.resource.k8s.io "ghost" not found' in said(found)
