"""Components with arguments drawn at random: problems in the user's terms, or objects that the target's server takes."""

from __future__ import annotations

import inspect
import json

import pulumi
import pytest
from hypothesis import given, settings

import dra_infra as dra
from dra_infra.advice.program import check_program
from dra_infra.codes import CODES
from dra_infra.components.component import label_of
from dra_infra.program_objects import Program
from tests.support import draws
from tests.support.arguments.calls import Call, Drawn, Later, run
from tests.support.arguments.programs import FAMILY, hostile, sane

pytestmark = pytest.mark.draws
EXAMPLES = 40
"""For each family, of each property."""

of_many = settings(max_examples=EXAMPLES)


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
        made = [each for each in program.objects if str(each.component) != 'GpuDeviceClass("made")']
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
    # Or nothing would be known of objects. The share is that of the cases that everyone draws: of others it varies.
    assert sum(refused) < len(refused) * (0.95 if draws.SEED else 0.8)


# A text compares with a field of a selector to a test, which has no truth value; an Output of a mapping cannot be merged with one.
ONCE_WRONG = (
    Call("GpuGuardrails", "gpus", {"without_device_plugin": None}),
    Call("GpuGuardrails", "gpus", {"host_paths": {"vision": []}, "node_access": [dra.gpu.product]}),
    Call("GpuMonitoring", "gpus", {"without": [dra.gpu.product]}),
    Call("GpuMonitoring", "gpus", {"labels": Later({}, known=False)}),
    Call("GpuMonitoring", "gpus", {"dashboard": Later({}, known=False)}),
    Call("GpuTenant", "vision", {"quota": {}, "namespace_labels": Later({}, known=False)}),
    Call("KueueQueue", "gpus", {"quota": {}, "strategy": dra.gpu.product}),
    Call("NodePlugin", "gpus", {"back_end": dra.gpu.product}),
    Call("MigPartition", "trainer", {"profile": "1g.10gb", "dynamic": dra.gpu.product}),
    Call("GpuDeviceClass", "h100", {"configs": [dra.GpuConfig(requests=dra.gpu.product)]}),  # type: ignore[arg-type]
    Call("GpuPlatform", "trainer", {"driver": {"": None, "\ud800": 1}}),
    Call("DeviceTaint", "service", {"key": None, "pool": "node-7"}),
    Call(
        "GpuClaimTemplate",
        "trainer",
        {
            "device_class": "gpu.nvidia.com",
            "constraints": [dra.DistinctAttribute(dra.gpu.product)],
            "target": dra.ClusterTarget(gates={"DRAConsumableCapacity": False}),
        },
    ),
)
"""Failing draws of `make explore`."""


@pytest.mark.parametrize("call", ONCE_WRONG, ids=lambda call: f"{call.kind}-{'-'.join(call.arguments)}")
def test_what_was_once_wrong_is_a_problem_at_its_argument_or_taken(call):
    check(Drawn((call,), {"kubernetes": "1.37"} if "target" not in call.arguments else {}))


def test_a_problem_shows_no_address_which_is_another_one_in_each_run():
    drawn = Drawn((Call("DraDriver", "trainer", {"namespace": dra.class_ref(Later(1, known=False))}),))  # type: ignore[arg-type]
    (problem,) = [each for each in run(drawn).problems if each.path.endswith(".namespace")]
    assert problem.code == "wrong-type"
    assert " at 0x" not in problem.message


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
