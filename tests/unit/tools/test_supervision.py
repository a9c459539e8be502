"""Processes and folders under supervision, with plain system programs in place of servers."""

from __future__ import annotations

import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from tools.cluster import supervisor
from tools.cluster.supervision import Supervision
from tools.errors import ToolError

SECONDS = 300.0
SLEEP = ["/bin/sleep", "600"]

START_ONE = """
import json, os, signal, sys, time
from tools.cluster.supervision import Supervision
# Whatever runs in the background of a shell without job control starts with the signal ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
supervision = Supervision()
supervision.start("sleeper", ["/bin/sleep", "600"])
told = {"folder": str(supervision.folder), "pids": [*supervision.pids.values(), supervision.pid]}
"""
HOLD = "print(json.dumps(told), flush=True); time.sleep(600)"
LEAVE_A_COPY = """
copy = os.fork()
if copy == 0:
    os.close(1)
    time.sleep(600)
told["copy"] = copy
print(json.dumps(told), flush=True)
time.sleep(600)
"""
START_IN_A_THREAD = """
import threading
def start():
    global other
    other = Supervision()
    other.start("sleeper", ["/bin/sleep", "600"])
thread = threading.Thread(target=start)
thread.start()
thread.join()
other.pause(1.0)
print(json.dumps({"alive": os.path.exists(f"/proc/{other.pids['sleeper']}/exe")}), flush=True)
"""


def end_of(pids):
    """Wait for all processes to end; returns those that do not within SECONDS."""
    deadline = time.monotonic() + SECONDS
    left = []
    for pid in pids:
        try:
            descriptor = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        if not select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))[0]:
            left.append(pid)
        os.close(descriptor)
    return left


@pytest.fixture
def run_python():
    """Runs a program in another Python; returns it and its first line of JSON."""
    started = []

    def run(program):
        process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
        started.append(process)
        return process, json.loads(process.stdout.readline())

    yield run
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()


@pytest.fixture
def supervision():
    value = Supervision()
    yield value
    value.stop()


def test_stop_ends_processes_and_removes_the_folder(supervision):
    supervision.start("sleeper", SLEEP)
    (supervision.folder / "deep").mkdir()
    (supervision.folder / "deep" / "file").touch()
    supervision.stop()
    assert end_of(supervision.pids.values()) == []
    assert not supervision.folder.exists()


def test_stop_may_be_repeated(supervision):
    supervision.stop()
    supervision.stop()
    assert not supervision.folder.exists()


def test_folder_is_private(supervision):
    assert supervision.folder.stat().st_mode & 0o777 == 0o700


def test_output_of_a_process_is_kept(supervision):
    supervision.start("speaker", ["/bin/sh", "-c", "echo one; echo two >&2; exec sleep 600"])
    deadline = time.monotonic() + SECONDS
    while supervision.log("speaker") != "one\ntwo\n" and time.monotonic() < deadline:
        supervision.pause(0.02)
    assert supervision.log("speaker") == "one\ntwo\n"


def test_settings_of_the_shell_do_not_reach_the_processes(monkeypatch):
    monkeypatch.setenv("ETCD_NAME", "leaked")
    supervision = Supervision()
    try:
        supervision.start("sleeper", SLEEP)
        assert "ETCD_NAME" not in Path(f"/proc/{supervision.pids['sleeper']}/environ").read_text()
    finally:
        supervision.stop()


def test_process_that_ends_by_itself_is_an_error_with_its_last_words(supervision):
    supervision.start("failing", ["/bin/sh", "-c", "echo no space for me; exit 3"])
    with pytest.raises(ToolError, match=r"failing ended with status 3; its last lines:\nno space for me"):
        supervision.pause(SECONDS)


def test_program_that_does_not_exist_is_an_error(supervision):
    with pytest.raises(ToolError, match=r"ghost cannot be started: .*No such file"):
        supervision.start("ghost", ["/no/such/program"])


def test_start_after_stop_is_an_error(supervision):
    supervision.stop()
    with pytest.raises(ToolError, match="late cannot be started: the supervisor process is gone"):
        supervision.start("late", SLEEP)


