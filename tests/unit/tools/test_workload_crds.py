from __future__ import annotations

import json
import re
import stat
from pathlib import Path

import pytest

from tools import toolsets, workload_crds
from tools.errors import ToolError
from tools.workload_crds import Module

DEFINITION = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: trainings.example.com}
spec: {group: example.com, names: {kind: Training, plural: trainings}}
---
"""
PATCH = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: trainings.example.com}
spec: {conversion: {strategy: Webhook}}
"""
OLD_FORM = DEFINITION.replace("/v1\n", "/v1beta1\n")


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and a PATH with nothing but what a test puts there."""
    monkeypatch.setenv("DRA_INFRA_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


@pytest.fixture
def module(tmp_path: Path) -> Module:
    """A module whose folder holds a definition, a patch of it and an older form."""
    folder = tmp_path / "fetched" / "crds"
    folder.mkdir(parents=True)
    for name, text in (("kind.yaml", DEFINITION), ("patch.yaml", PATCH), ("old.yaml", OLD_FORM)):
        (folder / name).write_text(text)
    return Module(path="example.com/training", version="v1.2.3", sum="h1:one=", folders=["crds"])


def write_go(folder: Path, answer: dict[str, str] | str) -> None:
    text = answer if isinstance(answer, str) else f"cat <<'END'\n{json.dumps(answer)}\nEND"
    go = folder / "go"
    # The shell's own `cat`: there is no other program on the PATH.
    go.write_text(f"#!/bin/sh\nPATH=/usr/bin:/bin\n{text}\n")
    go.chmod(go.stat().st_mode | stat.S_IXUSR)


def write_answer(programs: Path, sum_: str = "h1:one=") -> None:
    write_go(programs, {"Sum": sum_, "Dir": str(programs.parent / "fetched")})


def test_only_definitions_of_the_current_form_are_kept(programs: Path, module: Module):
    write_answer(programs)
    [definition] = module.definitions()
    assert definition["metadata"]["name"] == "trainings.example.com"
    assert definition["apiVersion"] == "apiextensions.k8s.io/v1"


def test_what_is_kept_is_not_fetched_again(programs: Path, module: Module):
    write_answer(programs)
    first = module.definitions()
    (programs / "go").unlink()
    assert module.definitions() == first


def test_another_hash_than_the_pinned_one_is_not_used(programs: Path, module: Module):
    write_answer(programs, "h1:two=")
    with pytest.raises(ToolError, match="nothing of it was used"):
        module.definitions()
    assert not module.kept.exists()


def test_a_missing_go_says_what_to_install(programs: Path, module: Module):
    assert list(programs.iterdir()) == []
    with pytest.raises(ToolError, match="go is not on PATH"):
        module.definitions()


@pytest.mark.parametrize("answer", [{"Error": "no such version"}, "echo 'go: no such version' >&2; exit 1"])
def test_what_go_says_is_told(programs: Path, module: Module, answer: dict[str, str] | str):
    write_go(programs, answer)
    with pytest.raises(ToolError, match="no such version"):
        module.definitions()


def test_a_folder_without_definitions_is_an_error(programs: Path, module: Module):
    write_answer(programs)
    (programs.parent / "fetched" / "elsewhere").mkdir()
    moved = Module(path=module.path, version="v2.0.0", sum=module.sum, folders=["crds", "elsewhere"])
    with pytest.raises(ToolError, match="no definition and no webhook below elsewhere"):
        moved.definitions()


def test_schemas_in_a_file_of_go_become_definitions(programs: Path):
    write_answer(programs)
    source = programs.parent / "fetched" / "generated.go"
    source.parent.mkdir()
    source.write_text('var all = map[string]string{\n\t"machine": `openAPIV3Schema:\n  type: object\n`,\n}\n')
    module = Module(
        path="example.com/machines",
        version="v1.0.0",
        sum="h1:one=",
        folders=["generated.go"],
        schemas={"machine": "example.com/v1/Machine"},
    )
    [definition] = module.definitions()
    [version] = definition["spec"]["versions"]
    assert definition["spec"]["names"]["kind"] == "Machine"
    assert version["schema"] == {"openAPIV3Schema": {"type": "object"}}


@pytest.mark.parametrize("module", workload_crds.load(), ids=lambda module: module.path)
def test_each_pin_is_a_version_with_its_hash(module: Module):
    assert re.fullmatch(r"v\d+\.\d+\.\d+", module.version)
    assert re.fullmatch(r"h1:[A-Za-z0-9+/]{43}=", module.sum)


@pytest.mark.parametrize("path", ["github.com/kubeflow/trainer/v2", "sigs.k8s.io/jobset", "sigs.k8s.io/lws"])
def test_definitions_and_controllers_are_of_one_version(path: str):
    [module] = [each for each in workload_crds.load() if each.path == path]
    [toolset] = [each for each in toolsets.load() if each.name == "workload-controllers"]
    assert f"{path} {module.version} {module.sum}\n" in (toolset.folder / "go.sum").read_text()


def test_pins_name_modules_and_no_addresses():
    assert "://" not in workload_crds.DATA.read_text()
