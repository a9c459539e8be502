"""What hangs together: pod, claim, class and device; as a tree of text, for Graphviz, or as Mermaid."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dra_infra.cluster.links import claims_of, name_pod
from dra_infra.cluster.objects import full_name, namespace_of
from dra_infra.cluster.status import Status

_SHAPES: Final = {"pod": "box", "claim": "note", "class": "folder", "device": "component"}
_MERMAID: Final = {"pod": "[{}]", "claim": "({})", "class": "[/{}/]", "device": "[[{}]]"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Point:
    """An object of the graph: `kind` is pod, claim, class or device."""

    kind: str
    name: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Graph:
    """Objects and what leads from one to another.

    Args:
        roots: What nothing leads to.
        edges: What each object leads to, in order.
    """

    roots: tuple[Point, ...]
    edges: Mapping[Point, tuple[Point, ...]]


def find_graph(status: Status, pods: Sequence[Mapping[str, Any]]) -> Graph:
    """The graph of every pod that has claims, and of claims that no pod has."""
    edges: defaultdict[Point, dict[Point, None]] = defaultdict(dict)
    claims = {f"{each.namespace}/{each.name}": each for each in status.claims}
    points = {
        name: Point(kind="claim", name=f"ResourceClaim {name} ({each.state})")
        for name, each in claims.items()
    }
    roots: list[Point] = []
    used = set()
    for pod in sorted(pods, key=full_name):
        names, missing = claims_of(pod)
        if not names and not missing:
            continue
        root = Point(kind="pod", name=name_pod(pod))
        roots.append(root)
        for name in names:
            whole = f"{namespace_of(pod)}/{name}"
            used.add(whole)
            edges[root][points.get(whole, Point(kind="claim", name=f"ResourceClaim {whole} (not there)"))] = (
                None
            )
        for each in missing:
            edges[root][Point(kind="claim", name=f"ResourceClaim of {each} (not made yet)")] = None
    roots += [point for name, point in points.items() if name not in used]
    for name, claim in claims.items():
        for device in claim.devices:
            # One for each claim, or a device of one claim would hang below the class of another.
            of = f"DeviceClass {device.device_class or '(unknown)'}, request {device.request} of {name}"
            between = Point(kind="class", name=of)
            edges[points[name]][between] = None
            how = " (admin access)" if device.is_admin else " (a share)" if device.share else ""
            edges[between][Point(kind="device", name=f"{device}{how}")] = None
        for each in claim.classes if not claim.devices else ():
            edges[points[name]][Point(kind="class", name=f"DeviceClass {each}, asked for by {name}")] = None
    return Graph(roots=tuple(roots), edges={point: tuple(below) for point, below in edges.items()})


def draw_tree(graph: Graph) -> Iterator[str]:
    """One line for each object; one that several lead to is drawn below each."""
    for root in graph.roots:
        yield root.name
        yield from _draw(graph, root, "")


def _draw(graph: Graph, point: Point, indent: str) -> Iterator[str]:
    below = graph.edges.get(point, ())
    for index, each in enumerate(below):
        last = index == len(below) - 1
        shown = each.name.split(" of ")[0] if each.kind == "class" else each.name
        yield f"{indent}{'└─' if last else '├─'} {shown.split(', asked')[0]}"
        yield from _draw(graph, each, f"{indent}{'   ' if last else '│  '}")


def draw_dot(graph: Graph) -> Iterator[str]:
    """For Graphviz."""
    names = _number(graph)
    yield "digraph claims {"
    yield "  rankdir=LR;"
    for point, name in names.items():
        yield f"  {name} [label={json.dumps(point.name, ensure_ascii=False)}, shape={_SHAPES[point.kind]}];"
    yield from _lines(graph, names, lambda start, end: f"  {start} -> {end};")
    yield "}"


def draw_mermaid(graph: Graph) -> Iterator[str]:
    """For Markdown pages."""
    names = _number(graph)
    yield "flowchart LR"
    for point, name in names.items():
        quoted = '"' + point.name.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;") + '"'
        yield f"  {name}{_MERMAID[point.kind].format(quoted)}"
    yield from _lines(graph, names, lambda start, end: f"  {start} --> {end}")


def _number(graph: Graph) -> dict[Point, str]:
    points = dict.fromkeys(graph.roots)
    for start, below in graph.edges.items():
        points[start] = None
        points.update(dict.fromkeys(below))
    return {point: f"n{number}" for number, point in enumerate(points)}


def _lines(graph: Graph, names: Mapping[Point, str], line: Callable[[str, str], str]) -> Iterator[str]:
    for start, below in graph.edges.items():
        yield from (line(names[start], names[each]) for each in below)
