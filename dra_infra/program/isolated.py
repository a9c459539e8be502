"""Runs a program in a process of its own, which sees and reaches no more than `--allow` says.

`python -P -m dra_infra.program.isolated DESCRIPTOR` reads a request from its standard input. That process starts
another one for the program, ends whatever it leaves behind, and is never itself under the program's hand. The answer
comes through an inherited pipe that nobody else has: a file could be replaced by what the program left running.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from dra_infra.errors import ProblemsError, ProgramError
from dra_infra.output.secret_detector import report_mask
from dra_infra.output.secrets import secret_texts
from dra_infra.program import confinement, sandbox
from dra_infra.program.confinement import ONLY_ITS_OWN, Allowance
from dra_infra.program.program_json import (
    MAX_BYTES,
    problems_to_json,
    program_from_json,
    program_to_json,
    unreadable,
    write_json,
)
from dra_infra.program.synth import DEFAULT_TIMEOUT, synth
from dra_infra.program_objects import Program

_GRACE = 10.0
"""Seconds beyond its own limit after which a process that does not react is killed."""

_ENDING: Final = 5.0
"""Seconds in which what a program left behind has to be ended."""

_TOO_LONG: Final = 124
"""Exit code of the process that ended a program for its time, as timeout(1) has it."""

_LEFT: Final = 125
"""Exit code of that process where something of the program could not be ended: it may still change what is read next."""

_ENDS: Final = (signal.SIGTERM, signal.SIGALRM, signal.SIGINT)
_PAUSE: Final = 0.01
_SHOWN_OUTPUT = 2000
_KEPT_OUTPUT = 2**16


class RunningSynth:
    """A program that runs in a process of its own; `result` waits for it. Several may run at once.

    Args:
        directory: Folder of the project.
        inside: Its repository, which it may read; None for the folder alone.
        stack: Stack whose configuration is read; None takes the only one, else `dev`.
        config: Settings over those of the stack file.
        timeout: Seconds that the program may run.
        allowance: What it may beside what every program may.
    """

    def __init__(
        self,
        directory: Path,
        *,
        inside: Path | None = None,
        stack: str | None = None,
        config: Mapping[str, str] | None = None,
        timeout: float = DEFAULT_TIMEOUT,
        allowance: Allowance | None = None,
    ) -> None:
        self._directory = directory
        self._timeout = timeout
        allowance = allowance or ONLY_ITS_OWN
        self._folder = tempfile.TemporaryDirectory(prefix="dra-infra-program-")
        request = {
            "directory": str(directory.absolute()),
            "inside": str((inside or directory).resolve()),
            "home": self._folder.name,
            "stack": stack,
            "config": dict(config or {}),
            "timeout": timeout,
            "read": [*map(str, allowance.read)],
            "write": [*map(str, allowance.write)],
            "network": allowance.network,
            "everything": allowance.everything,
        }
        answer, given = os.pipe()
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "dra_infra.program.isolated", str(given)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=[given],
            env=confinement.environment_for(os.environ, allowance, home=Path(self._folder.name)),
            # A group of its own, so that a signal to ours leaves the end to us.
            start_new_session=True,
        )
        os.close(given)
        self._output = bytearray()
        self._answer = bytearray()
        self._readers = [
            threading.Thread(target=self._read_output, daemon=True),
            threading.Thread(target=self._read_answer, args=(answer,), daemon=True),
        ]
        for reader in self._readers:
            reader.start()
        assert self._process.stdin is not None  # noqa: S101  (it was asked for)
        with contextlib.suppress(BrokenPipeError), self._process.stdin as pipe:
            pipe.write(json.dumps(request).encode())

    def result(self) -> Program:
        """The program that the run gave.

        Raises:
            ProgramError: When the program cannot be found, raises, or does not end; code `program-died` when its
                process ended without an answer, `compiled-unreadable` when the answer is none.
        """
        try:
            self._process.wait(timeout=self._timeout + _GRACE + _ENDING)
            # All that had the pipe are gone, so it is at its end.
            self._join()
            _, _, answer = self._answer.partition(b"\n")
            if self._process.returncode == _TOO_LONG:
                raise self._died("it did not end and was killed", "program-timeout")
            if self._process.returncode == _LEFT:
                raise self._died("what it started could not be ended", "program-died")
            if not answer or self._process.returncode:
                raise self._died(f"its process ended with {self._process.returncode}", "program-died")
            return program_from_json(bytes(answer), path=str(self._directory))
        except subprocess.TimeoutExpired:
            raise self._died("it did not end and was killed", "program-timeout") from None
        finally:
            self.stop()

    @property
    def in_force(self) -> tuple[str, ...]:
        """The confinements of `sandbox.ALL` that are in force; said before anything of the program was loaded."""
        first, _, _ = self._answer.partition(b"\n")
        return tuple(each for each in sandbox.ALL if each in first.decode(errors="replace").split(", "))

    def stop(self) -> None:
        """End the process and all that it started, and remove its files; nothing when that is done."""
        if self._process.poll() is None:
            # The outer process ends what the program started, wherever it hides.
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_ENDING + _GRACE)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._join()
        # What the program wrote there may be in the way of removing it.
        with contextlib.suppress(OSError, RecursionError):
            self._folder.cleanup()

    def _join(self) -> None:
        for reader in self._readers:
            reader.join(_GRACE)

    def _read_output(self) -> None:
        """Take what the program prints and keep the end of it: one may print more than there is memory."""
        assert self._process.stdout is not None  # noqa: S101  (it was asked for)
        with self._process.stdout as pipe:
            while chunk := os.read(pipe.fileno(), _KEPT_OUTPUT):
                self._output += chunk
                del self._output[:-_KEPT_OUTPUT]

    def _read_answer(self, descriptor: int) -> None:
        with open(descriptor, "rb", buffering=0) as pipe:
            while chunk := pipe.read(_KEPT_OUTPUT):
                # One byte too many is kept, for the reader to refuse.
                self._answer += chunk[: MAX_BYTES + 2**10 - len(self._answer)]

    def _died(self, what: str, code: str) -> ProgramError:
        self._join()
        printed = self._output.decode(errors="replace").strip()
        # Hidden before it is cut: half of a secret is no text that could be found.
        text = report_mask(secret_texts(os.environ)).text(printed)[-_SHOWN_OUTPUT:]
        return ProgramError.of(
            path=str(self._directory),
            code=code,
            message=what,
            hint=f"it printed: {text}" if text else "",
        )


def _main(descriptor: int) -> int:
    """Start the process of the program, wait for it, and end everything that it started."""
    request = json.loads(sys.stdin.buffer.read())
    sandbox.adopt_orphans()
    # Two limits, for a program that cannot be interrupted, and for a caller that was killed and ends nobody any more.
    limit = request["timeout"] + _GRACE
    supervisor = os.getpid()
    program = os.fork()
    if program == 0:
        sandbox.end_with_parent(signal.SIGKILL)
        if os.getppid() != supervisor:
            os._exit(1)
        os.setsid()
        _run(request, descriptor)
        return 0
    os.close(descriptor)
    ended = 0

    def leave(number: int, _frame: object) -> None:
        nonlocal ended
        ended = number
        raise InterruptedError

    for number in _ENDS:
        signal.signal(number, leave)
    signal.setitimer(signal.ITIMER_REAL, limit)
    code, all_ended = 1, False
    try:
        with contextlib.suppress(InterruptedError):
            _, status = os.waitpid(program, 0)
            code = os.waitstatus_to_exitcode(status)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number in _ENDS:
            signal.signal(number, signal.SIG_IGN)
        all_ended = _end_children(program)
    if ended == signal.SIGALRM:
        return _TOO_LONG
    if not all_ended:
        return _LEFT
    return code if code >= 0 else 128 - code


def _end_children(program: int) -> bool:
    """Kill what is left of the program: the children of what is killed become ours. Whether nothing is left."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(program, signal.SIGKILL)
    deadline = time.monotonic() + _ENDING
    while time.monotonic() < deadline:
        children = list(_children())
        for child in children:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(child, signal.SIGKILL)
        try:
            # Waiting is right only for what was killed: a look at all processes may miss one that is just being born, and other
            # systems than Linux do not say who our children are.
            os.waitpid(-1, 0 if children else os.WNOHANG)
        except ChildProcessError:
            return True
        if not children:
            time.sleep(_PAUSE)
    return False


