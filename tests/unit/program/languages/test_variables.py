"""The environment of programs in other languages."""

from __future__ import annotations

from pathlib import Path

import pytest

from dra_infra.program.languages.variables import environment_for, find_module_cache
from dra_infra.program.project import Project


@pytest.mark.parametrize(
    ("environment", "folder"),
    [
        ({"GOMODCACHE": "/cache", "GOPATH": "/go", "HOME": "/home/a"}, "/cache"),
        ({"GOPATH": "/go:/other", "HOME": "/home/a"}, "/go/pkg/mod"),
        ({"HOME": "/home/a"}, "/home/a/go/pkg/mod"),
        ({}, "/go/pkg/mod"),
    ],
)
def test_modules_of_go_lie_where_go_keeps_them(environment: dict[str, str], folder: str):
    assert find_module_cache(environment) == Path(folder)


def test_settings_of_the_cli_are_not_those_of_the_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    project = Project(
        name="app",
        root=tmp_path,
        program=tmp_path,
        stack="dev",
        stack_file=tmp_path / "Pulumi.dev.yaml",
        config={},
        variables={"REGION": "eu"},
    )
    monkeypatch.setenv("PULUMI_ACCESS_TOKEN", "planted-token")
    monkeypatch.setenv("TEAM", "ml")
    environment = environment_for(project)
    assert "PULUMI_ACCESS_TOKEN" not in environment
    assert (environment["TEAM"], environment["REGION"]) == ("ml", "eu")
