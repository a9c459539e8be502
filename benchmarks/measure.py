"""Time whole processes in turns, A B A B, so that a machine that drifts drifts for all of them."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

LAUNCHER = Path(__file__).parent / "launcher.py"
BYTECODE = Path(__file__).parent.parent / ".cache" / "benchmarks" / "bytecode"


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """One command that answers the question.

    Args:
        name: As it stands in the table.
        command: Argument list.
        goal: Seconds that we want to stay below; None for an alternative.
        memory_goal: MiB that we want to stay below.
        folder: Where it runs.
        exits: Exit codes that are right: a checker that finds something has 1.
        once: Whether one run has to do, without a warm-up: a candidate that takes minutes.
        own_clock: Whether the last line that it prints is the seconds that count, as where start-up does not.
    """

    name: str
    command: Sequence[str]
    goal: float | None = None
    memory_goal: float | None = None
    folder: Path | None = None
    exits: Sequence[int] = (0,)
    own_clock: bool = False
    once: bool = False


@dataclass(frozen=True, kw_only=True)
class Figure:
    """What the runs of one candidate took."""

    name: str
    seconds: float
    lowest: float
    highest: float
    memory_mib: float
    """Of its largest process, which is less than all of them together where it starts others."""
    goal: float | None
    memory_goal: float | None


def measure(candidates: Sequence[Candidate], *, runs: int) -> list[Figure]:
    """Run each candidate *runs* times after one warm-up.

    Raises:
        RuntimeError: When a candidate cannot be started or fails; with what it printed.
    """
    wall: Mapping[str, list[float]] = {each.name: [] for each in candidates}
    memory: dict[str, float] = {}
    for turn in range(runs + 1):
        for each in candidates:
            if each.once and turn != 1:
                continue
            seconds, mib = _run(each)
            if turn:
                wall[each.name].append(seconds)
                memory[each.name] = max(mib, memory.get(each.name, 0.0))
    return [
        Figure(
            name=each.name,
            seconds=statistics.median(wall[each.name]),
            lowest=min(wall[each.name]),
            highest=max(wall[each.name]),
            memory_mib=memory[each.name],
            goal=each.goal,
            memory_goal=each.memory_goal,
        )
        for each in candidates
    ]


def _run(candidate: Candidate) -> tuple[float, float]:
    reader, writer = os.pipe()
    with tempfile.TemporaryFile() as output, os.fdopen(reader) as report:
        try:
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(LAUNCHER), str(writer), *candidate.command],
                cwd=candidate.folder,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=_environment(),
                pass_fds=[writer],
            )
        finally:
            os.close(writer)
        told = report.read()
        process.wait()
        try:
            code, seconds, memory = told.split()
            exit_code = int(code)
        except ValueError:
            reason = told.strip() or f"the launcher ended with {process.returncode}"
            raise RuntimeError(f"{candidate.name}: {reason}") from None
        output.seek(0)
        if exit_code not in candidate.exits:
            shown = output.read().decode(errors="replace")
            raise RuntimeError(f"{candidate.name}: exit {exit_code}\n{shown}")
        if candidate.own_clock:
            seconds = output.read().split()[-1].decode()
    return float(seconds), _mebibytes(int(memory))


def _environment() -> dict[str, str]:
    """This one's, with compiled modules kept for all candidates: the warm-up fills them, no run pays for them."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPYCACHEPREFIX": str(BYTECODE)}


def _mebibytes(memory: int) -> float:
    # Linux counts kibibytes, macOS bytes.
    return memory / (2**20 if sys.platform == "darwin" else 2**10)
