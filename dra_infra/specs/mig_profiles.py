"""MIG profiles by name: which GPUs have them, what else they are called, and the test for their devices."""

from __future__ import annotations

import difflib
import operator
from functools import lru_cache, reduce

from dra_infra.catalog.mig import find_mig_profile, mig_products, mig_profiles_of
from dra_infra.catalog.vocabulary import mig_profiles
from dra_infra.cel import Selector, gpu
from dra_infra.errors import Problem
from dra_infra.specs.product_names import read_products


def products_with_mig(written: object) -> tuple[list[Problem], tuple[str, ...]]:
    """The products that `gpu=` means, of those whose profiles are known; all of these for None.

    Returns:
        Problems with codes `wrong-type`, `product-not-known`, `mig-not-supported`; NVML names in a fixed order.
    """
    if written is None:
        return [], mig_products()
    problems, found = read_products(written, example="H100")
    if problems:
        return problems, ()
    products = tuple(sorted(set(found) & set(mig_products())))
    if products:
        return [], products
    return [
        Problem(
            path="gpu",
            code="mig-not-supported",
            message=f"{' and '.join(found)} cannot do MIG, or the profiles are not known here",
            hint="`dra-infra catalog mig` lists GPUs with their profiles; whole GPUs are dra.GpuClaimTemplate",
        )
    ], ()


def check_profile(profile: str, products: tuple[str, ...], path: str, *, one_gpu: str = "") -> list[Problem]:
    """Whether one of *products* has a profile of that name: `mig-profile-not-known`.

    Args:
        profile: As the user wrote it.
        products: NVML names.
        path: Where it is written.
        one_gpu: What the user wrote in `gpu=`; empty when all products count.
    """
    if products_of(profile, products) or (not one_gpu and _is_only_a_name(profile)):
        return []
    known = list(dict.fromkeys(each.name for product in products for each in mig_profiles_of(product)))
    near = difflib.get_close_matches(profile.lower()[:40], known, n=1, cutoff=0.5)
    if profile in mig_profiles():
        # Well written, of another GPU: what has as much compute is meant.
        near = [each for each in known if each.partition(".")[0] == profile.partition(".")[0]]
    hint = f"did you mean {near[0]!r}? " if near else ""
    if one_gpu:
        hint += f"{one_gpu} has {', '.join(known)}"
    elif not near:
        hint = 'name the GPU, gpu="H100" for example, and the profiles that it has are listed here'
    shown = repr(profile[:40])
    return [
        Problem(
            path=path,
            code="mig-profile-not-known",
            message=f"{one_gpu} has no MIG profile {shown}"
            if one_gpu
            else f"no GPU that is known here has a MIG profile {shown}",
            hint=hint.strip(),
        )
    ]


@lru_cache(maxsize=4096)
def products_of(profile: str, products: tuple[str, ...]) -> tuple[str, ...]:
    """Those of *products* that have a profile of that name, or had it under older kernel drivers."""
    return tuple(product for product in products if find_mig_profile(profile, product))


@lru_cache(maxsize=1024)
def profile_test(profiles: tuple[str, ...], products: tuple[str, ...]) -> Selector:
    """True for MIG devices of one of *profiles*, whatever kernel driver named them.

    A profile that older kernel drivers call otherwise is found under both names; where other products use that other
    name for something else, it counts on its own product alone.
    """
    everywhere = list(profiles)
    elsewhere: list[tuple[str, str]] = []
    for profile in profiles:
        having = products_of(profile, products)
        renamed = {product: other for product in having if (other := _other_name(profile, product))}
        for other in sorted(set(renamed.values())):
            if set(renamed) == set(having) and products_of(other, products) == having:
                everywhere.append(other)
            else:
                elsewhere += [(product, other) for product in renamed if renamed[product] == other]
    everywhere = list(dict.fromkeys(everywhere))
    named = gpu.profile == everywhere[0] if len(everywhere) == 1 else gpu.profile.one_of(*everywhere)
    tests = [(gpu.product == product) & (gpu.profile == other) for product, other in elsewhere]
    return reduce(operator.or_, [named, *tests])


def _other_name(profile: str, product: str) -> str:
    """What other kernel drivers call the profile; empty when all call it the same."""
    for each in mig_profiles_of(product):
        if each.older_name and profile in (each.name, each.older_name):
            return each.older_name if profile == each.name else each.name
    return ""


def _is_only_a_name(profile: str) -> bool:
    """Whether it is of a GPU of which nothing but the names of its profiles is known."""
    return profile in mig_profiles() and not any(
        each.name.startswith(profile[: profile.index("gb") + 2])
        for product in mig_products()
        for each in mig_profiles_of(product)
    )
