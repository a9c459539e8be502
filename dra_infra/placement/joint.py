"""Joint placement of all workloads, greedily: in the order given, pod by pod, on the first node that takes each.

The real scheduler takes pods in the order in which they come and picks the best-scored node, ties at random. That
this one order works proves that all fit; that it does not proves nothing.

Quotas of its namespace limit how many pods of a workload come to be, with their claims.

Required affinity to pods of other workloads decides who has to be there first, and what cannot be known. A pod that
wants to be near pods which are nowhere yet waits for them. So the joint placement puts the workloads that it names
first; alone, on the otherwise free fleet, it is not held to them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from dra_infra.explanation.question import AskedClaim, Question
from dra_infra.fleet import Fleet
from dra_infra.kubernetes.api import Gang, ObjectRef, mapping
from dra_infra.kubernetes.apiserver import Quotas, Use, count_object
from dra_infra.output.wording import count_of
from dra_infra.placement.cluster_state import InUse
from dra_infra.placement.demand import PodPlan, Undecided, Workload
from dra_infra.placement.free_fleet import Capacity, FirstFit, FreeFleet
from dra_infra.placement.objects import ProgramObjects
from dra_infra.placement.open_programs import OpenProgram, open_program, without_affinity
from dra_infra.placement.placement import NodePlacement, Order
from dra_infra.placement.question import PlacementQuestion
from dra_infra.placement.workloads import find_workloads

_BETWEEN: Final = {
    "Deployment": {"apiVersion": "apps/v1", "kind": "ReplicaSet"},
    "CronJob": {"apiVersion": "batch/v1", "kind": "Job"},
}
"""The object that a controller makes between an object and its pods, by kind."""


class ObjectMakers:
    """Makes the pods and claims of a program, one after the other, as far as quotas let it.

    Args:
        program: The program, on its fleet.
    """

    def __init__(self, program: OpenProgram) -> None:
        objects = program.objects
        self.program = program
        self._quotas = Quotas(objects.policies, objects.made)
        self._refused: dict[ObjectRef, str] = {}
        # Pods count with those that controllers make.
        for manifest in (each for each in objects.manifests if self._quotas and each.get("kind") != "Pod"):
            ref = ObjectRef.of(manifest).stored
            is_claim = ref.kind == "ResourceClaim"
            use = objects.count_claim(manifest.get("spec")) if is_claim else count_object(manifest)
            counted = [(str(ref), use)]
            if between := _BETWEEN.get(ref.kind):
                counted.append((f"the {between['kind']} of {ref}", count_object(between)))
            for what, use in counted:
                if refusal := self._quotas.refusal(ref.namespace, use):
                    self._refused[ref] = f"{what} is refused, for {refusal}"
                    break
                self._quotas.charge(ref.namespace, use)

    def count_alone(self, owner: ObjectRef, plan: PodPlan, wanted: int) -> tuple[int, str]:
        """How many of the wanted pods are made while the program makes no others, and what refuses the next one."""
        if not self._quotas:
            return wanted, ""
        return self._make(self._quotas.copy(), owner, plan, wanted)

    def refusal_beside(self, others: Sequence[Workload], owner: ObjectRef, plan: PodPlan) -> str:
        """Returns the refusal of a pod while all pods of the others are there; empty where it is made."""
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
        quotas = self._quotas.copy()
        asked = [*self.program.left_out, *workloads]
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
        elsewhere = Counter[Gang | None]()
        number = len(self.program.left_out)
        for each in made[:number]:
            elsewhere[each.gang] += each.replicas or 0
        made = [replace(each, gang=each.gang and each.gang.beside(elsewhere[each.gang])) for each in made]
        return made[number:], refused

    def _make(self, quotas: Quotas, owner: ObjectRef, plan: PodPlan, wanted: int) -> tuple[int, str]:
        """Make as many of the wanted pods as quotas let; how many these are, and what refuses the next one."""
        needed = [entry.object for entry in plan.entries]
        needed.append(owner.whole.stored)
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
        if each.owner.whole.stored == owner.whole.stored and owner.part in ("", each.owner.part):
            return each
    return None


def find_refusal(asked: Question, owner: ObjectRef, placed: PlacementQuestion) -> str:
    """Return the refusal of a quota for pods of a workload; empty if all are made, or if it is not known.

    Args:
        asked: The question about the workload, with the claims that it is asked with.
        owner: The workload.
        placed: The program that it belongs to.
    """
    taken = placed.taken
    if not any(each.get("kind") == "ResourceQuota" for each in (*placed.manifests, *taken.policies)):
        return ""
    claims = {each.name: each for each in asked.claims}
    program = open_program(
        replace(
            placed,
            manifests=[_with_claim(each, claims) for each in placed.manifests],
            fleet=Fleet(name="", classes=tuple(asked.cluster.classes.values())),
            taken=replace(taken, templates=tuple(_with_claim(each, claims) for each in taken.templates)),
        )
    )
    workload = find_workload(program.objects, owner)
    if workload is None or isinstance(workload.plan, Undecided):
        return ""
    wanted = len(asked.eligible) if workload.replicas is None else workload.replicas
    most, why = ObjectMakers(program).count_alone(workload.owner, workload.plan, wanted)
    return show_refusal(most, wanted, why) if most < wanted else ""


def _with_claim(manifest: Mapping[str, Any], asked: Mapping[str, AskedClaim]) -> Mapping[str, Any]:
    """The object with the spec that its claim has in a question."""
    claim = asked.get(str(ObjectRef.of(manifest)))
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


def without_absent(workloads: Sequence[Workload]) -> list[Workload]:
    """The workloads, those without required affinity of which all that it names are others than these."""
    owners = {each.owner for each in workloads}
    return [
        replace(each, plan=plan_alone(each, each.plan), affinity_to=())
        if isinstance(each.plan, PodPlan) and owners.isdisjoint(each.affinity_to)
        else each
        for each in workloads
    ]


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
        each = workloads[number]
        plan = workloads[number].plan
        if isinstance(plan, Undecided) or (plan.uses_devices and not _has_nodes(free, each, plan)):
            placed[number] = ()
        else:
            placed[number] = tuple(_place(fit, plan, each.replicas))
        if isinstance(plan, PodPlan):
            left.append((each.owner, free.count_wanted(each) - len(placed[number])))
    arrived = ((workloads[number].owner, pod.node) for number, pods in placed.items() for pod in pods)
    order = Order.of(arrived, left)
    return JointPlacement([placed[number] for number in range(len(workloads))], fit.state.in_use, order)


def _has_nodes(free: FreeFleet, workload: Workload, plan: PodPlan) -> bool:
    """True if a node of the otherwise free fleet takes a pod; for a DaemonSet, an error on another node does not count."""
    answer = free.answer(plan_alone(workload, plan))
    return bool(answer.taking if workload.replicas is None else answer.candidates)


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
    placed = sum(1 for _ in FirstFit(free).place_on_each(plan)) if free.answer(plan).taking else 0
    return Capacity(placed, placed)
