from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from dra_infra.program import supervisor

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc is Linux's")

# Two processes that do not end by themselves: one from before the signals were held, one from after.
SIGNALS = """
import os, signal, sys, time
from dra_infra.program import sandbox
outside = os.fork()
if outside == 0:
    time.sleep(60)
    os._exit(0)
if not sandbox.hold_signals():
    os.kill(outside, signal.SIGKILL)
    print("not here")
    sys.exit()
inside = os.fork()
if inside == 0:
    os.setsid()
    time.sleep(60)
    os._exit(0)
os.kill(-1, signal.SIGKILL)
print(os.waitpid(inside, 0)[1], os.waitpid(outside, os.WNOHANG)[0])
"""


def test_a_signal_to_all_reaches_only_what_was_started_since():
    with subprocess.Popen(
        [sys.executable, "-u", "-c", SIGNALS], stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as sleeper:
        # Not to its end, for the process outside has the pipe, too.
        said = sleeper.stdout.readline()
        sleeper.wait(60)
        os.killpg(sleeper.pid, signal.SIGKILL)
    if said == "not here\n":
        pytest.skip("Landlock holds signals from Linux 6.12 on")
    assert said == f"{int(signal.SIGKILL)} 0\n"


def test_tasks_of_all_descendants_are_counted():
    program = "import os, threading\nif os.fork() == 0:\n    for _ in range(3):\n        threading.Thread(target=input).start()\nos.write(1, b'ready\\n')\ninput()\n"
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as running:
        assert [running.stdout.readline() for _ in range(2)] == ["ready\n"] * 2
        # Two processes, and three threads of one of them.
        assert supervisor._has_more_tasks(running.pid, 4)
        assert not supervisor._has_more_tasks(running.pid, 5)
        running.kill()


def test_what_is_no_process_has_no_children():
    assert list(supervisor._children(2**30)) == []
    assert not supervisor._has_more_tasks(2**30, 0)
