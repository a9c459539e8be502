"""The smallest MIG profiles with at least so much memory and compute, per GPU, as alternatives in one order."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import cache, lru_cache
from typing import Final

from dra_infra.catalog.mig import MigProfile, mig_products, mig_profiles_of, placements_of
from dra_infra.errors import Problem
from dra_infra.model.quantity import Quantity
from dra_infra.specs.arguments import PLAIN_HINT, is_output, wrong_type
from dra_infra.specs.mig_profiles import products_of
from dra_infra.specs.request_records import MAX_ALTERNATIVES

_MIB: Final = 2**20


def check_size(memory: object, compute: object) -> list[Problem]:
    """Whether these are an amount of memory and a number of compute slices: `wrong-type`, `count-below-one`."""
    problems = []
    if memory is not None and (not isinstance(memory, str) or _mib(memory) is None):
        hint = PLAIN_HINT if is_output(memory) else 'write memory="20Gi"'
        problems.append(wrong_type("memory", memory, "an amount of memory", hint))
    if compute is not None and (not isinstance(compute, int) or isinstance(compute, bool)):
        hint = PLAIN_HINT if is_output(compute) else "write compute=2"
        problems.append(wrong_type("compute", compute, "a number of compute slices", hint))
    elif isinstance(compute, int) and compute < 1:
        message, hint = f"{compute} is below 1", "leave it out where any will do"
        problems.append(Problem(path="compute", code="count-below-one", message=message, hint=hint))
    return problems


@lru_cache(maxsize=1024)
def smallest_profiles(
    memory: str | None, compute: int | None, products: tuple[str, ...], *, count: int, same_gpu: bool
) -> tuple[tuple[str, ...], ...]:
    """The profiles to try one after the other; those at one place share no product.

    Each product has the smallest profile, without media or graphics extensions, that is large enough. Where its memory
    is not known, NVML may report less than its name says, and larger ones follow until one is large enough even so:
    what is reported decides. Small ones come first.

    Args:
        memory: An amount such as `20Gi`.
        compute: Compute slices, of the 7 or 4 of a GPU.
        products: NVML names.
        count: How many devices are wanted.
        same_gpu: Whether they must fit one GPU.
    """
    wanted = (_mib(memory) if memory else None) or Fraction(0)
    found: dict[str, MigProfile] = {}
    for product in products:
        for profile in _large_enough(product, wanted, compute or 1):
            if not same_gpu or placements_of([profile.name] * count, product) is not None:
                found.setdefault(profile.name, profile)
    order = sorted(found.values(), key=lambda each: (_named_mib(each), each.compute_slices, each.name))
    return _merged([(profile.name,) for profile in order], products)


def check_found(
    memory: str | None,
    compute: int | None,
    products: tuple[str, ...],
    *,
    count: int,
    same_gpu: bool,
    gpu: str,
) -> Problem:
    """What to say where no product has such a profile: `mig-none-large-enough`."""
    alone = same_gpu and smallest_profiles(memory, compute, products, count=1, same_gpu=False)
    largest = max(
        (profile for product in products for profile in mig_profiles_of(product)),
        key=lambda each: (_named_mib(each), each.compute_slices),
    )
    wish = " and ".join(
        filter(
            None, (f"{memory} of memory" if memory else "", f"{compute} compute slices" if compute else "")
        )
    )
    if alone:
        message = f"no {gpu or 'GPU'} has room for {count} MIG devices with {wish} each"
        hint = "leave same_gpu out, or ask for fewer or smaller ones"
    else:
        message = f"no MIG profile of {gpu or 'any GPU that is known here'} has {wish}"
        hint = f"the largest is {largest.name}; for more, ask for whole GPUs: dra.GpuClaimTemplate"
    path = "count" if alone else "memory" if memory else "compute"
    return Problem(path=path, code="mig-none-large-enough", message=message, hint=hint)


def _large_enough(product: str, memory: Fraction, compute: int) -> Iterator[MigProfile]:
    plain = [each for each in mig_profiles_of(product) if not each.attributes]
    slices = 0
    for profile in sorted(plain, key=lambda each: (each.memory_slices, each.compute_slices)):
        known = profile.memory_mib if profile.memory_mib is not None else _named_mib(profile)
        # As many slices are as much memory.
        if profile.compute_slices < compute or known < memory or profile.memory_slices == slices:
            continue
        yield profile
        slices = profile.memory_slices
        if profile.memory_mib is not None or known * _least_share() >= memory:
            return


def _merged(places: list[tuple[str, ...]], products: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """As many places as a request may have: from the large end, neighbours that no product has both of are joined."""
    index = len(places) - 1
    while len(places) > MAX_ALTERNATIVES and index > 0:
        before, behind = places[index - 1], places[index]
        if not {each for name in before for each in products_of(name, products)} & {
            each for name in behind for each in products_of(name, products)
        }:
            places[index - 1 : index + 1] = [before + behind]
        index -= 1
    return tuple(places)


@cache
def _least_share() -> Fraction:
    """The least part of what a name says that NVML is known to report: 16 GiB of 1g.18gb."""
    known: Mapping[MigProfile, int] = {
        profile: profile.memory_mib
        for product in mig_products()
        for profile in mig_profiles_of(product)
        if profile.memory_mib is not None
    }
    return min(mib / _named_mib(profile) for profile, mib in known.items())


def _named_mib(profile: MigProfile) -> Fraction:
    """The memory that the name says, in MiB."""
    match = re.search(r"(\d+)gb", profile.name)
    return Fraction(int(match[1]) if match else 0) * 1024


def _mib(memory: str) -> Fraction | None:
    try:
        value = Quantity.parse(memory).value
    except ValueError:
        return None
    return value / _MIB if value > 0 else None
