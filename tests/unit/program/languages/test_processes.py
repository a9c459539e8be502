"""Plugins of Pulumi as processes: their port, their output, their end."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from dra_infra.program.languages.processes import PluginDiedError, PluginProcess

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
