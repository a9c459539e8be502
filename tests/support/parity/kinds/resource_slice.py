"""Valid ResourceSlices: of whole devices, of parts with counters, of counters alone, of shareable devices."""

from __future__ import annotations

import copy
from collections.abc import Callable
from random import Random
from typing import Any

from tests.support.parity.cases import Object
from tests.support.parity.kinds import claim
from tests.support.parity.kinds.metadata import metadata

NAMES = ("gpu-0", "gpu-1", "nic-0", "0", "d" * 63)
DRIVERS = ("gpu.example.com", "a", "GPU.Example.com", "d" * 63)
POOLS = ("node-a", "a/b.c", "p" * 253)
ATTRIBUTES = ("model", "gpu.example.com/numa", "uuid", "_x", "a/b", "i" * 32)
CAPACITIES = ("memory", "cores", "gpu.example.com/slots")
AMOUNTS: tuple[Any, ...] = ("80Gi", "1", "1.5", "100m", "1e3", 5, "10")
CONDITIONS = ("a/ready", "b", "x.example.com/Attached")
VALUES: tuple[Object, ...] = (
    {"int": 0}, {"int": -(2**63)}, {"bool": False}, {"string": ""}, {"string": "é" * 32}, {"string": "H100 <80GB> & more"},
    {"version": "1.2.3"}, {"version": "0.0.0-a.1+b"},
)  # fmt: skip
LISTS: tuple[Object, ...] = (
    {"ints": [1, -1]}, {"bools": [True, True]}, {"strings": ["", "é"]}, {"versions": ["1.0.0", "2.0.0-rc.1"]},
)  # fmt: skip


def resource_slice(random: Random) -> Object:
    """A slice that every minor with all gates accepts, unless it has fields that an older one does not know."""
    build: Callable[[Random], Object] = random.choices(
        (_whole, _partitioned, _offering, _shareable, _per_device, _crowded), (8, 4, 3, 5, 3, 1)
    )[0]
    version = random.choice(claim.VERSIONS)
    spec = {"driver": random.choice(DRIVERS), "pool": _pool(random), **build(random)}
    if version == "v1beta1":
        spec["devices"] = [_wrapped(device) for device in spec["devices"]] if "devices" in spec else None
        spec = {key: value for key, value in spec.items() if value is not None}
    return {
        "apiVersion": f"{claim.GROUP}/{version}",
        "kind": "ResourceSlice",
        "metadata": metadata(random),
        "spec": spec,
    }


def _pool(random: Random) -> Object:
    return {
        "name": random.choice(POOLS),
        "generation": random.choice((0, 1, 2**63 - 1)),
        "resourceSliceCount": random.choice((1, 2, 2**63 - 1)),
    }


def _nodes(random: Random) -> Object:
    return copy.deepcopy(
        random.choice(({"nodeName": "node-a"}, {"allNodes": True}, {"nodeSelector": node_selector(random)}))
    )


def node_selector(random: Random) -> Object:
    """A selector of one term with requirements of each form."""
    expressions: tuple[Object, ...] = (
        {"key": "a/b", "operator": "In", "values": ["x", ""]},
        {"key": "zone", "operator": "NotIn", "values": ["a"]},
        {"key": "gpu", "operator": "Exists"},
        {"key": "gpu", "operator": "DoesNotExist"},
        {"key": "count", "operator": "Gt", "values": ["3"]},
    )
    term: Object = {"matchExpressions": random.sample(expressions, random.randint(1, 2))}
    if random.random() < 0.5:
        term["matchFields"] = [{"key": "metadata.name", "operator": "In", "values": ["node-a"]}]
    return {"nodeSelectorTerms": [term]}


def _device(random: Random, name: str, *, lists: float = 0.03) -> Object:
    device: Object = {"name": name}
    if random.random() < 0.8:
        names = random.sample(ATTRIBUTES, random.randint(1, 4))
        device["attributes"] = {
            each: copy.deepcopy(random.choice(LISTS if random.random() < lists else VALUES)) for each in names
        }
    if random.random() < 0.6:
        names = random.sample(CAPACITIES, random.randint(1, 2))
        device["capacity"] = {each: {"value": random.choice(AMOUNTS)} for each in names}
    if random.random() < 0.25:
        device["taints"] = [taint(random) for _ in range(random.randint(1, 2))]
    if random.random() < 0.15:
        ready, failed = random.sample(CONDITIONS, 2)
        device |= {"bindingConditions": [ready], "bindingFailureConditions": [failed], "bindsToNode": True}
    if random.random() < 0.05:
        device |= _node_resources(random, device)
    return device


