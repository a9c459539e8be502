"""`dra-infra synth`: what it tells of classes that it cannot see."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from dra_infra.documents.yaml import read_manifests
from dra_infra.markers import SECRET
from dra_infra.program.program_yaml import write_objects
from dra_infra.program_objects import ProgramObject

PROGRAM = """
import dra_infra as dra

dra.GpuDeviceClass("own")
dra.GpuClaimTemplate("t", device_class={})
"""


@pytest.mark.parametrize(
    ("named", "hint"),
    [
        ('"team-h100"', "write dra.class_ref(...)"),
        ('"gpu.nvidia.co"', 'write device_class="gpu.nvidia.com"'),
        ('"own"', ""),
        ('"gpu.nvidia.com"', ""),
        ('dra.class_ref("team-h100")', ""),
        ('dra.class_ref("gpu.nvidia.com")', ""),
    ],
)
def test_a_class_that_nobody_has_is_told_unless_another_program_makes_it(
    tmp_path: Path, command: Callable[..., Any], named: str, hint: str
):
    (tmp_path / "Pulumi.yaml").write_text("name: p\nruntime: python\n")
    (tmp_path / "__main__.py").write_text(PROGRAM.format(named))
    answer = command("synth", ".", cwd=tmp_path)
    assert answer.code == 0
    assert ("[class-not-known]" in answer.err) == bool(hint)
    assert hint in answer.err


INCOMPLETE = """
import pulumi
import pulumi_kubernetes as k8s

first = k8s.core.v1.ConfigMap("first", metadata={"name": "first"}, data={"a": "[unknown]"})
k8s.core.v1.ConfigMap(
    "later", metadata={"name": "later", "namespace": "ml"}, data={"id": first.id, "x\\u2028y": "a\\u2028b"}
)
k8s.core.v1.Secret("s", metadata={"name": "s"}, string_data={"token": pulumi.Output.secret("hunter2")})
"""


@pytest.fixture
def incomplete(tmp_path: Path) -> Path:
    (tmp_path / "Pulumi.yaml").write_text("name: p\nruntime: python\n")
    (tmp_path / "__main__.py").write_text(INCOMPLETE)
    return tmp_path


def test_objects_that_lack_values_are_comments(incomplete: Path, command: Callable[..., Any]):
    answer = command("synth", ".", cwd=incomplete)
    assert answer.code == 1
    assert answer.err.count("[object-not-complete]") == 2
    assert "__main__.py:6: ConfigMap ml/later: it is written as comments: data.id is known only" in answer.err
    assert [each["metadata"]["name"] for each in read_manifests(answer.out)] == ["first"]
    assert [*yaml.safe_load_all(answer.out)][1:] == [None, None]
    lines = answer.out.splitlines()
    assert "# Secret s is not complete: stringData is secret." in lines
    assert "#   id: '[unknown]'" in lines


def test_json_has_every_object_and_says_which_values_are_missing(
    incomplete: Path, command: Callable[..., Any]
):
    answer = command("synth", ".", "--json", cwd=incomplete)
    assert (answer.code, "object-not-complete" in answer.err) == (0, False)
    objects = {each["manifest"]["metadata"]["name"]: each for each in json.loads(answer.out)["objects"]}
    assert objects["first"]["manifest"]["data"] == {"a": "[unknown]"}
    assert {name: each["markers"] for name, each in objects.items()} == {
        "first": [],
        "later": [{"path": ["manifest", "data", "id"], "kind": "unknown"}],
        "s": [{"path": ["manifest", "stringData"], "kind": "secret"}],
    }


@pytest.mark.parametrize("text", ["a\u2028kind: Pod", "a\x85b", "a\rb", "##[error]x", "a\n---\nkind: Pod"])
def test_no_text_of_an_object_ends_its_comment(text: str):
    manifest = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": text},
        "data": {text: SECRET, "a": text},
    }
    written = write_objects([ProgramObject(urn="u", manifest=manifest)])
    assert [*yaml.safe_load_all(written)] in ([], [None])
    assert all(line.startswith("#") for line in written.split("\n")[:-1])


def test_what_a_server_fills_in_is_not_known_and_what_is_written_stays_known(command, tmp_path):
    (tmp_path / "Pulumi.yaml").write_text("name: p\nruntime: python\n")
    (tmp_path / "__main__.py").write_text(
        "import pulumi_kubernetes as k8s\n"
        "a = k8s.core.v1.ConfigMap('a', metadata={'name': 'a'})\n"
        "uids = {'lifted': a.metadata['uid'], 'applied': a.metadata.apply(lambda m: m['uid']), 'name': a.metadata.apply(lambda m: m['name'])}\n"
        "k8s.core.v1.ConfigMap('b', metadata={'name': 'b'}, data=uids)\n"
    )
    answer = command("synth", ".", "--json", cwd=tmp_path)
    objects = {each["manifest"]["metadata"]["name"]: each for each in json.loads(answer.out)["objects"]}
    assert objects["a"]["manifest"]["metadata"] == {"name": "a"}
    assert objects["b"]["manifest"]["data"]["name"] == "a"
    assert sorted((each["path"], each["kind"]) for each in objects["b"]["markers"]) == [
        (["manifest", "data", "applied"], "unknown"),
        (["manifest", "data", "lifted"], "unknown"),
    ]
