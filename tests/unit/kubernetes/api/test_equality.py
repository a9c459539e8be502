"""Equality of two versions of an object as API servers see it; real servers are asked the same in tests/support/parity/updates.py."""

from __future__ import annotations

from typing import Any

import pytest

from dra_infra.kubernetes.api import SUPPORTED_MINORS, is_same_json, is_same_value
from dra_infra.kubernetes.apiserver import judge
from dra_infra.target import ClusterTarget

KINDS = ("ResourceClaim", "ResourceClaimTemplate")
ABSENT = object()


def at(value: Any, *path: str | int) -> Any:
    for step in path:
        value = value[step]
    return value


def a_claim(kind: str, *path: str | int, value: Any = None) -> dict[str, Any]:
    """A claim or template with a value at a path below `devices`; `ABSENT` removes it."""
    spec: dict[str, Any] = {
        "devices": {
            "requests": [
                {
                    "name": "gpu",
                    "exactly": {
                        "deviceClassName": "gpu.example.com",
                        "capacity": {"requests": {"memory": "1Gi", "cores": "1"}},
                    },
                }
            ],
            "config": [
                {
                    "opaque": {
                        "driver": "gpu.example.com",
                        "parameters": {"on": True, "level": 1, "none": 0, "list": [1, 2], "inner": {"a": 1}},
                    }
                }
            ],
        }
    }
    if path:
        holder = at(spec["devices"], *path[:-1])
        if value is ABSENT:
            del holder[path[-1]]
        else:
            holder[path[-1]] = value
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": "c", "namespace": "ml"},
        "spec": spec if kind == "ResourceClaim" else {"spec": spec},
    }


REQUEST = ("requests", 0, "exactly")
CAPACITY = (*REQUEST, "capacity", "requests")
PARAMETERS = ("config", 0, "opaque", "parameters")


def refused_by(before: dict[str, Any], after: dict[str, Any]) -> dict[str, list[str]]:
    """The immutable paths that each minor reports."""
    found = {}
    for minor in SUPPORTED_MINORS:
        release = ClusterTarget(kubernetes=minor, gates={"DRAConsumableCapacity": True}).releases[0]
        errors = judge(after, release, old=before).errors
        found[minor] = [error.path for error in errors if error.rule == "claim.immutable"]
    return found


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("constraints",), []),
        (("constraints",), None),
        ((*REQUEST, "selectors"), []),
        ((*REQUEST, "tolerations"), []),
        ((*REQUEST, "derivedAttributes"), []),
        (("config", 0, "requests"), []),
        ((*CAPACITY, "memory"), "1024Mi"),
        ((*CAPACITY, "memory"), "1073741824"),
        ((*CAPACITY, "memory"), 1073741824),
        ((*CAPACITY, "cores"), "1000m"),
        (PARAMETERS, {"list": [1, 2], "none": 0, "level": 1, "on": True, "inner": {"a": 1}}),
    ],
)
def test_another_spelling_of_the_same_claim_is_accepted(kind, path, value):
    before, after = a_claim(kind), a_claim(kind, *path, value=value)
    assert not any(refused_by(before, after).values())
    assert not any(refused_by(after, before).values())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("path", "value"),
    [
        ((*PARAMETERS, "on"), 1),
        ((*PARAMETERS, "on"), 1.0),
        ((*PARAMETERS, "on"), "true"),
        ((*PARAMETERS, "level"), True),
        ((*PARAMETERS, "level"), 1.0),
        ((*PARAMETERS, "none"), False),
        ((*PARAMETERS, "none"), None),
        ((*PARAMETERS, "none"), ABSENT),
        ((*PARAMETERS, "list"), [True, 2]),
        ((*PARAMETERS, "list"), [2, 1]),
        ((*PARAMETERS, "inner", "a"), True),
        ((*PARAMETERS, "inner"), {}),
        ((*CAPACITY, "memory"), "1025Mi"),
        ((*REQUEST, "adminAccess"), False),
        ((*REQUEST, "capacity"), {}),
        (("constraints",), [{"matchAttribute": "a.example.com/b"}]),
    ],
)
def test_a_value_that_is_another_one_to_a_server_is_refused(kind, path, value):
    before, after = a_claim(kind), a_claim(kind, *path, value=value)
    assert all(paths == ["spec"] for paths in refused_by(before, after).values())
    assert all(paths == ["spec"] for paths in refused_by(after, before).values())


@pytest.mark.parametrize("metadata", [{}, {"labels": {}}, {"annotations": {}}, {"labels": None}])
def test_metadata_of_a_template_with_nothing_in_it_is_none(metadata):
    before = a_claim("ResourceClaimTemplate")
    after = {**before, "spec": {**before["spec"], "metadata": metadata}}
    assert not any(refused_by(before, after).values())


VALUES = (
    True,
    False,
    0,
    1,
    0.0,
    1.0,
    "1",
    "",
    None,
    [],
    {},
    [True],
    [1],
    [1.0],
    {"a": 1},
    {"a": True},
    [{"a": 0}],
)
"""All differ as JSON; most of them equal another one in Python."""


@pytest.mark.parametrize("value", VALUES)
def test_each_value_is_the_same_json_as_itself_alone(value):
    assert [other for other in map(repr, VALUES) if other == repr(value)] == [
        repr(other) for other in VALUES if is_same_json(value, other)
    ]


@pytest.mark.parametrize(("one", "other"), [(None, []), (None, {}), ([], None), ({}, None)])
def test_nothing_is_the_same_to_a_server_however_it_is_spelled(one, other):
    assert is_same_value({"a": one, "b": [{"c": one}]}, {"a": other, "b": [{"c": other}]})
    assert is_same_value({"a": one}, {})
    assert not is_same_json({"a": one}, {"a": other})


@pytest.mark.parametrize("value", [False, 0, "", [None], {"a": 1}])
def test_a_value_is_not_nothing(value):
    assert not is_same_value({"a": value}, {})


def test_the_order_of_keys_does_not_count():
    assert is_same_json({"a": 1, "b": [True]}, {"b": [True], "a": 1})
    assert not is_same_json({"a": 1, "b": [True]}, {"b": [1], "a": 1})
