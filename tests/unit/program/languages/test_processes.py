"""Plugins of Pulumi as processes: their port, their output, their end."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from dra_infra.program.languages import processes
from dra_infra.program.languages.processes import PluginDiedError, PluginProcess, run_to_end

SECONDS = 60


def start(folder: Path, code: str) -> PluginProcess:
    return PluginProcess([sys.executable, "-c", code], folder=folder, environment=os.environ)


def test_all_that_was_printed_before_the_end_is_read(tmp_path: Path):
    code = """
import os, sys, time
os.write(1, b"12")
os.write(1, b"34\\nfirst\\n")
os.write(2, b"line\\n" * 20_000 + b"last\\n")
open("done", "w").close()
time.sleep(600)
"""
    process = start(tmp_path, code)
    assert process.port(SECONDS) == 1234
    # The output is larger than a pipe, so the file is there once the output is read but for a pipe of it.
    while not (tmp_path / "done").exists():
        assert process.is_running
    printed = process.stop()
    # The two streams may be read in turns.
    assert "first\n" in printed
    assert printed.replace("first\n", "", 1) == "line\n" * 20_000 + "last\n"


def test_a_plugin_that_ends_early_says_what_it_printed(tmp_path: Path):
    process = start(tmp_path, "import sys; sys.exit('no such option')")
    with pytest.raises(PluginDiedError, match="no such option"):
        process.port(SECONDS)


def test_a_plugin_that_prints_no_number_has_no_port(tmp_path: Path):
    process = start(tmp_path, "import time; print('hello', flush=True); time.sleep(600)")
    with pytest.raises(PluginDiedError):
        process.port(SECONDS)


def test_what_a_plugin_started_ends_with_it(tmp_path: Path):
    code = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(child.pid, flush=True)
time.sleep(600)
"""
    process = start(tmp_path, code)
    child = process.port(SECONDS)
    process.stop()
    # A process that has ended and has no parent yet is a zombie; it has no command line.
    file = Path(f"/proc/{child}/cmdline")
    while file.exists() and file.read_bytes():
        pass


def test_output_is_bounded(tmp_path: Path):
    code = (
        "import os\nos.write(1, b'1\\n')\nfor _ in range(64): os.write(2, b'a' * 2**16)\nos.write(2, b'end')"
    )
    process = start(tmp_path, code)
    assert process.port(SECONDS) == 1
    process.wait(SECONDS)
    printed = process.stop()
    assert len(printed) <= 2**18
    assert printed.endswith("end")


def test_what_arrives_late_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    may_read = threading.Event()
    original = processes._Output.read_all

    def late(output: processes._Output, pipe) -> None:
        assert may_read.wait(60)
        original(output, pipe)

    monkeypatch.setattr(processes._Output, "read_all", late)
    # There is something to read, so no time is too long.
    monkeypatch.setattr("dra_infra.program.pipe_reader._QUIET", 0.0)
    monkeypatch.setattr(processes, "_ENDING", 0.0, raising=False)
    threading.Timer(2.0, may_read.set).start()
    command = [sys.executable, "-c", "import sys; sys.exit('all of it')"]
    ended = run_to_end(command, folder=tmp_path, environment=os.environ, deadline=time.monotonic() + 600)

    assert ended == (1, "all of it\n")


@pytest.mark.parametrize("threads", [0, 1])
def test_a_start_that_fails_leaves_neither_a_process_nor_a_pipe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int
):
    started: list[subprocess.Popen[bytes]] = []
    left = [threads]
    start_process, start_thread = processes._start, threading.Thread.start

    def watch(*arguments, **options) -> subprocess.Popen[bytes]:
        started.append(start_process(*arguments, **options))
        return started[-1]

    def refuse(thread: threading.Thread) -> None:
        if not left[0]:
            raise RuntimeError("can't start new thread")
        left[0] -= 1
        start_thread(thread)

    monkeypatch.setattr(processes, "_start", watch)
    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(RuntimeError):
        start(tmp_path, "import time; time.sleep(600)")
    (process,) = started
    assert process.returncode
    assert process.stdout
    assert process.stdout.closed
    assert process.stderr
    assert process.stderr.closed
