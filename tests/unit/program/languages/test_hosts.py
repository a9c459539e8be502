"""Where the hosts of languages are, and what is said where one is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from dra_infra.errors import ProgramError
from dra_infra.program.languages.hosts import find_host, folders_of_language, without_loopback
from dra_infra.program.synth import synth


def install(folder: Path, name: str) -> Path:
    folder.mkdir(exist_ok=True)
    file = folder / name
    file.write_text("#!/bin/sh\n")
    file.chmod(0o755)
    return file


def test_the_host_of_path_runs_a_language(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    host = install(tmp_path / "bin", "pulumi-language-yaml")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert find_host("yaml") == host
    assert host in [*folders_of_language("yaml")]


def test_else_the_host_beside_the_cli_runs_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    cli = install(tmp_path / "pulumi", "pulumi")
    host = install(tmp_path / "pulumi", "pulumi-language-yaml")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "pulumi").symlink_to(cli)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert find_host("yaml") == host


@pytest.mark.parametrize(
    ("runtime", "tool"), [("yaml", "pulumi-language-yaml"), ("nodejs", "node"), ("go", "go")]
)
def test_what_runs_a_language_and_is_not_installed_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runtime: str, tool: str
):
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "Pulumi.yaml").write_text(f"name: app\nruntime: {runtime}\n")
    with pytest.raises(ProgramError) as error:
        synth(tmp_path)
    (problem,) = error.value.problems
    assert (problem.path, problem.code) == ("runtime", "language-host-missing")
    assert problem.message.startswith(f"{tool} runs programs in ")
    assert "PATH" in problem.hint


@pytest.mark.parametrize("runtime", ["dotnet", "java", "haskell"])
def test_a_language_that_needs_the_engine_names_it(tmp_path: Path, runtime: str):
    (tmp_path / "Pulumi.yaml").write_text(f"name: app\nruntime: {runtime}\n")
    with pytest.raises(ProgramError) as error:
        synth(tmp_path)
    (problem,) = error.value.problems
    assert (problem.path, problem.code) == ("runtime", "language-not-run")
    assert f"pulumi-language-{runtime}" in problem.message
    assert "review --engine" in problem.hint
    assert [*folders_of_language(runtime)] == []


def test_a_reviewed_program_without_a_network_of_its_own_is_not_run():
    (problem,) = without_loopback("yaml").problems
    assert (problem.path, problem.code) == ("runtime", "language-not-confined")
    assert "--allow network" in problem.hint
