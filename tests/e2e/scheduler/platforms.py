"""Whole platforms on the real scheduler: the verdict on all pods at once, and what becomes of them in some order."""

from __future__ import annotations

import copy
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from random import Random
from typing import Final

from dra_infra.catalog.snapshots import Snapshot
from dra_infra.kubernetes.api.gates import Release
from dra_infra.placement.placement import JointVerdict, Order
from dra_infra.placement.scheduling import place
from dra_infra.review.running import Running
from tests.e2e.parity.differential import RESULTS
from tests.e2e.parity.report import PLATFORM_SECTION
from tests.e2e.scheduler.answers import PLACED_KINDS, Seen
from tests.e2e.scheduler.scenario import Scenario
from tests.e2e.scheduler.stage import HOSTNAME, Stage, scheduled_condition
from tools.cluster import Manifest, WaitTimeoutError

RETRY_SECONDS: Final = 30.0
VERDICTS: Final = ("always", "depends-on-order", "never", "not-decided")
_SECTION: Final = """\
## All pods at once

Platforms drawn from a seed (`tests/e2e/scheduler`), each created on the real scheduler of 1.37 in two random orders and in those that the
verdict on [all workloads at once](placement.md#all-at-once) names. No pod did other than it says.

| Platforms | always | depends-on-order | never | not-decided |
| --- | --- | --- | --- | --- |"""
SHUFFLES: Final = 2
"""Random orders in which the pods of a platform are created."""


@dataclass(frozen=True, kw_only=True)
class PlatformReport:
    """What a platform showed.

    Args:
        joint: Our verdict.
        differences: Every way in which the scheduler did something else than it says.
    """

    joint: JointVerdict
    differences: tuple[str, ...]


def compare_platform(stage: Stage, scenario: Scenario, release: Release, random: Random) -> PlatformReport:
    """Create all pods of a scenario in random orders, and in those that the verdict names."""
    with stage.set(scenario):
        seen = Seen.of(stage, release)
        taken = Running.of(Snapshot(fleet=seen.fleet, objects=seen.objects)).taken
        known = [
            {key: value for key, value in each.items() if key != "status"}
            for each in seen.objects
            if each["kind"] in PLACED_KINDS
        ]
        joint = place([*known, *scenario.pods], seen.fleet, taken=taken, release=release).joint
        found: list[str] = []
        for _ in range(SHUFFLES):
            pods = random.sample(scenario.pods, len(scenario.pods))
            pending = _create_all(stage, pods, bound=pods if joint.verdict == "always" else ())
            order = [each["metadata"]["name"] for each in pods]
            if pending and joint.verdict == "always":
                found.append(f"{scenario}: always, but in the order {order} these wait: {pending}")
            if not pending and joint.verdict == "never":
                found.append(f"{scenario}: never, but in the order {order} all were bound: {joint.reasons}")
        for order_shown in (joint.works, joint.fails):
            if order_shown is not None:
                found += _play(stage, scenario, order_shown)
        return PlatformReport(joint=joint, differences=tuple(found))


def write_counts(theme: str, verdicts: Mapping[str, int]) -> None:
    """Write how many platforms of a theme got each verdict, and the section of docs/parity.md with those of all themes."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    # In one step: other workers read it for their sections.
    draft = RESULTS / f"platforms-{theme}.draft"
    draft.write_text(json.dumps(verdicts))
    draft.replace(draft.with_suffix(".json"))
    counts = {
        path.stem.removeprefix("platforms-"): json.loads(path.read_text())
        for path in sorted(RESULTS.glob("platforms-*.json"))
    }
    rows = [*counts.items(), ("all", sum(map(Counter, counts.values()), Counter()))]
    table = [
        " | ".join(
            ("", name.replace("_", " "), *(str(each.get(verdict, 0)) for verdict in VERDICTS), "")
        ).strip()
        for name, each in rows
    ]
    (RESULTS / PLATFORM_SECTION).write_text("\n".join((_SECTION, *table)))


def _play(stage: Stage, scenario: Scenario, order: Order) -> list[str]:
    """Create the pods in an order that we name, each sent to the node that we name; then those that we say wait."""
    pods = {each["metadata"]["name"]: each for each in scenario.pods}
    arriving = [_send(pods[each.owner.name], each.node) for each in order.arrivals]
    waiting = [pods[owner.name] for owner, _ in order.pending]
    pending = _create_all(stage, [*arriving, *waiting], bound=arriving, in_turn=True)
    expected = [each["metadata"]["name"] for each in waiting]
    if sorted(pending) != sorted(expected):
        return [f"{scenario}: in the order {order} these wait: {pending}, we said {expected}"]
    return []


def _create_all(
    stage: Stage, pods: Sequence[Manifest], *, bound: Sequence[Manifest], in_turn: bool = False
) -> dict[str, str]:
    """Create pods one after the other; the names of those that wait at the end, and why. All are removed again.

    Args:
        stage: The control plane.
        pods: In the order in which they are created.
        bound: Those that are waited for: a pod that was refused is tried again, some seconds after another one came.
        in_turn: Each of them is, before the next one is created, so that pods are bound in the order in which they arrive.
    """
    made: list[Manifest] = []
    # The scheduler has seen that the pods of the order before are gone.
    stage.wait_until_seen()
    try:
        for pod in pods:
            made.append(pod)
            stage.create(pod)
            if in_turn and pod in bound:
                _wait_until_bound(stage, pod)
        for pod in bound:
            if not _wait_until_bound(stage, pod):
                break
        return {
            each["metadata"]["name"]: str(scheduled_condition(each).get("message", ""))
            for each in _look_at(stage, made)
            if not each["spec"].get("nodeName")
        }
    finally:
        # Those that wait go first, or one of them may get what another one leaves. In the other order some pods of the next
        # order were refused devices that were free by then; why the scheduler did so was not found out.
        for pod in sorted(_look_at(stage, made), key=lambda each: bool(each["spec"].get("nodeName"))):
            stage.remove(pod)
        for namespace in {each["metadata"]["namespace"] for each in made}:
            stage.wait_until_free(namespace)


def _look_at(stage: Stage, pods: Sequence[Manifest]) -> list[Manifest]:
    """The pods as the server has them now."""
    found = (
        stage.api.find("v1/Pod", each["metadata"]["name"], namespace=each["metadata"]["namespace"])
        for each in pods
    )
    return [each for each in found if each is not None]


def _wait_until_bound(stage: Stage, pod: Manifest) -> bool:
    """True once a pod is on a node; false where it is not after half a minute."""
    name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
    with suppress(WaitTimeoutError):
        stage.api.wait_until(
            "v1/Pod",
            name,
            lambda seen: seen["spec"].get("nodeName"),
            namespace=namespace,
            timeout=RETRY_SECONDS,
        )
        return True
    return False


def _send(pod: Manifest, node: str) -> Manifest:
    sent = copy.deepcopy(pod)
    sent["spec"].setdefault("nodeSelector", {})[HOSTNAME] = node
    return sent
