"""The MIG layout of a group of nodes: what is written, and whether the GPUs can be partitioned so."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from dra_infra.catalog.fleet_kinds import FleetKind
from dra_infra.catalog.mig import find_mig_profile, fitting_parts, mig_profiles_of, placements_of
from dra_infra.errors import Problem

_EXAMPLE: Final = "write profiles with how many of each a GPU has: mig=3g.40gb*1+1g.10gb*4"


def read_mig(
    written: Any, kind: FleetKind, devices: int, refuse: Callable[[str, str], Problem]
) -> tuple[tuple[tuple[str, ...], ...], list[Problem]]:
    """Read what each GPU of a node is partitioned into.

    Args:
        written: `3g.40gb*1+1g.10gb*4`, or `{"3g.40gb": 1, "1g.10gb": 4}`, both for every GPU; or a list of these, one
            for each GPU, of which those behind the last are not in MIG mode.
        kind: The nodes.
        devices: GPUs of a node.
        refuse: Makes a problem of a message and a hint.

    Returns:
        The profiles of each GPU, and what is wrong.
    """
    if not mig_profiles_of(kind.gpu):
        return (), [refuse(f"{kind.gpu or 'a GPU that is only pretended'} has no MIG", "leave mig out")]
    layouts = written if isinstance(written, list) else [written] * devices
    if len(layouts) > devices:
        message = f"{len(layouts)} layouts are more than the {devices} GPUs of a node"
        return (), [refuse(message, "write one for each GPU, or one alone for all")]
    gpus: list[tuple[str, ...]] = []
    problems: dict[Problem, None] = {}
    for layout in layouts:
        counts = _read_layout(layout)
        if counts is None:
            problems[refuse(f"{str(layout)[:80]!r} is no layout of MIG", _EXAMPLE)] = None
            continue
        found = _check(counts, kind.gpu, refuse)
        problems |= dict.fromkeys(found)
        gpus.append(() if found else tuple(counts.elements()))
    return tuple(gpus), list(problems)


def _read_layout(written: Any) -> Counter[str] | None:
    """How often each profile is wanted; None when that is not what is written."""
    counts: Counter[str] = Counter()
    if isinstance(written, str):
        for part in re.split(r"\+(?=\d)", written):
            profile, star, count = part.partition("*")
            if not profile or (star and not re.fullmatch(r"\d{1,3}", count, re.ASCII)):
                return None
            counts[profile] += int(count or 1)
    elif isinstance(written, Mapping):
        for profile, count in written.items():
            if not isinstance(profile, str) or not isinstance(count, int) or isinstance(count, bool):
                return None
            counts[profile] += count
    else:
        return None
    return counts if all(0 < count < 1000 for count in counts.values()) else None


def _check(counts: Mapping[str, int], product: str, refuse: Callable[[str, str], Problem]) -> list[Problem]:
    unknown = [name for name in counts if find_mig_profile(name, product) is None]
    if unknown:
        return [
            refuse(f"{product} has no MIG profile {name[:40]}", _nearest(name, product)) for name in unknown
        ]
    wanted = [name for name, count in counts.items() for _ in range(count)]
    if placements_of(wanted, product) is None:
        parts = " or ".join(_said(part) for part in fitting_parts(wanted, product)[:3])
        return [refuse(f"{_said(wanted)} does not fit one {product}", f"of these, {parts} does")]
    return []


def _nearest(name: str, product: str) -> str:
    names = [profile.name for profile in mig_profiles_of(product)]
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    start = f"did you mean {near[0]}? " if near else ""
    return f"{start}It has {', '.join(names)}"


def _said(profiles: Sequence[str]) -> str:
    return "+".join(f"{name}*{count}" for name, count in Counter(profiles).items())
