"""A pull request on a sample repository gets its comment, page and gate from the steps of action.yml."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.forge.local_forge import LocalForge, Reply
from tests.support.forge.runner import TOKEN, Run, clean_environment, run_action
from tests.support.forge.sample import Sample, git

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def temp(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The runner's folder. It stays from run to run, so that one install serves all tests of this file."""
    return tmp_path_factory.mktemp("temp")


def review(
    sample: Sample,
    forge: LocalForge,
    action: Path,
    temp: Path,
    *,
    checkout: str,
    merge: str,
    head: str = "team/infra",
    inputs: dict[str, str] | None = None,
) -> Run:
    """What happens when a pull request is opened or pushed to."""
    event = {
        "pull_request": {
            "number": 42,
            "base": {"sha": git(sample.work, "rev-parse", "main")},
            "head": {"repo": {"full_name": head}},
        }
    }
    (temp / "event.json").write_text(json.dumps(event))
    github: dict[str, Any] = {
        "event_name": "pull_request",
        "event": event,
        "sha": merge,
        "repository": "team/infra",
        "actor": "somebody",
        "token": TOKEN,
    }
    environment = clean_environment(
        GITHUB_ACTIONS="true",
        GITHUB_REPOSITORY="team/infra",
        GITHUB_API_URL=forge.github,
        GITHUB_EVENT_PATH=str(temp / "event.json"),
        GITHUB_REF="refs/pull/42/merge",
    )
    return run_action(
        action,
        workspace=sample.checkout("checkout", checkout),
        temp=temp,
        inputs={"path": "infra", "fleet": "hgx-h100 x 4", **(inputs or {})},
        github=github,
        environment=environment,
        skip=("Install dra-infra",) if (temp / "dra-infra" / "bin" / "dra-infra").exists() else (),
    )


def test_a_pull_request_gets_a_comment_that_the_next_push_changes(
    sample: Sample, forge: LocalForge, action: Path, temp: Path
):
    _, merge = sample.change("count=4", "count=8")
    first = review(sample, forge, action, temp, checkout=merge, merge=merge)
    assert (first.code, first.outputs["verdict"]) == (0, "open"), first.log
    (comment,) = forge.comments
    assert comment["body"].startswith("<!-- dra-infra review quickstart/")
    assert "Job ml/train" in comment["body"]
    assert "job-replaced" in comment["body"]
    assert first.summary == comment["body"]
    assert first.outputs["base"] == git(sample.work, "rev-parse", "main")
    assert Path(first.outputs["html"]).read_text().startswith("<!doctype html>")
    assert [used.partition("@")[0] for used in first.used] == ["actions/upload-artifact"]

    _, merge = sample.change('"replicas": 2', '"replicas": 3')
    second = review(sample, forge, action, temp, checkout=merge, merge=merge)
    assert second.code == 0, second.log
    assert len(forge.comments) == 1
    assert "Deployment ml/inference" in forge.bodies()[0]
    assert f"updated: {comment['html_url']}" in second.log


def test_a_change_that_does_not_fit_closes_the_gate_after_the_comment(
    sample: Sample, forge: LocalForge, action: Path, temp: Path
):
    _, merge = sample.change("count=4", "count=9")
    run = review(sample, forge, action, temp, checkout=merge, merge=merge)
    assert (run.code, run.failed, run.outputs["verdict"], run.outputs["exit-code"]) == (
        1,
        "Gate",
        "closed",
        "1",
    )
    assert "no-longer-fits" in forge.bodies()[0]


def test_a_danger_closes_the_gate_where_the_team_asks_for_it(
    sample: Sample, forge: LocalForge, action: Path, temp: Path
):
    _, merge = sample.change("count=4", "count=8")
    run = review(sample, forge, action, temp, checkout=merge, merge=merge, inputs={"fail-on": "danger"})
    assert (run.code, run.failed, run.outputs["verdict"]) == (1, "Gate", "closed"), run.log
    assert "job-replaced" in forge.bodies()[0]


def test_the_head_of_the_branch_is_compared_with_the_target_branch(
    sample: Sample, forge: LocalForge, action: Path, temp: Path
):
    head, merge = sample.change("count=4", "count=8")
    run = review(sample, forge, action, temp, checkout=head, merge=merge)
    assert run.code == 0, run.log
    assert run.outputs["base"] == git(sample.work, "rev-parse", "main")