@pytest.mark.parametrize(
    "number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGSEGV], ids=lambda number: number.name
)
def test_nothing_outlives_a_starter_that_is_killed(run_python, number):
    process, told = run_python(START_ONE + HOLD)
    process.send_signal(number)
    assert end_of(told["pids"]) == []
    assert not Path(told["folder"]).exists()


def test_copy_of_the_starter_that_holds_the_pipe_open_changes_nothing(run_python):
    process, told = run_python(START_ONE + LEAVE_A_COPY)
    process.kill()
    try:
        assert end_of(told["pids"]) == []
        assert not Path(told["folder"]).exists()
    finally:
        os.kill(told["copy"], signal.SIGKILL)


def test_a_process_gets_the_environment_that_is_given_and_none_of_ours(supervision, monkeypatch):
    monkeypatch.setenv("GOGC", "50")
    show = ["/bin/sh", "-c", "env; echo whole; exec sleep 600"]
    supervision.start("given", show, environment={"GOGC": "off"})
    supervision.start("none", show)
    deadline = time.monotonic() + SECONDS
    while not all("whole" in supervision.log(name) for name in ("given", "none")):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert "GOGC=off\n" in supervision.log("given")
    assert "GOGC" not in supervision.log("none")
    assert f"HOME={supervision.folder}\n" in supervision.log("given")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_signal_to_the_supervisor_ends_all(supervision, number):
    supervision.start("sleeper", SLEEP)
    os.kill(supervision.pid, number)
    assert end_of([supervision.pid, *supervision.pids.values()]) == []
    assert not supervision.folder.exists()


