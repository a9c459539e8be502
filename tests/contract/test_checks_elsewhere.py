"""Checks in the places that docs/ci.md names: hooks of pre-commit, and pipes of other tools."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.support.pages.documents import ROOT, blocks_of

PAGE = ROOT / "docs" / "ci.md"
COMMANDS = Path(sys.executable).parent
CDK8S = ROOT / "tests" / "support" / "recipes" / "cdk8s" / "synthesized.yaml"
CLAIM = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: gpu, namespace: ml}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.nvidia.com}}]}}
"""


@pytest.fixture
def hook() -> dict[str, object]:
    [hook] = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    return hook


def test_the_hook_is_what_pre_commit_reads(hook: dict[str, object]) -> None:
    # `pre-commit validate-manifest` asks for these, and for no others (its clientlib.py, MANIFEST_HOOK_DICT).
    assert {"id", "name", "entry", "language"} <= hook.keys()
    assert hook.keys() <= {"id", "name", "description", "entry", "language", "types_or", "require_serial"}
    # All files of a commit in one run, for objects refer to each other.
    assert hook["require_serial"] is True


@pytest.mark.parametrize(
    ("files", "code"),
    [
        ({"claim.yaml": CLAIM}, 0),
        ({"claim.yaml": CLAIM.replace("exactly: {", "exact: {")}, 1),
        ({"compose.yaml": "services: {web: {image: web}}\n", "claim.yaml": CLAIM}, 0),
        ({"compose.yaml": "services: {web: {image: web}}\n"}, 0),
        ({"broken.yaml": "a: ["}, 1),
    ],
)
def test_the_hook_passes_what_is_right_and_other_files_alone(
    files: dict[str, str], code: int, hook: dict[str, object], tmp_path: Path
) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    program, *words = shlex.split(str(hook["entry"]))
    result = subprocess.run(
        [COMMANDS / program, *words, *files], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert result.returncode == code, result.stderr


def test_the_page_names_the_hook(hook: dict[str, object]) -> None:
    shown = [yaml.safe_load(block.text) for block in blocks_of(PAGE) if ".pre-commit-config" in block.text]
    [config] = shown
    [repository] = config["repos"]
    assert [each["id"] for each in repository["hooks"]] == [hook["id"]]


def test_the_recipe_for_cdk8s_checks_what_it_prints(tmp_path: Path) -> None:
    [command] = [
        command.text
        for block in blocks_of(PAGE)
        for command in (block.commands if block.language == "console" else ())
        if command.text.startswith("cdk8s")
    ]
    # What the real one printed (README.md beside the file).
    stand_in = tmp_path / "cdk8s"
    stand_in.write_text(f'#!/bin/sh\n[ "$*" = "synth --stdout" ] && exec cat {shlex.quote(str(CDK8S))}\n')
    stand_in.chmod(0o755)
    path = os.pathsep.join([str(tmp_path), str(COMMANDS), os.environ["PATH"]])
    result = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 1
    assert "[unknown-field]" in result.stderr
