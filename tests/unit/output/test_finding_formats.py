from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_infra.errors import Place
from dra_infra.output.escaping import block, one_line
from dra_infra.output.finding_formats import Finding, write_junit, write_sarif
from dra_infra.output.finding_formats import TestCase as Case


def sarif_of(*findings, notes=()):
    (run,) = json.loads(write_sarif(findings, provenance={"version": "1.2.3"}, notes=notes))["runs"]
    return run


@pytest.mark.parametrize(
    ("file", "uri"),
    [
        ("infra/__main__.py", "infra/__main__.py"),
        ("/builds/infra/a.yaml", "file:///builds/infra/a.yaml"),
        ("my file#1 100%.yaml", "my%20file%231%20100%25.yaml"),
        ("a:b.yaml", "a%3Ab.yaml"),
    ],
)
def test_a_file_becomes_a_reference_that_leads_back_to_it(file, uri):
    (result,) = sarif_of(Finding(code="x", level="note", message="m", place=Place(file=file)))["results"]
    location = result["locations"][0]["physicalLocation"]
    assert location == {"artifactLocation": {"uri": uri}}
    assert unquote(urlsplit(uri).path) == file


def test_the_rule_of_a_known_code_says_what_it_means_and_that_of_a_policy_nothing():
    run = sarif_of(
        *(Finding(code=code, level="error", message="m") for code in ("no-gpu-on-friday", "no-longer-fits"))
    )
    policy, known = run["tool"]["driver"]["rules"]
    assert policy == {"id": "no-gpu-on-friday"}
    assert known["help"]["text"].endswith("; more: dra-infra explain no-longer-fits")
    assert [each["ruleIndex"] for each in run["results"]] == [0, 1]


def test_a_finding_without_a_file_is_about_its_object():
    (result,) = sarif_of(Finding(code="x", level="warning", message="m", subject="Job ml/train"))["results"]
    assert result["locations"] == [
        {"logicalLocations": [{"fullyQualifiedName": "Job ml/train", "kind": "resource"}]}
    ]


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("[click me](https://evil.example)", r"[click me\](https://evil.example)"),
        (r"[click me\](https://evil.example)", r"[click me\](https://evil.example)"),
        (r"[click me\\](https://evil.example)", r"[click me\\\](https://evil.example)"),
        ("spec.requests[0] (gpu)", "spec.requests[0] (gpu)"),
    ],
)
def test_no_message_holds_a_link(message, shown):
    run = sarif_of(Finding(code="x", level="note", message=message), notes=[message])
    (note,) = run["invocations"][0]["toolExecutionNotifications"]
    assert run["results"][0]["message"]["text"] == note["message"]["text"] == shown


def test_what_is_said_of_the_run_is_no_result():
    run = sarif_of(notes=["cut"])
    assert run["results"] == []
    (note,) = run["invocations"][0]["toolExecutionNotifications"]
    assert (note["level"], note["message"]["text"]) == ("note", "cut")


texts = st.text(st.characters(), max_size=20)


@given(texts, texts, texts, texts)
def test_any_text_gives_xml_that_can_be_read_back(suite, name, code, message):
    case = Case(group=name, name=name, failures=[(code, message)], remarks=[message])
    text = write_junit(suite, [case], properties={name: message})
    root = ET.fromstring(text.encode("utf-8"))  # noqa: S314  (our own text)
    (failure,) = root.iter("failure")
    readable = block(message)
    assert failure.get("message") == readable
    (known,) = root.iter("property")
    assert known.get("value") == one_line(message)


def test_failures_are_counted_by_case():
    text = write_junit(
        "s",
        [Case(group="g", name="a", failures=[("x", "1"), ("y", "2")]), Case(group="g", name="b")],
        properties={},
    )
    assert (ET.fromstring(text).get("tests"), ET.fromstring(text).get("failures")) == ("2", "1")  # noqa: S314
