"""A stranger's repository holds links where the user's commands write files: a file outside of it would be written."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest

from tests.e2e.attacks.conftest import Loot
from tests.e2e.attacks.test_terminal import server
from tests.support.forge.sample import git
from tests.support.warm_commands import warm

pytestmark = pytest.mark.e2e

DEPLOYMENT: Final = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: inference, namespace: ml}
spec:
  replicas: 1
  selector: {matchLabels: {app: inference}}
  template:
    metadata: {labels: {app: inference}}
    spec:
      containers:
      - {name: main, image: registry.example/a:1, resources: {limits: {nvidia.com/gpu: 1}}}
"""
PRECIOUS: Final = "precious\n"


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """A folder of the user's with a file of each name that a command would write."""
    folder = tmp_path / "victim"
    for name in ("serve.yaml", "report", "Pulumi.yaml", "workflows/dra-infra.yml"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(PRECIOUS)
    return folder


@pytest.fixture(params=["cloned", "unpacked"])
def repository(request: pytest.FixtureRequest, tmp_path: Path, victim: Path) -> Path:
    """The stranger's repository: a clone, or the files of an archive without `.git`."""
    top = tmp_path / "repository"
    (top / "k").mkdir(parents=True)
    (top / "k" / "serve.yaml").write_text(DEPLOYMENT)
    (top / "base").mkdir()
    (top / "base" / "serve.yaml").write_text(DEPLOYMENT)
    (top / "deep" / "er").mkdir(parents=True)
    (top / "migrated").mkdir()
    for link in ("out", "deep/er/out", "migrated/k", ".github"):
        (top / link).symlink_to(victim)
    if request.param == "cloned":
        git(top, "init", "--quiet")
        git(top, "add", "--all")
        git(top, "commit", "--quiet", "--message", "links")
    return top


def run(*arguments: str | Path, folder: Path) -> tuple[int, str]:
    done = subprocess.run(
        [warm().command, *arguments],
        cwd=folder,
        env={**os.environ, "NO_COLOR": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout


def judge(loot: Loot, victim: Path, answer: tuple[int, str], *, link: str, code: str) -> None:
    """Note each file of the user's that is new or changed, and an answer that does not name the link."""
    names = {"serve.yaml", "report", "Pulumi.yaml", "workflows/dra-infra.yml"}
    found = {str(each.relative_to(victim)): each for each in victim.rglob("*") if not each.is_dir()}
    for name, file in found.items():
        loot.add_if(name not in names or file.read_text() != PRECIOUS, f"{name} outside of the repository")
    assert found.keys() >= names
    status, printed = answer
    assert "Traceback" not in printed
    loot.add_if(status != 2, f"exit code {status}")
    if not loot.taken:
        assert f"[{code}]" in printed
        assert f"{link} is a link" in printed
        assert str(victim) in printed


@pytest.mark.parametrize(
    ("option", "link", "is_absolute"),
    [
        ("--html", "deep/er/out", False),
        ("--html", "out", True),
        *((option, "out", False) for option in ("--markdown", "--sarif", "--junit")),
        *((f"--output={ending}", "out", False) for ending in ("html", "json", "md", "sarif", "txt", "xml")),
    ],
)
def test_a_report_of_a_review_goes_through_a_link(
    repository: Path, victim: Path, loot: Loot, option: str, link: str, *, is_absolute: bool
):
    option, _, ending = option.partition("=")
    file = (repository if is_absolute else Path()) / link / (f"report.{ending}" if ending else "report")
    mine = victim / file.name
    mine.write_text(PRECIOUS)
    answer = run("review", "k", "--base-path", "base", option, file, folder=repository)
    loot.add_if(mine.read_text() != PRECIOUS, f"{mine.name} outside of the repository")
    if ending:
        mine.unlink()
    judge(loot, victim, answer, link=link, code="report-not-written")


def test_the_input_is_named_from_elsewhere(repository: Path, victim: Path, loot: Loot, tmp_path: Path):
    (repository / "k" / "out").symlink_to(victim)
    (elsewhere := tmp_path / "elsewhere").mkdir()
    paths = (repository / "k", "--base-path", repository / "base")
    answer = run("review", *paths, "--html", repository / "k" / "out" / "report", folder=elsewhere)
    judge(loot, victim, answer, link=str(repository / "k" / "out"), code="report-not-written")


def test_the_word_that_there_is_no_review_goes_through_a_link(repository: Path, victim: Path, loot: Loot):
    (repository / "k" / "serve.yaml").write_text("a: [")
    code, printed = run("review", "k", "--base-path", "absent", "--markdown", "out/report", folder=repository)
    loot.add_if((victim / "report").read_text() != PRECIOUS, "a file outside of the repository")
    assert (code, "[base-not-found]" in printed) == (2, True)


def test_a_compiled_head_goes_through_a_link(repository: Path, victim: Path, loot: Loot):
    answer = run("compile", "k", "--output", "out/report", folder=repository)
    judge(loot, victim, answer, link="out", code="report-not-written")


@pytest.mark.parametrize(
    ("output", "link"), [("migrated", "migrated/k"), ("out", "out"), ("deep/er/out/more", "deep/er/out")]
)
def test_a_migration_goes_through_a_link(repository: Path, victim: Path, loot: Loot, output: str, link: str):
    answer = run("migrate", "k", "--whole-gpus", "--output", output, folder=repository)
    judge(loot, victim, answer, link=link, code="report-not-written")


def test_a_migration_to_another_folder_goes_through_a_link_in_it(
    repository: Path, victim: Path, loot: Loot, tmp_path: Path
):
    (elsewhere := tmp_path / "elsewhere").mkdir()
    (elsewhere / "k").mkdir()
    (elsewhere / "k" / "serve.yaml").write_text(DEPLOYMENT)
    output = repository / "migrated"
    answer = run("migrate", "k", "--whole-gpus", "--output", output, folder=elsewhere)
    judge(loot, victim, answer, link=str(repository / "migrated" / "k"), code="report-not-written")


@pytest.mark.parametrize("path", ["linked", "linked/serve.yaml"])
def test_files_are_migrated_in_place_through_a_link(repository: Path, loot: Loot, tmp_path: Path, path: str):
    (project := tmp_path / "project").mkdir()
    (project / "serve.yaml").write_text(DEPLOYMENT)
    (repository / "linked").symlink_to(project)
    code, printed = run("migrate", path, "--whole-gpus", "--write", folder=repository)
    loot.add_if((project / "serve.yaml").read_text() != DEPLOYMENT, "a changed file of another project")
    loot.add_if((project / "serve.yaml.orig").exists(), "a new file in another project")
    assert loot.taken or (code, "[report-not-written]" in printed) == (2, True)


def test_a_migrated_program_goes_through_a_link(repository: Path, victim: Path, loot: Loot):
    arguments = ("--whole-gpus", "--to", "components", "--output", "out/project")
    answer = run("migrate", "k", *arguments, folder=repository)
    judge(loot, victim, answer, link="out", code="folder-not-usable")


@pytest.mark.parametrize(("project", "link"), [("out/infra", "out"), ("infra", "infra/tests")])
def test_a_new_project_goes_through_a_link(
    repository: Path, victim: Path, loot: Loot, project: str, link: str
):
    (repository / "infra").mkdir()
    (repository / "infra" / "tests").symlink_to(victim)
    answer = run("init", project, "--ci", "none", "--force", folder=repository)
    judge(loot, victim, answer, link=link, code="folder-not-usable")
    loot.add_if((repository / "infra" / "Pulumi.yaml").exists(), "a part of a project")


def test_a_new_workflow_goes_through_a_link(repository: Path, victim: Path, loot: Loot):
    if not (repository / ".git").exists():
        pytest.skip("a workflow goes to the top of a repository")
    answer = run("init", "infra", "--force", folder=repository)
    judge(loot, victim, answer, link=".github", code="folder-not-usable")


def test_a_snapshot_goes_through_a_link(repository: Path, victim: Path, loot: Loot, tmp_path: Path):
    def answers(path: str) -> tuple[int, bytes, str]:
        items = [{"metadata": {"name": "n", "uid": "u"}}] if path.startswith("/api/v1/nodes") else []
        return 200, json.dumps({"kind": "List", "metadata": {}, "items": items}).encode(), "OK"

    with server(answers) as address:
        context = {"name": "c", "context": {"cluster": "c", "user": "u"}}
        clusters = [{"name": "c", "cluster": {"server": address}}]
        users = [{"name": "u", "user": {}}]
        config = {"current-context": "c", "contexts": [context], "clusters": clusters, "users": users}
        (tmp_path / "kubeconfig").write_text(json.dumps(config))
        arguments = ("--kubeconfig", tmp_path / "kubeconfig", "--output", "out/report")
        answer = run("snapshot", *arguments, folder=repository)
    judge(loot, victim, answer, link="out", code="report-not-written")


@pytest.fixture
def pipe(tmp_path: Path) -> Iterator[tuple[Path, int]]:
    """A pipe of another program's, and the descriptor from which that program reads."""
    os.mkfifo(tmp_path / "pipe")
    # Open for both, so that neither side waits for the other.
    number = os.open(tmp_path / "pipe", os.O_RDWR | os.O_NONBLOCK)
    yield tmp_path / "pipe", number
    os.close(number)


@pytest.mark.parametrize(
    "arguments",
    [
        ("review", "k", "--base-path", "base", "--markdown", "report"),
        ("review", "k", "--base-path", "absent", "--markdown", "report"),
        ("compile", "k", "--output", "report"),
    ],
    ids=["a review", "none", "a head"],
)
def test_a_link_in_the_place_of_the_file_leads_to_a_device(
    repository: Path, loot: Loot, pipe: tuple[Path, int], arguments: Sequence[str]
):
    path, number = pipe
    (repository / "report").symlink_to(path)
    run(*arguments, folder=repository)
    with suppress(BlockingIOError):
        loot.add_if(os.read(number, 1 << 16), "a report that another program reads")
    loot.add_if((repository / "report").is_symlink(), "a missing report")
