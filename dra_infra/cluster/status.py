"""Claims of a cluster: their devices, node and consumers, and why some wait.

The object graph shows what hangs together, pod, claim, class and device: as a tree of text, for Graphviz, or as
Mermaid.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, Final

from dra_infra.client.objects import (
    claims_of,
    full_name,
    name_of,
    name_pod,
    namespace_of,
    reasons_of,
    requests_of,
    text,
)
from dra_infra.cluster.check_claims import published_devices
from dra_infra.kubernetes.api import PodRecord, mapping, mappings

Manifest = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, order=True, slots=True)
class HeldDevice:
    """A device, or a share of one, that a claim has.

    Args:
        driver: Its driver.
        pool: Its pool, mostly a node's name.
        device: Its name in the pool.
        request: The request of the claim that it answers, `request/alternative` of a prioritized list.
        device_class: The class of that request.
        is_admin: Whether it is only looked at, and can be another's as well.
        share: Identity of the share, where the device has several.
    """

    driver: str
    pool: str
    device: str
    request: str = ""
    device_class: str = ""
    is_admin: bool = False
    share: str = ""

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}/{self.device}"


@dataclass(frozen=True, kw_only=True, slots=True)
class ClaimStatus:
    """A claim and what it has.

    Args:
        namespace: Its namespace.
        name: Its name.
        state: `in use`, `allocated` when no pod uses it now, `pending`, or `deleting`.
        node: Where its devices are; empty where they are for several nodes, or there are none.
        devices: What it has.
        classes: What it asks for, where it has nothing yet: names of classes.
        consumers: Who uses it, `Pod train-0`.
        reasons: Why it is pending, or its pods do not start, in the words of the cluster.
    """

    namespace: str
    name: str
    state: str
    node: str = ""
    devices: tuple[HeldDevice, ...] = ()
    classes: tuple[str, ...] = ()
    consumers: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class PodWaiting:
    """A pod that asks for claims which do not exist yet."""

    namespace: str
    name: str
    wants: tuple[str, ...]
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Status:
    """Every claim of a cluster.

    Args:
        claims: By namespace and name.
        waiting: Pods whose claims are missing.
        published: Devices by driver.
        taken: Of these, devices that a claim has.
    """

    claims: tuple[ClaimStatus, ...]
    waiting: tuple[PodWaiting, ...]
    published: Mapping[str, int]
    taken: Mapping[str, int]


@dataclass(frozen=True, kw_only=True, slots=True)
class Seen:
    """The objects that a status is made of; events are warnings alone."""

    claims: Sequence[Manifest] = field(default=(), repr=False)
    pods: Sequence[Manifest] = field(default=(), repr=False)
    slices: Sequence[Manifest] = field(default=(), repr=False)
    events: Sequence[Manifest] = field(default=(), repr=False)


def find_status(seen: Seen) -> Status:
    """Find the state of each claim, and of the pods that wait for one."""
    nodes = {
        (text(spec.get("driver")), text(mapping(spec.get("pool")).get("name"))): text(spec.get("nodeName"))
        for spec in (mapping(each.get("spec")) for each in seen.slices)
    }
    users: defaultdict[tuple[str, str], list[Manifest]] = defaultdict(list)
    waiting = []
    done = {pod.uid for pod in map(PodRecord.of, seen.pods) if pod.is_done} - {""}
    for pod in seen.pods:
        names, missing = claims_of(pod)
        for name in names:
            users[namespace_of(pod), name].append(pod)
        if missing and PodRecord.of(pod).waits:
            waiting.append(
                PodWaiting(
                    namespace=namespace_of(pod),
                    name=name_of(pod),
                    wants=missing,
                    reasons=reasons_of([pod], seen.events),
                )
            )
    claims = tuple(
        _claim(each, users[namespace_of(each), name_of(each)], nodes, done, seen.events)
        for each in seen.claims
    )
    held = {
        (device.driver, device.pool, device.device)
        for claim in claims
        for device in claim.devices
        if not device.is_admin
    }
    devices = published_devices(seen.slices)
    published, taken = (Counter(driver for driver, _, _ in found) for found in (devices, devices & held))
    drivers = sorted({driver for driver, _ in nodes})
    return Status(
        claims=tuple(sorted(claims, key=lambda claim: (claim.namespace, claim.name))),
        waiting=tuple(sorted(waiting, key=lambda pod: (pod.namespace, pod.name))),
        published={driver: published[driver] for driver in drivers},
        taken={driver: taken[driver] for driver in drivers},
    )


def _claim(
    claim: Manifest,
    pods: Sequence[Manifest],
    nodes: Mapping[tuple[str, str], str],
    done: Set[str],
    events: Sequence[Manifest],
) -> ClaimStatus:
    status = mapping(claim.get("status"))
    allocation = status.get("allocation")
    classes = requests_of(claim)
    devices = tuple(
        HeldDevice(
            driver=text(each.get("driver")),
            pool=text(each.get("pool")),
            device=text(each.get("device")),
            request=text(each.get("request")),
            device_class=classes.get(text(each.get("request")), ""),
            is_admin=each.get("adminAccess") is True,
            share=text(each.get("shareID")),
        )
        for each in mappings(mapping(mapping(allocation).get("devices")).get("results"))
    )
    # The claim controller takes pods that are done off the list.
    consumers = [each for each in mappings(status.get("reservedFor")) if text(each.get("uid")) not in done]
    on = {nodes.get((each.driver, each.pool), "") for each in devices}
    return ClaimStatus(
        namespace=namespace_of(claim),
        name=name_of(claim),
        state=_state(claim, allocation, consumers),
        node=on.pop() if len(on) == 1 else "",
        devices=devices,
        classes=tuple(dict.fromkeys(classes.values())),
        consumers=tuple(_consumer(each) for each in consumers),
        reasons=reasons_of(pods, events) or (() if allocation or pods else ("no pod uses it",)),
    )


def _state(claim: Manifest, allocation: Any, consumers: Sequence[Manifest]) -> str:
    if mapping(claim.get("metadata")).get("deletionTimestamp"):
        return "deleting"
    if not isinstance(allocation, Mapping):
        return "pending"
    return "in use" if consumers else "allocated"


def _consumer(reference: Manifest) -> str:
    resource = text(reference.get("resource"))
    kind = {"pods": "Pod", "podgroups": "PodGroup"}.get(resource, resource)
    return f"{kind} {text(reference.get('name'))}"


_SHAPES: Final = {"pod": "box", "claim": "note", "class": "folder", "device": "component"}
_MERMAID: Final = {"pod": "[{}]", "claim": "({})", "class": "[/{}/]", "device": "[[{}]]"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Point:
    """An object of the graph.

    Args:
        kind: Pod, claim, class or device, in lower case.
        name: The object, and what it is for its claim.
        of: What tells the class of one claim from that of another, behind the name: the tree, where it stands below its
            claim, does without.
    """

    kind: str
    name: str
    of: str = ""

    def __str__(self) -> str:
        return f"{self.name}{self.of}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Graph:
    """Objects, what leads from one to another, in order, and the roots to which nothing leads."""

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
            class_name = f"DeviceClass {device.device_class or '(unknown)'}, request {device.request}"
            between = Point(kind="class", name=class_name, of=f" of {name}")
            edges[points[name]][between] = None
            edges[between][Point(kind="device", name=f"{device}{_access(device)}")] = None
        for each in claim.classes if not claim.devices else ():
            class_point = Point(kind="class", name=f"DeviceClass {each}", of=f", asked for by {name}")
            edges[points[name]][class_point] = None
    return Graph(roots=tuple(roots), edges={point: tuple(below) for point, below in edges.items()})


def _access(device: HeldDevice) -> str:
    if device.is_admin:
        return " (admin access)"
    return " (a share)" if device.share else ""


def draw_tree(graph: Graph) -> Iterator[str]:
    """One line for each object; one that several lead to is drawn below each."""
    for root in graph.roots:
        yield root.name
        yield from _draw(graph, root, "")


def _draw(graph: Graph, point: Point, indent: str) -> Iterator[str]:
    below = graph.edges.get(point, ())
    for index, each in enumerate(below):
        last = index == len(below) - 1
        yield f"{indent}{'└─' if last else '├─'} {each.name}"
        yield from _draw(graph, each, f"{indent}{'   ' if last else '│  '}")


def draw_dot(graph: Graph) -> Iterator[str]:
    """Draw the graph for Graphviz."""
    names = _number(graph)
    yield "digraph claims {"
    yield "  rankdir=LR;"
    for point, name in names.items():
        yield f"  {name} [label={json.dumps(str(point), ensure_ascii=False)}, shape={_SHAPES[point.kind]}];"
    yield from _lines(graph, names, lambda start, end: f"  {start} -> {end};")
    yield "}"


def draw_mermaid(graph: Graph) -> Iterator[str]:
    """Draw the graph for Markdown pages, in Mermaid."""
    names = _number(graph)
    yield "flowchart LR"
    for point, name in names.items():
        quoted = '"' + str(point).replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;") + '"'
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
