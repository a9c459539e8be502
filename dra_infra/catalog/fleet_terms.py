"""Fleet terms such as `hgx-h100 x 4, a100-80gb mig=1g.10gb*7 driver=0.5`, one per group of nodes.

Texts and files come in one shape, from which a group is made, or a list of everything that is wrong with it: a
mapping with the keys of `KEYS`, those of the driver's chart where it has one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from dra_infra.catalog.driver_settings import Where, read_driver_settings, refused, whole_number
from dra_infra.catalog.drivers import drivers, read_pins
from dra_infra.catalog.machines import node_kinds, node_names, refusal_of
from dra_infra.catalog.node_groups import NodeGroup
from dra_infra.catalog.publication import DRANET
from dra_infra.catalog.records import FleetKind, fleet_kinds
from dra_infra.errors import FleetError, InvalidSpecError, Problem
from dra_infra.output.wording import nearest
from dra_infra.target import NEWEST_DRIVER

MAX_NODES: Final = 100_000
"""Most nodes of a named fleet; Kubernetes itself is tested to 5,000."""

_GPU_KEYS: Final = ("mig", "featureGates", "consumableShares", "computeDomains", "dranet")
_EXAMPLE_KEYS: Final = ("gpuPartitions", "gpuAllowMultipleAllocations")
_EXAMPLE_MEMORY_GI: Final = 80
_OTHERS: Final = "`dra-infra catalog machines` lists machines of clouds; a file is named by its path"
KEYS: Final = ("kind", "count", "driver", "devices", *_GPU_KEYS, *_EXAMPLE_KEYS)
"""Options of a group, in a text and in a file."""


def read_group(
    written: Mapping[str, Any], where: Where, *, driver: str = NEWEST_DRIVER
) -> tuple[NodeGroup | None, list[Problem]]:
    """Read and check a group.

    Args:
        written: Values by the keys of `KEYS`; others are not looked at.
        where: Gives the paths of problems.
        driver: Releases of the drivers, as `read_pins` reads them, for a group that names none.

    Returns:
        The group, None when something is wrong, and the problems: `fleet-unknown`, `fleet-count`, `fleet-option`,
        `unknown-driver-release`, `unknown-driver-gate`, `driver-gate-conflict`, `wrong-type`.
    """
    asked = str(written.get("kind", ""))
    count, problems = _count(written.get("count", 1), asked, where)
    if asked not in node_names():
        return None, [unknown_kind(asked, where("kind")), *problems]
    name = node_names()[asked]
    kind = node_kinds()[name]
    problems += _misplaced(written, kind, where)
    line = _line(written, kind, where, problems, driver)
    devices = _whole(written, "devices", kind.count, range(1, kind.count + 1), where, problems)
    values: dict[str, Any] = {}
    if kind.gpu:
        values = read_driver_settings(written, kind, line, devices, where, problems)
        values["dranet"] = _dranet(written.get("dranet", False), kind, where, problems)
    elif not problems:
        values = _example_values(written, line, where, problems)
    if problems:
        return None, problems
    # Names of nodes have no capitals and no underscores, as machines of Azure have them.
    nodes = name.lower().replace("_", "-")
    return NodeGroup(kind_name=name, count=count, name=nodes, line=line, devices=devices, **values), []


def unknown_kind(name: str, path: str) -> Problem:
    """The problem `fleet-unknown` of a name that no fleet has, or of a machine that cannot be one."""
    if refusal := refusal_of(name):
        return Problem(
            path=path, code="fleet-unknown", message=f"{name} {refusal.because}", hint=refusal.hint
        )
    names = sorted(fleet_kinds())
    every = node_names()
    written = {each.lower(): each for each in every}
    near = written.get(nearest(name.lower(), written, cutoff=0.5))
    glued = next((name.rpartition(sign) for sign in "x×*" if name.rpartition(sign)[0] in every), None)  # noqa: RUF001
    if glued and glued[2].isdigit():
        hint = f"write {glued[0]} x {glued[2]}"
    elif near:
        hint = f"did you mean {near}? `dra-infra catalog fleets` lists others; {_OTHERS}"
    else:
        hint = f"known fleets are {', '.join(names)}; {_OTHERS}, such as fleet.yaml"
    return Problem(path=path, code="fleet-unknown", message=f"there is no fleet {name[:80]!r}", hint=hint)


def _count(written: Any, name: str, where: Where) -> tuple[int, list[Problem]]:
    number = whole_number(written)
    if number >= 1:
        return number, []
    problem = Problem(
        path=where("count"),
        code="fleet-count",
        message=f"{str(written)[:40]!r} is not a number of nodes",
        hint=f"write a whole number from 1 to {MAX_NODES:,}: {name} x 4",
    )
    return 0, [problem]


def _misplaced(written: Mapping[str, Any], kind: FleetKind, where: Where) -> list[Problem]:
    """Settings of hardware on pretended devices, and the other way round."""
    other: tuple[str, ...]
    if kind.gpu:
        other = _EXAMPLE_KEYS
        whose = "the example driver"
    elif kind.driver == "gpu.example.com":
        other = _GPU_KEYS
        whose = "the NVIDIA driver"
    else:
        other = (*_GPU_KEYS, *_EXAMPLE_KEYS)
        whose = "GPUs"
    return [
        refused(where(key), f"{key} is a setting of {whose}, and {kind.driver} has none", "leave it out")
        for key in other
        if key in written
    ]


def _line(
    written: Mapping[str, Any], kind: FleetKind, where: Where, problems: list[Problem], driver: str
) -> str:
    asked = written.get("driver")
    if asked is None and kind.driver in kind.published:
        # Devices that are listed one by one are known of this release alone.
        return kind.line
    if asked == NEWEST_DRIVER:
        return drivers()[kind.driver].newest.line
    pinned = driver if asked is None else f"{kind.driver}={str(asked).replace(',', ' ')}"
    try:
        line = read_pins(pinned).releases[kind.driver].line
    except InvalidSpecError as error:
        problems.extend(replace(each, path=where("driver")) for each in error.problems)
        return kind.line
    if kind.driver in kind.published and line != kind.line:
        said = f"its devices are listed as {kind.driver} {kind.line} publishes them, and not {line}"
        problems.append(refused(where("driver"), said, f"write driver={kind.line}, or leave it out"))
    return line


def _whole(
    written: Mapping[str, Any],
    key: str,
    default: int,
    allowed: range,
    where: Where,
    problems: list[Problem],
) -> int:
    number = whole_number(written.get(key, default))
    if number in allowed:
        return number
    message = f"{key} {str(written[key])[:40]!r} is not a whole number from {allowed[0]} to {allowed[-1]}"
    problems.append(refused(where(key), message, f"write one, such as {allowed[-1]}"))
    return default


def _dranet(written: Any, kind: FleetKind, where: Where, problems: list[Problem]) -> bool:
    if not isinstance(written, bool):
        message = f"{str(written)[:40]!r} is neither true nor false"
        problems.append(refused(where("dranet"), message, "write true"))
    elif written and DRANET not in kind.published:
        known = [name for name, each in node_kinds().items() if each.gpu and DRANET in each.published]
        message = "what DRANET publishes on such nodes is not known here"
        problems.append(refused(where("dranet"), message, f"it is known of {', '.join(known)}"))
    return bool(written)


def _example_values(
    written: Mapping[str, Any], line: str, where: Where, problems: list[Problem]
) -> dict[str, Any]:
    known = {"gpuPartitions": ("0.3", "0.4"), "gpuAllowMultipleAllocations": ("0.4",)}
    problems.extend(
        refused(
            where(key), f"the chart of the example driver {line} has no {key}", f"write driver: {lines[0]}"
        )
        for key, lines in known.items()
        if key in written and line not in lines
    )
    # The driver takes more: 8 GPUs with more parts would be a slice of more than the 64 devices that have counters.
    partitions = _whole(written, "gpuPartitions", 0, range(8), where, problems)
    shareable = written.get("gpuAllowMultipleAllocations", False)
    if not isinstance(shareable, bool):
        message = f"{str(shareable)[:40]!r} is neither true nor false"
        problems.append(refused(where("gpuAllowMultipleAllocations"), message, "write true"))
    elif shareable and partitions and _EXAMPLE_MEMORY_GI % partitions:
        message = f"the API server refuses shareable devices whose memory is no multiple of 1Gi: 80Gi in {partitions}"
        problems.append(refused(where("gpuPartitions"), message, "write 2, 4 or 5"))
    return {"partitions": partitions, "shareable": shareable}


_TERM = re.compile(r"(?P<name>\S+)(?:\s+[xX×]\s*(?P<count>\S+))?(?P<options>(?:\s+\S+)*)")  # noqa: RUF001  (people paste the sign)

_VALUED: Final = {
    "driver": "driver",
    "devices": "devices",
    "mig": "mig",
    "shares": "consumableShares",
    "partitions": "gpuPartitions",
}
_SWITCHES: Final = {
    "compute-domains": "computeDomains",
    "dranet": "dranet",
    "shareable": "gpuAllowMultipleAllocations",
}
_GATES: Final = {
    "dynamic-mig": "DynamicMIG",
    "fabric-partitions": "FabricManagerPartitioning",
    "vfio": "PassthroughSupport",
}
OPTIONS: Final = (*(f"{name}=" for name in _VALUED), *_SWITCHES, *_GATES)
"""Everything that a term can say behind name and count."""


def read_terms(text: str, *, driver: str = NEWEST_DRIVER) -> list[NodeGroup]:
    """Read the groups of a text; equal ones are added up.

    Args:
        text: Terms with commas between them.
        driver: Releases of the drivers, as `read_pins` reads them, for terms that name none.

    Raises:
        FleetError: `fleet-unknown`, and the codes of `read_group`; all at once.
    """
    path = f'fleet "{text[:80]}"'
    groups: dict[NodeGroup, int] = {}
    problems: list[Problem] = []
    for term in text.split(","):
        match = _TERM.fullmatch(term.strip())
        if match is None or (match["count"] in node_names() and match["name"] not in node_names()):
            problems.append(_unreadable(term.strip(), path))
            continue
        written: dict[str, Any] = {"kind": match["name"], "count": match["count"] or 1}
        problems.extend(_read_options(match["options"].split(), written, path, match["name"]))
        group, found = read_group(written, lambda _key: path, driver=driver)
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
    near = nearest(f"{key[:40]}=" if equals else key[:40], OPTIONS, cutoff=0.5)
    if option.isdigit():
        hint = f"write {name} x {option}"
    elif f"{key}=" in OPTIONS:
        hint = f"write {key}= and a value behind it, without blanks"
    elif key in OPTIONS:
        hint = f"write {key} alone"
    elif near:
        hint = f"did you mean {near}?"
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
