"""Rollouts and drains of one phase: whether they come to their end, on nodes as they are then.

A verdict on all pods at once is about the end of a phase. Where a class serves the plugin's resource, old pods take nodes of the driver, and
a rollout that starts a new pod first may wait for ever on a full cluster. A drain does so where PodDisruptionBudgets allow no eviction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from dra_infra.advice.objects import reference_to
from dra_infra.cutover.admission import admit_all
from dra_infra.cutover.estate import Objects, Unit
from dra_infra.cutover.sides import is_of_plugin
from dra_infra.kubernetes.api import (
    LabelSelector,
    Node,
    ObjectRef,
    PodTemplate,
    WorkloadKinds,
    mapping,
    value_at,
)
from dra_infra.kubernetes.scheduler import NodeFilter, pod_requests
from dra_infra.output.wording import count_of
from dra_infra.placement.demand import PodPlan
from dra_infra.placement.joint import ObjectMakers
from dra_infra.placement.open_programs import open_program
from dra_infra.placement.question import PlacementQuestion, never_late
from dra_infra.placement.rolling import Rollover, step_rollovers
from dra_infra.review.comparison import NEW
from dra_infra.review.dangers.workloads import CHANGED_PODS
from dra_infra.review.rollout import (
    EXCHANGED_KINDS,
    Outlook,
    Rollout,
    find_exchange,
    foresee_groups,
    foresee_rollout,
    has_surge,
    resolve_amount,
)

_ROLLING: Final = ("DaemonSet", "Deployment", "StatefulSet", "Rollout")
_PARTITIONS: Final = {
    "StatefulSet": ("updateStrategy", "rollingUpdate"),
    "LeaderWorkerSet": ("rolloutStrategy", "rollingUpdateConfiguration"),
}
"""Where kinds say below which number pods, or groups of them, stay as they are."""

_ALL_FIRST: Final = "canary: {maxSurge: 0, maxUnavailable: 100%}"
_OF_ARGO: Final = {
    "rollingUpdate:": "canary:",
    "type: Recreate": _ALL_FIRST,
    "kubectl rollout resume": "kubectl argo rollouts promote",
}
"""Words of hints for a Deployment, each with those for a Rollout of Argo."""


def foresee_rollouts(units: Sequence[Unit], question: PlacementQuestion) -> dict[ObjectRef, Outlook]:
    """Return how each workload of Kubernetes or Argo rolls over, or exchanges groups of pods, when all of the phase do so at once.

    Args:
        units: The workloads that move.
        question: All objects before they move, with pods as they run, and the nodes of the phase, which have left the plugin.
    """
    kinds = question.kinds
    rolling = [(each, how) for each in units if (how := _rollover(each, kinds)) is not None]
    if not rolling:
        return {}
    added: list[Mapping[str, Any]] = []
    for unit, _ in rolling:
        *others, workload = unit.after
        metadata = {**mapping(workload.get("metadata")), "name": f"{unit.ref.name}{NEW}"}
        added += [*others, {**workload, "metadata": metadata}]
    both = replace(question, manifests=[*question.manifests, *admit_all(added, kinds)], is_late=never_late)
    fleet = question.fleet
    rollovers = [each for _, each in rolling]
    progress = step_rollovers(both, rollovers)
    opened = open_program(both)
    makers = ObjectMakers(opened)
    new = {each.new for each in rollovers}
    plans = {each.owner: each.plan for each in opened.workloads}
    old = [each for each in opened.arriving if each.owner.whole not in new]
    found: dict[ObjectRef, Outlook] = {}
    for unit, rollover in rolling:
        how_far = progress.get(rollover.new)
        plan = plans.get(rollover.new)
        refusal = ""
        if rollover.surge and not rollover.unavailable and isinstance(plan, PodPlan):
            # No old pod stops before a new one runs, and old pods count in quotas.
            refusal = makers.refusal_beside(old, rollover.new, plan)
        new_one = unit.after[-1]
        group, rolling_update = _PARTITIONS.get(unit.ref.kind, ("", ""))
        partition = value_at(new_one, "spec", group, rolling_update, "partition")
        keeps = isinstance(partition, int) and partition > 0
        waits = keeps or value_at(new_one, "spec", "paused") is True
        if unit.ref.kind in EXCHANGED_KINDS:
            kind = kinds.find(new_one)
            said = Outlook(message=(kind and kind.on_change) or CHANGED_PODS)
            outlook = foresee_groups(said, None if waits else how_far, fleet.name, unit.ref.kind)
        else:
            # Where not even the first new pod finds a place, it is known that there is no room.
            room = 0 if how_far is not None and how_far.wanted and not how_far.started else None
            outlook = foresee_rollout(
                new_one,
                rollover.replicas,
                each=None,
                room=None if refusal else room,
                fleet=fleet.name,
                progress=None if refusal or waits else how_far,
                in_yaml=True,
                refusal=refusal,
            )
        for of_deployment, of_rollout in _OF_ARGO.items() if unit.ref.kind == "Rollout" else ():
            outlook = replace(outlook, hint=outlook.hint.replace(of_deployment, of_rollout))
        if keeps:
            message = f"{outlook.message}, but those below the partition {partition} stay as they are"
            hint = f"write {group}: {{{rolling_update}: {{partition: 0}}}}"
            outlook = replace(outlook, message=message, hint=hint)
        found[unit.ref] = replace(outlook, lacks_room=outlook.lacks_room or waits)
    return found


def _rollover(unit: Unit, kinds: WorkloadKinds) -> Rollover | None:
    """How the pods of a workload are exchanged; None for what has no pods yet, or does it in another way."""
    new = unit.after[-1]
    if unit.before is None or value_at(new, "spec", "updateStrategy", "type") == "OnDelete":
        return None
    if unit.ref.kind in EXCHANGED_KINDS:
        parts = (
            {each.owner.part: each.replicas or 0 for each in kinds.find_pod_templates(side)}
            for side in (unit.before, new)
        )
        return find_exchange(unit.ref, unit.before, new, *parts)
    pods = next((each.replicas or 0 for each in kinds.find_pod_templates(new)), None)
    if unit.ref.kind not in _ROLLING or pods is None:
        return None
    is_set = unit.ref.kind == "StatefulSet"
    on_each = unit.ref.kind == "DaemonSet"
    rollout = Rollout(surge=0, unavailable=1) if is_set else Rollout.of(new, pods)
    if on_each:
        surge = int(has_surge(new))
        rollout = Rollout(surge=surge, unavailable=1 - surge)
    return Rollover(
        old=unit.ref,
        new=replace(unit.ref, name=f"{unit.ref.name}{NEW}"),
        replicas=pods,
        running=pods,
        surge=rollout.surge,
        unavailable=rollout.unavailable,
        keeps_all=rollout.keeps_all,
        on_each=on_each,
    )


def find_held(
    objects: Objects, running: Objects, nodes: Sequence[Node], kinds: WorkloadKinds, *, waits: bool
) -> dict[ObjectRef, Outlook]:
    """PodDisruptionBudgets of these or of what runs that may keep a drain of nodes from its end: why, and what to write.

    Upstream: getExpectedPodCount in pkg/controller/disruption/disruption.go. *waits* says whether evicted pods may find no place until the
    nodes are back.
    """
    # What is applied takes the place of what is there, which alone always says its namespace.
    every = (each for each in (*running, *objects) if each.get("kind") == "PodDisruptionBudget")
    budgets = {(ref := reference_to(each)).stored: (ref, mapping(each.get("spec"))) for each in every}
    sides = [
        [pods for each in admit_all(side, kinds) for pods in kinds.find_pod_templates(each)]
        if budgets
        else []
        for side in (objects, running)
    ]
    found: dict[ObjectRef, Outlook] = {}
    for stored, (ref, spec) in budgets.items():
        matches = LabelSelector.read(spec.get("selector")).matches
        own, there = (
            [
                each
                for each in side
                if each.owner.stored.namespace == stored.namespace and matches(each.labels)
            ]
            for side in sides
        )
        limit = spec.get("maxUnavailable", spec.get("minAvailable"))
        pods = sum(each.replicas or 0 for each in own or there)
        amount = resolve_amount(limit, pods, round_up=True) if isinstance(limit, (int, str)) else pods
        allowed = max(amount if "maxUnavailable" in spec else pods - amount, 0)
        leave = max(sum(_count_on(each, nodes) for each in side) for side in (own, there))
        if leave and (not allowed or (waits and allowed < leave)):
            what = (
                f"{count_of(allowed, 'eviction')}, while others find no place" if allowed else "no eviction"
            )
            instead = "" if "maxUnavailable" in spec else " in place of minAvailable"
            found[ref] = Outlook(
                message=f"allows {what}, and guards up to {count_of(leave, 'pod')} of these nodes: the drain may retry without end",
                hint=f"write maxUnavailable: {leave}{instead} until the nodes are back, or drain with --disable-eviction, "
                "which deletes pods whatever budgets say",
            )
    return found


def _count_on(pods: PodTemplate, nodes: Sequence[Node]) -> int:
    """How many pods of a template may have devices of the plugin on some nodes; of a pod that runs, whether it is there."""
    if pods.spec.get("nodeName"):
        return int(any(each.name == pods.spec["nodeName"] for each in nodes))
    room = 0
    with suppress(ValueError):
        requests = pod_requests(pods.spec).items()
        asked = {name: amount for name, amount in requests if is_of_plugin(name) and amount > 0}
        for each in nodes if asked else ():
            if not NodeFilter(pods.spec).refusal(each):
                room += min(int(each.allocatable.get(name, "0")) // amount for name, amount in asked.items())
    return min(room, pods.replicas or 0)
