"""Extended resources that device classes serve: the claim that the scheduler makes for a pod, per node.

A container asks for `limits: {example.com/gpu: 2}` and no claim is written. On a node whose device plugin publishes
the resource the plugin serves it; elsewhere the scheduler makes one claim for all such resources of the pod.

Source: extendeddynamicresources.go of the scheduler's dynamicresources plugin and extendedresourcecache.go of
k8s.io/dynamic-resource-allocation (1.35 to 1.37, which agree); for 1.34 createDeviceRequests in dynamicresources.go
and DeviceClassMapping in extended/util.go; shouldDelegateResourceToDRA and fitsRequest of the noderesources plugin.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from dra_infra.kubernetes.api.device_class import DeviceClass
from dra_infra.kubernetes.api.gates import Release
from dra_infra.kubernetes.api.go_time import canonical_time
from dra_infra.kubernetes.api.metadata import ObjectMeta, OwnerReference
from dra_infra.kubernetes.api.names import is_extended_resource_name
from dra_infra.kubernetes.api.pod_containers import Amounts, PodContainer, read_containers
from dra_infra.kubernetes.api.resource_claim import (
    DeviceClaim,
    DeviceRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
)

EXTENDED_RESOURCES_GATE: Final = "DRAExtendedResource"
"""Without it, extended resources of classes are no claims."""
EXTENDED_CLAIM_ENTRY: Final = "<extended-resources>"
"""How the scheduler calls the claim before it is written; no entry of a pod can have this name."""

CLASS_RESOURCE_PREFIX: Final = "deviceclass.resource.kubernetes.io/"
"""In front of a class's name in the extended resource that every class has."""

EXTENDED_CLAIM_ANNOTATION: Final = "resource.kubernetes.io/extended-resource-claim"
"""The annotation of claims that the scheduler made for extended resources."""


class ServedResources:
    """The class that serves each extended resource.

    Args:
        classes: All classes of the cluster.
        release: Whose rule it is; nothing is served where its gate DRAExtendedResource is off.
        new: Names of classes that are yet to be created, so newer than all others.
    """

    def __init__(
        self, classes: Iterable[DeviceClass], release: Release, new: frozenset[str] = frozenset()
    ) -> None:
        self.release = release
        self.ambiguous: dict[str, tuple[str, ...]] = {}
        """Resources with which it depends on the order of events what the scheduler takes them for.

        In 1.34 any one of several classes with one resource name. Later the implicit name of a class that has to yield
        its resource name to another: it is only known when the scheduler saw that class first (the early return of
        updateResourceName2class).
        """
        self._class_of: dict[str, str] = {}
        if not release.enabled(EXTENDED_RESOURCES_GATE):
            return
        explicit: dict[str, list[DeviceClass]] = {}
        for each in classes:
            name = each.metadata.name
            resource = each.spec.extended_resource_name
            if resource:
                explicit.setdefault(resource, []).append(each)
            if not resource or release.number > 34:
                self._class_of[f"{CLASS_RESOURCE_PREFIX}{name}"] = name
        for resource, holders in explicit.items():
            self._class_of[resource] = _find_newest(holders, new).metadata.name
            names = tuple(sorted(each.metadata.name for each in holders))
            if release.number == 34 and len(holders) > 1:
                self.ambiguous[resource] = names
            elif len(holders) > 1:
                yields = (name for name in names if name != self._class_of[resource])
                self.ambiguous |= {f"{CLASS_RESOURCE_PREFIX}{name}": names for name in yields}

    def class_of(self, resource: str) -> str | None:
        """The class whose devices stand for a resource; the newest of several, and of these the first by name."""
        return self._class_of.get(resource)

    def find(self, spec: Mapping[str, Any], requests: Amounts) -> ExtendedDemand | None:
        """The extended resources that a pod asks for; None when no class serves any of them.

        Args:
            spec: The pod spec.
            requests: What the pod takes of a node, as `pod_requests` says.
        """
        names = tuple(sorted(name for name, amount in requests.items() if amount and self.class_of(name)))
        return ExtendedDemand(self, tuple(read_containers(spec)), names) if names else None


