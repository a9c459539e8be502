"""Hypothetical changes of a fleet or program: nodes added, removed or drained, failed devices, scaled pods.

Objects of a program get other numbers of pods, written as `deployment/x=40`.
"""

from __future__ import annotations

import copy
import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any, Final

from dra_infra.errors import FleetError, InvalidSpecError, Problem
from dra_infra.fleet import Fleet, renamed_node, renamed_slice
from dra_infra.kubernetes.api import Device, DeviceTaint, Node, Release, kind_of, mapping
from dra_infra.output.wording import count_of
from dra_infra.placement.objects import SCALERS, as_referenced, target_of

FAILED = DeviceTaint(key="dra-infra/what-if", value="failed", effect="NoExecute")
"""What a failed device gets, as drivers taint one that is not healthy."""


@dataclass(frozen=True, kw_only=True, slots=True)
class WhatIf:
    """Changes to a fleet, in the order: nodes come, nodes go, nodes are drained, devices fail.

    Args:
        add: More hardware.
        remove: Nodes that go with their devices; names or patterns such as `gpu-1*`.
        drain: Nodes that take no more pods, and have only those of DaemonSets; names or patterns.
        fail: Devices as `NODE/DEVICE`; patterns in both.
    """

    add: tuple[Fleet, ...] = ()
    remove: tuple[str, ...] = ()
    drain: tuple[str, ...] = ()
    fail: tuple[str, ...] = ()


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
            notes.append(f"with {count_of(failed, 'device')} failed ({wanted}), {how}")
        else:
            problems.append(_unknown_device(fleet, wanted))
    if problems:
        raise FleetError(problems)
    return replace(fleet, notes=(*fleet.notes, *(f"what if: {note}" for note in notes)))


def _add(fleet: Fleet, more: Fleet) -> tuple[Fleet, str]:
    # A node that a pool may still get keeps its name.
    taken = {
        node.name
        for each in (fleet, *(spare for pool in fleet.pools for spare in pool.spare))
        for node in each.nodes
    }
    names: dict[str, str] = {}
    for node in more.nodes:
        name = node.name
        number = 1
        while name in taken:
            number += 1
            name = f"{node.name}-{number}"
        taken.add(name)
        names[node.name] = name
    nodes = tuple(renamed_node(node, names[node.name]) for node in more.nodes)
    slices = tuple(renamed_slice(slice_, names) for slice_ in more.slices)
    return (
        replace(
            fleet.with_classes(more.classes),
            nodes=tuple(sorted((*fleet.nodes, *nodes), key=lambda node: node.name)),
            slices=tuple(sorted((*fleet.slices, *slices), key=lambda slice_: slice_.metadata.name or "")),
            driver_releases=tuple(sorted({*fleet.driver_releases, *more.driver_releases})),
        ),
        f"with {more.name} added",
    )


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
    some = next(iter([*near, *names]), "")
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
    some = next(iter([*near, *known]), "")
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


_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "CronJob": ("spec", "jobTemplate", "spec", "parallelism"),
    "Deployment": ("spec", "replicas"),
    "Job": ("spec", "parallelism"),
    "LeaderWorkerSet": ("spec", "replicas"),
    "ReplicaSet": ("spec", "replicas"),
    "ReplicationController": ("spec", "replicas"),
    "StatefulSet": ("spec", "replicas"),
}
MOST: Final = 100_000
"""Most pods of a workload that are placed."""


def scale(
    manifests: Sequence[Mapping[str, Any]], wanted: Mapping[str, int]
) -> tuple[list[Mapping[str, Any]], tuple[str, ...]]:
    """The manifests with the numbers of pods that are asked for, and a note for each that changed.

    Args:
        manifests: The objects; they are not changed themselves.
        wanted: Number of pods by `kind/name` or `namespace/kind/name`, the kind in any case.

    Raises:
        InvalidSpecError: `scale-unknown`, `scale-number`; all at once.
    """
    scaled = list(manifests)
    known = {
        _call(manifest): index for index, manifest in enumerate(manifests) if kind_of(manifest) in _FIELDS
    }
    problems: list[Problem] = []
    notes: list[str] = []
    for target, number in wanted.items():
        if not 0 <= number <= MOST:
            problems.append(
                Problem(
                    path="--scale",
                    code="scale-number",
                    message=f"{target}={number}: a number of pods from 0 to {MOST:,} is needed",
                    hint=f"write --scale {target}=40",
                )
            )
            continue
        found = [index for name, index in known.items() if _is_called(name, target)]
        if not found:
            problems.append(_unknown(target, number, sorted(known)))
        for index in found:
            before, more = _set(scaled, index, number)
            notes.append(f"what if: {target} has {count_of(number, 'pod')} instead of {before}{more}")
    if problems:
        raise InvalidSpecError(problems)
    return scaled, tuple(notes)


def _set(manifests: list[Mapping[str, Any]], index: int, number: int) -> tuple[Any, str]:
    """Set the number of pods of an object; returns what it was, and what beside the field of the object was set."""
    manifest = copy.deepcopy(dict(manifests[index]))
    *steps, last = _FIELDS[kind_of(manifest)]
    holder: Any = manifest
    for step in steps:
        if not isinstance(holder.get(step), dict):
            holder[step] = {}
        holder = holder[step]
    before = holder.get(last, 1)
    more = ""
    holder[last] = number
    manifests[index] = manifest
    done = holder.get("completions") if last == "parallelism" else None
    if isinstance(done, int):
        # A Job runs no more pods than it has left to complete.
        before = min(before, done) if isinstance(before, int) else before
        if done < number:
            holder["completions"], more = number, f"; its completions are {number} instead of {done}"
    for at, scaler in enumerate(manifests):
        if target_of(scaler) == as_referenced(manifest):
            spec = mapping(scaler.get("spec"))
            (low, high, _, otherwise) = SCALERS[scaler["kind"]]
            manifests[at] = {**scaler, "spec": {**spec, low: number, high: number}}
            most = spec.get(high, otherwise)
            before = f"{spec.get(low, 1)} {'or more' if most is None else f'to {most}'}"
            more = f"; {low} and {high} of {scaler['kind']} {as_referenced(scaler).name} are {number}"
    return before, more


def _unknown(target: str, number: int, known: Sequence[str]) -> Problem:
    kinds = ", ".join(_FIELDS)
    hint = f"--scale changes objects of {kinds}: of other kinds change the number of pods in the manifest"
    shown = [name.split("/", 1)[1] for name in known]
    near = difflib.get_close_matches(target.lower()[:120], shown, n=1, cutoff=0.4)
    if some := near or (
        shown[:1] if {kind.lower() for kind in _FIELDS} & set(target.lower().split("/")) else []
    ):
        hint = f"write --scale {some[0]}={number}"
    return Problem(
        path="--scale",
        code="scale-unknown",
        message=f"{target[:120]}: no workload with a number of pods is called so",
        hint=hint,
    )


def _call(manifest: Mapping[str, Any]) -> str:
    metadata = manifest.get("metadata")
    holder: Mapping[str, Any] = metadata if isinstance(metadata, Mapping) else {}
    return f"{holder.get('namespace') or 'default'}/{kind_of(manifest).lower()}/{holder.get('name')}"


def _is_called(name: str, target: str) -> bool:
    kind, _, rest = target.rpartition("/")
    return f"{kind.lower()}/{rest}" in (name, name.split("/", 1)[1]) or (
        "/" in kind and f"{kind.rpartition('/')[0]}/{kind.rpartition('/')[2].lower()}/{rest}" == name
    )
