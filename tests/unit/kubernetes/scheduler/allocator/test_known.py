"""Bugs of the real allocators, for the minors that have them, and traps: what `known` says, checked on devices."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from dra_infra.kubernetes.scheduler.allocator import Quirk
from dra_infra.kubernetes.scheduler.allocator.variants import quirks_of
from tests.support.allocator import known
from tests.support.allocator.answers import answers_of
from tests.support.allocator.cases import MINORS, Case

OLD = ("1.34", "1.35")
NEW = ("1.36", "1.37")


def answer(name: str, minor: str) -> dict[str, Any]:
    (text,) = answers_of(known.CASES[name](minor))
    return json.loads(text)


def devices(name: str, minor: str) -> list[str] | None:
    """The devices on node n0 in order, None where nothing is possible."""
    given = answer(name, minor)
    assert "error" not in given, given
    if given["allocations"] is None:
        return None
    return [each["device"] for claim in given["allocations"] for each in claim["devices"]["results"]]


def config(minor: str) -> list[Any]:
    given = answer("configuration_for_two_requests", minor)
    return [each.get("requests") for each in given["allocations"][0]["devices"]["config"]]


@pytest.mark.parametrize("minor", MINORS)
def test_1_34_compares_pointers_and_so_takes_equal_values_for_distinct(minor: str):
    assert devices("distinct_values", minor) == (["d0", "d1"] if minor == "1.34" else ["d0", "d2"])


@pytest.mark.parametrize("minor", MINORS)
def test_before_1_37_only_the_last_device_of_a_request_is_distinct(minor: str):
    expected = ["d0", "d1", "d3"] if minor == "1.37" else ["d0", "d1", "d2"]
    assert devices("distinct_values_of_one_request", minor) == expected


@pytest.mark.parametrize(("minor", "expected"), [("1.36", ["d2", "d0", "d3"]), ("1.37", ["d0", "d2", "d3"])])
def test_in_1_36_lists_stay_narrow_when_a_device_is_given_back(minor: str, expected: list[str]):
    assert devices("narrowed_list", minor) == expected


@pytest.mark.parametrize("minor", MINORS)
def test_before_1_36_one_request_takes_several_shares_of_a_device(minor: str):
    assert devices("share_picked_twice", minor) == (["d0", "d0"] if minor in OLD else None)


@pytest.mark.parametrize("minor", MINORS)
def test_before_1_36_all_devices_of_a_later_entry_end_after_one(minor: str):
    assert devices("second_entry_for_all", minor) == (None if minor in OLD else ["d1", "d2"])


@pytest.mark.parametrize("minor", MINORS)
def test_before_1_36_a_second_entry_for_all_sees_what_the_first_selected(minor: str):
    assert devices("entries_for_all", minor) == (None if minor in OLD else ["d1"])


@pytest.mark.parametrize("minor", MINORS)
def test_before_1_36_a_tainted_device_keeps_the_counters_it_was_refused(minor: str):
    assert devices("counters_after_a_taint", minor) == (None if minor in OLD else ["d1"])


@pytest.mark.parametrize("minor", MINORS)
def test_1_34_checks_the_capacity_of_another_device(minor: str):
    assert devices("capacity_of_another_device", minor) == (None if minor == "1.34" else ["d1"])


def test_1_34_panics_where_a_request_goes_beyond_a_slice():
    given = answer("more_devices_than_in_the_slice", "1.34")
    assert given["panicked"]
    assert given["error"] == "runtime error: index out of range [1] with length 1"


@pytest.mark.parametrize("minor", MINORS[1:])
def test_later_minors_go_beyond_a_slice(minor: str):
    assert devices("more_devices_than_in_the_slice", minor) == ["d0", "d1"]


@pytest.mark.parametrize("minor", MINORS)
def test_1_35_confuses_counters_of_pools_with_one_name(minor: str):
    assert devices("pools_of_one_name", minor) == (None if minor == "1.35" else ["d0", "d0"])


def test_1_36_pays_counters_again_for_a_device_whose_share_takes_no_capacity():
    assert devices("share_without_capacity_in_use", "1.36") is None
    assert devices("share_without_capacity_in_use", "1.37") == ["d0"]


@pytest.mark.parametrize("minor", MINORS)
def test_configuration_is_there_once_per_request_before_1_37(minor: str):
    assert config(minor) == ([None] if minor == "1.37" else [["r0", "r1"], ["r0", "r1"]])


@pytest.mark.parametrize("minor", MINORS)
def test_1_34_takes_devices_of_an_incomplete_pool(minor: str):
    assert devices("incomplete_pool", minor) == (["d0"] if minor == "1.34" else None)


def test_the_scheduler_of_1_36_does_not_tell_its_allocator_of_lists():
    assert devices("list_attributes_and_the_scheduler", "1.36") is None
    assert devices("list_attributes_and_the_scheduler", "1.37") == ["d0", "d1"]


@pytest.mark.parametrize("minor", MINORS)
def test_amounts_in_steps_are_written_in_binary_before_1_37(minor: str):
    (claim,) = answer("amounts_in_binary", minor)["allocations"]
    (device,) = claim["devices"]["results"]
    assert device["consumedCapacity"] == {"cores": "2k" if minor == "1.37" else "2000"}


@pytest.mark.parametrize("minor", MINORS)
def test_steps_may_be_fractions_from_1_37_on(minor: str):
    (claim,) = answer("fractional_range", minor)["allocations"]
    (device,) = claim["devices"]["results"]
    assert device["consumedCapacity"] == {"cores": "750m" if minor == "1.37" else "1"}


@pytest.mark.parametrize("minor", MINORS)
@pytest.mark.parametrize("name", ["nine_of_eight", "eleven_of_ten", "admin_access_to_a_full_partition"])
def test_what_is_not_there_is_not_given(name: str, minor: str):
    assert devices(name, minor) is None


@pytest.mark.parametrize("minor", MINORS)
def test_counters_are_held_by_devices_of_other_nodes_from_1_35_on(minor: str):
    assert devices("counters_of_other_nodes", minor) == (["d0"] if minor == "1.34" else None)


@pytest.mark.parametrize("minor", MINORS)
def test_nobody_gets_all_devices_beside_an_incomplete_pool(minor: str):
    given = answer("all_beside_an_incomplete_pool", minor)
    assert given["error"] == (
        "claim ml/c0, request r0: asks for all devices, but resource pool b.example.com/p is currently being updated"
    )
    assert "onNode" not in given


@pytest.mark.parametrize("minor", MINORS)
def test_an_old_generation_is_not_used_once_a_newer_one_comes(minor: str):
    # 1.34 takes incomplete pools and looks at the slices of the node alone.
    assert devices("two_generations", minor) == (["d0"] if minor == "1.34" else None)


PARSED = (
    "greater_than_a_number",
    "greater_than_a_number_with_zeros",
    "less_than_the_largest_number",
    "text_in_a_list",
    "device_with_a_text_behind_one_of_the_node",
)


@pytest.mark.parametrize("minor", MINORS)
@pytest.mark.parametrize("name", known.FOREIGN)
def test_a_node_selector_of_any_driver_that_is_not_parsed_ends_every_attempt(name: str, minor: str):
    given = answer(f"foreign_{name}", minor)
    if name in PARSED:
        assert devices(f"foreign_{name}", minor) == ["d0"]
    else:
        assert given["error"].startswith("gather pool information: failed to perform node selection for ")
        assert "for 'Gt', 'Lt' operators, the value must be an integer" in given["error"]


@pytest.mark.parametrize("minor", MINORS)
def test_a_node_selector_of_a_device_that_is_not_parsed_ends_every_attempt(minor: str):
    (text,) = answers_of(known.beside_foreign(known.FOREIGN_DEVICE)(minor))
    assert "node selection for device bad in slice foreign: " in json.loads(text)["error"]


QUIRKS = {
    "distinct_values": Quirk.DISTINCT_BY_POINTER,
    "distinct_values_of_one_request": Quirk.DISTINCT_FORGETS,
    "narrowed_list": Quirk.LISTS_STAY_NARROW,
    "second_entry_for_all": Quirk.ALL_GOES_ON_WITH_FIRST,
    "entries_for_all": Quirk.ALL_SHARES_MATCHES,
    "counters_after_a_taint": Quirk.REFUSED_KEEPS,
    "capacity_of_another_device": Quirk.CAPACITY_OF_ANOTHER,
    "pools_of_one_name": Quirk.COUNTERS_BY_POOL_NAME,
    "share_without_capacity_in_use": Quirk.EMPTY_SHARES_PAY_AGAIN,
    "configuration_for_two_requests": Quirk.CONFIG_FOR_EACH,
    "incomplete_pool": Quirk.INCOMPLETE_IS_USED,
}


HIDDEN = {
    # Another bug of the minor, or another rule, gives the same.
    ("distinct_values_of_one_request", "1.34"),
    ("share_without_capacity_in_use", "1.35"),
}


def deciding_quirks(case: Case) -> set[Quirk]:
    """The bugs of the minor without which the answer would be another one."""
    answers = answers_of(case)
    return {
        quirk
        for quirk in case.variant.quirks
        if answers_of(case, replace(case.variant, quirks=case.variant.quirks - {quirk})) != answers
    }


@pytest.mark.parametrize("name", QUIRKS)
@pytest.mark.parametrize("minor", MINORS)
def test_a_bug_that_decided_is_named(name: str, minor: str):
    case = known.CASES[name](minor)
    found = deciding_quirks(case)
    assert found <= quirks_of(case.release)
    if (name, minor) in HIDDEN:
        assert not found
    elif QUIRKS[name] in quirks_of(case.release):
        assert QUIRKS[name] in found
    if minor == "1.37":
        assert not found
