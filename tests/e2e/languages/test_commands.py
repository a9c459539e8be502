"""Programs in other languages in the commands of dra-infra, run by the real host of YAML: no engine, no provider, no cluster."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from tests.support.languages.commands import Team, copy_host
from tests.support.languages.platforms import IN_PYTHON, IN_YAML

pytestmark = pytest.mark.e2e

FLEET = ("--fleet", "hgx-h100 x 4")


@pytest.fixture(scope="session")
def yaml_host(binaries: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the host of YAML."""
    return copy_host(binaries("pulumi-language-yaml"), tmp_path_factory.mktemp("hosts"))


@pytest.fixture
def team(tmp_path: Path, yaml_host: Path) -> Team:
    """A repository with the platform in YAML."""
    team = Team(tmp_path / "repository", yaml_host)
    team.write(Pulumi_yaml=IN_YAML)
    return team


def change(team: Team, before: str, after: str) -> None:
    assert before in IN_YAML
    team.write(Pulumi_yaml=IN_YAML.replace(before, after, 1))


def test_a_program_in_yaml_has_the_objects_of_the_same_program_in_python_byte_for_byte(
    team: Team, tmp_path: Path
) -> None:
    in_python = Team(tmp_path / "python", team.hosts)
    in_python.write(Pulumi_yaml="name: gpus\nruntime: python\n", **{"__main__.py": IN_PYTHON})
    objects = team.synth()
    assert len([*yaml.safe_load_all(objects)]) == 8
    assert objects == in_python.synth()


def test_simulate_and_explain_place_its_pods_and_say_how_it_was_run(team: Team) -> None:
    simulated = team.run("simulate", ".", *FLEET)
    assert simulated.returncode == 0, simulated.stdout + simulated.stderr
    assert "✓ Job vision/train  4 " in simulated.stdout
    assert "pulumi-language-yaml ran the program without an engine" in simulated.stderr
    explained = team.run("explain", "train", ".", *FLEET)
    assert explained.returncode == 0, explained.stdout + explained.stderr
    assert "✓ Job vision/train fits" in explained.stdout


def test_review_compares_two_commits_of_it_confined(team: Team) -> None:
    team.commit()
    change(team, "count: 4", "count: 2")
    team.commit()
    done = team.run("review", "--base", "HEAD~1", *FLEET)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "danger: " in done.stdout
    assert "job-replaced" in done.stdout
    assert "pulumi-language-yaml ran the program without an engine" in done.stdout
    assert "programs ran confined" in done.stderr


def test_problems_of_all_components_are_reported_at_their_lines(team: Team) -> None:
    text = IN_YAML.replace("count: 4", "count: 40").replace("79Gi", "fourty")
    team.write(Pulumi_yaml=text)
    done = team.run("simulate", ".", *FLEET, "--format", "json")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    lines = text.splitlines()
    found = {each["code"]: each for each in json.loads(done.stdout)["problems"]}
    for code, path, key in (
        ("selector-invalid-value", 'GpuDeviceClass("h100").match.memoryAtLeast', "  h100:"),
        ("too-many-devices", 'GpuClaimTemplate("trainer").count', "  trainer:"),
    ):
        assert found[code]["path"] == path
        assert found[code]["place"] == {
            "file": "Pulumi.yaml",
            "line": lines.index(key) + 1,
            "column": 0,
        }
    # The Job takes the claim that was refused, so nothing is said about it.
    errors = {code for code, each in found.items() if each["severity"] == "error"}
    assert errors == {"selector-invalid-value", "too-many-devices"}


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("count: 4", "cuont: 4", "Property cuont does not exist"),
        ("dra-infra:GpuTenant", "dra-infra:GpuTenannt", "unable to find resource type"),
        ("${h100.objectName}", "${h101.objectName}", '"h101" not found'),
        ("${h100.objectName}", "${h100.objectNam}", "objectNam does not exist on h100"),
    ],
)
def test_what_the_language_refuses_is_a_problem_at_its_line(
    team: Team, before: str, after: str, message: str
) -> None:
    change(team, before, after)
    done = team.run("synth")
    line = next(number for number, each in enumerate(IN_YAML.splitlines(), 1) if before in each)
    assert done.returncode == 2
    assert f"Pulumi.yaml:{line}: " in done.stderr
    assert message in done.stderr
    assert "[program-refused]" in done.stderr


def test_settings_secrets_and_outputs_of_other_stacks_are_as_in_python(team: Team) -> None:
    team.write(
        Pulumi_yaml="""\
name: gpus
runtime: yaml
config:
  team: {type: string, default: vision}
  token: {type: string, secret: true}
resources:
  network: {type: "pulumi:pulumi:StackReference", properties: {name: acme/network/prod}}
  settings:
    type: kubernetes:core/v1:ConfigMap
    properties:
      metadata: {name: settings, namespace: "${team}"}
      data:
        zone: ${network.outputs["zone"]}
        token: ${token}
        hidden: {fn::secret: planted-secret}
        joined: {fn::join: ["-", [a, "${team}"]]}
        decoded: {fn::invoke: {function: "acme:index:look", arguments: {text: a}, return: result}}
""",
        Pulumi_dev_yaml="config:\n  gpus:token: {secure: AAABAAAA}\n",
    )
    done = team.run("synth", "--format", "json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "planted-secret" not in done.stdout + done.stderr
    (settings,) = json.loads(done.stdout)["objects"]
    manifest = settings["manifest"]
    assert manifest["metadata"]["namespace"] == "vision"
    assert manifest["data"]["joined"] == "a-vision"
    assert [manifest["data"][key] for key in ("token", "hidden")] == ["[secret]", "[secret]"]
    assert [manifest["data"][key] for key in ("zone", "decoded")] == ["[unknown]", "[unknown]"]


def test_a_function_that_fails_has_the_problem_that_it_has_in_python(team: Team) -> None:
    team.write(
        Pulumi_yaml="""\
name: gpus
runtime: yaml
variables:
  made: {fn::invoke: {function: "kubernetes:yaml:decode", arguments: {text: a}, return: result}}
outputs:
  made: ${made}
"""
    )
    done = team.run("synth")
    assert done.returncode == 2
    assert "document: a document is a single value, not an object [yaml-not-an-object]" in done.stderr
    assert "program-raised" not in done.stderr
