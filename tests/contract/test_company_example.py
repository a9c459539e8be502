"""The programs of the example of a company, which are several: a platform, and two teams that go by it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from dra_infra.advice.program import check_program
from dra_infra.cli.app import app
from dra_infra.documents import yaml
from dra_infra.program.synth import synth
from dra_infra.program_objects import Program

COMPANY = Path(__file__).parents[2] / "examples" / "20-company"
TEAMS = ("vision", "speech")


@pytest.fixture
def packages(monkeypatch: pytest.MonkeyPatch) -> None:
    """The company's package is there, as it is where it was installed."""
    monkeypatch.syspath_prepend(COMPANY / "acme-gpus")


@pytest.fixture(scope="module")
def platform() -> Program:
    return synth(COMPANY / "platform")


def test_the_platform_has_no_problem_and_thirty_tenants(platform: Program):
    assert [str(problem) for problem in check_program(platform)] == []
    assert sum(each.ref.kind == "ResourceQuota" for each in platform.objects) == 30


@pytest.mark.parametrize("team", TEAMS)
@pytest.mark.usefixtures("packages")
def test_a_team_gives_the_manifest_beside_its_program(team: str):
    program = synth(COMPANY / team)
    written = yaml.write_manifests(each.manifest for each in program.objects)
    expected = COMPANY / team / "expected.yaml"
    if os.environ.get("DRA_INFRA_UPDATE_GOLDEN") == "1":
        expected.write_text(written)
    assert expected.exists(), "run `make golden`, and read what it wrote"
    assert expected.read_text() == written
    assert [str(problem) for problem in check_program(program)] == []


@pytest.mark.parametrize("team", TEAMS)
def test_what_stands_in_for_the_platform_is_what_it_makes(team: str, platform: Program):
    classes = [each.manifest for each in platform.objects if each.ref.kind == "DeviceClass"]
    assert (COMPANY / team / "classes.yaml").read_text() == yaml.write_manifests(classes)
    outputs = json.loads((COMPANY / team / "platform.json").read_text())
    made = {each.ref.name for each in platform.objects if each.ref.kind == "Namespace"}
    assert set(outputs["namespaces"].values()) == made - {"monitoring"}


@pytest.mark.usefixtures("packages")
def test_the_pods_of_a_team_are_placed_as_the_page_shows():
    shown = [line for line in (COMPANY / "README.md").read_text().splitlines() if line.startswith("✓ ")]
    result = CliRunner().invoke(app, ["simulate", str(COMPANY / "vision"), "--fleet", "hgx-h100 x 4"])
    assert len(shown) == 3
    assert [line for line in shown if line not in result.stdout] == []
