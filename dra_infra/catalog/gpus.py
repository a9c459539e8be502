"""GPU products by the names that people write, and what they can do."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from functools import cache

from pydantic import Field

from dra_infra.catalog.records import Fact, gpu_products
from dra_infra.catalog.vocabulary import read_data


class Capability(Fact):
    """What a GPU can do.

    Args:
        since: The oldest CUDA compute capability that can.
        except_: Which newer ones cannot, in words.
    """

    since: str = Field(pattern=r"^\d+\.\d+\.\d+$")
    except_: str = Field(default="", alias="except")


@cache
def capabilities() -> Mapping[str, Capability]:
    """Every capability that can be asked for, by name."""
    return {name: Capability.model_validate(entry) for name, entry in read_data("capabilities.yaml").items()}


def capabilities_of(product: str) -> tuple[str, ...]:
    """What a product can do, by its NVML name; what `except` says is not taken off.

    Raises:
        KeyError: *product* is none of `gpu_products()`.
    """
    own = _version(gpu_products()[product].cuda_compute_capability)
    return tuple(name for name, each in capabilities().items() if own >= _version(each.since))


def find_products(text: str) -> tuple[str, ...]:
    """The NVML names that are meant: one of an NVML name or its node label, several of `H100`; none where unknown.

    Case, blanks and hyphens do not count. `NVIDIA H200` is that product, `H200` it and the `NVIDIA H200 NVL`.
    """
    full, short = _names()
    return full.get(_letters(text)) or short.get(_bare(text), ())


def nearest_product(text: str) -> str:
    """The known name that a misspelt one is most like, as people write it; empty when none is."""
    written = {_bare(name): name for name in gpu_products()}
    written |= {_bare(short): short for each in gpu_products().values() for short in each.short_names}
    near = difflib.get_close_matches(_bare(text)[:80], written, n=1)
    return written[near[0]] if near else ""


@cache
def _names() -> tuple[Mapping[str, tuple[str, ...]], Mapping[str, tuple[str, ...]]]:
    """NVML names, and the names that people write, each to the products that are meant."""
    short: dict[str, tuple[str, ...]] = {}
    for name, product in gpu_products().items():
        for written in map(_bare, product.short_names):
            short[written] = (*short.get(written, ()), name)
    return {_letters(name): (name,) for name in gpu_products()}, {
        _bare(name): (name,) for name in gpu_products()
    } | short


def _letters(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower())


def _bare(text: str) -> str:
    """Without the maker, whose name is often left out."""
    return _letters(text).removeprefix("nvidia").removeprefix("tesla")


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in text.split("."))
