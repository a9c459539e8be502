"""Every command takes a hand-written `[unknown]` or `[secret]` for the text that it is."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.conftest import Answer, Tree

OBJECTS = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata:
  name: "[unknown]"
  namespace: ml
  labels: {team: "[unknown]"}
spec:
  devices:
    requests:
    - {name: "[secret]", exactly: {deviceClassName: gpu.nvidia.com}}
---
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: ml}
spec:
  containers: [{name: m, image: "x:1", resources: {claims: [{name: gpu}]}}]
  resourceClaims: [{name: gpu, resourceClaimName: "[unknown]"}]
"""
WITH_ANOTHER_LETTER = OBJECTS.replace("unknown", "unknowm").replace("[secret]", "[secref]")
FINE = OBJECTS.replace("[unknown]", "a").replace("[secret]", "b")
CODES = {"invalid-name", "invalid-label"}


def problems_of(answer: Answer) -> list[tuple[str, str]]:
    """Path and code of each problem of `validate --format json`."""
    text = answer.out.replace("[unknowm]", "[unknown]")
    return [(each["path"], each["code"]) for each in json.loads(text)["problems"]]


def test_validate_refuses_them_as_the_server_does(tmp_path: Path, command: Callable[..., Answer]):
    found = []
    for text in (OBJECTS, WITH_ANOTHER_LETTER):
        (tmp_path / "a.yaml").write_text(text)
        answer = command("validate", "a.yaml", "--format", "json", cwd=tmp_path)
        assert answer.code == 1
        found.append(problems_of(answer))
    assert found[0] == found[1]
    claim = "ResourceClaim ml/[unknown]"
    assert [(path, code) for path, code in found[0] if path.startswith(claim)] == [
        (f"{claim}.metadata.name", "invalid-name"),
        (f"{claim}.metadata.labels", "invalid-label"),
        (f"{claim}.spec.devices.requests[0].name", "invalid-name"),
    ]


@pytest.mark.parametrize("arguments", [("simulate",), ("explain", "pod/p")])
def test_a_pod_that_needs_such_a_claim_is_not_placed(
    tmp_path: Path, command: Callable[..., Answer], arguments: tuple[str, ...]
):
    found = {}
    for name, text in {"like": OBJECTS, "other": WITH_ANOTHER_LETTER, "fine": FINE}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.yaml").write_text(text)
        found[name] = command(*arguments, "a.yaml", "--fleet", "hgx-h100", cwd=tmp_path / name)
    assert [found[name].code for name in ("like", "other", "fine")] == [1, 1, 0]
    assert found["like"].out.startswith("✗ Pod ml/p")
    assert found["like"].codes & CODES == found["other"].codes & CODES == CODES


def test_review_refuses_them_and_shows_that_they_change(
    tree: Tree, command: Callable[..., Answer], tmp_path: Path
):
    tree.write("a.yaml", FINE)
    tree.commit()
    tree.write("a.yaml", OBJECTS)
    answer = command("review", "a.yaml", "--base", "HEAD", "--format", "json", cwd=tree.root)
    assert answer.code == 1
    data: dict[str, Any] = json.loads(answer.out)
    assert {each["code"] for each in data["problems"]} >= CODES
    assert "values known after up" not in answer.out


def test_review_shows_a_secret_that_becomes_a_text_like_its_marker(
    tree: Tree, command: Callable[..., Answer]
):
    pod = """
        apiVersion: v1
        kind: Pod
        metadata: {name: p}
        spec: {containers: [{name: m, image: "x:1", env: [{name: DB_PASSWORD, value: "%s"}]}]}
    """
    tree.write("a.yaml", pod % "hunter2hunter2")
    tree.commit()
    tree.write("a.yaml", pod % "[secret]")
    answer = command("review", "a.yaml", "--base", "HEAD", cwd=tree.root)
    assert "[secret] (changed)" in answer.out
    assert "hunter2" not in answer.out + answer.err
