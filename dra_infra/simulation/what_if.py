"""A fleet with something changed: nodes added, taken away or drained, devices that fail."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from dra_infra.errors import FleetError, Problem
from dra_infra.model.device import Device
from dra_infra.model.fleet import Fleet, Node
from dra_infra.model.resource_slice import ResourceSlice
from dra_infra.model.target import Release
from dra_infra.model.toleration import DeviceTaint

FAILED = DeviceTaint(key="dra-infra/what-if", value="failed", effect="NoExecute")
"""What a failed device gets, as drivers taint one that is not healthy."""


@dataclass(frozen=True, kw_only=True, slots=True)
class WhatIf:
    """Changes to a fleet, in the order: nodes come, nodes go, nodes are drained, devices fail.

    Args:
        add: More hardware.
        remove: Nodes that go with their devices; names or patterns such as `gpu-1*`.
        drain: Nodes that take no more pods; names or patterns.
        fail: Devices as `NODE/DEVICE`; patterns in both.
    """

    add: tuple[Fleet, ...] = ()
    remove: tuple[str, ...] = ()
    drain: tuple[str, ...] = ()
    fail: tuple[str, ...] = ()

    @property
    def is_nothing(self) -> bool:
        """Whether nothing is changed."""
        return not (self.add or self.remove or self.drain or self.fail)


def change_fleet(fleet: Fleet, what_if: WhatIf, release: Release) -> Fleet:
    """The fleet with the changes made, and a note for each.

    Args:
        fleet: The fleet.
        what_if: What changes.
        release: Whose servers: where they keep no taints of devices, one that fails is no longer published.

    Raises:
        FleetError: `what-if-node`, `what-if-device` where nothing is called so; all at once.
    """
    problems: list[Problem] = []
    notes: list[str] = []
    for more in what_if.add:
        fleet, note = _add(fleet, more)
        notes.append(note)
    removed = _find_nodes(fleet.nodes, what_if.remove, "--remove", problems)
    if removed:
        fleet = _remove(fleet, removed)
        notes.append(f"without {_nodes(removed)}")
    drained = _find_nodes(fleet.nodes, what_if.drain, "--drain", problems)
    if drained:
        nodes = tuple(
            replace(node, unschedulable=True) if node.name in drained else node for node in fleet.nodes
        )
        fleet = replace(fleet, nodes=nodes)
        notes.append(f"with {_nodes(drained)} drained")
    taint = FAILED if release.enabled("DRADeviceTaints") else None
    for wanted in what_if.fail:
        fleet, failed = _fail(fleet, wanted, taint)
        if failed:
            how = "tainted" if taint else f"no longer published: {release.minor} keeps no taints of devices"
            notes.append(f"with {_count(failed, 'device')} failed ({wanted}), {how}")
        else:
            problems.append(_unknown_device(fleet, wanted))
    if problems:
        raise FleetError(problems)
    return replace(fleet, notes=(*fleet.notes, *(f"what if: {note}" for note in notes)))


def _add(fleet: Fleet, more: Fleet) -> tuple[Fleet, str]:
    taken = {node.name for node in fleet.nodes}
    names: dict[str, str] = {}
    for node in more.nodes:
        name, number = node.name, 1
        while name in taken:
            number += 1
            name = f"{node.name}-{number}"
        taken.add(name)
        names[node.name] = name
    nodes = tuple(_renamed_node(node, names[node.name]) for node in more.nodes)
    slices = tuple(_renamed_slice(slice_, names) for slice_ in more.slices)
    known = {class_.metadata.name for class_ in fleet.classes}
    added = tuple(class_ for class_ in more.classes if class_.metadata.name not in known)
    return (
        replace(
            fleet,
            nodes=tuple(sorted((*fleet.nodes, *nodes), key=lambda node: node.name)),
            slices=tuple(sorted((*fleet.slices, *slices), key=lambda slice_: slice_.metadata.name or "")),
            classes=tuple(sorted((*fleet.classes, *added), key=lambda class_: class_.metadata.name or "")),
        ),
        f"with {more.name} added",
    )


def _renamed_node(node: Node, name: str) -> Node:
    if name == node.name:
        return node
    labels = {key: name if value == node.name else value for key, value in node.labels.items()}
    return replace(node, name=name, labels=labels)


def _renamed_slice(slice_: ResourceSlice, names: dict[str, str]) -> ResourceSlice:
    spec = slice_.spec
    name = names.get(spec.node_name or "")
    if name is None or name == spec.node_name:
        return slice_
    # Drivers call pool and slice after the node.
    pool = spec.pool.changed({"name": name}) if spec.pool.name == spec.node_name else spec.pool
    metadata = slice_.metadata.changed(
        {"name": (slice_.metadata.name or "").replace(spec.node_name or "", name)}
    )
    return slice_.changed({"metadata": metadata, "spec": spec.changed({"node_name": name, "pool": pool})})


def _remove(fleet: Fleet, names: Sequence[str]) -> Fleet:
    gone = frozenset(names)
    return replace(
        fleet,
        nodes=tuple(node for node in fleet.nodes if node.name not in gone),
        slices=tuple(slice_ for slice_ in fleet.slices if slice_.spec.node_name not in gone),
    )


def _fail(fleet: Fleet, wanted: str, taint: DeviceTaint | None) -> tuple[Fleet, int]:
    where, _, name = wanted.rpartition("/")
    count = 0
    slices = []
    for slice_ in fleet.slices:
        if not fnmatchcase(slice_.spec.node_name or slice_.spec.pool.name, where):
            slices.append(slice_)
            continue
        devices: list[Device] = []
        for device in slice_.spec.devices or ():
            fails = fnmatchcase(device.name, name)
            count += fails
            if not fails:
                devices.append(device)
            elif taint is not None:
                devices.append(device.changed({"taints": [*(device.taints or ()), taint]}))
        slices.append(slice_.changed({"spec": slice_.spec.changed({"devices": devices or None})}))
    return replace(fleet, slices=tuple(slices)), count


def _find_nodes(
    nodes: Iterable[Node], patterns: Sequence[str], option: str, problems: list[Problem]
) -> list[str]:
    names = [node.name for node in nodes]
    found: list[str] = []
    for pattern in patterns:
        matched = [name for name in names if fnmatchcase(name, pattern)]
        if not matched:
            problems.append(_unknown_node(names, pattern, option))
        found += [name for name in matched if name not in found]
    return sorted(found)


def _unknown_node(names: Sequence[str], pattern: str, option: str) -> Problem:
    near = difflib.get_close_matches(pattern[:80], names, n=1, cutoff=0.5)
    some = near[0] if near else (names[0] if names else "")
    return Problem(
        path=option,
        code="what-if-node",
        message=f"no node of the fleet is called {pattern[:80]!r}",
        hint=f"write {option} {some}" if some else "the fleet has no nodes",
    )


def _unknown_device(fleet: Fleet, wanted: str) -> Problem:
    known = [
        f"{slice_.spec.node_name or slice_.spec.pool.name}/{device.name}"
        for slice_ in fleet.slices
        for device in slice_.spec.devices or ()
    ]
    near = difflib.get_close_matches(wanted[:120], known[:5000], n=1, cutoff=0.5)
    some = near[0] if near else (known[0] if known else "")
    return Problem(
        path="--fail",
        code="what-if-device",
        message=f"no device of the fleet is called {wanted[:120]!r}; devices are written NODE/DEVICE",
        hint=f"write --fail {some}" if some else "the fleet has no devices",
    )


def _nodes(names: Sequence[str]) -> str:
    return (
        f"node {names[0]}"
        if len(names) == 1
        else f"{len(names)} nodes ({', '.join(names[:3])}{', …' if len(names) > 3 else ''})"
    )


def _count(number: int, noun: str) -> str:
    return f"1 {noun}" if number == 1 else f"{number} {noun}s"