def _node_resources(random: Random, device: Object) -> Object:
    mapping: Object = {"deviceMultiplier": "2"}
    if device.get("capacity") and random.random() < 0.5:
        mapping = {"capacityKey": next(iter(device["capacity"])), "capacityMultiplier": "1.5"}
    resource: Object = {"mapping": mapping}
    if random.random() < 0.5:
        resource["overhead"] = random.choice(
            ({"perPod": "0"}, {"perContainer": "100m"}, {"perPod": "1", "perContainer": "1Mi"})
        )
    return {"nodeAllocatableResources": {random.choice(("cpu", "memory", "hugepages-2Mi")): resource}}


def taint(random: Random) -> Object:
    """A taint of each form; the server fills in a time that is not there."""
    return dict(
        random.choice(
            (
                {"key": "a/broken", "effect": "NoExecute", "timeAdded": "2026-01-02T03:04:05Z"},
                {"key": "b", "value": "c", "effect": "NoSchedule"},
                {"key": "A_1.b", "value": "", "effect": "NoSchedule"},
            )
        )
    )


def _devices(random: Random) -> list[Object]:
    names = random.sample(NAMES, random.randint(1, 3))
    return [_device(random, name) for name in names]


def _whole(random: Random) -> Object:
    spec = {**_nodes(random), "devices": _devices(random)}
    if random.random() < 0.1:
        spec["skipNodeOperations"] = random.choice(
            (["*"], ["NodeUnprepareResources"], ["NodePrepareResources", "*"])
        )
    return spec


def _partitioned(random: Random) -> Object:
    devices = _devices(random)
    for device in devices:
        sets = random.sample(("gpu-0", "gpu-1"), random.randint(1, 2))
        device["consumesCounters"] = [
            {"counterSet": each, "counters": {"memory": {"value": random.choice(AMOUNTS)}}} for each in sets
        ]
        if random.random() < 0.15:
            device["consumesCounters"][0]["compatibilityGroups"] = ["a", "b"]
    spec: Object = {**_nodes(random), "devices": devices}
    if random.random() < 0.2:
        for device in devices:
            device.setdefault("attributes", {})[random.choice(("a/type",))] = {"string": "1g"}
        spec["partitionTypeAttribute"] = "a/type"
    if random.random() < 0.4:
        # As it was up to 1.34.
        spec["sharedCounters"] = _sets(("gpu-0", "gpu-1"))
    return spec


def _sets(names: tuple[str, ...]) -> list[Object]:
    return [
        {"name": name, "counters": {"memory": {"value": "80Gi"}, "cores": {"value": "0.5"}}} for name in names
    ]


def _offering(random: Random) -> Object:
    names = ("gpu-0", "gpu-1", *(f"s{index}" for index in range(6)))
    return {**_nodes(random), "sharedCounters": _sets(names[: random.choice((1, 2, 8))])}


def _per_device(random: Random) -> Object:
    return {
        "perDeviceNodeSelection": True,
        "devices": [{**device, **_nodes(random)} for device in _devices(random)],
    }


def _shareable(random: Random) -> Object:
    devices = _devices(random)
    for device in devices:
        device["allowMultipleAllocations"] = True
        device["capacity"] = {
            name: _capacity(random) for name in random.sample(CAPACITIES, random.randint(1, 2))
        }
        device.pop("nodeAllocatableResources", None)
    return {**_nodes(random), "devices": devices}


def _capacity(random: Random) -> Object:
    policies: tuple[Object, ...] = (
        {},
        {"requestPolicy": {"default": "1"}},
        {"requestPolicy": {"default": "2", "validValues": ["1", "2", "4"]}},
        {"requestPolicy": {"default": "10Gi", "validValues": ["1Gi", "5Gi", "10Gi", "40Gi"]}},
        {"requestPolicy": {"default": "1", "validRange": {"min": "1", "max": "4", "step": "1"}}},
        {"requestPolicy": {"default": "10Gi", "validRange": {"min": "5Gi", "step": "5Gi"}}},
        {"requestPolicy": {"default": "1", "validRange": {"min": "0"}}},
    )
    return {"value": "80Gi", **copy.deepcopy(random.choice(policies))}


def _crowded(random: Random) -> Object:
    """At the limits: of devices, of attributes, of values."""
    if random.random() < 0.5:
        return {"nodeName": "node-a", "devices": [{"name": f"d{index}"} for index in range(128)]}
    attributes = {f"a{index}": {"int": index} for index in range(32)}
    return {"nodeName": "node-a", "devices": [{"name": "a", "attributes": attributes}]}


def _wrapped(device: Object) -> Object:
    return {"name": device["name"], "basic": {key: value for key, value in device.items() if key != "name"}}
