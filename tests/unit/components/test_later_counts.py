"""Counts as Pulumi Inputs: the same objects as for plain numbers, and the same problems as soon as they are known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pulumi
import pytest

import dra_infra as dra
from dra_infra.program_objects import UNKNOWN
from tests.support.components.family import run, unknown

Body = Callable[[Any], Any]


def one(count: Any) -> Any:
    return dra.GpuClaimTemplate("it", device_class="h100", count=count, namespace="ml")


def two(count: Any) -> Any:
    requests = [
        dra.DeviceRequest("gpu", device_class="h100", count=count),
        dra.DeviceRequest("nic", device_class="nic", count=20),
    ]
    return dra.GpuClaim("it", requests=requests)


def alternatives(count: Any) -> Any:
    first = [
        dra.Alternative("h100", device_class="h100", count=count),
        dra.Alternative("a100", device_class="a100", count="all"),
    ]
    return dra.GpuClaim("it", first_available=first)


BODIES = [one, two, alternatives]


def later(value: Any) -> pulumi.Output[Any]:
    return pulumi.Output.from_input(value)


async def awaited(value: Any) -> Any:
    return value


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("wrap", [later, awaited, pulumi.Output.secret, lambda value: later(float(value))])
def test_a_count_that_is_an_input_makes_the_object_of_the_plain_number(body: Body, wrap: Body):
    plain, _ = run(lambda: body(3))
    program, _ = run(lambda: body(wrap(3)))
    assert program.problems == ()
    (expected,), (made,) = plain.objects, program.objects
    # What is made of a secret is one: name and count do not show.
    assert made.manifest == expected.manifest or wrap is pulumi.Output.secret
    assert made.ref.kind == expected.ref.kind


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("value", [0, -1, 33, True, "4", 2.5, None, "all"], ids=repr)
def test_what_a_plain_number_is_refused_for_an_input_is_refused_for_once_it_is_known(body: Body, value: Any):
    plain, _ = run(lambda: body(1 if value in ("all", None) else value))
    program, seen = run(lambda: body(later(value)))
    if value == "all":
        assert program.problems == ()
    elif value is None:
        assert {each.code for each in program.problems} == {"wrong-type"}
    else:
        assert (
            {(each.path, each.code, each.message) for each in program.problems}
            == {(each.path, each.code, each.message) for each in plain.problems}
            != set()
        )
        assert not [each for each in seen.requests if each.type.startswith("kubernetes:")]


def test_the_sum_of_counts_is_judged_once_all_are_known():
    def body() -> None:
        requests = [dra.DeviceRequest(name, device_class="h100", count=later(17)) for name in "ab"]
        dra.GpuClaim("it", requests=requests)

    program, _ = run(body)
    assert {each.path: each.code for each in program.problems} == {
        'GpuClaim("it").requests': "too-many-devices"
    }


def test_a_problem_names_the_line_of_the_component():
    program, _ = run(lambda: one(later(0)))
    (problem,) = program.problems
    assert problem.place is not None


def test_a_secret_count_is_never_shown():
    program, _ = run(lambda: one(pulumi.Output.secret(31337)))
    (problem,) = program.problems
    assert (problem.path, problem.code) == ('GpuClaimTemplate("it").count', "too-many-devices")
    assert "31337" not in str(problem)


@pytest.mark.parametrize("body", BODIES)
def test_a_count_that_is_not_known_yet_passes(body: Body):
    program, _ = run(lambda: body(unknown()))
    assert program.problems == ()
    (made,) = program.objects
    spec = made.manifest["spec"]
    (request, *_) = spec.get("spec", spec)["devices"]["requests"]
    leaf = request["exactly"] if "exactly" in request else request["firstAvailable"][0]
    assert leaf["count"] == UNKNOWN


def test_a_workload_takes_a_claim_whose_count_is_an_input():
    def body() -> None:
        one(later(2)).attach({"containers": [{"name": "train", "image": "i"}]})

    program, _ = run(body)
    assert program.problems == ()
