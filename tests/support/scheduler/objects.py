"""Short ways to write the objects of a scenario."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from tools.cluster import Manifest
from tools.cluster import node as plain_node

NAMESPACE: Final = "scheduler"
DRA: Final = "resource.k8s.io/v1"
IMAGE: Final = "registry.invalid/main:1"


def node(
    name: str,
    *,
    labels: Mapping[str, str] | None = None,
    taints: Sequence[Manifest] = (),
    cordoned: bool = False,
    cpu: str = "64",
    offers: Mapping[str, str] | None = None,
) -> Manifest:
    """A node with room for pods; a device plugin *offers* more."""
    amounts = {"cpu": cpu, **(offers or {})}
    made = plain_node(name, labels=labels)
    spec: Manifest = {"taints": list(taints)} if taints else {}
    if cordoned:
        spec["unschedulable"] = True
    return {**made, "spec": spec, "status": {"capacity": amounts, "allocatable": amounts}}


def resource_slice(
    name: str,
    driver: str,
    devices: Sequence[Manifest] = (),
    *,
    pool: str | None = None,
    generation: int = 1,
    count: int = 1,
    counters: Sequence[Manifest] = (),
    **place: Any,
) -> Manifest:
    """A slice of a pool.

    Args:
        name: Of the slice.
        driver: Whose devices they are.
        devices: The devices.
        pool: Its pool; default: named like the slice.
        generation: Of the pool.
        count: How many slices the pool has.
        counters: Its counter sets.
        place: One of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection`.
    """
    spec: Manifest = {
        "driver": driver,
        "pool": {"name": pool or name, "generation": generation, "resourceSliceCount": count},
        **place,
    }
    if counters:
        spec["sharedCounters"] = list(counters)
    else:
        spec["devices"] = list(devices)
    return {"apiVersion": DRA, "kind": "ResourceSlice", "metadata": {"name": name}, "spec": spec}


def device(name: str, *, memory: str | None = None, **fields: Any) -> Manifest:
    """A device; attributes are given as plain values."""
    found: Manifest = {"name": name}
    attributes = fields.pop("attributes", None)
    if attributes:
        found["attributes"] = {key: _typed(value) for key, value in attributes.items()}
    if memory:
        found["capacity"] = {"memory": {"value": memory}}
    return {**found, **fields}


def device_class(name: str, expression: str, **spec: Any) -> Manifest:
    """A class with one selector."""
    selectors = [{"cel": {"expression": expression}}]
    return {
        "apiVersion": DRA,
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": {"selectors": selectors, **spec},
    }


def exactly(name: str, class_name: str, *selectors: str, **fields: Any) -> Manifest:
    """A request for devices of one class."""
    return {"name": name, "exactly": wish(class_name, *selectors, **fields)}


def ladder(name: str, *rungs: Manifest) -> Manifest:
    """A request that takes the first rung that works."""
    return {
        "name": name,
        "firstAvailable": [{"name": f"rung-{number}", **rung} for number, rung in enumerate(rungs)],
    }


def wish(class_name: str, *selectors: str, **fields: Any) -> Manifest:
    """What a request or a rung of one asks for."""
    found: Manifest = {"deviceClassName": class_name, **fields}
    if selectors:
        found["selectors"] = [{"cel": {"expression": text}} for text in selectors]
    return found


def claim_spec(
    *requests: Manifest, constraints: Iterable[Manifest] = (), config: Iterable[Manifest] = ()
) -> Manifest:
    """The spec of a claim."""
    devices: Manifest = {"requests": list(requests)}
    if constraints := list(constraints):
        devices["constraints"] = constraints
    if config := list(config):
        devices["config"] = config
    return {"devices": devices}


def claim(name: str, spec: Manifest) -> Manifest:
    """A claim that pods name."""
    metadata = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": DRA, "kind": "ResourceClaim", "metadata": metadata, "spec": spec}


def template(name: str, spec: Manifest) -> Manifest:
    """A template of claims, one for each pod."""
    metadata = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": DRA, "kind": "ResourceClaimTemplate", "metadata": metadata, "spec": {"spec": spec}}


def pod(
    name: str,
    *,
    templates: Sequence[str] = (),
    claims: Sequence[str] = (),
    cpu: str | None = None,
    labels: Mapping[str, str] | None = None,
    ports: Sequence[Manifest] = (),
    **spec: Any,
) -> Manifest:
    """A pod of one container, with an entry for each template and claim.

    Args:
        name: Of the pod.
        templates: Names of claim templates.
        claims: Names of claims.
        cpu: What it requests.
        labels: Of the pod.
        ports: Of its container.
        spec: More of the pod spec, which may have containers of its own.
    """
    entries = [
        {"name": f"t{number}", "resourceClaimTemplateName": each} for number, each in enumerate(templates)
    ]
    entries += [{"name": f"c{number}", "resourceClaimName": each} for number, each in enumerate(claims)]
    resources: Manifest = {"claims": [{"name": each["name"]} for each in entries]}
    if cpu:
        resources["requests"] = {"cpu": cpu}
    container = {"name": "main", "image": IMAGE, "resources": resources, "ports": list(ports)}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": dict(labels or {})},
        "spec": {"containers": [container], "resourceClaims": entries, **spec},
    }


def container(name: str, limits: Mapping[str, str], **fields: Any) -> Manifest:
    """A container with limits, which are its requests too."""
    return {"name": name, "image": IMAGE, "resources": {"limits": dict(limits)}, **fields}


def _typed(value: bool | int | str) -> Manifest:
    if isinstance(value, bool):
        return {"bool": value}
    return {"int": value} if isinstance(value, int) else {"string": value}
