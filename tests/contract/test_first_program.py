"""The first program of README.md is right by our own tools: a reader copies it before anything else."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from dra_infra.documents import yaml
from tests.contract.conftest import ENVIRONMENT, paths
from tests.contract.test_documents import is_shown
from tests.support.pages.documents import ROOT, blocks_of

README = ROOT / "README.md"
FIRST = next(block for block in blocks_of(README) if block.language == "python")
(SIMULATE,) = (
    command
    for block in blocks_of(README)
    if "test_first_program" in block.markers.get("made by", "")
    for command in block.commands
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with the program as it stands on the page."""
    made = tmp_path_factory.mktemp("first") / "gpus"
    made.mkdir()
    (made / "Pulumi.yaml").write_text("name: gpus\nruntime: python\n")
    (made / "__main__.py").write_text(FIRST.text)
    return made


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={**ENVIRONMENT, "PATH": paths()},
    )


def test_nothing_that_readers_do_not_see_is_given_to_it():
    assert "given" not in FIRST.markers


def test_its_objects_have_names_and_no_problem(folder: Path):
    result = run("dra-infra synth", folder)
    assert (result.returncode, result.stderr) == (0, "")
    kinds = [each["kind"] for each in yaml.read_manifests(result.stdout)]
    assert sorted(kinds) == ["DeviceClass", "Job", "ResourceClaimTemplate"]
    assert "[unknown]" not in result.stdout


def test_the_api_servers_accept_its_objects(folder: Path):
    result = run("dra-infra synth | dra-infra validate -", folder)
    assert result.returncode == 0
    assert "0 errors, 0 warnings" in result.stdout + result.stderr


def test_its_pods_fit_as_the_page_says(folder: Path):
    result = run(SIMULATE.text, folder)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith("✓ Job ml/train ")
    assert "[unknown]" not in result.stdout
    assert is_shown(SIMULATE.shown, result.stdout)
