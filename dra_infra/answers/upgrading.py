"""The answer of `dra-infra upgrade`: what changes for objects, pods and devices between two releases of Kubernetes.

The other answers are asked twice about the same objects, by the rules of either release, and compared.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, Unpack

from dra_infra.answers.checking import Checked, check
from dra_infra.answers.placing import place_scene
from dra_infra.answers.reading import HardwareOptions, SceneOptions, read_scene
from dra_infra.answers.scene import Scene
from dra_infra.answers.settings import read_snapshot
from dra_infra.catalog.workload_kinds import load_workload_kinds, workload_kinds
from dra_infra.errors import InvalidSpecError, Problem, ProblemsError
from dra_infra.kubernetes.api import (
    GATES,
    SUPPORTED_MINORS,
    ObjectRef,
    Release,
    find_controller,
    is_same_json,
    mapping,
)
from dra_infra.output.wording import count_of, join_words
from dra_infra.placement.running import Running
from dra_infra.program.synth import DEFAULT_TIMEOUT
from dra_infra.program_objects import Program, ProgramObject
from dra_infra.provenance import Provenance
from dra_infra.target import ClusterTarget, check_target
from dra_infra.upgrades.differences import Area, Compared, Difference, NotCompared, Upgrade, in_order
from dra_infra.upgrades.evictions import compare_evictions
from dra_infra.upgrades.objects import (
    ComparedObject,
    compare_fate,
    compare_problems,
    compare_stored_versions,
    describe_stored,
    find_fate,
    find_kinds,
    find_stored_fate,
    is_judged,
)
from dra_infra.upgrades.placements import compare_placements
from dra_infra.upgrades.quotas import compare_quotas
from dra_infra.upgrades.releases import compare_drivers, compare_gates, compare_metrics
from dra_infra.upgrades.selectors import compare_selectors
from dra_infra.upgrades.steps import plan_steps

_NO_HARDWARE: Final = "no hardware is named; add --fleet 'hgx-h100 x 4' or --snapshot cluster.yaml"
_EVERYWHERE: Final = ("DeviceClass", "ResourceSlice")
"""Kinds that every cluster with DRA has objects of."""
_NOT_MADE: Final = frozenset({"Event", "Namespace", "Node"})
"""Kinds of a snapshot that no one applies again."""


class UpgradeOptions(HardwareOptions, total=False):
    """The options of an upgrade: those of a scene, without the release.

    Args:
        prices: A file with the prices of node pools.
        provider: Only the objects of this provider of the program, which is one of its clusters.
    """

    prices: Path | None
    provider: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class UpgradeScenes:
    """Both scenes of an upgrade.

    Args:
        before: The objects on the older release.
        after: The same objects on the newer release.
        written: Feature gates that the older cluster sets itself.
        differences: What differs already between the runs of the program for either release.
        not_compared: What was left out while the scenes were put together.
    """

    before: Scene
    after: Scene
    written: Mapping[str, bool]
    differences: tuple[Difference, ...] = ()
    not_compared: tuple[NotCompared, ...] = ()


def read_upgrade(
    path: Path | str | None,
    *,
    older: str,
    newer: str,
    timeout: float = DEFAULT_TIMEOUT,
    **options: Unpack[UpgradeOptions],
) -> UpgradeScenes:
    """Read the objects of an upgrade for both releases.

    A Pulumi program runs twice in this process, with all rights of the user: once for either release.

    Args:
        path: A Pulumi project, or a folder or file of manifests; None takes the objects of the snapshot.
        older: The release that the cluster has: `1.34`.
        newer: The release that it gets: `1.37`.
        timeout: Seconds that the program may run each time.
        options: Hardware and configuration, as of a scene.

    Raises:
        InvalidSpecError: `upgrade-order` if the newer release is not newer; for a release or gate that there is not.
        FleetError: If a fleet, snapshot or prices cannot be read.
        ProgramError: If there is no program, or it fails for the older release.
    """
    check_order(older, newer)
    gates = options.get("gates", {})
    if path is None:
        return _read_cluster(older, newer, gates, options)
    release_options: SceneOptions = {**options, "kubernetes": older}
    before = read_scene(path, timeout=timeout, needs_fleet=False, **release_options)
    written = before.program.gates
    kept, mistakes = _keep_gates(written, older, newer)
    try:
        release_options = {**options, "kubernetes": newer, "gates": kept}
        after = read_scene(path, timeout=timeout, needs_fleet=False, **release_options)
    except ProblemsError as error:
        unreadable = [_from_run(problem, newer) for problem in error.problems]
        return make_scenes(before, newer, written, differences=(*mistakes, *unreadable))
    runs = [*mistakes, *_compare_runs(before.program, after.program, newer)]
    scenes = make_scenes(before, newer, written, differences=runs)
    return replace(scenes, after=replace(scenes.after, fleet=after.fleet))


def check_order(older: str, newer: str) -> None:
    """Refuse an upgrade to a release that is not newer.

    Raises:
        InvalidSpecError: `upgrade-order`.
    """
    if _numbers(newer) > _numbers(older):
        return
    is_same = _numbers(newer) == _numbers(older)
    raise InvalidSpecError(
        [
            Problem(
                path="--to",
                code="upgrade-order",
                message=f"{newer} is {'the release of --from' if is_same else f'older than {older}'}; downgrades are not compared, "
                "because Kubernetes does not support them",
                hint=f"write --from {newer} --to {older} for the way up"
                if not is_same
                else f"name a newer release; known are {', '.join(SUPPORTED_MINORS)}",
            )
        ]
    )


def _numbers(text: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", text)[:3]]


def _keep_gates(
    written: Mapping[str, bool], older: str, newer: str
) -> tuple[dict[str, bool], list[Difference]]:
    """Return the gates that the newer release can set too, and what it refuses of the others beyond `compare_gates`."""
    kept = {name: value for name, value in written.items() if name in GATES and _can_set(name, newer)}
    problems = check_target(ClusterTarget(kubernetes=newer, gates=kept))
    differences = [
        Difference(
            level="breaks",
            area="gates",
            code="upgrade-gate",
            message=f"{newer} does not start with the gates of {older}: {problem.message}",
            path=problem.path,
            hint=problem.hint,
        )
        for problem in problems
        if problem.code != "unknown-kubernetes"
    ]
    if any(problem.code == "unknown-kubernetes" for problem in problems):
        raise InvalidSpecError(problems)
    return ({} if differences else kept), differences


def _can_set(name: str, minor: str) -> bool:
    state = GATES[name].get(minor)
    return state is not None and not state.locked


def _from_run(problem: Problem, newer: str) -> Difference:
    return Difference(
        level="breaks",
        area="objects",
        code="upgrade-program-differs",
        path=problem.path,
        place=problem.place,
        message=f"the program does not run for {newer}",
        after=f"{problem.message} [{problem.code}]",
        hint=problem.hint,
    )


def _compare_runs(before: Program, after: Program, newer: str) -> Iterator[Difference]:
    """Yield what a program does otherwise when it runs for the newer release: its problems, and the objects that it writes."""
    known = {(each.path, each.code) for each in before.problems if each.severity == "error"}
    for problem in after.problems:
        if problem.severity == "error" and (problem.path, problem.code) not in known:
            yield _from_run(problem, newer)
    written = {each.urn: each for each in after.objects}
    for each in before.objects:
        other = written.get(each.urn)
        if other is not None and not is_same_json(each.manifest, other.manifest):
            yield Difference(
                level="note",
                area="objects",
                code="upgrade-program-differs",
                subject=each.ref,
                place=each.place,
                message=f"the program writes another object for {newer}; the one for the older release was compared",
                hint=f"review the change after the upgrade: dra-infra review --kubernetes {newer}",
            )


def _read_cluster(
    older: str, newer: str, gates: Mapping[str, bool], options: UpgradeOptions
) -> UpgradeScenes:
    """Return the scenes of a snapshot alone: what nothing in the cluster made is what somebody applied."""
    file, kinds = options.get("snapshot"), options.get("kinds")
    if file is None:
        raise InvalidSpecError(
            [
                Problem(
                    path="PATH",
                    code="no-project",
                    message="neither objects nor a snapshot are named",
                    hint="name a folder, or --snapshot cluster.yaml",
                )
            ]
        )
    cluster = read_snapshot(file)
    every = Running.of(cluster)
    own = [
        each
        for ref, each in every.objects.items()
        if ref.kind not in _NOT_MADE
        and find_controller(mapping(each.get("metadata"))) is None
        and not every.is_done(ref)
        and not (ref in every.pod_records and every.pod_records[ref].is_done)
    ]
    own += [each.to_manifest() for each in cluster.fleet.classes]
    objects = [
        ProgramObject(urn=f"urn:pulumi:cluster::cluster::object::{number:06}", manifest=manifest)
        for number, manifest in enumerate(own)
    ]
    objects.sort(key=lambda each: each.sort_key)
    program = Program(
        project=cluster.fleet.name, stack="", objects=tuple(objects), kubernetes=older, gates=gates
    )
    before = Scene.of(
        program,
        fleet=cluster.fleet,
        running=Running.of(cluster, program),
        kinds=load_workload_kinds(kinds) if kinds else workload_kinds(),
    )
    _, mistakes = _keep_gates(gates, older, newer)
    return make_scenes(before, newer, gates, differences=mistakes)


def make_scenes(
    scene: Scene, newer: str, written: Mapping[str, bool], *, differences: Iterable[Difference] = ()
) -> UpgradeScenes:
    """Return the scenes of an upgrade from one scene.

    Args:
        scene: The scene on the older release.
        newer: The newer release.
        written: Gates that the older cluster sets itself.
        differences: What differs already.
    """
    older = scene.release.minor
    others = [
        each
        for each in scene.program.objects
        if each.target is not None and each.target.kubernetes not in (None, older)
    ]
    names = {each.urn for each in others}
    objects = tuple(replace(each, target=None) for each in scene.program.objects if each.urn not in names)
    left_out = [
        NotCompared(
            what=count_of(len(others), "object"),
            reason=f"made for a cluster of another release: {join_words((each.ref for each in others), most=4)}",
        )
    ]
    kept = {name: value for name, value in written.items() if name in GATES and _can_set(name, newer)}
    if check_target(ClusterTarget(kubernetes=newer, gates=kept)):
        kept = {}
    serves = scene.target.serves
    program = replace(scene.program, objects=objects, kubernetes=older)
    return UpgradeScenes(
        before=replace(scene, program=program),
        after=replace(
            scene,
            program=replace(program, kubernetes=newer, gates=kept),
            target=ClusterTarget(kubernetes=newer, gates=kept, serves=serves),
        ),
        written=written,
        differences=tuple(differences),
        not_compared=tuple(left_out) if others else (),
    )


def upgrade(
    scenes: UpgradeScenes, *, timeout: float = 60.0, tell: Callable[[str], None] = lambda _: None
) -> Upgrade:
    """Compare both scenes of an upgrade.

    Args:
        scenes: The objects on both releases, with the same objects in the same order.
        timeout: Seconds for each placement; what is not answered by then is `not-decided`.
        tell: Called with what is being done, for a progress line.
    """
    return _Comparison(scenes, timeout, tell).compare()


class _Comparison:
    """Puts an `Upgrade` together, one area after the other."""

    def __init__(self, scenes: UpgradeScenes, timeout: float, tell: Callable[[str], None]) -> None:
        self._scenes = scenes
        self._before, self._after = scenes.before, scenes.after
        self._releases = scenes.before.release, scenes.after.release
        self._timeout = timeout
        self._tell = tell
        self._through = tuple(_find_between(*self._releases, scenes.written))
        self._found: list[Difference] = list(scenes.differences)
        self._compared: list[Compared] = []
        self._not_compared: list[NotCompared] = list(scenes.not_compared)
        self._items = [_item_of(each, scenes.before) for each in scenes.before.program.objects]

    def compare(self) -> Upgrade:
        """Compare every area."""
        self._tell("checking objects")
        checks = check(self._before), check(self._after)
        self._compare_objects(checks)
        rewrites = self._compare_stored_versions()
        self._compare_selectors()
        self._compare_placements(checks)
        self._compare_evictions()
        self._compare_cluster()
        differences = in_order(self._found)
        before, after = self._releases
        program = self._before.program
        self._not_compared += [
            NotCompared(what=f"{each.what} {each.name}", reason=each.reason)
            for each in (*program.not_seen, *self._before.running.not_counted)
        ]
        self._not_compared.append(
            NotCompared(
                what="everything else of a cluster",
                reason="kubelet, container runtime, network, storage and other groups of the API are not looked at; "
                "read the release notes for them",
            )
        )
        return Upgrade(
            subject=f"{program.project}/{program.stack}" if program.stack else program.project,
            before=before,
            after=after,
            through=self._through,
            differences=differences,
            compared=tuple(self._compared),
            not_compared=tuple(dict.fromkeys(self._not_compared)),
            steps=plan_steps(differences, rewrites, before, after, self._through),
            provenance=self._provenance(),
        )

    def _compare_objects(self, checks: tuple[Checked, Checked]) -> None:
        before, after = self._releases
        self._found += compare_problems(
            self._items, checks[0].of_objects, checks[1].of_objects, self._releases
        )
        judged = [each for each in self._items if is_judged(each.manifest, before, after)]
        for item in judged:
            self._found += compare_fate(item, before, after)
            self._compare_on_the_way(item)
        self._add(
            "objects",
            self._items,
            f"{count_of(len(self._items), 'object')}, as both API servers check them when created",
        )
        if judged:
            self._add(
                "objects",
                judged,
                f"{count_of(len(judged), 'object')} of resource.k8s.io, kept from {before.minor}, written and applied again",
            )
        refused = [
            index for index in range(len(self._items)) if all(_has_error(each, index) for each in checks)
        ]
        for index in refused:
            self._not_compared.append(
                NotCompared(what=str(self._items[index].ref), reason="both releases refuse it")
            )
        stored = [
            ComparedObject(manifest=each, ref=ObjectRef.of(each), stored=each)
            for each in self._other_stored()
            if is_judged(each, before, after)
        ]
        for item in stored:
            self._found += describe_stored(item, find_fate(item, before, after), after)
            self._compare_on_the_way(item)
        if stored:
            self._add(
                "objects",
                stored,
                f"{count_of(len(stored), 'other object')} of the snapshot, written again as they are stored",
            )

    def _compare_on_the_way(self, item: ComparedObject) -> None:
        """Add what API servers of minors between both do with the stored object."""
        before, after = self._releases
        fate = find_fate(item, before, after)
        if fate.stored is None:
            return
        for release in self._through:
            if is_judged(fate.stored, release, after):
                passing = find_stored_fate(fate.stored, release, namespace_labels=item.namespace_labels)
                self._found += describe_stored(item, passing, release, on_the_way=True)

    def _other_stored(self) -> Iterator[Mapping[str, Any]]:
        """Yield the objects of the snapshot that are not among the compared ones."""
        running = self._before.running
        if running.snapshot is None:
            return
        own = {each.ref.stored for each in self._items}
        yield from (each for ref, each in running.objects.items() if ref not in own)
        yield from (each.to_manifest() for each in running.snapshot.fleet.slices)
        yield from (
            each.to_manifest()
            for each in running.snapshot.fleet.classes
            if ObjectRef("DeviceClass", each.metadata.name or "") not in own
        )

    def _compare_stored_versions(self) -> list[str]:
        kinds = find_kinds([*(each.manifest for each in self._items), *self._other_stored()])
        kinds.update(_EVERYWHERE)
        rewritten = list(compare_stored_versions(kinds, *self._releases))
        self._found += [difference for difference, _ in rewritten]
        self._compared.append(
            Compared(area="stored versions", what=f"versions in etcd of {join_words(sorted(kinds), most=6)}")
        )
        self._not_compared.append(
            NotCompared(
                what="versions that are in etcd now",
                reason=f"objects written by a release older than {self._releases[0].minor} may be stored in a still older version",
            )
        )
        return [command for _, command in rewritten]

    def _compare_selectors(self) -> None:
        fleets = self._before.fleet, self._after.fleet
        slices = tuple(each.slices if each is not None else () for each in fleets)
        classes = fleets[0].classes if fleets[0] is not None else ()
        compared = compare_selectors(self._items, classes, (slices[0], slices[1]), *self._releases)
        self._found += compared.differences
        if not compared.selectors:
            return
        what = f"{count_of(compared.selectors, 'selector')}: verdict and estimated cost"
        if compared.devices:
            what += f", and the result on {count_of(compared.devices, 'device')}"
            what += f" of {compared.all_devices:,}" if compared.devices < compared.all_devices else ""
        self._compared.append(Compared(area="selectors", what=what))
        if not compared.devices:
            self._not_compared.append(NotCompared(what="results of selectors", reason=_NO_HARDWARE))
        if compared.left_out:
            self._not_compared.append(
                NotCompared(what=count_of(compared.left_out, "selector"), reason="there are too many")
            )

    def _compare_placements(self, checks: tuple[Checked, Checked]) -> None:
        fleet = self._before.fleet
        if fleet is None or not (fleet.nodes or fleet.pools):
            self._not_compared.append(NotCompared(what="placement", reason=_NO_HARDWARE))
            return
        if not all(each.is_whole for each in checks):
            self._not_compared.append(
                NotCompared(what="placement", reason="the program has errors, so not all objects are known")
            )
            return
        placed = []
        for scene, checked in zip((self._before, self._after), checks, strict=True):
            self._tell(f"placing by the rules of {scene.release.minor}")
            end = time.monotonic() + self._timeout
            placed.append(place_scene(scene, checked, is_late=partial(_is_over, end)))
        self._found += compare_placements(placed[0], placed[1], self._releases)
        workloads = count_of(len(placed[0].workloads), "workload")
        what = f"{workloads}, placed by both schedulers on {fleet.name}: nodes, devices, and all at once"
        self._compared.append(Compared(area="placement", what=what))
        undecided = [str(each.owner) for each in placed[1].workloads if each.verdict == "not-decided"]
        if undecided or placed[1].joint.verdict == "not-decided":
            self._not_compared.append(
                NotCompared(
                    what="placement", reason=f"not decided: {join_words(undecided or ['all at once'])}"
                )
            )

    def _compare_evictions(self) -> None:
        running, fleet = self._before.running, self._before.fleet
        if running.snapshot is None or fleet is None:
            reason = "it is not known what runs; add --snapshot cluster.yaml"
            self._not_compared.append(NotCompared(what="evictions", reason=reason))
            return
        manifests = self._before.manifests
        before, after = (running.find_evicted(manifests, fleet, release) for release in self._releases)
        self._found += compare_evictions(before, after)
        number = count_of(len(running.pod_records), "pod")
        self._compared.append(
            Compared(area="evictions", what=f"{number} of the snapshot, by taints of their devices")
        )

    def _compare_cluster(self) -> None:
        before, after = self._releases
        fleet = self._before.fleet
        beside = [ComparedObject(manifest=each, ref=ObjectRef.of(each)) for each in self._before.beside]
        own = {each.ref.stored for each in self._items}
        quotas = [*self._items, *(each for each in beside if each.ref.stored not in own)]
        self._found += compare_quotas(quotas, fleet.classes if fleet else (), before, after)
        number = sum(each.ref.kind == "ResourceQuota" for each in quotas)
        if number:
            what = f"{count_of(number, 'ResourceQuota')}: which keys count claims"
            self._compared.append(Compared(area="quotas", what=what))
        self._found += compare_gates(before, after, self._scenes.written)
        self._compared.append(Compared(area="gates", what=f"{count_of(len(GATES), 'feature gate')} of DRA"))
        self._found += compare_metrics(self._items, before, after)
        self._compared.append(
            Compared(area="metrics", what="metrics that GpuMonitoring reads, and objects that name them")
        )
        drivers = self._provenance().drivers
        releases = self._before.program.releases
        self._found += compare_drivers(releases, drivers, self._before.target, self._after.target)
        what = join_words([*drivers, *(str(each.ref) for each in releases)]) or "no driver"
        self._compared.append(
            Compared(area="drivers", what=f"{what}: what the catalogue knows of their needs")
        )
        self._not_compared.append(
            NotCompared(
                what="drivers on the newer release",
                reason="drivers document the oldest Kubernetes that they need, and hardly any the newest; "
                "ask the vendor, or try it on a test cluster",
            )
        )

    def _provenance(self) -> Provenance:
        fleet = self._before.fleet
        is_placed = fleet is not None and bool(fleet.nodes or fleet.pools)
        made = Provenance.of(
            self._releases,
            driver=self._before.program.driver,
            fleet=fleet,
            placement=self._releases[1] if is_placed else None,
        )
        return replace(made, base_placement=self._releases[0]) if is_placed else made

    def _add(self, area: Area, items: list[ComparedObject], what: str) -> None:
        if items:
            self._compared.append(Compared(area=area, what=what))


def _is_over(end: float) -> bool:
    return time.monotonic() > end


def _find_between(before: Release, after: Release, written: Mapping[str, bool]) -> Iterator[Release]:
    for minor in SUPPORTED_MINORS:
        if before.number < _numbers(minor)[1] < after.number:
            kept = {name: on for name, on in written.items() if name in GATES and _can_set(name, minor)}
            target = ClusterTarget(kubernetes=minor, gates=kept)
            yield (ClusterTarget(kubernetes=minor) if check_target(target) else target).releases[0]


def _has_error(checked: Checked, index: int) -> bool:
    return any(position == index and problem.severity == "error" for position, problem in checked.of_objects)


def _item_of(each: ProgramObject, scene: Scene) -> ComparedObject:
    ref = each.ref
    stored = scene.running.objects.get(ref.stored)
    return ComparedObject(
        manifest=each.manifest,
        ref=ref,
        place=each.place,
        stored=stored
        if stored is not None and stored.get("apiVersion") == each.manifest.get("apiVersion")
        else None,
        namespace_labels=_labels_of(ref.stored.namespace, scene),
    )


def _labels_of(namespace: str, scene: Scene) -> Mapping[str, str] | None:
    for each in (*scene.manifests, *scene.beside):
        if each.get("kind") == "Namespace" and mapping(each.get("metadata")).get("name") == namespace:
            return {
                str(key): str(value)
                for key, value in mapping(mapping(each["metadata"]).get("labels")).items()
            }
    return None
