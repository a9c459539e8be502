"""Rollouts taken to their end on a fleet: old pods go and new ones come, as controllers and the scheduler allow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Final

from dra_infra.kubernetes.api import ObjectRef
from dra_infra.placement.demand import PodPlan, Undecided, Workload
from dra_infra.placement.free_fleet import FirstFit, FreeFleet, PlacedPod
from dra_infra.placement.joint import in_order, without_absent
from dra_infra.placement.nearest_nodes import NearestNode, find_nearest_node
from dra_infra.placement.open_programs import open_program
from dra_infra.placement.question import PlacementQuestion

MAX_EFFORT: Final = 300_000
"""Nodes tried and pods placed, over all steps; nothing is said of a rollout that needs more."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Rollover:
    """One workload whose pods are exchanged.

    Args:
        old: What makes the old pods.
        new: What makes the new ones.
        replicas: New pods in the end.
        running: Old pods that run before.
        surge: Pods on top of *replicas* meanwhile.
        unavailable: Pods that may be missing meanwhile.
        kept: Old pods that stay as they are: the partition of a StatefulSet.
        keeps_all: Whether no old pod stops before all new ones run.
        parts: What is exchanged at once: by part of both objects, its pods in one old and in one new group. The numbers above
            are those of groups; a Deployment's are of one pod.
        on_each: One pod on each node, exchanged there, as those of a DaemonSet; with a surge the new one comes first. The
            other numbers are not looked at.
    """

    old: ObjectRef
    new: ObjectRef
    replicas: int
    running: int
    surge: int
    unavailable: int
    kept: int = 0
    keeps_all: bool = False
    parts: tuple[tuple[str, int, int], ...] = (("", 1, 1),)
    on_each: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Progress:
    """How far a rollover comes.

    Args:
        started: New pods, or groups of them, that found a place.
        wanted: Those of its end.
        nearest: The node that comes nearest to taking the next one, where that is known.
    """

    started: int
    wanted: int
    nearest: NearestNode | None = None

    @property
    def ends(self) -> bool:
        """Every new pod found a place."""
        return self.started >= self.wanted


def step_rollovers(question: PlacementQuestion, rollovers: Sequence[Rollover]) -> dict[ObjectRef, Progress]:
    """Return how far each rollover comes before nothing moves any more.

    Every pod of the objects has its place first, by first fit, and keeps it until it is stopped. Then, round by round,
    each Deployment starts what `replicas + surge` allows, and stops what runs above `replicas - unavailable`; a new pod
    without a place counts for the first, not for the second. A StatefulSet is one with no surge, one pod at a time.
    Upstream: reconcileNewReplicaSet and reconcileOldReplicaSets in pkg/controller/deployment/rolling.go. A DaemonSet
    exchanges the pod of each node on that node: rollingUpdate in pkg/controller/daemon/update.go.

    Args:
        question: The objects of both sides, with different names for the two generations, and the fleet.
        rollovers: All that roll over at once.

    Returns:
        Progress by `Rollover.new`; without those that cannot be decided, and empty when there are too many steps.
    """
    opened = open_program(question)
    # Pods without devices are not followed, so nobody is held to be near them. Of others only what is evicted moves.
    held = without_absent([*opened.workloads, *filter(_has_devices, opened.bystanders)])
    ordered = (held[number] for number in in_order(held))
    workloads = {each.owner: each for each in ordered}
    moving = [each for each in rollovers if _is_decided(workloads, each)]
    board = _Board(opened.free)
    try:
        _fill(board, workloads, moving, {each.new for each in rollovers})
        steps = [(_NodeByNode if each.on_each else _Step)(each, board, workloads) for each in moving]
        # All take their step before it is asked whether one moved.
        while sum(step.take() for step in steps):
            pass
        # That of a group asks for the place that another one would need.
        return {step.rollover.new: step.progress() for step in steps}
    except _TooLongError:
        return {}


def _has_devices(workload: Workload) -> bool:
    return isinstance(workload.plan, PodPlan) and workload.plan.uses_devices


