"""Events as the engine writes them, and as nobody should."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dra_infra.program.preview_events import MAX_MESSAGES, MAX_PATHS, MAX_TEXT, Events

MAP = "urn:pulumi:dev::project::kubernetes:core/v1:ConfigMap::settings"


def read(*events: dict[str, Any], hide: str = "hunter2") -> Events:
    found = Events(hide=lambda text: text.replace(hide, "[secret]"))
    for event in events:
        found.read(json.dumps(event).encode())
    return found


def step(
    op: str, urn: str = MAP, *, outputs: Any = None, kind: str = "resourcePreEvent", **metadata: Any
) -> dict[str, Any]:
    inputs = metadata.pop(
        "inputs",
        {"kind": "ConfigMap", "metadata": {"name": "settings", "namespace": "ml"}, "data": {"a": "hunter2"}},
    )
    new = {"custom": True, "inputs": inputs, "outputs": outputs or {}}
    return {kind: {"metadata": {"op": op, "urn": urn, "new": new, **metadata}, "planning": True}}


def test_the_steps_of_a_resource_stay_in_the_engines_order_with_what_makes_it_replace():
    paths = {"data.k": {"diffKind": "update-replace", "inputDiff": False}}
    (found,) = read(
        step("delete-replaced"),
        step("replace", keys=["data.k"], detailedDiff=paths),
        step("create-replacement", keys=["data.k"], detailedDiff=paths),
    ).resources

    assert found.steps == ("delete-replaced", "replace", "create-replacement")
    assert (found.replacing, found.paths) == (("data.k",), (("data.k", "update-replace"),))
    assert (found.type, found.name, str(found.ref)) == (
        "kubernetes:core/v1:ConfigMap",
        "settings",
        "ConfigMap ml/settings",
    )


def test_only_an_answer_with_a_uid_comes_from_a_server():
    uid = {"metadata": {"uid": "1b4e28ba"}}
    answered = read(step("create"), step("create", kind="resOutputsEvent", outputs=uid))
    echoed = read(step("create"), step("create", kind="resOutputsEvent", outputs={"data": {}}))
    unknown_inputs = {
        "kind": "ConfigMap",
        "metadata": {"name": "a"},
        "data": ["04da6b54-80e4-46f7-96ec-b56ff0331ba9"],
    }
    not_asked = read(step("create"), step("create", kind="resOutputsEvent", inputs=unknown_inputs))

    assert [each.resources[0].answered for each in (answered, echoed, not_asked)] == [True, False, None]


def test_a_name_that_this_preview_made_up_is_not_told():
    made_up = {
        "kind": "Job",
        "metadata": {"name": "a-89ff623", "annotations": {"pulumi.com/autonamed": "true"}},
    }
    deployed = {"inputs": {"kind": "Job", "metadata": {"name": "a-1"}}}

    assert str(read(step("create", inputs=made_up)).resources[0].ref) == "Job settings-*"
    assert str(read(step("create-replacement", inputs=made_up, old=deployed)).resources[0].ref) == "Job a-1"


def test_a_class_has_no_namespace_whatever_a_provider_without_a_server_gives_it():
    given = {"kind": "DeviceClass", "metadata": {"name": "h100", "namespace": "default"}}

    assert str(read(step("create", inputs=given)).resources[0].ref) == "DeviceClass h100"


@pytest.mark.parametrize(
    "path",
    [
        "metadata.managedFields[0].time",
        "metadata.uid",
        "status.phase",
        "__inputs",
        'metadata.annotations["pulumi.com/autonamed"]',
    ],
)
def test_paths_that_nobody_decided_are_noise(path: str):
    diff = {path: {"diffKind": "update"}, "metadata.labels.a": {"diffKind": "add"}}
    assert read(step("update", detailedDiff=diff)).resources[0].paths == (("metadata.labels.a", "add"),)


def test_policies_say_what_comes_of_it_and_of_which_object():
    common = {"resourceUrn": MAP, "policyPackName": "team", "policyPackVersion": "1.0.0"}
    found = read(
        step("create"),
        {
            "policyEvent": {
                **common,
                "policyName": "must",
                "enforcementLevel": "mandatory",
                "message": "key hunter2\n",
            }
        },
        {"policyEvent": {**common, "policyName": "could", "enforcementLevel": "advisory", "message": "b"}},
        {"policyEvent": {**common, "policyName": "fix", "enforcementLevel": "remediate", "message": "c"}},
        {
            "policyRemediationEvent": {
                **common,
                "policyName": "fixed",
                "before": {"a": "hunter2"},
                "after": {},
            }
        },
    ).policies

    assert {each.policy: each.level for each in found} == {
        "must": "mandatory",
        "could": "advisory",
        "fix": "mandatory",
        "fixed": "remediate",
    }
    assert {(each.pack, str(each.ref)) for each in found} == {("team@v1.0.0", "ConfigMap ml/settings")}
    assert "hunter2" not in repr(found)


def test_debug_lines_the_engines_last_words_and_retries_are_noise():
    def say(severity: str, message: str) -> dict[str, Any]:
        return {"diagnosticEvent": {"severity": severity, "message": message, "urn": MAP}}

    found = read(
        say("debug", "registering"),
        say("info#err", "printed"),
        say("warning", "Retry #0; creation failed: x"),
        say("error", "preview failed\n"),
        say("error", "\x1b[31mno hunter2\x1b[0m"),
        say("error", "\x1b[31mno hunter2\x1b[0m"),
    )

    assert [(each.severity, each.text) for each in found.messages] == [("error", "no [secret]")]


@pytest.mark.parametrize(
    "line",
    [
        b"[]",
        b"not json",
        b"\xff\xfe{",
        b"[" * 100_000,
        b'{"resourcePreEvent": 1}',
        b'{"resourcePreEvent": {"metadata": {"op": [], "urn": {}}}}',
        b'{"resourcePreEvent": {"metadata": {"op": "create", "urn": "x", "new": 1, "keys": {}, "detailedDiff": []}}}',
        b'{"resOutputsEvent": {"metadata": {"op": "create", "urn": "never seen"}}}',
        b'{"diagnosticEvent": {"severity": "error", "message": {"a": 1}}}',
        b'{"policyEvent": {"message": null, "enforcementLevel": []}}',
        b'{"summaryEvent": {"resourceChanges": {"create": "many", "update": true}}}',
    ],
)
def test_no_line_ends_the_reading(line: bytes):
    found = read(step("create"))
    found.read(line)
    found.read(json.dumps(step("update")).encode())

    assert found.resources[0].steps == ("create", "update")
    assert all(isinstance(number, int) for number in found.summary.values())


def test_there_is_a_most_of_everything_and_what_is_left_out_is_counted():
    found = read(step("update", detailedDiff={f"data.{number:04}": {} for number in range(1000)}))
    for number in range(MAX_MESSAGES + 7):
        found.read(
            json.dumps(
                {"diagnosticEvent": {"severity": "warning", "message": f"{number} {'x' * 9_000}"}}
            ).encode()
        )
    found.skip()

    assert len(found.resources[0].paths) == MAX_PATHS
    assert len(found.messages) == MAX_MESSAGES
    assert max(len(each.text) for each in found.messages) == MAX_TEXT + 1
    assert found.left_out == ("1 more events of the engine", "7 more warnings of the engine")


def test_a_secret_at_a_cut_is_masked_before_it_is_cut():
    found = read({"diagnosticEvent": {"severity": "error", "message": "x" * (MAX_TEXT - 3) + "hunter2"}})
    assert "hun" not in found.messages[0].text


def test_a_text_too_long_to_be_searched_shows_no_half_of_a_secret():
    secret = "key-" + "s" * 4_000
    found = Events(hide=lambda text: text.replace(secret, "[secret]"))
    message = secret * 40
    found.read(json.dumps({"diagnosticEvent": {"severity": "error", "message": message}}).encode())

    (shown,) = found.messages or (None,)
    assert shown is None or "key-" not in shown.text


def test_a_long_text_still_shows_its_beginning():
    found = read(
        {"diagnosticEvent": {"severity": "error", "message": "field is immutable " + "x" * 1_000_000}}
    )
    assert found.messages[0].text.startswith("field is immutable")
