"""Gathers the input of `explain` from a live cluster, from files or from a snapshot.

A live cluster is read once, with whatever rights there are. Files are a program or manifests on a fleet, or the
objects of a snapshot.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from dra_infra.catalog.fleet_files import gather_fleet
from dra_infra.catalog.snapshots import Snapshot
from dra_infra.catalog.workload_kinds import load_workload_kinds, workload_kinds
from dra_infra.cli.printing import print_not_seen, say
from dra_infra.cli.settings import find_fleet, read_program, read_snapshot
from dra_infra.client.kinds import (
    CLAIMS,
    CLASSES,
    DAEMON_SETS,
    EVENTS,
    NAMESPACES,
    NODES,
    PODS,
    SLICES,
    SNAPSHOT,
    TAINT_RULES,
    TEMPLATES,
    Kind,
)
from dra_infra.client.objects import text
from dra_infra.client.refusals import nothing_seen
from dra_infra.cluster.evidence import read_gates
from dra_infra.cluster.pending import Scene, ask_running, find_amounts, find_holders, find_placed
from dra_infra.cluster.reading import Listing, Reader, open_reader
from dra_infra.errors import FleetError, Problem, ProgramError
from dra_infra.explanation.asking import Asking, ClusterContext, find_subject, read_classes
from dra_infra.explanation.question import Question
from dra_infra.kubernetes.api.gates import GATES, SUPPORTED_MINORS, Release
from dra_infra.kubernetes.api.manifests import mapping
from dra_infra.kubernetes.api.metadata import name_kind, ref_of
from dra_infra.kubernetes.api.resource_claim import CLAIM_KINDS
from dra_infra.kubernetes.scheduler.fleet import Fleet, Node, with_taint_rules
from dra_infra.placement.demand import Undecided
from dra_infra.placement.growth import find_growth
from dra_infra.placement.joint import find_refusal, find_workload
from dra_infra.placement.objects import ProgramObjects
from dra_infra.placement.placement import Growth, JointVerdict, Reason
from dra_infra.placement.scheduling import ORDERS_LEFT, place
from dra_infra.placement.workloads import plan_claim
from dra_infra.program_objects import ProgramObject
from dra_infra.review.running import Running, key_of, owners_of
from dra_infra.sources.questions import ask_program
from dra_infra.target import ClusterTarget, check_target

Manifest = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """The question, the cluster or fleet that it is asked of, what could not be seen, and what placement says of a program.

    That is the joint verdict on all its workloads, by how much node pools have to grow for them, and that the one that is
    asked about fits, in words, or why that is not decided; and what quotas say of its pods with the claims of a question.
    """

    asking: Asking
    where: str
    not_seen: tuple[Problem, ...] = ()
    joint: JointVerdict | None = None
    growth: Growth | None = None
    undecided: tuple[Reason, ...] = ()
    fits: str = ""
    refusal: Callable[[Question], str] = lambda _: ""
    made: Mapping[str, ProgramObject] = field(default_factory=dict)
    """Lists what components of a program make, by kind, namespace and name."""


def read_offline(
    name: str,
    path: Path | None,
    *,
    namespace: str | None,
    fleet: str | None,
    snapshot: Path | None,
    kubernetes: str | None,
    gates: Mapping[str, bool],
    stack: str | None,
    config: Mapping[str, str],
    kinds: Path | None,
    timeout: float,
) -> Found:
    """The question about an object of files.

    Raises:
        ProblemsError: When files cannot be read, no fleet is named, or no object has the name.
    """
    cluster = read_snapshot(snapshot) if snapshot else None
    if cluster is not None and path is None:
        return _of_snapshot(name, namespace, cluster, release_of(kubernetes, gates))
    if kubernetes:
        config = {**config, "dra-infra:kubernetes": release_of(kubernetes, gates).minor}
    project, program = read_program(path or Path(), stack=stack, config=config)
    if not program.objects and program.problems:
        raise ProgramError(program.problems)
    print_not_seen(program.not_seen)
    manifests, problems = [each.manifest for each in program.objects], program.problems
    chosen = cluster.fleet if cluster else find_fleet(fleet, project, stack=stack, config=config)
    chosen = chosen.with_classes(program.stand_in_classes)
    release = release_of(program.kubernetes, gates)
    running = cluster.objects if cluster else ()
    known = load_workload_kinds(kinds) if kinds else workload_kinds()
    try:
        subject, manifest = find_subject(
            name, namespace, manifests, [name_kind(kind, group) for group, kind in known.kinds]
        )
    except ProgramError as error:
        # What has a problem of its own makes no object, and may be what is asked about.
        raise ProgramError([*problems, *error.problems]) from None
    taken = Running.of(cluster, program).without_evicted(manifests, chosen, release)
    for note in taken.notes:
        say(note)
    own = {key_of(ref_of(each)) for each in manifests} | taken.gone
    by_key = {key_of(ref_of(each)): each for each in running}
    scene = _scene(
        [each for each in running if not own.intersection(owners_of(key_of(ref_of(each)), by_key))]
    )
    classes, malformed = read_classes([*running, *manifests])
    slices, untold = with_taint_rules(chosen.slices, [*running, *manifests], release)
    around = ClusterContext(
        fleet=replace(chosen, slices=tuple(slices)),
        release=release,
        classes=classes,
        holders=find_holders(scene),
        taken=find_amounts(scene),
        placed=find_placed(scene, cluster.fleet.nodes, cluster.objects) if cluster else None,
    )
    objects = ProgramObjects(manifests, chosen.classes, release, taken, known)
    asking = ask_program(
        manifest, around, manifests, running, part=subject.part, kinds=known, held=objects.held
    )
    workload = find_workload(objects, subject)
    asked = plan_claim(objects, subject) if subject.kind in CLAIM_KINDS else workload
    joint, growth, alone = None, None, None
    if workload:
        end = time.monotonic() + timeout

        def is_late() -> bool:
            return time.monotonic() > end

        placed = place(manifests, chosen, taken=taken, release=release, is_late=is_late, kinds=known)
        growth = find_growth(manifests, placed, taken=taken, release=release, is_late=is_late, kinds=known)
        joint = placed.joint
        alone = next((each for each in placed.workloads if each.owner == workload.owner), None)
        refused = [
            Problem(path=asking.subject, code=reason.code, message=reason.message)
            for reason in (alone.reasons if alone else ())
            if reason.code == "quota-refuses"
        ]
        asking = replace(asking, causes=(*asking.causes, *refused))
    undecided = asked.plan.reasons if asked and isinstance(asked.plan, Undecided) else ()
    if alone and alone.verdict == "not-decided":
        undecided = undecided or tuple(each for each in alone.reasons if each.code == ORDERS_LEFT)
    fits = ""
    if alone and alone.verdict == "fits":
        about_all = (each.message for each in alone.reasons if not each.nodes)
        fits = next(
            about_all, "its pods fit on other nodes than the first that take them, or in another order"
        )
    return Found(
        asking=asking,
        where=chosen.name,
        not_seen=(*problems, *malformed, *untold),
        joint=joint,
        growth=growth,
        undecided=undecided,
        fits=fits,
        refusal=lambda question: find_refusal(question, manifests, subject, taken, release, known),
        made={str(ref_of(each.manifest)): each for each in program.objects if each.component},
    )


def release_of(kubernetes: str | None, gates: Mapping[str, bool]) -> Release:
    """The release that is asked about; the newest where none is named.

    Raises:
        InvalidSpecError: For one that is not known, or gates that it does not have.
    """
    return ClusterTarget(kubernetes=kubernetes or SUPPORTED_MINORS[-1], gates=dict(gates)).releases[0]


def _of_snapshot(name: str, namespace: str | None, cluster: Snapshot, release: Release) -> Found:
    scene = _scene(cluster.objects)
    _, manifest = find_subject(name, namespace, scene.objects)
    slices, problems = with_taint_rules(cluster.fleet.slices, cluster.objects, release)
    around = ClusterContext(
        fleet=replace(cluster.fleet, slices=tuple(slices)),
        release=release,
        holders=find_holders(scene),
        taken=find_amounts(scene),
        placed=find_placed(scene, cluster.fleet.nodes, cluster.objects),
    )
    return Found(
        asking=ask_running(manifest, around, scene), where=cluster.fleet.name, not_seen=tuple(problems)
    )


def _scene(objects: Sequence[Manifest]) -> Scene:
    kinds: dict[str, list[Manifest]] = {}
    for each in objects:
        kinds.setdefault(str(each.get("kind")), []).append(each)
    owners = ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "CronJob")
    return Scene(
        pods=kinds.get("Pod", ()),
        claims=kinds.get("ResourceClaim", ()),
        templates=kinds.get("ResourceClaimTemplate", ()),
        owners=[each for kind in owners for each in kinds.get(kind, ())],
        saw_claims="ResourceClaim" in kinds,
        saw_templates="ResourceClaimTemplate" in kinds,
    )


_OWNERS: Final = tuple(
    each for each in SNAPSHOT if each.group in ("apps", "batch") and each is not DAEMON_SETS
)
_KINDS: Final = (
    NODES,
    SLICES,
    CLASSES,
    CLAIMS,
    TEMPLATES,
    PODS,
    EVENTS,
    DAEMON_SETS,
    *_OWNERS,
    NAMESPACES,
    TAINT_RULES,
)
_WARNINGS: Final = "type=Warning"
_CLUSTER: Final = "the cluster"


def read_live(
    name: str,
    namespace: str | None,
    kubeconfig: Path | None,
    context: str | None,
    *,
    kubernetes: str | None,
    gates: Mapping[str, bool],
    tell: Callable[[str], None],
) -> Found:
    """The question about an object of a cluster.

    Raises:
        ClusterError: When nothing can be read.
        ProgramError: `subject-not-known`.
    """
    reader = open_reader(kubeconfig, context, tell=tell)
    release, problems = _release(reader, kubernetes, gates)
    listings = {kind: _list(reader, kind, namespace) for kind in _KINDS}
    problems += [
        problem
        for each in listings.values()
        for problem in each.problems
        if each.kind not in (NAMESPACES, TAINT_RULES)
    ]
    if not any(each.is_seen for each in listings.values()):
        raise nothing_seen(problems)
    items = {kind: listing.items for kind, listing in listings.items()}
    scene = Scene(
        pods=items[PODS],
        claims=items[CLAIMS],
        templates=items[TEMPLATES],
        events=items[EVENTS],
        owners=[each for kind in (DAEMON_SETS, *_OWNERS) for each in items[kind]],
        saw_claims=listings[CLAIMS].is_seen,
        saw_templates=listings[TEMPLATES].is_seen,
    )
    _, manifest = find_subject(name, namespace, scene.objects)
    fleet, more = _fleet(listings)
    slices, untold = with_taint_rules(fleet.slices, items[TAINT_RULES], release)
    around = ClusterContext(
        fleet=replace(fleet, slices=tuple(slices)),
        release=release,
        holders=find_holders(scene),
        taken=find_amounts(scene),
        placed=find_placed(scene, fleet.nodes, items[NAMESPACES]) if listings[PODS].is_seen else None,
        is_blind=not listings[NODES].is_seen,
    )
    return Found(
        asking=ask_running(manifest, around, scene),
        where=reader.session.account.server,
        not_seen=tuple(dict.fromkeys((*problems, *more, *untold))),
    )


def _list(reader: Reader, kind: Kind, namespace: str | None) -> Listing:
    selector = _WARNINGS if kind is EVENTS else ""
    found = reader.list(kind, field_selector=selector)
    if found.is_seen or not kind.namespaced or not namespace:
        return found
    # With rights in the one namespace only, its own objects are better than none.
    inside = Reader(reader.session, namespaces=[namespace]).list(kind, field_selector=selector)
    if not inside.is_seen:
        return found
    problems = (*found.problems, *inside.problems)
    return Listing(
        kind=kind,
        items=inside.items,
        version=inside.version,
        resource_versions=inside.resource_versions,
        problems=problems,
    )


def _release(
    reader: Reader, kubernetes: str | None, gates: Mapping[str, bool]
) -> tuple[Release, list[Problem]]:
    """The minor of the API server with its gates, over which the user's go."""
    status, version = reader.session.get_json("/version")
    told = text(mapping(version).get("gitVersion")) if status == 200 else ""
    found = re.match(r"v?(\d+\.\d+)\.", told)
    minor = kubernetes or (found[1] if found else "")
    problems: list[Problem] = []
    if minor not in SUPPORTED_MINORS and not kubernetes:
        newest = SUPPORTED_MINORS[-1]
        problems.append(
            Problem(
                path="/version",
                code="unknown-kubernetes",
                message=f"the cluster has version {told or 'unknown'}; answered is for {newest}",
                hint="name the nearest one: --kubernetes MINOR",
                severity="warning",
            )
        )
        minor = newest
    served = {} if kubernetes else _usable(read_gates(reader.session), minor)
    target = ClusterTarget(kubernetes=minor, gates={**served, **gates})
    if served and check_target(target):
        return release_of(minor, gates), problems
    return release_of(minor, {**served, **gates}), problems


