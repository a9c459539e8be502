"""Runs a program in a process of its own, which sees and reaches no more than `--allow` says.

The process that is started imports from folders that we name (`dra_infra.program.python_start`). It reads a request, one
line, from its standard input, and ends when that input ends. It becomes the supervisor, which starts another process for
the program, and which the program cannot reach (`dra_infra.program.supervisor`). The answer comes through an inherited
pipe that nobody else has. A file could be replaced by a process that the program started.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, Final

from dra_infra.errors import Problem, ProblemsError, ProgramError
from dra_infra.output.secret_detector import report_mask
from dra_infra.output.secrets import secret_texts
from dra_infra.program import confinement, home_folder, namespaces, python_start, sandbox, supervisor
from dra_infra.program.confinement import ONLY_ITS_OWN, Allowance
from dra_infra.program.languages.hosts import folders_of_language, without_loopback
from dra_infra.program.languages.variables import find_module_cache
from dra_infra.program.pipe_reader import PipeReader
from dra_infra.program.program_json import (
    MAX_BYTES,
    problems_to_json,
    program_from_json,
    program_to_json,
    unreadable,
    write_json,
)
from dra_infra.program.project import PYTHON, find_runtime, load_project
from dra_infra.program.project_files import leads_out
from dra_infra.program.synth import DEFAULT_TIMEOUT, synth_project
from dra_infra.program_objects import Program

_GRACE = 5.0
"""Seconds beyond its own limit after which a process that does not react is killed."""

_ENDED: Final[Mapping[int, tuple[str, str]]] = {
    supervisor.TOO_LONG: ("program-timeout", "it did not end and was killed"),
    supervisor.TOO_MANY: (
        "program-too-large",
        f"it had more than {namespaces.MOST_PROCESSES:,} processes and threads, and was killed",
    ),
    supervisor.TOO_MUCH: (
        "program-too-large",
        f"it wrote more than {namespaces.MOST_BYTES // 2**30} GiB or {namespaces.MOST_FILES:,} files to its home, and was killed",
    ),
    supervisor.LEFT: ("program-died", "what it started could not be ended"),
}
"""Code and message for each exit status of the supervisor that has a meaning."""

NO_ANSWER: Final = frozenset(("program-died", "program-files-left", "program-timeout", "program-too-large"))
"""Codes of a program that was ended, or of which something is left: it is not known what it would have answered."""

_SHOWN_OUTPUT = 2000

_START: Final = """\
import sys
sys.prefix, sys.exec_prefix, *sys.path = sys.argv[2:]
from dra_infra.program import isolated
sys.exit(isolated._main(int(sys.argv[1])))
"""
"""Run with the descriptor of the answer, the prefixes (without `site`, a virtual environment has those of its Python) and the
module path."""

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
        environment: The virtual environment of a project that names one which is not there.
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
        environment: Path | None = None,
    ) -> None:
        self._directory = directory
        self._timeout = timeout
        allowance = allowance or ONLY_ITS_OWN
        self._home = home_folder.make()
        inside = (inside or directory).resolve()
        variables, python_variables = python_start.for_start(
            confinement.environment_for(os.environ, allowance, home=self._home)
        )
        request = {
            "directory": str(directory.absolute()),
            "inside": str(inside),
            "python_variables": python_variables,
            "home": str(self._home),
            "stack": stack,
            "config": dict(config or {}),
            "timeout": timeout,
            "read": [*map(str, allowance.read)],
            "write": [*map(str, allowance.write)],
            "network": allowance.network,
            "everything": allowance.everything,
            "environment": str(environment) if environment else None,
            "modules_of_go": str(find_module_cache(os.environ)),
        }
        self._output = bytearray()
        self._answer = bytearray()
        self._readers: list[PipeReader] = []  # That of the answer comes first.
        try:
            self._process = self._start(variables, python_start.trusted_path(inside))
        except BaseException:
            self._read_to_end()
            home_folder.remove(self._home)
            raise
        try:
            assert self._process.stdout is not None  # noqa: S101  (it was asked for)
            self._readers.append(PipeReader(self._process.stdout, self._read_output))
            assert self._process.stdin is not None  # noqa: S101  (it was asked for)
            with contextlib.suppress(BrokenPipeError):
                # Stays open: its end tells the supervisor that this process has ended.
                self._process.stdin.write(json.dumps(request).encode() + b"\n")
                self._process.stdin.flush()
        except BaseException:
            self.stop()
            raise

    def _start(self, variables: Mapping[str, str], path: Iterable[str]) -> subprocess.Popen[bytes]:
        """Start the process, and what reads its answer."""
        answer, given = os.pipe()
        try:
            self._readers.append(PipeReader(os.fdopen(answer, "rb", buffering=0), self._read_answer))
            return subprocess.Popen(
                [
                    *(sys.executable, *python_start.FLAGS, "-c", _START, str(given)),
                    *(sys.prefix, sys.exec_prefix, *path),
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=[given],
                env=variables,
                # A group of its own, so that a signal to ours leaves the end to us.
                start_new_session=True,
            )
        finally:
            # The reader ends with it, where nobody else has it.
            os.close(given)

    def result(self) -> Program:
        """The program that the run gave.

        Raises:
            ProgramError: When the program cannot be found, raises, or does not end; code `program-died` when its
                process ended without an answer, `program-too-large` when it was above a bound, `program-files-left` when
                what it wrote could not be removed, `compiled-unreadable` when the answer is none.
        """
        try:
            program = self._wait()
        except ProblemsError as error:
            raise ProgramError([*error.problems, *self.stop()]) from error
        except BaseException:
            self.stop()
            raise
        if left := self.stop():
            raise ProgramError(left)
        return program

    def _wait(self) -> Program:
        try:
            self._process.wait(timeout=self._timeout + _GRACE + 2 * supervisor.ENDING)
        except subprocess.TimeoutExpired:
            # What it printed is at its end when it has ended.
            self._end()
            raise self._died(*_ENDED[supervisor.TOO_LONG]) from None
        is_whole = self._read_to_end()
        _, _, answer = self._answer.partition(b"\n")
        if ended := _ENDED.get(self._process.returncode):
            raise self._died(*ended)
        if not answer or self._process.returncode:
            raise self._died("program-died", f"its process ended with {self._process.returncode}")
        if not is_whole:
            raise self._died("program-died", "what it started keeps the pipe of its answer open")
        return program_from_json(bytes(answer), path=str(self._directory))

    @property
    def in_force(self) -> tuple[str, ...]:
        """The confinements of `sandbox.ALL` that are in force; said before anything of the program was loaded."""
        first, _, _ = self._answer.partition(b"\n")
        return tuple(each for each in sandbox.ALL if each in first.decode(errors="replace").split(", "))

    def stop(self) -> tuple[Problem, ...]:
        """End the process and all that it started, and remove its files. Return what says that files are left, if any."""
        self._end()
        self._read_to_end()
        # What still runs could go on to write.
        if self._process.returncode != supervisor.LEFT and home_folder.remove(self._home):
            return ()
        problem = Problem(
            path=str(self._directory),
            code="program-files-left",
            message=f"files that the program wrote could not be removed from {self._home}",
            hint="end the processes that still use the folder, and remove it",
        )
        return (problem,)

    def _end(self) -> None:
        """End the process, and all that it started."""
        if self._process.poll() is None:
            # The supervisor ends what the program started, wherever it hides.
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(2 * supervisor.ENDING)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        assert self._process.stdin is not None  # noqa: S101  (it was asked for)
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()

    def _read_to_end(self) -> bool:
        """Wait for the end of both pipes, which comes with that of all processes. Return whether the answer's came."""
        ended = [reader.wait_for_end() for reader in self._readers]
        return all(ended[:1])

    def _read_output(self, pipe: IO[bytes]) -> None:
        """Take what the program prints and keep the end of it: one may print more than there is memory."""
        while chunk := os.read(pipe.fileno(), _KEPT_OUTPUT):
            self._output += chunk
            del self._output[:-_KEPT_OUTPUT]

    def _read_answer(self, pipe: IO[bytes]) -> None:
        while chunk := pipe.read(_KEPT_OUTPUT):
            # One byte too many is kept, for the reader to refuse.
            self._answer += chunk[: MAX_BYTES + 2**10 - len(self._answer)]

    def _died(self, code: str, what: str) -> ProgramError:
        self._read_to_end()
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
    """Read the request, and run the program in a process that the supervisor starts."""
    request = json.loads(sys.stdin.buffer.readline())
    held = supervisor.enter(
        home=Path(request["home"]),
        limit=request["timeout"] + _GRACE,
        network=request["network"],
        everything=request["everything"],
        private=descriptor,
    )
    _run(request, descriptor, held)
    return 0


