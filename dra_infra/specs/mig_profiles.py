"""MIG profiles by name: which GPUs have them, what else they are called, and the test for their devices.

`MigWish` is what people ask for when they want MIG devices, with checks of what is wrong with that whatever the GPU.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import Any, Final, NamedTuple

from dra_infra.catalog.mig import find_mig_profile, mig_products, mig_profiles_of
from dra_infra.catalog.vocabulary import mig_profiles
from dra_infra.errors import Problem
from dra_infra.kubernetes.api import names
from dra_infra.output.wording import nearest
from dra_infra.selectors.gpu_selectors import gpu
from dra_infra.selectors.selector import Selector
from dra_infra.specs.arguments import check_positive, check_total, is_list, wrong_plain_type
from dra_infra.specs.products import read_products


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
    """Checks that one of *products* has a profile of that name: `mig-profile-not-known`.

    Args:
        profile: As the user wrote it.
        products: NVML names.
        path: Where it is written.
        one_gpu: What the user wrote in `gpu=`; empty when all products count.
    """
    if products_of(profile, products) or (not one_gpu and _is_without_details(profile)):
        return []
    known = list(dict.fromkeys(each.name for product in products for each in mig_profiles_of(product)))
    near = nearest(profile.lower()[:40], known, cutoff=0.5)
    if profile in mig_profiles():
        # Well written, of another GPU: what has as much compute is meant.
        near = next((each for each in known if each.partition(".")[0] == profile.partition(".")[0]), "")
    hint = f"did you mean {near!r}? " if near else ""
    if one_gpu:
        hint += f"{one_gpu} has {', '.join(known)}"
    elif not near:
        hint = 'name the GPU, gpu="H100" for example, and the profiles that it has are listed here'
    shown = repr(profile[:40])
    who = f"{one_gpu} has no" if one_gpu else "no GPU that is known here has a"
    message = f"{who} MIG profile {shown}"
    return [Problem(path=path, code="mig-profile-not-known", message=message, hint=hint.strip())]


@lru_cache(maxsize=4096)
def products_of(profile: str, products: tuple[str, ...]) -> tuple[str, ...]:
    """The products of *products* that have a profile of that name, or had it under older kernel drivers."""
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
    """The name of the profile with other kernel drivers; empty when all call it the same."""
    for each in mig_profiles_of(product):
        if each.older_name and profile in (each.name, each.older_name):
            return each.older_name if profile == each.name else each.name
    return ""


def _is_without_details(profile: str) -> bool:
    """True when the profile has a name in mig_profiles.yaml, and no model of mig_devices.yaml has its size."""
    return profile in mig_profiles() and not any(
        each.name.startswith(profile[: profile.index("gb") + 2])
        for product in mig_products()
        for each in mig_profiles_of(product)
    )


MIG_REQUEST: Final = "mig"
"""Name of the one request of a partition; those of several without names of their own are `mig-0`, `mig-1`."""

Profiles = Sequence[str] | Mapping[str, int] | Mapping[str, str]
"""`["3g.40gb", "1g.10gb"]`, one request each; `{"1g.10gb": 7}`, with counts; `{"train": "3g.40gb"}`, with names."""


@dataclass(frozen=True, kw_only=True)
class MigWish:
    """A wish for MIG devices as the user gave it: nothing is sure of the types.

    Args:
        profile: Name of a profile, `1g.10gb`.
        profiles: Several, see `Profiles`.
        memory: At least so much memory, `20Gi`, instead of profiles.
        compute: At least so many compute slices, of the 7 or 4 of a GPU, instead of profiles.
        count: How many of the one profile, or of the size that was asked for; 1 when left out.
        gpu: A product by its NVML name or a short one; None for all.
        same_gpu: Whether all devices are on one GPU.
        dynamic: Whether MIG devices are made when they are allocated (DynamicMIG); None where that is not known.
        device_class: A class of MIG devices; None for the one that the driver ships.
        select: What each device must pass beyond that.
        tolerations: Device taints to tolerate.
    """

    profile: Any = None
    profiles: Any = None
    memory: Any = None
    compute: Any = None
    count: Any = None
    gpu: Any = None
    same_gpu: Any = False
    dynamic: Any = None
    device_class: Any = None
    select: Any = None
    tolerations: Any = ()

    @property
    def names_profiles(self) -> bool:
        """It asks for profiles by name, not for a size."""
        return self.profile is not None or self.profiles is not None


class AskedProfile(NamedTuple):
    """Devices of one profile."""

    path: str
    request: str
    profile: str
    number: int


def check_wish(wish: MigWish) -> Iterator[Problem]:
    """Checks that arguments go together and have the right types.

    Codes `missing-argument`, `arguments-exclude`, `wrong-type`, `count-below-one`, `too-many-devices`.
    """
    given = [name for name in ("profile", "profiles", "memory", "compute") if getattr(wish, name) is not None]
    if not given:
        hint = 'write profile="1g.10gb", or memory="20Gi" for the smallest one that has it'
        yield Problem(
            path="profile", code="missing-argument", message="no MIG device is asked for", hint=hint
        )
    for name in given[1:]:
        if (given[0], name) != ("memory", "compute"):
            yield _excluded(name, given[0], f"leave one of them out: {name}, or {given[0]}")
    if wish.profiles is not None and wish.count is not None:
        yield _excluded("count", "profiles", 'write profiles={"1g.10gb": 2} for counts')
    for name in ("same_gpu", "dynamic"):
        value = getattr(wish, name)
        if not isinstance(value, bool) and not (name == "dynamic" and value is None):
            yield wrong_plain_type(name, value, "True or False")
    if wish.count is not None:
        yield from _check_count(wish.count, "count")


def read_profiles(wish: MigWish) -> tuple[list[Problem], list[AskedProfile]]:
    """The profiles that are named, and what is wrong with how: as `check_wish`, `invalid-name`."""
    if wish.profiles is None:
        number = wish.count if isinstance(wish.count, int) else 1
        asked = [AskedProfile("profile", MIG_REQUEST, wish.profile, number)]
        return list(_check_type(wish.profile, "profile")), asked
    problems: list[Problem] = []
    asked = []
    example = 'write profiles=["3g.40gb", "1g.10gb"]'
    if isinstance(wish.profiles, Mapping):
        for index, (key, value) in enumerate(wish.profiles.items()):
            path = f"profiles[{key!r}]"
            named = isinstance(value, str)
            problems += _check_request(key, path) if named else _check_type(key, path)
            problems += () if named else _check_count(value, path)
            request, profile, number = (key, value, 1) if named else (f"{MIG_REQUEST}-{index}", key, value)
            asked.append(AskedProfile(path, request, profile, number))
    elif is_list(wish.profiles):
        for index, profile in enumerate(wish.profiles):
            path = f"profiles[{index}]"
            problems += _check_type(profile, path)
            asked.append(AskedProfile(path, f"{MIG_REQUEST}-{index}", profile, 1))
    else:
        return [wrong_plain_type("profiles", wish.profiles, "a list or mapping of MIG profiles", example)], []
    if not asked:
        message = "no MIG device is asked for"
        problems.append(Problem(path="profiles", code="missing-argument", message=message, hint=example))
    if not problems:
        problems += check_total("profiles", sum(each.number for each in asked))
    return problems, asked


def _check_type(profile: object, path: str) -> Iterator[Problem]:
    if not isinstance(profile, str):
        yield wrong_plain_type(path, profile, "the name of a MIG profile", 'write "1g.10gb"')


def _check_request(name: object, path: str) -> Iterator[Problem]:
    if not isinstance(name, str) or not names.is_dns_label(name):
        message = f"{name!r:.80} cannot be the name of a request: it is not a DNS label"
        hint = 'write profiles={"train": "3g.40gb"}: lower-case letters, digits and \'-\', at most 63'
        yield Problem(path=path, code="invalid-name", message=message, hint=hint)


def _check_count(count: object, path: str) -> Iterator[Problem]:
    hint, hint_below = "write a plain int", "ask for 1 or more devices"
    yield from check_positive(path, count, "a number", hint=hint, hint_below=hint_below)
    if isinstance(count, int):
        yield from check_total(path, count)


def _excluded(path: str, other: str, hint: str) -> Problem:
    return Problem(path=path, code="arguments-exclude", message=f"{path} is given beside {other}", hint=hint)
