"""All rules over all objects of a program."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from dra_infra.errors import Place, Problem, in_reading_order
from dra_infra.model.target import ClusterTarget
from dra_infra.validation.objects import check_objects, check_on_fleet

if TYPE_CHECKING:
    from dra_infra.model.device_class import DeviceClass
    from dra_infra.model.fleet import Fleet
    from dra_infra.model.program import Program


def check_program(
    program: Program,
    *,
    target: ClusterTarget | None = None,
    classes: Iterable[DeviceClass] = (),
    fleet: Fleet | None = None,
    locate: Callable[[int, str], Place | None] | None = None,
) -> tuple[Problem, ...]:
    """Check every object of *program*; in reading order, with the place of the object where the run knows it.

    Of what a chart makes, only what the API server refuses is told: advice is for its author.

    Args:
        program: What a run gave.
        target: The cluster of objects that have none of their own; None takes the stack's setting, else the oldest
            and the newest supported minor.
        classes: DeviceClasses that exist beside those of the program.
        fleet: The hardware that the program is meant for: its classes exist too, and what it does not have the way it
            is set up is told.
        locate: Where a field is written, by the position of its object and its path; None takes the object's place.
    """
    # Loaded with the catalogue of charts where there is a program: `dra-infra validate` starts faster without.
    from dra_infra.validation.installed import check_installed

    target = target or ClusterTarget(kubernetes=program.kubernetes)
    problems = list(program.problems)
    targets = {index: each.target for index, each in enumerate(program.objects) if each.target is not None}
    manifests = [each.manifest for each in program.objects]
    classes = (*classes, *fleet.classes) if fleet is not None else classes
    found = check_objects(manifests, target, driver=program.driver, classes=classes, targets=targets)
    for index, problem in (*found, *check_installed(program)):
        each = program.objects[index]
        if each.chart and problem.severity == "warning":
            continue
        if problem.code == "compute-domain-nodes" and each.component.startswith("NvlinkGroup("):
            # It knows the gates by which the number counts.
            continue
        place = locate(index, problem.path) if locate else each.place
        problems.append(problem.below(each.component or str(each.ref)).at(place))
    if fleet is not None:
        problems += _on_fleet(program, fleet, target, locate)
    return in_reading_order(problems)


def _on_fleet(
    program: Program,
    fleet: Fleet,
    target: ClusterTarget,
    locate: Callable[[int, str], Place | None] | None,
) -> Iterator[Problem]:
    manifests = [each.manifest for each in program.objects]
    for index, problem in check_on_fleet(manifests, fleet, target, driver=program.driver):
        if index is None:
            yield problem
            continue
        each = program.objects[index]
        place = locate(index, problem.path) if locate else each.place
        yield problem.below(each.component or str(each.ref)).at(place)