def test_a_fork_gets_the_summary_when_its_token_may_not_write(
    sample: Sample, forge: LocalForge, action: Path, temp: Path
):
    _, merge = sample.change("count=4", "count=8")
    forge.fail("POST", "", Reply(403, '{"message": "Resource not accessible by integration"}'))
    run = review(sample, forge, action, temp, checkout=merge, merge=merge, head="somebody/infra")
    assert (run.code, forge.comments) == (0, []), run.log
    assert "job-replaced" in run.summary
    assert "::notice::" in run.log
    assert "forge-forbidden" in run.log


def test_a_comment_that_is_refused_fails_an_open_gate(
    sample: Sample, forge: LocalForge, action: Path, temp: Path
):
    _, merge = sample.change("count=4", "count=8")
    forge.fail("POST", "", Reply(403, '{"message": "Resource not accessible by integration"}'))
    run = review(sample, forge, action, temp, checkout=merge, merge=merge)
    assert (run.code, run.failed) == (2, "Gate")
    assert "pull-requests: write" in run.log


def test_without_an_answer_an_older_comment_says_so_and_the_summary_says_why(
    sample: Sample, forge: LocalForge, action: Path, temp: Path
):
    _, merge = sample.change("count=4", "count=8")
    assert review(sample, forge, action, temp, checkout=merge, merge=merge).code == 0
    marker = forge.bodies()[0].splitlines()[0]
    _, merge = sample.change("count=8", "count=never_defined")
    run = review(sample, forge, action, temp, checkout=merge, merge=merge)
    assert (run.code, run.failed, run.outputs["verdict"]) == (2, "Gate", "none")
    (body,) = forge.bodies()
    assert body.startswith(f"{marker}\n### ❔ There is no review\n")
    assert "`program-raised`" in body
    assert "never_defined" not in body
    assert run.summary.startswith("### There is no review\n")
    assert "never_defined" in run.summary


def test_the_program_sees_no_token_and_cannot_command_the_runner(
    sample: Sample, forge: LocalForge, action: Path, temp: Path
):
    _, merge = sample.change("count=4", "count=8")
    allow = f"--allow\nwrite:{sample.folder}"
    run = review(sample, forge, action, temp, checkout=merge, merge=merge, inputs={"arguments": allow})
    seen = sample.seen.read_text()
    assert "PATH" in seen
    assert TOKEN not in seen
    assert not {"GITHUB_ENV", "GITHUB_PATH", "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY", "GITHUB_TOKEN"} & set(
        seen.splitlines()
    )
    assert TOKEN not in run.log + run.summary
    before, _, inside = run.log.partition("::stop-commands::")
    assert "::error::" not in before
    stop = inside.splitlines()[0]
    assert "::error::" not in inside.partition(f"::{stop}::")[2]


@pytest.mark.parametrize("names", [("path",), ("base",), ("fleet", "stack", "arguments")])
@pytest.mark.parametrize(
    "text", ['$(touch "$RUNNER_TEMP/pwned")', '"; touch "$RUNNER_TEMP/pwned"; "', "--output=x"]
)
def test_an_input_is_never_a_command(
    sample: Sample, forge: LocalForge, action: Path, temp: Path, names: tuple[str, ...], text: str
):
    _, merge = sample.change("count=4", "count=8")
    run = review(sample, forge, action, temp, checkout=merge, merge=merge, inputs=dict.fromkeys(names, text))
    assert (run.code, run.outputs["verdict"]) == (2, "none"), run.log
    assert not (temp / "pwned").exists()
    assert all("There is no review" in body for body in forge.bodies())


def test_arguments_are_taken_one_in_each_line(sample: Sample, forge: LocalForge, action: Path, temp: Path):
    _, merge = sample.change("count=4", "count=8")
    lines = "--config\nquickstart:note=two words\n\n--format\nmarkdown\n"
    run = review(sample, forge, action, temp, checkout=merge, merge=merge, inputs={"arguments": lines})
    assert run.code == 0, run.log
    assert forge.bodies()[0] in run.log


def test_a_comment_that_is_not_wanted_is_not_written(
    sample: Sample, forge: LocalForge, action: Path, temp: Path
):
    _, merge = sample.change("count=4", "count=8")
    run = review(
        sample, forge, action, temp, checkout=merge, merge=merge, inputs={"comment": "false", "artifact": ""}
    )
    assert (run.code, forge.asked, run.used) == (0, [], [])
