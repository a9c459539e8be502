"""A repository as pages and `--help` take it for granted."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dra_infra.catalog import load_fleet
from tests.support.pages.documents import ROOT
from tests.support.warm_commands import warm

ENVIRONMENT = {
    **{key: value for key, value in os.environ.items() if not key.startswith(("GIT_", "GITHUB_", "PULUMI_"))},
    "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    "COLUMNS": "120",
    "GIT_CONFIG_GLOBAL": os.devnull,
    **{
        f"GIT_{who}_{what}": "t@example.invalid"
        for who in ("AUTHOR", "COMMITTER")
        for what in ("NAME", "EMAIL")
    },
}


def paths(*folders: Path) -> str:
    """A PATH of *folders*, and of what `ENVIRONMENT` has, where `dra-infra` starts as a copy of a warm process."""
    return os.pathsep.join([*map(str, folders), str(Path(warm().command).parent), ENVIRONMENT["PATH"]])


def git(folder: Path, *arguments: str) -> None:
    command = ["git", "-C", str(folder), "-c", "init.defaultBranch=main", *arguments]
    subprocess.run(command, check=True, capture_output=True, env=ENVIRONMENT)


HELM = """#!/bin/sh
# Renders every chart alike.
case "$1" in template) cat "$(dirname "$0")/../manifests/objects.yaml" ;; *) echo v3.18.0 ;; esac
"""


@pytest.fixture(scope="session")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository as the pages take it for granted: programs, manifests, a fleet, and a change since main."""
    folder = tmp_path_factory.mktemp("documents") / "repository"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "examples", folder / "examples", ignore=ignored)
    shutil.copytree(ROOT / "examples/00-quickstart", folder / "infra", ignore=ignored)
    (folder / "Pulumi.yaml").write_text("name: gpus\nruntime: python\nmain: infra\n")
    (folder / "manifests").mkdir()
    shutil.copy(ROOT / "examples/00-quickstart/expected.yaml", folder / "manifests/objects.yaml")
    shutil.copy(ROOT / "examples/04-at-least-40gib/expected.yaml", folder / "claim.yaml")
    for name in ("charts/inference", "chart"):
        (folder / name).mkdir(parents=True)
        (folder / name / "Chart.yaml").write_text("apiVersion: v2\nname: inference\nversion: 0.1.0\n")
    shutil.copy(ROOT / "tests/contract/pages/validate-policies/guardrails.yaml", folder)
    (folder / "prod.yaml").write_text("replicas: 3\n")
    for name in ("rendered", "rendered-main"):
        shutil.copytree(folder / "manifests", folder / name)
    (folder / "bin").mkdir()
    (folder / "bin" / "helm").write_text(HELM)
    (folder / "bin" / "helm").chmod(0o755)
    nodes = load_fleet("hgx-h100 x 4").to_manifests()
    (folder / "pools.yaml").write_text("pools: [{name: a3, nodes: hgx-h100, min: 1, max: 4}]")
    (folder / "plugin.yaml").write_text("version: v1\nflags: {migStrategy: mixed}\n")
    (folder / "prices.json").write_text('{"a3": 98.32}')
    (folder / "cluster.yaml").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": nodes}))
    (folder / "fleet.yaml").write_text("nodeGroups: [{kind: hgx-h100, count: 4}]\n")
    for name in ("Pulumi.dev.yaml", "infra/Pulumi.dev.yaml", "infra/Pulumi.prod.yaml"):
        (folder / name).write_text("config:\n  dra-infra:fleet: hgx-h100 x 4\n")
    git(folder, "init")
    git(folder, "add", ".")
    git(folder, "commit", "--message", "Start")
    git(folder, "tag", "v1.4")
    git(folder, "update-ref", "refs/remotes/origin/main", "HEAD")
    program = folder / "infra/__main__.py"
    program.write_text(program.read_text().replace('"replicas": 2', '"replicas": 3'))
    git(folder, "commit", "--all", "--message", "One more")
    return folder
