"""Every rule of the server that is kept here, by name: what `FieldError.rule` and the coverage table speak of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dra_infra.validation.rule import Rule
from dra_infra.validation.slice_rules import SLICE_RULES


def _rule(code: str, text: str, *, needs: str = "", since: int = 34, until: int = 37) -> Rule:
    return Rule(code, text, needs, since, until)


RULES: Final[Mapping[str, Rule]] = {
    # metadata
    "metadata.name-required": _rule("missing-field", "an object has a name"),
    "metadata.name-format": _rule("invalid-name", "a name is a DNS subdomain"),
    "metadata.generate-name-format": _rule("invalid-name", "generateName is the start of a DNS subdomain"),
    "metadata.namespace-format": _rule("invalid-name", "a namespace is a DNS label"),
    "metadata.generation": _rule("invalid-metadata", "a generation is no negative number"),
    "metadata.label-key": _rule("invalid-label", "a label's key is a qualified name"),
    "metadata.label-value": _rule("invalid-label", "a label's value has at most 63 letters, digits and -_."),
    "metadata.annotation-key": _rule("invalid-label", "an annotation's key is a qualified name"),
    "metadata.annotations-size": _rule("value-too-long", "annotations have at most 256 KiB together"),
    "metadata.finalizer": _rule("invalid-label", "a finalizer is a qualified name"),
    "metadata.finalizer-domain": _rule(
        "invalid-label", "a finalizer has a domain, unless it is Kubernetes' own"
    ),
    "metadata.finalizers-conflict": _rule(
        "invalid-metadata", "orphan and foregroundDeletion exclude each other"
    ),
    "metadata.owner": _rule("missing-field", "an owner reference has apiVersion, kind, name and uid"),
    "metadata.owner-api-version": _rule("invalid-metadata", "an owner's apiVersion has a version"),
    "metadata.owner-controller": _rule("invalid-metadata", "one owner at most is the controller"),
    "template.metadata": _rule(
        "field-not-allowed", "a template's inner metadata has labels and annotations only"
    ),
    # claims
    "claim.requests-size": _rule("too-many-items", "a claim has at most 32 requests"),
    "claim.constraints-size": _rule("too-many-items", "a claim has at most 32 constraints"),
    "claim.config-size": _rule("too-many-items", "a claim or class has at most 32 configs"),
    "claim.immutable": _rule("field-immutable", "the spec of a claim or template never changes"),
    "claim.derived-cost": _rule(
        "cel-too-costly",
        "all derived attributes of a claim together cost at most 1,000,000",
        needs="DRADerivedAttributes",
        since=37,
    ),
    "request.name": _rule("invalid-name", "a request's name is a DNS label"),
    "request.duplicate": _rule("duplicate-request", "names of requests are unique"),
    "request.one-of-none": _rule("one-of", "a request has exactly or firstAvailable"),
    "request.one-of-both": _rule("one-of", "a request has not both exactly and firstAvailable"),
    "request.first-available-size": _rule("too-many-items", "firstAvailable has at most 8 entries"),
    "request.class-required": _rule("missing-field", "a request names a device class"),
    "request.class-format": _rule("invalid-name", "a class name is a DNS subdomain"),
    "request.allocation-mode": _rule("unsupported-value", "allocationMode is All or ExactCount"),
    "request.count-positive": _rule("count-below-one", "a count is above zero"),
    "request.count-with-all": _rule("count-with-all", "All takes no count"),
    "request.admin-access": _rule("admin-access-namespace", "admin access needs a labelled namespace"),
    "selectors.size": _rule("too-many-items", "there are at most 32 selectors"),
    "selectors.cel-required": _rule("missing-field", "a selector has cel"),
    "cel.length": _rule("cel-too-long", "an expression has at most 10 KiB"),
    "cel.compiles": _rule("cel-type", "an expression compiles to a test"),
    "cel.cost": _rule("cel-too-costly", "an expression costs at most 1,000,000"),
    "toleration.key": _rule("invalid-label", "a toleration's key is a label key", needs="DRADeviceTaints"),
    "toleration.operator": _rule(
        "unsupported-value", "a toleration's operator is Exists or Equal", needs="DRADeviceTaints"
    ),
    "toleration.value-with-exists": _rule(
        "invalid-toleration", "Exists takes no value", needs="DRADeviceTaints"
    ),
    "toleration.value": _rule(
        "invalid-label", "a toleration's value is a label value", needs="DRADeviceTaints"
    ),
    "toleration.effect": _rule(
        "unsupported-value",
        "a toleration's effect is one of the device taint effects",
        needs="DRADeviceTaints",
    ),
    "derived.size": _rule(
        "too-many-items", "there are at most 32 derived attributes", needs="DRADerivedAttributes", since=37
    ),
    "derived.duplicate": _rule(
        "duplicate-item", "names of derived attributes are unique", needs="DRADerivedAttributes", since=37
    ),
    "derived.name-required": _rule(
        "missing-field", "a derived attribute has a name", needs="DRADerivedAttributes", since=37
    ),
    "derived.name-format": _rule(
        "invalid-attribute-name",
        "a derived attribute's name is fully qualified",
        needs="DRADerivedAttributes",
        since=37,
    ),
    "derived.unused": _rule(
        "derived-attribute-unused",
        "a constraint uses the derived attribute",
        needs="DRADerivedAttributes",
        since=37,
    ),
    "derived.expression-required": _rule(
        "missing-field", "a derived attribute has an expression", needs="DRADerivedAttributes", since=37
    ),
    "constraint.requests-size": _rule("too-many-items", "a list of request names has at most 32 entries"),
    "constraint.requests-duplicate": _rule("duplicate-item", "a list of request names names each once"),
    "reference.format": _rule("invalid-name", "each part of a reference to a request is a DNS label"),
    "reference.unknown": _rule(
        "unknown-request", "a reference names a request, or request/subrequest, of the claim"
    ),
    "constraint.attribute": _rule("invalid-attribute-name", "an attribute is a domain and a name"),
    "constraint.attribute-required": _rule("missing-field", "a constraint has an attribute"),
    "config.opaque-required": _rule("missing-field", "a config has opaque"),
    "config.driver-required": _rule("missing-field", "a config names its driver"),
    "config.driver-format": _rule("invalid-name", "a driver's name is a DNS subdomain"),
    "config.driver-length": _rule("value-too-long", "a driver's name has at most 63 characters"),
    "config.parameters-required": _rule("missing-field", "a config has parameters"),
    "config.parameters-length": _rule("value-too-long", "parameters have at most 10 KiB of JSON"),
    "config.parameters-object": _rule("invalid-parameters", "parameters are a JSON object"),
    # classes
    "class.extended-resource-name": _rule(
        "invalid-extended-resource", "an extended resource name is one", needs="DRAExtendedResource"
    ),
    # taint rules
    "taint-rule.driver-required": _rule("missing-field", "the driver that a taint rule selects has a name"),
    "taint-rule.driver-format": _rule(
        "invalid-name", "the driver that a taint rule selects is a DNS subdomain"
    ),
    "taint-rule.driver-length": _rule(
        "value-too-long", "the driver that a taint rule selects has at most 63 bytes"
    ),
    "taint-rule.pool-required": _rule("missing-field", "the pool that a taint rule selects has a name"),
    "taint-rule.pool-format": _rule(
        "invalid-name", "the pool that a taint rule selects is DNS subdomains joined by slashes"
    ),
    "taint-rule.pool-length": _rule(
        "value-too-long", "the pool that a taint rule selects has at most 253 bytes"
    ),
    "taint-rule.device": _rule("invalid-name", "the device that a taint rule selects is a DNS label"),
    "taint-rule.class": _rule(
        "invalid-name", "the class that a taint rule selects is a DNS subdomain", until=34
    ),
    # statuses of claims
    "reserved.size": _rule("too-many-items", "a claim is reserved for at most 256 objects"),
    "reserved.duplicate": _rule("duplicate-item", "a claim is reserved for an object once"),
    "reserved.required": _rule("missing-field", "what a claim is reserved for has resource, name and uid"),
    "reserved.not-allocated": _rule("claim-not-allocated", "a claim is reserved when it is allocated"),
    "reserved.deleted": _rule("field-not-allowed", "a claim that is deleted is reserved for nobody else"),
    "status.immutable": _rule("field-immutable", "an allocation never changes, but may be cleared"),
    "status.share-id": _rule(
        "invalid-share-id", "the id of a share is a UUID", needs="DRAConsumableCapacity"
    ),
    "status.address": _rule("invalid-address", "an address of an interface is one in CIDR form"),
    "status.addresses-size": _rule("too-many-items", "an interface has at most 16 addresses"),
    "status.addresses-duplicate": _rule("duplicate-item", "an address is there once"),
    "status.network-length": _rule(
        "value-too-long", "the name of an interface has at most 256 bytes, its address 128"
    ),
    "allocation.results-size": _rule("too-many-items", "an allocation has at most 32 devices"),
    "allocation.config-size": _rule("too-many-items", "an allocation has at most 64 configs"),
    "allocation.driver-required": _rule("missing-field", "an allocated device names its driver"),
    "allocation.driver-format": _rule("invalid-name", "the driver of an allocated device is a DNS subdomain"),
    "allocation.driver-length": _rule(
        "value-too-long", "the driver of an allocated device has at most 63 characters"
    ),
    "allocation.pool-required": _rule("missing-field", "an allocated device names its pool"),
    "allocation.pool-format": _rule(
        "invalid-name", "the pool of an allocated device is DNS subdomains joined by slashes"
    ),
    "allocation.pool-length": _rule(
        "value-too-long", "the pool of an allocated device has at most 253 bytes"
    ),
    "allocation.device": _rule("invalid-name", "an allocated device's name is a DNS label"),
    "allocation.source-required": _rule(
        "missing-field", "a config of an allocation says where it comes from"
    ),
    "allocation.source": _rule("unsupported-value", "a config comes from the claim or the class"),
    "device-status.driver-required": _rule("missing-field", "the status of a device names the driver"),
    "device-status.driver-format": _rule(
        "invalid-name", "the driver in a device's status is a DNS subdomain"
    ),
    "device-status.driver-length": _rule(
        "value-too-long", "the driver in a device's status has at most 63 bytes"
    ),
    "device-status.pool-required": _rule("missing-field", "the status of a device names the pool"),
    "device-status.pool-format": _rule(
        "invalid-name", "the pool in a device's status is DNS subdomains joined by slashes"
    ),
    "device-status.pool-length": _rule(
        "value-too-long", "the pool in a device's status has at most 253 bytes"
    ),
    "device-status.device": _rule("invalid-name", "the device in a device's status is a DNS label"),
    "device-status.duplicate": _rule("duplicate-item", "a device has one status"),
    "device-status.not-allocated": _rule("claim-not-allocated", "a device with a status is allocated"),
    "device-status.data-length": _rule("value-too-long", "data of a driver have at most 10 KiB of JSON"),
    "device-status.data-object": _rule("invalid-parameters", "data of a driver are a JSON object"),
    "condition.size": _rule("too-many-items", "a device has at most 8 conditions"),
    "condition.duplicate": _rule("duplicate-item", "types of conditions are unique"),
    "condition.required": _rule("missing-field", "a condition has type, status, reason and time"),
    "condition.type": _rule("invalid-label", "a condition's type is a label key"),
    "condition.status": _rule("unsupported-value", "a condition is True, False or Unknown"),
    "condition.generation": _rule("invalid-metadata", "a condition's generation is no negative number"),
    "condition.reason": _rule("invalid-name", "a condition's reason is a word"),
    "condition.length": _rule("value-too-long", "a reason has at most 1 KiB, a message 32"),
    # pods
    "pod.claim-name-required": _rule("missing-field", "a pod's claim has a name"),
    "pod.claim-name-format": _rule("invalid-name", "the name of a pod's claim is a DNS label"),
    "pod.claim-duplicate": _rule("duplicate-claim", "names of a pod's claims are unique"),
    "pod.claim-one-of": _rule("one-of", "a pod's claim has resourceClaimName or resourceClaimTemplateName"),
    "pod.claim-reference": _rule("invalid-name", "a pod's claim names an object"),
    "container.claim-name-required": _rule("missing-field", "a container's claim has a name"),
    "container.claim-unknown": _rule("claim-not-in-pod", "a container uses claims of its pod"),
    "container.claim-request": _rule("invalid-name", "the request of a container's claim is a DNS label"),
    "container.claim-duplicate": _rule("claim-attached-twice", "a container uses a claim or request once"),
    "pod.resources-claims": _rule("field-not-allowed", "pod-level resources take no claims"),
    "pod.claims-immutable": _rule("pod-claims-immutable", "a pod's claims never change"),
    **SLICE_RULES,
}
"""Rule name to what it demands."""
