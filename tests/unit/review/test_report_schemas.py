from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from importlib.resources import files

import pytest

from dra_infra.codes import CODES
from dra_infra.errors import Place, Problem
from dra_infra.program_objects import NotSeen
from dra_infra.review import render_json, render_junit, render_sarif, review
from tests.support.review.json_schema import find_violations

SCHEMA = json.loads((files("dra_infra.review") / "schemas/review-v1.json").read_text(encoding="utf-8"))

MESSAGE = {"type": "object", "required": ["text"], "additionalProperties": False, "properties": {"text": {"type": "string"}}}  # fmt: skip
POSITIVE = {"type": "integer", "minimum": 1}
LOCATION = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "physicalLocation": {
            "type": "object",
            "required": ["artifactLocation"],
            "additionalProperties": False,
            "properties": {
                "artifactLocation": {
                    "type": "object",
                    "required": ["uri"],
                    "additionalProperties": False,
                    # A URI reference, RFC 3986 section 2: nothing else may stand in one unescaped.
                    "properties": {"uri": {"type": "string", "pattern": r"^([\w.~:/?#@!$&'()*+,;=-]|%[0-9A-F]{2})+$"}},
                },
                "region": {
                    "type": "object",
                    "required": ["startLine"],
                    "additionalProperties": False,
                    "properties": {"startLine": POSITIVE, "startColumn": POSITIVE},
                },
            },
        },
        "logicalLocations": {
            "type": "array",
            "uniqueItems": True,
            "items": {
                "type": "object",
                "additionalProperties": False,
                "properties": {"fullyQualifiedName": {"type": "string"}, "kind": {"type": "string"}},
            },
        },
    },
}  # fmt: skip
SARIF = {
    "type": "object",
    "required": ["version", "runs"],
    "additionalProperties": False,
    "properties": {
        "$schema": {"type": "string", "pattern": "sarif-2[.]1[.]0[.]json$"},
        "version": {"const": "2.1.0"},
        "runs": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["tool"],
                "additionalProperties": False,
                "properties": {
                    "tool": {
                        "type": "object",
                        "required": ["driver"],
                        "additionalProperties": False,
                        "properties": {
                            "driver": {
                                "type": "object",
                                "required": ["name"],
                                "additionalProperties": False,
                                "properties": {
                                    "name": {"type": "string"},
                                    "version": {"type": "string"},
                                    "rules": {
                                        "type": "array",
                                        "uniqueItems": True,
                                        "items": {
                                            "type": "object",
                                            "required": ["id"],
                                            "additionalProperties": False,
                                            "properties": {"id": {"type": "string"}, "shortDescription": MESSAGE, "help": MESSAGE},
                                        },
                                    },
                                },
                            }
                        },
                    },
                    "properties": {"type": "object", "required": ["provenance"], "properties": {"provenance": SCHEMA["$defs"]["provenance"]}},
                    "columnKind": {"type": "string", "enum": ["utf16CodeUnits", "unicodeCodePoints"]},
                    "invocations": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "required": ["executionSuccessful"],
                            "additionalProperties": False,
                            "properties": {
                                "executionSuccessful": {"type": "boolean"},
                                "toolExecutionNotifications": {
                                    "type": "array",
                                    "items": {
                                        "type": "object",
                                        "required": ["message"],
                                        "additionalProperties": False,
                                        "properties": {"level": {"enum": ["none", "note", "warning", "error"]}, "message": MESSAGE},
                                    },
                                },
                            },
                        },
                    },
                    "results": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "required": ["message"],
                            "additionalProperties": False,
                            "properties": {
                                "ruleId": {"type": "string"},
                                "ruleIndex": {"type": "integer", "minimum": 0},
                                "level": {"enum": ["none", "note", "warning", "error"]},
                                "message": MESSAGE,
                                "locations": {"type": "array", "items": LOCATION},
                            },
                        },
                    },
                },
            },
        },
    },
}  # fmt: skip
"""The properties of SARIF 2.1.0 (OASIS standard, sections 3.13 to 3.58) that we write, and what each has to be."""


@pytest.fixture
def reviews(make, sample):
    """Reviews in which every part of a report is there, missing, or strange."""
    fleet = make.fleet()
    undecided = make.program(
        make.template("trainer", "trainer-1", place=Place(file="/builds/my infra/a#b.yaml", line=3)),
        make.workload("Job", "train", make.pod_spec(template="trainer-1")),
        make.object("ConfigMap", "\ud800\x00", None, data={"k": "</script>\u2028"}),
        problems=(
            Problem(path='GpuClaim("a")', code="does-not-fit", message="m", hint="h", place=Place(file="a b.py")),
            Problem(path="x", code="field-dropped", message="m", severity="warning"),
        ),
        not_seen=(NotSeen(what="Release", name="gpu-operator", reason="r"),),
    )  # fmt: skip
    return [
        sample,
        review(make.program(), make.program(), base_label="main"),
        review(make.program(), undecided, base_label="main", after=make.place(fleet)),
        review(undecided, make.program(stack="prod"), base_label="main", before=make.place(fleet), after=make.place(fleet)),
    ]  # fmt: skip