def _usable(gates: Mapping[str, bool], minor: str) -> dict[str, bool]:
    return {
        name: value
        for name, value in gates.items()
        if minor in GATES.get(name, {})
        and not (GATES[name][minor].locked and GATES[name][minor].default != value)
    }


def _fleet(listings: Mapping[Kind, Listing]) -> tuple[Fleet, list[Problem]]:
    """The fleet to place on; a node that may not be seen is there by the name that its slices tell."""
    manifests: list[Mapping[str, Any]] = [
        each for kind in (NODES, SLICES, CLASSES) for each in listings[kind].items
    ]
    fleet, malformed = _gather(manifests)
    if listings[NODES].is_seen:
        return fleet, malformed
    names = sorted({each.spec.node_name for each in fleet.slices if each.spec.node_name})
    blind = Fleet(
        name=fleet.name, nodes=tuple(map(_stand_in, names)), slices=fleet.slices, classes=fleet.classes
    )
    return blind, [*malformed, *_blindness(names)]


def _gather(manifests: list[Mapping[str, Any]]) -> tuple[Fleet, list[Problem]]:
    """The fleet of what can be read; the rest is told."""
    try:
        return gather_fleet(manifests, _CLUSTER), []
    except FleetError:
        problems: list[Problem] = []
        readable = []
        for each in manifests:
            try:
                gather_fleet([each], _CLUSTER)
                readable.append(each)
            except FleetError as error:
                problems += error.problems
        return gather_fleet(readable, _CLUSTER), [replace(each, severity="warning") for each in problems]


def _stand_in(name: str) -> Node:
    return Node(name=name, labels={"kubernetes.io/hostname": name})


def _blindness(names: Iterable[str]) -> Iterator[Problem]:
    yield Problem(
        path="nodes",
        code="cluster-forbidden",
        message=f"nodes may not be seen, so {len(list(names))} that have slices are taken as they are: their labels, taints, cpu "
        "and memory are not looked at",
        hint=f"grant it in a ClusterRole: {NODES.rule}",
        severity="warning",
    )
