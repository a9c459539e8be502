"""The tools and a real API server say the same of what agents write."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.agent_tools.agent import connected_agent
from tests.support.agent_tools.evaluation import Score, Task, evaluate, objects_in, read_tasks
from tools.cluster import Api
from tools.cluster.api import ApiError

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def scores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Score]]:
    folder = tmp_path_factory.mktemp("agent")
    with connected_agent(folder, folder / "log") as agent:
        yield list(evaluate(agent, read_tasks()))


def test_the_tools_detect_all_mistakes_and_take_all_that_is_right(scores: list[Score]) -> None:
    assert len(scores) == 30
    assert [each.task.name for each in scores if not each.detected] == []
    assert [each.task.name for each in scores if not each.accepted] == []


def refusal_of(api: Api, manifests: str) -> str:
    """Return why the server refuses an object of a text, with unknown fields as errors; empty where it takes all."""
    for manifest in objects_in(manifests):
        try:
            api.create(manifest, dry_run=True)
        except ApiError as error:
            return str(error)
    return ""


@pytest.mark.parametrize("task", read_tasks(), ids=lambda task: task.name)
def test_the_real_server_decides_as_the_task_says(task: Task, api: Api) -> None:
    assert refusal_of(api, task.accepted) == ""
    assert bool(refusal_of(api, task.wrong)) == (task.server == "refuses")