def test_every_json_report_is_what_the_published_schema_says_and_no_field_is_undescribed(reviews):
    for each in reviews:
        assert list(find_violations(json.loads(render_json(each)), SCHEMA, closed=True)) == []


def test_the_published_schema_requires_each_field_that_it_describes_once():
    def objects(schema):
        if isinstance(schema, dict):
            yield from [schema] if "required" in schema and "properties" in schema else []
            yield from (each for part in schema.values() for each in objects(part))
        elif isinstance(schema, list):
            yield from (each for part in schema for each in objects(part))

    found = list(objects(SCHEMA))
    assert len(found) > 10
    for each in found:
        assert sorted(each["required"]) == sorted(each["properties"])


@pytest.mark.parametrize(
    ("change", "violation"),
    [
        (lambda data: data.pop("verdict"), "$.verdict: is missing"),
        (lambda data: data["changes"][0].update(action="moved"), "$.changes[0].action: 'moved' is none of"),
        (lambda data: data["changes"][0]["object"].pop("name"), "$.changes[0].object.name: is missing"),
        (lambda data: data["counts"].update(created=True), "$.counts.created: True is no integer"),
        (lambda data: data["workloads"][0]["after"].update(morePods=-1), "$.workloads[0].after.morePods: -1 is below 0"),
        (lambda data: data.update(more=1), "$.more: is not described"),
    ],
)  # fmt: skip
def test_a_report_that_breaks_the_schema_is_found(sample, change, violation):
    data = json.loads(render_json(sample))
    change(data)
    (found,) = find_violations(data, SCHEMA, closed=True)
    assert found.startswith(violation)


def test_a_program_may_rely_on_fields_that_it_knows_and_must_pass_over_others(sample):
    data = json.loads(render_json(sample)) | {"newField": 1}
    assert list(find_violations(data, SCHEMA)) == []


def test_every_sarif_log_keeps_the_rules_of_the_standard(reviews):
    for each in reviews:
        log = json.loads(render_sarif(each))
        assert list(find_violations(log, {**SARIF, "$defs": SCHEMA["$defs"]})) == []
        (run,) = log["runs"]
        rules = run["tool"]["driver"]["rules"]
        assert all(rules[result["ruleIndex"]]["id"] == result["ruleId"] for result in run["results"])
        assert {rule["id"] for rule in rules} <= set(CODES)


def test_problems_and_dangers_are_at_the_lines_that_they_come_from(make, sample):
    results = json.loads(render_sarif(sample))["runs"][0]["results"]
    assert [(each["ruleId"], each["level"]) for each in results] == [
        ("no-longer-fits", "error"),
        ("workload-deleted", "warning"),
        ("job-replaced", "warning"),
        ("workload-rolls", "note"),
    ]
    assert results[0]["locations"] == [
        {"logicalLocations": [{"fullyQualifiedName": "StatefulSet ml/pretrain", "kind": "resource"}]}
    ]
    problem = Problem(
        path="x", code="does-not-fit", message="m", place=Place(file="infra/__main__.py", line=7, column=3)
    )
    result = review(make.program(), make.program(problems=(problem,)), base_label="main")
    (found,) = json.loads(render_sarif(result))["runs"][0]["results"]
    assert found["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "infra/__main__.py"},
        "region": {"startLine": 7, "startColumn": 3},
    }


def test_a_workload_without_a_place_fails_its_case_and_dangers_pass_theirs(sample):
    suite = ET.fromstring(render_junit(sample))  # noqa: S314  (our own text)
    assert (suite.get("tests"), suite.get("failures")) == ("9", "1")
    first = suite.find("testcase")
    assert first is not None
    assert (first.get("classname"), first.get("name")) == ("verdict", sample.verdict)
    cases = {(case.get("classname"), case.get("name")): case for case in suite}
    failure = cases["placement", "StatefulSet ml/pretrain"].find("failure")
    assert failure is not None
    assert failure.get("type") == "no-longer-fits"
    assert "hint: before this change it fits" in (failure.get("message") or "")
    assert cases["dangers", "Job ml/train"].find("failure") is None
    assert "[job-replaced]" in (cases["dangers", "Job ml/train"].findtext("system-out") or "")


def test_a_warning_does_not_fail_a_case(make):
    warning = Problem(path="x", code="field-dropped", message="m", severity="warning")
    text = render_junit(review(make.program(), make.program(problems=(warning,)), base_label="main"))
    assert ET.fromstring(text).get("failures") == "0"  # noqa: S314  (our own text)
    assert "field-dropped" in text
