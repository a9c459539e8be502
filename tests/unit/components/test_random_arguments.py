"""Components with arguments drawn at random: problems in the user's terms, or objects that the target's server takes."""

from __future__ import annotations

import inspect
import json

import pulumi
import pytest
from hypothesis import HealthCheck, given, settings

import dra_infra as dra
from dra_infra.advice.program import check_program
from dra_infra.codes import CODES
from dra_infra.components.component import label_of
from dra_infra.program_objects import Program
from tests.arguments.calls import Call, Drawn, Later, run
from tests.arguments.programs import FAMILY, hostile, sane

EXAMPLES = 40
"""For each family, of each property."""

of_many = settings(
    max_examples=EXAMPLES,
    database=None,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)


def arguments_of(call: Call) -> set[str]:
    """What problems of a component may be at: an argument that it has, or one that was given all the same."""
    return {*inspect.signature(getattr(dra, call.kind).__init__).parameters, *call.arguments}


def check_problems(program: Program, call: Call) -> None:
    """That every problem has a known code, says something, and is at an argument of the component."""
    name = resolved_type(call.name)
    label = label_of(type(call.kind, (), {})(), name)
    for problem in program.problems:
        assert problem.code in CODES
        assert problem.message
        assert problem.place is not None
        assert problem.path.startswith(f"{label}.")
        argument = problem.path.removeprefix(f"{label}.").partition(".")[0].partition("[")[0]
        assert argument in arguments_of(call)
        # What is told can be printed.
        assert str(problem).encode()


def resolved_type(name: object) -> object:
    """A name, or for `Later` an Output: problems only say what it is."""
    return pulumi.Output.__new__(pulumi.Output) if isinstance(name, Later) else name


def errors_of(program: Program) -> list[str]:
    return [str(problem) for problem in program.problems if problem.severity == "error"]


def manifests_of(program: Program) -> str:
    return json.dumps([each.manifest for each in program.objects])


def check(drawn: Drawn) -> Program:
    """Problems in the user's terms, or objects that every server of the target takes."""
    program = run(drawn)
    check_problems(program, drawn.calls[-1])
    if errors_of(program):
        made = [each for each in program.objects if each.component != 'GpuDeviceClass("made")']
        assert made == []
    late = [each for each in check_program(program) if each not in program.problems]
    assert [str(each) for each in late if each.severity == "error"] == []
    return program


@pytest.mark.parametrize("family", FAMILY)
def test_whatever_is_meant_gives_problems_or_objects_that_the_target_takes(family):
    refused: list[bool] = []

    @of_many
    @given(sane(family))
    def holds(drawn):
        program = check(drawn)
        refused.append(bool(errors_of(program)))
        again = run(drawn)
        assert manifests_of(again) == manifests_of(program)
        assert again.problems == program.problems

    holds()
    # Or nothing would be known of objects.
    assert sum(refused) < len(refused) * 0.8


@pytest.mark.parametrize("family", FAMILY)
def test_whatever_is_written_by_mistake_is_a_problem_at_its_argument_and_never_a_traceback(family):
    refused: list[bool] = []

    @settings(of_many, max_examples=2 * EXAMPLES)
    @given(hostile(family))
    def holds(drawn):
        refused.append(bool(errors_of(check(drawn))))

    holds()
    assert sum(refused) > len(refused) // 2


@pytest.mark.parametrize("family", FAMILY)
def test_the_engine_is_told_the_same_and_given_the_same(family):
    @settings(of_many, max_examples=EXAMPLES // 2)
    @given(sane(family) | hostile(family))
    def holds(drawn):
        here, engine = run(drawn), run(drawn, as_engine=True)
        assert manifests_of(here) == manifests_of(engine)
        # Advice is a problem here, and a line in the engine's log.
        assert errors_of(engine) == errors_of(here)

    holds()
