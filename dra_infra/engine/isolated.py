"""Run a program in a process of its own: nothing it imports, patches or leaks reaches the caller.

`python -m dra_infra.engine.isolated FOLDER` reads `request.json` in FOLDER and writes `answer.json` there: the
program, or its problems. Files rather than pipes, for whatever the user's program prints must not get in between.
"""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dra_infra.engine.synth import DEFAULT_TIMEOUT, synth
from dra_infra.errors import Place, Problem, ProblemsError, ProgramError
from dra_infra.model.program import NotSeen, Program, ProgramObject, ProgramRelease
from dra_infra.model.secrets import SecretMask, secret_texts
from dra_infra.model.target import ClusterTarget

_GRACE = 10.0
"""Seconds beyond its own limit after which a process that does not react is killed."""

_SHOWN_OUTPUT = 2000
_KEPT_OUTPUT = 2**16
_REQUEST, _ANSWER = "request.json", "answer.json"


class RunningSynth:
    """A program that runs in a process of its own; `result` waits for it. Several may run at once."""

    def __init__(
        self,
        directory: Path,
        *,
        stack: str | None = None,
        config: Mapping[str, str] | None = None,
        timeout: float = DEFAULT_TIMEOUT,
    ) -> None:
        self._directory = directory
        self._timeout = timeout
        self._folder = tempfile.TemporaryDirectory(prefix="dra-infra-synth-")
        request = {
            "directory": str(directory),
            "stack": stack,
            "config": dict(config or {}),
            "timeout": timeout,
        }
        (Path(self._folder.name) / _REQUEST).write_text(json.dumps(request), encoding="utf-8")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "dra_infra.engine.isolated", self._folder.name],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            # A group of its own, so that what the program starts ends with it.
            start_new_session=True,
        )
        self._output = bytearray()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def result(self) -> Program:
        """The program that the run gave.

        Raises:
            ProgramError: When the program cannot be found, raises, or does not end; code `program-died` when its
                process ended without an answer.
        """
        try:
            self._process.wait(timeout=self._timeout + _GRACE)
            # Not at the end of its output: what it started may hold that open.
            self._kill_group()
            answer = Path(self._folder.name) / _ANSWER
            if not answer.exists():
                raise self._died(f"its process ended with {self._process.returncode}", "program-died")
            return program_from_json(json.loads(answer.read_text(encoding="utf-8")))
        except subprocess.TimeoutExpired:
            raise self._died("it did not end and was killed", "program-timeout") from None
        finally:
            self.stop()

    def stop(self) -> None:
        """End the process, whatever it is doing, and remove its files; nothing when that is done."""
        self._kill_group()
        self._process.wait()
        self._reader.join(_GRACE)
        self._folder.cleanup()

    def _kill_group(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def _read(self) -> None:
        """Take what the program prints and keep the end of it: one may print more than there is memory."""
        assert self._process.stdout is not None  # noqa: S101  (it was asked for)
        with self._process.stdout as pipe:
            while chunk := os.read(pipe.fileno(), _KEPT_OUTPUT):
                self._output += chunk
                del self._output[:-_KEPT_OUTPUT]

    def _died(self, what: str, code: str) -> ProgramError:
        self._reader.join(_GRACE)
        printed = self._output.decode(errors="replace").strip()
        # Hidden before it is cut: half of a secret is no text that could be found.
        text = SecretMask(secret_texts(os.environ)).text(printed)[-_SHOWN_OUTPUT:]
        return ProgramError(
            [
                Problem(
                    path=str(self._directory),
                    code=code,
                    message=what,
                    hint=f"it printed: {text}" if text else "",
                )
            ]
        )


def program_to_json(program: Program) -> dict[str, Any]:
    """*program* as JSON data, which shares manifests and values with it."""
    data = {each.name: getattr(program, each.name) for each in dataclasses.fields(program)}
    return {
        **data,
        "objects": [_described(each) for each in program.objects],
        "releases": [_described(each) for each in program.releases],
        "not_seen": [dataclasses.asdict(each) for each in program.not_seen],
        "problems": [dataclasses.asdict(each) for each in program.problems],
    }


def _described(each: ProgramObject | ProgramRelease) -> dict[str, Any]:
    data = {field.name: getattr(each, field.name) for field in dataclasses.fields(each)}
    if each.place is not None:
        data["place"] = dataclasses.asdict(each.place)
    if each.target is not None:
        target = dataclasses.asdict(each.target)
        data["target"] = {**target, "serves": sorted(target["serves"])}
    return data


def program_from_json(data: Mapping[str, Any]) -> Program:
    """The program in *data*.

    Raises:
        ProgramError: When *data* holds the problems of a run that failed.
    """
    if "failed" in data:
        raise ProgramError(_problem(each) for each in data["failed"])
    return Program(
        project=data["project"],
        stack=data["stack"],
        objects=tuple(map(_object, data["objects"])),
        not_seen=tuple(NotSeen(**each) for each in data["not_seen"]),
        problems=tuple(_problem(each) for each in data["problems"]),
        kubernetes=data["kubernetes"],
        driver=data["driver"],
        releases=tuple(map(_release, data["releases"])),
        resources=tuple(data["resources"]),
    )


def _object(data: Mapping[str, Any]) -> ProgramObject:
    return ProgramObject(**{**data, "place": _place(data["place"]), "target": _target(data["target"])})


def _release(data: Mapping[str, Any]) -> ProgramRelease:
    return ProgramRelease(**{**data, "place": _place(data["place"]), "target": _target(data["target"])})


def _target(data: Mapping[str, Any] | None) -> ClusterTarget | None:
    return ClusterTarget(**{**data, "serves": frozenset(data["serves"])}) if data is not None else None


def _problem(data: Mapping[str, Any]) -> Problem:
    return Problem(**{**data, "place": _place(data["place"])})


def _place(data: Mapping[str, Any] | None) -> Place | None:
    return Place(**data) if data else None


def _main(folder: Path) -> None:
    # The process ends with the run, which frees more than a collector could and in less time.
    gc.disable()
    process = os.getpid()
    request = json.loads((folder / _REQUEST).read_text(encoding="utf-8"))
    # A program that cannot be interrupted must not outlive a caller that was killed: nobody else would end it.
    watchdog = threading.Timer(request["timeout"] + _GRACE, os._exit, [1])
    watchdog.daemon = True
    watchdog.start()
    answer: dict[str, Any]
    try:
        program = synth(
            request["directory"], stack=request["stack"], config=request["config"], timeout=request["timeout"]
        )
        answer = program_to_json(program)
    except ProblemsError as error:
        answer = {"failed": [dataclasses.asdict(problem) for problem in error.problems]}
    if os.getpid() != process:
        # A fork of the program that went on to its end, beside the program.
        return
    # Whole or not at all: a process that is killed here leaves no half answer.
    partial = folder / f"{_ANSWER}.partial"
    partial.write_text(json.dumps(answer), encoding="utf-8")
    partial.rename(folder / _ANSWER)
    # What is left is also kept from the collection at the interpreter's end.
    gc.freeze()


if __name__ == "__main__":
    _main(Path(sys.argv[1]))
