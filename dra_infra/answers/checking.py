"""Checks the objects of a scene: what is wrong with them, and which of them can be placed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dra_infra.advice.program import find_problems
from dra_infra.answers.admission import find_denied
from dra_infra.answers.refusals import Accepted, split_accepted
from dra_infra.answers.scene import Scene
from dra_infra.errors import Problem, in_reading_order
from dra_infra.target import ClusterTarget


@dataclass(frozen=True, kw_only=True, slots=True)
class Checked:
    """A scene after its check.

    Args:
        problems: What is wrong, in reading order; those of the run that made the objects are among them.
        accepted: The objects that can be placed, and the workloads that cannot.
        is_whole: False if an error belongs to no object. Some objects are missing then, and it is not known which pods need them.
        of_objects: The problems that belong to objects, each with the position of its object; None for one of the fleet.
    """

    problems: tuple[Problem, ...]
    accepted: Accepted
    is_whole: bool = True
    of_objects: tuple[tuple[int | None, Problem], ...] = ()

    @property
    def has_errors(self) -> bool:
        """True if at least one problem is an error."""
        return any(each.severity == "error" for each in self.problems)


def check(scene: Scene, *, target: ClusterTarget | None = None) -> Checked:
    """Check every object of a scene.

    Args:
        scene: What is checked. Its hardware counts: classes of the fleet exist, and what it lacks is a warning.
        target: Releases whose problems are reported, where these are others than that of the scene. Which pods can be placed is
            always judged by the release that places them.
    """
    denied = [*find_denied(scene)]
    reported = [*_find(scene, target or scene.target), *denied]
    of_release = reported
    has_errors = any(problem.severity == "error" for _, problem in reported)
    if has_errors and target is not None and target != scene.target:
        of_release = [*_find(scene, scene.target), *denied]
    errors = (
        (index, problem) for index, problem in of_release if index is not None and problem.severity == "error"
    )
    snapshot = scene.running.snapshot
    is_absent = scene.running.is_absent if snapshot is not None and snapshot.whole else None
    problems = dict.fromkeys((*scene.program.problems, *(problem for _, problem in reported)))
    return Checked(
        problems=in_reading_order(problems),
        accepted=split_accepted(scene.manifests, errors, scene.kinds, is_absent),
        is_whole=not any(problem.severity == "error" for problem in scene.program.problems),
        of_objects=tuple(reported),
    )


def _find(scene: Scene, target: ClusterTarget) -> Iterator[tuple[int | None, Problem]]:
    """Yield the problems of the objects. Without hardware no class can be said to be missing: those of the cluster were not read."""
    fleet = scene.fleet
    has_nodes = fleet is not None and bool(fleet.nodes or fleet.pools)
    classes = fleet.classes if fleet is not None and not has_nodes else ()
    problems = find_problems(
        scene.program,
        target=target,
        classes=classes,
        fleet=fleet.at_limits if fleet is not None and has_nodes else None,
        locate=scene.locate,
        beside=scene.beside,
    )
    is_blind = fleet is not None and not has_nodes and not classes
    yield from (each for each in problems if not (is_blind and each[1].code == "class-not-known"))
