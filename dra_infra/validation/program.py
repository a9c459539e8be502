"""All rules over all objects of a program."""

from __future__ import annotations

from collections.abc import Iterable

from dra_infra.errors import Problem, in_reading_order
from dra_infra.model.device_class import DeviceClass
from dra_infra.model.program import Program
from dra_infra.model.target import ClusterTarget
from dra_infra.validation.installed import check_installed
from dra_infra.validation.objects import check_objects


def check_program(
    program: Program, *, target: ClusterTarget | None = None, classes: Iterable[DeviceClass] = ()
) -> tuple[Problem, ...]:
    """Check every object of *program*; in reading order, with the place of the object where the run knows it.

    Of what a chart makes, only what the API server refuses is told: advice is for its author.

    Args:
        program: What a run gave.
        target: The cluster of objects that have none of their own; None takes the stack's setting, else the oldest
            and the newest supported minor.
        classes: DeviceClasses that exist beside those of the program, such as those of a fleet.
    """
    target = target or ClusterTarget(kubernetes=program.kubernetes)
    problems = list(program.problems)
    targets = {index: each.target for index, each in enumerate(program.objects) if each.target is not None}
    manifests = [each.manifest for each in program.objects]
    found = check_objects(manifests, target, driver=program.driver, classes=classes, targets=targets)
    for index, problem in (*found, *check_installed(program)):
        each = program.objects[index]
        if each.chart and problem.severity == "warning":
            continue
        problems.append(problem.below(each.component or str(each.ref)).at(each.place))
    return in_reading_order(problems)
