from __future__ import annotations

import os
from pathlib import Path

import pytest

from dra_infra.advice.program import check_program
from dra_infra.documents import yaml
from dra_infra.program.synth import synth

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted(path.parent for path in (ROOT / "examples").glob("*/Pulumi.yaml"))


def test_there_are_examples():
    assert len(EXAMPLES) >= 7


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_an_example_gives_the_manifest_beside_it(example: Path):
    program = synth(example)
    expected = example / "expected.yaml"
    written = yaml.write_manifests(each.manifest for each in program.objects)
    if os.environ.get("DRA_INFRA_UPDATE_GOLDEN") == "1":
        expected.write_text(written)
    assert expected.exists(), "run `make golden`, and read what it wrote"
    assert expected.read_text() == written
    assert [str(problem) for problem in check_program(program)] == []


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_an_example_says_what_it_is_and_how_to_run_it(example: Path):
    readme = (example / "README.md").read_text()
    assert readme.startswith("# ")
    assert f"examples/{example.name}" in readme


def test_the_root_project_runs_the_quickstart():
    root, quickstart = synth(ROOT), synth(ROOT / "examples" / "00-quickstart")
    assert [each.manifest for each in root.objects] == [each.manifest for each in quickstart.objects]
