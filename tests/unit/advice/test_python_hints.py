from __future__ import annotations

import re

import pytest

import dra_infra as dra
from dra_infra.advice.program import check_program
from dra_infra.program.synth import synth_function

GPU = "gpu.nvidia.com"


def hint_of(select, code, **arguments):
    """The hint of the one problem with *code* of a claim in a program."""
    body = lambda: dra.GpuClaim("c", device_class=GPU, select=select, **arguments)  # noqa: E731
    (problem,) = [each for each in check_program(synth_function(body)) if each.code == code]
    return problem.hint


@pytest.mark.parametrize(
    ("select", "code", "line"),
    [
        (dra.gpu.memory >= "80Gi", "memory-just-missed", 'dra.gpu.memory >= "79Gi"'),
        (dra.gpu.memory >= "80Mi", "quantity-unit-slip", '"80Gi"'),
        (dra.attribute(f"{GPU}/memory") >= 40, "attribute-is-capacity", 'dra.gpu.memory >= "40Gi"'),
        (dra.attribute(f"{GPU}/memory") >= 80, "attribute-is-capacity", 'dra.gpu.memory >= "79Gi"'),
        (dra.attribute(f"{GPU}/model") == "x", "attribute-not-known", 'dra.gpu.product.contains("H100")'),
        (dra.attribute("nvidia.com/productName") == "x", "attribute-wrong-domain", "dra.gpu.product"),
        (
            dra.attribute(f"{GPU}/driverVersion") == "535",
            "cel-value-type",
            'dra.gpu.driver_version == "535.0.0"',
        ),
        (dra.gpu.product.contains("L4"), "product-name-in-others", r'.matches(r"\bL4\b")'),
        (
            dra.cel(f'device.attributes["{GPU}"].productName == 3'),
            "cel-value-type",
            'dra.gpu.product == "3"',
        ),
    ],
)
def test_the_line_to_write_is_python_where_the_program_is(select, code, line):
    hint = hint_of(select, code)
    assert line in hint
    assert "device." not in hint
    for written in re.findall(r'dra\.gpu\.\w+(?: [<>=]+ "[^"]*"|\.contains\("[^"]*"\))', hint):
        assert eval(written, {"dra": dra}).expression()  # noqa: S307  (what the hint says compiles)


def test_arguments_are_named_as_python_has_them():
    hint = hint_of(dra.gpu.profile == "1g.10gb", "attribute-of-other-device")
    assert hint == 'write device_class="mig.nvidia.com" for them'
    same = [dra.MatchAttribute(f"{GPU}/memory")]
    assert f'dra.MatchAttribute("{GPU}/productName")' in hint_of(
        None, "attribute-is-capacity", constraints=same
    )


def test_a_read_without_a_guard_stays_the_cel_that_it_is_in():
    text = f'device.capacity["{GPU}"].memory.compareTo(quantity("40Gi")) >= 0'
    assert hint_of(dra.cel(text), "cel-unguarded-read").endswith(f"&& {text}")
