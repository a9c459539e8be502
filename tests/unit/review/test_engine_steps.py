"""The engine's preview beside our own answer."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.resources import files

import pytest

from dra_infra.errors import Problem
from dra_infra.kubernetes.api import ObjectRef
from dra_infra.program_objects import (
    EngineMessage,
    EnginePreview,
    EngineResource,
    PolicyFinding,
    Program,
    ProgramObject,
)
from dra_infra.review import Review, render_html, render_json, render_markdown, render_text, review
from tests.support.review.json_schema import find_violations

CREATE_FIRST = ("create-replacement", "replace", "delete-replaced")
DELETE_FIRST = ("delete-replaced", "replace", "create-replacement")


def urn_of(kind: str, name: str, api: str = "core/v1") -> str:
    return f"urn:pulumi:dev::project::kubernetes:{api}:{kind}::{name}"


def an_object(kind: str, name: str, api: str = "core/v1", **rest: object) -> ProgramObject:
    version = api.removeprefix("core/")
    metadata = {"name": name, "namespace": "ml", **rest.pop("metadata", {})}  # type: ignore[dict-item]
    return ProgramObject(
        urn=urn_of(kind, name, api),
        manifest={"apiVersion": version, "kind": kind, "metadata": metadata, **rest},
    )


def a_program(*objects: ProgramObject, problems: tuple[Problem, ...] = ()) -> Program:
    urns = tuple(sorted(each.urn for each in objects))
    return Program(project="project", stack="dev", objects=objects, problems=problems, resources=urns)


def joined(base: Program, head: Program, preview: EnginePreview | None) -> Review:
    return review(base, head, base_label="main", engine=preview)


SETTINGS = urn_of("ConfigMap", "settings")
LABELLED = a_program(an_object("ConfigMap", "settings", metadata={"labels": {"a": "1"}}))
RELABELLED = a_program(an_object("ConfigMap", "settings", metadata={"labels": {"a": "2"}}))


def test_steps_stand_at_the_change_that_they_are_about():
    found = joined(
        LABELLED, RELABELLED, EnginePreview(resources=(EngineResource(urn=SETTINGS, steps=("update",)),))
    )

    assert [(each.action, each.steps) for each in found.changes] == [("changed", ("update",))]
    assert found.engine is not None
    assert (found.engine.others, found.notes) == ((), ())


@pytest.mark.parametrize(("steps", "order"), [(CREATE_FIRST, "create-first"), (DELETE_FIRST, "delete-first")])
def test_where_the_engine_replaces_what_we_say_changes_it_is_right_and_the_difference_is_told(steps, order):
    seen = EngineResource(urn=SETTINGS, steps=steps, replacing=("metadata.labels.a",))
    found = joined(LABELLED, RELABELLED, EnginePreview(resources=(seen,)))

    (change,) = found.changes
    assert (change.action, change.order, change.replacing) == ("replaced", order, ("metadata.labels.a",))
    assert found.notes == (
        "We differ on ConfigMap ml/settings: it is changed against the base, the engine replaces it, for metadata.labels.a.",
    )


def test_a_danger_follows_from_what_the_engine_does():
    def program(value: str) -> Program:
        template = {"metadata": {"labels": {"a": "a"}}, "spec": {"containers": [{"name": "m", "image": "i"}]}}
        return a_program(
            an_object(
                "Job",
                "train",
                "batch/v1",
                metadata={"annotations": {"v": value}},
                spec={"template": template},
            )
        )

    seen = EngineResource(
        urn=urn_of("Job", "train", "batch/v1"), steps=DELETE_FIRST, replacing=("spec.template",)
    )
    assert joined(program("1"), program("2"), None).dangers == ()

    found = joined(program("1"), program("2"), EnginePreview(resources=(seen,)))
    assert "job-replaced" in {each.code for each in found.dangers}


def test_what_is_deployed_already_keeps_our_action_and_is_told():
    seen = EngineResource(urn=SETTINGS, steps=("same",))
    found = joined(LABELLED, RELABELLED, EnginePreview(resources=(seen,)))

    assert [each.action for each in found.changes] == ["changed"]
    assert found.notes[0].endswith("the engine leaves it as it is.")


def test_an_object_that_the_engine_does_not_know_is_told_unless_it_ended_early_or_helm_makes_it():
    of_chart = a_program(*(replace(each, chart="team/chart") for each in RELABELLED.objects))

    assert "the engine does not know it" in joined(LABELLED, RELABELLED, EnginePreview()).notes[0]
    assert joined(LABELLED, RELABELLED, EnginePreview(whole=False)).notes == ()
    assert joined(LABELLED, of_chart, EnginePreview()).notes == ()


def test_what_only_the_engine_knows_stands_beside_with_the_reason():
    provider = "urn:pulumi:dev::project::pulumi:providers:kubernetes::default"
    component = "urn:pulumi:dev::project::team:index:Thing::thing"
    bucket = "urn:pulumi:dev::project::cloud:storage:Bucket::logs"
    stack = "urn:pulumi:dev::project::pulumi:pulumi:Stack::project-dev"
    ref = ObjectRef(kind="ConfigMap", name="old", namespace="ml")
    preview = EnginePreview(
        resources=(
            EngineResource(urn=stack, steps=("create",), custom=False),
            EngineResource(urn=component, steps=("create",), custom=False),
            EngineResource(urn=provider, steps=("update",)),
            EngineResource(urn=bucket, steps=("create",)),
            EngineResource(urn=urn_of("ConfigMap", "old"), steps=("delete",), ref=ref),
            EngineResource(urn=SETTINGS, steps=("refresh", "update"), ref=ref, paths=(("data.a", "update"),)),
            EngineResource(urn=urn_of("ConfigMap", "still"), steps=("refresh", "same"), ref=ref),
        )
    )
    found = joined(LABELLED, LABELLED, preview)

    assert found.engine is not None
    assert [(each.why, each.name) for each in found.engine.others] == [
        ("drift", "settings"),
        ("gone", "old"),
        ("other", "logs"),
        ("provider", "default"),
        ("component", "thing"),
    ]


@pytest.mark.parametrize(
    ("level", "severity", "failed"),
    [("mandatory", "error", True), ("advisory", "warning", False), ("remediate", "warning", False)],
)
def test_a_policy_is_a_problem_or_a_warning_of_the_object(level, severity, failed):
    policy = PolicyFinding(
        pack="team@v1", policy="no-maps", level=level, urn=SETTINGS, message="no maps here"
    )
    found = joined(LABELLED, RELABELLED, EnginePreview(policies=(policy,)))

    (problem,) = [each for each in found.problems if each.code == "policy-violated"]
    assert (problem.path, problem.severity, problem.message) == (
        "ConfigMap ml/settings",
        severity,
        "team@v1 no-maps: no maps here",
    )
    assert (found.failed, found.policies) == (failed, (policy,))


def test_errors_of_the_engine_are_problems_of_the_resource_or_of_the_program():
    messages = (
        EngineMessage(severity="error", urn=SETTINGS, text="field is immutable"),
        EngineMessage(severity="error", urn="", text="Program failed: boom"),
        EngineMessage(severity="warning", urn="", text="careful"),
    )
    found = joined(LABELLED, RELABELLED, EnginePreview(messages=messages, whole=False))

    assert {(each.code, each.path) for each in found.problems} == {
        ("engine-refused", "ConfigMap ml/settings"),
        ("engine-error", "program"),
    }
    assert found.engine is not None
    assert [each.text for each in found.engine.warnings] == ["careful"]
    assert any("ended before" in each.reason for each in found.not_known)


def test_what_our_components_say_in_the_engine_too_is_said_once():
    problem = Problem(path='GpuClaim("a").count', code="out-of-range", message="is 0")
    head = a_program(*RELABELLED.objects, problems=(problem,))
    said = EngineMessage(severity="error", urn="", text='GpuClaim("a").count: is 0 [out-of-range]')

    assert joined(LABELLED, head, EnginePreview(messages=(said,), whole=False)).problems == (problem,)


def test_steps_that_no_server_looked_at_are_said_to_come_from_the_state_alone():
    def told(*answered: bool | None) -> bool:
        resources = tuple(
            EngineResource(urn=f"{SETTINGS}{number}", steps=("create",), answered=each)
            for number, each in enumerate(answered)
        )
        found = joined(LABELLED, LABELLED, EnginePreview(resources=resources))
        return any("no API server answered" in each.reason for each in found.not_known)

    assert told(False, False)
    assert not told(False, True)
    assert not told(None)


def test_without_a_preview_the_review_is_the_offline_one_and_says_so():
    failure = Problem(path="--engine", code="engine-stack-locked", message="is locked", hint="wait")
    offline = joined(LABELLED, RELABELLED, None)
    found = joined(LABELLED, RELABELLED, EnginePreview(whole=False, failure=failure))

    assert (found.changes, found.problems, found.dangers) == (
        offline.changes,
        offline.problems,
        offline.dangers,
    )
    assert str(found.not_known[-1]) == "the engine's preview: is locked [engine-stack-locked]; wait"


def test_every_report_shows_steps_others_policies_and_warnings():
    bucket = "urn:pulumi:dev::project::cloud:storage:Bucket::lo<b>gs"
    preview = EnginePreview(
        resources=(
            EngineResource(urn=SETTINGS, steps=("update",)),
            EngineResource(urn=bucket, steps=CREATE_FIRST, replacing=("region",)),
        ),
        policies=(
            PolicyFinding(pack="team@v1", policy="p", level="advisory", urn=SETTINGS, message="not nice"),
        ),
        messages=(EngineMessage(severity="warning", urn="", text="be <careful>"),),
        summary={"replace": 1, "same": 4, "update": 1},
    )
    found = joined(LABELLED, RELABELLED, preview)

    for text in (render_text(found), render_markdown(found), render_html(found), render_json(found)):
        for shown in (
            "update",
            "create-replacement",
            "cloud:storage:Bucket",
            "region",
            "not nice",
            "careful",
        ):
            assert shown in text.replace("&#58;", ":")
    for text in (render_markdown(found), render_html(found)):
        assert "<careful>" not in text
    data = json.loads(render_json(found))
    assert data["engine"]["summary"] == {"replace": 1, "same": 4, "update": 1}
    assert data["changes"][0]["steps"] == ["update"]


def test_the_json_of_a_review_with_an_engine_keeps_to_the_schema():
    schema = json.loads((files("dra_infra.review") / "schemas/review-v1.json").read_text())
    failure = Problem(path="--engine", code="engine-timeout", message="late")
    whole = EnginePreview(
        resources=(EngineResource(urn=urn_of("ConfigMap", "new"), steps=("create",)),),
        policies=(PolicyFinding(pack="t", policy="p", level="mandatory", urn="", message="m"),),
        messages=(EngineMessage(severity="warning", urn="", text="w"),),
    )
    for preview in (None, whole, EnginePreview(whole=False, failure=failure)):
        data = json.loads(render_json(joined(LABELLED, RELABELLED, preview)))
        assert list(find_violations(data, schema, closed=True)) == []
