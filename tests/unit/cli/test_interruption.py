"""Ctrl-C while a program is being loaded: it ends with 130, and prints nothing."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SLOW = 'print("loading", flush=True)\nimport time\ntime.sleep(600)\n'


def heed_interrupts() -> None:
    """As in a terminal: what a shell starts in the background ignores them, and so do all that it starts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.parametrize(
    ("slow", "words"),
    [
        ("click", ["-c", "from dra_infra.cli.process import main; main()", "--version"]),
        # When it knows which command it is.
        ("dataclasses", ["-c", "from dra_infra.cli.process import main; main()", "catalog"]),
        ("click", ["-m", "dra_infra", "--version"]),
        ("argparse", ["-m", "dra_infra.plugin.command.main", "--version"]),
        # In the middle of its work.
        ("yaml", ["-m", "dra_infra.plugin.command.main", "--config", "/dev/null"]),
        ("pydantic", ["-m", "dra_infra.plugin.command.main", "sim", "show"]),
        ("httpx", ["-m", "tools.cluster"]),
        ("argparse", ["-m", "tools.cluster", "--node"]),
    ],
)
def test_an_interrupt_while_a_program_loads_ends_it_without_a_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slow: str, words: list[str]
):
    (tmp_path / f"{slow}.py").write_text(SLOW)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{ROOT}")
    with subprocess.Popen(
        [sys.executable, *words],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heed_interrupts,  # noqa: PLW1509 - nothing is done there that a thread could hold.
    ) as process:
        try:
            assert process.stdout
            assert process.stdout.readline() == "loading\n"
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()
    assert (process.returncode, out, err) == (130, "", "")


def test_who_ignores_interrupts_goes_on_to_do_so():
    program = (
        "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "from dra_infra.process import end_quietly, unwind\nend_quietly()\nunwind()\n"
        "assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN\n"
    )
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True)


INSIDE_A_LOCK = """
import signal, threading
from dra_infra.answers import observing
from dra_infra.cli.app import main
from dra_infra.cluster.reading import Listing

class Cluster:
    def list(self, kind, **_):
        return Listing(kind=kind, version="v1")

def wait(self, seen, timeout):
    condition = threading.Condition()
    with condition:
        # Condition.wait gives the lock back first, before the part that survives an exception.
        condition._release_save()
        signal.raise_signal(signal.SIGINT)

observing.open_reader = lambda *_, **__: Cluster()
observing.Watch.wait = wait
main(["status", "--watch"])
"""


def test_an_interrupt_inside_a_lock_ends_a_watch_as_any_other_does():
    done = subprocess.run(
        [sys.executable, "-c", INSIDE_A_LOCK],
        cwd=ROOT,
        capture_output=True,
        text=True,
        preexec_fn=heed_interrupts,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout
