"""Charts among manifests: one problem for each chart, and nothing that Helm would have filled in."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from dra_infra.answers.validating import validate
from dra_infra.errors import Problem
from dra_infra.sources.files import SourceObject, read_sources
from dra_infra.target import ClusterTarget

CLAIM = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: c}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.nvidia.com}}]}}
"""
TEMPLATE = "{{- if .Values.on }}\nkind: ConfigMap\n{{- end }}\n"
QUOTED = CLAIM.replace("name: c}", 'name: "{{ .Release.Name }}"}')


def write(folder: Path, files: dict[str, str]) -> Path:
    """Files below a folder."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def a_chart(name: str, number: int, template: str = TEMPLATE) -> dict[str, str]:
    """A chart with a number of templates."""
    templates = {f"{name}/templates/t{at}.yaml": template for at in range(number)}
    return {f"{name}/Chart.yaml": f"apiVersion: v2\nname: {Path(name).name}\nversion: 1.0.0\n", **templates}


def problems_of(folder: Path) -> list[Problem]:
    """What cannot be read of a folder."""
    return [each for each in read_sources([str(folder)], io.BytesIO()) if isinstance(each, Problem)]


@pytest.mark.parametrize("template", [TEMPLATE, QUOTED])
@pytest.mark.parametrize("number", [1, 2, 7])
def test_the_templates_of_a_chart_are_one_problem(tmp_path: Path, number: int, template: str):
    (problem,) = problems_of(write(tmp_path, a_chart("charts/gpu", number, template)))
    assert problem.code == "chart-not-read"
    assert problem.message.startswith(f"{number} template{'s' if number > 1 else ''} of it")
    assert problem.place is not None
    assert problem.place.file.endswith("charts/gpu/Chart.yaml")
    assert "helm template" in problem.hint


def test_each_chart_is_one_problem_and_charts_inside_of_charts_are_their_own(tmp_path: Path):
    files = {**a_chart("a", 2), **a_chart("b", 1), **a_chart("a/charts/inner", 3)}
    assert [each.message[0] for each in problems_of(write(tmp_path, files))] == ["2", "3", "1"]


def test_templates_that_helm_does_not_fill_in_are_read(tmp_path: Path):
    write(tmp_path, {**a_chart("a", 0), "a/templates/plain.yaml": CLAIM})
    found = list(read_sources([str(tmp_path)], io.BytesIO()))
    kinds = [each.manifest.get("kind") for each in found if isinstance(each, SourceObject)]
    assert "ResourceClaim" in kinds
    assert not [each for each in found if isinstance(each, Problem)]


@pytest.mark.parametrize("name", ["a/templates/t.yaml", "a/other/t.yaml"])
def test_a_template_without_a_chart_is_refused_as_before(tmp_path: Path, name: str):
    assert [each.code for each in problems_of(write(tmp_path, {name: TEMPLATE}))] == ["yaml-syntax"]


def test_a_template_that_is_named_itself_is_read(tmp_path: Path):
    write(tmp_path, a_chart("a", 1))
    assert [each.code for each in problems_of(tmp_path / "a/templates/t0.yaml")] == ["yaml-syntax"]


@pytest.mark.parametrize(("files", "severity"), [({}, "error"), ({"k8s/claim.yaml": CLAIM}, "warning")])
def test_a_chart_beside_objects_that_are_checked_is_a_warning(
    tmp_path: Path, files: dict[str, str], severity: str
):
    write(tmp_path, {**a_chart("charts/gpu", 3), **files})
    report = validate([str(tmp_path)], ClusterTarget(kubernetes="1.37"))
    assert [each.severity for each in report.problems if each.code == "chart-not-read"] == [severity]
    assert report.exit_code() == (0 if files else 1)
