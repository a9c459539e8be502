"""Programs in TypeScript in the commands of dra-infra, run by Node.js with Pulumi's SDK: no engine, no provider, no cluster."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.languages.commands import Team
from tests.support.languages.platforms import IN_PYTHON, IN_TYPESCRIPT
from tools.node_packages import node_modules

pytestmark = pytest.mark.e2e

PROJECT = "name: gpus\nruntime: nodejs\n"
FLEET = ("--fleet", "hgx-h100 x 4")


@pytest.fixture
def team(tmp_path: Path) -> Team:
    """A repository with the platform in TypeScript, whose packages lie outside of it."""
    team = Team(tmp_path / "repository", tmp_path)
    team.write(Pulumi_yaml=PROJECT, **{"index.ts": IN_TYPESCRIPT, "package.json": '{"main": "index.ts"}'})
    team.project.joinpath("node_modules").symlink_to(node_modules())
    return team


def line_of(text: str) -> int:
    return next(number for number, each in enumerate(IN_TYPESCRIPT.splitlines(), 1) if text in each)


def test_a_program_in_typescript_has_the_objects_of_the_same_program_in_python_byte_for_byte(
    team: Team, tmp_path: Path
) -> None:
    in_python = Team(tmp_path / "python", tmp_path)
    in_python.write(Pulumi_yaml="name: gpus\nruntime: python\n", **{"__main__.py": IN_PYTHON})
    assert team.synth() == in_python.synth()


def test_simulate_places_its_pods_says_how_it_was_run_and_shows_problems_at_their_lines(team: Team) -> None:
    text = IN_TYPESCRIPT.replace("count: 4", "count: 40")
    team.write(**{"index.ts": text})
    done = team.run("simulate", ".", *FLEET, "--format", "json")
    assert done.returncode == 1, done.stdout + done.stderr
    report = json.loads(done.stdout)
    (problem,) = [each for each in report["problems"] if each["severity"] == "error"]
    assert (problem["code"], problem["path"]) == ("too-many-devices", 'GpuClaimTemplate("trainer").count')
    assert problem["place"]["file"] == "index.ts"
    assert problem["place"]["line"] == line_of('new Component("GpuClaimTemplate", "trainer"')
    (note,) = report["notKnown"]
    assert note["reason"] == "node ran the program without an engine"


def test_what_the_compiler_refuses_is_a_problem_at_its_line(team: Team) -> None:
    team.write(**{"index.ts": IN_TYPESCRIPT.replace("const h100 =", "const h100: string =")})
    done = team.run("synth")
    assert done.returncode == 2
    assert f"index.ts:{line_of('const h100 =')}:7: TS2322: " in done.stderr
    assert "[program-refused]" in done.stderr


def test_an_error_that_the_program_throws_is_a_problem_at_its_line(team: Team) -> None:
    text = IN_TYPESCRIPT + 'function fail() { throw new Error("no such team"); }\nfail();\n'
    team.write(**{"index.ts": text})
    done = team.run("synth")
    assert done.returncode == 2
    line = len(IN_TYPESCRIPT.splitlines()) + 1
    assert f"index.ts:{line}:25: Error: no such team [program-raised]" in done.stderr


def test_transforms_of_the_program_are_called(team: Team) -> None:
    text = (
        IN_TYPESCRIPT
        + """
pulumi.runtime.registerResourceTransform(({ type, props, opts }) =>
    type.endsWith(":Pod") ? { props: { ...props, metadata: { ...props.metadata, labels: { seen: "yes" } } }, opts } : undefined);
new KubernetesObject("kubernetes:core/v1:Pod", "pod", { metadata: { name: "pod" }, spec: { containers: [] } });
"""
    )
    team.write(**{"index.ts": text})
    done = team.run("synth", "--format", "json")
    (pod,) = [each for each in json.loads(done.stdout)["objects"] if each["manifest"]["kind"] == "Pod"]
    assert pod["manifest"]["metadata"]["labels"] == {"seen": "yes"}


def test_without_packages_the_command_to_install_them_is_shown(team: Team) -> None:
    team.project.joinpath("node_modules").unlink()
    done = team.run("synth")
    assert done.returncode == 2
    assert "packages-missing" in done.stderr
    assert "npm ci" in done.stderr
