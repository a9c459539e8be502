from __future__ import annotations

import importlib
import json
import linecache
import os
import re
from typing import Any

import pytest
from pulumi.provider.experimental.analyzer import Analyzer

from dra_infra.provider import declarations
from dra_infra.provider.construction import COMPONENTS as CONSTRUCTED
from dra_infra.provider.records import ONE_OF, RECORDS
from tests.contract import provider_declarations, provider_schema
from tests.contract.component_reference import COMPONENTS, annotations_of
from tests.contract.provider_declarations import NOT_SHOWN
from tests.contract.provider_schema import changes, components

SCHEMA: dict[str, Any] = json.loads(provider_schema.PATH.read_text(encoding="utf-8"))


def is_golden_run() -> bool:
    return os.environ.get("DRA_INFRA_UPDATE_GOLDEN") == "1"


def test_the_declared_types_are_those_of_signatures_and_docstrings():
    now = provider_declarations.rendered()
    if is_golden_run():
        provider_declarations.MODULE.write_text(now, encoding="utf-8")
        # The schema is inferred from what was written, docstrings included.
        linecache.checkcache()
        importlib.reload(declarations)
    assert provider_declarations.MODULE.read_text(encoding="utf-8") == now, (
        "run `make golden`, and read what it wrote"
    )


def test_the_schema_is_what_pulumi_infers_from_the_declared_types():
    now = provider_schema.rendered()
    if is_golden_run():
        provider_schema.PATH.write_text(now, encoding="utf-8")
    differences = "\n".join(changes(SCHEMA, json.loads(now)))
    assert provider_schema.PATH.read_text(encoding="utf-8") == now, (
        f"run `make golden`, and name in the changelog what breaks programs:\n{differences}"
    )


@pytest.mark.parametrize("component", components(), ids=lambda each: each.__name__)
def test_pulumi_infers_each_component(component: Any):
    inferred = Analyzer("dra-infra").analyze([component])

    definition = inferred["component_definitions"][component.__name__]
    assert set(definition.inputs) == set(
        SCHEMA["resources"][f"dra-infra:index:{component.__name__}"]["inputProperties"]
    )


def test_every_component_is_in_the_schema_and_is_constructed():
    assert {each.__name__ for each in components()} == set(COMPONENTS) == set(CONSTRUCTED)
    assert set(SCHEMA["resources"]) == {f"dra-infra:index:{name}" for name in COMPONENTS}


@pytest.mark.parametrize("name", COMPONENTS)
def test_every_argument_has_a_property(name: str):
    arguments = {each for each in annotations_of(name) if each != "name"}
    left_out = {each.rpartition(".")[2] for each in NOT_SHOWN if each.partition(".")[0] in (name, each)}

    declared = set(getattr(declarations, f"{name}Args").__annotations__)

    assert arguments - declared == left_out & arguments


def objects() -> list[tuple[str, dict[str, Any]]]:
    """Return each group of properties of the schema by its name."""
    groups = [
        (f"{name} {group}", resource[group])
        for name, resource in SCHEMA["resources"].items()
        for group in ("inputProperties", "properties")
    ]
    return [*groups, *((name, each.get("properties", {})) for name, each in SCHEMA["types"].items())]


@pytest.mark.parametrize(
    ("name", "properties"), objects(), ids=lambda each: each if isinstance(each, str) else ""
)
def test_every_property_is_described_in_words_of_all_languages(name: str, properties: dict[str, Any]):
    texts = {key: each.get("description", "") for key, each in properties.items()}

    assert [key for key, text in texts.items() if not text.endswith(".")] == []
    of_python = re.compile(r"\bdra\.|\bTrue\b|\bFalse\b|\bNone\b(?!`)|attach\(|partial\(")
    assert [key for key, text in texts.items() if of_python.search(text)] == []


def test_every_object_of_the_schema_can_be_read():
    inputs = {name for name in RECORDS if hasattr(declarations, name)}
    assert inputs == set(RECORDS)
    for name, fields in ONE_OF.items():
        assert set(fields) <= set(getattr(declarations, name).__annotations__)


BEFORE: dict[str, Any] = {
    "resources": {
        "p:index:A": {
            "inputProperties": {
                "kept": {"type": "string"},
                "gone": {"type": "string"},
                "count": {"type": "integer"},
            },
            "requiredInputs": [],
            "properties": {"out": {"type": "string"}},
        },
        "p:index:B": {},
    },
    "types": {"p:index:E": {"enum": [{"value": "a"}, {"value": "b"}]}},
}
AFTER: dict[str, Any] = {
    "resources": {
        "p:index:A": {
            "inputProperties": {
                "kept": {"type": "string"},
                "count": {"type": "array", "items": {"type": "integer"}},
                "more": {"type": "string"},
                "must": {"type": "string"},
            },
            "requiredInputs": ["kept", "must"],
            "properties": {},
        }
    },
    "types": {"p:index:E": {"enum": [{"value": "a"}, {"value": "c"}]}},
}


def test_each_change_of_the_schema_is_named_and_those_that_break_programs_say_so():
    assert list(changes(BEFORE, AFTER)) == [
        "breaks: p:index:B is gone",
        "breaks: p:index:A: gone is gone",
        "p:index:A: more is new",
        "breaks: p:index:A: must is new and required",
        "breaks: p:index:A: count was integer, and is list of integer",
        "breaks: p:index:A: kept became required",
        "breaks: p:index:A outputs: out is gone",
        "breaks: p:index:E: the value b is gone",
        "p:index:E: the value c is new",
    ]


def test_a_schema_that_is_the_same_has_no_changes():
    assert list(changes(SCHEMA, SCHEMA)) == []
