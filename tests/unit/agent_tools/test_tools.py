from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from dra_infra.agent_tools.tools import TOOLS
from dra_infra.cli.app import app
from tests.support.agent_tools.agent import Agent, codes_of

CLAIM = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: train, namespace: ml}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.nvidia.com, count: 2}}]}}
"""
POD = """\
---
apiVersion: v1
kind: Pod
metadata: {name: train, namespace: ml}
spec:
  containers: [{name: train, image: "registry.example/train:1", resources: {claims: [{name: gpu}]}}]
  resourceClaims: [{name: gpu, resourceClaimName: train}]
"""
OLD_POD = """\
apiVersion: v1
kind: Pod
metadata: {name: serve, namespace: ml}
spec:
  containers: [{name: serve, image: "registry.example/serve:1", resources: {limits: {nvidia.com/gpu: 1}}}]
"""
FLEET = "hgx-h100 x 2"
PLACED: dict[str, Any] = {"manifests": CLAIM + POD, "fleet": FLEET}
CALLS: dict[str, tuple[str, dict[str, Any], tuple[str, ...]]] = {
    "validate": ("validate", {"manifests": CLAIM + POD}, (".",)),
    "validate what is wrong": ("validate", {"manifests": CLAIM.replace("exactly", "exactl")}, (".",)),
    "simulate": ("simulate", {**PLACED, "timeout": 60}, (".", "--fleet", FLEET)),
    "explain": (
        "explain",
        {**PLACED, "name": "pod/train", "timeout": 20},
        ("pod/train", ".", "--fleet", FLEET),
    ),
    "explain a code": ("explain", {"name": "count-below-one"}, ("count-below-one",)),
    "review": (
        "review",
        {**PLACED, "baseManifests": CLAIM},
        (".", "--base-path", "../base", "--fleet", FLEET),
    ),
    "migrate": ("migrate", {"manifests": OLD_POD, "wholeGpus": True}, (".", "--whole-gpus")),
    "catalog": ("catalog", {"section": "gpus", "name": "H100"}, ("gpus", "H100")),
}


def test_the_tools_are_those_of_the_commands_and_change_nothing(agent: Agent) -> None:
    tools = agent.tools()
    assert list(tools) == ["validate", "simulate", "explain", "review", "migrate", "catalog"]
    for tool in tools.values():
        assert tool.description
        assert tool.annotations is not None
        assert tool.annotations.read_only_hint


@pytest.mark.parametrize("name", CALLS)
def test_a_tool_answers_with_the_json_of_its_command(
    name: str, agent: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool, arguments, words = CALLS[name]
    (tmp_path / "objects").mkdir()
    (tmp_path / "base").mkdir()
    (tmp_path / "objects" / "manifests.yaml").write_text(arguments.get("manifests", ""))
    (tmp_path / "base" / "manifests.yaml").write_text(arguments.get("baseManifests", ""))
    monkeypatch.chdir(tmp_path / "objects")
    printed = CliRunner().invoke(app, [tool, *words, "--json"], standalone_mode=False)
    answer = agent.call(tool, **arguments)
    assert not answer.is_error, answer.content
    assert answer.structured_content == json.loads(printed.stdout)
    assert json.loads(answer.content[0].text) == answer.structured_content


def test_a_migration_returns_the_changed_files(agent: Agent) -> None:
    report, changed = agent.call("migrate", manifests=OLD_POD, wholeGpus=True).content
    assert json.loads(report.text)["complete"]
    assert changed.text.startswith("# manifests.yaml\n")
    assert "nvidia.com/gpu: 1" not in changed.text
    assert "kind: ResourceClaimTemplate" in changed.text
    checked = agent.call("validate", manifests=changed.text)
    assert codes_of(checked) == []


def test_wrong_arguments_are_problems_all_at_once(agent: Agent) -> None:
    answer = agent.call("simulate", manifest=CLAIM, gates=["a"], fleet="../fleet", scale={"deployment/a": -1})
    assert answer.is_error
    found = {each["path"]: each["code"] for each in answer.structured_content["problems"]}
    assert found == {
        "manifest": "unknown-argument",
        "gates": "wrong-type",
        "fleet": "wrong-type",
        "scale.deployment/a": "wrong-type",
    }


@pytest.mark.parametrize(
    ("name", "arguments", "codes"),
    [
        ("validate", {}, ["missing-argument"]),
        ("explain", {"name": "pod/train"}, ["missing-argument"]),
        ("explain", {"name": "pod/other", **PLACED}, ["subject-not-known"]),
        ("validate", {"manifests": CLAIM, "kubernetes": "1.2"}, ["unknown-kubernetes"]),
        ("simulate", {"manifests": CLAIM}, ["no-fleet"]),
        ("simulate", {"manifests": CLAIM, "fleet": "hgx-h1000"}, ["fleet-unknown"]),
        ("migrate", {"manifests": OLD_POD, "migProfile": "9g.1gb"}, ["call-refused"]),
        ("catalog", {"section": "gpus", "name": "H1000"}, ["call-refused"]),
        ("there-is-none", {}, ["unknown-argument"]),
    ],
)
def test_what_a_command_refuses_has_the_codes_of_the_command(
    name: str, arguments: dict[str, Any], codes: list[str], agent: Agent
) -> None:
    answer = agent.call(name, **arguments)
    assert answer.is_error
    assert codes_of(answer) == codes


def test_several_calls_at_once_get_each_their_own_answer(agent: Agent) -> None:
    names = [f"claim-{number}" for number in range(6)]
    wrong = CLAIM.replace("count: 2", "count: -1")
    answers = agent.call_at_once(
        [("validate", {"manifests": wrong.replace("train", name)}) for name in names]
    )
    paths = [answer.structured_content["problems"][0]["path"] for answer in answers]
    assert paths == [f"ResourceClaim ml/{name}.spec.devices.requests[0].exactly.count" for name in names]


BOUNDS = {
    "string": {"maxLength", "enum", "const"},
    "array": {"maxItems"},
    "number": {"maximum"},
    "integer": {"maximum"},
    "object": {"maxProperties"},
}


def find_unbounded(schema: Any, place: str) -> Iterator[str]:
    """Yield the places of a JSON Schema where a value has no bound."""
    if isinstance(schema, list):
        for number, each in enumerate(schema):
            yield from find_unbounded(each, f"{place}[{number}]")
    if isinstance(schema, dict):
        if schema.get("type") in BOUNDS and BOUNDS[schema["type"]].isdisjoint(schema):
            yield place
        for key, value in schema.items():
            yield from find_unbounded(value, f"{place}.{key}")


@pytest.mark.parametrize("name", TOOLS)
def test_every_argument_is_bounded(name: str) -> None:
    schema = TOOLS[name].input_schema
    assert schema["additionalProperties"] is False
    assert list(find_unbounded(schema["properties"], name)) == []
