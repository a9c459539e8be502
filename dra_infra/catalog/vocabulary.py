"""Names and numbers that hints draw on: GPU products, MIG profiles, and common mistakes in writing them.

Plain classes on purpose: validation loads this on every start, and an unknown key of a data file fails all the same.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import resources
from typing import Any, Final, Literal, NamedTuple

import yaml

SMALLEST_MEMORY_MIB: Final = 4864
"""Memory of the smallest device that is known: 1g.5gb of an A100 40GB, as nvidia-smi prints it."""


class Misnomer(NamedTuple):
    """A name that people write and nobody publishes.

    Args:
        pattern: Regular expression for the whole name, in any case of letters.
        source: Where it is written.
        use: What to write instead.
        domain: Under which it is written; empty for a domain.
        attribute: The attribute that is meant, if it is one.
    """

    pattern: str
    source: str
    use: str
    domain: str = ""
    attribute: str = ""


@cache
def product_memory() -> dict[str, int | None]:
    """Memory in MiB of every GPU product that is known at all, by name, sorted; a newer product may be missing."""
    known: dict[str, int | None] = {}
    for group in read_data("product_names.yaml").values():
        known |= group["memory_mib"]
    return dict(sorted(known.items()))


@cache
def product_names() -> tuple[str, ...]:
    """The names of GPU products that are known at all, sorted."""
    return tuple(product_memory())


@cache
def mig_profiles() -> tuple[str, ...]:
    """MIG profiles as the attribute `profile` holds them, sorted."""
    found = {
        f"{profile}{suffix}"
        for group in read_data("mig_profiles.yaml").values()
        for profiles in group["profiles"].values()
        for profile in profiles
        for suffix in ("", *group["suffixes"])
    }
    return tuple(sorted(found))


@cache
def misnomers(kind: Literal["attributes", "domains"]) -> tuple[Misnomer, ...]:
    """Names that nobody publishes, in the order in which they are tried."""
    return tuple(Misnomer(**entry) for entry in read_data("misnomers.yaml")[kind])


def letters_of(name: str) -> str:
    """The letters and digits of a name, which are the same in all its spellings."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def numbers_of(version: str) -> tuple[int, ...]:
    """The numbers of a version, by which versions are ordered."""
    return tuple(int(number) for number in version.split("."))


def read_data(file: str) -> dict[str, Any]:
    """The content of a file of `data/`."""
    text = resources.files("dra_infra.catalog").joinpath("data", file).read_text(encoding="utf-8")
    data: dict[str, Any] = yaml.load(text, Loader=yaml.CSafeLoader)
    return data
