"""A command of dra-infra in a process of its own, which reads a copy of the input and reaches nothing else.

The process gets its request as one JSON text on standard input, and answers with one on standard output. It has no variables of the
environment but the search path, no network, and opens no file but those of Python, of this package and of its own folder, as far as the kernel can hold
that (`dra_infra.program.sandbox`).
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click

from dra_infra.cli.app import app
from dra_infra.cli.failures import PROBLEMS
from dra_infra.cli.printing import problems_as_data
from dra_infra.errors import Problem, ProblemsError, ProgramError
from dra_infra.program import confinement, python_start, sandbox

if sys.platform != "win32":
    import resource

LONGEST: Final = 60.0
"""Seconds that a call may ask for, and that one without a time has."""

_GRACE: Final = 15.0
"""Seconds beyond its time in which a command starts and prints."""

MOST_OUTPUT: Final = 16 * 2**20
"""Bytes of a report that is returned."""

_MOST_NOTES: Final = 20_000
_MOST_MEMORY: Final = 4 * 2**30
"""Bytes of address space, as for kustomize."""

_LARGEST_FILE: Final = 64 * 2**20
_START: Final = """\
import sys
sys.prefix, sys.exec_prefix, *sys.path = sys.argv[1:]
from dra_infra.agent_tools import confined_command
confined_command.main()
"""
_SMALLER: Final = "ask about fewer objects, or run the command dra-infra in a shell"


@dataclass(frozen=True, slots=True)
class CommandResult:
    """Answer of a command.

    Args:
        exit_code: Its exit code: 2 where it has no answer.
        report: The JSON that it printed; None where it has none.
        problems: Why there is no report, as JSON data.
        notes: What it said on standard error.
    """

    exit_code: int
    report: Any
    problems: Sequence[Mapping[str, Any]]
    notes: str


class RunningCommand:
    """A command that runs; `wait` takes its answer. Several may run at once.

    Args:
        words: The command with its options.
        folder: Its current folder. It reads that and the folders beside it.
        home: A folder that it may write to.
        seconds: How long it may take.
    """

    def __init__(self, words: Sequence[str], *, folder: Path, home: Path, seconds: float) -> None:
        self._seconds = seconds + _GRACE
        self._is_over = False
        self._request = json.dumps({"words": list(words), "folder": str(folder), "home": str(home)}).encode()
        self._process = subprocess.Popen(
            [
                *(sys.executable, *python_start.FLAGS, "-E", "-c", _START, sys.prefix, sys.exec_prefix),
                *python_start.trusted_path(folder.parent),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=folder,
            env={
                "PATH": os.defpath,
                "HOME": str(home),
                "TMPDIR": str(home),
                "LC_ALL": "C.UTF-8",
                # Each thread of the solver would reserve a heap of its own, and address space is bounded.
                "MALLOC_ARENA_MAX": "2",
            },
            # A group of its own, which ends as a whole.
            start_new_session=True,
        )

    def wait(self) -> CommandResult:
        """Wait for the answer, and end the process if it takes too long.

        Raises:
            ProgramError: `call-not-finished`.
        """
        try:
            output, _ = self._process.communicate(self._request, timeout=self._seconds)
        except subprocess.TimeoutExpired:
            raise _unfinished(f"it did not end in {self._seconds:.0f} s") from None
        finally:
            self.kill()
            self._is_over = True
            self._close()
        if self._process.returncode != 0:
            raise _unfinished("its process died; it may need more memory than it may have")
        return _read_answer(output)

    def _close(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout):
            # What was not read by a process that ended is lost.
            with contextlib.suppress(BrokenPipeError):
                if pipe is not None:
                    pipe.close()
        self._process.wait()

    def kill(self) -> None:
        """End the process and all that it started; nothing where it was waited for."""
        if self._is_over:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)


def _read_answer(output: bytes) -> CommandResult:
    try:
        answer = json.loads(output)
        return CommandResult(answer["exit"], answer["report"], answer["problems"], answer["notes"])
    except (ValueError, LookupError, TypeError):
        raise _unfinished("its process gave no answer") from None


def _unfinished(why: str) -> ProgramError:
    return ProgramError.of(path="call", code="call-not-finished", message=why, hint=_SMALLER)


def main() -> None:
    """Read the request, enter the confinement, run the command and write its answer."""
    request = json.loads(sys.stdin.buffer.read())
    answer_to = os.dup(sys.stdout.fileno())
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)
    os.close(nothing)
    folder, home = Path(request["folder"]), Path(request["home"])
    sandbox.end_with_parent(signal.SIGKILL)
    _limit()
    confinement.enter(folder, inside=folder.parent, home=home, allowance=confinement.ONLY_ITS_OWN)
    data = json.dumps(_run(request["words"])).encode()
    with os.fdopen(answer_to, "wb") as stream:
        stream.write(data)
    # What is left is not collected.
    os._exit(0)


def _limit() -> None:
    if sys.platform != "win32":
        bounds = {
            resource.RLIMIT_AS: _MOST_MEMORY,
            resource.RLIMIT_CORE: 0,
            resource.RLIMIT_FSIZE: _LARGEST_FILE,
        }
        for kind, bound in bounds.items():
            _, hard = resource.getrlimit(kind)
            most = bound if hard == resource.RLIM_INFINITY else min(bound, hard)
            resource.setrlimit(kind, (most, most))


def _run(words: Sequence[str]) -> Mapping[str, Any]:
    """Run the command in this process; return its answer as JSON data."""
    output, notes = io.StringIO(), io.StringIO()
    problems: list[Problem] = []
    code = 2
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(notes):
        try:
            code = app.main(list(words), prog_name="dra-infra", standalone_mode=False)
        except ProblemsError as error:
            problems += error.problems
        except click.ClickException as error:
            problems += _problems_of(error)
        except MemoryError:
            problems += _unfinished("it needs more memory than it may have").problems
        except RecursionError:
            problems += _unfinished("its input is nested too deep").problems
    text = output.getvalue()
    if len(text) > MOST_OUTPUT:
        message = f"the report has more than {MOST_OUTPUT >> 20} MiB"
        problems.append(Problem(path="call", code="call-too-large", message=message, hint=_SMALLER))
        text = ""
    report = json.loads(text) if text else None
    if report is not None and report["schema"] == PROBLEMS:
        # The problems are in the answer already, and agents know no schema for this one.
        report = None
    return {
        "exit": code,
        "report": report,
        "problems": problems_as_data(problems),
        "notes": notes.getvalue()[:_MOST_NOTES],
    }


def _problems_of(error: click.ClickException) -> Sequence[Problem]:
    """Return the problems of a refused option: those that it was made of, if it was."""
    if isinstance(error.__cause__, ProblemsError):
        return error.__cause__.problems
    option = str(getattr(error, "param_hint", None) or "call").strip("'\" ")
    return [Problem(path=option, code="call-refused", message=error.message, hint="see the tool's schema")]
