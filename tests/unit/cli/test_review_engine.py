"""`dra-infra review --engine`: exit codes and gates; what the real engine says is in tests/e2e/review."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dra_infra.program import preview
from dra_infra.program.project import load_project
from tests.support.warm_commands import warm

SETTINGS = (
    'import pulumi_kubernetes as k8s\nk8s.core.v1.ConfigMap("a", metadata={"name": "a"}, data={"k": "%s"})\n'
)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "infra"
    folder.mkdir()
    (folder / "Pulumi.yaml").write_text("name: infra\nruntime: python\n")
    (folder / "__main__.py").write_text(SETTINGS % 1)
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.invalid"]
    for arguments in (["init", "-q"], ["add", "."], [*identity, "commit", "-qm", "base"]):
        subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True)
    (folder / "__main__.py").write_text(SETTINGS % 2)
    return folder


@pytest.fixture
def review(tmp_path: Path):
    def run(
        folder: Path, *arguments: str, cli: str = "", **environment: str
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(**_arguments(tmp_path, folder, arguments, cli, environment), check=False)

    return run


def _arguments(tmp_path: Path, folder: Path, arguments, cli: str, environment) -> dict:
    binaries = tmp_path / "bin"
    binaries.mkdir(exist_ok=True)
    if cli:
        (binaries / "pulumi").write_text(f"#!{sys.executable}\nimport os, sys, time\n{cli}")
        (binaries / "pulumi").chmod(0o755)
    # Only what a review itself needs is on PATH: a `pulumi` of this machine must not answer.
    git = Path(subprocess.run(["which", "git"], capture_output=True, text=True, check=True).stdout.strip())
    if not (binaries / "git").exists():
        (binaries / "git").symlink_to(git)
    return {
        "args": [warm().command, "review", *arguments],
        "cwd": folder,
        "env": {**os.environ, "COLUMNS": "200", "PATH": str(binaries), **environment},
        "capture_output": True,
        "text": True,
    }


def find_code(text: str) -> str:
    (code,) = re.findall(r"\[([a-z-]+)\]", text)
    return code


def say(*events: object, code: int = 0) -> str:
    return "".join(f"print({json.dumps(json.dumps(event))})\n" for event in events) + f"sys.exit({code})\n"


def test_without_the_cli_the_offline_review_is_given_and_the_exit_code_is_2(project, review):
    offline, result = review(project), review(project, "--engine")

    assert (offline.returncode, result.returncode) == (0, 2)
    assert "replaced ConfigMap a" in result.stdout
    assert "the engine's preview: there is no `pulumi` on PATH [engine-not-found]" in result.stdout


def test_the_engines_words_come_without_secrets_of_the_environment(project, review):
    body = "sys.stderr.write('error: token ' + os.environ['TEAM_TOKEN'] + ' is no good')\nsys.exit(1)"
    result = review(project, "--engine", "--json", "review.json", cli=body, TEAM_TOKEN="hunter2-hunter2")

    assert result.returncode == 2
    assert "engine-failed" in result.stdout
    for text in (result.stdout, result.stderr, (project / "review.json").read_text()):
        assert "hunter2-hunter2" not in text


def test_a_mandatory_policy_closes_the_gate(project, review):
    urn = "urn:pulumi:dev::infra::kubernetes:core/v1:ConfigMap::a"
    policy = {
        "resourceUrn": urn,
        "policyName": "p",
        "policyPackName": "t",
        "enforcementLevel": "mandatory",
        "message": "no",
    }
    step = {"resourcePreEvent": {"metadata": {"op": "update", "urn": urn}}}
    events = (step, {"policyEvent": policy}, {"summaryEvent": {"result": "failed"}})
    result = review(project, "--engine", cli=say(*events, code=1))

    assert result.returncode == 1
    assert "[policy-violated]" in result.stdout
    assert "ConfigMap a: t p: no" in result.stdout


@pytest.mark.parametrize("chart", [True, False])
def test_only_programs_have_an_engine(tmp_path, review, chart):
    folder = tmp_path / "objects"
    folder.mkdir()
    if chart:
        (folder / "Chart.yaml").write_text("apiVersion: v2\nname: a\nversion: 1.0.0\n")
    result = review(folder, "--engine", ".")

    assert result.returncode == 2
    assert find_code(result.stderr) == "engine-not-for-source"
    assert result.stdout == ""


@pytest.mark.parametrize("option", [("--policy-pack", "pack"), ("--refresh",)])
def test_options_of_the_engine_need_it(project, review, option):
    result = review(project, *option)

    assert result.returncode == 2
    assert "needs --engine" in result.stderr


def test_a_review_that_ci_ends_leaves_no_engine_behind(project, tmp_path):
    started = tmp_path / "started"
    body = f"open({str(started)!r} + '.partial', 'w').write(str(os.getpid()))\n"
    body += f"os.rename({str(started)!r} + '.partial', {str(started)!r})\ntime.sleep(600)\n"
    arguments = _arguments(tmp_path, project, ("--engine",), body, {})
    process = subprocess.Popen(
        arguments["args"],
        cwd=arguments["cwd"],
        env=arguments["env"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + 120
        while not started.exists():
            assert time.monotonic() < deadline
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 128 + signal.SIGTERM
    finally:
        process.kill()
    with pytest.raises(ProcessLookupError):
        os.kill(int(started.read_text()), 0)


def test_a_signal_that_comes_while_the_engine_starts_ends_it_as_well(project, monkeypatch):
    stopped = []

    class Starting:
        def __init__(self, *_: object, **__: object) -> None:
            os.kill(os.getpid(), signal.SIGTERM)

        result = None

        def stop(self) -> None:
            stopped.append(self)

    monkeypatch.setattr(preview, "RunningPreview", Starting)
    before = signal.getsignal(signal.SIGTERM)
    found = load_project(project, None, {})
    with (
        pytest.raises(SystemExit) as ended,
        preview.previewing(found, stack=None, config={}, timeout=60),
    ):
        pytest.fail("it goes on")
    assert ended.value.code == 128 + signal.SIGTERM
    assert len(stopped) == 1
    assert signal.getsignal(signal.SIGTERM) is before
