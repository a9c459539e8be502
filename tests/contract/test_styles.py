"""Programs in the styles that teams write Pulumi in: every front gives the same answer, which is that of the plain program.

Each program in `tests/styles` has one workload `ml/train` with two GPUs per pod, and says the number once, as `GPUS` or as `count` in a
manifest. Type checkers read them too (`tools/program_types.py`).
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

import dra_infra as dra
from tests.contract.conftest import ENVIRONMENT, git, paths
from tests.support.pages.documents import ROOT

FLEET = "hgx-h100 x 4"
STYLES = sorted(each.name for each in (ROOT / "tests/styles").iterdir() if each.is_dir())
NUMBER = re.compile(r'(GPUS"?(?: =|:) |count: )2\b')
HALF_KNOWN = {"class-known-later", "name-known-later", "function-of-a-provider"}
"""Styles with a value that only `pulumi up` knows, which `synth` writes as comments."""


def repository_with(style: str, parent: Path) -> Path:
    """A repository with the program."""
    folder = parent / "infra"
    shutil.copytree(ROOT / "tests/styles" / style, folder, ignore=shutil.ignore_patterns("__pycache__"))
    git(folder, "init")
    git(folder, "add", ".")
    git(folder, "commit", "-m", "base")
    return folder


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["dra-infra", *arguments],
        cwd=folder,
        env={**ENVIRONMENT, "PATH": paths()},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def change(folder: Path, gpus: int) -> None:
    """Ask for another number of GPUs."""
    numbers = 0
    for file in sorted(folder.rglob("*")):
        if file.suffix in (".py", ".yaml", ".json") and ".git" not in file.parts:
            text, found = NUMBER.subn(rf"\g<1>{gpus}", file.read_text())
            numbers += found
            file.write_text(text)
    assert numbers == 1


@pytest.mark.parametrize("style", STYLES)
def test_every_front_has_the_same_answer(style: str, tmp_path: Path):
    folder = repository_with(style, tmp_path)
    done = run(folder, "synth")
    assert done.returncode == (1 if style in HALF_KNOWN else 0), done.stderr
    kinds = {
        each["kind"]
        for each in yaml.safe_load_all(re.sub(r"^# ", "", done.stdout, flags=re.MULTILINE))
        if each
    }
    assert "ResourceClaimTemplate" in kinds
    assert kinds & {"Job", "Deployment"}

    done = run(folder, "simulate", "--fleet", FLEET)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^✓ (Job|Deployment) (ml/)?train +2 . H100", done.stdout, re.MULTILINE), done.stdout

    program = dra.testing.synth(folder)
    assert [str(each) for each in program.problems if each.severity == "error"] == []
    assert program.fits(FLEET, "train")

    done = run(folder, "review", "--base", "HEAD", "--fleet", FLEET)
    assert (done.returncode, "nothing changes" in done.stdout) == (0, True), done.stdout + done.stderr
    change(folder, 9)
    done = run(folder, "review", "--base", "HEAD", "--fleet", FLEET)
    assert (done.returncode, "no-longer-fits" in done.stdout) == (1, True), done.stdout + done.stderr
    assert not dra.testing.synth(folder).fits(FLEET, "train")