def _run(request: Mapping[str, Any], descriptor: int, held: tuple[str, ...]) -> None:
    """Confine this process, run the program, and write its answer; *held* is in force already."""
    # The process ends with the run, which frees more than a collector could and in less time.
    gc.disable()
    process = os.getpid()
    # What the program starts gets neither the pipe of the answer nor that of the request.
    os.set_inheritable(descriptor, False)  # noqa: FBT003  (the call has no name for it)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, sys.stdin.fileno())
    os.close(nothing)
    root = Path(request["directory"])
    os.environ.update(request["python_variables"])
    lent = Path(request["environment"]) if request["environment"] else None
    inside = Path(request["inside"])
    allowance = Allowance(
        read=tuple(map(Path, request["read"])),
        write=tuple(map(Path, request["write"])),
        network=request["network"],
        everything=request["everything"],
    )
    runtime = find_runtime(root)
    if runtime == "go":
        # The program has another home than the user, where Go would look for modules.
        os.environ["GOMODCACHE"] = request["modules_of_go"]
    confined = confinement.enter(
        root,
        inside=inside,
        home=Path(request["home"]),
        allowance=allowance,
        modules=[
            *(*python_start.added_folders(), *folders_of_language(runtime)),
            *([Path(request["modules_of_go"])] if runtime == "go" else []),
            *([lent] if lent else []),
        ],
        # A host is reached by a socket.
        loopback=runtime != PYTHON and namespaces.LOOPBACK in held,
    )
    in_force = tuple(each for each in sandbox.ALL if each in (*held, *confined))
    _write(descriptor, f"{', '.join(in_force)}\n".encode())
    answer: bytes
    try:
        if runtime == PYTHON:
            python_start.add_users_modules()
        elif not (namespaces.LOOPBACK in held or allowance.network or allowance.everything):
            raise without_loopback(runtime)
        allowed = [each for each in (*allowance.read, *allowance.write) if not leads_out(each, inside)]
        within = None if allowance.everything else (inside, *allowed)
        project = load_project(root, request["stack"], request["config"], within)
        if project.environment and not project.environment.is_dir():
            project = replace(project, environment=lent)
        program = synth_project(project, timeout=request["timeout"], is_own_process=True)
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
