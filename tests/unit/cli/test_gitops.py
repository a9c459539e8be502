"""Folders with objects of Argo CD and Flux: no command says that nothing needs devices of what it did not look at."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

FLEET = ("--fleet", "hgx-h100 x 1")
CLAIMS = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {{name: {name}}}
spec: {{spec: {{devices: {{requests: [{{name: gpu, exactly: {{deviceClassName: gpu.nvidia.com, count: {count}}}}}]}}}}}}
---
apiVersion: v1
kind: Pod
metadata: {{name: {name}}}
spec:
  resourceClaims: [{{name: gpu, resourceClaimTemplateName: {name}}}]
  containers: [{{name: m, image: registry.example/a:1, resources: {{claims: [{{name: gpu}}]}}}}]
"""
APPLICATION = """\
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {{name: {name}, namespace: argocd}}
spec:
  destination: {{server: "https://kubernetes.default.svc", namespace: ml}}
  source: {{repoURL: "https://git.example/acme/gpu.git", {source}}}
"""
REMOTE = APPLICATION.format(name="vllm", source="chart: vllm-stack, targetRevision: 0.1.0")
RELEASE = """\
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: operator, namespace: flux-system}
spec: {chart: {spec: {chart: gpu-operator, sourceRef: {kind: HelmRepository, name: nvidia}}}}
"""


@pytest.fixture
def gitops(tree: Any) -> Any:
    tree.write("apps/pod.yaml", APPLICATION.format(name="pod", source="path: deploy/pod"))
    tree.write("deploy/pod/pod.yaml", CLAIMS.format(name="one", count=2))
    tree.commit()
    return tree


def test_what_an_application_deploys_is_checked_and_placed(gitops: Any, command: Callable[..., Any]):
    checked = command("validate", "apps", cwd=gitops.root)
    assert (checked.code, "checked 2 objects" in checked.err) == (0, True)
    placed = command("simulate", "apps", *FLEET, "--json", cwd=gitops.root)
    assert placed.code == 0
    (workload,) = json.loads(placed.out)["workloads"]
    assert workload["object"]["namespace"] == "ml"
    assert command("explain", "pod/one", "apps", *FLEET, cwd=gitops.root).code == 0


def test_the_place_of_a_problem_is_the_file_that_is_deployed(gitops: Any, command: Callable[..., Any]):
    gitops.write("deploy/pod/pod.yaml", CLAIMS.format(name="one", count=-1))
    answer = command("validate", "apps", cwd=gitops.root)
    assert answer.code == 1
    assert "deploy/pod/pod.yaml:4:" in answer.err
    assert "[count-below-one]" in answer.err


def test_the_whole_repository_has_each_object_once(gitops: Any, command: Callable[..., Any]):
    answer = command("simulate", ".", *FLEET, "--json", cwd=gitops.root)
    assert (answer.code, len(json.loads(answer.out)["workloads"])) == (0, 1)
    assert "[duplicate-object]" not in answer.err


@pytest.mark.parametrize("text", [REMOTE, RELEASE, f"{REMOTE}---\n{RELEASE}"])
def test_nothing_needs_devices_is_no_answer_about_what_was_not_looked_at(
    tree: Any, command: Callable[..., Any], text: str
):
    tree.write("apps/a.yaml", text)
    tree.commit()
    checked = command("validate", "apps", cwd=tree.root)
    assert (checked.code, checked.codes) == (2, {"source-not-rendered"})
    placed = command("simulate", "apps", *FLEET, cwd=tree.root)
    assert placed.code == 2
    assert "no workload that is placed here" in placed.out
    assert "! not placed here, and so in no verdict: what" in placed.out
    reviewed = command("review", "apps", *FLEET, cwd=tree.root)
    assert "nothing of what it deploys was looked at" in reviewed.out
    assert "no workload needs devices" not in reviewed.out


def test_beside_what_was_looked_at_the_rest_is_named_and_the_verdict_is_about_the_former(
    gitops: Any, command: Callable[..., Any]
):
    gitops.write("apps/vllm.yaml", REMOTE)
    checked = command("validate", "apps", cwd=gitops.root)
    assert (checked.code, checked.codes) == (0, {"source-not-rendered"})
    assert command("validate", "apps", "--strict", cwd=gitops.root).code == 1
    placed = command("simulate", "apps", *FLEET, cwd=gitops.root)
    assert (placed.code, "what Application argocd/vllm deploys" in placed.out) == (0, True)


def test_a_review_compares_what_is_deployed_on_both_sides(gitops: Any, command: Callable[..., Any]):
    gitops.write("deploy/pod/pod.yaml", CLAIMS.format(name="two", count=9))
    answer = command("review", "apps", *FLEET, "--json", cwd=gitops.root)
    report = json.loads(answer.out)
    assert answer.code == 1
    assert {(each["action"], each["object"]["name"]) for each in report["changes"]} >= {
        ("created", "two"),
        ("deleted", "one"),
    }, report["changes"]
    assert "no-longer-fits" in answer.out or "does-not-fit" in answer.out


def test_a_compiled_head_has_no_rendered_objects_on_either_side(gitops: Any, command: Callable[..., Any]):
    head = gitops.root.parent / "head.json"
    gitops.write("apps/pod.yaml", APPLICATION.format(name="pod", source="path: deploy/other"))
    assert command("compile", "apps", "--output", str(head), cwd=gitops.root).code == 0
    gitops.git("checkout", "--", ".")
    answer = command("review", "apps", "--head", str(head), *FLEET, "--json", cwd=gitops.root)
    report = json.loads(answer.out)
    assert [each["object"]["kind"] for each in report["changes"]] == ["Application"]
    assert "paths of the repository are not read here" in answer.out
