"""The text of a fleet: `hgx-h100 x 4, a100-80gb mig=1g.10gb*7 driver=0.5`, one term per group of nodes."""

from __future__ import annotations

import difflib
import re
from typing import Any, Final

from dra_infra.catalog.driver_settings import refused
from dra_infra.catalog.fleet_kinds import fleet_kinds, fleet_names
from dra_infra.catalog.group_settings import read_group
from dra_infra.catalog.node_groups import NodeGroup
from dra_infra.errors import FleetError, Problem

_TERM = re.compile(r"(?P<name>\S+)(?:\s+[x×]\s*(?P<count>\S+))?(?P<options>(?:\s+\S+)*)")  # noqa: RUF001  (people paste the sign)

_VALUED: Final = {
    "driver": "driver",
    "devices": "devices",
    "mig": "mig",
    "shares": "consumableShares",
    "partitions": "gpuPartitions",
}
_SWITCHES: Final = {
    "compute-domains": "computeDomains",
    "shareable": "gpuAllowMultipleAllocations",
}
_GATES: Final = {
    "dynamic-mig": "DynamicMIG",
    "fabric-partitions": "FabricManagerPartitioning",
    "vfio": "PassthroughSupport",
}
_EXAMPLE: Final = "example"
"""The fleet of the example driver, which has releases of its own."""
OPTIONS: Final = (*(f"{name}=" for name in _VALUED), *_SWITCHES, *_GATES)
"""Everything that a term can say behind name and count."""


def read_terms(text: str, *, driver: str | None = None) -> list[NodeGroup]:
    """Read the groups of a text; equal ones are added up.

    Args:
        text: Terms with commas between them.
        driver: Release of NVIDIA's driver for terms that say none.

    Raises:
        FleetError: `fleet-unknown`, and the codes of `read_group`; all at once.
    """
    path = f'fleet "{text[:80]}"'
    groups: dict[NodeGroup, int] = {}
    problems: list[Problem] = []
    for term in text.split(","):
        match = _TERM.fullmatch(term.strip())
        if match is None or (match["count"] in fleet_names() and match["name"] not in fleet_names()):
            problems.append(_unreadable(term.strip(), path))
            continue
        written: dict[str, Any] = {"kind": match["name"], "count": match["count"] or 1}
        problems.extend(_read_options(match["options"].split(), written, path, match["name"]))
        if driver is not None and match["name"] != _EXAMPLE:
            written.setdefault("driver", driver)
        group, found = read_group(written, lambda _key: path)
        problems.extend(found)
        if group is not None:
            groups[group.times(1)] = groups.get(group.times(1), 0) + group.count
    if problems:
        raise FleetError(problems)
    return [group.times(count) for group, count in groups.items()]


def _read_options(options: list[str], written: dict[str, Any], path: str, name: str) -> list[Problem]:
    problems = []
    gates: dict[str, bool] = {}
    seen: set[str] = set()
    for option in options:
        key, equals, value = option.partition("=")
        if key in seen:
            problems.append(refused(path, f"{key[:40]} is written twice", "leave one of them out"))
        elif key in _VALUED and value:
            written[_VALUED[key]] = value
            if key == "shares" and value != "disabled":
                gates["ConsumableShares"] = True
        elif key in _SWITCHES and not equals:
            written[_SWITCHES[key]] = True
        elif key in _GATES and not equals:
            gates[_GATES[key]] = True
        else:
            problems.append(_unknown_option(option, path, name))
        seen.add(key)
    if gates:
        written["featureGates"] = gates
    return problems


def _unknown_option(option: str, path: str, name: str) -> Problem:
    key, equals, _ = option.partition("=")
    near = difflib.get_close_matches(f"{key[:40]}=" if equals else key[:40], OPTIONS, n=1, cutoff=0.5)
    if option.isdigit():
        hint = f"write {name} x {option}"
    elif f"{key}=" in OPTIONS:
        hint = f"write {key}= and a value behind it, without blanks"
    elif key in OPTIONS:
        hint = f"write {key} alone"
    elif near:
        hint = f"did you mean {near[0]}?"
    else:
        hint = f"options are {', '.join(OPTIONS)}; the count is in front of them: {name} x 4"
    return refused(path, f"there is no option {option[:40]!r}", hint)


def _unreadable(term: str, path: str) -> Problem:
    return Problem(
        path=path,
        code="fleet-unknown",
        message=f"{term[:80]!r} is not a fleet with a count" if term else "a fleet has no name",
        hint=f"write a name and a count, such as hgx-h100 x 4; names are {', '.join(sorted(fleet_kinds()))}",
    )
