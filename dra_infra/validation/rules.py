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
