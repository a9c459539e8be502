"""`--help` is complete, its examples run, and docs/cli.md says the same."""

from __future__ import annotations

import inspect
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Unpack, get_args, get_origin, get_type_hints

import click
import pytest
from click.testing import CliRunner

from dra_infra.cli.app import COMMANDS
from dra_infra.cli.options import LateCommand
from dra_infra.review.markdown_report import marker_of
from tests.contract.conftest import ENVIRONMENT, paths
from tests.support.pages.command_reference import (
    GAPS,
    SHARED,
    commands,
    examples_of,
    rendered,
    shared_options_of,
)
from tests.support.pages.documents import ROOT

PAGE = ROOT / "docs" / "cli.md"
EXAMPLES = [(name, example) for name, command in commands().items() for example in examples_of(command)]

ELSEWHERE = {
    "comment": "tests/unit/forge",
    "pull-request": "tests/e2e/forge/test_two_jobs.py",
    "snapshot": "tests/e2e/cluster",
    "status": "tests/e2e/cluster",
    "doctor": "tests/e2e/cluster",
    "drain": "tests/e2e/cluster/test_drain.py",
    "migrate": "tests/unit/cluster/test_migrated_cluster.py",
}
"""Commands that ask a forge or a cluster, and the tests in which one answers."""


@pytest.mark.parametrize("name", COMMANDS)
def test_the_work_of_a_command_takes_just_its_options(name: str):
    command = commands()[name]
    assert isinstance(command, LateCommand)
    given = {each.name: each for each in command.params if each.expose_value}
    work = command.load_work()
    takes = inspect.signature(work).parameters
    named = {each for each, parameter in takes.items() if parameter.kind is not parameter.VAR_KEYWORD}
    # Options that several commands share are one record: `**options: Unpack[SceneOptions]`.
    for each in set(takes) - named:
        shared = get_type_hints(work)[each]
        assert get_origin(shared) is Unpack
        named |= set(get_type_hints(get_args(shared)[0]))
    assert named == set(given)


@pytest.mark.parametrize("name", GAPS)
def test_a_command_takes_a_shared_option_or_says_why_not(name: str):
    assert sorted(GAPS[name]) == sorted(set(SHARED) - shared_options_of(commands()[name]))


@pytest.mark.parametrize("name", [name for name in GAPS if "snapshot" not in GAPS[name]])
def test_a_second_snapshot_is_refused(name: str):
    said = CliRunner().invoke(commands()[name], ["x", "--snapshot", "a.yaml", "--snapshot", "b.yaml"])
    assert said.exit_code == 2
    assert "'--snapshot': is given twice, and one cluster is read" in said.stderr


def test_every_command_has_examples_and_every_option_a_meaning():
    assert len(commands()) >= 7
    for name, command in commands().items():
        assert len(examples_of(command)) >= 2, name
        assert all(example.count(f"dra-infra {name}") == 1 for example in examples_of(command)), name
        for parameter in command.params:
            assert parameter.help, (name, parameter.name)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_marks_of_click_do_not_show(name: str):
    assert "\b" not in commands()[name].get_help(click.Context(commands()[name]))


@pytest.mark.parametrize(("name", "example"), EXAMPLES, ids=[example for _, example in EXAMPLES])
def test_an_example_runs(name: str, example: str, repository: Path, tmp_path: Path):
    folder = tmp_path / "repository"
    if name == "init":
        folder.mkdir()
    else:
        shutil.copytree(repository, folder, symlinks=True)
    if name == "comment":
        (folder / "review.md").write_text(f"{marker_of('gpus', 'dev')}\n\n# Review\n")
    environment = {
        **ENVIRONMENT,
        "PATH": paths(folder / "bin"),
        # Nothing leaves this machine.
        "HTTPS_PROXY": "http://127.0.0.1:9",
        "HTTP_PROXY": "http://127.0.0.1:9",
        "HOME": str(tmp_path),
        "KUBECONFIG": str(tmp_path / "no-such-file"),
        # What a step of a workflow has.
        "HEAD_SHA": "a" * 40,
        "GITHUB_OUTPUT": str(tmp_path / "output"),
    }
    # Not to wait for a forge that is not there.
    line = f"{example} --timeout 1" if name == "comment" else example
    if "--head" in example:
        # What the other job leaves.
        line = f"dra-infra compile infra/ --output head.json && {line}"
    result = subprocess.run(
        ["bash", "-o", "pipefail", "-c", line],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    assert "Usage:" not in result.stderr
    assert "Traceback" not in result.stderr
    asks = "--context" in example if name == "migrate" else "--snapshot" not in example
    if name in ELSEWHERE and asks:
        # Who is there answers in the tests that are named; here nobody is, which is said without a usage error.
        assert (ROOT / ELSEWHERE[name]).exists()
        assert result.returncode == 2, result.stderr
        assert re.search(r"\[[a-z-]+\]", result.stderr), result.stderr
    else:
        assert result.returncode == 0, result.stderr + result.stdout
        redirected = shlex.split(example.partition(">")[2])
        assert result.stdout or result.stderr or (folder / redirected[0]).read_text()


def test_the_page_says_what_help_says():
    if os.environ.get("DRA_INFRA_UPDATE_GOLDEN") == "1":
        PAGE.write_text(rendered())
    assert PAGE.read_text() == rendered(), "run `make golden`, and read what it wrote"


def test_help_loads_nothing_that_takes_long():
    program = (
        "import sys; sys.argv = ['dra-infra', '--help']\n"
        "from dra_infra.cli.process import main\n"
        "try: main()\n"
        "except SystemExit: print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True, env=ENVIRONMENT
    )
    loaded = set(result.stdout.splitlines()[-1].split())
    assert "dra_infra" in loaded
    assert not loaded & {
        "pulumi",
        "pulumi_kubernetes",
        "grpc",
        "google",
        "pydantic",
        "requests",
        "urllib3",
        "httpx",
        "yaml",
    }
