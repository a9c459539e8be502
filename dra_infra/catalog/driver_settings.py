"""NVIDIA driver settings of a node group: feature gates, shares, and the MIG layout of its GPUs.

The MIG layout is checked as it is written, and for whether the GPUs can be partitioned so.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from dra_infra.catalog.driver_gates import check_gates, gate_states
from dra_infra.catalog.mig import find_mig_profile, fitting_parts, mig_profiles_of, placements_of
from dra_infra.catalog.records import FleetKind
from dra_infra.errors import Problem
from dra_infra.output.wording import nearest

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
    near = nearest(name, names, cutoff=0.5)
    start = f"did you mean {near}? " if near else ""
    return f"{start}It has {', '.join(names)}"


def _said(profiles: Sequence[str]) -> str:
    return "+".join(f"{name}*{count}" for name, count in Counter(profiles).items())


Where = Callable[[str], str]
"""The path of a key in what the user wrote."""

DECIDING_GATES: Final = frozenset(
    {
        "ConsumableShares",
        "DRAListTypeAttributes",
        "DynamicMIG",
        "FabricManagerPartitioning",
        "PassthroughSupport",
    }
)
"""The gates of the driver that decide what it publishes on healthy hardware."""


def read_driver_settings(
    written: Mapping[str, Any],
    kind: FleetKind,
    line: str,
    devices: int,
    where: Where,
    problems: list[Problem],
) -> dict[str, Any]:
    """The fields of `NodeGroup` that gates, MIG layout and values of the chart decide; adds what is wrong to *problems*."""
    on = _gates(written, line, where, problems)
    mig: tuple[tuple[str, ...], ...] = ()
    if "mig" in written:
        mig, found = read_mig(
            written["mig"], kind, devices, lambda message, hint: refused(where("mig"), message, hint)
        )
        problems.extend(found)
    problems.extend(_conflicts(kind, devices, on, mig, where))
    compute_domains = written.get("computeDomains", kind.compute_domains)
    if not isinstance(compute_domains, bool):
        message = f"{str(compute_domains)[:40]!r} is neither true nor false"
        problems.append(refused(where("computeDomains"), message, "write true"))
    return {
        "mig": mig if any(mig) else (),
        "gates": on - {"ConsumableShares"},
        "shares": _shares(written, allowed="ConsumableShares" in on, where=where, problems=problems),
        "compute_domains": compute_domains,
    }


def _gates(written: Mapping[str, Any], line: str, where: Where, problems: list[Problem]) -> frozenset[str]:
    """The gates that are on, of those that decide what is published; all of them are off by default."""
    gates = written.get("featureGates", {})
    path = where("featureGates")
    if not isinstance(gates, Mapping):
        problems.append(refused(path, "the gates are no mapping", "write {DynamicMIG: true}"))
        return frozenset()
    if not gates:
        return frozenset()
    named = {str(name): value for name, value in gates.items()}
    wrong = [each for each in check_gates(line, named) if each.severity == "error"]
    problems.extend(each.below(path) for each in wrong)
    on = () if wrong else (name for name, on in gate_states(line, named).items() if on)
    return DECIDING_GATES.intersection(on)


def _conflicts(
    kind: FleetKind,
    devices: int,
    gates: frozenset[str],
    mig: tuple[tuple[str, ...], ...],
    where: Where,
) -> Iterator[Problem]:
    path = where("featureGates")
    if "DynamicMIG" in gates and mig:
        yield refused(
            where("mig"),
            "MIG devices are either there before the driver starts, or made by DynamicMIG",
            "leave one of them out",
        )
    if "DynamicMIG" in gates and not mig_profiles_of(kind.gpu):
        yield refused(
            path,
            f"{kind.gpu} has no MIG: driver 25.12 publishes nothing there under DynamicMIG, newer ones the plain GPU",
            "leave DynamicMIG out for these nodes",
        )
    if "FabricManagerPartitioning" in gates and (not kind.invented.fabric or devices != kind.count):
        yield refused(
            path,
            "it is not known that Fabric Manager partitions such nodes",
            "use whole nodes of hgx-h100, hgx-h200 or hgx-b200",
        )


def _shares(written: Mapping[str, Any], *, allowed: bool, where: Where, problems: list[Problem]) -> str:
    said = str(written.get("consumableShares") or "").strip()
    if said in ("", "disabled"):
        return ""
    number = whole_number(said)
    wrong: tuple[str, str] | None = None
    if said not in ("memory", "unlimited") and number < 1:
        message = f"{said[:40]!r} is none of memory, unlimited, disabled and a number of shares"
        wrong = message, "write memory"
    elif number == 1:
        message = "the API server refuses devices with one share: the range has no room for a step"
        wrong = message, "write 2 or more, or leave it out"
    elif not allowed and not any(each.code == "unknown-driver-gate" for each in problems):
        message = "the driver does not start with consumableShares and without its gate ConsumableShares"
        wrong = message, "write featureGates: {ConsumableShares: true}, which driver 0.5 has"
    if wrong:
        problems.append(refused(where("consumableShares"), *wrong))
    return str(number) if number > 0 else said


def refused(path: str, message: str, hint: str) -> Problem:
    """A setting that is malformed, or not possible with the others."""
    return Problem(path=path, code="fleet-option", message=message, hint=hint)


def whole_number(written: Any) -> int:
    """A whole number, also as a text; -1 when it is none. Very long ones are cut to one that is too large anyway."""
    if isinstance(written, int) and not isinstance(written, bool):
        return min(written, 10**9)
    if not (isinstance(written, str) and written.isascii() and written.isdigit()):
        return -1
    digits = written.lstrip("0")
    return int(digits or "0") if len(digits) <= 9 else 10**9
