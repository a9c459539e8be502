"""A pull request of a branch and of a fork is compiled in one job and judged in another, by the steps of both actions."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.forge.jobs import GitHub
from tests.support.forge.local_forge import LocalForge
from tests.support.forge.runner import TOKEN
from tests.support.forge.sample import Sample, git

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def runners(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The runners' folder. It stays from test to test, so that two installs serve all of them."""
    return tmp_path_factory.mktemp("runners")


@pytest.fixture
def github(sample: Sample, forge: LocalForge, action: Path, runners: Path) -> GitHub:
    return GitHub(sample=sample, forge=forge, action=action, folder=runners, token=TOKEN)


def test_a_branch_is_compiled_without_and_judged_with_the_token(
    github: GitHub, sample: Sample, forge: LocalForge
):
    _, merge = sample.change("count=4", "count=8")
    compiled = github.compile(merge)
    assert compiled.code == 0, compiled.log
    assert "programs ran confined" in compiled.log
    run = github.review(merge)
    assert (run.code, run.outputs["verdict"]) == (0, "open"), run.log
    (comment,) = forge.comments
    assert comment["body"].startswith("<!-- dra-infra review quickstart/")
    assert "job-replaced" in comment["body"]
    assert run.summary == comment["body"]
    assert run.outputs["base"] == git(sample.work, "rev-parse", "main")
    assert forge.statuses == []

    _, merge = sample.change("count=8", "count=9")
    assert github.compile(merge).code == 0
    run = github.review(merge)
    assert (run.code, run.failed, run.outputs["verdict"]) == (1, "Gate", "closed"), run.log
    assert len(forge.comments) == 1
    assert "no-longer-fits" in forge.bodies()[0]


def test_a_fork_whose_token_only_reads_gets_the_gate_and_the_summary(
    github: GitHub, sample: Sample, forge: LocalForge
):
    _, merge = sample.change("count=4", "count=9")
    assert github.compile(merge).code == 0
    forge.accounts.clear()
    run = github.review(merge, head="somebody/infra")
    assert (run.code, run.failed, run.outputs["verdict"]) == (1, "Gate", "closed"), run.log
    assert "no-longer-fits" in run.summary
    assert "::notice::" in run.log
    assert forge.comments == []


def test_a_fork_gets_its_comment_and_its_status_from_the_workflow_that_runs_afterwards(
    github: GitHub, sample: Sample, forge: LocalForge
):
    head, merge = sample.change("count=4", "count=9")
    forge.open_pull(head=head, merge=merge, label="somebody:branch")
    assert github.compile(merge).code == 0
    run = github.review_afterwards(head)
    assert (run.code, run.failed, run.outputs["verdict"]) == (1, "Gate", "closed"), run.log
    assert "no-longer-fits" in forge.bodies()[0]
    assert forge.statuses == [(head, "failure", "dra-infra review infra into main")]

    head, merge = sample.change("count=9", "count=8")
    forge.open_pull(head=head, merge=merge, label="somebody:branch")
    assert github.compile(merge).code == 0
    run = github.review_afterwards(head)
    assert (run.code, run.outputs["verdict"]) == (0, "open"), run.log
    assert forge.statuses[-1] == (head, "success", "dra-infra review infra into main")
    assert len(forge.comments) == 1


def test_a_pull_request_that_moved_on_gets_no_answer_for_an_older_commit(
    github: GitHub, sample: Sample, forge: LocalForge
):
    head, merge = sample.change("count=4", "count=8")
    assert github.compile(merge).code == 0
    newer, newer_merge = sample.change("count=8", "count=9")
    forge.open_pull(head=newer, merge=newer_merge, label="somebody:branch")
    run = github.review_afterwards(head)
    assert (run.code, run.failed) == (2, "Find the pull request"), run.log
    assert "pull-request-not-found" in run.log
    # The newest commit is judged, and not by what was compiled of the older one.
    run = github.review_afterwards(newer)
    assert (run.code, run.outputs["verdict"]) == (2, "none"), run.log
    assert "compiled-of-another-commit" in run.log
    assert forge.statuses == [(newer, "error", "dra-infra review infra into main")]


def test_a_program_that_fails_is_told_by_the_job_that_judges(
    github: GitHub, sample: Sample, forge: LocalForge
):
    _, merge = sample.change("count=4", "count=never_defined")
    compiled = github.compile(merge)
    assert compiled.code == 0, compiled.log
    run = github.review(merge)
    assert (run.code, run.failed, run.outputs["verdict"]) == (2, "Gate", "none"), run.log
    (body,) = forge.bodies()
    assert "There is no review" in body
    assert "`program-raised`" in body
    assert "never_defined" not in body
    assert "never_defined" in run.summary


def test_what_the_head_prints_is_no_command_for_the_runner(github: GitHub, sample: Sample):
    _, merge = sample.change("count=4", "count=8")
    run = github.compile(merge)
    before, _, inside = run.log.partition("::stop-commands::")
    assert "::error::" not in before
    assert "::error::" not in inside.partition(f"::{inside.splitlines()[0]}::")[2]


@pytest.mark.parametrize(
    "text", ['$(touch "$RUNNER_TEMP/pwned")', '"; touch "$RUNNER_TEMP/pwned"; "', "--output=x"]
)
def test_an_input_is_never_a_command(github: GitHub, sample: Sample, text: str):
    _, merge = sample.change("count=4", "count=8")
    assert github.compile(merge, path=text, stack=text, arguments=text).code == 2
    assert github.compile(merge).code == 0
    for names in (("path",), ("base",), ("fleet", "stack", "arguments")):
        run = github.review(merge, **dict.fromkeys(names, text))
        assert run.code == 2, run.log
    assert not list(github.folder.glob("*/pwned"))
