from __future__ import annotations

import pytest

import dra_infra as dra
from dra_infra.validation.products import check_products

PRODUCT = dra.gpu.product


@pytest.mark.parametrize(
    ("selector", "hint"),
    [
        (PRODUCT.contains("H1OO"), "did you mean 'H100'?"),
        (PRODUCT.contains("h100"), "did you mean 'H100'?"),
        (PRODUCT == "NVIDIA H100 80GB HBM", "did you mean 'NVIDIA H100 80GB HBM3'?"),
        (PRODUCT.startswith("Nvidia A100"), "did you mean 'A100'?"),
        (PRODUCT.contains("Radeon Instinct"), "products are named as nvidia-smi prints them"),
    ],
)
def test_a_misspelt_product_is_a_warning_with_the_nearest_name(selector: dra.Selector, hint: str):
    (problem,) = check_products(selector.expression(), path="select")
    assert (problem.path, problem.code, problem.severity) == ("select", "product-not-known", "warning")
    if "A100" not in hint:
        assert problem.hint == hint


@pytest.mark.parametrize(
    "selector",
    [
        PRODUCT.contains("H100"),
        PRODUCT == "NVIDIA A100-SXM4-80GB",
        PRODUCT.endswith("PCIe"),
        PRODUCT != "anything",
        PRODUCT.matches("H1.*"),
        dra.gpu.architecture == "Hoper",
        dra.cel("true"),
    ],
)
def test_what_may_match_or_is_not_judged_passes(selector: dra.Selector):
    assert list(check_products(selector.expression(), path="select")) == []


def test_a_program_shows_the_warning_at_the_component():
    program = dra.testing.synth(lambda: dra.GpuDeviceClass("h100", select=PRODUCT.contains("H1OO")))
    (problem,) = program.problems
    assert problem.path == 'GpuDeviceClass("h100").spec.selectors[1].cel.expression'
    assert problem.code == "product-not-known"
    assert problem.place is not None
