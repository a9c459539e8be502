"""Programs in Go in the commands of dra-infra: built by Go and run with Pulumi's SDK, with no engine, no provider and no cluster."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.e2e.languages.test_yaml import platform
from tests.support.languages.commands import Team
from tools import sdk_programs

pytestmark = pytest.mark.e2e

MODULE = "module example.com/gpus\n\ngo 1.24\n"


@pytest.fixture
def team(tmp_path: Path) -> Team:
    """A repository with a module that needs no other, so that it is built in seconds."""
    team = Team(tmp_path / "repository", tmp_path)
    team.write(
        Pulumi_yaml="name: gpus\nruntime: go\n",
        **{"go.mod": MODULE, "main.go": "package main\n\nfunc main() {}\n"},
    )
    return team


def test_a_program_with_the_generated_sdk_has_the_objects_of_the_same_program_in_python_byte_for_byte(
    tmp_path: Path,
) -> None:
    binary, *_ = sdk_programs.in_go()
    in_go, in_python = (Team(tmp_path / name, tmp_path) for name in ("go", "python"))
    runtime = {"name": "go", "options": {"binary": binary}}
    in_go.write(Pulumi_yaml=f"name: gpus\nruntime: {json.dumps(runtime)}\n")
    lab: Any = SimpleNamespace(namespace="space")
    _, program = platform(lab)
    in_python.write(
        Pulumi_yaml="name: gpus\nruntime: python\n",
        **{"__main__.py": f'NAMESPACE = "space"\n{program}'},
    )
    objects = in_go.synth()
    assert "kind: ResourceClaimTemplate" in objects
    assert objects == in_python.synth()


def test_a_module_is_built_and_run_confined(team: Team) -> None:
    team.commit()
    done = team.run("review", "--base", "HEAD", "--timeout", "300", "--format", "json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "go built the program, which ran without an engine" in done.stdout
    assert "programs ran confined" in done.stderr


def test_what_the_compiler_refuses_is_a_problem_at_its_line(team: Team) -> None:
    team.write(**{"main.go": "package main\n\nfunc main() {\n\tplatform()\n}\n"})
    done = team.run("synth", "--timeout", "300")
    assert done.returncode == 2
    assert "main.go:4:2: undefined: platform [program-refused]" in done.stderr


def test_a_module_that_is_not_there_is_not_fetched(team: Team) -> None:
    team.write(**{"main.go": 'package main\n\nimport _ "example.com/other"\n\nfunc main() {}\n'})
    done = team.run("synth", "--timeout", "300")
    assert done.returncode == 2
    assert "main.go:3:8: " in done.stderr
    assert "module providing package example.com/other" in done.stderr


def test_a_panic_is_a_problem_at_its_line(team: Team) -> None:
    team.write(**{"main.go": 'package main\n\nfunc main() {\n\tpanic("no such team")\n}\n'})
    done = team.run("synth", "--timeout", "300")
    assert done.returncode == 2
    assert "main.go:4: no such team [program-raised]" in done.stderr
