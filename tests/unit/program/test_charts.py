from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from dra_infra.errors import ProgramError
from dra_infra.program.charts import render_chart, with_charts
from dra_infra.program.isolated import RunningSynth
from dra_infra.program.program_json import program_from_json, program_to_json, write_json
from dra_infra.program.synth import synth
from dra_infra.program_objects import Program
from dra_infra.target import ClusterTarget

# The real helm renders in tests/e2e/platform/test_rendered_charts.py; here is what happens when it does not.

RELEASE = "kubernetes:helm.sh/v3:Release"
HEAD = "import pulumi\nimport pulumi_kubernetes as k8s\n"


def release(**arguments: object) -> str:
    given = {"chart": "paint", "namespace": "studio", **arguments}
    return HEAD + f'k8s.helm.v3.Release("paint", {", ".join(f"{k}={v!r}" for k, v in given.items())})\n'


@pytest.fixture
def project(tmp_path: Path) -> Callable[[str], Path]:
    def write(program: str) -> Path:
        (tmp_path / "Pulumi.yaml").write_text("name: app\nruntime: python\n")
        (tmp_path / "__main__.py").write_text(program)
        return tmp_path

    return write


@pytest.fixture
def helm(tmp_path: Path) -> Callable[[str], str]:
    """A program in the place of helm."""

    def write(body: str) -> str:
        path = tmp_path / "helm"
        path.write_text(f"#!{sys.executable}\nimport json, sys, time\n{body}\n")
        path.chmod(0o755)
        return str(path)

    return write


def problem_of(program: Program) -> tuple[str, str, str]:
    (problem,) = program.problems
    return problem.path, problem.code, problem.message


def test_a_release_is_read_with_its_nulls(project):
    values = {"color": None, "extra": {"a": [1, None], "b": None}}
    program = synth(
        project(
            release(
                name="blue",
                version="1.2.3",
                repository_opts={"repo": "https://charts.example"},
                values=values,
                allow_null_values=True,
                skip_crds=True,
            )
        )
    )
    (found,) = program.releases
    assert (found.name, found.namespace, found.chart) == ("blue", "studio", "paint")
    assert (found.repository, found.version, found.has_crds) == ("https://charts.example", "1.2.3", False)
    assert found.values == values
    assert found.place is not None
    assert program_from_json(write_json(program_to_json(program))) == program
    assert RunningSynth(project(release(values=values))).result().releases[0].values == values


def test_what_helm_is_asked_is_what_an_installation_would_be(project, helm):
    folder = project(release(repository_opts={"repo": "https://charts.example"}, version="1.2.3"))
    (found,) = synth(folder).releases
    path = helm(
        "data = json.load(sys.stdin)\n"
        "print(json.dumps({'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': 'asked'},"
        " 'data': {'words': json.dumps(sys.argv[1:]), 'values': json.dumps(data)}}))"
    )

    (manifest,) = render_chart(found, root=folder, target=ClusterTarget(kubernetes="1.36"), helm=path)

    words = json.loads(manifest["data"]["words"])
    assert words[0] == "template"
    assert words[-3:] == ["--", "paint", "paint"]
    options = dict(word.partition("=")[::2] for word in words[1:-3])
    assert options["--namespace"] == "studio"
    assert options["--repo"] == "https://charts.example"
    assert options["--version"] == "1.2.3"
    assert options["--kube-version"] == "1.36.0"
    assert "resource.k8s.io/v1/DeviceClass" in options["--api-versions"].split(",")
    assert {"--no-hooks", "--include-crds"} <= {*options}
    assert manifest["data"]["values"] == "{}"


def test_no_name_of_a_release_is_an_option_of_helm(project, helm):
    hostile = "--post-renderer=/bin/evil"
    folder = project(release(repository_opts={"repo": hostile}, version=hostile))
    (found,) = synth(folder).releases
    found = replace(found, name=hostile, namespace=hostile, chart=hostile)
    path = helm(
        "print(json.dumps({'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': 'asked'},"
        " 'data': {'words': json.dumps(sys.argv[1:])}}))"
    )
    (manifest,) = render_chart(found, root=folder, target=ClusterTarget(kubernetes="1.36"), helm=path)
    words = json.loads(manifest["data"]["words"])
    assert hostile not in words[: words.index("--")]


def test_without_helm_nothing_is_rendered_and_the_user_is_told(project):
    folder = project(release())
    with pytest.raises(ProgramError) as failure:
        with_charts(synth(folder), folder, helm="no-such-helm")
    (problem,) = failure.value.problems
    assert (problem.path, problem.code) == ("--charts", "helm-not-found")
    assert "no-such-helm" in problem.message


def test_a_chart_that_helm_refuses_is_a_problem_of_its_release(project, helm):
    folder = project(release())
    path = helm("""sys.exit("walk.go: a warning\\nError: values don't meet the schema")""")
    program = with_charts(synth(folder), folder, helm=path)
    where, code, message = problem_of(program)
    assert (where, code) == ('Release("paint")', "chart-not-rendered")
    assert message == "helm does not render paint: values don't meet the schema"
    assert [(each.what, each.name) for each in program.not_seen] == [(RELEASE, "paint")]


def test_a_helm_that_does_not_end_is_stopped(project, helm):
    folder = project(release())
    program = with_charts(synth(folder), folder, helm=helm("time.sleep(60)"), timeout=0.5)
    assert problem_of(program)[1:] == (
        "chart-not-rendered",
        "helm does not render paint: helm took more than 0.5 s",
    )


