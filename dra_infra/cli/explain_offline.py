"""What `explain` is asked about files: a program or manifests on a fleet, or the objects of a snapshot."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dra_infra.catalog import load_fleet
from dra_infra.cli.printing import print_not_seen
from dra_infra.cli.review_source import Source, find_source
from dra_infra.cli.settings import FLEET_SETTING, choose_fleet
from dra_infra.cli.snapshots import read_snapshot
from dra_infra.cli.sources import SUFFIXES, SourceObject, read_sources
from dra_infra.cluster.pending import ask_running, find_amounts, find_holders, find_placed
from dra_infra.cluster.waiting import Scene
from dra_infra.engine.synth import synth
from dra_infra.errors import FleetError, Problem, ProgramError
from dra_infra.model.fleet import Fleet
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
    manifests, minor, problems = _read(path or Path(), stack, config)
    chosen = cluster.fleet if cluster else _fleet(fleet, path or Path(), kubernetes or minor, stack, config)
    release = release_of(kubernetes or minor, gates)
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


def _read(
    path: Path, stack: str | None, config: Mapping[str, str]
) -> tuple[list[Manifest], str | None, tuple[Problem, ...]]:
    source = _source(path)
    if source.kind == "chart":
        raise ProgramError(
            [
                Problem(
                    path=str(path),
                    code="no-project",
                    message="a chart has no objects before it is rendered",
                    hint=f"helm template {path} > rendered.yaml, and name that file",
                )
            ]
        )
    if source.kind == "program":
        program = synth(source.root, stack=stack, config=config)
        print_not_seen(program.not_seen)
        return [each.manifest for each in program.objects], program.kubernetes, program.problems
    found: list[Manifest] = []
    problems: list[Problem] = []
    for each in read_sources([str(path)], io.BytesIO()):
        if isinstance(each, SourceObject):
            found.append(each.manifest)
        else:
            problems.append(each)
    if not found and problems:
        raise ProgramError(problems)
    minor = config.get("dra-infra:kubernetes")
    return found, minor if minor in SUPPORTED_MINORS else None, tuple(problems)


def _source(path: Path) -> Source:
    """What lies at *path*; a folder of a project that holds manifests and no Python is manifests."""
    is_plain = path.is_dir() and not any(path.glob("*.py")) and not (path / "Pulumi.yaml").exists()
    has_manifests = is_plain and any(each.suffix in SUFFIXES for each in path.iterdir())
    return find_source(path, "manifests" if has_manifests and not (path / "Chart.yaml").exists() else None)


def _fleet(
    fleet: str | None, path: Path, minor: str | None, stack: str | None, config: Mapping[str, str]
) -> Fleet:
    source = _source(path)
    chosen = None
    if source.kind == "program":
        chosen = choose_fleet(fleet, source.root, stack=stack, config=config)
    elif name := fleet or config.get(FLEET_SETTING):
        chosen = load_fleet(name, kubernetes=minor)
    if chosen is None:
        raise FleetError(
            [
                Problem(
                    path="--fleet",
                    code="no-fleet",
                    message="no hardware is named to place on",
                    hint="add --fleet 'hgx-h100 x 4' or --snapshot cluster.yaml; without path, fleet and snapshot the cluster "
                    "of the kubeconfig is asked",
                )
            ]
        )
    return chosen
