"""From what the user wrote to a fleet: `hgx-h100 x 4, a100-80gb`, or the path of a file with Kubernetes objects."""

from __future__ import annotations

import difflib
import re
from collections import Counter

from dra_infra.catalog.fleet_files import read_fleet_file
from dra_infra.catalog.publication import publish_nodes, shipped_classes
from dra_infra.catalog.records import fleet_kinds
from dra_infra.errors import FleetError, Problem
from dra_infra.model.device_class import DeviceClass
from dra_infra.model.fleet import Fleet

MAX_NODES = 100_000
"""Most nodes of a named fleet; Kubernetes itself is tested to 5,000."""

_TERM = re.compile(r"(?P<name>[^\s,]+)(?:\s+[x×]\s*(?P<count>\S+))?")  # noqa: RUF001  (people paste the sign)
_FILE_ENDINGS = (".yaml", ".yml", ".json")


def load_fleet(text: str) -> Fleet:
    """Read a fleet by name or from a file.

    Args:
        text: Names with counts, `hgx-h100 x 4` or `a100-80gb x 2, a100-40gb x 3` (a name without a count is one node,
            a name written twice adds up), or the path of a YAML or JSON file with Nodes, ResourceSlices and
            DeviceClasses as `kubectl get -o yaml` prints them.

    Raises:
        FleetError: `fleet-unknown`, `fleet-count`, `fleet-too-large`, `fleet-unreadable`, `fleet-object`; all at once.
    """
    stripped = text.strip()
    if stripped.lower().endswith(_FILE_ENDINGS) or "/" in stripped or "\\" in stripped:
        return read_fleet_file(stripped)
    counts = _parse_counts(stripped)
    nodes, slices = [], []
    classes: dict[str, DeviceClass] = {}
    for name, count in counts.items():
        kind = fleet_kinds()[name]
        for node, slice_ in publish_nodes(name, kind, count):
            nodes.append(node)
            slices.append(slice_)
        classes.update({class_.metadata.name or "": class_ for class_ in shipped_classes(kind)})
    return Fleet(
        name=", ".join(f"{name} x {count}" for name, count in counts.items()),
        nodes=tuple(sorted(nodes, key=lambda node: node.name)),
        slices=tuple(sorted(slices, key=lambda slice_: slice_.metadata.name or "")),
        classes=tuple(classes[name] for name in sorted(classes)),
    )


def _parse_counts(text: str) -> dict[str, int]:
    counts: Counter[str] = Counter()
    problems: list[Problem] = []
    for term in text.split(","):
        match = _TERM.fullmatch(term.strip())
        if match is None:
            problems.append(_unreadable_term(term.strip(), text))
            continue
        name, count = match["name"], match["count"] or "1"
        if count in fleet_kinds() and name not in fleet_kinds():
            problems.append(_unreadable_term(term.strip(), text))
            continue
        if name not in fleet_kinds():
            problems.append(_unknown(name, text))
        number = _number(count)
        if number < 1:
            problems.append(
                Problem(
                    path=_path(text),
                    code="fleet-count",
                    message=f"{count[:40]!r} is not a number of nodes",
                    hint=f"write a whole number from 1 to {MAX_NODES:,}: {name} x 4",
                )
            )
        else:
            counts[name] += number
    total = sum(counts.values())
    if total > MAX_NODES:
        problems.append(
            Problem(
                path=_path(text),
                code="fleet-too-large",
                message=f"{total:,} nodes are more than {MAX_NODES:,}",
                hint="ask for fewer nodes",
            )
        )
    if problems:
        raise FleetError(problems)
    return dict(counts)


def _number(text: str) -> int:
    """The count; 0 when it is none. Very long numbers are cut to one that is too large anyway."""
    if not (text.isascii() and text.isdigit()):
        return 0
    digits = text.lstrip("0")
    return int(digits or "0") if len(digits) <= 9 else MAX_NODES + 1


def _unreadable_term(term: str, text: str) -> Problem:
    return Problem(
        path=_path(text),
        code="fleet-unknown",
        message=f"{term[:80]!r} is not a fleet with a count" if term else "a fleet has no name",
        hint=f"write a name and a count, such as hgx-h100 x 4; names are {', '.join(sorted(fleet_kinds()))}",
    )


def _unknown(name: str, text: str) -> Problem:
    names = sorted(fleet_kinds())
    near = difflib.get_close_matches(name.lower(), names, n=1, cutoff=0.5)
    glued = re.fullmatch(r"(?P<name>.+?)[x×*](?P<count>\d+)", name)  # noqa: RUF001
    if glued and glued["name"] in names:
        hint = f"write {glued['name']} x {glued['count']}"
    elif near:
        hint = f"did you mean {near[0]}? Known fleets are {', '.join(names)}; a file is named by its path"
    else:
        hint = f"known fleets are {', '.join(names)}; a file is named by its path, such as fleet.yaml"
    return Problem(
        path=_path(text), code="fleet-unknown", message=f"there is no fleet {name[:80]!r}", hint=hint
    )


def _path(text: str) -> str:
    return f'fleet "{text[:80]}"'
