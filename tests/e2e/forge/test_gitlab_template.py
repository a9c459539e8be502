"""A merge request on a sample repository gets its note and gate from the two jobs of the GitLab template."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.forge.jobs import TEMPLATE, GitLab
from tests.support.forge.local_forge import LocalForge, serving
from tests.support.forge.runner import clean_environment
from tests.support.forge.sample import Sample, git, source_of_dra_infra

pytestmark = pytest.mark.e2e

TOKEN = "glpat-planted0123456789"


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = source_of_dra_infra(tmp_path_factory.mktemp("source") / "dra-infra")
    git(folder, "branch", "--force", "v1")
    return folder


@pytest.fixture
def forge() -> Iterator[LocalForge]:
    with serving(LocalForge(accounts={TOKEN: ("project_7_bot", False)}, repository="7", number=3)) as running:
        yield running


@pytest.fixture
def gitlab(sample: Sample, forge: LocalForge, source: Path, tmp_path: Path) -> GitLab:
    return GitLab(sample=sample, forge=forge, source=source, folder=tmp_path)


def test_a_merge_request_gets_a_note_that_the_next_push_changes(
    gitlab: GitLab, sample: Sample, forge: LocalForge
):
    head, _ = sample.change("count=4", "count=8")
    compiled = gitlab.compile(head)
    assert compiled.code == 0, compiled.log
    first = gitlab.review(head, compiled, GITLAB_TOKEN=TOKEN)
    assert first.code == 0, first.log
    assert "job-replaced" in forge.bodies()[0]
    for path in TEMPLATE["dra-infra review"]["artifacts"]["paths"]:
        assert (first.folder / path).stat().st_size

    # With merged results, what is compiled is the merge; and this change closes the gate.
    _, merge = sample.change("count=8", "count=9")
    merged = {"CI_MERGE_REQUEST_EVENT_TYPE": "merged_result"}
    compiled = gitlab.compile(merge, **merged)
    second = gitlab.review(merge, compiled, GITLAB_TOKEN=TOKEN, **merged)
    assert second.code == 1, second.log
    assert len(forge.comments) == 1
    assert "no-longer-fits" in forge.bodies()[0]
    assert "planted" not in first.log + second.log + compiled.log


def test_without_a_token_the_review_runs_and_there_is_no_note(
    gitlab: GitLab, sample: Sample, forge: LocalForge
):
    head, _ = sample.change("count=4", "count=8")
    job = gitlab.review(head, gitlab.compile(head))
    assert (job.code, forge.asked) == (0, []), job.log
    assert "the review is in the artefacts" in job.log


def test_a_job_that_left_nothing_is_no_review(gitlab: GitLab, sample: Sample, forge: LocalForge):
    head, _ = sample.change("count=4", "count=8")
    compiled = gitlab.compile(head, DRA_INFRA_PATH="no-such-folder")
    assert compiled.code == 2, compiled.log
    job = gitlab.review(head, compiled, GITLAB_TOKEN=TOKEN)
    assert job.code == 2, job.log
    assert "the job that compiles left no file" in job.log
    assert "There is no review" in forge.bodies()[0]


def test_a_job_that_does_not_know_where_dra_infra_is_says_so(gitlab: GitLab, sample: Sample):
    head, _ = sample.change("count=4", "count=8")
    job = gitlab.compile(head, DRA_INFRA_SOURCE="")
    assert job.code == 2
    assert "DRA_INFRA_SOURCE" in job.log


@pytest.mark.parametrize("written", ["branch", "tag", "commit"])
def test_the_version_of_dra_infra_may_be_a_branch_a_tag_or_a_commit(
    source: Path, tmp_path: Path, written: str
):
    git(source, "tag", "--force", "v1.0")
    commit = git(source, "rev-parse", "HEAD")
    reference = {"branch": "v1", "tag": "v1.0", "commit": commit}[written]
    script = TEMPLATE[".dra-infra"]["before_script"]
    lines = script[: next(n for n, line in enumerate(script) if "install.sh" in line)]
    result = subprocess.run(
        ["bash", "-eo", "pipefail", "-c", "\n".join([*lines, 'git -C "$tools/source" rev-parse HEAD'])],
        cwd=tmp_path,
        env=clean_environment(
            DRA_INFRA_SOURCE=f"file://{source}", DRA_INFRA_REF=reference, TMPDIR=str(tmp_path)
        ),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (result.returncode, result.stdout.strip()) == (0, commit), result.stderr
