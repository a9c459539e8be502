"""The answer of `dra-infra make-room`: which running pods move, and in which order, so that a workload finds room."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, TypedDict, Unpack

from dra_infra.answers.checking import Checked, check
from dra_infra.answers.reading import read_scene
from dra_infra.answers.scene import Scene
from dra_infra.answers.settings import read_snapshot
from dra_infra.answers.wanted_shapes import WantedShape, is_shape, read_shape
from dra_infra.errors import ProgramError
from dra_infra.explanation.asking import find_subject
from dra_infra.kubernetes.api import ObjectRef, mapping, name_kind, value_at
from dra_infra.placement.making_room import MadeRoom, RoomQuestion, make_room
from dra_infra.placement.movable_pods import MoveRules
from dra_infra.placement.question import PlacementQuestion
from dra_infra.placement.room_commands import Step, write_steps
from dra_infra.placement.running import Running
from dra_infra.program_objects import NotSeen, Program, ProgramObject
from dra_infra.provenance import Provenance
from dra_infra.target import NEWEST_DRIVER

FITS: Final = 0
HAS_NO_ROOM: Final = 1
NO_ANSWER: Final = 2
"""Exit codes: it fits, now or after moves; no room was found; or the question cannot be answered."""

_MAX_RUN_TIMES: Final = 1 << 20
"""Bytes of a file with run times."""
_MAX_HOURS: Final = 1_000_000
_SYSTEM_PRIORITIES: Final = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


class RoomOptions(TypedDict, total=False):
    """The options of a scene that a question about room has; each means what it means in `SceneOptions`."""

    snapshot: Path | None
    kubernetes: str | None
    gates: Mapping[str, bool]
    driver: str | None
    stack: str | None
    config: Mapping[str, str]
    kinds: Path | None
    provider: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class RoomAnswer:
    """The answer.

    Args:
        scene: What was asked.
        checked: What is wrong with the objects of the wanted workload.
        wanted: What is to find room, as the user wrote it.
        made: The moves; None where an object that the workload needs has an error.
        steps: Commands in order, with a check behind each move.
    """

    scene: Scene
    checked: Checked
    wanted: str
    made: MadeRoom | None = None
    steps: tuple[Step, ...] = ()

    @property
    def provenance(self) -> Provenance:
        """The releases that the answer is for."""
        return self.scene.provenance

    @property
    def not_seen(self) -> tuple[NotSeen, ...]:
        """Parts that the answer leaves out."""
        return (*self.scene.program.not_seen, *self.scene.running.not_counted)

    @property
    def exit_code(self) -> int:
        """`FITS`, `HAS_NO_ROOM` or `NO_ANSWER`."""
        if self.made is None or self.made.verdict == "not-decided":
            return NO_ANSWER
        return FITS if self.made.verdict in ("fits-now", "moves") else HAS_NO_ROOM


def read_wanted(
    wanted: str, path: Path | None, *, timeout: float = 60.0, **options: Unpack[RoomOptions]
) -> tuple[Scene, WantedShape | None]:
    """Return the scene of a question, and the shape where no object is wanted.

    Args:
        wanted: An object of the program or of the snapshot, or a shape.
        path: A program or manifests that have the object; None where the snapshot has it.
        timeout: Seconds that the program may run.
        options: The snapshot, release and configuration.

    Raises:
        ProgramError: `snapshot-missing` without a snapshot, and the codes of `read_scene` and `read_shape`.
        FleetError: When the snapshot cannot be read.
    """
    file = options.get("snapshot")
    if file is None:
        raise ProgramError.of(
            path="--snapshot",
            code="snapshot-missing",
            message="without a snapshot it is not known what runs, so nothing can be moved",
            hint="write one with `dra-infra snapshot --output cluster.yaml`, and name it: --snapshot cluster.yaml",
        )
    if path is not None and not is_shape(wanted):
        return read_scene(path, timeout=timeout, **options), None
    cluster = read_snapshot(file, driver=options.get("driver") or NEWEST_DRIVER)
    shape = read_shape(wanted, cluster.fleet) if is_shape(wanted) else None
    manifests: Iterable[Mapping[str, Any]] = shape.manifests if shape else ()
    objects = [
        ProgramObject(urn=f"urn:pulumi:room::room::object::{number:06}", manifest=manifest)
        for number, manifest in enumerate(manifests)
    ]
    program = Program(
        project="room",
        stack="",
        objects=tuple(objects),
        kubernetes=options.get("kubernetes"),
        gates=dict(options.get("gates", {})),
        driver=options.get("driver") or NEWEST_DRIVER,
    )
    return Scene.of(program, fleet=cluster.fleet, running=Running.of(cluster, program)), shape


def read_run_times(file: Path) -> dict[str, float]:
    """Return the hours of work that pods lose when they restart, by `namespace/pod` or `namespace/kind/name` of their owner.

    Raises:
        ProgramError: `run-times-unreadable`.
    """

    def refuse(why: str) -> ProgramError:
        return ProgramError.of(
            path="--run-times",
            code="run-times-unreadable",
            message=f"{file} {why}",
            hint='name a file with hours, such as {"ml/job/train": 12.5, "ml/trainer-0": 3}',
        )

    try:
        with file.open("rb") as opened:
            data = opened.read(_MAX_RUN_TIMES + 1)
        if len(data) > _MAX_RUN_TIMES:
            raise refuse(f"has more than {_MAX_RUN_TIMES:,} bytes")
        run_times = json.loads(data)
    except OSError as error:
        raise refuse(f"cannot be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise refuse("is no JSON") from error
    if not isinstance(run_times, dict):
        raise refuse("is no object with hours by name")
    for name, hours in run_times.items():
        if isinstance(hours, bool) or not isinstance(hours, (int, float)) or not 0 <= hours < _MAX_HOURS:
            raise refuse(f"has no hours for {name[:80]!r}")
    return {name: float(hours) for name, hours in run_times.items()}


def find_room(
    scene: Scene,
    wanted: str,
    *,
    shape: WantedShape | None = None,
    namespace: str | None = None,
    rules: MoveRules | None = None,
    timeout: float = 60.0,
    tell: Callable[[str], None] = lambda _: None,
) -> RoomAnswer:
    """Find the cheapest moves of running pods with which a workload finds room. Nothing is done to a cluster.

    Args:
        scene: The program and what runs.
        wanted: The workload, the claim or the shape.
        shape: The shape that *wanted* is; None for an object.
        namespace: Namespace of the object.
        rules: Which pods may be moved; None for those with a controller and no higher priority.
        timeout: Seconds for the search.
        tell: Called with what is being done, for a progress line.

    Raises:
        ProgramError: `subject-not-known`.
        ValueError: For a scene without a snapshot.
    """
    rules = rules or MoveRules()
    snapshot = scene.running.snapshot
    if snapshot is None or scene.fleet is None:
        raise ValueError("the scene has no snapshot, so it is not known what runs")
    checked = check(scene)
    is_own = bool(scene.program.objects)
    objects = scene.manifests if is_own else snapshot.objects
    kinds = [name_kind(kind, group) for group, kind in scene.kinds.kinds]
    owner, manifest = find_subject(shape.name if shape else wanted, namespace, objects, kinds)
    is_refused = not checked.is_whole or any(
        each.owner.whole == owner.whole for each in checked.accepted.blocked
    )
    if is_own and is_refused:
        return RoomAnswer(scene=scene, checked=checked, wanted=wanted)
    manifests = [*checked.accepted.manifests] if is_own else [manifest]
    if owner.kind in ("ResourceClaim", "ResourceClaimTemplate"):
        manifest = _write_pod(owner)
        owner = ObjectRef.of(manifest)
        manifests = [*manifests, manifest]
    running = Running.of(snapshot, _without_workloads(scene))
    end = time.monotonic() + timeout
    tell("looking for moves")
    room_question = RoomQuestion(
        question=PlacementQuestion(
            manifests=_without_running(scene, manifests, owner, running),
            fleet=scene.fleet,
            release=scene.release,
            kinds=scene.kinds,
            is_late=lambda: time.monotonic() > end,
        ),
        running=running,
        wanted=owner,
        rules=rules,
        priority=_find_priority(scene, manifest, [*objects, *snapshot.objects]) if shape is None else None,
        domain=shape.domain if shape else "",
    )
    made = make_room(room_question)
    scale = value_at(manifest, "spec", "replicas")
    steps = write_steps(
        made, apply="" if shape or not is_own else wanted, replicas=scale if isinstance(scale, int) else 1
    )
    return RoomAnswer(scene=scene, checked=checked, wanted=wanted, made=made, steps=tuple(steps))


def _write_pod(claim: ObjectRef) -> dict[str, Any]:
    """A pod that uses nothing but a claim or claim template."""
    name = "resourceClaimName" if claim.kind == "ResourceClaim" else "resourceClaimTemplateName"
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": claim.name, "namespace": claim.namespace or "default"},
        "spec": {"resourceClaims": [{"name": "claim", name: claim.name}], "containers": []},
    }


def _without_workloads(scene: Scene) -> Program:
    """The program without what makes pods and without claims: those of the cluster are there, and count."""
    kept = [
        each
        for each in scene.program.objects
        if each.ref.kind not in ("Pod", "ResourceClaim") and scene.kinds.find(each.manifest) is None
    ]
    return replace(scene.program, objects=tuple(kept))


def _without_running(
    scene: Scene, manifests: Sequence[Mapping[str, Any]], owner: ObjectRef, running: Running
) -> list[Mapping[str, Any]]:
    """The wanted workload with the pods that have no node yet, beside all that is no workload."""
    bound = sum(bool(running.pod_records[pod].node) for pod in running.pods.get(owner.whole.stored, ()))
    found: list[Mapping[str, Any]] = []
    for each in manifests:
        ref = ObjectRef.of(each).stored
        if ref != owner.whole.stored:
            if scene.kinds.find(each) is None and ref.kind != "Pod":
                found.append(each)
            continue
        field = "parallelism" if ref.kind == "Job" else "replicas"
        number = value_at(each, "spec", field)
        number = number if isinstance(number, int) else 1
        spec = mapping(each.get("spec"))
        found.append(
            {**each, "spec": {**spec, field: max(number - bound, 0)}} if bound and ref.kind != "Pod" else each
        )
    return found


def _find_priority(
    scene: Scene, manifest: Mapping[str, Any], objects: Sequence[Mapping[str, Any]]
) -> int | None:
    """The priority that the server gives the wanted pods (plugin/pkg/admission/priority); None where its class is not known."""
    specs = [each.spec for each in scene.kinds.find_pod_templates(manifest)]
    spec = specs[0] if specs else mapping(manifest.get("spec"))
    if isinstance(spec.get("priority"), int):
        return int(spec["priority"])
    name = spec.get("priorityClassName")
    values = [
        each.get("value")
        for each in objects
        if each.get("kind") == "PriorityClass"
        and (value_at(each, "metadata", "name") == name if name else each.get("globalDefault") is True)
    ]
    known = min((each for each in values if isinstance(each, int)), default=None if name else 0)
    return _SYSTEM_PRIORITIES.get(str(name), known)
