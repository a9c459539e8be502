"""Whether the MIG devices of a claim fit one GPU, and what of them does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from dra_infra.catalog.mig import fitting_parts, placements_of
from dra_infra.errors import Problem
from dra_infra.specs.mig_profiles import products_of
from dra_infra.specs.mig_wishes import AskedProfile

_MOST_PROFILES: Final = 6
"""Different profiles of a set up to which its parts that fit are worth listing."""

_MOST_PARTS: Final = 3


def check_placement(asked: Sequence[AskedProfile], products: tuple[str, ...], path: str) -> list[Problem]:
    """Whether all devices fit one GPU of one of *products*: `mig-not-placeable` at *path*.

    Nothing is said where the placements of a profile are not known.
    """
    wanted = Counter[str]()
    for each in asked:
        wanted[each.profile] += each.number
    having = {profile: products_of(profile, products) for profile in wanted}
    if not all(having.values()):
        return []
    common = [product for product in products if all(product in each for each in having.values())]
    if not common:
        message = f"no GPU has all of these profiles: {', '.join(wanted)}"
        hint = "; ".join(f"{profile} is of {', '.join(on)}" for profile, on in having.items())
        return [Problem(path=path, code="mig-not-placeable", message=message, hint=hint)]
    every = list(wanted.elements())
    if any(placements_of(every, product) is not None for product in common):
        return []
    one = common[0] if len(common) == 1 else "GPU"
    return [
        Problem(
            path=path,
            code="mig-not-placeable",
            message=f"{_said(wanted)} does not fit one {one}",
            hint=f"{_what_fits(wanted, common)}leave same_gpu out to take several GPUs of a node",
        )
    ]


def _what_fits(wanted: Counter[str], products: Sequence[str]) -> str:
    if len(wanted) > _MOST_PROFILES:
        return ""
    every = list(wanted.elements())
    parts: dict[tuple[str, ...], str] = {}
    for product in products:
        for part in fitting_parts(every, product):
            parts.setdefault(part, product)
    fits = [_placed(part, product) for part, product in list(parts.items())[:_MOST_PARTS]]
    return f"of these, {' or '.join(fits)} fits; "


def _placed(part: Sequence[str], product: str) -> str:
    slices = ", ".join(
        f"{each.start}-{each.start + each.size - 1}" if each.size > 1 else str(each.start)
        for each in placements_of(part, product) or ()
    )
    return f"{_said(Counter(part))} (memory slices {slices} of {product})"


def _said(counts: Counter[str]) -> str:
    return "+".join(f"{profile}*{count}" for profile, count in counts.items())
