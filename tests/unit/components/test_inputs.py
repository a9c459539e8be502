"""Outputs as arguments: taken where they are documented, also when nobody knows them yet, and refused by name elsewhere."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pulumi
import pytest
from pulumi.runtime import rpc

import dra_infra as dra
from dra_infra.components.component import Component
from dra_infra.errors import Problem
from dra_infra.kubernetes.api import Placeholder, is_placeholder, plain_text
from dra_infra.markers import marker_kind
from dra_infra.program.surroundings import UNKNOWN_VALUE, fields_to_plain
from dra_infra.program_objects import UNKNOWN
from tests.support.components.family import CLAIMS, FAMILY, OBJECTS, make, run, unknown

SAMPLES: dict[str, Any] = {"namespace": "ml", "object_name": "mine"}
"""Values for the arguments that may be Outputs, by name; the rest is mappings of labels."""
KEYS = {"hard": "pods", "settings": "mig_delay"}
"""Keys of mappings that do not take any."""


def inputs_of(made: type[Component]) -> dict[str, str]:
    """The arguments of a component that may be Outputs, or hold some, with their types."""
    parameters = inspect.signature(made.__init__).parameters.values()
    return {each.name: str(each.annotation) for each in parameters if "Input[" in str(each.annotation)}


def shaped(row: str, argument: str, value: Any) -> Any:
    """*value* where an argument takes it: alone, as a value of a mapping, or in a list of those."""
    type_ = inputs_of(FAMILY[row][0])[argument].partition("Input[")[0]
    value = {KEYS.get(argument, "key"): value} if "Mapping[" in type_ else value
    return [value] if "Sequence[" in type_ else value


def cases(rows: Iterable[str]) -> list[tuple[str, str]]:
    return [(row, argument) for row in rows for argument in inputs_of(FAMILY[row][0])]


@pytest.mark.parametrize(("row", "argument"), cases(OBJECTS))
@pytest.mark.parametrize("known", [True, False], ids=["known", "unknown"])
def test_arguments_that_are_inputs_may_be_outputs(row: str, argument: str, known: bool):
    def body() -> None:
        output = pulumi.Output.from_input(SAMPLES.get(argument, "x")) if known else unknown()
        make(row, **{argument: shaped(row, argument, output)})

    program, seen = run(body)
    assert [str(each) for each in program.problems] == []
    field = {"object_name": "name"}.get(argument, argument)
    for child in seen.children:
        found = fields_to_plain(child.object)["metadata"][field]
        said = found["key"] if isinstance(found, dict) else found
        # A claim or class whose name is not known has a text that stands for it, by which others name it.
        kinds = ":DeviceClass", ":ResourceClaim", ":ResourceClaimTemplate"
        has_stand_in = field == "name" and child.type.endswith(kinds)
        unknown_text = Placeholder(f"{plain_text(UNKNOWN)} (it)") if has_stand_in else UNKNOWN
        assert said == (SAMPLES.get(argument, "x") if known else unknown_text)


@pytest.mark.parametrize(("row", "argument"), cases(row for row in FAMILY if row not in OBJECTS))
def test_settings_of_charts_may_be_known_after_up(row: str, argument: str):
    def body() -> None:
        make(row, **{argument: shaped(row, argument, unknown())})

    program, seen = run(body)
    assert [str(each) for each in program.problems if each.severity == "error"] == []
    assert UNKNOWN_VALUE in str([each.object for each in seen.children])


@pytest.mark.parametrize("row", OBJECTS)
def test_every_object_takes_outputs_for_its_metadata(row: str):
    expected = {"object_name", "labels", "annotations"} | ({"namespace"} if row in CLAIMS else set())
    assert set(inputs_of(FAMILY[row][0])) == expected


@pytest.mark.parametrize(
    "row", [row for row in CLAIMS if not row.startswith(("MigPartition", "NvlinkGroup"))]
)
def test_a_class_that_is_not_known_yet_makes_a_name_that_is_not_known_yet(row: str):
    program, seen = run(lambda: make(row, device_class=dra.class_ref(unknown())))
    assert [str(each) for each in program.problems] == []
    (child,) = seen.children
    name = fields_to_plain(child.object)["metadata"]["name"]
    assert is_placeholder(name)
    assert marker_kind(name) == "unknown"


WRONG = "Hush, not OK"
"""What no name, label or quantity may be."""


@pytest.mark.parametrize(("row", "argument"), cases(FAMILY))
def test_a_secret_is_refused_where_a_plain_value_is_and_never_shown(row: str, argument: str):
    def problems_with(given: Callable[[], Any]) -> list[Problem]:
        program, seen = run(lambda: make(row, **{argument: shaped(row, argument, given())}))
        problems = [each for each in program.problems if each.severity == "error"]
        assert bool(problems) != any(
            WRONG in str(each.object) for each in seen.requests if each.type.startswith("kubernetes:")
        )
        return problems

    plain = problems_with(lambda: WRONG)
    secret = problems_with(lambda: pulumi.Output.secret(WRONG))

    assert {(each.path, each.code) for each in secret} == {(each.path, each.code) for each in plain}
    assert WRONG not in "".join(map(str, secret))
    assert all("[secret] is refused" in each.message for each in secret)


def test_secrets_are_judged_one_by_one_beside_what_is_plain():
    def body() -> None:
        secret = pulumi.Output.secret
        labels = {"bad": secret(WRONG), "good": secret("fine"), "plain": "also, bad"}
        make("GpuClaimTemplate", labels=labels, namespace=secret(WRONG), annotations={"a": secret(WRONG)})

    program, _ = run(body)

    assert {(each.path, "[secret]" in each.message) for each in program.problems} == {
        ("GpuClaimTemplate(\"it\").labels['bad']", True),
        ("GpuClaimTemplate(\"it\").labels['plain']", False),
        ('GpuClaimTemplate("it").namespace', True),
    }
    assert WRONG not in str(program.problems)


def test_a_secret_mapping_is_named_by_its_argument_alone():
    def body() -> None:
        make("GpuClaim", labels=pulumi.Output.secret({"Hush hush": "x", "team": WRONG}))

    program, _ = run(body)

    assert {(each.path, each.code) for each in program.problems} == {
        ('GpuClaim("it").labels', "invalid-label")
    }
    assert "ush" not in str(program.problems).replace("refused", "")


def test_a_secret_class_is_judged_as_the_server_would():
    program, seen = run(lambda: make("GpuClaim", device_class=dra.class_ref(pulumi.Output.secret(WRONG))))

    (problem,) = program.problems
    path = "spec.devices.requests[0].exactly.deviceClassName"
    assert (problem.path, problem.code) == (f'GpuClaim("it").{path}', "invalid-name")
    assert "[secret] is refused" in problem.message
    assert not [each for each in seen.requests if each.type.startswith("kubernetes:")]


@pytest.mark.parametrize(
    "toleration",
    [{"key": WRONG}, {"value": WRONG}, {"key": "a", "effect": WRONG}, {"operator": WRONG}],
    ids=str,
)
def test_a_secret_in_a_toleration_is_judged_as_a_plain_one(toleration: dict[str, str]):
    def problems_with(wrap: Callable[[str], Any]) -> list[Problem]:
        def body() -> None:
            make("NodePlugin", tolerations=[{key: wrap(value) for key, value in toleration.items()}])

        return list(run(body)[0].problems)

    plain, secret = problems_with(str), problems_with(pulumi.Output.secret)

    assert plain
    assert [(each.path, each.code) for each in secret] == [(each.path, each.code) for each in plain]
    assert WRONG not in str(secret)


def test_a_secret_that_is_not_known_yet_passes():
    async def value(of: Any) -> Any:
        return of

    def body() -> None:
        output = pulumi.Output(set(), value(rpc.UNKNOWN), value(False), value(True))
        make("GpuClaim", labels={"team": output}, namespace=output)

    assert run(body)[0].problems == ()


def structural(made: type[Component]) -> list[str]:
    """The arguments that decide what is made."""
    parameters = inspect.signature(made.__init__).parameters.values()
    return [
        each.name
        for each in parameters
        if each.kind is inspect.Parameter.KEYWORD_ONLY
        and "Input[" not in str(each.annotation)
        and "ClassArgument" not in str(each.annotation)
        and each.name != "opts"
    ]


# Of a GPU that pods share there are no parts, so `memory` and `shares` are refused as arguments, whatever they are.
STRUCTURAL = [
    (row, each) for row in OBJECTS if row != "SharedGpu across pods" for each in structural(FAMILY[row][0])
]


@pytest.mark.parametrize(("row", "argument"), STRUCTURAL)
def test_arguments_that_decide_the_structure_refuse_outputs_by_name(row: str, argument: str):
    program, seen = run(lambda: make(row, **{argument: pulumi.Output.from_input("1")}))
    paths = [each.path for each in program.problems]
    assert any(f".{argument}" in path for path in paths), paths
    assert not [each for each in seen.requests if "dra-infra:index:" in each.parent]


@pytest.mark.parametrize("row", OBJECTS)
def test_a_gate_that_the_release_of_the_driver_lacks_is_told_by_every_component(row: str):
    def gates(release: str | None, **given: bool) -> dict[str, str]:
        program, _ = run(lambda: make(row, driver_gates=given, driver_release=release))
        return {each.path.partition(".")[2]: each.code for each in program.problems if "gate" in each.code}

    assert gates(None, DynamicMg=True) == {"driver_gates.DynamicMg": "unknown-driver-gate"}
    assert gates("25.8", ConsumableShares=False) == {"driver_gates.ConsumableShares": "unknown-driver-gate"}
    assert gates("0.5", ConsumableShares=False) == {}
