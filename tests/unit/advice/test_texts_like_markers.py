"""A text that reads like a marker is judged as any other text: the server would take it for what it is."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_infra.advice.objects import validate
from dra_infra.errors import Problem
from dra_infra.kubernetes.api import UNKNOWN, Placeholder
from dra_infra.markers import SECRET, Secret

CLASS = "gpu.nvidia.com"
CLAIM: dict[str, Any] = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaim",
    "metadata": {
        "name": "c",
        "namespace": "ml",
        "labels": {"a": "b"},
        "annotations": {"a": "b"},
        "finalizers": ["example.com/a"],
    },
    "spec": {
        "devices": {
            "requests": [
                {
                    "name": "gpu",
                    "exactly": {
                        "deviceClassName": CLASS,
                        "allocationMode": "ExactCount",
                        "selectors": [{"cel": {"expression": 'device.driver == "gpu.nvidia.com"'}}],
                        "tolerations": [{"key": "a", "operator": "Exists", "effect": "NoSchedule"}],
                        "capacity": {"requests": {"memory": "1Gi"}},
                    },
                },
                {"name": "any", "firstAvailable": [{"name": "a", "deviceClassName": CLASS}]},
            ],
            "constraints": [{"requests": ["gpu"], "matchAttribute": "gpu.nvidia.com/x"}],
            "config": [
                {
                    "requests": ["gpu"],
                    "opaque": {
                        "driver": CLASS,
                        "parameters": {
                            "apiVersion": "resource.nvidia.com/v1beta1",
                            "kind": "GpuConfig",
                            "sharing": {"strategy": "TimeSlicing", "timeSlicingConfig": {"interval": "Long"}},
                        },
                    },
                }
            ],
        }
    },
}
TEMPLATE = {**CLAIM, "kind": "ResourceClaimTemplate", "spec": {"spec": CLAIM["spec"]}}
DEVICE_CLASS = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "DeviceClass",
    "metadata": {"name": "h100", "labels": {"a": "b"}},
    "spec": {
        "selectors": [{"cel": {"expression": 'device.driver == "gpu.nvidia.com"'}}],
        "extendedResourceName": "example.com/gpu",
    },
}
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "namespace": "ml"},
    "spec": {
        "containers": [
            {
                "name": "m",
                "image": "x:1",
                "resources": {"claims": [{"name": "gpu", "request": "gpu"}]},
            }
        ],
        "resourceClaims": [{"name": "gpu", "resourceClaimName": "c"}],
    },
}
NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ml"}}
OBJECTS = [CLAIM, TEMPLATE, DEVICE_CLASS, POD, NAMESPACE]
LIKE_MARKERS = {
    "[unknown]": "[unknowm]",
    "[secret]": "[secref]",
    "x[secret]y": "x[secref]y",
    "[secret] (changed)": "[secref] (changed)",
}


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where texts, and keys of mappings whose keys are free, stand."""
    if isinstance(value, str):
        yield at
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        if at and at[-1] in ("labels", "annotations", "requests") and isinstance(key, str):
            yield (*at, (key,))
        yield from places(item, (*at, key))


PLACES = [each for each in places(OBJECTS) if each[-1] not in ("kind", "apiVersion") or "parameters" in each]


def put(objects: list[dict[str, Any]], at: tuple[Any, ...], text: str) -> None:
    holder: Any = objects
    for step in at[:-1]:
        holder = holder[step]
    if isinstance(at[-1], tuple):
        holder[text] = holder.pop(at[-1][0], "b")
    else:
        holder[at[-1]] = text


def judged(changes: list[tuple[tuple[Any, ...], str]]) -> tuple[Problem, ...]:
    objects = copy.deepcopy(OBJECTS)
    # Keys last, for they take away the way to what is below.
    for at, text in sorted(changes, key=lambda change: isinstance(change[0][-1], tuple)):
        put(objects, at, text)
    return validate(objects)


def respelled(problem: Problem) -> tuple[str, ...]:
    texts = [problem.path, problem.code, problem.severity, problem.message, problem.hint]
    for text, other in {**LIKE_MARKERS, "unknown": "unknowm", "secret": "secref"}.items():
        texts = [each.replace(other, text) for each in texts]
    return tuple(texts)


@pytest.mark.parametrize("text", LIKE_MARKERS)
@pytest.mark.parametrize("at", PLACES, ids=str)
def test_one_text_like_a_marker_is_judged_as_the_text_with_another_letter(at: tuple[Any, ...], text: str):
    found, other = (judged([(at, each)]) for each in (text, LIKE_MARKERS[text]))
    assert [*map(respelled, found)] == [*map(respelled, other)]


@given(
    st.lists(
        st.tuples(st.sampled_from(PLACES), st.sampled_from(sorted(LIKE_MARKERS))),
        min_size=2,
        max_size=5,
        unique_by=lambda change: change[0],
    )
)
def test_texts_like_markers_are_judged_together_as_others(changes: list[tuple[tuple[Any, ...], str]]):
    other = [(at, LIKE_MARKERS[text]) for at, text in changes]
    assert [*map(respelled, judged(changes))] == [*map(respelled, judged(other))]


VALUES = [each for each in PLACES if not isinstance(each[-1], tuple)]
ACCEPTED = {problem.code for problem in validate(OBJECTS)}


@pytest.mark.parametrize("marker", [UNKNOWN, SECRET, Secret("x[secret]y")], ids=repr)
@pytest.mark.parametrize("at", VALUES, ids=str)
def test_a_marker_breaks_no_rule_wherever_it_stands(at: tuple[Any, ...], marker: Placeholder):
    errors = {each.code for each in judged([(at, marker)]) if each.severity == "error"}
    assert errors <= ACCEPTED


def test_two_values_that_are_not_known_are_not_the_same():
    claim = copy.deepcopy(CLAIM)
    requests = claim["spec"]["devices"]["requests"]
    requests[0]["name"] = requests[1]["name"] = UNKNOWN
    assert "duplicate-request" not in {each.code for each in validate([claim])}
