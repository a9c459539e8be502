from __future__ import annotations

import re

import pytest

import dra_infra as dra
from dra_infra.catalog.vocabulary import product_names

CODE = "product-name-in-others"
PRODUCT = dra.gpu.product


def told(inputs, *selectors, of="gpu.nvidia.com"):
    """The messages of the code on a request with these selectors."""
    texts = [each if isinstance(each, str) else each.expression() for each in selectors]
    return [each for each in inputs.of_selector(*texts, of=of) if each.code == CODE]


@pytest.mark.parametrize(
    ("selector", "words", "hint"),
    [
        (PRODUCT.contains("A10"), {"A100", "A10G"}, r'.matches(r"\bA10\b")'),
        (PRODUCT.startswith("NVIDIA A10"), {"A100", "A10G"}, r'.matches(r"^NVIDIA A10\b")'),
        (PRODUCT.contains("L4"), {"L40", "L40S"}, r'.matches(r"\bL4\b")'),
        (PRODUCT.contains("B200"), {"GB200"}, r'.matches(r"\bB200\b")'),
        (
            'device.attributes["gpu.nvidia.com"].productName.contains("L40")',
            {"L40S"},
            r'.matches(r"\bL40\b")',
        ),
    ],
)
def test_a_model_that_is_a_part_of_other_models_is_told_with_their_names(inputs, selector, words, hint):
    (problem,) = told(inputs, selector)
    assert problem.severity == "warning"
    assert words <= set(re.findall(r"[A-Z0-9]+", problem.message))
    assert hint in problem.hint


@pytest.mark.parametrize(
    "selector",
    [
        PRODUCT.contains("H100"),
        PRODUCT.matches(r"\bA10\b"),
        PRODUCT == "NVIDIA A10",
        # No product is called that: the part is meant.
        PRODUCT.contains("H1"),
        ~PRODUCT.contains("A10"),
        PRODUCT.contains("A10") & ~PRODUCT.contains("A100") & ~PRODUCT.contains("A10G"),
        PRODUCT.contains("A10") | PRODUCT.contains("A100") | PRODUCT.contains("A10G"),
        PRODUCT.contains("B200") & (dra.gpu.memory < "180Gi"),
        PRODUCT.contains("L4") & (dra.gpu.memory < "30Gi"),
    ],
    ids=repr,
)
def test_a_part_that_no_other_product_passes_with_is_left_alone(inputs, selector):
    assert told(inputs, selector) == []


def test_every_selector_that_a_device_must_pass_counts(inputs):
    (problem,) = told(inputs, PRODUCT.contains("A10"), dra.gpu.memory < "30Gi")
    assert "A10G" in problem.message
    assert "A100" not in problem.message
    assert told(inputs, PRODUCT.contains("L4"), dra.gpu.memory < "30Gi") == []


@pytest.mark.parametrize(
    "word", sorted({word for name in product_names() for word in re.findall(r"[A-Za-z0-9]+", name)})
)
def test_each_word_of_the_catalogue_takes_the_products_that_have_it_within_another_word(inputs, word):
    others = {name for name in product_names() if word in name and word not in re.split(r"[ -]", name)}
    problems = told(inputs, PRODUCT.contains(word))
    assert bool(problems) == bool(others)
    if others and len(others) <= 4:
        assert all(name in problems[0].message for name in others)


def test_the_whole_name_is_offered_where_a_part_would_take_others_too(inputs):
    found = inputs.of_selector((PRODUCT == "A10").expression())
    (problem,) = [each for each in found if each.code == "product-not-known"]
    assert problem.hint == 'write == "NVIDIA A10"'
