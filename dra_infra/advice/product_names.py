"""Advice on a part of a product's name that the names of other products hold too: `A10` is in `A100` and `A10G`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache
from typing import Any, Final

from dra_infra.advice.comparisons import Test
from dra_infra.advice.findings import Finding, Place, show
from dra_infra.advice.study import Study
from dra_infra.catalog.vocabulary import product_memory, product_names, read_data
from dra_infra.kubernetes.api import DeviceAttribute, DeviceCapacity
from dra_infra.kubernetes.cel import Environment
from dra_infra.output.wording import join_words

PRODUCT: Final = Place("attribute", "gpu.nvidia.com", "productName")
_DRIVER: Final = PRODUCT.domain
_TYPES: Final = ("gpu", "mig")
"""Devices that have the product's name."""
_PARTS: Final = ("contains", "startsWith")
_NAMING: Final = frozenset({*_PARTS, "==", "in", "endsWith"})
_QUOTABLE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9 -]*")


@lru_cache(maxsize=256)
def find_named(text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The products that hold *text* as whole words of their names, and those that hold it only as a part of a word."""
    holding = [name for name in product_names() if text in name]
    whole = re.compile(rf"(?<![A-Za-z0-9]){re.escape(text)}(?![A-Za-z0-9])")
    named = tuple(name for name in holding if whole.search(name))
    return named, tuple(name for name in holding if name not in named)


def check_products(
    tests: Iterable[Test], studies: Sequence[Study], environment: Environment
) -> Iterator[Finding]:
    """Find the products that pass for a part of their name, beside those of which it is the model.

    Args:
        tests: The tests of one selector.
        studies: All selectors that the devices must pass, which may leave some products out.
        environment: What expressions mean.
    """
    for test in tests:
        if test.place != PRODUCT or test.kind != "string" or test.operator not in _PARTS:
            continue
        text = test.literals[0].text
        named, others = find_named(text)
        if not named or not others or not any(_may_pass(name, studies, environment) for name in named):
            continue
        meant = {name for each in studies for name in _named_by(each.tests)}
        passing = [name for name in others if name not in meant and _may_pass(name, studies, environment)]
        if passing:
            anchor = "^" if test.operator == "startsWith" else r"\b"
            passes = "passes" if len(passing) == 1 else "pass"
            yield Finding(
                "product-name-in-others",
                f"{show(text)} is in {join_words(_words_with(text, passing))} too: {join_words(passing)} {passes} "
                f"beside {join_words(list(named))}",
                f'write .matches(r"{anchor}{text}\\b") in place of it, or name all that are meant'
                if _QUOTABLE.fullmatch(text)
                else "",
            )


def _words_with(text: str, names: Iterable[str]) -> list[str]:
    """The words around *text* in the names, each once."""
    around = re.compile(rf"[A-Za-z0-9]*{re.escape(text)}[A-Za-z0-9]*")
    return sorted({found[0] for name in names if (found := around.search(name))})


def _named_by(tests: Iterable[Test]) -> Iterator[str]:
    """The products that tests name by whole words."""
    for test in tests:
        if test.place == PRODUCT and test.kind == "string" and test.operator in _NAMING:
            for text in test.values:
                yield from find_named(text)[0]


def _may_pass(product: str, studies: Sequence[Study], environment: Environment) -> bool:
    """True unless every device of the product fails one of the selectors; what is not known of it decides nothing."""
    # The interpreter takes 12 ms to load, and few selectors hold such a part of a name.
    from dra_infra.kubernetes.cel import DeviceView, compile_expression

    for type_ in _TYPES:
        attributes, capacity = _describe(product, type_)
        known = {("attribute", name) for name in attributes} | {("capacity", name) for name in capacity}
        view = DeviceView(_DRIVER, attributes, capacity)
        if not any(
            known.issuperset((place.section, place.name) for place in each.mentions)
            and compile_expression(each.text, environment).matches(view) is False
            for each in studies
        ):
            return True
    return False


@cache
def _facts() -> dict[str, Any]:
    return read_data("gpus.yaml")


@lru_cache(maxsize=256)
def _describe(product: str, type_: str) -> tuple[dict[str, DeviceAttribute], dict[str, DeviceCapacity]]:
    """Attributes and capacities that are known of a device of this product."""
    fact = _facts().get(product, {})
    texts = {"type": type_, "productName": product} | {
        name: fact[name] for name in ("brand", "architecture") if fact.get(name)
    }
    attributes = {f"{_DRIVER}/{name}": DeviceAttribute(string=text) for name, text in texts.items()}
    if fact:
        version = DeviceAttribute(version=fact["cuda_compute_capability"])
        attributes[f"{_DRIVER}/cudaComputeCapability"] = version
    memory = product_memory()[product]
    if memory is None or type_ != "gpu":
        return attributes, {}
    return attributes, {f"{_DRIVER}/memory": DeviceCapacity(value=f"{memory}Mi")}
