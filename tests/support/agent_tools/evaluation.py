"""The evaluation of the tools: each wrong manifest of `tasks.yaml` is detected, and each accepted one is accepted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import yaml

from tests.support.agent_tools.agent import Agent, codes_of

TASKS_FILE: Final = Path(__file__).with_name("tasks.yaml")


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A task for an agent.

    Args:
        name: What is wrong, in short.
        request: What somebody asks for.
        mistake: The kind of mistake.
        server: What the API server does with the wrong manifests.
        wrong: Manifests that models write.
        accepted: Manifests that answer the request.
        code: The code that `validate` reports for the wrong ones.
        fleet: Hardware, where `simulate` is to detect the mistake.
        verdict: What it then says of the wrong ones.
    """

    name: str
    request: str
    mistake: str
    server: Literal["refuses", "accepts"]
    wrong: str
    accepted: str
    code: str = ""
    fleet: str = ""
    verdict: str = ""


@dataclass(frozen=True, slots=True)
class Score:
    """What the tools said of a task.

    Args:
        task: The task.
        detected: Whether they found the mistake.
        accepted: Whether they take the accepted manifests.
    """

    task: Task
    detected: bool
    accepted: bool


def read_tasks() -> tuple[Task, ...]:
    """Return all tasks."""
    return tuple(Task(**each) for each in yaml.safe_load(TASKS_FILE.read_text()))


def objects_in(manifests: str) -> list[Mapping[str, Any]]:
    """Return the objects of a text."""
    return [each for each in yaml.safe_load_all(manifests) if each is not None]


def evaluate(agent: Agent, tasks: Sequence[Task]) -> Iterator[Score]:
    """Yield the score of each task.

    Args:
        agent: An agent that is connected to the server.
        tasks: The tasks.
    """
    for task in tasks:
        wrong = agent.call("validate", manifests=task.wrong)
        right = agent.call("validate", manifests=task.accepted)
        is_accepted = not right.is_error and codes_of(right) == []
        if task.fleet:
            verdicts = [
                agent.call("simulate", manifests=text, fleet=task.fleet).structured_content["joint"][
                    "verdict"
                ]
                for text in (task.wrong, task.accepted)
            ]
            yield Score(task, verdicts[0] == task.verdict, is_accepted and verdicts[1] == "always")
            continue
        found = {each["code"] for each in wrong.structured_content["problems"]}
        left = {each["code"] for each in right.structured_content["problems"]}
        yield Score(task, task.code in found, is_accepted and task.code not in left)
