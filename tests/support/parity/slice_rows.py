"""One named case for every rule of pkg/apis/resource/validation upstream that ResourceSlice and DeviceTaintRule meet."""

from __future__ import annotations

import copy
from typing import Any, Final

from tests.support.parity.cases import Object
from tests.support.parity.kinds.taint_rule import whole_taint_rule
from tests.support.parity.row import (
    DUPLICATE,
    FORBIDDEN,
    INVALID,
    NO_REPLY,
    NOT_FOUND,
    NOT_SUPPORTED,
    REQUIRED,
    TOO_LONG,
    TOO_MANY,
    Row,
)

COUNTERS, SHARING, TAINTS, BINDING, NODE, LISTS, GROUPS, TYPE, SKIP = (
    "DRAPartitionableDevices",
    "DRAConsumableCapacity",
    "DRADeviceTaints",
    "DRADeviceBindingConditions",
    "DRANodeAllocatableResources",
    "DRAListTypeAttributes",
    "DRADeviceCompatibilityGroups",
    "DRAPartitionableDevicesType",
    "DRAOptionalNodeOperations",
)
_DEVICE: Final = "spec.devices[0]"
_POLICY: Final = f"{_DEVICE}.capacity[a].requestPolicy"
_POOL: Final = {"name": "node-a", "generation": 1, "resourceSliceCount": 1}
_LABEL_64: Final = "a" * 64
_NODES: Final = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]}
_COUNTER: Final = {"memory": {"value": "1"}}


def _r(text: str, built: Object, path: str = "", reason: str = "", **more: Any) -> Row:
    return Row(section="3.5", text=text, object=built, path=path, reason=reason, **more)


def a_slice(*devices: Object, **spec: Any) -> Object:
    """A slice of a node with *devices*; None leaves a field out."""
    whole = {"driver": "gpu.example.com", "pool": dict(_POOL), "nodeName": "node-a", **spec}
    if devices:
        whole["devices"] = list(devices)
    kept = {name: value for name, value in whole.items() if value is not None}
    header = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice"}
    return copy.deepcopy({**header, "metadata": {"name": "row"}, "spec": kept})


def _with_pool(**pool: Any) -> Object:
    return a_slice(pool={**_POOL, **pool})


def _device(name: str = "a", **fields: Any) -> Object:
    return {"name": name, **fields}


def _valued(**value: Any) -> Object:
    return a_slice(_device(attributes={"a": value}))


def _shared(value: str = "10", **policy: Any) -> Object:
    capacity = {"a": {"value": value, "requestPolicy": policy}}
    return a_slice(_device(allowMultipleAllocations=True, capacity=capacity))


def _range(default: str = "1", value: str = "10", **bounds: str) -> Object:
    return _shared(value, default=default, validRange=bounds)


def _tainted(count: int = 1, **taint: Any) -> Object:
    whole = {"key": "a", "effect": "NoSchedule", **taint}
    return a_slice(
        _device(taints=[{key: value for key, value in whole.items() if value is not None}] * count)
    )


def _consuming(*consumed: Object, count: int = 1, **spec: Any) -> Object:
    devices = [_device(f"d{index}", consumesCounters=list(consumed)) for index in range(count)]
    return a_slice(*devices, **spec)


def _takes(name: str = "gpu", counters: Any = None, **more: Any) -> Object:
    return {"counterSet": name, "counters": _COUNTER if counters is None else counters, **more}


def _set(name: str = "gpu", counters: Any = None) -> Object:
    return {"name": name, "counters": _COUNTER if counters is None else counters}


def _many(count: int, prefix: str = "c") -> Object:
    return {f"{prefix}{index}": {"value": "1"} for index in range(count)}


def _own_nodes(**fields: Any) -> Object:
    return a_slice(_device(**fields), nodeName=None, perDeviceNodeSelection=True)


def _bound(ready: list[str], failed: list[str]) -> Object:
    return a_slice(_device(bindingConditions=ready, bindingFailureConditions=failed))


def _resource(name: str = "cpu", **resource: Any) -> Object:
    device = _device(capacity={"a": {"value": "1"}}, nodeAllocatableResources={name: resource})
    return a_slice(device, nodeName=None, allNodes=True)


