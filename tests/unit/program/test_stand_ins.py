"""Stand-ins for outputs of other stacks and objects of the cluster."""

from __future__ import annotations

import json
import os
import textwrap
from pathlib import Path

import pytest

from dra_infra.errors import ProgramError
from dra_infra.program.isolated import RunningSynth
from dra_infra.program.stand_ins import read_stand_ins
from dra_infra.program.synth import synth
from dra_infra.program_objects import SECRET, UNKNOWN

HEAD = """
import pulumi, pulumi_kubernetes as k8s
def config(**data):
    k8s.apiextensions.CustomResource("m", api_version="a.io/v1", kind="M", metadata={"name": "m"}, spec=data)
"""
OUTPUTS = {
    "class": "h100",
    "nested": {"zones": ["a", "b"]},
    "count": 3,
    "token": "[secret]",
    "deep": {"a": ["[secret]"]},
}


@pytest.fixture
def project(tmp_path: Path):
    def write(program: str = "", **files: str) -> Path:
        top = tmp_path / "infra"
        top.mkdir(exist_ok=True)
        (top / "Pulumi.yaml").write_text("name: app\nruntime: python\n")
        (top / "__main__.py").write_text(HEAD + textwrap.dedent(program))
        for name, text in files.items():
            (top / name.replace("__", ".").replace("_", "-")).write_text(text)
        return top

    return write


PROGRAM = """
platform = pulumi.StackReference("prod", stack_name="acme/platform/prod")
config(**{name: platform.get_output(name) for name in ("class", "nested", "count", "token", "deep", "none")},
       inside=platform.require_output("token").apply(lambda token: f"Bearer {token}"))
"""


@pytest.mark.parametrize(
    "run", [synth, lambda folder: RunningSynth(folder).result()], ids=["here", "confined"]
)
def test_outputs_of_another_stack_are_those_of_its_file_and_secret_ones_stay_so(project, run):
    folder = project(
        PROGRAM,
        dra_infra__yaml="outputs: {acme/platform/prod: platform.json}\n",
        platform__json=json.dumps(OUTPUTS),
    )
    program = run(folder)
    assert program.objects[0].manifest["spec"] == {
        "class": "h100",
        "nested": {"zones": ["a", "b"]},
        "count": 3,
        "token": SECRET,
        "deep": SECRET,
        "inside": SECRET,
    }
    assert [str(each) for each in program.not_seen] == [
        "pulumi:pulumi:StackReference prod: platform.json stands in for the outputs of acme/platform/prod"
    ]


def test_a_stack_without_a_stand_in_stays_unknown(project):
    folder = project(PROGRAM, dra_infra__yaml="outputs: {acme/platform/dev: p.json}\n", p__json="{}")
    program = synth(folder)
    assert program.objects[0].manifest["spec"]["class"] == UNKNOWN
    assert "stands in" not in str(program.not_seen[0])


CLUSTER = """
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: found, namespace: ml, labels: {team: a}}
  data: {key: value}
"""


def test_an_object_is_that_of_its_file(project):
    folder = project(
        """
        found = k8s.core.v1.ConfigMap.get("found", "ml/found")
        other = k8s.core.v1.ConfigMap.get("other", "shop/found")
        config(key=found.data["key"], team=found.metadata.labels["team"], other=other.data["key"])
        """,
        dra_infra__yaml="objects: [cluster.yaml]\n",
        cluster__yaml=CLUSTER,
    )
    program = synth(folder)
    assert program.objects[0].manifest["spec"] == {"key": "value", "team": "a", "other": UNKNOWN}
    assert [each.reason for each in program.not_seen] == [
        "cluster.yaml stands in for the object",
        "it is read from a cluster: nothing but its name is known",
    ]


def refused(folder: Path) -> tuple[str, str]:
    with pytest.raises(ProgramError) as error:
        synth(folder)
    (problem,) = error.value.problems
    return problem.path, problem.code


@pytest.mark.parametrize(
    ("settings", "path"),
    [
        ("output: {}\n", "dra-infra.yaml"),
        ("outputs: [a]\n", "dra-infra.yaml"),
        ("objects: {a: b}\n", "dra-infra.yaml"),
        ("outputs: {a: 3}\n", "dra-infra.yaml"),
        ("outputs: {a: missing.json}\n", "missing.json"),
        ("outputs: {a: ../secret.json}\n", "../secret.json"),
        ("outputs: {a: .git/config}\n", ".git/config"),
        ("objects: [.]\n", "."),
        ("outputs: {a: list.json}\n", "list.json"),
        ("outputs: {a: broken.json}\n", "broken.json"),
        (f"objects: {['a.yaml'] * 101}\n", "dra-infra.yaml"),
    ],
)
def test_what_is_no_stand_in_is_refused(project, settings: str, path: str):
    folder = project("config()", dra_infra__yaml=settings, list__json="[]", broken__json="{")
    (folder.parent / "secret.json").write_text("{}")
    (folder / ".git").mkdir()
    (folder / ".git/config").write_text("{}")
    assert refused(folder) == (path, "stand-in-unreadable")


@pytest.mark.parametrize("name", ["dra-infra.yaml", "platform.json", "cluster.yaml"])
def test_a_link_out_of_the_project_shows_nothing(project, tmp_path: Path, name: str):
    outside = tmp_path / "outside"
    outside.write_text('{"class": "planted"}')
    folder = project(
        "config()",
        dra_infra__yaml="outputs: {acme: platform.json}\nobjects: [cluster.yaml]\n",
        platform__json="{}",
    )
    (folder / "cluster.yaml").write_text("")
    (folder / name).unlink()
    (folder / name).symlink_to(outside)
    with pytest.raises(ProgramError) as error:
        synth(folder)
    assert error.value.problems[0].code == "stand-in-unreadable"
    assert "planted" not in str(error.value)


def test_a_file_that_never_ends_is_refused(project):
    folder = project("config()", dra_infra__yaml="outputs: {a: pipe}\n")
    os.mkfifo(folder / "pipe")
    assert refused(folder) == ("pipe", "stand-in-unreadable")


@pytest.mark.parametrize("content", ["[" * 100_000, '"' + "x" * (4 * 2**20) + '"'], ids=["deep", "large"])
def test_a_file_of_too_much_is_refused(project, content: str):
    assert refused(project("", dra_infra__yaml="outputs: {a: a.json}\n", a__json=content)) == (
        "a.json",
        "stand-in-unreadable",
    )


def test_a_project_without_the_file_has_none(tmp_path: Path):
    assert not read_stand_ins(tmp_path).outputs
