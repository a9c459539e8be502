"""Hand-written rules for claims, their requests, and classes.

Upstream: validateDeviceClaim, validateDeviceRequest and below, and validateDeviceClassSpec, all in validation.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Self

from dra_infra.kubernetes.api import names
from dra_infra.kubernetes.api.device_class import DeviceClassSpec
from dra_infra.kubernetes.api.device_taints import DeviceToleration
from dra_infra.kubernetes.api.gates import Release
from dra_infra.kubernetes.api.limits import MAX_COST, MAX_FIRST_AVAILABLE, MAX_ITEMS
from dra_infra.kubernetes.api.placeholders import is_placeholder
from dra_infra.kubernetes.api.record_equality import are_lists_equal
from dra_infra.kubernetes.api.resource_claim import (
    DerivedAttribute,
    DeviceClaim,
    DeviceClaimConfiguration,
    DeviceConstraint,
    DeviceRequest,
    DeviceSubRequest,
    ExactDeviceRequest,
)
from dra_infra.kubernetes.apiserver.configurations import (
    check_configuration,
    check_derived_expression,
    check_fully_qualified,
    check_selectors,
    compiled,
)
from dra_infra.kubernetes.apiserver.field_errors import (
    FieldError,
    check_items,
    check_keyed_items,
    check_unique,
    forbidden,
    invalid,
    itself,
    label_wording,
    malformed,
    not_supported,
    required,
    taint_effects,
)

_OPERATORS = ("Equal", "Exists")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimContext:
    """The surroundings of a request that rules for it need.

    Args:
        release: The server.
        stored: CEL is compiled with what stored objects may use (StoredExpressions): 1.34 checks an update a second time so.
        compared: Attributes that constraints compare, by the request that they are about; the empty name is all.
    """

    release: Release
    stored: bool
    compared: Mapping[str, frozenset[str]]

    @classmethod
    def of(cls, claim: DeviceClaim, release: Release, *, stored: bool) -> Self:
        """The context of *claim* (gatherConstraintAttributes)."""
        found: dict[str, set[str]] = {}
        for constraint in claim.constraints or ():
            name = constraint.match_attribute
            name = constraint.distinct_attribute if name is None else name
            if name is not None:
                for request in constraint.requests or ("",):
                    found.setdefault(request, set()).add(name)
        compared = {request: frozenset(attributes) for request, attributes in found.items()}
        return cls(release=release, stored=stored, compared=compared)

    def compares(self, attribute: str, request: str) -> bool:
        """Checks that a constraint on *request* (`main` or `main/sub`) compares *attribute*."""
        scopes = {"", request, request.partition("/")[0]}
        return any(attribute in self.compared.get(scope, ()) for scope in scopes)


def _check_request(request: DeviceRequest, path: str, context: ClaimContext) -> Iterator[FieldError]:
    """Check one entry of `requests`."""
    yield from malformed("request.name", f"{path}.name", request.name, names.dns_label(request.name))
    ladder, exactly = request.first_available, request.exactly
    if not ladder and exactly is None:
        yield required(
            "request.one-of-none", path, "exactly one of `exactly` or `firstAvailable` is required"
        )
    both = bool(ladder) and exactly is not None
    if both:
        yield invalid(
            "request.one-of-both",
            path,
            None,
            "exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set",
        )
    # Up to 1.34 the contents of both are checked all the same.
    if both and context.release.number >= 35:
        return
    if ladder:
        yield from _check_ladder(request, path, context)
    if exactly is not None:
        yield from _check_leaf(exactly, f"{path}.exactly", context, request.name)


def _check_ladder(request: DeviceRequest, path: str, context: ClaimContext) -> Iterator[FieldError]:
    at = f"{path}.firstAvailable"
    is_old = context.release.number < 35
    yield from check_keyed_items(
        request.first_available,
        at,
        lambda sub, place: _check_subrequest(sub, place, context, request.name),
        lambda sub: sub.name,
        size_rule="request.first-available-size",
        unique_rule="request.duplicate",
        limit=MAX_FIRST_AVAILABLE,
        checks_all=is_old,
        below=".name" if is_old else "",
    )


def _check_subrequest(
    sub: DeviceSubRequest, path: str, context: ClaimContext, parent: str
) -> Iterator[FieldError]:
    yield from malformed("request.name", f"{path}.name", sub.name, names.dns_label(sub.name))
    yield from _check_leaf(sub, path, context, f"{parent}/{sub.name}")


def _check_leaf(
    leaf: ExactDeviceRequest | DeviceSubRequest, path: str, context: ClaimContext, name: str
) -> Iterator[FieldError]:
    # The generated rules know the class name of subrequests only: v1beta1 has that of `exactly` elsewhere.
    in_ladder = isinstance(leaf, DeviceSubRequest)
    class_path = f"{path}.deviceClassName"
    if not leaf.device_class_name:
        yield required("request.class-required", class_path, covered=in_ladder)
    else:
        for told in names.dns_subdomain(leaf.device_class_name):
            yield invalid(
                "request.class-format",
                class_path,
                leaf.device_class_name,
                told,
                origin="format=k8s-long-name",
                covered=in_ladder,
            )
    yield from check_selectors(leaf.selectors, f"{path}.selectors", context.release, stored=context.stored)
    yield from _check_derived_attributes(leaf, path, context, name)
    yield from _check_mode(leaf, path)
    for index, toleration in enumerate(leaf.tolerations or ()):
        yield from check_toleration(toleration, f"{path}.tolerations[{index}]", context.release)


def _check_mode(leaf: ExactDeviceRequest | DeviceSubRequest, path: str) -> Iterator[FieldError]:
    if leaf.allocation_mode == "All":
        if leaf.count != 0:
            yield invalid(
                "request.count-with-all",
                f"{path}.count",
                leaf.count,
                "must not be specified when allocationMode is 'All'",
            )
    elif leaf.allocation_mode == "ExactCount":
        if leaf.count <= 0:
            yield invalid("request.count-positive", f"{path}.count", leaf.count, "must be greater than zero")
    else:
        yield not_supported(
            "request.allocation-mode",
            f"{path}.allocationMode",
            leaf.allocation_mode,
            ("All", "ExactCount"),
            covered=True,
        )


def check_toleration(
    toleration: DeviceToleration, path: str, release: Release, *, generated: bool = False
) -> Iterator[FieldError]:
    """Check a toleration; with *generated*, its value is not checked."""
    noun, unit = label_wording(release)
    covered = not generated
    if toleration.key:
        for told in names.label_key(toleration.key, noun=noun, unit=unit):
            at = f"{path}.key"
            origin = "format=k8s-label-key"
            yield invalid("toleration.key", at, toleration.key, told, origin=origin, covered=covered)
    if toleration.operator not in _OPERATORS:
        at = f"{path}.operator"
        yield not_supported("toleration.operator", at, toleration.operator, _OPERATORS, covered=covered)
    elif not generated:
        yield from _check_tolerated_value(toleration, f"{path}.value", unit)
    effects = taint_effects(release)
    if toleration.effect and toleration.effect not in effects:
        yield not_supported(
            "toleration.effect", f"{path}.effect", toleration.effect, effects, covered=covered
        )


def _check_tolerated_value(toleration: DeviceToleration, path: str, unit: str) -> Iterator[FieldError]:
    value = toleration.value
    if toleration.operator == "Equal":
        yield from malformed("toleration.value", path, value, names.label_value(value, unit))
    elif value:
        yield invalid("toleration.value-with-exists", path, value, "must be empty for operator `Exists`")


def _check_derived_attributes(
    leaf: ExactDeviceRequest | DeviceSubRequest, path: str, context: ClaimContext, name: str
) -> Iterator[FieldError]:
    derived = leaf.derived_attributes
    if not derived:
        return
    at = f"{path}.derivedAttributes"
    # The size and format are rules of the generated engine alone.
    yield from check_items(
        derived,
        at,
        lambda attribute, place: _check_derived(attribute, place, context, name),
        size_rule="derived.size",
        limit=-1,
    )
    yield from check_unique(
        derived, at, lambda attribute: attribute.name, rule="derived.duplicate", covered=False
    )


def _check_derived(
    attribute: DerivedAttribute, path: str, context: ClaimContext, name: str
) -> Iterator[FieldError]:
    if attribute.name and not context.compares(attribute.name, name):
        yield invalid(
            "derived.unused",
            f"{path}.name",
            attribute.name,
            "must be referenced by at least one matchAttribute or distinctAttribute constraint targeting this request",
        )
    if attribute.expression:
        yield from check_derived_expression(attribute.expression, f"{path}.expression", context.release)


_REFERENCE_TEXT = (
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
)

_RequestNames = dict[str, frozenset[str]]
"""Name of a request to the names of its subrequests."""


def check_claim(
    claim: DeviceClaim, path: str, release: Release, *, stored: bool = False
) -> Iterator[FieldError]:
    """Check `spec.devices` of a claim, or `spec.spec.devices` of a template, at *path*, with its defaults filled in."""
    known = _request_names(claim)
    context = ClaimContext.of(claim, release, stored=stored)
    is_old = release.number < 35
    yield from check_keyed_items(
        claim.requests,
        f"{path}.requests",
        lambda request, at: _check_request(request, at, context),
        lambda request: request.name,
        size_rule="claim.requests-size",
        unique_rule="request.duplicate",
        checks_all=is_old,
        below=".name" if is_old else "",
    )
    yield from check_items(
        claim.constraints,
        f"{path}.constraints",
        lambda constraint, at: _check_constraint(constraint, at, known, release),
        size_rule="claim.constraints-size",
        checks_all=is_old,
    )
    yield from check_items(
        claim.config,
        f"{path}.config",
        lambda config, at: _check_claim_configuration(config, at, known, context),
        size_rule="claim.config-size",
        checks_all=is_old,
    )
    yield from _check_derived_cost(claim, path, release)


def _request_names(claim: DeviceClaim) -> _RequestNames:
    """The names that a reference in *claim* may have."""
    # Of two requests with one name, the later one decides what subrequests there are, as in gatherRequestNames.
    return {
        request.name: frozenset(sub.name for sub in request.first_available or ())
        for request in claim.requests or ()
    }


def _check_constraint(
    constraint: DeviceConstraint, path: str, known: _RequestNames, release: Release
) -> Iterator[FieldError]:
    yield from _check_references(constraint.requests, f"{path}.requests", known, release)
    if constraint.match_attribute is not None:
        yield from check_fully_qualified(
            constraint.match_attribute, f"{path}.matchAttribute", release, covered=True
        )
    elif constraint.distinct_attribute is not None:
        yield from check_fully_qualified(
            constraint.distinct_attribute, f"{path}.distinctAttribute", release, covered=release.number >= 37
        )
    elif release.enabled("DRAConsumableCapacity"):
        # The text speaks of several fields although none is set; it is the server's.
        yield required(
            "constraint.attribute-required",
            path,
            'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set',
        )
    else:
        yield required("constraint.attribute-required", f"{path}.matchAttribute")


def _check_claim_configuration(
    config: DeviceClaimConfiguration, path: str, known: _RequestNames, context: ClaimContext
) -> Iterator[FieldError]:
    yield from _check_references(config.requests, f"{path}.requests", known, context.release)
    yield from check_configuration(config.opaque, path, context.release, stored=context.stored)


def _check_references(
    references: list[str] | None, path: str, known: _RequestNames, release: Release
) -> Iterator[FieldError]:
    yield from check_keyed_items(
        references,
        path,
        lambda name, at: _check_reference(name, at, known),
        itself,
        size_rule="constraint.requests-size",
        unique_rule="constraint.requests-duplicate",
        checks_all=release.number < 35,
    )


def _check_reference(name: str, path: str, known: _RequestNames) -> Iterator[FieldError]:
    """Check a reference to a request, or to one of its alternatives."""
    if is_placeholder(name):
        return
    parts = name.split("/")
    if len(parts) > 2:
        yield invalid("reference.unknown", path, name, _REFERENCE_TEXT)
        return
    for part in parts:
        yield from malformed("reference.format", path, part, names.dns_label(part))
    is_known = parts[0] in known and (len(parts) == 1 or parts[1] in known[parts[0]])
    # A request or alternative whose name is not known may be the one that is meant.
    if not is_known and not any(map(is_placeholder, (*known, *known.get(parts[0], ())))):
        yield invalid("reference.unknown", path, name, _REFERENCE_TEXT)


def _check_derived_cost(claim: DeviceClaim, path: str, release: Release) -> Iterator[FieldError]:
    if release.number < 37 or len(claim.requests or ()) > MAX_ITEMS:
        return
    total = sum(
        compiled(attribute.expression, release, derived=True).cost or 0
        for request in claim.requests or ()
        for attribute in _derived_attributes(request)
        if attribute.expression
    )
    if total > MAX_COST:
        yield forbidden(
            "claim.derived-cost",
            path,
            "too complex, total cost of derived attribute CEL expressions in the claim exceeds cost limit",
        )


def _derived_attributes(request: DeviceRequest) -> Iterator[DerivedAttribute]:
    if request.exactly is not None and not request.first_available:
        yield from request.exactly.derived_attributes or ()
    elif request.exactly is None and len(request.first_available or ()) <= MAX_FIRST_AVAILABLE:
        for sub in request.first_available or ():
            yield from sub.derived_attributes or ()


def check_class(
    spec: DeviceClassSpec, release: Release, *, old: DeviceClassSpec | None = None
) -> Iterator[FieldError]:
    """Check the spec of a class; a list that equals the *old* one as a whole is not checked anew."""
    stored = old is not None and are_lists_equal(spec.selectors, old.selectors)
    yield from check_selectors(spec.selectors, "spec.selectors", release, stored=stored)
    unchanged = old is not None and are_lists_equal(spec.config, old.config)
    yield from check_items(
        spec.config,
        "spec.config",
        lambda config, at: check_configuration(config.opaque, at, release, stored=unchanged),
        size_rule="claim.config-size",
        checks_all=release.number < 35,
    )
    name = spec.extended_resource_name
    if name is not None and not names.is_extended_resource_name(name):
        yield invalid(
            "class.extended-resource-name",
            "spec.extendedResourceName",
            name,
            "must be a valid extended resource name",
            origin="format=k8s-extended-resource-name",
            covered=True,
        )
