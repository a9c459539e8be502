"""The two jobs of a review as GitHub and GitLab run them: one with a stranger's program, one with the token."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.support.forge.local_forge import LocalForge
from tests.support.forge.runner import Run, clean_environment, run_action
from tests.support.forge.sample import ROOT, Sample, git

TEMPLATE = yaml.safe_load((ROOT / "ci" / "gitlab" / "review.yml").read_text())


@dataclass
class GitHub:
    """Runners of one repository: each job has a folder of its own and an install of its own."""

    sample: Sample
    forge: LocalForge
    action: Path
    folder: Path
    token: str
    artifacts: Path = Path()

    def __post_init__(self) -> None:
        self.artifacts = self.folder / "artifacts"

    def compile(self, commit: str, *, event: str = "pull_request", **inputs: str) -> Run:
        """Job one: the merged pull request is checked out, and no token is to be had."""
        return self._run(
            "compile",
            self.action / "compile",
            workspace=self.sample.checkout("compile", commit),
            inputs={"path": "infra", **inputs},
            github={"event_name": event, "event": {}, "sha": commit, "repository": "team/infra"},
        )

    def review(self, merge: str, *, head: str = "team/infra", **inputs: str) -> Run:
        """Job two of the same run."""
        event = {
            "pull_request": {
                "number": self.forge.number,
                "base": {"sha": git(self.sample.work, "rev-parse", "main")},
                "head": {"repo": {"full_name": head}},
            }
        }
        return self._second("pull_request", event, merge, inputs)

    def review_afterwards(self, head: str, **inputs: str) -> Run:
        """Job two as a workflow that runs after the other one, on the default branch and with rights."""
        event = {
            "workflow_run": {
                "id": 1,
                "head_sha": head,
            }
        }
        return self._second("workflow_run", event, git(self.sample.work, "rev-parse", "main"), inputs)

    def _second(self, name: str, event: dict[str, Any], sha: str, inputs: dict[str, str]) -> Run:
        workspace = self.folder / "empty"
        workspace.mkdir(exist_ok=True)
        return self._run(
            "review",
            self.action,
            workspace=workspace,
            inputs={"path": "infra", "fleet": "hgx-h100 x 4", "head": "dra-infra-head", **inputs},
            github={
                "event_name": name,
                "event": event,
                "sha": sha,
                "repository": "team/infra",
                "server_url": f"file://{self.sample.folder}",
                "actor": "somebody",
                "token": self.token,
                "run_id": "1",
            },
        )

    def _run(
        self, job: str, action: Path, *, workspace: Path, inputs: dict[str, str], github: dict[str, Any]
    ) -> Run:
        temp = self.folder / f"temp-{job}"
        temp.mkdir(exist_ok=True)
        shutil.rmtree(temp / "dra-infra-head", ignore_errors=True)
        return run_action(
            action,
            workspace=workspace,
            temp=temp,
            inputs=inputs,
            github=github,
            environment=clean_environment(
                GITHUB_ACTIONS="true",
                GITHUB_REPOSITORY="team/infra",
                GITHUB_API_URL=self.forge.github,
                GITHUB_REF="refs/heads/main",
            ),
            # One install for all runs of a kind of job: what it does is tried once.
            skip=("Install dra-infra",) if (temp / "dra-infra" / "bin" / "dra-infra").exists() else (),
            artifacts=self.artifacts,
        )


@dataclass
class Job:
    """What a job of GitLab left."""

    code: int
    log: str
    folder: Path


@dataclass
class GitLab:
    """Runners of one project; the template's jobs are joined as GitLab joins them."""

    sample: Sample
    forge: LocalForge
    source: Path
    folder: Path

    def compile(self, commit: str, **variables: str) -> Job:
        """Job one: the merge request is checked out."""
        return self._run("dra-infra compile", commit, self.sample.checkout("compile", commit), variables)

    def review(
        self, commit: str, compiled: Job, left: Mapping[str, str] | None = None, **variables: str
    ) -> Job:
        """Job two: nothing is checked out (GIT_STRATEGY), and the artefacts of the first are there.

        *left* are files that an earlier job left in the folder, on a runner that keeps it.
        """
        assert TEMPLATE["dra-infra review"]["variables"]["GIT_STRATEGY"] == "none"
        workspace = self.folder / "review"
        shutil.rmtree(workspace, ignore_errors=True)
        workspace.mkdir()
        for path, text in (left or {}).items():
            (workspace / path).write_text(text)
        for path in TEMPLATE["dra-infra compile"]["artifacts"]["paths"]:
            if (compiled.folder / path).exists():
                shutil.copy(compiled.folder / path, workspace / path)
        return self._run("dra-infra review", commit, workspace, variables)

    def _run(self, name: str, commit: str, workspace: Path, more: dict[str, str]) -> Job:
        shared, job = TEMPLATE[".dra-infra"], TEMPLATE[name]
        assert job["extends"] == ".dra-infra"
        variables = {
            "GITLAB_CI": "true",
            "CI_PROJECT_DIR": str(workspace),
            "CI_PROJECT_URL": "https://fork.example.invalid/somebody/infra",
            "CI_MERGE_REQUEST_PROJECT_URL": f"file://{self.sample.folder}/team/infra",
            "CI_API_V4_URL": self.forge.gitlab,
            "CI_PROJECT_ID": "99",
            "CI_MERGE_REQUEST_PROJECT_ID": "7",
            "CI_MERGE_REQUEST_IID": "3",
            "CI_MERGE_REQUEST_DIFF_BASE_SHA": git(self.sample.work, "rev-parse", "main"),
            "CI_COMMIT_SHA": commit,
            "CI_JOB_TOKEN": "glcbt-planted0123456789",
            "TMPDIR": str(self.folder),
            **{
                each: str(value)
                for each, value in {**shared["variables"], **job.get("variables", {})}.items()
            },
            "DRA_INFRA_SOURCE": f"file://{self.source}",
            "DRA_INFRA_REF": "v1",
            "DRA_INFRA_PATH": "infra",
            "DRA_INFRA_FLEET": "hgx-h100 x 4",
            **more,
        }
        result = subprocess.run(
            ["bash", "-eo", "pipefail", "-c", "\n".join([*shared["before_script"], *job["script"]])],
            cwd=workspace,
            env=clean_environment(**variables),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=300,
        )
        return Job(code=result.returncode, log=result.stdout, folder=workspace)
