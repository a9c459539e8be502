"""The CLI as a process: what it says before there are events, how it is bounded, and what is left of it."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from pathlib import Path

import pytest

from dra_infra.errors import ProgramError
from dra_infra.program import preview as preview_process
from dra_infra.program.preview import RunningPreview, find_failure, read_lines
from dra_infra.program.project import Project
from dra_infra.program_objects import EnginePreview
from tests.support.processes import wait_for_end

STACK = "urn:pulumi:dev::project::pulumi:pulumi:Stack::project-dev"
SUMMARY = {"summaryEvent": {"result": "succeeded", "resourceChanges": {"create": 1}}}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    root = tmp_path / "project"
    root.mkdir()
    return Project(
        name="project",
        root=root,
        program=root,
        stack="dev",
        stack_file=root / "Pulumi.dev.yaml",
        config={},
    )


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Puts a program in place of the CLI, whose words cannot be had here otherwise: an old lock, a hang."""

    def write(body: str) -> None:
        folder = tmp_path / "bin"
        folder.mkdir(exist_ok=True)
        file = folder / "pulumi"
        file.write_text(f"#!{sys.executable}\nimport json, os, signal, subprocess, sys, time\n{body}")
        file.chmod(0o755)
        monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)

    return write


def preview(project: Project, **options) -> EnginePreview:
    return RunningPreview(project, hide=lambda text: text.replace("hunter2", "[secret]"), **options).result()


def events(*items: object) -> str:
    return "".join(f"print({json.dumps(json.dumps(item))}, flush=True)\n" for item in items)


@pytest.mark.parametrize(
    ("code", "text", "exit_code"),
    [
        (
            "engine-passphrase",
            (
                "error: getting stack configuration: get stack secrets manager: passphrase must be set with "
                "PULUMI_CONFIG_PASSPHRASE or PULUMI_CONFIG_PASSPHRASE_FILE environment variables"
            ),
            1,
        ),
        (
            "engine-passphrase",
            "error: getting stack configuration: get stack secrets manager: incorrect passphrase",
            1,
        ),
        (
            "engine-backend",
            "error: PULUMI_ACCESS_TOKEN must be set for login during non-interactive CLI sessions",
            3,
        ),
        (
            "engine-backend",
            'error: unable to open state directory "file:///gone": stat /gone: no such file or directory',
            1,
        ),
        (
            "engine-backend",
            'error: performing HTTP request: Get "https://127.0.0.1:9/api/user": dial tcp 127.0.0.1:9: connect: connection refused',
            1,
        ),
        ("engine-backend", "", 3),
        ("engine-stack-missing", "error: no stack named 'nope' found", 6),
        (
            "engine-stack-locked",
            (
                "error: the stack is currently locked by 1 lock(s). Either wait for the other process(es) to end or delete "
                "the lock file with `pulumi cancel`."
            ),
            1,
        ),
        (
            "engine-plugin-missing",
            "no resource plugin 'pulumi-resource-kubernetes' found in the workspace at version v4.34.2 or on your $PATH",
            1,
        ),
        (
            "engine-cluster-away",
            "configured Kubernetes cluster is unreachable: unable to load schema information",
            1,
        ),
        (
            "engine-cluster-away",
            (
                'Post "https://127.0.0.1:6443/api/v1/namespaces/ml/configmaps?dryRun=All": dial tcp 127.0.0.1:6443: connect: '
                "connection refused"
            ),
            1,
        ),
    ],
)
def test_the_engines_words_have_a_code(code: str, text: str, exit_code: int):
    failure = find_failure([text], exit_code=exit_code)

    assert failure is not None
    assert (failure.code, failure.path) == (code, "--engine")
    assert failure.hint


def test_words_that_nobody_knows_are_told(cli, project):
    cli("sys.stderr.write('warning: x\\nerror: the moon hunter2 is full\\n'); sys.exit(1)")
    failure = preview(project).failure

    assert failure is not None
    assert (failure.code, failure.message) == (
        "engine-failed",
        "pulumi ended with 1: the moon [secret] is full",
    )


