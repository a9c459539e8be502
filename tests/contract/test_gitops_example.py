"""The example of a repository that Argo CD deploys: from the first `synth --output` to the comment on a pull request."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from dra_infra.cli.app import app
from dra_infra.documents.yaml import read_manifests

EXAMPLE = Path(__file__).parents[2] / "examples" / "21-gitops-argocd"
IDENTITY = ("-c", "user.name=t", "-c", "user.email=t@example.invalid", "-c", "init.defaultBranch=main")
DATES = {"GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z", "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z"}
EDIT = ("count=2", "count=4")


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository of its own, as a reader has it."""
    top = tmp_path / "gpus"
    shutil.copytree(
        EXAMPLE, top, ignore=shutil.ignore_patterns("__pycache__", "review.md", "README.md", "flux")
    )
    git = ["git", "-C", str(top), *IDENTITY]
    for words in (
        ["init", "-q"],
        ["remote", "add", "origin", "git@git.example:acme/gpus.git"],
        ["add", "--all"],
        ["commit", "-q", "-m", "a state"],
    ):
        subprocess.run([*git, *words], check=True, env={**os.environ, **DATES})
    monkeypatch.chdir(top)
    return top


def blocks_of(page: str) -> list[list[tuple[str, list[str]]]]:
    """The console blocks of the page that this test makes: commands, each with the lines that the page shows of its output."""
    found: list[list[tuple[str, list[str]]]] = []
    mark = r"<!-- made by: tests/contract/test_gitops_example\.py -->\n```console\n(.*?)```"
    for block in re.findall(mark, page, re.DOTALL):
        commands: list[tuple[str, list[str]]] = []
        for line in block.splitlines():
            if line.startswith("$ "):
                commands.append((line.removeprefix("$ dra-infra "), []))
            else:
                commands[-1][1].append(line)
        found.append(commands)
    return found


def run(command: str, *, code: int = 0) -> list[str]:
    result = CliRunner().invoke(app, shlex.split(command))
    assert result.exit_code == code, result.output
    return result.output.splitlines()


def test_the_page_is_what_happens_from_the_first_files_to_the_comment(repository: Path):
    write, place, review = blocks_of((EXAMPLE / "README.md").read_text())
    (page,) = blocks_of((EXAMPLE.parents[1] / "docs" / "gitops.md").read_text())
    for command, shown in (*write, *place, *page):
        printed = run(command)
        assert [line for line in shown if line not in printed] == [], printed
    program = repository / "infra" / "__main__.py"
    # With another size, as Python runs what it has compiled of a file of the same second and size.
    program.write_text(f"{program.read_text().replace(*EDIT)}# changed\n")
    (again, shown), (compared, _) = review
    printed = run(again)
    assert [line for line in shown if line not in printed] == [], printed
    run(compared)
    # The version, and the commit of this test.
    text = (repository / "review.md").read_text()
    text = re.sub(r"by dra-infra [0-9][^;\s]*", "by dra-infra X.Y.Z", text)
    text = re.sub(r"\b[0-9a-f]{12,40}\b", "0123456789ab", text)
    golden = EXAMPLE / "review.md"
    if os.environ.get("DRA_INFRA_UPDATE_GOLDEN") == "1":
        golden.write_text(text)
    assert golden.is_file(), "run `make golden`, and read what it wrote"
    assert golden.read_text() == text


def test_the_plugin_prints_what_the_files_have(repository: Path):
    plugin = yaml.safe_load((repository / "plugin" / "plugin.yaml").read_text())
    # PluginConfig in cmpserver/plugin/config.go of argo-cd has no other fields that matter here.
    assert (plugin["apiVersion"], plugin["kind"]) == ("argoproj.io/v1alpha1", "ConfigManagementPlugin")
    assert plugin["spec"].keys() <= {
        "version",
        "init",
        "generate",
        "discover",
        "parameters",
        "preserveFileMode",
        "provideGitCreds",
    }
    assert (repository / "infra" / plugin["spec"]["discover"]["fileName"]).is_file()
    generate = plugin["spec"]["generate"]
    printed = subprocess.run(
        [*generate["command"], *generate["args"]],
        cwd=repository / "infra",
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"},
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    written = [yaml.safe_load(path.read_text()) for path in (repository / "deploy").rglob("*.yaml")]
    objects = [each for each in written if each["kind"] != "Kustomization"]
    assert sorted(map(str, read_manifests(printed))) == sorted(map(str, objects))


@pytest.mark.parametrize("name", ["argocd", "flux"])
def test_both_controllers_deploy_the_same_objects(repository: Path, name: str):
    shutil.copytree(EXAMPLE / "flux", repository / "flux")
    result = CliRunner().invoke(app, ["simulate", name, "--fleet", "hgx-h100 x 2", "--json"])
    answer: Any = json.loads(result.stdout)
    assert [each["object"]["name"] for each in answer["workloads"]] == ["inference"]
