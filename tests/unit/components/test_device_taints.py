from __future__ import annotations

from typing import Any

import pytest

import dra_infra as dra
from dra_infra.advice.program import check_program
from dra_infra.program.synth import synth_function

SERVICE = {"key": "example.com/service", "pool": "node-7"}


def rule(minor: str, **arguments: Any) -> dict[str, Any]:
    program = synth_function(
        lambda: dra.DeviceTaint("it", **arguments), config={"dra-infra:kubernetes": minor}
    )
    assert [str(each) for each in program.problems if each.severity == "error"] == []
    (made,) = program.objects
    return dict(made.manifest)


def problems(minor: str | None = "1.37", **arguments: Any) -> list[tuple[str, str]]:
    config = {"dra-infra:kubernetes": minor} if minor else {}
    program = synth_function(lambda: dra.DeviceTaint("it", **arguments), config=config)
    found = check_program(program)
    return [(each.code, each.path) for each in found if each.severity == "error"]


@pytest.mark.parametrize(
    ("minor", "version"), [("1.34", "v1alpha3"), ("1.35", "v1alpha3"), ("1.36", "v1beta2"), ("1.37", "v1")]
)
def test_a_rule_has_the_newest_version_of_the_minor(minor: str, version: str):
    made = rule(minor, **SERVICE)
    assert made["apiVersion"] == f"resource.k8s.io/{version}"
    assert made["spec"] == {
        "deviceSelector": {"pool": "node-7"},
        "taint": {"key": "example.com/service", "effect": "NoExecute"},
    }


def test_a_target_without_a_minor_has_no_version_for_it():
    assert problems(None, **SERVICE) == [("missing-argument", 'DeviceTaint("it").target')]


def test_a_rule_for_every_device_of_the_cluster_is_refused():
    assert problems(key="example.com/service") == [("missing-argument", 'DeviceTaint("it").pool')]


def test_the_effect_none_is_there_since_1_35():
    assert rule("1.35", **SERVICE, effect="None")["spec"]["taint"]["effect"] == "None"
    assert problems("1.34", **SERVICE, effect="None") == [("unsupported-value", 'DeviceTaint("it").effect')]


@pytest.mark.parametrize(
    ("argument", "value", "code"),
    [
        ("key", "a b", "invalid-label"),
        ("key", "", "invalid-label"),
        ("value", "a b", "invalid-label"),
        ("effect", "Evict", "unsupported-value"),
        ("driver", "GPU", "invalid-name"),
        ("pool", "Node", "invalid-name"),
        ("pool", "rack//a", "invalid-name"),
        ("device", "gpu.3", "invalid-name"),
    ],
)
def test_what_the_server_refuses_is_refused_at_the_argument(argument: str, value: str, code: str):
    assert problems(**{**SERVICE, argument: value}) == [(code, f'DeviceTaint("it").{argument}')]