_SPEC_ROWS: Final = (
    _r("a slice of whole devices", a_slice(_device())),
    _r("a slice without devices", a_slice()),
    _r("a slice names its driver", a_slice(driver=""), "spec.driver", REQUIRED),
    _r("a driver is a DNS subdomain", a_slice(driver="a_b"), "spec.driver", INVALID),
    _r("a driver may have upper-case letters", a_slice(driver="GPU.example.com")),
    _r("a driver has at most 63 bytes", a_slice(driver=_LABEL_64), "spec.driver", TOO_LONG),
    _r("a slice names its pool", _with_pool(name=""), "spec.pool.name", REQUIRED),
    _r("a pool's name is subdomains joined by slashes", _with_pool(name="a//b"), "spec.pool.name", INVALID),
    _r("a pool's name may have slashes", _with_pool(name="a/b.c/d")),
    _r("a pool's name has at most 253 bytes", _with_pool(name="/".join(["a" * 63] * 4)), "spec.pool.name", TOO_LONG),
    _r("a pool has a slice", _with_pool(resourceSliceCount=0), "spec.pool.resourceSliceCount", INVALID),
    _r("a generation is no negative number", _with_pool(generation=-1), "spec.pool.generation", INVALID),
    _r("a node's name is not empty", a_slice(nodeName=""), "spec.nodeName", INVALID),
    _r("a node's name is a DNS subdomain", a_slice(nodeName="A"), "spec.nodeName", INVALID),
    _r("a node selector is valid", a_slice(nodeName=None, nodeSelector={"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "x"}]}]}), "spec.nodeSelector.nodeSelectorTerms[0].matchExpressions[0].operator", INVALID),
    _r("a node selector's value is a label value", a_slice(nodeName=None, nodeSelector={"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "In", "values": ["-"]}]}]}), "spec.nodeSelector.nodeSelectorTerms[0].matchExpressions[0].values[0]", INVALID),
    _r("a node selector with two terms", a_slice(nodeName=None, nodeSelector={"nodeSelectorTerms": _NODES["nodeSelectorTerms"] * 2}), "spec.nodeSelector.nodeSelectorTerms", INVALID),
    _r("a node selector without terms", a_slice(nodeName=None, nodeSelector={}), "spec.nodeSelector.nodeSelectorTerms", REQUIRED),
    _r("allNodes is true or absent", a_slice(allNodes=False), "spec.allNodes", INVALID),
    _r("perDeviceNodeSelection is true or absent", a_slice(perDeviceNodeSelection=False), "spec.perDeviceNodeSelection", INVALID, gate=COUNTERS),
    _r("a slice says which nodes it is for", a_slice(nodeName=None), "spec", REQUIRED),
    _r("a slice says it once", a_slice(allNodes=True), "spec", INVALID),
    _r("counters and devices have slices of their own", a_slice(_device(), sharedCounters=[_set()]), "spec", INVALID, gate=COUNTERS, since="1.35"),
    _r("an empty list of devices is one beside counters", a_slice(devices=[], sharedCounters=[_set()]), "spec", INVALID, gate=COUNTERS, since="1.35"),
    _r("driver does not change", a_slice(driver="b"), "spec.driver", INVALID, after=a_slice()),
    _r("pool does not change", _with_pool(name="b"), "spec.pool.name", INVALID, after=a_slice()),
    _r("node does not change", a_slice(nodeName="b"), "spec.nodeName", INVALID, after=a_slice()),
    _r("a slice's other fields may change", a_slice(_device(), pool={**_POOL, "generation": 2, "resourceSliceCount": 3}), after=a_slice()),
    _r("128 devices", a_slice(*(_device(f"d{index}") for index in range(128)))),
    _r("129 devices", a_slice(*(_device(f"d{index}") for index in range(129))), "spec.devices", TOO_MANY),
    _r("65 devices, one with a taint", a_slice(*(_device(f"d{index}") for index in range(64)), _device(taints=[{"key": "a", "effect": "NoSchedule"}])), "spec.devices", TOO_MANY, gate=TAINTS, since="1.35"),
    _r("65 devices with counters", _consuming(_takes(), count=65), "spec.devices", TOO_MANY, gate=COUNTERS, since="1.35"),
    _r("65 devices, one with a list", a_slice(*(_device(f"d{index}") for index in range(64)), _device(attributes={"a": {"ints": [1]}})), "spec.devices", TOO_MANY, gate=LISTS),
    _r("names of devices are unique", a_slice(_device(), _device()), "spec.devices[1]", DUPLICATE, unlike={"1.34": ("spec.devices[1].name", DUPLICATE)}),
)  # fmt: skip

_DEVICE_ROWS: Final = (
    _r("a device's name is a DNS label", a_slice(_device("a.b")), f"{_DEVICE}.name", INVALID),
    _r("32 attributes and capacities", a_slice(_device(attributes={f"a{index}": {"int": 1} for index in range(16)}, capacity=_many(16)))),
    _r("33 attributes and capacities", a_slice(_device(attributes={f"a{index}": {"int": 1} for index in range(17)}, capacity=_many(16))), _DEVICE, INVALID),
    _r("48 values of attributes", a_slice(_device(attributes={"a": {"ints": [1] * 47}, "b": {"int": 1}})), gate=LISTS),
    _r("49 values of attributes", a_slice(_device(attributes={"a": {"ints": [1] * 48}, "b": {"int": 1}})), _DEVICE, INVALID, gate=LISTS),
    _r("an attribute's name is qualified", a_slice(_device(attributes={"a-b": {"int": 1}})), f"{_DEVICE}.attributes", INVALID, unlike=dict.fromkeys(("1.34", "1.35"), (f"{_DEVICE}.attributes[a-b]", INVALID))),
    _r("a long attribute's name is cut in the path", a_slice(_device(attributes={"a" * 100: {"int": 1}})), f"{_DEVICE}.attributes", TOO_LONG, unlike=dict.fromkeys(("1.34", "1.35"), (f"{_DEVICE}.attributes[{'a' * 47}...{'a' * 46}]", TOO_LONG))),
    _r("an attribute's name may have two slashes", a_slice(_device(attributes={"a/b/c": {"int": 1}}))),
    _r("an attribute has a value", _valued(), f"{_DEVICE}.attributes[a]", INVALID, unlike={"1.34": (f"{_DEVICE}.attributes[a]", REQUIRED)}),
    _r("an attribute has one value", _valued(int=1, string="a"), f"{_DEVICE}.attributes[a]", INVALID),
    _r("a text has at most 64 bytes", _valued(string="é" * 33), f"{_DEVICE}.attributes[a].string", TOO_LONG),
    _r("a version is of semver", _valued(version="1.2"), f"{_DEVICE}.attributes[a].version", INVALID),
    _r("a version has at most 64 bytes", _valued(version=f"1.2.3-{'a' * 60}"), f"{_DEVICE}.attributes[a].version", TOO_LONG),
    _r("texts of a list have at most 64 bytes", _valued(strings=["", "a" * 65]), f"{_DEVICE}.attributes[a].strings[1]", TOO_LONG, gate=LISTS),
    _r("versions of a list are of semver", _valued(versions=["1"]), f"{_DEVICE}.attributes[a].versions[0]", INVALID, gate=LISTS),
    _r("a list is not empty", _valued(ints=[]), f"{_DEVICE}.attributes[a].ints", INVALID, gate=LISTS),
    _r("a list without its gate leaves no value", _valued(ints=[1]), f"{_DEVICE}.attributes[a]", INVALID, without=LISTS),
    _r("a capacity's name is qualified", a_slice(_device(capacity={"/a": {"value": "1"}})), f"{_DEVICE}.capacity", INVALID, unlike={"1.34": (f"{_DEVICE}.capacity[/a]", REQUIRED), "1.35": (f"{_DEVICE}.capacity[/a]", INVALID)}),
    _r("an empty name", a_slice(_device(capacity={"": {"value": "1"}})), f"{_DEVICE}.capacity", INVALID, unlike={"1.34": (f"{_DEVICE}.capacity[]", REQUIRED), "1.35": (f"{_DEVICE}.capacity[]", INVALID)}),
    _r("4 taints, which is all up to 1.34", _tainted(4), gate=TAINTS),
    _r("5 taints", _tainted(5), gate=TAINTS, unlike={"1.34": (f"{_DEVICE}.taints", TOO_MANY)}),
    _r("17 taints", _tainted(17), f"{_DEVICE}.taints", TOO_MANY, gate=TAINTS),
    _r("a taint has a key", _tainted(key=""), f"{_DEVICE}.taints[0].key", INVALID, gate=TAINTS),
    _r("a taint's key is a label key", _tainted(key="a/b/c"), f"{_DEVICE}.taints[0].key", INVALID, gate=TAINTS),
    _r("a taint's value is a label value", _tainted(value="-"), f"{_DEVICE}.taints[0].value", INVALID, gate=TAINTS),
    _r("a taint has an effect", _tainted(effect=None), f"{_DEVICE}.taints[0].effect", REQUIRED, gate=TAINTS),
    _r("a taint's effect is known", _tainted(effect="PreferNoSchedule"), f"{_DEVICE}.taints[0].effect", NOT_SUPPORTED, gate=TAINTS),
    _r("the effect None", _tainted(effect="None"), gate=TAINTS, unlike={"1.34": (f"{_DEVICE}.taints[0].effect", NOT_SUPPORTED)}),
    _r("taints without their gate are dropped", _tainted(effect="x"), without=TAINTS),
    _r("a device has nodes of its own", _own_nodes(nodeName="a"), gate=COUNTERS),
    _r("a device says which nodes it is for", _own_nodes(), _DEVICE, REQUIRED, gate=COUNTERS),
    _r("a device says it once", _own_nodes(nodeName="a", allNodes=True), _DEVICE, INVALID, gate=COUNTERS),
    _r("a device's node is not empty", _own_nodes(nodeName=""), f"{_DEVICE}.nodeName", INVALID, gate=COUNTERS),
    _r("a device's node is a DNS subdomain", _own_nodes(nodeName="A"), f"{_DEVICE}.nodeName", INVALID, gate=COUNTERS),
    _r("a device's allNodes is true or absent", _own_nodes(allNodes=False), f"{_DEVICE}.allNodes", INVALID, gate=COUNTERS),
    _r("a device's node selector may have two terms", _own_nodes(nodeSelector={"nodeSelectorTerms": _NODES["nodeSelectorTerms"] * 2}), gate=COUNTERS),
    _r("a device's nodes are the slice's otherwise", a_slice(_device(allNodes=True)), _DEVICE, INVALID, gate=COUNTERS),
    _r("binding conditions", _bound(["a"], ["b"]), gate=BINDING),
    _r("5 binding conditions", _bound(["a", "b", "c", "d", "e"], ["f"]), f"{_DEVICE}.bindingConditions", TOO_MANY, gate=BINDING),
    _r("a binding condition is a label key", _bound(["a b"], ["b"]), f"{_DEVICE}.bindingConditions[0]", INVALID, gate=BINDING),
    _r("a binding condition is there once", _bound(["a", "a"], ["b"]), f"{_DEVICE}.bindingConditions[1]", DUPLICATE, gate=BINDING),
    _r("a binding condition means one thing", _bound(["a"], ["a"]), f"{_DEVICE}.bindingFailureConditions[0]", INVALID, gate=BINDING),
    _r("binding conditions of failure are not alone", _bound([], ["a"]), f"{_DEVICE}.bindingConditions", INVALID, gate=BINDING),
    _r("binding conditions of success are not alone", _bound(["a"], []), f"{_DEVICE}.bindingFailureConditions", INVALID, gate=BINDING),
)  # fmt: skip

_CAPACITY_ROWS: Final = (
    _r("a request policy needs allowMultipleAllocations", a_slice(_device(capacity={"a": {"value": "1", "requestPolicy": {"default": "1"}}})), _POLICY, FORBIDDEN, gate=SHARING),
    _r("validValues and validRange exclude each other", _shared(default="1", validValues=["1"], validRange={"min": "1"}), _POLICY, FORBIDDEN, gate=SHARING),
    _r("validValues need a default", _shared(validValues=["1"]), f"{_POLICY}.default", REQUIRED, gate=SHARING),
    _r("validRange needs a default", _shared(validRange={"min": "1"}), f"{_POLICY}.default", REQUIRED, gate=SHARING),
    _r("validValues ascend", _shared(default="1", validValues=["2", "1"]), f"{_POLICY}.validValues[1]", INVALID, gate=SHARING),
    _r("11 validValues", _shared("20", default="1", validValues=[f"{index}" for index in range(1, 12)]), f"{_POLICY}.validValues", TOO_MANY, gate=SHARING),
    _r("validValues are unique", _shared(default="1", validValues=["1", "1"]), f"{_POLICY}.validValues[1]", DUPLICATE, gate=SHARING),
    _r("validValues are unique as whole numbers", _shared(default="1500m", validValues=["1500m", "2"]), f"{_POLICY}.validValues[1]", DUPLICATE, gate=SHARING, until="1.36"),
    _r("a valid value is no more than the capacity", _shared(default="1", validValues=["1", "11"]), f"{_POLICY}.validValues[1]", INVALID, gate=SHARING),
    _r("the default is a valid value", _shared(default="3", validValues=["1", "2"]), f"{_POLICY}.validValues", INVALID, gate=SHARING),
    _r("a range", _range(min="1", max="4", step="1"), gate=SHARING),
    _r("a range has a minimum", _range(max="4"), f"{_POLICY}.validRange.min", REQUIRED, gate=SHARING),
    _r("the minimum is no more than the capacity", _range(default="11", min="11"), f"{_POLICY}.validRange.min", INVALID, gate=SHARING),
    _r("the default is no less than the minimum", _range(min="2"), f"{_POLICY}.validRange.default", INVALID, gate=SHARING, unlike=dict.fromkeys(("1.34", "1.35", "1.36"), (f"{_POLICY}.validRange.min", INVALID))),
    _r("the maximum is no less than the minimum", _range(default="4", min="4", max="3"), f"{_POLICY}.validRange.max", INVALID, gate=SHARING),
    _r("the maximum is no more than the capacity", _range(min="1", max="11"), f"{_POLICY}.validRange.max", INVALID, gate=SHARING),
    _r("the default is no more than the maximum", _range(default="3", min="1", max="2"), f"{_POLICY}.validRange.default", INVALID, gate=SHARING, unlike=dict.fromkeys(("1.34", "1.35", "1.36"), (f"{_POLICY}.validRange.max", INVALID))),
    _r("a step is above zero", _range(min="1", step="-1"), f"{_POLICY}.validRange.step", INVALID, gate=SHARING, since="1.37"),
    _r("a step of zero, over which the server fails", _range(min="1", step="0"), f"{_POLICY}.validRange", NO_REPLY, gate=SHARING, until="1.36"),
    _r("a step fits into the capacity", _range(min="1", step="10"), f"{_POLICY}.validRange.step", INVALID, gate=SHARING),
    _r("the default is whole steps from the minimum", _range(default="2", min="1", step="2"), f"{_POLICY}.validRange.step", INVALID, gate=SHARING),
    _r("the maximum is whole steps from the minimum", _range(min="1", max="4", step="2"), f"{_POLICY}.validRange.step", INVALID, gate=SHARING),
    _r("amounts with a step are not negative", _range(default="1", min="-1", step="2"), f"{_POLICY}.validRange.min", INVALID, gate=SHARING, since="1.37"),
    _r("amounts with a step fit into 63 bits", _range(default="9223372036854775808", value="1e30", min="1", step="1"), f"{_POLICY}.validRange.default", INVALID, gate="DRAFractionalCapacityRange"),
    _r("amounts of thousandths are exact", _range(default="1500u", min="0"), f"{_POLICY}.validRange.default", INVALID, gate="DRAFractionalCapacityRange"),
    _r("a fractional default counts with its gate", _range(default="1500m", min="1", step="1"), f"{_POLICY}.validRange.step", INVALID, gate="DRAFractionalCapacityRange"),
    _r("a fractional default rounds up without the gate, which 1.37 has off", _range(default="1500m", min="1", step="1"), since="1.37"),
    _r("an unchanged capacity is not looked at again", a_slice(_device(capacity={"a": {"value": "1", "requestPolicy": {"default": "1"}}})), gate=SHARING, after=_shared("1", default="1"), unlike=dict.fromkeys(("1.34", "1.35", "1.36"), (_POLICY, FORBIDDEN))),
)  # fmt: skip

_COUNTER_ROWS: Final = (
    _r("counters", a_slice(sharedCounters=[_set()]), gate=COUNTERS),
    _r("9 counter sets", a_slice(sharedCounters=[_set(f"s{index}") for index in range(9)]), "spec.sharedCounters", TOO_MANY, gate=COUNTERS, since="1.35"),
    _r("33 counters in a slice", a_slice(sharedCounters=[_set("a", _many(16)), _set("b", _many(17))]), "spec.sharedCounters", INVALID, gate=COUNTERS, until="1.34"),
    _r("names of counter sets are unique", a_slice(sharedCounters=[_set(), _set()]), "spec.sharedCounters[1]", DUPLICATE, gate=COUNTERS, unlike={"1.34": ("spec.sharedCounters[1].name", DUPLICATE)}),
    _r("a counter set has a name", a_slice(sharedCounters=[_set("")]), "spec.sharedCounters[0].name", REQUIRED, gate=COUNTERS),
    _r("a counter set's name is a DNS label", a_slice(sharedCounters=[_set("A")]), "spec.sharedCounters[0].name", INVALID, gate=COUNTERS),
    _r("a counter set has counters", a_slice(sharedCounters=[_set(counters={})]), "spec.sharedCounters[0].counters", REQUIRED, gate=COUNTERS),
    _r("33 counters in a set", a_slice(sharedCounters=[_set(counters=_many(33))]), "spec.sharedCounters[0].counters", TOO_MANY, gate=COUNTERS, since="1.35"),
    _r("a counter's name is a DNS label", a_slice(sharedCounters=[_set(counters={"A": {"value": "1"}})]), "spec.sharedCounters[0].counters", INVALID, gate=COUNTERS, unlike=dict.fromkeys(("1.34", "1.35"), ("spec.sharedCounters[0].counters[A]", INVALID))),
    _r("a device takes from counters elsewhere", _consuming(_takes()), gate=COUNTERS, unlike={"1.34": (f"{_DEVICE}.consumesCounters[0].counterSet", INVALID)}),
    _r("a device takes from counters of its slice", _consuming(_takes(), sharedCounters=[_set()]), "spec", INVALID, gate=COUNTERS, unlike={"1.34": ("", "")}),
    _r("a device takes a counter that is there", _consuming(_takes(counters={"x": {"value": "1"}}), sharedCounters=[_set()]), f"{_DEVICE}.consumesCounters[0].counters", INVALID, gate=COUNTERS, until="1.34"),
    _r("3 counter sets for a device", _consuming(*(_takes(f"s{index}") for index in range(3))), f"{_DEVICE}.consumesCounters", TOO_MANY, gate=COUNTERS, since="1.35"),
    _r("33 counters for a device", _consuming(_takes(counters=_many(33))), f"{_DEVICE}.consumesCounters[0].counters", TOO_MANY, gate=COUNTERS, unlike={"1.34": (_DEVICE, INVALID)}),
    _r("1,025 counters for all devices", a_slice(*(_device(f"d{index}", consumesCounters=[_takes(counters=_many(27))]) for index in range(38)), sharedCounters=[_set(counters=_many(27))]), "spec.devices", INVALID, gate=COUNTERS, until="1.34"),
    _r("a device takes from a set once", _consuming(_takes(), _takes()), f"{_DEVICE}.consumesCounters[1]", DUPLICATE, gate=COUNTERS, unlike={"1.34": (f"{_DEVICE}.consumesCounters[1].counterSet", DUPLICATE)}),
    _r("what a device takes names the set", _consuming(_takes("")), f"{_DEVICE}.consumesCounters[0].counterSet", REQUIRED, gate=COUNTERS),
    _r("the set's name is a DNS label", _consuming(_takes("A")), f"{_DEVICE}.consumesCounters[0].counterSet", INVALID, gate=COUNTERS),
    _r("a device takes some counter", _consuming(_takes(counters={})), f"{_DEVICE}.consumesCounters[0].counters", REQUIRED, gate=COUNTERS),
    _r("3 compatibility groups", _consuming(_takes(compatibilityGroups=["a", "b", "c"])), f"{_DEVICE}.consumesCounters[0].compatibilityGroups", TOO_MANY, gate=GROUPS),
    _r("a compatibility group is there once", _consuming(_takes(compatibilityGroups=["a", "a"])), f"{_DEVICE}.consumesCounters[0].compatibilityGroups[1]", DUPLICATE, gate=GROUPS),
    _r("a compatibility group is a DNS label", _consuming(_takes(compatibilityGroups=["A"])), f"{_DEVICE}.consumesCounters[0].compatibilityGroups[0]", INVALID, gate=GROUPS),
    _r("counters without their gate are dropped", a_slice(_device(), sharedCounters=[_set("")]), without=COUNTERS),
    _r("a partition type is fully qualified", _consuming(_takes(), partitionTypeAttribute="a"), "spec.partitionTypeAttribute", INVALID, gate=TYPE),
    _r("a partition type needs counters", a_slice(_device(), partitionTypeAttribute="a/b"), "spec.partitionTypeAttribute", INVALID, gate=TYPE),
    _r("devices have the attribute of the type", _consuming(_takes(), partitionTypeAttribute="a/b"), f"{_DEVICE}.attributes[a/b]", REQUIRED, gate=TYPE),
    _r("the attribute of the type is a text", a_slice(_device(attributes={"b": {"int": 1}}, consumesCounters=[_takes()]), partitionTypeAttribute="gpu.example.com/b"), f"{_DEVICE}.attributes[gpu.example.com/b]", INVALID, gate=TYPE),
    _r("the attribute of the type may be bare", a_slice(_device(attributes={"b": {"string": "x"}}, consumesCounters=[_takes()]), partitionTypeAttribute="gpu.example.com/b"), gate=TYPE),
    _r("a partition type without its gate is dropped", a_slice(_device(), partitionTypeAttribute="a"), without=TYPE),
    _r("a call that is skipped is known", a_slice(skipNodeOperations=["x"]), "spec.skipNodeOperations[0]", NOT_SUPPORTED, gate=SKIP),
    _r("a call that is skipped is there once", a_slice(skipNodeOperations=["*", "*"]), "spec.skipNodeOperations[1]", DUPLICATE, gate=SKIP),
    _r("preparing is not skipped alone", a_slice(skipNodeOperations=["NodePrepareResources"]), "spec.skipNodeOperations", INVALID, gate=SKIP),
)  # fmt: skip

_RESOURCES: Final = f"{_DEVICE}.nodeAllocatableResources[cpu]"
_NODE_ROWS: Final = (
    _r("a resource of a node", _resource(mapping={"deviceMultiplier": "2"}), gate=NODE, since="1.37"),
    _r("a resource of a node is known", _resource("ephemeral-storage", mapping={"deviceMultiplier": "2"}), f"{_DEVICE}.nodeAllocatableResources[ephemeral-storage]", INVALID, gate=NODE, since="1.37"),
    _r("a resource of a node has a mapping or an overhead", _resource(), _RESOURCES, REQUIRED, gate=NODE, since="1.37"),
    _r("a mapping has a member", _resource(mapping={}), f"{_RESOURCES}.mapping", INVALID, gate=NODE, since="1.37"),
    _r("a mapping has one member", _resource(mapping={"deviceMultiplier": "1", "capacityKey": "a", "capacityMultiplier": "1"}), f"{_RESOURCES}.mapping", INVALID, gate=NODE, since="1.37"),
    _r("a key needs a multiplier", _resource(mapping={"capacityKey": "a"}), f"{_RESOURCES}.mapping.capacityMultiplier", REQUIRED, gate=NODE, since="1.37"),
    _r("a multiplier needs a key", _resource(mapping={"capacityMultiplier": "1", "deviceMultiplier": "1"}), f"{_RESOURCES}.mapping.capacityKey", REQUIRED, gate=NODE, since="1.37"),
    _r("a key is a capacity", _resource(mapping={"capacityKey": "b", "capacityMultiplier": "1"}), f"{_RESOURCES}.mapping.capacityKey", NOT_FOUND, gate=NODE, since="1.37"),
    _r("a key is not empty", _resource(mapping={"capacityKey": "", "capacityMultiplier": "1"}), f"{_RESOURCES}.mapping.capacityKey", INVALID, gate=NODE, since="1.37"),
    _r("a multiplier is above zero", _resource(mapping={"deviceMultiplier": "0"}), f"{_RESOURCES}.mapping.deviceMultiplier", INVALID, gate=NODE, since="1.37"),
    _r("an overhead has a member", _resource(overhead={}), f"{_RESOURCES}.overhead", INVALID, gate=NODE, since="1.37"),
    _r("an overhead is not negative", _resource(overhead={"perPod": "-1"}), f"{_RESOURCES}.overhead.perPod", INVALID, gate=NODE, since="1.37"),
    _r("a resource of a node in 1.36 is none of another domain", a_slice(_device(nodeAllocatableResourceMappings={"example.com/x": {}})), f"{_DEVICE}.nodeAllocatableResourceMappings[example.com/x]", INVALID, gate=NODE, until="1.36"),
    _r("a key in 1.36 is a capacity", a_slice(_device(nodeAllocatableResourceMappings={"cpu": {"capacityKey": "b"}})), f"{_DEVICE}.nodeAllocatableResourceMappings[cpu].capacityKey", NOT_FOUND, gate=NODE, until="1.36"),
    _r("a key in 1.36 is not empty", a_slice(_device(nodeAllocatableResourceMappings={"cpu": {"capacityKey": ""}})), f"{_DEVICE}.nodeAllocatableResourceMappings[cpu].capacityKey", INVALID, gate=NODE, until="1.36"),
    _r("a multiplier in 1.36 is above zero", a_slice(_device(nodeAllocatableResourceMappings={"cpu": {"allocationMultiplier": "0"}})), f"{_DEVICE}.nodeAllocatableResourceMappings[cpu].allocationMultiplier", INVALID, gate=NODE, until="1.36"),
)  # fmt: skip

_RULES: Final = {"section": "3.7", "gate": "DRADeviceTaints"}


def _rule(version: str, *, selector: Object | None = None, **taint: Any) -> Object:
    built = whole_taint_rule(version)
    spec = {"taint": {"key": "a", "effect": "NoSchedule", **taint}}
    built["spec"] = spec if selector is None else {**spec, "deviceSelector": selector}
    return {**built, "metadata": {"name": "row"}}


_RULE_ROWS: Final = tuple(
    Row(text=f"{version}: {text}", object=_rule(version, selector=selector, **taint), path=path, reason=reason, since=since, **_RULES)
    for version, since in (("v1", "1.37"), ("v1beta2", "1.36"), ("v1alpha3", "1.34"))
    for text, selector, taint, path, reason in (
        ("a rule for no device", None, {}, "", ""),
        ("a rule for every device", {}, {}, "", ""),
        ("a driver has a name", {"driver": ""}, {}, "spec.deviceSelector.driver", REQUIRED),
        ("a driver is a DNS subdomain", {"driver": "a_b"}, {}, "spec.deviceSelector.driver", INVALID),
        ("a driver has at most 63 bytes", {"driver": _LABEL_64}, {}, "spec.deviceSelector.driver", TOO_LONG),
        ("a pool has a name", {"pool": ""}, {}, "spec.deviceSelector.pool", REQUIRED),
        ("a pool is subdomains", {"pool": "A"}, {}, "spec.deviceSelector.pool", INVALID),
        ("a pool has at most 253 bytes", {"pool": "/".join(["a" * 63] * 4)}, {}, "spec.deviceSelector.pool", TOO_LONG),
        ("a device is a DNS label", {"device": "a.b"}, {}, "spec.deviceSelector.device", INVALID),
        ("a taint has a key", None, {"key": ""}, "spec.taint.key", INVALID),
        ("a taint's value is a label value", None, {"value": "-"}, "spec.taint.value", INVALID),
        ("a taint has an effect", None, {"effect": ""}, "spec.taint.effect", REQUIRED),
        ("a taint's effect is known", None, {"effect": "x"}, "spec.taint.effect", NOT_SUPPORTED),
    )
)  # fmt: skip

_OLD_RULE_ROWS: Final = (
    Row(text="a class is a DNS subdomain", object=_rule("v1alpha3", selector={"deviceClassName": "A"}), path="spec.deviceSelector.deviceClassName", reason=INVALID, until="1.34", **_RULES),
    Row(text="selectors compile", object=_rule("v1alpha3", selector={"selectors": [{"cel": {"expression": "1"}}]}), path="spec.deviceSelector.selectors[0].cel.expression", reason=INVALID, until="1.34", **_RULES),
    Row(text="an effect that is stored is not looked at again", object=_rule("v1alpha3", effect="NoExecute"), after=_rule("v1alpha3"), **_RULES),
)  # fmt: skip

SLICE_ROWS: Final = (
    *_RULE_ROWS,
    *_OLD_RULE_ROWS,
    *_SPEC_ROWS,
    *_DEVICE_ROWS,
    *_CAPACITY_ROWS,
    *_COUNTER_ROWS,
    *_NODE_ROWS,
)
"""The rows of slices and taint rules."""