def test_processes_end_with_a_killed_supervisor(run_python):
    _, told = run_python(START_ONE + HOLD)
    sleeper, supervisor = told["pids"]
    os.kill(supervisor, signal.SIGKILL)
    try:
        assert end_of([sleeper]) == []
    finally:
        # The next one would; nothing is to be left where there is none.
        shutil.rmtree(told["folder"], ignore_errors=True)


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """A folder for temporary files that no other cluster of this machine has."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def kill_supervisor(told):
    os.kill(told["pids"][1], signal.SIGKILL)
    assert end_of(told["pids"]) == []


def test_folder_of_a_killed_supervisor_is_removed_by_the_next_one(temporary, run_python):
    _, told = run_python(START_ONE + HOLD)
    left_over = Path(told["folder"])
    (left_over / "deep").mkdir()
    (left_over / "deep" / "file").touch()
    (left_over / "link").symlink_to(temporary)
    kill_supervisor(told)
    assert left_over.exists()
    supervision = Supervision()
    try:
        supervision.start("sleeper", SLEEP)
        assert not left_over.exists()
        assert list(temporary.iterdir()) == [supervision.folder]
    finally:
        supervision.stop()
    assert list(temporary.iterdir()) == []


def test_folders_that_somebody_owns_or_that_say_nothing_are_left(temporary, run_python):
    _, alive = run_python(START_ONE + HOLD)
    unknown = temporary / "dra-infra-cluster-older"
    unknown.mkdir()
    (temporary / "dra-infra-cluster-link").symlink_to(unknown)
    Supervision().stop()
    assert Path(alive["folder"], "sleeper.log").exists()
    assert unknown.exists()


def test_folder_is_left_for_as_long_as_a_process_of_the_cluster_lives(temporary, run_python):
    # The kernel ends a process with its supervisor; this one has the same folder and lock, and no such end.
    survivor = "supervision.start('survivor', ['/bin/sh', '-c', 'sleep 600 & echo $! > survivor; wait'])\n"
    # Its shell has the lock as well, and ends with the supervisor.
    survivor += "told['pids'].append(supervision.pids['survivor'])\n"
    _, told = run_python(START_ONE + survivor + HOLD)
    folder = Path(told["folder"])
    deadline = time.monotonic() + SECONDS
    while not (folder / "survivor").exists() or not (folder / "survivor").read_text():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    pid = int((folder / "survivor").read_text())
    kill_supervisor(told)
    Supervision().stop()
    assert folder.exists()
    os.kill(pid, signal.SIGKILL)
    assert end_of([pid]) == []
    Supervision().stop()
    assert not folder.exists()


def test_folder_in_which_something_is_mounted_is_left(temporary, run_python, monkeypatch):
    _, told = run_python(START_ONE + HOLD)
    folder = Path(told["folder"])
    kill_supervisor(told)
    lines = f"36 35 98:0 / {folder}/node/rootfs rw - tmpfs tmpfs rw\n"
    monkeypatch.setattr(Path, "read_text", lambda *_: lines)
    supervisor._remove_left_overs()
    assert folder.exists()
    lines = "36 35 98:0 / /elsewhere rw - tmpfs tmpfs rw\n"
    supervisor._remove_left_overs()
    assert not folder.exists()


def test_processes_outlive_the_thread_that_started_them(run_python):
    assert run_python(START_ONE + START_IN_A_THREAD)[1] == {"alive": True}


def test_supervisions_do_not_hold_each_other_open():
    first, second = Supervision(), Supervision()
    first.stop()
    assert not first.folder.exists()
    assert second.folder.exists()
    second.stop()


def test_process_that_is_ended_may_be_started_again_and_goes_on_with_its_log(supervision):
    speaker = ["/bin/sh", "-c", "echo here; exec sleep 600"]
    supervision.start("speaker", speaker)
    first = supervision.pids["speaker"]
    while not supervision.log("speaker"):
        supervision.pause(0.02)
    supervision.end("speaker")
    assert end_of([first]) == []
    supervision.start("speaker", speaker)
    deadline = time.monotonic() + SECONDS
    while supervision.log("speaker") != "here\nhere\n" and time.monotonic() < deadline:
        supervision.pause(0.02)
    assert supervision.log("speaker") == "here\nhere\n"


def test_other_process_that_ends_meanwhile_is_still_an_error(supervision):
    supervision.start("sleeper", SLEEP)
    supervision.start("failing", ["/bin/sh", "-c", "exit 3"])
    assert end_of([supervision.pids["failing"]]) == []
    with pytest.raises(ToolError, match="failing ended with status 3"):
        supervision.end("sleeper")


def test_programs_for_the_end_run_in_reverse_when_all_processes_are_gone(supervision, tmp_path):
    supervision.start("sleeper", SLEEP)
    pid = supervision.pids["sleeper"]
    told = tmp_path / "told"
    look = f"test -d {supervision.folder} && test ! -e /proc/{pid} && echo"
    supervision.at_end(["/bin/sh", "-c", f"{look} second >> {told}"])
    supervision.at_end(["/bin/sh", "-c", f"{look} first >> {told}"])
    assert not told.exists()
    supervision.stop()
    assert told.read_text() == "first\nsecond\n"


def test_program_for_the_end_runs_when_the_starter_is_killed(run_python, tmp_path):
    told = tmp_path / "told"
    note = f"supervision.at_end(['/bin/sh', '-c', 'echo end > {told}'])\n"
    process, started = run_python(START_ONE + note + HOLD)
    process.kill()
    assert end_of(started["pids"]) == []
    assert told.read_text() == "end\n"


def test_orphans_of_a_process_end_with_it(supervision, tmp_path):
    orphan = tmp_path / "orphan"
    supervision.start("parent", ["/bin/sh", "-c", f"sleep 600 & echo $! > {orphan}; exec sleep 600"])
    deadline = time.monotonic() + SECONDS
    while not (orphan.exists() and orphan.read_text()) and time.monotonic() < deadline:
        supervision.pause(0.02)
    supervision.stop()
    assert end_of([int(orphan.read_text())]) == []


def test_file_that_is_kept_open_is_locked_until_the_end(tmp_path):
    with (tmp_path / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        supervision = Supervision(keep_open=[file.fileno()])
    with (tmp_path / "lock").open("w") as file:
        with pytest.raises(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        supervision.stop()
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
