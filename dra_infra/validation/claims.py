"""The hand-written rules for what a claim asks for (validateDeviceClaim and below, validation.go)."""

from __future__ import annotations

from collections.abc import Iterator

from dra_infra.model.resource_claim import (
    DerivedAttribute,
    DeviceClaim,
    DeviceClaimConfiguration,
    DeviceConstraint,
    DeviceRequest,
)
from dra_infra.model.target import Release
from dra_infra.validation import formats
from dra_infra.validation.attribute_names import check_fully_qualified
from dra_infra.validation.configurations import check_configuration
from dra_infra.validation.expressions import MAX_COST, compiled
from dra_infra.validation.field_errors import FieldError, forbidden, invalid, required
from dra_infra.validation.lists import check_items, check_unique
from dra_infra.validation.requests import ClaimContext, check_request

_REFERENCE_TEXT = (
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
)

RequestNames = dict[str, frozenset[str]]
"""Name of a request to the names of its subrequests."""


def check_claim(
    claim: DeviceClaim, path: str, release: Release, *, stored: bool = False
) -> Iterator[FieldError]:
    """Check `spec.devices` of a claim, or `spec.spec.devices` of a template, at *path*, with its defaults filled in."""
    names = request_names(claim)
    context = ClaimContext.of(claim, release, stored=stored)
    goes_on = release.number < 35
    yield from check_items(
        claim.requests,
        f"{path}.requests",
        lambda request, at: check_request(request, at, context),
        size_rule="claim.requests-size",
        goes_on=goes_on,
    )
    if goes_on or len(claim.requests or ()) <= 32:
        yield from check_unique(
            claim.requests,
            f"{path}.requests",
            lambda request: request.name,
            rule="request.duplicate",
            below=".name" if goes_on else "",
        )
    yield from check_items(
        claim.constraints,
        f"{path}.constraints",
        lambda constraint, at: _check_constraint(constraint, at, names, release),
        size_rule="claim.constraints-size",
        goes_on=goes_on,
    )
    yield from check_items(
        claim.config,
        f"{path}.config",
        lambda config, at: _check_claim_configuration(config, at, names, context),
        size_rule="claim.config-size",
        goes_on=goes_on,
    )
    yield from _check_derived_cost(claim, path, release)


def request_names(claim: DeviceClaim) -> RequestNames:
    """The names that a reference in *claim* may have."""
    # Of two requests with one name, the later one decides what subrequests there are, as in gatherRequestNames.
    return {
        request.name: frozenset(sub.name for sub in request.first_available or ())
        for request in claim.requests or ()
    }


def _check_constraint(
    constraint: DeviceConstraint, path: str, names: RequestNames, release: Release
) -> Iterator[FieldError]:
    yield from _check_references(constraint.requests, f"{path}.requests", names, release)
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
    config: DeviceClaimConfiguration, path: str, names: RequestNames, context: ClaimContext
) -> Iterator[FieldError]:
    yield from _check_references(config.requests, f"{path}.requests", names, context.release)
    yield from check_configuration(config.opaque, path, context.release, stored=context.stored)


def _check_references(
    references: list[str] | None, path: str, names: RequestNames, release: Release
) -> Iterator[FieldError]:
    goes_on = release.number < 35
    yield from check_items(
        references,
        path,
        lambda name, at: check_reference(name, at, names),
        size_rule="constraint.requests-size",
        goes_on=goes_on,
    )
    if goes_on or len(references or ()) <= 32:
        yield from check_unique(references, path, lambda name: name, rule="constraint.requests-duplicate")


def check_reference(name: str, path: str, names: RequestNames) -> Iterator[FieldError]:
    """Check a reference to a request, or to one of its alternatives."""
    parts = name.split("/")
    if len(parts) > 2:
        yield invalid("reference.unknown", path, name, _REFERENCE_TEXT)
        return
    for part in parts:
        for told in formats.dns_label(part):
            yield invalid("reference.format", path, part, told)
    if parts[0] not in names or (len(parts) == 2 and parts[1] not in names[parts[0]]):
        yield invalid("reference.unknown", path, name, _REFERENCE_TEXT)


def _check_derived_cost(claim: DeviceClaim, path: str, release: Release) -> Iterator[FieldError]:
    if release.number < 37 or len(claim.requests or ()) > 32:
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
    elif request.exactly is None and len(request.first_available or ()) <= 8:
        for sub in request.first_available or ():
            yield from sub.derived_attributes or ()