class _TooLongError(Exception):
    """More effort than is worth it."""


def _is_decided(workloads: Mapping[ObjectRef, Workload], rollover: Rollover) -> bool:
    new, old = (
        [workloads[owner] for part, *_ in rollover.parts if (owner := replace(whole, part=part)) in workloads]
        for whole in (rollover.new, rollover.old)
    )
    if not new or any(isinstance(each.plan, Undecided) for each in (*new, *old)):
        return False
    # A claim that pods share is held until the last of them has gone, which is not followed here.
    return not any(
        entry.shared for each in old if isinstance(each.plan, PodPlan) for entry in each.plan.entries
    )


def _fill(
    board: _Board, workloads: Mapping[ObjectRef, Workload], moving: Sequence[Rollover], new: set[ObjectRef]
) -> None:
    """Place what runs before."""
    running = {
        replace(each.old, part=part): each.running * pods for each in moving for part, pods, _ in each.parts
    }
    for owner, workload in workloads.items():
        if owner.whole in new or isinstance(workload.plan, Undecided):
            continue
        if workload.replicas is None:
            board.place_on_each(owner, workload.plan)
        else:
            for _ in range(running.get(owner, workload.replicas)):
                if not board.place(owner, workload.plan):
                    break


class _Step:
    """One rollover on its way."""

    def __init__(self, rollover: Rollover, board: _Board, workloads: Mapping[ObjectRef, Workload]) -> None:
        self.rollover = rollover
        self.started = 0
        self._board = board
        self._new: list[tuple[ObjectRef, PodPlan]] = []
        self._old: list[tuple[ObjectRef, int]] = []
        for part, before, after in rollover.parts:
            new, old = replace(rollover.new, part=part), replace(rollover.old, part=part)
            plan = workloads[new].plan if new in workloads else None
            if isinstance(plan, PodPlan):
                self._new += [(new, plan)] * after
            if before and old in workloads:
                self._old.append((old, before))
        # Old pods without claims hold nothing that is followed here.
        placed = [len(board.nodes_of(owner)) // pods for owner, pods in self._old]
        self._left = min(placed, default=rollover.running)

    def progress(self) -> Progress:
        """How far it has come."""
        told = self.rollover
        progress = Progress(started=self.started, wanted=told.replicas - told.kept)
        if progress.ends:
            return progress
        number, plan = self._place()
        nearest = self._board.find_nearest_node(plan) if plan else None
        self._board.take_back(number)
        return replace(progress, nearest=nearest)

    def _place(self) -> tuple[int, PodPlan | None]:
        """Place one new pod, or those of a group: how many find a place, and the first that finds none."""
        for number, (owner, plan) in enumerate(self._new):
            if not self._board.place(owner, plan):
                return number, plan
        return len(self._new), None

    def take(self) -> bool:
        """Start and stop what is allowed now; whether anything moved."""
        told = self.rollover
        moved = False
        while self.started < min(told.replicas, told.replicas + told.surge - self._left):
            number, plan = self._place()
            if plan is not None:
                self._board.take_back(number)
                break
            self.started += 1
            moved = True
        if told.keeps_all and self.started < told.replicas:
            return moved
        above = self._left + self.started - (told.replicas - told.unavailable)
        stopped = min(above, self._left - told.kept)
        if stopped > 0:
            for owner, pods in self._old:
                self._board.stop(owner, stopped * pods)
            self._left -= stopped
            moved = True
        return moved


class _NodeByNode:
    """A rollout on its way that exchanges the pod of each node on that node."""

    def __init__(self, rollover: Rollover, board: _Board, workloads: Mapping[ObjectRef, Workload]) -> None:
        self.rollover = rollover
        self._board = board
        plan = workloads[rollover.new].plan
        assert isinstance(plan, PodPlan)  # noqa: S101  (only what is decided steps)
        self._plan = plan
        # Where the new pods may not go, the old ones only stop.
        self._waiting = board.open_to(plan)
        if rollover.old in workloads:
            self._waiting = [each for each in board.nodes_of(rollover.old) if each in self._waiting]
        self._wanted = len(self._waiting)

    def progress(self) -> Progress:
        """How far it has come."""
        progress = Progress(started=self._wanted - len(self._waiting), wanted=self._wanted)
        if progress.ends:
            return progress
        return replace(progress, nearest=self._board.find_nearest_node(self._plan, self._waiting))

    def take(self) -> bool:
        """Exchange the pods that can be now, of all nodes in one step; whether anything moved."""
        told = self.rollover
        stopped = False
        if not told.surge:
            stopped = self._board.stop_at(told.old, set(self._waiting))
        placed = {node for node in self._waiting if self._board.place_at(told.new, self._plan, node)}
        if told.surge:
            self._board.stop_at(told.old, placed)
        self._waiting = [node for node in self._waiting if node not in placed]
        # What stopped leaves room for others, also where the new pods do not fit.
        return stopped or bool(placed)


class _Board:
    """Pods and where they are; a pod that stays keeps its devices."""

    def __init__(self, free: FreeFleet) -> None:
        self._free = free
        self._fit = FirstFit(free, self._spend)
        self._pods: list[tuple[ObjectRef, PodPlan, PlacedPod]] = []
        self._effort = 0

    def nodes_of(self, owner: ObjectRef) -> list[int]:
        """The node of each pod of *owner*."""
        return [pod.node for whose, _, pod in self._pods if whose == owner]

    def open_to(self, plan: PodPlan) -> list[int]:
        """The nodes that let such pods in."""
        return [node for node, refusal in enumerate(self._free.refusals(plan)) if not refusal]

    def place(self, owner: ObjectRef, plan: PodPlan) -> bool:
        """Give one pod the first node that takes it; what refused a pod refuses the next, until one is stopped."""
        pod = self._fit.place(plan)
        if pod is None:
            return False
        self._pods.append((owner, plan, pod))
        return True

    def place_at(self, owner: ObjectRef, plan: PodPlan, node: int) -> bool:
        """Place one pod on this node, if it takes it."""
        pod = self._fit.place_at(plan, node)
        if pod is not None:
            self._pods.append((owner, plan, pod))
        return pod is not None

    def find_nearest_node(self, plan: PodPlan, among: Sequence[int] | None = None) -> NearestNode | None:
        """The node that comes nearest to taking a pod that none takes now."""
        return find_nearest_node(self._free, self._fit.state, plan, among)

    def place_on_each(self, owner: ObjectRef, plan: PodPlan) -> None:
        """Place the pods of a DaemonSet."""
        self._pods += [(owner, plan, pod) for pod in self._fit.place_on_each(plan)]

    def stop(self, owner: ObjectRef, number: int) -> None:
        """Stop the last pods of *owner*; the others stay where they are."""
        positions = [index for index, pod in enumerate(self._pods) if pod[0] == owner]
        self._remove(set(positions[-number:]))

    def stop_at(self, owner: ObjectRef, nodes: Set[int]) -> bool:
        """Stop the pods of *owner* on these nodes; whether there were any."""
        gone = {at for at, (whose, _, pod) in enumerate(self._pods) if whose == owner and pod.node in nodes}
        self._remove(gone)
        return bool(gone)

    def take_back(self, number: int) -> None:
        """Remove the pods that were placed last."""
        self._remove(set(range(len(self._pods) - number, len(self._pods))))

    def _remove(self, gone: Set[int]) -> None:
        if not gone:
            return
        self._pods = [pod for index, pod in enumerate(self._pods) if index not in gone]
        self._fit = FirstFit(self._free, self._spend)
        for _, plan, pod in self._pods:
            self._spend()
            self._fit.state.commit(plan, pod.node, pod.chosen)

    def _spend(self) -> None:
        self._effort += 1
        if self._effort > MAX_EFFORT:
            raise _TooLongError
