"""What differs between releases, gates, and new and stored expressions; the truth is in tests/e2e/parity."""

from __future__ import annotations

import pytest

from dra_infra.kubernetes.cel import Environment, check_derived, check_expression
from dra_infra.kubernetes.cel.environment import DEFAULT

ATTRIBUTE = 'device.attributes["a.b"].x'
LISTS = "[3, 1].sort() == [1, 3]"
LOOP = f"{ATTRIBUTE}.exists(v, v == 1)"
SHARED = "device.allowMultipleAllocations"
INCLUDES = f"{ATTRIBUTE}.includes(1)"
BACKTICKS = "device.`driver` == 'a'"
NO_LIST_GATE = {"list_attributes": False}
NO_SHARING_GATE = {"consumable_capacity": False}

CASES = [
    (LISTS, {"minor": 34, "stored": False}, False),
    (LISTS, {"minor": 34, "stored": True}, True),
    (LISTS, {"minor": 35, "stored": False}, True),
    (LOOP, {"minor": 35, "stored": True}, False),
    (LOOP, {"minor": 36, "stored": False}, True),
    (LOOP, {"minor": 36, "stored": True, **NO_LIST_GATE}, False),
    (LOOP, {"minor": 37, "stored": False, **NO_LIST_GATE}, False),
    (LOOP, {"minor": 37, "stored": True, **NO_LIST_GATE}, True),
    (SHARED, {"minor": 34, "stored": False}, True),
    (SHARED, {"minor": 37, "stored": False, **NO_SHARING_GATE}, False),
    (SHARED, {"minor": 34, "stored": True, **NO_SHARING_GATE}, True),
    (INCLUDES, {"minor": 35, "stored": True}, False),
    (INCLUDES, {"minor": 36, "stored": False}, True),
    (INCLUDES, {"minor": 36, "stored": False, **NO_LIST_GATE}, False),
    (INCLUDES, {"minor": 36, "stored": True, **NO_LIST_GATE}, True),
    (INCLUDES, {"minor": 37, "stored": False, **NO_LIST_GATE}, False),
    (BACKTICKS, {"minor": 36, "stored": True}, False),
    (BACKTICKS, {"minor": 37, "stored": False}, True),
    ("dyn(true)", {"minor": 35, "stored": False}, False),
    ("dyn(true)", {"minor": 36, "stored": False}, True),
    ("dyn(true)", {"minor": 37, "stored": False, **NO_LIST_GATE}, False),
]


@pytest.mark.parametrize(("text", "given", "accepted"), CASES)
def test_a_release_takes_what_it_knows(text: str, given: dict[str, int], accepted: bool):
    checked = check_expression(text, environment=Environment(**given))
    assert (not checked.errors, checked.kind) == (accepted, "" if accepted else "FieldValueInvalid")


def test_an_attribute_is_of_any_type_before_lists_and_dynamic_after():
    assert check_expression(ATTRIBUTE, environment=Environment(35)).return_type == "google.protobuf.Any"
    assert check_expression(ATTRIBUTE).return_type == "dyn"


def test_equal_environments_are_one():
    assert {Environment(), DEFAULT} == {DEFAULT}


DERIVED = "a primitive scalar (string, integer, boolean, semver)"


@pytest.mark.parametrize(
    ("text", "environment", "detail"),
    [
        ('"a"', Environment(stored=False), ""),
        (ATTRIBUTE, Environment(stored=False), ""),
        ('["a"]', Environment(stored=False), ""),
        (
            '["a"]',
            Environment(stored=False, list_attributes=False),
            f"must evaluate to {DERIVED}, not list(string)",
        ),
        ('["a"]', Environment(list_attributes=False), ""),
        (
            "1.5",
            Environment(stored=False),
            f"must evaluate to {DERIVED} or a list of these scalars, not double",
        ),
        (
            'duration("1s")',
            Environment(stored=False),
            f"must evaluate to {DERIVED} or a list of these scalars, not google.protobuf.Duration",
        ),
    ],
)
def test_a_derived_attribute_may_be_any_value_of_an_attribute(
    text: str, environment: Environment, detail: str
):
    checked = check_derived(text, environment=environment)
    assert (checked.detail, bool(checked.errors)) == (detail, bool(detail))
