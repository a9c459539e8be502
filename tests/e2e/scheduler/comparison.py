"""Runs a scenario and says in what the scheduler and we differ."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from dra_infra.kubernetes.api import Release
from dra_infra.kubernetes.scheduler import EXTENDED_CLAIM_ENTRY
from dra_infra.kubernetes.scheduler.allocator import Failed
from dra_infra.placement.placement import Reason
from tests.e2e.scheduler.answers import Seen, devices_of, named_devices, written_by_server, written_by_us
from tests.support.scheduler.scenario import Scenario
from tests.support.scheduler.stage import HOSTNAME, PROBE, Stage, Verdict
from tools.cluster import Manifest

ABORTED: Final = "allocation-aborted"


@dataclass(frozen=True, kw_only=True)
class Report:
    """What a scenario showed.

    Args:
        differences: Every way in which the scheduler did something else than we say.
        nodes: Where each pod went, in the order of the pods; empty for one that was refused.
        messages: Why, for those that were.
    """

    differences: tuple[str, ...]
    nodes: tuple[str, ...]
    messages: tuple[str, ...]


def compare(stage: Stage, scenario: Scenario, release: Release) -> Report:
    """Put a scenario on the control plane, and hold what its scheduler does against what we say."""
    with stage.set(scenario):
        found: list[str] = []
        verdicts: list[Verdict] = []
        if scenario.pinned:
            found += _compare_each_node(stage, scenario.pods[0], release)
        found += _compare_in_order(stage, scenario, release, verdicts)
        return Report(
            differences=tuple(f"{scenario}: {each}" for each in found),
            nodes=tuple(each.node for each in verdicts),
            messages=tuple(each.message for each in verdicts if not each.node),
        )


def _compare_each_node(stage: Stage, pod: Manifest, release: Release) -> Iterator[str]:
    """Send the first pod to each node by itself: the nodes that take it are those that we name, no more and no fewer."""
    seen = Seen.of(stage, release)
    answer = seen.place(pod)
    if answer.verdict == "not-decided" or any(each.code == ABORTED for each in answer.reasons):
        return
    candidates = {each.node for each in answer.nodes}
    for node in seen.fleet.nodes:
        if node.name.startswith(PROBE):
            continue
        with stage.run(_pin(pod, node.name)) as verdict:
            yield from _compare_candidate(seen, verdict, candidates=candidates, node=node.name)
            if verdict.node and node.name in candidates:
                named = named_devices(answer, node.name)
                if devices_of(verdict) != named:
                    yield f"{node.name} gave {devices_of(verdict)}, we named {named}"
        stage.wait_until_free(pod["metadata"]["namespace"])


def _compare_candidate(seen: Seen, verdict: Verdict, *, candidates: set[str], node: str) -> Iterator[str]:
    if bool(verdict.node) != (node in candidates):
        what = "took the pod" if verdict.node else f"refused the pod: {verdict.message}"
        yield f"{node} {what}; we name {sorted(candidates)}"
    elif verdict.node:
        yield from _compare_allocation(seen, verdict)


def _compare_in_order(
    stage: Stage, scenario: Scenario, release: Release, verdicts: list[Verdict]
) -> Iterator[str]:
    """Create the pods one by one: each goes to a node that we name, with the devices that we name, or is refused."""
    bound: list[Manifest] = []
    try:
        for pod in scenario.pods:
            seen = Seen.of(stage, release)
            verdict = stage.create(pod)
            verdicts.append(verdict)
            bound.append(pod)
            for each in _compare_pod(seen, verdict, pod):
                yield f"{pod['metadata']['name']}: {each}"
            if not verdict.node:
                # A later pod may make room for it: one that others want to be near.
                stage.remove(bound.pop())
    finally:
        for pod in bound:
            stage.remove(pod)


def _compare_pod(seen: Seen, verdict: Verdict, pod: Manifest) -> Iterator[str]:
    if verdict.node:
        yield from _compare_allocation(seen, verdict)
    if seen.has_allocated_claim(pod):
        # It goes where the claim is; our answers are about claims that are free.
        if not verdict.node:
            yield from _refused_everywhere(seen, verdict, pod)
        return
    answer = seen.place(pod)
    if answer.verdict == "not-decided":
        yield f"not decided: {[str(each) for each in answer.reasons]}"
        return
    candidates = sorted(each.node for each in answer.nodes)
    if not verdict.node:
        if answer.verdict == "fits":
            yield f"is refused, we say that it fits on {candidates}: {verdict.message}"
        yield from _compare_error(seen, answer.reasons, verdict, pod)
    elif verdict.node not in candidates:
        yield f"is on {verdict.node}, we name {candidates}: {[str(each) for each in answer.reasons]}"
    elif devices_of(verdict) != (named := named_devices(answer, verdict.node)):
        yield f"got {devices_of(verdict)} on {verdict.node}, we named {named}"


def _compare_error(seen: Seen, reasons: Sequence[Reason], verdict: Verdict, pod: Manifest) -> Iterator[str]:
    """Where an attempt ends with an error, it is one that we give for some node: which comes first is chance."""
    quoted = [each.message.rpartition(": ")[2] for each in reasons if each.code == ABORTED]
    if not quoted:
        return
    possible = []
    for node in seen.fleet.nodes:
        _, outcome = seen.allocate(pod, node.name)
        if isinstance(outcome, Failed):
            possible.append(outcome.text.rpartition(": ")[2])
    if not any(text in verdict.message for text in possible) or not set(quoted) <= set(possible):
        yield f"ends with {verdict.message!r}, we say {quoted} of {possible}"


def _compare_allocation(seen: Seen, verdict: Verdict) -> Iterator[str]:
    """Hold `status.allocation` of each claim that got its devices now against ours."""
    made = verdict.claims.get(EXTENDED_CLAIM_ENTRY)
    requests = made["spec"]["devices"]["requests"] if made else []
    if requests != (ours := seen.extended_requests(verdict.pod, verdict.node)):
        yield f"claim for extended resources asks for\n{requests}\nours for\n{ours}"
    entries, outcome = seen.allocate(verdict.pod, verdict.node, made)
    allocated = written_by_us(outcome)
    theirs = [written_by_server(verdict.claims[each]) for each in entries]
    if allocated != theirs:
        yield f"allocation on {verdict.node} is\n{theirs}\nours is\n{allocated}"


def _refused_everywhere(seen: Seen, verdict: Verdict, pod: Manifest) -> Iterator[str]:
    places = {
        name
        for entry in pod["spec"]["resourceClaims"]
        if entry["name"] in verdict.claims
        for name in _names_in(verdict.claims[entry["name"]])
    }
    for node in places:
        _, outcome = seen.allocate(pod, node)
        if isinstance(written_by_us(outcome), list):
            yield f"is refused, we say that it fits on {node}, where its claim is: {verdict.message}"


def _names_in(claim: Manifest) -> list[str]:
    """The nodes that an allocation names."""
    terms = claim.get("status", {}).get("allocation", {}).get("nodeSelector", {}).get("nodeSelectorTerms", ())
    return [value for term in terms for field in term.get("matchFields", ()) for value in field["values"]]


def _pin(pod: Manifest, node: str) -> Manifest:
    pinned = copy.deepcopy(pod)
    pinned["metadata"]["name"] += f"-{node}"
    pinned["spec"].setdefault("nodeSelector", {})[HOSTNAME] = node
    return pinned
