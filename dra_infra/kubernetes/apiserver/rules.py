"""The rules of the API server by name, as `FieldError.rule` and docs/parity.md name them.

`SLICE_RULES` are those for ResourceSlice.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple


class Rule(NamedTuple):
    """One rule of the API server.

    Args:
        code: The stable code of its problems.
        text: What must hold.
        needs: Gate without which the field that it looks at never gets this far.
        since: First minor that has it, as a number.
        until: Last minor that has it, as a number.
    """

    code: str
    text: str
    needs: str = ""
    since: int = 34
    until: int = 37


_COUNTERS, _SHARING, _TAINTS, _BINDING, _NODE, _LISTS, _GROUPS, _TYPE, _SKIP, _FRACTIONS, _DERIVED = (
    "DRAPartitionableDevices",
    "DRAConsumableCapacity",
    "DRADeviceTaints",
    "DRADeviceBindingConditions",
    "DRANodeAllocatableResources",
    "DRAListTypeAttributes",
    "DRADeviceCompatibilityGroups",
    "DRAPartitionableDevicesType",
    "DRAOptionalNodeOperations",
    "DRAFractionalCapacityRange",
    "DRADerivedAttributes",
)

SLICE_RULES: Final[Mapping[str, Rule]] = {
    "slice.driver-required": Rule("missing-field", "a slice names its driver"),
    "slice.driver-format": Rule("invalid-name", "the driver of a slice is a DNS subdomain"),
    "slice.driver-length": Rule("value-too-long", "the driver of a slice has at most 63 bytes"),
    "slice.immutable": Rule("field-immutable", "driver, pool and node of a slice never change"),
    "slice.node-name": Rule("invalid-name", "the node of a slice is a DNS subdomain"),
    "slice.node-selector-terms": Rule("slice-nodes", "the node selector of a slice has one term"),
    "slice.true-or-absent": Rule("slice-nodes", "allNodes and perDeviceNodeSelection are true or absent"),
    "slice.nodes-none": Rule("slice-nodes", "a slice says which nodes it is for"),
    "slice.nodes-many": Rule("slice-nodes", "a slice says in one way which nodes it is for"),
    "slice.counters-or-devices": Rule("counters-beside-devices", "counters and devices have slices of their own", needs=_COUNTERS, since=35),
    "slice.devices-size": Rule("too-many-items", "a slice has at most 128 devices, 64 with taints, counters or lists"),
    "slice.devices-duplicate": Rule("duplicate-item", "names of devices are unique in a slice"),
    "slice.device-counters": Rule("too-many-items", "all devices of a slice take at most 1,024 counters", needs=_COUNTERS, until=34),
    "pool.name-required": Rule("missing-field", "a slice names its pool"),
    "pool.name-format": Rule("invalid-name", "a pool's name is DNS subdomains joined by slashes"),
    "pool.name-length": Rule("value-too-long", "a pool's name has at most 253 bytes"),
    "pool.slice-count": Rule("invalid-pool", "a pool has at least one slice"),
    "pool.generation": Rule("invalid-pool", "a pool's generation is no negative number"),
    "node-selector.terms": Rule("invalid-node-selector", "a node selector has a term"),
    "node-selector.operator": Rule("invalid-node-selector", "a node selector's operator is one"),
    "node-selector.values": Rule("invalid-node-selector", "a node selector has the values that its operator takes"),
    "node-selector.no-values": Rule("invalid-node-selector", "Exists and DoesNotExist take no values"),
    "node-selector.key": Rule("invalid-label", "a node selector's key is a label key"),
    "node-selector.value": Rule("invalid-label", "a node selector's value is a label value"),
    "node-selector.field": Rule("invalid-node-selector", "metadata.name is the one field that a node selector knows"),
    "node-selector.node-name": Rule("invalid-name", "a node's name is a DNS subdomain"),
    # devices
    "device.name": Rule("invalid-name", "a device's name is a DNS label"),
    "device.entries": Rule("too-many-items", "a device has at most 32 attributes and capacities"),
    "device.values": Rule("too-many-items", "a device has at most 48 values of attributes", needs=_LISTS, since=36),
    "device.attribute-name": Rule("invalid-attribute-name", "an attribute's name is an identifier, or a domain and one"),
    "device.capacity-name": Rule("invalid-attribute-name", "a capacity's name is an identifier, or a domain and one"),
    "attribute.one-of-none": Rule("one-of", "an attribute has a value"),
    "attribute.one-of-many": Rule("one-of", "an attribute has one value"),
    "attribute.length": Rule("value-too-long", "a text of an attribute has at most 64 bytes"),
    "attribute.version": Rule("invalid-version", "a version is one of semver.org 2.0.0"),
    "attribute.list-empty": Rule("missing-field", "a list of values has one", needs=_LISTS, since=36),
    "device.nodes-of-slice": Rule("slice-nodes", "a device has nodes of its own when its slice says so", needs=_COUNTERS),
    "device.node-name": Rule("invalid-name", "a device's node is a DNS subdomain", needs=_COUNTERS),
    "device.all-nodes": Rule("slice-nodes", "allNodes of a device is true or absent", needs=_COUNTERS),
    "device.nodes-none": Rule("slice-nodes", "a device says which nodes it is for when its slice leaves it open", needs=_COUNTERS),
    "device.nodes-many": Rule("slice-nodes", "a device says in one way which nodes it is for", needs=_COUNTERS),
    "taints.size": Rule("too-many-items", "a device has at most 16 taints, 4 up to 1.34", needs=_TAINTS),
    "taint.key": Rule("invalid-label", "a taint's key is a label key", needs=_TAINTS),
    "taint.value": Rule("invalid-label", "a taint's value is a label value", needs=_TAINTS),
    "taint.effect-required": Rule("missing-field", "a taint has an effect", needs=_TAINTS),
    "taint.effect": Rule("unsupported-value", "a taint's effect is one of the device taint effects", needs=_TAINTS),
    "binding.size": Rule("too-many-items", "a list of binding conditions has at most 4", needs=_BINDING),
    "binding.condition": Rule("invalid-label", "a binding condition is a label key", needs=_BINDING),
    "binding.duplicate": Rule("duplicate-item", "a binding condition is there once", needs=_BINDING),
    "binding.overlap": Rule("invalid-binding", "a condition means success or failure", needs=_BINDING),
    "binding.both": Rule("invalid-binding", "conditions of success and failure come together", needs=_BINDING),
    # capacities
    "policy.needs-sharing": Rule("invalid-request-policy", "a request policy needs allowMultipleAllocations", needs=_SHARING),
    "policy.one-of": Rule("one-of", "a policy has validValues or validRange", needs=_SHARING),
    "policy.default-required": Rule("missing-field", "a policy has a default", needs=_SHARING),
    "policy.values-sorted": Rule("invalid-request-policy", "validValues ascend", needs=_SHARING),
    "policy.values-size": Rule("too-many-items", "there are at most 10 validValues", needs=_SHARING),
    "policy.values-duplicate": Rule("duplicate-item", "validValues are unique", needs=_SHARING),
    "policy.value-too-large": Rule("invalid-request-policy", "a valid value is no more than the capacity", needs=_SHARING),
    "policy.default-among-values": Rule("invalid-request-policy", "the default is a valid value", needs=_SHARING),
    "policy.min-required": Rule("missing-field", "a range has a minimum", needs=_SHARING),
    "policy.min-too-large": Rule("invalid-request-policy", "the minimum is no more than the capacity", needs=_SHARING),
    "policy.min-above-max": Rule("invalid-request-policy", "the minimum is no more than the maximum", needs=_SHARING),
    "policy.max-too-large": Rule("invalid-request-policy", "the maximum is no more than the capacity", needs=_SHARING),
    "policy.default-in-range": Rule("invalid-request-policy", "the default is in the range", needs=_SHARING),
    "policy.milli": Rule("invalid-request-policy", "amounts are whole thousandths where one is no whole number", needs=_FRACTIONS, since=37),
    "policy.step-positive": Rule("invalid-request-policy", "a step is above zero", needs=_SHARING, since=37),
    "policy.step-panic": Rule("server-fails", "a step is not zero, over which the server fails", needs=_SHARING, until=36),
    "policy.step-too-large": Rule("invalid-request-policy", "the minimum and a step are no more than the capacity", needs=_SHARING),
    "policy.step-multiple": Rule("invalid-request-policy", "default and maximum are whole steps from the minimum", needs=_SHARING),
    "policy.int64": Rule("invalid-request-policy", "amounts with a step fit into 63 bits", needs=_SHARING, since=37),
    # counters
    "counter-sets.size": Rule("too-many-items", "a slice has at most 8 counter sets", needs=_COUNTERS, since=35),
    "counter-sets.total": Rule("too-many-items", "a slice has at most 32 counters", needs=_COUNTERS, until=34),
    "counter-sets.duplicate": Rule("duplicate-item", "names of counter sets are unique in a slice", needs=_COUNTERS),
    "counter-set.name-required": Rule("missing-field", "a counter set has a name", needs=_COUNTERS),
    "counter-set.name": Rule("invalid-name", "a counter set's name is a DNS label", needs=_COUNTERS),
    "counters.required": Rule("missing-field", "there is a counter in a counter set, or in what a device takes", needs=_COUNTERS),
    "counters.size": Rule("too-many-items", "there are at most 32 counters", needs=_COUNTERS, since=35),
    "counters.name": Rule("invalid-name", "a counter's name is a DNS label", needs=_COUNTERS),
    "consumption.size": Rule("too-many-items", "a device takes from at most 2 counter sets", needs=_COUNTERS, since=35),
    "consumption.total": Rule("too-many-items", "a device takes at most 32 counters", needs=_COUNTERS, until=34),
    "consumption.duplicate": Rule("duplicate-item", "a device takes from a counter set once", needs=_COUNTERS),
    "consumption.set-required": Rule("missing-field", "what a device takes names the counter set", needs=_COUNTERS),
    "consumption.set": Rule("invalid-name", "the name of the counter set is a DNS label", needs=_COUNTERS, since=35),
    "consumption.unknown-set": Rule("unknown-counter", "the counter set is in the slice", needs=_COUNTERS, until=34),
    "consumption.unknown-counter": Rule("unknown-counter", "the counter is in the counter set", needs=_COUNTERS, until=34),
    "groups.size": Rule("too-many-items", "there are at most 2 compatibility groups", needs=_GROUPS, since=37),
    "groups.name": Rule("invalid-name", "a compatibility group is a DNS label", needs=_GROUPS, since=37),
    "groups.duplicate": Rule("duplicate-item", "a compatibility group is there once", needs=_GROUPS, since=37),
    "partition-type.format": Rule("invalid-attribute-name", "the attribute of the partition type is a domain and a name", needs=_TYPE, since=37),
    "partition-type.no-counters": Rule("invalid-partition-type", "a slice with a partition type has devices that take counters", needs=_TYPE, since=37),
    "partition-type.missing": Rule("invalid-partition-type", "devices that take counters have the attribute of the partition type", needs=_TYPE, since=37),
    "partition-type.no-text": Rule("invalid-partition-type", "the attribute of the partition type is a text", needs=_TYPE, since=37),
    "skip.operation": Rule("unsupported-value", "a call that is skipped is one of the kubelet's", needs=_SKIP, since=37),
    "skip.duplicate": Rule("duplicate-item", "a call that is skipped is there once", needs=_SKIP, since=37),
    "skip.prepare-alone": Rule("invalid-skipping", "preparing is skipped together with its undoing", needs=_SKIP, since=37),
    # what devices count against their node
    "node-resources.name": Rule("unsupported-value", "a resource of a node is cpu, memory or huge pages", needs=_NODE, since=36),
    "node-resources.empty": Rule("one-of", "a resource of a node has a mapping or an overhead", needs=_NODE, since=37),
    "node-resources.positive": Rule("invalid-node-resources", "a multiplier is above zero", needs=_NODE, since=36),
    "node-resources.key-empty": Rule("invalid-node-resources", "capacityKey is not empty", needs=_NODE, since=36),
    "node-resources.key-unknown": Rule("invalid-node-resources", "capacityKey is a capacity of the device", needs=_NODE, since=36),
    "node-resources.key-required": Rule("missing-field", "a capacityMultiplier has a capacityKey", needs=_NODE, since=37),
    "node-resources.multiplier-required": Rule("missing-field", "a capacityKey has a capacityMultiplier", needs=_NODE, since=37),
    "node-resources.one-of-none": Rule("one-of", "a mapping has a capacityKey or a deviceMultiplier", needs=_NODE, since=37),
    "node-resources.one-of-both": Rule("one-of", "a mapping has not both a capacityKey and a deviceMultiplier", needs=_NODE, since=37),
    "node-resources.overhead-empty": Rule("one-of", "an overhead has perPod or perContainer", needs=_NODE, since=37),
    "node-resources.overhead-negative": Rule("invalid-node-resources", "an overhead is no negative amount", needs=_NODE, since=37),
}  # fmt: skip
"""Rule name to what it demands."""


RULES: Final[Mapping[str, Rule]] = {
    # metadata
    "metadata.name-required": Rule("missing-field", "an object has a name"),
    "metadata.name-format": Rule("invalid-name", "a name is a DNS subdomain"),
    "metadata.generate-name-format": Rule("invalid-name", "generateName is the start of a DNS subdomain"),
    "metadata.namespace-format": Rule("invalid-name", "a namespace is a DNS label"),
    "metadata.generation": Rule("invalid-metadata", "a generation is no negative number"),
    "metadata.label-key": Rule("invalid-label", "a label's key is a qualified name"),
    "metadata.label-value": Rule("invalid-label", "a label's value has at most 63 letters, digits and -_."),
    "metadata.annotation-key": Rule("invalid-label", "an annotation's key is a qualified name"),
    "metadata.annotations-size": Rule("value-too-long", "annotations have at most 256 KiB together"),
    "metadata.finalizer": Rule("invalid-label", "a finalizer is a qualified name"),
    "metadata.finalizer-domain": Rule(
        "invalid-label", "a finalizer has a domain, unless it is Kubernetes' own"
    ),
    "metadata.finalizers-conflict": Rule(
        "invalid-metadata", "orphan and foregroundDeletion exclude each other"
    ),
    "metadata.owner": Rule("missing-field", "an owner reference has apiVersion, kind, name and uid"),
    "metadata.owner-api-version": Rule("invalid-metadata", "an owner's apiVersion has a version"),
    "metadata.owner-controller": Rule("invalid-metadata", "one owner at most is the controller"),
    "template.metadata": Rule(
        "field-not-allowed", "a template's inner metadata has labels and annotations only"
    ),
    # claims
    "claim.requests-size": Rule("too-many-items", "a claim has at most 32 requests"),
    "claim.constraints-size": Rule("too-many-items", "a claim has at most 32 constraints"),
    "claim.config-size": Rule("too-many-items", "a claim or class has at most 32 configs"),
    "claim.immutable": Rule("field-immutable", "the spec of a claim or template never changes"),
    "claim.derived-cost": Rule(
        "cel-too-costly",
        "all derived attributes of a claim together cost at most 1,000,000",
        needs=_DERIVED,
        since=37,
    ),
    "request.name": Rule("invalid-name", "a request's name is a DNS label"),
    "request.duplicate": Rule("duplicate-request", "names of requests are unique"),
    "request.one-of-none": Rule("one-of", "a request has exactly or firstAvailable"),
    "request.one-of-both": Rule("one-of", "a request has not both exactly and firstAvailable"),
    "request.first-available-size": Rule("too-many-items", "firstAvailable has at most 8 entries"),
    "request.class-required": Rule("missing-field", "a request names a device class"),
    "request.class-format": Rule("invalid-name", "a class name is a DNS subdomain"),
    "request.allocation-mode": Rule("unsupported-value", "allocationMode is All or ExactCount"),
    "request.count-positive": Rule("count-below-one", "a count is above zero"),
    "request.count-with-all": Rule("count-with-all", "All takes no count"),
    "request.admin-access": Rule("admin-access-namespace", "admin access needs a labelled namespace"),
    "selectors.size": Rule("too-many-items", "there are at most 32 selectors"),
    "selectors.cel-required": Rule("missing-field", "a selector has cel"),
    "cel.length": Rule("cel-too-long", "an expression has at most 10 KiB"),
    "cel.compiles": Rule("cel-type", "an expression compiles to a test"),
    "cel.cost": Rule("cel-too-costly", "an expression costs at most 1,000,000"),
    "toleration.key": Rule("invalid-label", "a toleration's key is a label key", needs=_TAINTS),
    "toleration.operator": Rule(
        "unsupported-value", "a toleration's operator is Exists or Equal", needs=_TAINTS
    ),
    "toleration.value-with-exists": Rule("invalid-toleration", "Exists takes no value", needs=_TAINTS),
    "toleration.value": Rule("invalid-label", "a toleration's value is a label value", needs=_TAINTS),
    "toleration.effect": Rule(
        "unsupported-value", "a toleration's effect is one of the device taint effects", needs=_TAINTS
    ),
    "derived.size": Rule(
        "too-many-items", "there are at most 32 derived attributes", needs=_DERIVED, since=37
    ),
    "derived.duplicate": Rule(
        "duplicate-item", "names of derived attributes are unique", needs=_DERIVED, since=37
    ),
    "derived.name-required": Rule(
        "missing-field", "a derived attribute has a name", needs=_DERIVED, since=37
    ),
    "derived.name-format": Rule(
        "invalid-attribute-name", "a derived attribute's name is fully qualified", needs=_DERIVED, since=37
    ),
    "derived.unused": Rule(
        "derived-attribute-unused", "a constraint uses the derived attribute", needs=_DERIVED, since=37
    ),
    "derived.expression-required": Rule(
        "missing-field", "a derived attribute has an expression", needs=_DERIVED, since=37
    ),
    "constraint.requests-size": Rule("too-many-items", "a list of request names has at most 32 entries"),
    "constraint.requests-duplicate": Rule("duplicate-item", "a list of request names names each once"),
    "reference.format": Rule("invalid-name", "each part of a reference to a request is a DNS label"),
    "reference.unknown": Rule(
        "unknown-request", "a reference names a request, or request/subrequest, of the claim"
    ),
    "constraint.attribute": Rule("invalid-attribute-name", "an attribute is a domain and a name"),
    "constraint.attribute-required": Rule("missing-field", "a constraint has an attribute"),
    "config.opaque-required": Rule("missing-field", "a config has opaque"),
    "config.driver-required": Rule("missing-field", "a config names its driver"),
    "config.driver-format": Rule("invalid-name", "a driver's name is a DNS subdomain"),
    "config.driver-length": Rule("value-too-long", "a driver's name has at most 63 characters"),
    "config.parameters-required": Rule("missing-field", "a config has parameters"),
    "config.parameters-length": Rule("value-too-long", "parameters have at most 10 KiB of JSON"),
    "config.parameters-object": Rule("invalid-parameters", "parameters are a JSON object"),
    # classes
    "class.extended-resource-name": Rule(
        "invalid-extended-resource", "an extended resource name is one", needs="DRAExtendedResource"
    ),
    # taint rules
    "taint-rule.driver-required": Rule("missing-field", "the driver that a taint rule selects has a name"),
    "taint-rule.driver-format": Rule(
        "invalid-name", "the driver that a taint rule selects is a DNS subdomain"
    ),
    "taint-rule.driver-length": Rule(
        "value-too-long", "the driver that a taint rule selects has at most 63 bytes"
    ),
    "taint-rule.pool-required": Rule("missing-field", "the pool that a taint rule selects has a name"),
    "taint-rule.pool-format": Rule(
        "invalid-name", "the pool that a taint rule selects is DNS subdomains joined by slashes"
    ),
    "taint-rule.pool-length": Rule(
        "value-too-long", "the pool that a taint rule selects has at most 253 bytes"
    ),
    "taint-rule.device": Rule("invalid-name", "the device that a taint rule selects is a DNS label"),
    "taint-rule.class": Rule(
        "invalid-name", "the class that a taint rule selects is a DNS subdomain", until=34
    ),
    # pods
    "pod.claim-name-required": Rule("missing-field", "a pod's claim has a name"),
    "pod.claim-name-format": Rule("invalid-name", "the name of a pod's claim is a DNS label"),
    "pod.claim-duplicate": Rule("duplicate-claim", "names of a pod's claims are unique"),
    "pod.claim-one-of": Rule("one-of", "a pod's claim has resourceClaimName or resourceClaimTemplateName"),
    "pod.claim-reference": Rule("invalid-name", "a pod's claim names an object"),
    "container.claim-name-required": Rule("missing-field", "a container's claim has a name"),
    "container.claim-unknown": Rule("claim-not-in-pod", "a container uses claims of its pod"),
    "container.claim-request": Rule("invalid-name", "the request of a container's claim is a DNS label"),
    "container.claim-duplicate": Rule("claim-attached-twice", "a container uses a claim or request once"),
    "pod.resources-claims": Rule("field-not-allowed", "pod-level resources take no claims"),
    "pod.claims-immutable": Rule("pod-claims-immutable", "a pod's claims never change"),
    **SLICE_RULES,
}
"""Rule name to what it demands."""