def _children() -> Iterator[int]:
    """Processes whose parent this one is, or became when theirs ended (proc(5), the fourth field of `stat`)."""
    own = str(os.getpid())
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, IndexError):
            if (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()[1] == own:
                yield int(folder.name)


def _run(request: Mapping[str, Any], descriptor: int) -> None:
    """Confine this process, run the program, and write its answer."""
    # The process ends with the run, which frees more than a collector could and in less time.
    gc.disable()
    process = os.getpid()
    # What the program starts gets neither the pipe of the answer nor that of the request.
    os.set_inheritable(descriptor, False)  # noqa: FBT003  (the call has no name for it)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, sys.stdin.fileno())
    os.close(nothing)
    root = Path(request["directory"])
    in_force = confinement.enter(
        root,
        inside=Path(request["inside"]),
        home=Path(request["home"]),
        allowance=Allowance(
            read=tuple(map(Path, request["read"])),
            write=tuple(map(Path, request["write"])),
            network=request["network"],
            everything=request["everything"],
        ),
    )
    _write(descriptor, f"{', '.join(in_force)}\n".encode())
    answer: bytes
    try:
        program = synth(root, stack=request["stack"], config=request["config"], timeout=request["timeout"])
        answer = write_json(program_to_json(program))
    except ProblemsError as error:
        problems = tuple(confinement.explain(each, in_force) for each in error.problems)
        answer = write_json({"failed": problems_to_json(problems)})
    except ValueError as error:
        answer = write_json({"failed": problems_to_json((unreadable(str(error)[:200], str(root)),))})
    if os.getpid() != process:
        # A fork of the program that went on to its end, beside the program.
        os._exit(0)
    _write(descriptor, answer)
    os.close(descriptor)
    # What is left is also kept from the collection at the interpreter's end.
    gc.freeze()


def _write(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


if __name__ == "__main__":
    sys.exit(_main(int(sys.argv[1])))
