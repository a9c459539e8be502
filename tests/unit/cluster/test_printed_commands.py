"""What `doctor` reads, and what `doctor` and `drain` tell people to run, is within the rights of those who are on call."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from dra_infra.catalog.personas import rules_of
from dra_infra.cli import drain
from dra_infra.cluster import draining
from dra_infra.cluster.doctor import diagnose
from dra_infra.cluster.evidence import KINDS
from dra_infra.kubernetes.api import Release
from dra_infra.kubernetes.scheduler import Eviction
from tests.support.cluster.samples import pod
from tests.unit.cluster.test_doctor import CASES

COMMAND = re.compile(r"kubectl (\w+) ([-\w]+)")
DRA = "resource.k8s.io"
RESOURCES = {
    "pod": ("", "pods"),
    "pods": ("", "pods"),
    "resourceclaim": (DRA, "resourceclaims"),
    "resourceslice": (DRA, "resourceslices"),
    "devicetaintrule": (DRA, "devicetaintrules"),
}
# `kubectl delete` waits until the object is gone, and `describe` shows its events.
VERBS = {"get": {"get"}, "describe": {"get", "list"}, "delete": {"delete", "get", "list", "watch"}}
OF_OTHERS = {("apply", "--server-side")}
"""The definitions of a chart belong to whoever installs it, and no persona may write them."""


def printed() -> Iterator[str]:
    for evidence, _ in CASES.values():
        yield from (each.hint for each in diagnose(evidence).findings)
    stays = Eviction(pod=pod("p"), claim="a", devices=("n1/gpu-0",), stays=True)
    parts = (draining.Part(driver="gpu.nvidia.com", pool="n1"),)
    release = Release(minor="1.37", gates=frozenset(), patch="1.37.1")
    preview = draining.Preview(
        target="n1", parts=parts, evictions=(stays,), version="v1", counts={}, release=release
    )
    yield from drain.describe(preview)
    yield draining._taken("drain-n1").hint


COMMANDS = {found for text in printed() for found in COMMAND.findall(text)}


def may(persona: str, group: str, resource: str) -> set[str]:
    rules: list[dict[str, Any]] = rules_of(persona)
    of_it = [
        each for each in rules if group in each.get("apiGroups", ()) and resource in each.get("resources", ())
    ]
    return {verb for each in of_it for verb in each["verbs"]}


def test_each_way_to_clean_up_is_printed():
    deleted = {resource for verb, resource in COMMANDS if verb == "delete"}
    assert deleted == {"pod", "resourceclaim", "resourceslice"}
    assert {("get", "devicetaintrule"), ("describe", "pods")} <= COMMANDS


@pytest.mark.parametrize("command", sorted(COMMANDS - OF_OTHERS), ids=" ".join)
def test_who_is_on_call_may_run_what_is_printed(command: tuple[str, str]):
    verb, named = command
    assert VERBS[verb] <= may("on-call", *RESOURCES[named])
    assert verb != "describe" or "list" in may("on-call", "", "events")


def test_who_is_on_call_may_delete_nothing_else_of_pods_and_claims():
    kinds = {("", "pods"), (DRA, "resourceclaims"), (DRA, "resourceslices"), (DRA, "resourceclaimtemplates")}
    deletable = {each for each in kinds if "delete" in may("on-call", *each)}
    assert deletable == {RESOURCES[each] for verb, each in COMMANDS if verb == "delete"}
    assert "delete" not in may("reader", "", "pods")


@pytest.mark.parametrize("persona", ["on-call", "reader"])
def test_who_runs_doctor_may_read_all_that_it_looks_at(persona: str):
    unread = [each.name for each in KINDS if "list" not in may(persona, each.group, each.plural)]
    assert unread == []
    assert {"nonResourceURLs": ["/metrics"], "verbs": ["get"]} in rules_of(persona)
