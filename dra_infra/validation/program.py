"""All rules over all objects of a program."""

from __future__ import annotations

from collections.abc import Collection

from dra_infra.errors import Problem, in_reading_order
from dra_infra.model.program import Program
from dra_infra.validation.devices import check_device_object
from dra_infra.validation.pods import KnownClaims, check_pods


def check_program(program: Program, *, known_classes: Collection[str] = ()) -> tuple[Problem, ...]:
    """Check every object of *program*; in reading order, with the place of the object where the run knows it.

    Args:
        program: What a run gave.
        known_classes: DeviceClasses that exist beside those of the program, such as those of a fleet's driver.
    """
    claims = KnownClaims.of(program)
    problems = list(program.problems)
    for each in program.objects:
        manifest = dict(each.manifest)
        found = [
            *check_device_object(manifest, classes={*claims.classes, *known_classes}),
            *check_pods(manifest, claims),
        ]
        problems.extend(problem.below(each.component or str(each.ref)).at(each.place) for problem in found)
    return in_reading_order(problems)
