"""A merge request on a sample repository gets its note and gate from the script of the GitLab template."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from tests.e2e.forge.runner import clean_environment
from tests.e2e.forge.sample import ROOT, Sample, git, make_sample, source_of_dra_infra
from tests.unit.forge.local_forge import LocalForge, serving

pytestmark = pytest.mark.e2e

TOKEN = "glpat-planted0123456789"
JOB = yaml.safe_load((ROOT / "ci" / "gitlab" / "review.yml").read_text())["dra-infra review"]


@dataclass
class Job:
    code: int
    log: str
    folder: Path


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = source_of_dra_infra(tmp_path_factory.mktemp("source") / "dra-infra")
    git(folder, "branch", "--force", "v1")
    return folder


@pytest.fixture
def sample(tmp_path: Path) -> Sample:
    return make_sample(tmp_path / "sample")


@pytest.fixture
def forge() -> Iterator[LocalForge]:
    with serving(LocalForge(accounts={TOKEN: ("project_7_bot", False)}, repository="7", number=3)) as running:
        yield running


def run_job(sample: Sample, forge: LocalForge, source: Path, tmp_path: Path, commit: str, **more: str) -> Job:
    """The script as GitLab's runner joins it: line after line in one shell that stops at the first failure."""
    checkout = sample.checkout("checkout", commit)
    variables = {
        "GITLAB_CI": "true",
        "CI_PROJECT_DIR": str(checkout),
        "CI_API_V4_URL": forge.gitlab,
        "CI_PROJECT_ID": "99",
        "CI_MERGE_REQUEST_PROJECT_ID": "7",
        "CI_MERGE_REQUEST_IID": "3",
        "CI_MERGE_REQUEST_DIFF_BASE_SHA": git(sample.work, "rev-parse", "main"),
        "CI_COMMIT_SHA": commit,
        "CI_JOB_TOKEN": "glcbt-planted0123456789",
        "TMPDIR": str(tmp_path),
        **{name: str(value) for name, value in JOB["variables"].items()},
        "DRA_INFRA_SOURCE": f"file://{source}",
        "DRA_INFRA_REF": "v1",
        "DRA_INFRA_PATH": "infra",
        "DRA_INFRA_FLEET": "hgx-h100 x 4",
        **more,
    }
    result = subprocess.run(
        ["bash", "-eo", "pipefail", "-c", "\n".join(JOB["script"])],
        cwd=checkout,
        env=clean_environment(**variables),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=300,
    )
    return Job(code=result.returncode, log=result.stdout, folder=checkout)


def test_a_merge_request_gets_a_note_that_the_next_push_changes(
    sample: Sample, forge: LocalForge, source: Path, tmp_path: Path
):
    head, _ = sample.change("count=4", "count=8")
    first = run_job(sample, forge, source, tmp_path, head, GITLAB_TOKEN=TOKEN)
    assert first.code == 0, first.log
    assert "job-replaced" in forge.bodies()[0]
    for path in JOB["artifacts"]["paths"]:
        assert (first.folder / path).stat().st_size

    # With merged results, what is checked out is the merge; and this change closes the gate.
    _, merge = sample.change("count=8", "count=9")
    second = run_job(
        sample,
        forge,
        source,
        tmp_path,
        merge,
        GITLAB_TOKEN=TOKEN,
        CI_MERGE_REQUEST_EVENT_TYPE="merged_result",
    )
    assert second.code == 1, second.log
    assert len(forge.comments) == 1
    assert "no-longer-fits" in forge.bodies()[0]
    assert "planted" not in first.log + second.log + sample.seen.read_text()


def test_without_a_token_the_review_runs_and_there_is_no_note(
    sample: Sample, forge: LocalForge, source: Path, tmp_path: Path
):
    head, _ = sample.change("count=4", "count=8")
    job = run_job(sample, forge, source, tmp_path, head)
    assert (job.code, forge.asked) == (0, []), job.log
    assert "the review is in the artefacts" in job.log


def test_a_job_that_does_not_know_where_dra_infra_is_says_so(
    sample: Sample, forge: LocalForge, source: Path, tmp_path: Path
):
    head, _ = sample.change("count=4", "count=8")
    job = run_job(sample, forge, source, tmp_path, head, DRA_INFRA_SOURCE="")
    assert job.code == 2
    assert "DRA_INFRA_SOURCE" in job.log


@pytest.mark.parametrize("written", ["branch", "tag", "commit"])
def test_the_version_of_dra_infra_may_be_a_branch_a_tag_or_a_commit(
    source: Path, tmp_path: Path, written: str
):
    git(source, "tag", "--force", "v1.0")
    commit = git(source, "rev-parse", "HEAD")
    reference = {"branch": "v1", "tag": "v1.0", "commit": commit}[written]
    lines = JOB["script"][: next(n for n, line in enumerate(JOB["script"]) if "install.sh" in line)]
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