def test_a_chart_that_renders_no_yaml_is_told_as_a_file_would_be(project, helm):
    folder = project(release())
    program = with_charts(synth(folder), folder, helm=helm(r"print('a: 1\na: 2')"))
    (problem,) = program.problems
    assert problem.code == "yaml-duplicate-key"
    assert problem.path.startswith('Release("paint")')


@pytest.mark.parametrize(
    "argument",
    [
        "values={'token': pulumi.Output.secret('hush')}",
        "values={'from': k8s.core.v1.Namespace('n').metadata.name}",
        "value_yaml_files=[pulumi.StringAsset('a: 1')]",
    ],
    ids=["secret", "unknown", "file"],
)
def test_values_that_are_not_to_be_had_keep_a_chart_unseen(project, helm, argument):
    folder = project(release()[:-2] + f", {argument})\n")
    program = with_charts(synth(folder), folder, helm=helm("sys.exit('must not run')"))
    assert [str(each) for each in program.not_seen] == [
        f"{RELEASE} paint: its values are secret or only known later"
    ]
    assert program.problems == ()


def test_objects_of_a_chart_know_their_release(project, helm):
    text = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d, namespace: studio}"
    folder = project(release())
    program = with_charts(synth(folder), folder, helm=helm(f"print({text!r})"))
    (found,) = program.objects
    assert (str(found.ref), found.chart, found.component) == ("Deployment studio/d", "paint", None)
    assert found.urn == f"urn:pulumi:dev::app::{RELEASE}$kubernetes:apps/v1:Deployment::paint:studio/d"
    assert found.place == program.releases[0].place
    assert program.not_seen == ()


ALL_FILES = """
import os
found = {}
for folder, _, names in os.walk(sys.argv[-1], followlinks=True):
    for name in names:
        path = os.path.join(folder, name)
        found[os.path.relpath(path, sys.argv[-1]).replace(os.sep, ".")] = open(path, errors="replace").read()
print(json.dumps({'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': 'files'},
    'data': {**found, 'environment': json.dumps(dict(os.environ))}}))
"""
"""What a template can print of a chart, by .Files; helm follows links."""


@pytest.fixture
def chart(project, tmp_path: Path) -> Path:
    project(release(chart="./paint"))
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "config").write_text("planted-token")
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "a.txt").write_text("shared")
    (tmp_path / "paint" / "files").mkdir(parents=True)
    (tmp_path / "paint" / "Chart.yaml").write_text("apiVersion: v2\nname: paint\nversion: 1.0.0\n")
    return tmp_path / "paint"


def rendered(folder: Path, helm: str, **changes: str) -> dict[str, str]:
    (found,) = synth(folder).releases
    (manifest,) = render_chart(
        replace(found, **changes), root=folder, target=ClusterTarget(kubernetes="1.36"), helm=helm
    )
    return manifest["data"]


@pytest.mark.parametrize(
    "target", ["../../.git/config", "../..", "..", "../../..", "../../.git", "/", "/etc/hostname"]
)
def test_a_chart_with_a_link_that_leads_out_is_not_rendered(chart: Path, helm, target: str):
    (chart / "files" / "x").symlink_to(target)
    with pytest.raises(ProgramError) as failure:
        rendered(chart.parent, helm(ALL_FILES))
    (problem,) = failure.value.problems
    assert (problem.code, "'files/x" in problem.message) == ("chart-leads-out", True)


def test_a_chart_that_is_a_link_out_of_the_repository_is_not_rendered(chart: Path, helm, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside")
    (outside / "Chart.yaml").write_text("name: x\n")
    (chart.parent / "out").symlink_to(outside)
    with pytest.raises(ProgramError) as failure:
        rendered(chart.parent, helm(ALL_FILES), chart="./out")
    assert [each.code for each in failure.value.problems] == ["chart-leads-out"]


def test_links_inside_the_repository_are_rendered(chart: Path, helm):
    (chart / "files" / "x").symlink_to("../../shared")
    (chart / "files" / "y").symlink_to("../../shared/a.txt")
    found = rendered(chart.parent, helm(ALL_FILES))
    assert (found["files.x.a.txt"], found["files.y"]) == ("shared", "shared")


def test_a_chart_at_the_top_of_the_repository_is_rendered_without_its_git(chart: Path, helm):
    (chart.parent / "Chart.yaml").write_text("apiVersion: v2\nname: top\nversion: 1.0.0\n")
    found = rendered(chart.parent, helm(ALL_FILES), chart=".")
    assert (found["shared.a.txt"], "planted-token" in json.dumps(found)) == ("shared", False)


def test_helm_gets_variables_by_name(chart: Path, helm, monkeypatch: pytest.MonkeyPatch):
    passed = {"HTTPS_PROXY": "http://proxy.example", "HELM_CACHE_HOME": "/cache", "SSL_CERT_FILE": "/ca"}
    for name, value in {**passed, "GITLAB_TOKEN": "planted", "HELM_KUBETOKEN": "planted"}.items():
        monkeypatch.setenv(name, value)
    environment = json.loads(rendered(chart.parent, helm(ALL_FILES))["environment"])
    assert passed.items() <= environment.items()
    assert {"PATH", "HOME"} <= {*environment}
    assert "planted" not in environment.values()
