"""Kustomizations: which command builds them, with what, and what comes of what it prints. The real one: `tests/e2e/attacks/test_kustomizations.py`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from dra_infra.errors import ProgramError
from dra_infra.program.kustomizations import build
from dra_infra.sources.subject import find_source

OBJECT = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Puts a shell script on PATH, alone."""
    tools = tmp_path / "tools"
    tools.mkdir()
    monkeypatch.setenv("PATH", str(tools))

    def write(name: str, body: str) -> None:
        (tools / name).write_text(f"#!/bin/sh\n{body}\n")
        (tools / name).chmod(0o755)

    return write


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "repository/prod"
    made.mkdir(parents=True)
    (made / "kustomization.yaml").write_text("resources: []\n")
    return made


def code_of(folder: Path, **arguments: float) -> str:
    with pytest.raises(ProgramError) as error:
        build(folder, inside=folder.parent, **arguments)  # type: ignore[arg-type]  # the timeout alone
    (problem,) = error.value.problems
    return problem.code


@pytest.mark.parametrize(("name", "asked"), [("kubectl", "kustomize ."), ("kustomize", "build .")])
def test_what_is_on_path_builds_it(folder: Path, command, monkeypatch, name: str, asked: str):
    monkeypatch.setenv("PLANTED_TOKEN", "planted")
    command(
        name,
        f'echo "{OBJECT}data: {{asked: \\"$*\\", token: \\"$PLANTED_TOKEN\\", proxy: \\"$HTTPS_PROXY\\"}}"',
    )
    (found,) = build(folder, inside=folder.parent)
    assert found["data"] == {"asked": asked, "token": "", "proxy": "http://127.0.0.1:9"}


def test_kubectl_comes_first(folder: Path, command):
    command("kustomize", "exit 1")
    command("kubectl", f"echo '{OBJECT}'")
    assert len(build(folder, inside=folder.parent)) == 1


def test_without_either_it_is_said(folder: Path, command):
    assert code_of(folder) == "kustomize-not-found"


@pytest.mark.parametrize(
    "body",
    ["echo no >&2; exit 1", "kill -9 $$", "while :; do :; done", "while :; do echo aaaaaaaaaaaaaaaa; done"],
)
def test_one_that_is_refused_killed_endless_or_a_flood_is_a_problem(
    folder: Path, command, monkeypatch, body: str
):
    monkeypatch.setattr("dra_infra.program.kustomizations.MOST_BYTES", 1000)
    command("kubectl", body)
    assert code_of(folder, timeout=5) == "kustomization-not-built"


def test_a_base_outside_of_a_folder_in_no_repository_is_told_as_not_read(folder: Path, command):
    command("kubectl", "echo \"accumulating resources from '../../base'\" >&2; exit 1")
    for inside, is_told in ((folder, True), (folder.parent, False)):
        with pytest.raises(ProgramError) as error:
            build(folder, inside=inside)
        (problem,) = error.value.problems
        assert problem.code == "kustomization-not-built"
        assert ("nothing outside of prod is read" in problem.message) == is_told


def test_a_folder_that_leads_out_is_not_built(folder: Path, command, tmp_path: Path):
    command("kubectl", f"echo '{OBJECT}'")
    (folder.parent / "link").symlink_to(tmp_path)
    with pytest.raises(ProgramError) as error:
        build(folder.parent / "link", inside=folder.parent)
    assert error.value.problems[0].code == "kustomization-not-built"


def test_its_file_makes_a_folder_a_kustomization(folder: Path):
    assert find_source(folder).kind == "kustomization"
    assert find_source(folder, "manifests").kind == "manifests"
    assert find_source(folder.parent).kind == "manifests"
