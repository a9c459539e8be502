"""No field of a review is forgotten by the form that has to hold all of them."""

from __future__ import annotations

import dataclasses
import json
import re

import pytest

from dra_infra.errors import Problem
from dra_infra.kubernetes.api import ObjectRef
from dra_infra.placement.placement import JointVerdict, Shortage
from dra_infra.program_objects import EngineMessage, PolicyFinding
from dra_infra.review import render_html, render_json, render_markdown, render_text
from dra_infra.review.changes import Change
from dra_infra.review.dangers import Danger
from dra_infra.review.engine_steps import EngineOnly, EngineSide
from dra_infra.review.placements import WorkloadReview
from dra_infra.review.reviews import Review
from tests.support.review.json_schema import find_violations
from tests.unit.review.test_report_schemas import SCHEMA

CALLED = {
    "base_label": "base",
    "unchanged": "counts",
    "ref": "object",
    "owner": "object",
    "not_known": "notKnown",
    "unplaced": "notPlaced",
    "rooms": "headroom",
    "text": "text",
}
"""Fields that JSON calls something else."""

ELSEWHERE = {
    # By workload; the fleet is that of the head; policies are the engine's; where places begin is for code scanning.
    Review: {"before", "after", "policies", "folder"},
    Change: {"before", "after"},  # the diff, and what both sides are called
    Danger: set(),
    WorkloadReview: {"reasons"},  # of each side
    EngineSide: set(),
    EngineOnly: set(),
    Shortage: set(),
}  # fmt: skip


@pytest.fixture
def full(sample):
    """A review with something in every field."""
    settings = ObjectRef(kind="ConfigMap", name="drifted", namespace="ml")
    side = EngineSide(
        whole=False,
        summary={"create": 1, "same": 3},
        others=(
            EngineOnly(
                why="drift", urn="urn:1", type="kubernetes:core/v1:ConfigMap", name="drifted", ref=settings,
                steps=("refresh", "update"), replacing=("data",), paths=(("data.k", "update"),),
            ),
        ),
        warnings=(EngineMessage(severity="warning", urn="", text="the provider is old\u202e"),),
        failure=None,
    )  # fmt: skip
    policy = PolicyFinding(
        pack="team@v1.0.0", policy="no-latest", level="mandatory", urn="urn:1", message="tag it", ref=settings
    )
    short = Shortage(what="devices", asked=17, there=16, nodes=2, by=(("Job ml/a", 17),))
    joint = JointVerdict(verdict="never", reasons=(str(short),), shortages=(short,))
    first, *rest = sample.changes
    changed = dataclasses.replace(first, steps=("create-replacement", "delete-replaced"), refused=("data",))
    return dataclasses.replace(
        sample,
        changes=(changed, *rest),
        engine=side,
        policies=(policy,),
        source="chart",
        notes=("a note",),
        after=dataclasses.replace(sample.after, joint=joint),
    )


def test_json_has_every_field_and_the_schema_describes_it(full):
    data = json.loads(render_json(full))
    assert list(find_violations(data, SCHEMA, closed=True)) == []
    described = {
        Review: data,
        Change: data["changes"][0],
        Danger: data["dangers"][0],
        WorkloadReview: data["workloads"][0],
        EngineSide: data["engine"],
        EngineOnly: data["engine"]["others"][0],
        Shortage: data["fleet"]["joint"]["shortages"][0],
    }
    for record, found in described.items():
        fields = {CALLED.get(each.name, each.name) for each in dataclasses.fields(record)}
        assert fields - ELSEWHERE[record] - set(found) == set(), record.__name__
    assert data["engine"]["policies"][0]["policy"] == "no-latest"


def test_an_engine_without_a_preview_is_described_too(full):
    failure = Problem(path="engine", code="does-not-fit", message="m")
    failed = dataclasses.replace(full, engine=EngineSide(whole=False, failure=failure))
    assert list(find_violations(json.loads(render_json(failed)), SCHEMA, closed=True)) == []


@pytest.mark.parametrize("form", [render_text, render_markdown, render_html])
def test_a_reader_sees_what_the_engine_adds(full, form):
    text = re.sub(r"<[^>]*>", "", form(full)).replace("&#", "")
    for said in (
        "create-replacement, delete-replaced",
        "drifted",
        "1 create",
        "the provider is old",
        "a note",
    ):
        assert said in text
    assert "chart" in text.split("against")[0]
    assert "\u202e" not in text
