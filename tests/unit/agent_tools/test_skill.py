from __future__ import annotations

import yaml

from tests.support.agent_tools.agent import Agent
from tests.support.agent_tools.evaluation import evaluate, read_tasks
from tests.support.pages.documents import ROOT, blocks_of

SKILL = ROOT / "skills" / "dra-infra" / "SKILL.md"


def test_the_skill_has_the_head_that_agents_read() -> None:
    _, head, text = SKILL.read_text().split("---\n", 2)
    settings = yaml.safe_load(head)
    assert settings["name"] == SKILL.parent.name
    assert 0 < len(settings["description"]) <= 1024
    assert "`validate`" in text


def test_every_manifest_of_the_skill_is_clean(agent: Agent) -> None:
    blocks = [block for block in blocks_of(SKILL) if block.language == "yaml"]
    assert len(blocks) == 6
    report = agent.call(
        "validate", manifests="\n---\n".join(block.text for block in blocks)
    ).structured_content
    assert report["problems"] == []
    assert report["checked"] == 7


def test_each_task_names_another_mistake_and_a_verdict() -> None:
    tasks = read_tasks()
    assert len(tasks) == 30
    assert len({each.name for each in tasks}) == 30
    assert len({each.wrong for each in tasks}) == 30
    assert all(bool(each.code) != bool(each.fleet) for each in tasks)


def test_a_wrong_manifest_is_detected_and_the_accepted_one_is_taken(agent: Agent) -> None:
    # One that the server refuses, one that it takes, and one that fits nowhere; `make e2e` has all of them.
    names = ("fields of exactly in the request", "a read without a guard", "more GPUs than a node has")
    tasks = [each for each in read_tasks() if each.name in names]
    scores = list(evaluate(agent, tasks))
    assert [(each.detected, each.accepted) for each in scores] == [(True, True)] * 3
