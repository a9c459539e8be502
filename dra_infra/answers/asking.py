"""Reads the question of `explain` from a live cluster, from files or from a snapshot.

A live cluster is read once, with whatever rights there are. Files are a program or manifests on a fleet, or the
objects of a snapshot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Unpack

from dra_infra.answers.explaining import SubjectFacts, ask_scene, ask_snapshot
from dra_infra.answers.reading import SceneOptions, read_scene
from dra_infra.answers.settings import read_snapshot
from dra_infra.catalog.fleet_files import gather_fleet
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
from dra_infra.client.kubeconfig import REQUEST_TIMEOUT
from dra_infra.client.refusals import nothing_seen
from dra_infra.cluster.evidence import read_gates, read_served
from dra_infra.cluster.pending import SeenObjects, ask_running, find_amounts, find_holders, find_placed
from dra_infra.cluster.reading import Listing, Reader, open_reader
from dra_infra.cluster.server_version import read_server_version
from dra_infra.errors import FleetError, Problem, ProblemsError, ProgramError
from dra_infra.explanation.asking import ClusterContext, find_subject
from dra_infra.fleet import Fleet
from dra_infra.kubernetes.api import GATES, SUPPORTED_MINORS, Node, Release
from dra_infra.kubernetes.scheduler import with_taint_rules
from dra_infra.program.project import FLEET_SETTING, load_project
from dra_infra.program.project_files import project_file
from dra_infra.provenance import Provenance
from dra_infra.target import NEWEST_DRIVER, ClusterTarget, check_target, supported_version


def find_own_project(stack: str | None, config: Mapping[str, str]) -> Path | None:
    """Return the current folder where it is a project that names its fleet, as `simulate` takes it; None elsewhere.

    Args:
        stack: Stack whose configuration is read.
        config: Settings over those of the stack file.
    """
    here = Path()
    if not project_file(here):
        return None
    try:
        project = load_project(here, stack, config)
    except ProblemsError:
        return None
    return here if project.config.get(FLEET_SETTING) else None


def ask_files(
    name: str,
    path: Path | None,
    *,
    namespace: str | None = None,
    timeout: float = 20.0,
    **options: Unpack[SceneOptions],
) -> SubjectFacts:
    """Return the question about an object of files.

    Args:
        name: The object: `pod/x`, `deployment/x`, `claim/x`, or `x` where it is the only one.
        path: A program or manifests; None for what runs in a snapshot, or the current folder.
        namespace: Namespace of the object.
        timeout: Seconds for the placement.
        options: Hardware, release and configuration.

    Raises:
        ProblemsError: When files cannot be read, no fleet is named, or no object has the name.
    """
    snapshot = options.get("snapshot")
    if snapshot is not None and path is None:
        cluster = read_snapshot(snapshot, driver=options.get("driver") or NEWEST_DRIVER)
        version = options.get("kubernetes") or supported_version(cluster.server) or None
        release = release_of(version, options.get("gates", {}))
        return ask_snapshot(cluster, name, namespace=namespace, release=release)
    scene = read_scene(path or Path(), **options)
    if not scene.program.objects and scene.program.problems:
        raise ProgramError(scene.program.problems)
    return ask_scene(scene, name, namespace=namespace, timeout=timeout)


def release_of(kubernetes: str | None, gates: Mapping[str, bool]) -> Release:
    """The release that is asked about; the newest where none is named.

    Raises:
        InvalidSpecError: For one that is not known, or gates that it does not have.
    """
    return ClusterTarget(kubernetes=kubernetes or SUPPORTED_MINORS[-1], gates=dict(gates)).releases[0]


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


def ask_cluster(
    name: str,
    *,
    namespace: str | None = None,
    kubeconfig: Path | None = None,
    context: str | None = None,
    request_timeout: float = REQUEST_TIMEOUT,
    kubernetes: str | None = None,
    gates: Mapping[str, bool] = MappingProxyType({}),
    tell: Callable[[str], None] = lambda _: None,
) -> SubjectFacts:
    """Return the question about an object of a live cluster, which is read once.

    Args:
        name: The object: `pod/x`, `deployment/x`, `claim/x`, or `x` where it is the only one.
        namespace: Namespace of the object; None takes any that has one, and that of the context if several have. If not everything may be
            listed, that of the context is read.
        kubeconfig: The kubeconfig; None takes the one that kubectl would take.
        context: Its context; None takes the current one.
        request_timeout: Seconds of silence after which a request is given up.
        kubernetes: Minor to answer for; None takes the API server's.
        gates: Feature gates over those that the API server tells.
        tell: Called with what is being read, for a progress line.

    Raises:
        ClusterError: When nothing can be read.
        ProgramError: `subject-not-known`.
    """
    reader = open_reader(kubeconfig, context, request_timeout=request_timeout, tell=tell)
    release, server, problems = _release(reader, kubernetes, gates)
    home = reader.session.account.namespace
    listings = {kind: _list(reader, kind, namespace or home) for kind in _KINDS}
    problems += [
        problem
        for each in listings.values()
        for problem in each.problems
        if each.kind not in (NAMESPACES, TAINT_RULES)
    ]
    if not any(each.is_seen for each in listings.values()):
        raise nothing_seen(problems)
    items = {kind: listing.items for kind, listing in listings.items()}
    objects = SeenObjects(
        pods=items[PODS],
        claims=items[CLAIMS],
        templates=items[TEMPLATES],
        events=items[EVENTS],
        owners=[each for kind in (DAEMON_SETS, *_OWNERS) for each in items[kind]],
        saw_claims=listings[CLAIMS].is_seen,
        saw_templates=listings[TEMPLATES].is_seen,
    )
    _, manifest = find_subject(name, namespace, objects.objects, home=home)
    fleet, more = _fleet(listings)
    slices, untold = with_taint_rules(fleet.slices, items[TAINT_RULES], release)
    around = ClusterContext(
        fleet=replace(fleet, slices=tuple(slices)),
        release=release,
        holders=find_holders(objects),
        taken=find_amounts(objects),
        placed=find_placed(objects, fleet.nodes, items[NAMESPACES]) if listings[PODS].is_seen else None,
        is_blind=not listings[NODES].is_seen,
        served=read_served(reader.session) or (),
    )
    return SubjectFacts(
        subject_question=ask_running(manifest, around, objects),
        where=reader.session.account.server,
        provenance=Provenance.of([release], placement=release, server=server),
        not_seen=tuple(dict.fromkeys((*problems, *more, *untold))),
    )


def _list(reader: Reader, kind: Kind, namespace: str) -> Listing:
    selector = _WARNINGS if kind is EVENTS else ""
    everywhere = reader.list(kind, field_selector=selector)
    if everywhere.is_seen or not kind.namespaced:
        return everywhere
    # With rights in the one namespace only, its own objects are better than none.
    inside = Reader(reader.session, namespaces=[namespace]).list(kind, field_selector=selector)
    if not inside.is_seen:
        return everywhere
    problems = (*everywhere.problems, *inside.problems)
    return Listing(
        kind=kind,
        items=inside.items,
        version=inside.version,
        resource_versions=inside.resource_versions,
        problems=problems,
    )


def _release(
    reader: Reader, kubernetes: str | None, gates: Mapping[str, bool]
) -> tuple[Release, str, list[Problem]]:
    """The release of the API server with its gates, over which the user's go, and the version that the server reports."""
    git_version = read_server_version(reader.session)
    version = kubernetes or supported_version(git_version)
    problems: list[Problem] = []
    if not version:
        newest = SUPPORTED_MINORS[-1]
        problems.append(
            Problem(
                path="/version",
                code="unknown-kubernetes",
                message=f"the cluster has version {git_version or 'unknown'}; answered is for {newest}",
                hint="name the nearest one: --kubernetes MINOR",
                severity="warning",
            )
        )
        version = newest
    minor = ClusterTarget(kubernetes=version).minor or version
    served = {} if kubernetes else _usable(read_gates(reader.session), minor)
    target = ClusterTarget(kubernetes=version, gates={**served, **gates})
    if served and check_target(target):
        return release_of(version, gates), git_version, problems
    return release_of(version, {**served, **gates}), git_version, problems


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
    """Return the fleet of all readable objects, and a problem for each other one."""
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
