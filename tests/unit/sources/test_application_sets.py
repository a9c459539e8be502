"""Applications that an ApplicationSet makes where its template has nothing but names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dra_infra.sources.application_sets import NotExpandedError, expand_application_set


def application_set(template: dict[str, Any], *generators: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "ApplicationSet",
        "metadata": {"name": "s", "namespace": "argocd"},
        "spec": {"generators": list(generators), "template": template, **spec},
    }


def named(name: str, path: str = "x") -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"source": {"path": path}}}


def made(manifest: dict[str, Any], top: Path | None = None) -> list[tuple[str, str]]:
    applications = list(expand_application_set(manifest, top))
    assert {each["metadata"]["namespace"] for each in applications} <= {"argocd"}
    return [(each["metadata"]["name"], each["spec"]["source"]["path"]) for each in applications]


@pytest.mark.parametrize(
    "template",
    [
        named("a-{{name}}", "envs/{{ values.env }}"),
        named("a-{{.name}}", "envs/{{ .values.env }}"),
        named("a-{{- .name -}}", "envs/{{.values.env}}"),
    ],
)
def test_a_list_makes_one_application_for_each_element(template: dict[str, Any]):
    elements = [{"name": "one", "values": {"env": "dev"}}, {"name": 2, "values": {"env": True}}]
    found = made(application_set(template, {"list": {"elements": elements}}))
    assert found == [("a-one", "envs/dev"), ("a-2", "envs/true")]


@pytest.mark.parametrize(
    "template",
    [
        named("{{path.basename}}-{{path[0]}}", "{{path}}"),
        named("{{.path.basename}}-{{ .path.basenameNormalized }}", "{{.path.path}}"),
    ],
)
def test_folders_of_the_repository_are_matched_by_patterns(tmp_path: Path, template: dict[str, Any]):
    for name in ("apps/a", "apps/b", "apps/deep/c", "apps/.hidden", "other/d"):
        (tmp_path / name).mkdir(parents=True)
    rows = [{"path": "apps/*"}, {"path": "apps/b", "exclude": True}]
    found = made(application_set(template, {"git": {"directories": rows}}), tmp_path)
    assert [path for _, path in found] == ["apps/a", "apps/deep"]


@pytest.mark.parametrize(
    "manifest",
    [
        application_set(named("x"), {"clusters": {}}),
        application_set(named("x"), {"git": {"files": [{"path": "a.json"}]}}),
        application_set(named("x"), {"git": {"directories": [{"path": "*"}]}}),
        application_set(named("x"), {"matrix": {"generators": []}}),
        application_set(named("x"), {"list": {"elements": [{}], "elementsYaml": "{{ .x }}"}}),
        application_set(named("x"), {"list": {"elements": [{}], "template": {"metadata": {}}}}),
        application_set(named("{{ missing }}"), {"list": {"elements": [{"name": "a"}]}}),
        application_set(named("{{ .name | upper }}"), {"list": {"elements": [{"name": "a"}]}}),
        application_set(named("x"), {"list": {"elements": [{}]}}, templatePatch="a: b"),
        application_set(named("x"), {"list": {"elements": [{}] * 501}}),
        application_set(named("x"), {}),
    ],
)
def test_what_only_argo_cd_can_work_out_is_refused(manifest: dict[str, Any]):
    with pytest.raises(NotExpandedError):
        list(expand_application_set(manifest, None))
