"""Joint placement of all workloads, greedily: in the order given, pod by pod, on the first node that takes each.

The real scheduler takes pods in the order in which they come and picks the best-scored node, ties at random. That
this one order works proves that all fit; that it does not proves nothing.

Quotas of its namespace limit how many pods of a workload come to be, with their claims.

Required affinity to pods of other workloads decides who has to be there first, and what cannot be known. A pod that
wants to be near pods which are nowhere yet waits for them. So the joint placement puts the workloads that it names
first; alone, on the otherwise free fleet, it is not held to them.

A program is read and the fleet opened for it here, in the same way for all that place one.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from dra_infra.explanation.question import AskedClaim, Question
from dra_infra.kubernetes.api.gates import Release
from dra_infra.kubernetes.api.label_selectors import Namespaces
from dra_infra.kubernetes.api.manifests import mapping, value_at
from dra_infra.kubernetes.api.metadata import ObjectRef, kind_of, ref_of
from dra_infra.kubernetes.api.workload_kinds import Gang, WorkloadKinds
from dra_infra.kubernetes.apiserver.admission import Quotas, Use, count_claim, count_object
from dra_infra.kubernetes.scheduler.extended_resources import GATE
from dra_infra.kubernetes.scheduler.fleet import Fleet
from dra_infra.kubernetes.scheduler.placed_pods import PlacedPods, Taken
from dra_infra.kubernetes.scheduler.pod_shapes import PodShape
from dra_infra.output.wording import count_of
from dra_infra.placement.cluster import Cluster, newest_release
from dra_infra.placement.cluster_state import InUse
from dra_infra.placement.demand import PodPlan, Undecided, Workload
from dra_infra.placement.free_fleet import Capacity, FirstFit, FreeFleet
from dra_infra.placement.objects import ProgramObjects, identity_of
from dra_infra.placement.placement import NodePlacement, Order
from dra_infra.placement.workloads import find_bystanders, find_workloads, plan_claim, read_evicted

_BETWEEN: Final = {
    "Deployment": {"apiVersion": "apps/v1", "kind": "ReplicaSet"},
    "CronJob": {"apiVersion": "batch/v1", "kind": "Job"},
}
"""What controllers make of an object, to make its pods."""


class ObjectMakers:
    """Makes the pods and claims of a program, one after the other, as far as quotas let it.

    Args:
        program: The program, on its fleet.
        made: What others have made, by namespace.
    """

    def __init__(self, program: OpenProgram, made: Mapping[str, Use]) -> None:
        objects, self.program = program.objects, program
        self._quotas = Quotas(objects.policies, made)
        self._refused: dict[ObjectRef, str] = {}
        if self._quotas:
            names, bridged = objects.extended_names, objects.release.enabled(GATE)
            # Pods count with those that controllers make.
            for manifest in (each for each in objects.manifests if each.get("kind") != "Pod"):
                namespace, name = identity_of(manifest)
                ref = ObjectRef(kind_of(manifest), name, namespace)
                own = count_object(manifest)
                if ref.kind == "ResourceClaim":
                    own = count_claim(manifest.get("spec"), names, bridged=bridged)
                counted = [(str(ref), own)]
                if between := _BETWEEN.get(ref.kind):
                    counted.append((f"the {between['kind']} of {ref}", count_object(between)))
                for what, use in counted:
                    if refusal := self._quotas.refusal(namespace, use):
                        self._refused[ref] = f"{what} is refused, for {refusal}"
                        break
                    self._quotas.charge(namespace, use)

    def count_alone(self, owner: ObjectRef, plan: PodPlan, wanted: int) -> tuple[int, str]:
        """How many of the wanted pods are made while the program makes no others, and what refuses the next one."""
        if not self._quotas:
            return wanted, ""
        return self._make(self._quotas.copy(), owner, plan, wanted)

    def refusal_beside(self, others: Sequence[Workload], owner: ObjectRef, plan: PodPlan) -> str:
        """What refuses a pod while all pods of the others are there; empty where it is made."""
        quotas = self._quotas.copy()
        for each in (*self.program.left_out, *others):
            if isinstance(each.plan, PodPlan):
                self._make(quotas, each.owner, each.plan, self.program.free.count_wanted(each))
        return self._make(quotas, owner, plan, 1)[1]

    def make_together(self, workloads: Sequence[Workload]) -> tuple[list[Workload], dict[ObjectRef, str]]:
        """The workloads with the pods that are made, one workload after the other; and what refuses others of them.

        Before them come the pods that no node lets in: quotas count these too, and gangs as if they ran.
        """
        made: list[Workload] = []
        quotas, asked = self._quotas.copy(), [*self.program.left_out, *workloads]
        free = self.program.free
        refused = self.program.objects.find_crowded([(each.owner, free.count_wanted(each)) for each in asked])
        for each in asked if self._quotas else ():
            plan, number = each.plan, each.replicas
            if isinstance(plan, PodPlan):
                wanted = free.count_wanted(each)
                most, refusal = self._make(quotas, each.owner, plan, wanted)
                number = number if number is None else most
                if refusal:
                    alone, why = self.count_alone(each.owner, plan, wanted)
                    beside = f"{each.owner} gets {most:,} of {count_of(wanted, 'pod')} beside the others: {refusal}"
                    refused[each.owner] = (
                        f"{each.owner}: {show_refusal(alone, wanted, why)}" if why else beside
                    )
            made.append(replace(each, replicas=number))
        made = made or asked
        # A gang of which too few pods are made does nothing.
        cut = find_cut(asked, [each.replicas or 0 for each in made])
        blamed = {each.gang for each in made if each.owner in refused}
        for each in made:
            if each.gang and each.gang in cut and each.gang not in blamed:
                needed = f"{each.owner} waits for {cut[each.gang]:,} pods of {each.gang.owner}"
                refused[each.owner] = f"{needed}, and there are fewer"
        made = [replace(each, replicas=0) if each.gang and each.gang in cut else each for each in made]
        elsewhere, number = Counter[Gang | None](), len(self.program.left_out)
        for each in made[:number]:
            elsewhere[each.gang] += each.replicas or 0
        made = [replace(each, gang=each.gang and each.gang.beside(elsewhere[each.gang])) for each in made]
        return made[number:], refused

    def _make(self, quotas: Quotas, owner: ObjectRef, plan: PodPlan, wanted: int) -> tuple[int, str]:
        """Make as many of the wanted pods as quotas let; how many these are, and what refuses the next one."""
        needed = [entry.object for entry in plan.entries]
        needed.append(replace(owner.whole, namespace=owner.namespace or "default"))
        unmade = (self._refused.get(each, "") for each in needed)
        unset = quotas.find_unset(owner.namespace, plan.spec)
        why = next(filter(None, unmade), f"a pod is refused, for {unset}" if unset else "")
        if why:
            return (0, why) if wanted else (0, "")
        number = min(wanted, quotas.room(owner.namespace, sum((use for _, use in plan.made), Use())))
        for _, use in plan.made:
            quotas.charge(owner.namespace, Use({key: amount * number for key, amount in use.items()}))
        for what, use in plan.made if number < wanted else ():
            refusal = quotas.refusal(owner.namespace, use)
            if refusal:
                return number, f"{what} is refused, for {refusal}"
            quotas.charge(owner.namespace, use)
        return number, ""


def find_cut(workloads: Sequence[Workload], numbers: Iterable[int]) -> dict[Gang, int]:
    """The gangs of which so few pods are there that they do nothing, with how many they need.

    Args:
        workloads: All of them, with the pods that are asked for.
        numbers: How many pods of each are there.
    """
    asked, there = Counter[Gang](), Counter[Gang]()
    for each, number in zip(workloads, numbers, strict=True):
        if each.gang is not None:
            asked[each.gang] += each.replicas or 0
            there[each.gang] += number
    needed = {gang: gang.least or asked[gang] for gang in asked if asked[gang]}
    return {gang: least for gang, least in needed.items() if there[gang] < least}


def find_workload(objects: ProgramObjects, owner: ObjectRef) -> Workload | None:
    """The workload of an object, if its pods use devices."""
    for each in find_workloads(objects)[0]:
        same = (each.owner.kind, each.owner.name) == (owner.kind, owner.name)
        if (
            same
            and (not owner.part or each.owner.part == owner.part)
            and (each.owner.namespace or "default") == (owner.namespace or "default")
        ):
            return each
    return None


def find_refusal(
    question: Question,
    manifests: Sequence[Mapping[str, Any]],
    owner: ObjectRef,
    taken: Taken,
    release: Release,
    kinds: WorkloadKinds,
) -> str:
    """Returns the refusal of a quota for pods of a workload with the claims of a question; empty where all are made, or it is not known."""
    if not any(each.get("kind") == "ResourceQuota" for each in (*manifests, *taken.policies)):
        return ""
    asked = {each.name: each for each in question.claims}
    fleet = Fleet(name="", classes=tuple(question.cluster.classes.values()))
    taken = replace(taken, templates=tuple(_with_claim(each, asked) for each in taken.templates))
    program = open_program(
        [_with_claim(each, asked) for each in manifests], fleet, taken, release, kinds=kinds
    )
    workload = find_workload(program.objects, owner)
    if workload is None or isinstance(workload.plan, Undecided):
        return ""
    wanted = len(question.eligible) if workload.replicas is None else workload.replicas
    most, why = ObjectMakers(program, taken.made).count_alone(workload.owner, workload.plan, wanted)
    return show_refusal(most, wanted, why) if most < wanted else ""


def _with_claim(manifest: Mapping[str, Any], asked: Mapping[str, AskedClaim]) -> Mapping[str, Any]:
    """The object with the spec that its claim has in a question."""
    claim = asked.get(str(ref_of(manifest)))
    if claim is None:
        return manifest
    spec: Mapping[str, Any] = claim.claim.spec.to_manifest()
    if claim.path == "spec.spec":
        spec = {**mapping(manifest.get("spec")), "spec": spec}
    return {**manifest, "apiVersion": claim.claim.api_version, "spec": spec}


def show_refusal(number: int, wanted: int, refusal: str) -> str:
    """`3 of 4 pods are made: a pod is refused, for ResourceQuota ml/team allows 3 of pods, ...`."""
    return (
        f"{number:,} of {count_of(wanted, 'pod')} {'is' if 1 in (number, wanted) else 'are'} made: {refusal}"
    )


@dataclass(frozen=True, slots=True)
class OpenProgram:
    """A program on a fleet, of which nothing is placed yet.

    Args:
        objects: Of the program.
        workloads: What is placed, with the pods that each needs beside it, or with what of its affinity is left out.
        bystanders: Workloads without claims that some node lets in, or would if it were not cordoned, or of which that is
            not known; and pods of others that are evicted.
        left_out: The other workloads without claims.
        free: The fleet without what is taken of it.
        notes: What of the program is not placed, and what else is to be known.
        unplaced: The objects that use claims, as far as is known, and make pods that are not placed here.
    """

    objects: ProgramObjects
    workloads: Sequence[Workload]
    bystanders: Sequence[Workload]
    left_out: Sequence[Workload]
    free: FreeFleet
    notes: Sequence[str]
    unplaced: Sequence[str]

    @property
    def arriving(self) -> tuple[Workload, ...]:
        """All workloads whose pods go to nodes of the fleet."""
        return *self.workloads, *self.bystanders


def open_program(
    manifests: Sequence[Mapping[str, Any]],
    fleet: Fleet,
    taken: Taken,
    release: Release | None,
    *,
    claim: ObjectRef | None = None,
    is_late: Callable[[], bool] | None = None,
    kinds: WorkloadKinds | None = None,
    bystanders_alone: bool = False,
) -> OpenProgram:
    """Read what a program asks for, and open the fleet for it.

    Args:
        manifests: The objects of the program.
        fleet: Where to.
        taken: What is not free of it.
        release: Whose server stores the objects and whose scheduler allocates; None for the newest.
        claim: Place a pod with this claim or claim template alone; None takes all workloads.
        is_late: Asked during searches; once true, what is not answered by then is not decided.
        kinds: Kinds of objects that make pods; None for those that the catalogue knows.
        bystanders_alone: Whether workloads without claims are placed where there are no others too.
    """
    objects = ProgramObjects(manifests, fleet.classes, release or newest_release(), taken, kinds)
    workloads, notes, unplaced = (
        find_workloads(objects) if claim is None else ([plan_claim(objects, claim)], [], [])
    )
    cluster = Cluster(fleet, objects.release, is_late, objects=objects.policies)
    evicted = read_evicted(objects, taken) if claim is None else []
    asks = workloads or evicted or bystanders_alone
    others = [*evicted, *(find_bystanders(objects) if asks and claim is None else ())]
    shapes, aside = (
        {each.owner: each.plan.shape for each in found if isinstance(each.plan, PodPlan)}
        for found in (workloads, others)
    )
    keeps_off = any(shape.apart for shape in (*shapes.values(), *aside.values()))
    free = FreeFleet(cluster, taken, objects.namespaces, keeps_off=keeps_off)
    running = None if taken.pods is None else free.running
    beside: list[Workload] = []
    left_out: list[Workload] = []
    notes += taken.notes if claim is None else ()
    notes += [
        f"ResourceClaim {namespace}/{name} is allocated, so pods that use it go where it can be used"
        for namespace, name in sorted(objects.joined)
        if value_at(objects.held[namespace, name], "status", "allocation")
    ]
    for number, each in enumerate(others):
        if number >= len(evicted) and isinstance(each.plan, PodPlan) and not _is_let_in(free, each.plan):
            left_out.append(each)
            notes.append(
                f"{each.owner} is left out: it uses no devices, and no node of {fleet.name} lets its pods in"
            )
        else:
            beside.append(_settle(each, {**shapes, **aside}, {}, running, objects.namespaces))
    # Pods of bystanders are there for those that want to be near them; of what is left out there are none.
    absent = {each.owner: aside.pop(each.owner) for each in left_out if each.owner in aside}
    there = {**shapes, **aside}
    settled = [_settle(each, there, absent, running, objects.namespaces) for each in workloads]
    return OpenProgram(objects, settled, beside, left_out, free, notes, unplaced)


def _is_let_in(free: FreeFleet, plan: PodPlan) -> bool:
    """A node lets the pods in, or would if it were not cordoned."""
    return any(
        not refusal or (node.unschedulable and not plan.filter.refusal(replace(node, unschedulable=False)))
        for refusal, node in zip(free.refusals(plan), free.cluster.nodes, strict=True)
    )


def in_order(workloads: Sequence[Workload]) -> list[int]:
    """The numbers of the workloads so that each comes behind those that it needs beside it, else as they are."""
    numbers = {each.owner: number for number, each in enumerate(workloads)}
    placed: dict[int, None] = {}

    def visit(number: int, path: frozenset[int]) -> None:
        for owner in workloads[number].affinity_to:
            if owner in numbers and numbers[owner] not in path:
                visit(numbers[owner], path | {number})
        placed.setdefault(number)

    for number in range(len(workloads)):
        visit(number, frozenset((number,)))
    return list(placed)


def plan_alone(workload: Workload, plan: PodPlan) -> PodPlan:
    """The plan on the otherwise free fleet, where pods that it wants to be near to are not there yet."""
    return without_affinity(plan) if workload.affinity_to else plan


def without_affinity(plan: PodPlan) -> PodPlan:
    """The plan of pods that go anywhere as far as required affinity is concerned."""
    shape = plan.shape
    return replace(plan, shape=replace(shape, near=(), key=json.dumps(["not near", shape.key])))


def without_absent(workloads: Sequence[Workload]) -> list[Workload]:
    """The workloads, those without required affinity of which all that it names are others than these."""
    owners = {each.owner for each in workloads}
    return [
        replace(each, plan=plan_alone(each, each.plan), affinity_to=())
        if isinstance(each.plan, PodPlan) and owners.isdisjoint(each.affinity_to)
        else each
        for each in workloads
    ]


def _settle(
    workload: Workload,
    shapes: Mapping[ObjectRef, PodShape],
    others: Mapping[ObjectRef, PodShape],
    running: PlacedPods | None,
    namespaces: Namespaces,
) -> Workload:
    plan = workload.plan
    if isinstance(plan, Undecided) or not plan.shape.near:
        return workload

    def names(shape: PodShape) -> bool:
        return all(term.matches(shape, namespaces) for term in plan.shape.near)

    if names(plan.shape) or (running is not None and running.has_near(plan.shape)):
        return workload
    affinity_to = tuple(owner for owner, shape in shapes.items() if names(shape))
    if affinity_to:
        return replace(workload, affinity_to=affinity_to)
    aside = [str(owner) for owner, shape in others.items() if names(shape)]
    if aside:
        return _leave_out(workload, plan, f"near pods of {aside[0]}, which are not placed")
    if running is None:
        return _leave_out(workload, plan, "near pods that are not in this input")
    return workload


def _leave_out(workload: Workload, plan: PodPlan, why: str) -> Workload:
    found = {*workload.unmodelled, f"affinity.podAffinity ({why})"}
    return replace(workload, plan=without_affinity(plan), unmodelled=tuple(sorted(found)))


@dataclass(frozen=True, slots=True)
class JointPlacement:
    """Where all pods went.

    Args:
        pods: Per workload, as far as there was room; nothing for one that is not decided.
        in_use: What is in use then.
        order: The same as an order of arrival, with the pods that found no room.
    """

    pods: Sequence[tuple[NodePlacement, ...]]
    in_use: InUse
    order: Order


def place_together(free: FreeFleet, workloads: Sequence[Workload]) -> JointPlacement:
    """Place the pods of all workloads, in order; those whose affinity names others come behind these.

    Objects that need all of their pods get room for all, or for none; the order is that of single pods, as the default
    scheduler takes them.
    """
    first = placement = _place_once(free, workloads)
    left = list(workloads)
    while True:
        short = next(iter(find_cut(left, map(len, placement.pods))), None)
        if short is None:
            return replace(placement, order=first.order)
        left = [replace(each, replicas=0) if each.gang == short else each for each in left]
        placement = _place_once(free, left)


def _place_once(free: FreeFleet, workloads: Sequence[Workload]) -> JointPlacement:
    fit = FirstFit(free)
    placed: dict[int, tuple[NodePlacement, ...]] = {}
    left: list[tuple[ObjectRef, int]] = []
    for number in in_order(workloads):
        each, plan = workloads[number], workloads[number].plan
        if isinstance(plan, Undecided) or (
            plan.uses_devices and not free.answer(plan_alone(each, plan)).candidates
        ):
            placed[number] = ()
        else:
            placed[number] = tuple(_place(fit, plan, each.replicas))
        if isinstance(plan, PodPlan):
            left.append((each.owner, free.count_wanted(each) - len(placed[number])))
    arrived = ((workloads[number].owner, pod.node) for number, pods in placed.items() for pod in pods)
    order = Order.of(arrived, left)
    return JointPlacement([placed[number] for number in range(len(workloads))], fit.state.in_use, order)


def _place(fit: FirstFit, plan: PodPlan, replicas: int | None) -> Iterator[NodePlacement]:
    """Place pods of one workload until one finds no node; without a number, one on every node."""
    if replicas is None:
        yield from (pod.placement for pod in fit.place_on_each(plan))
        return
    for _ in range(replicas):
        pod = fit.place(plan)
        if pod is None:
            return
        yield pod.placement


def count_daemons(free: FreeFleet, plan: PodPlan) -> Capacity:
    """How many of the nodes that a DaemonSet goes to take its pod on the otherwise free fleet."""
    placed = sum(1 for _ in FirstFit(free).place_on_each(plan)) if free.answer(plan).candidates else 0
    return Capacity(placed, placed)
