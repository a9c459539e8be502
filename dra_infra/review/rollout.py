"""Rollouts: how a workload replaces its pods, and whether the fleet has the devices for it.

A rollout may need room for two generations of pods at once. It is foreseen whether the fleet holds them, and whether
rollouts on it come to their end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from dra_infra.fleet import Fleet
from dra_infra.kubernetes.api import ObjectRef, mapping
from dra_infra.output.wording import count_of
from dra_infra.placement.question import PlacementQuestion
from dra_infra.placement.rolling import Progress, Rollover, step_rollovers
from dra_infra.placement.scheduling import place
from dra_infra.program_objects import get_field
from dra_infra.review.comparison import NEW, ROLLING_KINDS, Comparison, ProgramIndex, both_generations

EXCHANGED_KINDS: Final = ("LeaderWorkerSet", "RayService")
"""Kinds that exchange whole groups of pods."""

_STOP_FIRST: Final = "{} stops an old pod first"
_MAKE_ROOM: Final = "{} stops all old pods first; else make room before, by fewer replicas or more nodes"
_STOP_FIRST_ON_NODES: Final = "{} stops the old pod of a node first"
_MORE_NODES: Final = "make room before, by fewer replicas or more nodes"
_ONE_BY_ONE: Final = "delete the pods one by one, or write {}"
_WRITTEN: Final = {
    # As a program writes it, and as a manifest does.
    _STOP_FIRST: (
        'strategy={"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}',
        "strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}",
    ),
    _STOP_FIRST_ON_NODES: (
        'updateStrategy={"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}',
        "updateStrategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}",
    ),
    _MAKE_ROOM: ('strategy={"type": "Recreate"}', "strategy: {type: Recreate}"),
    _ONE_BY_ONE: ('updateStrategy={"type": "RollingUpdate"}', "updateStrategy: {type: RollingUpdate}"),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Rollout:
    """How a Deployment replaces its pods.

    Args:
        surge: Pods that run on top of `replicas`; 0 also when all pods are stopped first.
        unavailable: Pods that may be stopped before their successors run.
        stops_first: Whether every old pod is stopped before the first new one starts (`Recreate`).
        keeps_all: Whether every old pod runs until all new ones do.
    """

    surge: int
    unavailable: int
    stops_first: bool = False
    keeps_all: bool = False

    @classmethod
    def of(cls, deployment: Mapping[str, Any], replicas: int) -> Rollout:
        """Read the strategy; 25 % each by default, surge rounds up, unavailable down, and never both to zero.

        Upstream: ResolveFenceposts in pkg/controller/deployment/util/deployment_util.go; for a Rollout of Argo, MaxSurge in
        utils/replicaset/replicaset.go and CalculateReplicaCountsForTrafficRoutedCanary in canary.go beside it.
        """
        if get_field(deployment, "spec.strategy.type") == "Recreate":
            return cls(surge=0, unavailable=replicas, stops_first=True)
        strategy = mapping(get_field(deployment, "spec.strategy"))
        rolling = mapping(strategy.get("rollingUpdate") or strategy.get("canary"))
        if "blueGreen" in strategy or rolling.get("trafficRouting"):
            keeps_all = rolling.get("dynamicStableScale") is not True
            return cls(surge=replicas, unavailable=0, keeps_all=keeps_all)
        surge = resolve_amount(rolling.get("maxSurge"), replicas, round_up=True)
        unavailable = resolve_amount(rolling.get("maxUnavailable"), replicas, round_up=False)
        if surge == 0 and unavailable == 0:
            unavailable = 1
        return cls(surge=surge, unavailable=unavailable)


@dataclass(frozen=True, kw_only=True, slots=True)
class Outlook:
    """The expected progress of a rollout.

    Args:
        message: As the rest of a sentence that starts with the workload.
        hint: What to do about it.
        lacks_room: Whether the fleet has no room for all surge pods, or for the rollout to come to its end.
        ends: Whether it was played through on the fleet, and every new pod found a place.
    """

    message: str
    hint: str = ""
    lacks_room: bool = False
    ends: bool = False


_ONE_STOPS: Final = "its pod stops before the new one starts"


def count_surge(deployment: Mapping[str, Any], replicas: int | None) -> int:
    """Pods that a rollout of a Deployment runs on top of its replicas."""
    return 0 if replicas is None else Rollout.of(deployment, replicas).surge


def foresee_rollout(
    manifest: Mapping[str, Any],
    replicas: int | None,
    *,
    each: int | None,
    room: int | None,
    fleet: str,
    progress: Progress | None = None,
    in_yaml: bool = False,
    refusal: str = "",
) -> Outlook:
    """Say how the pods of a Deployment, StatefulSet or DaemonSet are exchanged for new ones.

    Room is judged by the new pods alone: old pods on devices that the new ones do not ask for take none of it, so that
    too little room means "may wait".

    Args:
        manifest: The workload.
        replicas: Pods that it runs at once; None for one per node.
        each: Devices that every pod has of its own; None when that depends on the node.
        room: More such pods that fit the otherwise free fleet; None when that is not known.
        fleet: What the fleet is called.
        progress: How far the rollout comes when it goes as far as it can; None when that is not known.
        in_yaml: Whether hints show YAML, for what a manifest or a chart holds, or else Python.
        refusal: What refuses the new pod that has to run before an old one stops; empty for nothing.
    """
    outlook = _foresee(manifest, replicas, each=each, room=room, fleet=fleet, progress=progress)
    if refusal:
        message = f"{outlook.message}, but {refusal}: the rollout may wait without end"
        outlook = Outlook(message=message, hint=_STOP_FIRST, lacks_room=True)
    outlook = _or_played(outlook, progress, fleet)
    if outlook.hint in _WRITTEN:
        return replace(outlook, hint=outlook.hint.format(_WRITTEN[outlook.hint][in_yaml]))
    return outlook


def foresee_groups(outlook: Outlook, progress: Progress | None, fleet: str, kind: str) -> Outlook:
    """Returns the outlook of groups of pods that are exchanged, with how far that comes on the fleet where it is known."""
    what = "cluster" if kind == "RayService" else "group"
    stuck = _or_stuck(outlook, progress, fleet, hint=_MORE_NODES, what=what)
    return _or_played(stuck, progress, fleet, what=what)


def _or_played(outlook: Outlook, progress: Progress | None, fleet: str, what: str = "pod") -> Outlook:
    """The same, or what is said of a rollout that was played to its end."""
    if progress is None or not progress.ends or not progress.wanted:
        return outlook
    found = f"all {progress.wanted:,} new {what}s find" if progress.wanted != 1 else f"the new {what} finds"
    message = f"{outlook.message}; played through on {fleet}, {found} a place"
    return replace(outlook, message=message, hint="", ends=True)


def _foresee(
    manifest: Mapping[str, Any],
    replicas: int | None,
    *,
    each: int | None,
    room: int | None,
    fleet: str,
    progress: Progress | None,
) -> Outlook:
    if get_field(manifest, "spec.updateStrategy.type") == "OnDelete":
        return Outlook(
            message="keeps its pods as they are until each is deleted (updateStrategy OnDelete)",
            hint=_ONE_BY_ONE,
        )
    if get_field(manifest, "spec.paused") is True:
        return Outlook(
            message="is paused, and rolls over once it is resumed", hint="kubectl rollout resume, when it may"
        )
    if replicas is None or manifest.get("kind") == "DaemonSet":
        if has_surge(manifest):
            surge = get_field(manifest, "spec.updateStrategy.rollingUpdate.maxSurge")
            more = "more devices" if each is None else count_of(each, "more device")
            number = resolve_amount(surge, 1, round_up=True)
            nodes = f"{surge} of the nodes" if isinstance(surge, str) else count_of(number, "node")
            message = (
                f"rolls over with old and new pod side by side on up to {nodes} at a time: {more} on each"
            )
            return _or_stuck(Outlook(message=message), progress, fleet, hint=_STOP_FIRST_ON_NODES)
        message = "rolls over node by node, its pods need no more devices meanwhile"
        return _or_stuck(Outlook(message=message), progress, fleet, hint=_MORE_NODES)
    if manifest.get("kind") == "StatefulSet":
        many = f"its {count_of(replicas, 'pod')} stop one after the other, from the last"
        message = f"rolls over, {_ONE_STOPS if replicas == 1 else many}"
        return _or_stuck(Outlook(message=message), progress, fleet, hint=_MORE_NODES)
    rollout = Rollout.of(manifest, replicas)
    if rollout.stops_first:
        many = f"its {count_of(replicas, 'pod')} all stop before new ones start"
        message = f"rolls over, {_ONE_STOPS if replicas == 1 else many}"
        return _or_stuck(Outlook(message=message), progress, fleet, hint=_MORE_NODES)
    if rollout.surge == 0:
        stopped = count_of(rollout.unavailable, "pod")
        message = f"rolls over, {stopped} at a time; no more devices are needed meanwhile"
        return _or_stuck(Outlook(message=message), progress, fleet)
    if each == 0:
        return Outlook(message=f"rolls over, {count_of(rollout.surge, 'pod')} at a time")
    return _foresee_surge(rollout, each=each, room=room, fleet=fleet, progress=progress)


def _foresee_surge(
    rollout: Rollout, *, each: int | None, room: int | None, fleet: str, progress: Progress | None
) -> Outlook:
    surge = count_of(rollout.surge, "surge pod")
    devices = "more devices" if each is None else count_of(rollout.surge * each, "more device")
    message = f"rolls over and needs {devices} for {surge} until the old ones are gone"
    stuck = _or_stuck(Outlook(message=message), progress, fleet)
    begun = progress is not None and progress.started > 0
    if room is None or room >= rollout.surge or (begun and stuck.lacks_room):
        return stuck
    message += f", but {fleet} has room for {count_of(room, 'more pod')}"
    goes_on = rollout.unavailable > 0 if progress is None else progress.ends
    if goes_on:
        return Outlook(message=f"{message}: it may have to wait until old pods stop", lacks_room=True)
    return Outlook(
        message=f"{message}: the rollout may wait without end{_where(progress)}",
        hint=_STOP_FIRST if rollout.unavailable == 0 else _MAKE_ROOM,
        lacks_room=True,
    )


def _or_stuck(
    outlook: Outlook, progress: Progress | None, fleet: str, hint: str = _MAKE_ROOM, what: str = "pod"
) -> Outlook:
    """The same, or what is said of a rollout that stops half way."""
    if progress is None or progress.ends:
        return outlook
    finds = "finds" if 1 in (progress.started, progress.wanted) else "find"
    return Outlook(
        message=(
            f"{outlook.message}, but only {progress.started:,} of {count_of(progress.wanted, f'new {what}')} {finds} room on "
            f"{fleet} beside the old ones and the other workloads: the rollout may wait without end{_where(progress, what)}"
        ),
        hint=hint,
        lacks_room=True,
    )


def _where(progress: Progress | None, what: str = "pod") -> str:
    """At which pod a rollout hangs, and what is missing there."""
    if progress is None or progress.nearest is None:
        return ""
    at = what if what == "pod" else f"pod of {what}"
    return f", at new {at} {progress.started + 1:,} of {progress.wanted:,}; {progress.nearest}"


def has_surge(daemon_set: Mapping[str, Any]) -> bool:
    """Whether new pods of a DaemonSet start beside the old ones of their nodes."""
    return get_field(daemon_set, "spec.updateStrategy.rollingUpdate.maxSurge") not in (None, 0, "0%")


def resolve_amount(value: Any, replicas: int, *, round_up: bool) -> int:
    """A number of pods, or a share of them in percent; 25% where there is neither."""
    if isinstance(value, (int, float)) and abs(value) < 2**31:
        return int(value)
    digits = value.removesuffix("%") if isinstance(value, str) else ""
    percent = int(digits) if digits.isdecimal() else 25
    return (percent * replicas + (99 if round_up else 0)) // 100


@dataclass(frozen=True, kw_only=True, slots=True)
class Room:
    """How far rollouts come on the fleet; empty where that is not known.

    Args:
        surge: Surge pods of each workload that find room beside all that runs.
        progress: How far the rollout of each workload comes when all go as far as they can.
    """

    surge: Mapping[ObjectRef, int] = field(default_factory=dict)
    progress: Mapping[ObjectRef, Progress] = field(default_factory=dict)


def find_room(compared: Comparison) -> Room:
    """Room for everything that rolls over, on the fleet of the placements."""
    rolling = [each for each in compared.changes if each.urn in compared.rolling | compared.exchanged]
    if compared.head_placement is None or not rolling:
        return Room()
    fleet = compared.head_placement.fleet
    surges = {
        each.ref: count_surge(each.object.manifest, compared.head_index.pods[each.ref].replicas)
        for each in rolling
        if each.ref.kind == "Deployment"
    }
    return Room(
        surge=_find_surge_room(compared, {owner: surge for owner, surge in surges.items() if surge}, fleet),
        progress=_find_progress(compared, [each.ref for each in rolling], fleet),
    )


def _find_surge_room(
    compared: Comparison, surges: Mapping[ObjectRef, int], fleet: Fleet
) -> dict[ObjectRef, int]:
    """How many of the surge pods of each workload find room by first fit, when every pod of the base has its place.

    Without workloads whose placement is not decided.
    """
    if not surges:
        return {}
    manifests, owners = both_generations(compared, surges)
    placement = place(_question_of(compared, manifests, fleet), last=frozenset(owners))
    return {
        owners[workload.owner]: len(workload.pods)
        for workload in placement.workloads
        if workload.owner in owners and workload.verdict != "not-decided"
    }


def _question_of(
    compared: Comparison, manifests: Sequence[Mapping[str, Any]], fleet: Fleet
) -> PlacementQuestion:
    """Return the question about objects of both sides while the change rolls out, whose rules may evict pods of others."""
    release = compared.head.release
    head = [each.manifest for each in compared.head.objects]
    taken = compared.running.without_evicted(head, fleet, release)
    return PlacementQuestion(
        manifests=manifests, fleet=fleet, taken=taken, release=release, kinds=compared.kinds
    )


def _find_progress(
    compared: Comparison, rolling: Iterable[ObjectRef], fleet: Fleet
) -> dict[ObjectRef, Progress]:
    """How far each rollout comes when every one goes as far as it can, all at once.

    Without those that wait for somebody, that are not known, and that are not decided.
    """
    rollovers: dict[ObjectRef, Rollover] = {}
    for ref in rolling:
        rollover = _find_rollover(ref, compared.base_index, compared.head_index)
        if rollover is not None:
            rollovers[ref] = rollover
    if not rollovers:
        return {}
    replicas = {ref: None if each.on_each else each.replicas for ref, each in rollovers.items()}
    manifests, owners = both_generations(compared, replicas)
    progress = step_rollovers(_question_of(compared, manifests, fleet), list(rollovers.values()))
    return {owners[owner]: progress for owner, progress in progress.items()}


def _find_rollover(ref: ObjectRef, old: ProgramIndex, new: ProgramIndex) -> Rollover | None:
    if ref.kind in EXCHANGED_KINDS:
        parts = (
            {each.part: pods.replicas or 0 for each, pods in side.pods.items() if each.whole == ref}
            for side in (old, new)
        )
        return find_exchange(ref, old.objects[ref].manifest, new.objects[ref].manifest, *parts)
    if ref.kind not in ROLLING_KINDS:
        return None
    manifest = new.objects[ref].manifest
    replicas = new.pods[ref].replicas
    before = old.pods[ref].replicas
    waits = (
        get_field(manifest, "spec.paused") is True
        or get_field(manifest, "spec.updateStrategy.type") == "OnDelete"
    )
    if waits:
        return None
    renamed = replace(ref, name=f"{ref.name}{NEW}")
    if ref.kind == "DaemonSet":
        surge = int(has_surge(manifest))
        return Rollover(
            old=ref, new=renamed, replicas=0, running=0, surge=surge, unavailable=1 - surge, on_each=True
        )
    if replicas is None or before is None:
        return None
    kept = 0
    if ref.kind == "StatefulSet":
        partition = get_field(manifest, "spec.updateStrategy.rollingUpdate.partition")
        kept = min(int(partition), replicas) if isinstance(partition, (int, float)) else 0
        rollout = Rollout(surge=0, unavailable=1)
        running = min(before, replicas)
    else:
        # A new number of replicas goes to the old pods first: `scale` in pkg/controller/deployment/sync.go.
        rollout = Rollout.of(manifest, replicas)
        running = replicas
    return Rollover(
        old=ref,
        new=renamed,
        replicas=replicas,
        running=running,
        surge=rollout.surge,
        unavailable=rollout.unavailable,
        kept=min(kept, running),
    )


def find_exchange(
    ref: ObjectRef,
    old: Mapping[str, Any],
    new: Mapping[str, Any],
    old_pods: Mapping[str, int],
    new_pods: Mapping[str, int],
) -> Rollover | None:
    """Groups of a LeaderWorkerSet are exchanged as pods of a Deployment; the second cluster of a RayService comes before the first goes.

    None where nothing is exchanged, or in another way.

    Args:
        ref: The object, whose new one has a name of its own.
        old: Its manifest as it was.
        new: As it is to be.
        old_pods: How many pods each of its parts had.
        new_pods: How many they get.

    Upstream: rollingUpdateParameters in pkg/controllers/leaderworkerset_controller.go of LWS, and shouldPrepareNewCluster in
    ray-operator/controllers/ray/rayservice_controller.go of KubeRay.
    """
    if get_field(new, "spec.upgradeStrategy.type") not in (None, "NewCluster"):
        return None
    rolling = {"maxSurge": 1, "maxUnavailable": 0}
    if ref.kind == "LeaderWorkerSet":
        rolling = dict(mapping(get_field(new, "spec.rolloutStrategy.rollingUpdateConfiguration")))
    written = (get_field(each, "spec.replicas") for each in (old, new))
    was, groups = (1 if each is None else resolve_amount(each, 1, round_up=True) for each in written)
    if was < 1 or groups < 1:
        return None
    parts = [
        (part, old_pods.get(part, 0) // was, new_pods.get(part, 0) // groups)
        for part in {**old_pods, **new_pods}
    ]
    return Rollover(
        old=ref,
        new=replace(ref, name=f"{ref.name}{NEW}"),
        replicas=groups,
        running=min(was, groups),
        surge=min(resolve_amount(rolling.get("maxSurge", 0), groups, round_up=True), groups),
        unavailable=resolve_amount(rolling.get("maxUnavailable", 1), groups, round_up=False),
        kept=min(resolve_amount(rolling.get("partition", 0), 0, round_up=True), was, groups),
        parts=tuple(parts),
    )
