"""Causes around the claims, by name: classes, drivers, pools, MIG.

Each is one of the common reasons why pods wait.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from dra_infra.errors import Problem
from dra_infra.explanation.device_checks import find_unusable_pools
from dra_infra.explanation.question import Question
from dra_infra.kubernetes.api import (
    DeviceClass,
    DeviceSubRequest,
    ExactDeviceRequest,
    Node,
    drivers_of,
    expressions_of,
)
from dra_infra.kubernetes.scheduler.allocator import PoolID, describe_counts
from dra_infra.output.wording import nearest_in_domain

_MIG: Final = re.compile(r"\.type\s*==\s*(['\"])mig\1")
_CODES: Final = {"incomplete": "pool-incomplete", "invalid": "pool-invalid", "obsolete": "pool-obsolete"}
_HINTS: Final = {
    "incomplete": "the driver is still writing it, or the server refused a slice: see the log of its pod there",
    "invalid": "that is a bug of the driver; restarting its pod on the node makes it publish anew",
    "obsolete": "the driver is replacing the slices; if it stays, see the log of its pod on this node",
}
_SHOWN: Final = 4


def find_causes(question: Question) -> Iterator[Problem]:
    """Codes `class-not-known`, `driver-missing`, `driver-not-on-node`, `mig-not-published`, `slice-node-gone`,
    `pool-incomplete`, `pool-invalid`, `pool-obsolete`, `slice-counts-differ`.
    """  # noqa: D205  (one list of codes)
    drivers: set[str] = set()
    seen: set[str] = set()
    for asked in question.claims:
        requests = enumerate(asked.claim.spec.devices.requests or ())
        leaves = (
            (f"devices.requests[{place}].{field}", leaf)
            for place, request in requests
            for _, field, leaf in request.leaves
        )
        for path, leaf in leaves:
            name = leaf.device_class_name
            device_class = question.cluster.classes.get(name)
            if device_class is None:
                yield _unknown_class(question, f"{asked.name}: {asked.path}.{path}.deviceClassName", name)
            elif name not in seen:
                seen.add(name)
                drivers |= drivers_of(device_class)
                yield from _without_driver(question, device_class)
                yield from _without_mig(question, device_class, leaf)
    yield from _pools(question, drivers)


def _unknown_class(question: Question, path: str, name: str) -> Problem:
    known = sorted(question.cluster.classes)
    near = nearest_in_domain(name, known)
    hint = f"did you mean {near}?" if near else f"classes that are there: {', '.join(known[:8]) or 'none'}"
    return Problem(
        path=path,
        code="class-not-known",
        message=f"DeviceClass {name} is not among those that were read",
        hint=hint,
    )


def _without_driver(question: Question, device_class: DeviceClass) -> Iterator[Problem]:
    name = device_class.metadata.name
    for driver in sorted(drivers_of(device_class)):
        slices = [each for each in question.slices if each.spec.driver == driver]
        if not slices and driver in question.drivers_to_come:
            # Nodes of a pool that is at zero bring them; whether its autoscaler adds one is reported as growth.
            continue
        if not slices:
            yield Problem(
                path=f"DeviceClass {name}",
                code="driver-missing",
                message=f"no ResourceSlice of its driver {driver} is there, so it has no device at all",
                hint=f"install the driver, or look why it publishes nothing: dra-infra doctor --driver {driver}",
            )
            continue
        index = question.cluster.index
        here = {id(each) for node in question.eligible for each in index.relevant(node)}
        if question.eligible and not any(id(each) in here for each in slices):
            nodes = sorted({each.spec.node_name for each in slices if each.spec.node_name})
            where = f"for {', '.join(nodes[:_SHOWN])}" if nodes else "for other nodes"
            yield Problem(
                path=f"DeviceClass {name}",
                code="driver-not-on-node",
                message=f"driver {driver} publishes devices {where}, and for none of the nodes to which the pod may go",
                hint="let the pod go there, or see why the driver's pod is not on the other nodes: dra-infra doctor",
            )


def _without_mig(
    question: Question, device_class: DeviceClass, leaf: ExactDeviceRequest | DeviceSubRequest
) -> Iterator[Problem]:
    selectors = (*(device_class.spec.selectors or ()), *(leaf.selectors or ()))
    if not any(map(_MIG.search, expressions_of(selectors))):
        return
    types = {
        attribute.string
        for slice_ in question.slices
        for device in slice_.spec.devices or ()
        if (attribute := (device.attributes or {}).get("type")) is not None
    }
    if types and "mig" not in types:
        yield Problem(
            path=f"DeviceClass {device_class.metadata.name}",
            code="mig-not-published",
            message=f"it is for MIG devices, and all devices are of type {', '.join(sorted(filter(None, types)))}",
            hint="make them with the MIG manager (label nvidia.com/mig.config), or switch on the driver's gate DynamicMIG",
        )


def _pools(question: Question, drivers: set[str]) -> Iterator[Problem]:
    nodes = {node.name for node in question.nodes}
    gone = sorted(
        {
            each.spec.node_name
            for each in question.slices
            if each.spec.node_name and each.spec.node_name not in nodes
        }
    )
    if gone:
        yield Problem(
            path="ResourceSlices",
            code="slice-node-gone",
            message=f"slices are for nodes that are not there: {', '.join(gone[:_SHOWN])}",
            hint="their devices are nobody's; see whether these nodes should be there",
            severity="warning",
        )
    reported: set[PoolID] = set()
    for node in question.eligible:
        for problem, pool in _pools_of_node(question, node):
            if pool not in reported and (not drivers or pool.driver in drivers):
                reported.add(pool)
                yield problem


def _pools_of_node(question: Question, node: Node) -> Iterator[tuple[Problem, PoolID]]:
    """Yield what is wrong with the pools that a node sees, and with which pool."""
    for trouble in find_unusable_pools(question.cluster, node):
        hint = _HINTS[trouble.state]
        if trouble.is_overfull:
            hint = "delete the slice that an earlier run of the driver left, or restart its pod, which publishes anew"
        yield (
            Problem(
                path=f"pool {trouble.pool}",
                code=_CODES[trouble.state],
                message=f"it is {trouble.state}: {trouble.why}; none of its devices is allocated",
                hint=hint,
            ),
            trouble.pool,
        )
    for pool in question.cluster.pools(node):
        if pool.counts:
            yield (
                Problem(
                    path=f"pool {pool.id}",
                    code="slice-counts-differ",
                    message=f"{describe_counts(pool.counts)}; whether its devices are allocated may change from attempt to attempt",
                    hint="the driver has to publish one number in all slices of a generation: restart its pod, or report the bug",
                    severity="warning",
                ),
                pool.id,
            )
