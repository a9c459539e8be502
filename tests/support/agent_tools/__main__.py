"""Runs the evaluation of the tools and prints it: `make mcp-evaluation`."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.support.agent_tools.agent import connected_agent
from tests.support.agent_tools.evaluation import evaluate, read_tasks


def main() -> int:
    """Print a line for each task, and the sums; return 1 where a task failed."""
    with (
        tempfile.TemporaryDirectory() as folder,
        connected_agent(Path(folder), Path(folder) / "log") as agent,
    ):
        scores = []
        for score in evaluate(agent, read_tasks()):
            scores.append(score)
            mark = "✓" if score.detected and score.accepted else "✗"
            print(f"{mark} {score.task.name}: {score.task.code or score.task.verdict}")
    detected, accepted = sum(each.detected for each in scores), sum(each.accepted for each in scores)
    print(
        f"{detected} of {len(scores)} wrong inputs detected, {accepted} of {len(scores)} accepted results accepted"
    )
    return 0 if detected == accepted == len(scores) else 1


if __name__ == "__main__":
    sys.exit(main())
