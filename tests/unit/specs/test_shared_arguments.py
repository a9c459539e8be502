from __future__ import annotations

import pytest

from dra_infra.specs.arguments import (
    check_annotations,
    check_driver,
    check_labels,
    check_namespace,
    check_resource_name,
)
from dra_infra.specs.claims import compile_constraints
from dra_infra.specs.device_classes import compile_class
from dra_infra.specs.request_records import check_toleration
from dra_infra.specs.requests import DistinctAttribute, MatchAttribute, Toleration


def told(problems):
    return [(problem.path, problem.code) for problem in problems]


@pytest.mark.parametrize(
    ("name", "code"),
    [("", "invalid-name"), ("\ud800", "invalid-name"), (5, "wrong-type"), (None, "wrong-type")],
)
def test_a_name_that_the_engine_does_not_take_is_refused(name, code):
    assert told(check_resource_name(name)) == [("name", code)]


def test_any_other_text_names_a_resource():
    assert check_resource_name("Ä b/c") == []


@pytest.mark.parametrize(
    ("release", "gates", "path"),
    [
        (25.8, None, "driver_release"),
        (["0.5"], None, "driver_release"),
        (None, "DynamicMIG", "driver_gates"),
        (None, {5: True}, "driver_gates"),
        ("0.5", {"DynamicMIG": "true"}, "driver_gates['DynamicMIG']"),
    ],
)
def test_release_and_gates_of_another_type_are_refused(release, gates, path):
    assert told(check_driver(release, gates)) == [(path, "wrong-type")]


@pytest.mark.parametrize(
    ("namespace", "code"), [("a.b", "invalid-name"), ("M", "invalid-name"), (3, "wrong-type")]
)
def test_a_namespace_that_no_server_has_is_refused(namespace, code):
    assert told(check_namespace(namespace)) == [("namespace", code)]


@pytest.mark.parametrize(
    ("labels", "path", "code"),
    [
        ({"a b": "x"}, "labels", "invalid-label"),
        ({"A.b/c": "x"}, "labels", "invalid-label"),
        ({"a/b/c": "x"}, "labels", "invalid-label"),
        ({"a": "x" * 64}, "labels['a']", "invalid-label"),
        ({"a": "x y"}, "labels['a']", "invalid-label"),
        ({"a": 1}, "labels['a']", "wrong-type"),
        ({1: "a"}, "labels", "wrong-type"),
        ("team", "labels", "wrong-type"),
    ],
)
def test_labels_that_no_server_takes_are_refused(labels, path, code):
    assert told(check_labels(labels)) == [(path, code)]


def test_labels_in_their_limits_are_taken():
    assert told(check_labels({f"{'b' * 253}/{'C' * 63}": "", "a_.-b": "V" * 63})) == []


@pytest.mark.parametrize(
    ("annotations", "path", "code"),
    [
        ({"a b": "x"}, "annotations", "invalid-label"),
        ({"a": "é" * (128 * 1024)}, "annotations", "value-too-long"),
        ({"a": "\ud800"}, "annotations['a']", "wrong-type"),
    ],
)
def test_annotations_that_no_server_takes_are_refused(annotations, path, code):
    assert told(check_annotations(annotations)) == [(path, code)]


def test_case_does_not_count_in_keys_of_annotations():
    assert told(check_annotations({"Acme.Example/Owner": "é" * 100_000})) == []


@pytest.mark.parametrize(
    ("arguments", "path", "code"),
    [
        ({"key": 5}, "key", "wrong-type"),
        ({"key": "a b"}, "key", "invalid-label"),
        ({"key": "a", "operator": "Equal", "value": "-"}, "value", "invalid-label"),
        ({"operator": "Equals"}, "operator", "unsupported-value"),
        ({"effect": "noexecute"}, "effect", "unsupported-value"),
        ({"effect": None, "seconds": True}, "seconds", "wrong-type"),
        ({"effect": "NoExecute", "seconds": 2**63}, "seconds", "wrong-type"),
        ({"effect": "NoSchedule", "seconds": 1}, "seconds", "invalid-toleration"),
    ],
)
def test_a_toleration_that_no_server_takes_is_refused(arguments, path, code):
    assert told(check_toleration(Toleration(**arguments))) == [(path, code)]


@pytest.mark.parametrize(
    ("constraint", "path", "code"),
    [
        (MatchAttribute("a/b", requests=["gpu", "gpu"]), "constraints[0].requests[1]", "duplicate-item"),
        (MatchAttribute("a/b", requests="gpu"), "constraints[0].requests", "wrong-type"),
        (DistinctAttribute("a/b", requests=["x"]), "constraints[0].requests[0]", "unknown-request"),
        (MatchAttribute("A.b/c"), "constraints[0].attribute", "invalid-attribute-name"),
    ],
)
def test_a_constraint_that_no_server_takes_is_refused(constraint, path, code):
    problems, records = compile_constraints([constraint], ["gpu"])
    assert told(problems) == [(path, code)]
    assert len(records) <= 1


@pytest.mark.parametrize("name", ["gpu", "kubernetes.io/gpu", "requests.example.com/a", "a.b/" + "c" * 64])
def test_an_extended_resource_that_no_server_takes_is_refused(name):
    with pytest.raises(Exception, match="invalid-extended-resource") as error:
        compile_class(extended_resource_name=name)
    assert told(error.value.problems) == [("extended_resource_name", "invalid-extended-resource")]