@dataclass(frozen=True, eq=False, slots=True)
class ExtendedDemand:
    """The extended resources that one pod asks for and classes serve.

    Args:
        served: Which class serves what.
        containers: Init containers, then the others.
        names: The resources, sorted.
    """

    served: ServedResources
    containers: tuple[PodContainer, ...]
    names: tuple[str, ...]

    def by_devices(self, allocatable: Mapping[str, int]) -> tuple[str, ...]:
        """The resources that a node leaves to devices, for it has no device plugin for them.

        From 1.35 on a plugin that has none left to offer, `0`, counts as absent; in 1.34 it does not.
        """
        if self.served.release.number == 34:
            return tuple(name for name in self.names if name not in allocatable)
        return tuple(name for name in self.names if allocatable.get(name, 0) <= 0)

    def requests_for(
        self, allocatable: Mapping[str, int], *, has_claims: bool = False
    ) -> tuple[DeviceRequest, ...]:
        """The requests of the claim that the scheduler makes on a node; none when it makes no claim there."""
        names = list(self.by_devices(allocatable))
        if self.served.release.number == 34:
            # 1.34 knows implicit names to be served, but takes only others for extended resources: such a pod is
            # let through without a device.
            names = [name for name in names if is_extended_resource_name(name)]
            if names or has_claims:
                # Once there is a claim, it also asks for what the device plugin serves.
                names = [name for name in self.names if is_extended_resource_name(name)]
            found = [each for name in names for each in self._one_each(name)]
        else:
            found = [each for name in names for each in self._reusing(name)]
        return tuple(sorted(found, key=lambda each: each.name))

    def is_stuck(self, allocatable: Mapping[str, int], *, has_claims: bool) -> bool:
        """The scheduler tries for ever to bind the pod to a node.

        A bug of 1.35 to 1.37: for a pod with claims of its own it also makes a claim that asks for nothing, where a
        device plugin serves all of its extended resources, and then has nothing to write into the pod's status: "nil or
        empty request mappings" (patchPodExtendedResourceClaimStatus).
        """
        return has_claims and self.served.release.number > 34 and not self.by_devices(allocatable)

    def claim_for(
        self, allocatable: Mapping[str, int], pod: str, namespace: str, *, has_claims: bool = False
    ) -> ResourceClaim | None:
        """The claim that the scheduler makes when it binds the pod to a node; None when it makes none.

        Args:
            allocatable: What the node offers.
            pod: Name of the pod, which the claim's name begins with.
            namespace: Namespace of both.
            has_claims: Whether the pod has claims of its own.
        """
        requests = self.requests_for(allocatable, has_claims=has_claims)
        if not requests:
            return None
        owner = OwnerReference(api_version="v1", kind="Pod", name=pod, controller=True)
        return ResourceClaim(
            metadata=ObjectMeta(
                generate_name=f"{pod}-extended-resources-",
                namespace=namespace,
                annotations={EXTENDED_CLAIM_ANNOTATION: "true"},
                owner_references=[owner],
            ),
            spec=ResourceClaimSpec(devices=DeviceClaim(requests=list(requests))),
        )

    def _one_each(self, resource: str) -> list[DeviceRequest]:
        """One request per container, init containers like the others: createDeviceRequests of 1.34."""
        found = (
            self._ask(index, resource, each.count(resource)) for index, each in enumerate(self.containers)
        )
        return [each for each in found if each is not None]

    def _reusing(self, resource: str) -> list[DeviceRequest]:
        """One per container that stays, and one more for the init container that needs most beyond those after it.

        Upstream: createRequestsAndMappings.
        """
        lasting: dict[int, int] = {
            index: each.count(resource) for index, each in enumerate(self.containers) if each.is_lasting
        }
        most: DeviceRequest | None = None
        for index, each in enumerate(self.containers):
            if each.is_lasting or not each.count(resource):
                continue
            # An init container that ends may use what is there for those that start after it.
            reusable = sum(count for later, count in lasting.items() if later > index)
            extra = self._ask(index, resource, max(each.count(resource) - reusable, 0))
            if extra is not None and (most is None or _count(most) < _count(extra)):
                most = extra
        found = [self._ask(index, resource, count) for index, count in lasting.items()]
        return [each for each in (most, *found) if each is not None]

    def _ask(self, index: int, resource: str, count: int) -> DeviceRequest | None:
        if not count:
            return None
        return DeviceRequest(
            name=f"container-{index}-request-{self.containers[index].position(resource)}",
            exactly=ExactDeviceRequest(
                device_class_name=self.served.class_of(resource) or "",
                allocation_mode="ExactCount",
                count=count,
            ),
        )


def _find_newest(classes: Iterable[DeviceClass], new: frozenset[str]) -> DeviceClass:
    """The class that the scheduler takes of several with one resource name."""

    def age(each: DeviceClass) -> tuple[bool, str]:
        return each.metadata.name in new, canonical_time(each.metadata.creation_timestamp or "")

    return max(sorted(classes, key=lambda each: each.metadata.name), key=age)


def _count(request: DeviceRequest) -> int:
    return request.exactly.count if request.exactly else 0
