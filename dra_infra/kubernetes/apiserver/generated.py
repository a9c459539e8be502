"""Declarative validation: rules generated from markers in the API types, which count since 1.37.

Since 1.37 (gate DeclarativeValidationBeta, on) the findings of this second engine of the server are reported, and
replace the hand-written ones of the same kind, path and origin that are marked as covered. Up to 1.36 they only ran
beside. What shows: other texts for attribute names and extended resources, whole items as bad values of duplicates, a
`null` for what is immutable.

Upstream: zz_generated.validations.go in pkg/apis/resource/v1 (and v1beta1, v1beta2) and
k8s.io/apimachinery/pkg/api/validate.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain

from dra_infra.kubernetes.api import names
from dra_infra.kubernetes.api.device_class import DeviceClassSpec
from dra_infra.kubernetes.api.gates import Release
from dra_infra.kubernetes.api.limits import MAX_DRIVER_NAME, MAX_FIRST_AVAILABLE, MAX_IDENTIFIER, MAX_ITEMS
from dra_infra.kubernetes.api.placeholders import is_placeholder
from dra_infra.kubernetes.api.record import Record
from dra_infra.kubernetes.api.resource_claim import (
    DeviceClaim,
    DeviceRequest,
    DeviceSubRequest,
    ExactDeviceRequest,
)
from dra_infra.kubernetes.apiserver.claims import check_toleration
from dra_infra.kubernetes.apiserver.field_errors import (
    FieldError,
    Printed,
    check_items,
    check_keyed_items,
    invalid,
    itself,
    malformed,
    not_supported,
    required,
    too_long,
)

SINCE = 37
"""First minor in which the generated rules are enforced."""

_DEVICE = re.compile(r"^(spec\.devices\[\d+\]\.)")
_FULLY_QUALIFIED = "format=k8s-resource-fully-qualified-name"
_EXTENDED_RESOURCE = "format=k8s-extended-resource-name"


def merge(
    written: Iterable[FieldError], generated: Iterable[FieldError], *, flat: bool = False
) -> tuple[FieldError, ...]:
    """The findings of both engines that the server reports (FilterCoveredHandwrittenErrors).

    Args:
        written: Findings of the hand-written rules.
        generated: Findings of the generated rules.
        flat: Whether the object came as v1beta1, where the fields of `exactly` lie on the request and those of a device
            in `basic`: the generated rules see it in that shape and report such paths.
    """
    enforced = tuple(generated)
    known = {(error.kind, error.path, error.origin) for error in enforced}
    kept = [
        error
        for error in written
        if not (error.covered and (error.kind, error.path, error.origin) in known and _is_matched(error))
    ]
    if flat:
        enforced = tuple(replace(error, path=_flat_path(error.path)) for error in enforced)
    return (*kept, *enforced)


def _flat_path(path: str) -> str:
    return _DEVICE.sub(r"\1basic.", path.replace("].exactly.", "]."))


def _is_matched(error: FieldError) -> bool:
    # Findings of kind Invalid match by origin only, and never without one.
    return error.kind != "FieldValueInvalid" or bool(error.origin)


def check_generated_claim(
    claim: DeviceClaim, path: str, release: Release, *, flat: bool = False
) -> Iterator[FieldError]:
    """Check the devices of a claim by the generated rules; *flat* when it came as v1beta1."""
    requests = claim.requests or ()
    yield from check_keyed_items(
        requests,
        f"{path}.requests",
        None,
        lambda request: request.name,
        size_rule="claim.requests-size",
        unique_rule="request.duplicate",
        shown=_shown_flat if flat else _shown,
    )
    if len(requests) <= MAX_ITEMS:
        for index, request in enumerate(requests):
            at = f"{path}.requests[{index}]"
            if request.exactly is not None:
                yield from _check_leaf(request.exactly, f"{at}.exactly", release)
            yield from _check_ladder(request.first_available or [], f"{at}.firstAvailable", release)
    yield from _check_constraints(claim, f"{path}.constraints")
    yield from check_items(
        claim.config,
        f"{path}.config",
        lambda config, at: chain(
            _check_references(config.requests, f"{at}.requests"),
            check_generated_driver(config.opaque.driver, f"{at}.opaque.driver") if config.opaque else (),
        ),
        size_rule="claim.config-size",
    )


def _check_ladder(ladder: list[DeviceSubRequest], path: str, release: Release) -> Iterator[FieldError]:
    yield from check_keyed_items(
        ladder,
        path,
        lambda sub, at: chain(_check_class_name(sub.device_class_name, at), _check_leaf(sub, at, release)),
        lambda sub: sub.name,
        size_rule="request.first-available-size",
        unique_rule="request.duplicate",
        limit=MAX_FIRST_AVAILABLE,
        shown=_shown,
    )


def _check_class_name(name: str, path: str) -> Iterator[FieldError]:
    at = f"{path}.deviceClassName"
    if not name:
        yield required("request.class-required", at)
        return
    for told in names.dns_subdomain(name, "bytes"):
        yield invalid("request.class-format", at, name, told, origin="format=k8s-long-name")


def _check_leaf(
    leaf: ExactDeviceRequest | DeviceSubRequest, path: str, release: Release
) -> Iterator[FieldError]:
    yield from check_items(leaf.selectors, f"{path}.selectors", None, size_rule="selectors.size")
    if leaf.allocation_mode not in ("", "All", "ExactCount"):
        yield not_supported(
            "request.allocation-mode", f"{path}.allocationMode", leaf.allocation_mode, ("All", "ExactCount")
        )
    for index, toleration in enumerate(leaf.tolerations or ()):
        yield from check_toleration(toleration, f"{path}.tolerations[{index}]", release, generated=True)
    yield from check_items(
        leaf.derived_attributes,
        f"{path}.derivedAttributes",
        lambda attribute, at: chain(
            check_generated_attribute(attribute.name, f"{at}.name", rule="derived.name")
            if attribute.name
            else [required("derived.name-required", f"{at}.name")],
            () if attribute.expression else [required("derived.expression-required", f"{at}.expression")],
        ),
        size_rule="derived.size",
    )


def _check_constraints(claim: DeviceClaim, path: str) -> Iterator[FieldError]:
    constraints = claim.constraints or ()
    yield from check_items(constraints, path, None, size_rule="claim.constraints-size")
    if len(constraints) > MAX_ITEMS:
        return
    for index, constraint in enumerate(constraints):
        at = f"{path}[{index}]"
        yield from _check_references(constraint.requests, f"{at}.requests")
        # Both are looked at, where the hand-written rules pass over the second.
        for name, field in (
            (constraint.match_attribute, "matchAttribute"),
            (constraint.distinct_attribute, "distinctAttribute"),
        ):
            if name is not None:
                yield from check_generated_attribute(name, f"{at}.{field}")


def _check_references(references: list[str] | None, path: str) -> Iterator[FieldError]:
    yield from check_keyed_items(
        references,
        path,
        None,
        itself,
        size_rule="constraint.requests-size",
        unique_rule="constraint.requests-duplicate",
    )


def check_generated_attribute(
    name: str, path: str, *, rule: str = "constraint.attribute"
) -> Iterator[FieldError]:
    """Check a fully qualified attribute name (ResourceFullyQualifiedName); the domain is lower-case here."""
    if is_placeholder(name):
        return
    rule = "derived.name-format" if rule == "derived.name" else rule
    parts = name.split("/")
    if len(parts) == 2:
        domain = parts[0]
        if not domain:
            yield invalid(rule, path, "", "prefix must not be empty", origin=_FULLY_QUALIFIED)
        else:
            if names.size(domain) > MAX_DRIVER_NAME:
                yield too_long(rule, path, MAX_DRIVER_NAME, origin=_FULLY_QUALIFIED)
            for told in names.dns_subdomain(domain, "bytes"):
                yield invalid(rule, path, domain, f"prefix: {told}", origin=_FULLY_QUALIFIED)
        if not parts[1]:
            yield invalid(rule, path, "", "name must not be empty", origin=_FULLY_QUALIFIED)
    if len(parts) == 1 or (len(parts) == 2 and parts[1]):
        if names.size(parts[-1]) > MAX_IDENTIFIER:
            yield too_long(rule, path, MAX_IDENTIFIER, origin=_FULLY_QUALIFIED)
        yield from malformed(rule, path, parts[-1], names.c_identifier(parts[-1]), origin=_FULLY_QUALIFIED)
    if len(parts) == 1:
        yield invalid(
            rule,
            path,
            name,
            "a fully qualified name must be a domain and a name separated by a slash",
            origin=_FULLY_QUALIFIED,
        )


def check_generated_driver(name: str, path: str) -> Iterator[FieldError]:
    """Check the driver of an opaque config by the generated rules."""
    if not name:
        yield required("config.driver-required", path)
        return
    for told in names.dns_subdomain_caseless(name):
        yield invalid("config.driver-format", path, name, told, origin="format=k8s-long-name-caseless")
    if len(name) > MAX_DRIVER_NAME:
        yield too_long("config.driver-length", path, MAX_DRIVER_NAME, unit="characters", origin="maxLength")


def check_generated_class(spec: DeviceClassSpec) -> Iterator[FieldError]:
    """Check the spec of a class by the generated rules."""
    yield from check_items(spec.selectors, "spec.selectors", None, size_rule="selectors.size")
    yield from check_items(
        spec.config,
        "spec.config",
        lambda config, at: (
            check_generated_driver(config.opaque.driver, f"{at}.opaque.driver") if config.opaque else iter(())
        ),
        size_rule="claim.config-size",
    )
    if spec.extended_resource_name is not None:
        yield from _check_extended_resource(spec.extended_resource_name, "spec.extendedResourceName")


def _check_extended_resource(name: str, path: str) -> Iterator[FieldError]:
    """Check the extended resource name of a class (ExtendedResourceName)."""
    rule = "class.extended-resource-name"
    if "/" not in name:
        told = "a name must be a domain-prefixed path, such as 'example.com/my-prop'"
        yield invalid(rule, path, name, told, origin=_EXTENDED_RESOURCE)
    elif "kubernetes.io/" in name:
        yield invalid(rule, path, name, 'must not have "kubernetes.io/" domain', origin=_EXTENDED_RESOURCE)
    if name.startswith("requests."):
        yield invalid(rule, path, name, 'must not have "requests." prefix', origin=_EXTENDED_RESOURCE)
    yield from malformed(rule, path, name, names.label_key(f"requests.{name}"), origin=_EXTENDED_RESOURCE)


def _shown(item: Record) -> Printed:
    return Printed(item.to_go_json())


def _shown_flat(request: DeviceRequest) -> Printed:
    # Few objects are written in that version, whose records take 31 ms to load.
    from dra_infra.kubernetes.api.v1beta1 import flat_request

    return Printed(flat_request(request).to_go_json())
