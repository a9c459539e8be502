"""What `explain` is asked about files: a program or manifests on a fleet, or the objects of a snapshot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dra_infra.cli.printing import print_not_seen
from dra_infra.cli.program_source import find_fleet, read_program
from dra_infra.cli.snapshots import read_snapshot
from dra_infra.cluster.pending import ask_running, find_amounts, find_holders, find_placed
from dra_infra.cluster.waiting import Scene
from dra_infra.errors import Problem, ProgramError
from dra_infra.model.snapshot import Snapshot
from dra_infra.model.target import SUPPORTED_MINORS, ClusterTarget, Release
from dra_infra.planning.asking import Asking, Surroundings, read_classes
from dra_infra.planning.asking_program import ask_program
from dra_infra.planning.running import Running, key_of
from dra_infra.planning.subjects import find_subject, ref_of
from dra_infra.simulation.taint_rules import with_taint_rules

Manifest = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """What is asked, where, and what could not be seen."""

    asking: Asking
    where: str
    not_seen: tuple[Problem, ...] = ()


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
    source, program = read_program(path or Path(), stack=stack, config=config)
    if not program.objects and program.problems:
        raise ProgramError(program.problems)
    print_not_seen(program.not_seen)
    manifests, problems = [each.manifest for each in program.objects], program.problems
    chosen = cluster.fleet if cluster else find_fleet(fleet, source, stack=stack, config=config)
    release = release_of(program.kubernetes, gates)
    running = cluster.objects if cluster else ()
    _, manifest = find_subject(name, namespace, manifests)
    own = {key_of(ref_of(each)) for each in manifests}
    index = Running.of(cluster)
    scene = _scene([each for each in running if not own.intersection(index.owners_of(key_of(ref_of(each))))])
    classes, malformed = read_classes([*running, *manifests])
    slices, untold = with_taint_rules(chosen.slices, [*running, *manifests], release)
    around = Surroundings(
        fleet=replace(chosen, slices=tuple(slices)),
        release=release,
        classes=classes,
        holders=find_holders(scene),
        taken=find_amounts(scene),
        placed=find_placed(scene, cluster.fleet.nodes, cluster.objects) if cluster else None,
    )
    return Found(
        asking=ask_program(manifest, around, manifests, running),
        where=chosen.name,
        not_seen=(*problems, *malformed, *untold),
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
    around = Surroundings(
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
