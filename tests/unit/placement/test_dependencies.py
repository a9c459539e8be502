from __future__ import annotations

import pytest

from dra_infra.kubernetes.cel import compile_expression, find_dependencies

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


def test_equal_devices_are_evaluated_once(build, monkeypatch):
    calls = []
    evaluate = compile_expression("true").__class__.evaluate
    monkeypatch.setattr(
        "dra_infra.kubernetes.cel.evaluate.Program.evaluate",
        lambda self, view: calls.append(1) or evaluate(self, view),
    )
    fleet = build.a_fleet(*(build.gpus(f"n{index}", 8, model="x") for index in range(20)))
    build.place_request(fleet, build.a_request("gpu", f"{D}.model == 'x'", count=4))
    assert len(calls) == 1
