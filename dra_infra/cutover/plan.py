"""The plan: its phases, with what to do in each, what rolls over, the quotas in force, the verdict, and the way back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from dra_infra.advice.objects import reference_to
from dra_infra.catalog.workload_kinds import workload_kinds
from dra_infra.cutover.estate import QUOTAS, Estate, Objects, asks_plugin, is_old
from dra_infra.cutover.rollouts import find_held
from dra_infra.cutover.search import Judge, Search, State
from dra_infra.cutover.sides import AWAY, Sides, is_of_plugin
from dra_infra.cutover.steps import (
    Step,
    back_from_finish,
    back_from_move,
    back_from_prepare,
    finish,
    how_it_moves,
    move,
    prepare,
)
from dra_infra.errors import Problem
from dra_infra.kubernetes.api import (
    ObjectRef,
    PodRecord,
    Release,
    WorkloadKinds,
    kind_of,
    mapping,
    mappings,
    value_at,
)
from dra_infra.kubernetes.scheduler import NOTHING_TAKEN, Taken
from dra_infra.migration.outcomes import Migrated
from dra_infra.output.wording import join_words
from dra_infra.placement.placement import JointAnswer, JointVerdict
from dra_infra.placement.running import owners_of
from dra_infra.review.rollout import Outlook

PhaseKind: TypeAlias = Literal["prepare", "move", "finish"]
"""Kind of a phase: before anything moves, a group of nodes with workloads or these alone, or the end of the plugin."""

_NOT_READY: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")

_WORST: Final[tuple[JointAnswer, ...]] = ("never", "not-decided", "depends-on-order", "always")


class QuotaKeys(NamedTuple):
    """The keys of a quota that count devices, with their amounts."""

    quota: ObjectRef
    keys: Mapping[str, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Phase:
    """One phase of a cut-over.

    Args:
        kind: What it is.
        nodes: Nodes that leave the plugin in it.
        moves: Workloads that are migrated in it.
        rolls: What happens to their pods, in words, by workload.
        stuck: Those of them whose rollout may wait for ever as it is written, with what to do.
        held: PodDisruptionBudgets by which the drain of its nodes may retry for ever, with what to do.
        unmigrated: Workloads that have not moved when it has ended.
        migrated: Workloads that ask by claims when it has ended, on nodes of the driver.
        evicted: Running pods with devices of the plugin that the drain of these nodes evicts, where that is known.
        deleted: Those of DaemonSets, which a drain leaves.
        quotas: Keys in force during the phase and until the next one.
        steps: What to do, in order.
        back: The way back to the end of the phase before.
        joint: The verdict on all workloads at once when it has ended.
        at_most: The same with autoscalers at their most; None without any.
        meanwhile: The same while its nodes take no pods and nothing has moved; None where no node leaves.
        objects: All objects in force when it has ended.
    """

    kind: PhaseKind
    nodes: tuple[str, ...] = ()
    moves: tuple[ObjectRef, ...] = ()
    rolls: Mapping[ObjectRef, str] = field(default_factory=dict, hash=False)
    stuck: Mapping[ObjectRef, str] = field(default_factory=dict, hash=False)
    held: Mapping[ObjectRef, Outlook] = field(default_factory=dict, hash=False)
    unmigrated: tuple[ObjectRef, ...] = ()
    migrated: tuple[ObjectRef, ...] = ()
    evicted: tuple[ObjectRef, ...] = ()
    deleted: tuple[ObjectRef, ...] = ()
    quotas: tuple[QuotaKeys, ...] = field(default=(), hash=False)
    steps: tuple[Step, ...] = ()
    back: tuple[Step, ...] = ()
    joint: JointVerdict
    at_most: JointVerdict | None = None
    meanwhile: JointVerdict | None = None
    objects: tuple[Mapping[str, Any], ...] = field(default=(), repr=False, hash=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """The plan of a cut-over.

    Args:
        phases: In order; none between the first and the last where there is no way.
        nodes_at_once: The most nodes that leave the plugin in one phase.
        refused: Fewer nodes at a time, and why these do not work.
        reasons: Why the plan does not work, or is not decided, beside the verdicts of its phases.
        problems: Nodes of both plugin and driver, `device-plugin-beside-dra`.
        notes: What else the reader must know.
    """

    phases: tuple[Phase, ...]
    nodes_at_once: int = 0
    refused: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def verdict(self) -> JointAnswer:
        """The worst of the verdicts of its phases; not decided where something is not known."""
        found = {each.joint.verdict for each in self.phases} | ({"not-decided"} if self.reasons else set())
        return next(each for each in _WORST if each in found)

    @property
    def works(self) -> bool:
        """True where every phase can end with all pods placed, no rollout or drain may wait for ever, and no node is on both sides."""
        ends = all(each.joint.works and not each.stuck and not each.held for each in self.phases)
        return ends and not self.reasons and not self.problems


def make_plan(
    objects: Objects,
    migrated: Sequence[Migrated],
    sides: Sides,
    *,
    release: Release,
    is_late: Callable[[], bool],
    stops: Callable[[], bool] | None = None,
    taken: Taken = NOTHING_TAKEN,
    running: Iterable[Mapping[str, Any]] = (),
    kinds: WorkloadKinds | None = None,
    owners: Callable[[ObjectRef], Iterable[ObjectRef]] | None = None,
    files: Sequence[str] = (),
) -> Plan:
    """Plan the cut-over of a cluster from NVIDIA's device plugin to its DRA driver.

    Args:
        objects: The manifests as they are.
        migrated: What becomes of each of them.
        sides: The nodes.
        release: Whose scheduler and server.
        is_late: Asked during searches; once true, what is not known by then is not decided.
        stops: Asked between phases; once true, no fewer nodes at a time are searched for. None for *is_late*.
        taken: What is not free of the nodes.
        running: Pods that run, with their nodes, and DaemonSets and PodDisruptionBudgets that are there.
        kinds: Kinds of objects that make pods; None takes those that the catalogue knows.
        owners: Gives what made one of them, itself first; None where that is among them, or named by a pod.
        files: The file of each object; empty for one that stands in none.
    """
    known = kinds or workload_kinds()
    estate = Estate.of(objects, migrated, known, has_driver=bool(sides.on_driver), files=files)
    judge = Judge(estate, sides, release, taken, is_late)
    search = Search(judge, stops or is_late)
    size, states = search.find() if sides.offered or estate.units else (0, [])
    if states:
        states[-1] = states[-1]._replace(units=frozenset(range(len(estate.units))))
    existing = [each for each in running if each.get("kind") != "Pod" or not PodRecord.of(each).is_done]
    phases = [_prepare(estate, judge, existing)]
    before = State()
    by_ref = {ObjectRef.of(each).stored: each for each in existing}
    find_owners = owners or (lambda ref: owners_of(ref, by_ref))
    for state in states:
        moved = [estate.units[number] for number in before.units]
        gone = {each.ref.stored for each in moved if each.is_replaced(estate.kinds)}
        remaining = [each for ref, each in by_ref.items() if gone.isdisjoint(find_owners(ref))]
        phases.append(_move(estate, judge, before, state, remaining))
        before = state
    phases.append(_finish(estate, judge))
    return Plan(
        phases=tuple(phases),
        nodes_at_once=size if states else 0,
        refused=tuple(search.refused),
        reasons=(*sides.doubts, *_tell_others(estate, sides, taken, existing)),
        problems=sides.problems,
        notes=(*sides.notes, *_tell_classes(sides, release), *_tell_settings(objects, migrated)),
    )


def _prepare(estate: Estate, judge: Judge, running: Objects) -> Phase:
    sides = judge.sides
    ours = [reference_to(each) for each in estate.common if _is_ours(each)]
    quotas = [each for each in ours if each.kind in QUOTAS]
    nodes = [each for each in sides.fleet.nodes if each.name in sides.on_both]
    daemons, stubborn = estate.daemons(nodes, running), estate.daemons(nodes, running, AWAY)
    return Phase(
        kind="prepare",
        steps=prepare(ours, sides, daemons, stubborn, estate.bare(frozenset(), nodes, running)),
        back=back_from_prepare(quotas, is_there=bool(sides.on_driver)),
        **_at(estate, judge, State(), is_over=False),
    )


def _move(estate: Estate, judge: Judge, before: State, state: State, running: Objects) -> Phase:
    nodes = tuple(sorted(state.nodes - before.nodes))
    units = [estate.units[number] for number in sorted(state.units - before.units)]
    rollouts = judge.rollouts(before, state)
    moving = [how_it_moves(each, estate.kinds, rollouts.get(each.ref)) for each in units]
    resources = sorted({name for node in nodes for name in judge.sides.offered[node]})
    drained = [each for each in judge.sides.at(before.nodes).nodes if each.name in nodes]
    daemons = estate.daemons(drained, running)
    bare = estate.bare(before.units, drained, running)
    after = estate.bare(before.units, drained, by_claims=True)
    stubborn = estate.daemons(drained, running, AWAY)
    known = {each.stored for each in daemons}
    plugin_pods = [
        each for each in running if asks_plugin(each, estate.kinds) and PodRecord.of(each).node in nodes
    ]
    meanwhile = judge.verdict(before, without=frozenset(nodes)) if nodes else None
    is_last = judge.sides.offered.keys() <= state.nodes and not any(_tell_classes(judge.sides, judge.release))
    if nodes and is_last and any(asks_plugin(each, estate.kinds) for each in estate.of_units(before.units)):
        # The engine passes over what no node has.
        meanwhile = JointVerdict(verdict="never", reasons=("no other node has the plugin",))
    waits = meanwhile is not None and meanwhile.verdict != "always"
    return Phase(
        kind="move",
        nodes=nodes,
        moves=tuple(each.ref for each in units),
        rolls={each.ref: each.says for each in moving},
        stuck={ref: each.hint for ref, each in rollouts.items() if each.lacks_room},
        held=find_held(estate.at(before.units), running, drained, estate.kinds, waits=waits),
        evicted=tuple(reference_to(each) for each in plugin_pods if _daemon_set_of(each) is None),
        deleted=tuple(reference_to(each) for each in plugin_pods if _daemon_set_of(each) in known),
        steps=move(nodes, resources, moving, daemons, bare),
        back=back_from_move(nodes, resources, moving, daemons, stubborn, after),
        meanwhile=meanwhile,
        **_at(estate, judge, state, is_over=False),
    )


def _finish(estate: Estate, judge: Judge) -> Phase:
    everything = State(frozenset(judge.sides.offered), frozenset(range(len(estate.units))))
    found = _at(estate, judge, everything, is_over=True)
    if estate.stays:
        reasons = tuple(f"{ref} still asks the plugin: {why}" for ref, why in estate.stays)
        found["joint"] = JointVerdict(verdict="never", reasons=reasons)
    quotas = [quota for quota, keys in estate.quotas() if any(map(is_old, keys))]
    return Phase(kind="finish", steps=finish(quotas), back=back_from_finish(quotas), **found)


def _at(estate: Estate, judge: Judge, state: State, *, is_over: bool) -> dict[str, Any]:
    """Fields of a phase that hold when it has ended."""
    unmigrated = [each.ref for number, each in enumerate(estate.units) if number not in state.units]
    moved = [estate.units[number].ref for number in sorted(state.units)]
    joint, at_most = judge.verdicts(state, is_over=is_over)
    return {
        "unmigrated": (*unmigrated, *(ref for ref, _ in estate.stays)),
        "migrated": (*estate.ready, *moved),
        "quotas": tuple(QuotaKeys(*each) for each in estate.quotas(is_over=is_over)),
        "joint": joint,
        "at_most": at_most,
        "objects": tuple(estate.at(state.units, is_over=is_over)),
    }


def _daemon_set_of(pod: Mapping[str, Any]) -> ObjectRef | None:
    """Return the DaemonSet that has made a pod."""
    namespace = ObjectRef.of(pod).stored.namespace
    for owner in mappings(value_at(pod, "metadata", "ownerReferences")):
        if owner.get("kind") == "DaemonSet":
            return ObjectRef(kind_of(owner), str(owner.get("name")), namespace)
    return None


def _is_ours(manifest: Mapping[str, Any]) -> bool:
    """True for what `migrate` may have changed and makes no pods: quotas, queues, classes, and claims and templates of old DRA."""
    return manifest.get("kind") in QUOTAS or str(manifest.get("apiVersion")).startswith("resource.k8s.io/")


def _tell_others(estate: Estate, sides: Sides, taken: Taken, running: Objects) -> Iterator[str]:
    """Nodes that are not ready; pods that run and are not among the manifests, and DaemonSets: what becomes of them nobody said."""
    nodes = [each for each in sides.fleet.nodes if each.name in sides.offered]
    if away := [each.name for each in nodes if any(taint.key in _NOT_READY for taint in each.taints)]:
        what = "bring it back before the drain, or delete the node"
        yield f"a drain and the waits behind it have no end on a node that is not ready: {join_words(away, most=12)}; {what}"
    ours = estate.daemons(nodes)
    for each in estate.daemons(nodes, [each for each in running if asks_plugin(each, estate.kinds)]):
        if each not in ours:
            yield f"{each} of the cluster asks the plugin and is not among the manifests, so its pods wait on each node that has left it"
    units = {str(each.ref) for each in estate.units}
    for rollout in estate.common:
        ref = reference_to(rollout)
        source = mapping(value_at(rollout, "spec", "workloadRef"))
        if (whose := str(replace(ref, kind=str(source.get("kind")), name=str(source.get("name"))))) in units:
            yield f"{ref} makes its pods of {whose} and rolls over with it (spec.workloadRef): they are not counted here"
    for node in sorted(sides.offered):
        held = sorted(taken.amounts.get(node, {}).items())
        if what := ", ".join(f"{each} of {name}" for name, each in held if is_of_plugin(name) and each):
            yield f"pods that are not among the manifests have {what} on {node}, and it is not known what becomes of them"


def _tell_classes(sides: Sides, release: Release) -> Iterator[str]:
    """Classes that serve the plugin's resources, so that pods which are not migrated find nodes on both sides."""
    names = [
        f"{each.metadata.name} serves {each.spec.extended_resource_name}"
        for each in sides.fleet.classes
        if is_of_plugin(each.spec.extended_resource_name or "")
    ]
    if names and release.enabled("DRAExtendedResource"):
        yield f"{names[0]} by DRA (DRAExtendedResource), so pods that are not migrated may run on nodes of the driver, too"


def _tell_settings(objects: Objects, migrated: Sequence[Migrated]) -> Iterator[str]:
    """Settings of controllers that no manifest of a workload has, and that are to be written before it moves."""
    found: dict[str, list[str]] = {}
    for was, done in zip(objects, migrated, strict=True):
        needed = [each for each in done.remarks if each.code == "controller-setting-needed"]
        for each in dict.fromkeys(f"{each.message}: {each.hint}" for each in needed):
            found.setdefault(each, []).append(str(reference_to(was)))
    for what, refs in found.items():
        yield f"before {join_words(refs, most=12)}: {what}"
