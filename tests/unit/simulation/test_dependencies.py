from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_infra.cel import DeviceView, Failed, compile_expression
from dra_infra.simulation.demand import Selector
from dra_infra.simulation.dependencies import find_dependencies
from dra_infra.simulation.inventory import gather_inventory
from dra_infra.simulation.matching import DeviceMatching
from dra_infra.simulation.outcomes import Aborted

D = "device.attributes['gpu.example.com']"
C = "device.capacity['gpu.example.com']"
MODEL = ("attributes", "gpu.example.com", "model")
MEMORY = ("capacity", "gpu.example.com", "memory")


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("true", set()),
        ("device.driver == 'x'", set()),
        (f"{D}.model == 'x'", {MODEL}),
        (f"{D}['model'] == 'x'", {MODEL}),
        (f"{D}.?model.orValue('') == 'x'", {MODEL}),
        (f"{D}[?'model'].orValue('') == 'x'", {MODEL}),
        (f"has({D}.model)", {MODEL}),
        (f"'model' in {D}", {MODEL}),
        (f"{C}.memory.compareTo(quantity('1Gi')) > 0 && {D}.model == 'x'", {MODEL, MEMORY}),
        ("'gpu.example.com' in device.attributes", {("attributes", "gpu.example.com", "")}),
        (f"[{D}.model].exists(x, x == 'y')", {MODEL}),
    ],
)
def test_constant_names_are_found(expression, expected):
    assert find_dependencies(expression) == expected


@pytest.mark.parametrize(
    "expression",
    [
        f"{D}.exists(name, name == 'model')",
        f"size({D}) == 3",
        f"{D}['mo' + 'del'] == 'x'",
        "device.attributes.exists(domain, domain == 'x')",
        f"cel.bind(all, {D}, all.model == 'x')",
        f"{D}[device.driver] == 'x'",
    ],
)
def test_expression_that_may_read_anything_is_not_guessed(expression):
    assert find_dependencies(expression) is None


EXPRESSIONS = [
    f"{D}.model == 'x'",
    f"{D}.?model.orValue('x') == 'x'",
    f"'model' in {D} && {D}.n > 1",
    "'other.example.com' in device.attributes",
    f"size({D}) > 1",
    f"{D}.exists(name, name == 'n')",
    f"{C}.memory.compareTo(quantity('10Gi')) >= 0",
    "device.driver == 'gpu.example.com'",
]


@given(
    pool=st.lists(
        st.fixed_dictionaries(
            {},
            optional={
                "model": st.sampled_from(["x", "y"]),
                "n": st.integers(min_value=1, max_value=2),
                "other.example.com/n": st.just(1),
                "memory": st.sampled_from(["8Gi", "16Gi"]),
            },
        ),
        min_size=1,
        max_size=5,
    ),
    expression=st.sampled_from(EXPRESSIONS),
)
def test_one_evaluation_per_kind_gives_the_verdict_of_each_device(build, pool, expression):
    published = []
    for index, device in enumerate(pool):
        attributes = {name: value for name, value in device.items() if name != "memory"}
        published.append(build.a_device(f"d{index}", attributes, memory=device.get("memory", "")))
    inventory = gather_inventory(build.a_fleet(build.a_slice("n", published)))
    matching = DeviceMatching(inventory)
    program = compile_expression(expression)
    for index, device in enumerate(inventory.devices):
        verdict = program.evaluate(
            DeviceView(device.driver, device.device.attributes, device.device.capacity)
        )
        judged = matching.test(Selector("c", 0, expression), index)
        if isinstance(verdict, Failed):
            assert isinstance(judged, Aborted)
            assert f"gpu.example.com/n/d{index}" in judged.text
        else:
            assert judged is (type(verdict).__name__ == "Match")


def test_equal_devices_are_evaluated_once(build, monkeypatch):
    calls = []
    evaluate = compile_expression("true").__class__.evaluate
    monkeypatch.setattr(
        "dra_infra.cel.evaluate.Program.evaluate", lambda self, view: calls.append(1) or evaluate(self, view)
    )
    fleet = build.a_fleet(*(build.gpus(f"n{index}", 8, model="x") for index in range(20)))
    build.place_request(fleet, build.a_request("gpu", f"{D}.model == 'x'", count=4))
    assert len(calls) == 1
