"""The answer of `dra-infra simulate`: where the pods of a scene go, with hypothetical changes of hardware and numbers of pods."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Final

from dra_infra.advice.clusters import find_several_clusters
from dra_infra.answers.checking import Checked, check
from dra_infra.answers.placing import place_scene, question_of
from dra_infra.answers.scene import Scene
from dra_infra.fleet import Fleet
from dra_infra.kubernetes.scheduler import Taken
from dra_infra.output.wording import count_of
from dra_infra.placement import what_if
from dra_infra.placement.draining import Drained, drain_one_of_each
from dra_infra.placement.placement import Placement
from dra_infra.program_objects import NotSeen
from dra_infra.provenance import Provenance
from dra_infra.sources.files import UNANSWERED

FITS: Final = 0
DOES_NOT_FIT: Final = 1
NO_ANSWER: Final = 2
"""Exit codes: all pods are placed, they are not or something has an error, or something could not be read."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Simulation:
    """The answer.

    Args:
        scene: What was asked, with its changes.
        checked: What is wrong with its objects.
        placement: Where its pods go; None where errors of the program itself leave open which objects there are.
        drained: The verdict with one node of each kind drained in turn; empty where that was not asked.
    """

    scene: Scene
    checked: Checked
    placement: Placement | None = None
    drained: tuple[Drained, ...] = ()

    @property
    def provenance(self) -> Provenance:
        """The releases that the answer is for."""
        return self.scene.provenance

    @property
    def not_seen(self) -> tuple[NotSeen, ...]:
        """Parts that the answer leaves out."""
        program, running = self.scene.program, self.scene.running
        return (*program.not_seen, *find_several_clusters(program), *running.not_counted)

    @property
    def exit_code(self) -> int:
        """The exit code: `FITS`, `DOES_NOT_FIT` or `NO_ANSWER`. What fits when node pools grow within their limits fits."""
        problems = self.checked.problems
        if self.placement is None and not UNANSWERED.isdisjoint(each.code for each in problems):
            return NO_ANSWER
        if self.placement is None or self.checked.has_errors:
            return DOES_NOT_FIT
        if not self.placement.workloads and any(each.is_not_rendered for each in self.not_seen):
            return NO_ANSWER
        works = does_work(self.placement) and all(each.fits for each in self.drained)
        return FITS if works else DOES_NOT_FIT


def does_work(placement: Placement) -> bool:
    """Return whether all pods find room at once in some order, on the nodes that there are or that node pools may add."""
    if placement.growth is not None:
        return placement.growth.fits
    return placement.fits_count == len(placement.workloads) and placement.joint.works is not None


def simulate(
    scene: Scene,
    *,
    changes: what_if.WhatIf | None = None,
    scale: Mapping[str, int] = MappingProxyType({}),
    in_turn: bool = False,
    timeout: float = 60.0,
    tell: Callable[[str], None] = lambda _: None,
) -> Simulation:
    """Place the pods of a scene.

    Args:
        scene: What is placed, on a fleet.
        changes: Nodes that come, go, are drained, and devices that fail.
        scale: Numbers of pods by `kind/name` or `namespace/kind/name`.
        in_turn: Whether to ask again with one node of each kind drained.
        timeout: Seconds for the searches; what is not answered by then is `not-decided`.
        tell: Called with what is being done, for a progress line.

    Raises:
        FleetError: `what-if-node`, `what-if-device` for changes of what is not there.
        InvalidSpecError: `scale-unknown`, `scale-number`.
        ValueError: For a scene without a fleet.
    """
    if scene.fleet is None:
        raise ValueError("the scene names no fleet, so nothing can be placed")
    changes = changes or what_if.WhatIf()
    if changes != what_if.WhatIf():
        scene = replace(scene, fleet=what_if.change_fleet(scene.fleet, changes, scene.release))
    scene, notes = _scaled(scene, scale)
    checked = check(scene)
    if not checked.is_whole:
        return Simulation(scene=scene, checked=checked)
    fleet = scene.fleet
    accepted = checked.accepted.manifests
    assert fleet is not None  # noqa: S101  (the scene has had one since the start)
    tell(f"placing on {count_of(len(fleet.nodes), 'node')}")
    end = time.monotonic() + timeout

    def is_late() -> bool:
        return time.monotonic() > end

    def find_taken(then: Fleet, *more: str) -> Taken:
        drained = {
            node.name for node in then.nodes if any(fnmatchcase(node.name, name) for name in changes.drain)
        }
        return scene.running.without_evicted(accepted, then, scene.release, drained.union(more))

    placement = place_scene(scene, checked, taken=find_taken(fleet), is_late=is_late, with_headroom=True)
    placement = replace(placement, notes=(*placement.notes, *notes))
    drained: tuple[Drained, ...] = ()
    if in_turn:
        tell("draining one node of each kind")
        question = question_of(scene, checked, taken=find_taken(fleet, ""), is_late=is_late)
        drained = drain_one_of_each(question, find_taken)
    return Simulation(scene=scene, checked=checked, placement=placement, drained=drained)


def _scaled(scene: Scene, wanted: Mapping[str, int]) -> tuple[Scene, tuple[str, ...]]:
    """The scene with other numbers of pods, and a note for each."""
    if not wanted:
        return scene, ()
    manifests, notes = what_if.scale(scene.manifests, wanted)
    objects = tuple(
        replace(each, manifest=manifest)
        for each, manifest in zip(scene.program.objects, manifests, strict=True)
    )
    return replace(scene, program=replace(scene.program, objects=objects)), notes
