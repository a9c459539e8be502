"""Time whole processes in turns, A B A B, so that a machine that drifts drifts for all of them."""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """One command that answers the question.

    Args:
        name: As it stands in the table.
        command: Argument list.
        goal: Seconds that we want to stay below; None for an alternative.
        folder: Where it runs.
    """

    name: str
    command: Sequence[str]
    goal: float | None = None
    folder: Path | None = None


@dataclass(frozen=True, kw_only=True)
class Figure:
    """What the runs of one candidate took."""

    name: str
    seconds: float
    lowest: float
    highest: float
    memory_mib: float
    goal: float | None


def measure(candidates: Sequence[Candidate], *, runs: int) -> list[Figure]:
    """Run each candidate *runs* times after one warm-up.

    Raises:
        RuntimeError: When a candidate fails; with what it printed.
    """
    wall: Mapping[str, list[float]] = {each.name: [] for each in candidates}
    memory: dict[str, float] = {}
    for turn in range(runs + 1):
        for each in candidates:
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
        )
        for each in candidates
    ]


def _run(candidate: Candidate) -> tuple[float, float]:
    with tempfile.TemporaryFile() as output:
        started = time.perf_counter()
        process = subprocess.Popen(
            candidate.command,
            cwd=candidate.folder,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ},
        )
        # wait4 gives the memory of this child alone; getrusage would give the largest child so far.
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            output.seek(0)
            raise RuntimeError(
                f"{candidate.name}: exit {process.returncode}\n{output.read().decode(errors='replace')}"
            )
    return seconds, _mebibytes(usage)


def _mebibytes(usage: resource.struct_rusage) -> float:
    # Linux counts kibibytes, macOS bytes.
    return usage.ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)
