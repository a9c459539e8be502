"""Node resources that devices count against, such as cpu and memory (gate DRANodeAllocatableResources).

The gate is off by default. A device may stand for some of a node's resources (a mapping), or cost some besides (an
overhead); the pod that gets it takes them on top of what its containers request.

Source: nodeallocatabledynamicresources.go of the scheduler's dynamicresources plugin, and
addDRANodeAllocatableClaimResources in k8s.io/component-helpers/resource; 1.36 has mappings only, in another field.
Limits of the pod as a whole are not checked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from dra_infra.kubernetes.api.gates import Release
from dra_infra.kubernetes.api.pod_containers import Amounts, read_containers
from dra_infra.kubernetes.api.quantity import Quantity
from dra_infra.kubernetes.api.resource_claim import AllocationResult, DeviceRequestAllocationResult
from dra_infra.kubernetes.api.resource_slice import Device, ResourceSlice
from dra_infra.kubernetes.scheduler.pod_resources import (
    Exact,
    add_amounts,
    container_requests,
    find_pod_level,
    pod_requests,
)

GATE: Final = "DRANodeAllocatableResources"


@dataclass(frozen=True, slots=True)
class _Part:
    """Amount that a device counts against one resource of its node.

    Args:
        is_mapping: Whether it stands for some of the resource; else it costs some.
        amount: Units for each device, or for each unit of the capacity.
        capacity: The capacity whose consumed amount counts; empty when the amount is the same for each device.
        per_container: Units more for each use of the claim by a container.
    """

    is_mapping: bool
    amount: Fraction
    capacity: str = ""
    per_container: Fraction = Fraction(0)


class DeviceAmounts:
    """The devices of a fleet that count against their nodes; with the gate off none does."""

    def __init__(self, slices: Iterable[ResourceSlice], release: Release) -> None:
        self._release = release
        self._devices: dict[tuple[str, str, str], Device] = {}
        for each in slices if release.enabled(GATE) else ():
            for device in each.spec.devices or ():
                if any(self._parts(device)):
                    key = each.spec.driver, each.spec.pool.name, device.name
                    self._devices.setdefault(key, device)

    def __bool__(self) -> bool:
        """A device counts against its node."""
        return bool(self._devices)

    def count_for(
        self, spec: Mapping[str, Any], claims: Sequence[tuple[str, AllocationResult]]
    ) -> Amounts | str:
        """Amounts that a pod takes of a node with the devices that it got there, or why it cannot run with them.

        Args:
            spec: The pod spec.
            claims: The pod's claims with what they got; the name is that of the entry in the pod.
        """
        added: Exact = {}
        for entry, allocation in claims:
            found = [
                (result, device)
                for result in allocation.devices.results or ()
                for device in self._find(result)
            ]
            # Each reference counts, also two of one container to different requests.
            users = sum(container.claims.count(entry) for container in read_containers(spec))
            if found and self._release.number == 36 and not users:
                return f"no container uses claim {entry}, whose devices count against the node"
            for result, device in found:
                for name, part in self._parts(device):
                    consumed = result.consumed_capacity
                    if part.capacity and consumed is None:
                        return f"device {result.device} counts by capacity {part.capacity}, of which none is consumed"
                    amount = (
                        part.amount * _read((consumed or {}).get(part.capacity, "0"))
                        if part.capacity
                        else part.amount
                    )
                    added = add_amounts(added, {name: amount + part.per_container * users})
        inside = container_requests(spec)
        budget = find_pod_level(spec, inside, self._release.number)
        for name, amount in add_amounts(inside, added).items():
            # The server has seen to this for what containers ask for, before there were devices.
            if added and amount > budget.get(name, amount):
                return f"the pod's request for {name} does not cover its containers and devices"
        return pod_requests(spec, added)

    def maps(self, allocation: AllocationResult) -> bool:
        """A claim holds a device that stands for resources of its node: then no second pod can share it."""
        return any(
            part.is_mapping
            for result in allocation.devices.results or ()
            for device in self._find(result)
            for _, part in self._parts(device)
        )

    def _find(self, result: DeviceRequestAllocationResult) -> Iterator[Device]:
        found = self._devices.get((result.driver, result.pool, result.device))
        if found is not None:
            yield found

    def _parts(self, device: Device) -> Iterator[tuple[str, _Part]]:
        if self._release.number == 36:
            for name, each in (device.node_allocatable_resource_mappings or {}).items():
                alone = "0" if each.capacity_key is None else "1"
                amount = _read(each.allocation_multiplier or alone)
                yield name, _Part(is_mapping=True, capacity=each.capacity_key or "", amount=amount)
            return
        for name, resource in (device.node_allocatable_resources or {}).items():
            if (mapped := resource.mapping) is not None:
                amount = (
                    _read(mapped.capacity_multiplier or "1")
                    if mapped.capacity_key
                    else _read(mapped.device_multiplier or "0")
                )
                yield name, _Part(is_mapping=True, capacity=mapped.capacity_key or "", amount=amount)
            if (cost := resource.overhead) is not None:
                yield (
                    name,
                    _Part(
                        is_mapping=False,
                        amount=_read(cost.per_pod or "0"),
                        per_container=_read(cost.per_container or "0"),
                    ),
                )


def _read(text: str) -> Fraction:
    return Quantity.parse(text).value