def test_without_the_cli_there_is_no_preview(project, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    failure = preview(project).failure

    assert failure is not None
    assert failure.code == "engine-not-found"


def test_events_that_are_read_late_are_waited_for(cli, project, monkeypatch):
    may_read = threading.Event()
    original = preview_process.read_lines

    def late(*arguments) -> None:
        assert may_read.wait(60)
        original(*arguments)

    monkeypatch.setattr(preview_process, "read_lines", late)
    # There is something to read, so no time is too long.
    monkeypatch.setattr("dra_infra.program.pipe_reader._QUIET", 0.0)
    cli(events(SUMMARY))
    running = RunningPreview(project, hide=str)
    assert running._process is not None
    running._process.wait(60)
    threading.Timer(0.2, may_read.set).start()
    found = running.result()

    assert (found.failure, found.whole) == (None, True)


def test_a_process_that_the_engine_leaves_with_its_output_is_ended(cli, project, monkeypatch):
    monkeypatch.setattr("dra_infra.program.pipe_reader._QUIET", 0.1)
    cli(events(SUMMARY) + "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n")
    found = preview(project)

    assert (found.failure, found.whole) == (None, True)


def test_a_stack_file_that_cannot_be_read_leaves_no_folder(cli, project, tmp_path, monkeypatch):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    cli(events(SUMMARY))
    project.stack_file.write_text("a: [")
    with pytest.raises(ProgramError):
        preview(project, config={"a": "new"})

    assert list(temporary.iterdir()) == []


def test_a_stream_that_breaks_off_is_no_preview(cli, project):
    cli(events({"resourcePreEvent": {"metadata": {"op": "create", "urn": STACK}}}) + "sys.exit(0)")
    found = preview(project)

    assert found.failure is not None
    assert found.failure.code == "engine-failed"
    assert not found.resources
    assert not found.whole


def test_a_cluster_that_goes_away_in_the_middle_leaves_no_half_preview(cli, project):
    step = {"resourcePreEvent": {"metadata": {"op": "create", "urn": STACK}}}
    error = {
        "diagnosticEvent": {
            "severity": "error",
            "message": "configured Kubernetes cluster is unreachable: EOF",
        }
    }
    cli(events(step, error, {"summaryEvent": {"result": "failed"}}) + "sys.exit(1)")
    found = preview(project)

    assert found.failure is not None
    assert (found.failure.code, found.resources) == ("engine-cluster-away", ())


def test_a_refusal_keeps_the_steps_but_is_not_whole(cli, project):
    step = {"resourcePreEvent": {"metadata": {"op": "create", "urn": STACK}}}
    error = {"diagnosticEvent": {"severity": "error", "urn": STACK, "message": "field is immutable"}}
    cli(events(step, error, {"summaryEvent": {"result": "failed"}}) + "sys.exit(1)")
    found = preview(project)

    assert (found.failure, found.whole, len(found.resources)) == (None, False, 1)
    assert [each.text for each in found.messages] == ["field is immutable"]


def test_a_run_that_only_policies_fail_is_whole(cli, project):
    policy = {
        "policyEvent": {
            "policyName": "p",
            "policyPackName": "t",
            "enforcementLevel": "mandatory",
            "message": "no",
        }
    }
    cli(events(policy, {"summaryEvent": {"result": "failed"}}) + "sys.exit(1)")
    found = preview(project)

    assert (found.failure, found.whole, len(found.policies)) == (None, True, 1)


def test_a_preview_that_hangs_is_ended_with_everything_it_started(cli, project, tmp_path):
    started = tmp_path / "started"
    # The child leaves the process group, as the engine's plugins do, and neither heeds a signal that can be ignored.
    cli(
        "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import signal, time; signal.signal(signal.SIGTERM, "
        "signal.SIG_IGN); time.sleep(600)'], process_group=0)\n"
        f"open({str(started)!r} + '.partial', 'w').write(f'{{os.getpid()}} {{child.pid}}')\n"
        f"os.rename({str(started)!r} + '.partial', {str(started)!r})\n"
        "time.sleep(600)"
    )
    # On a busy machine it may not have begun within the first time.
    for seconds in (2.0, 60.0):
        before = time.monotonic()
        failure = preview(project, timeout=seconds).failure
        took = time.monotonic() - before
        if started.exists():
            break

    assert failure is not None
    assert failure.code == "engine-timeout"
    assert took < seconds + 30
    for number in map(int, started.read_text().split()):
        assert wait_for_end(number)


def test_stopping_cancels_the_engine_as_ctrl_c_does(cli, project, tmp_path, monkeypatch):
    # It ends as soon as the process does; a disk may take seconds for the file that it writes first.
    monkeypatch.setattr(preview_process, "_GRACE", 60.0)
    ready = tmp_path / "ready"
    cancelled = tmp_path / "cancelled"
    cli(
        f"def leave(number, frame):\n    open({str(cancelled)!r}, 'w').close()\n    sys.exit(8)\n"
        f"signal.signal(signal.SIGINT, leave)\nopen({str(ready)!r}, 'w').close()\ntime.sleep(600)"
    )
    running = RunningPreview(project, hide=str)
    done = threading.Event()
    deadline = time.monotonic() + 120
    while not ready.exists() and time.monotonic() < deadline:
        done.wait(0.02)
    assert ready.exists()
    running.stop()

    assert cancelled.exists()


def test_settings_reach_the_engine_in_a_copy_of_the_stack_file(cli, project, tmp_path):
    told = tmp_path / "told"
    file = project.root / "Pulumi.dev.yaml"
    file.write_text("encryptionsalt: v1:x\nconfig:\n  project:a: old\n  b: kept\n")
    cli(
        f"at = sys.argv.index('--config-file') + 1\nopen({str(told)!r}, 'w').write(open(sys.argv[at]).read())\n"
        + events(SUMMARY)
    )
    preview(project, config={"a": "new"})

    assert told.read_text() == "config:\n  project:a: new\n  project:b: kept\nencryptionsalt: v1:x\n"
    assert "old" in file.read_text()


def test_an_event_without_an_end_is_left_out_and_the_next_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr("dra_infra.program.preview.MAX_LINE", 100)
    file = tmp_path / "stream"
    file.write_bytes(b"first\n" + b"x" * 1_000 + b"\nlast\n")
    lines: list[bytes] = []
    skipped: list[None] = []
    with file.open("rb") as stream:
        read_lines(stream, lines.append, lambda: skipped.append(None))

    assert (lines, len(skipped)) == ([b"first\n", b"last\n"], 1)
