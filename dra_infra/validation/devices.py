"""Rules for DeviceClass, ResourceClaim and ResourceClaimTemplate.

Upstream: pkg/apis/resource/validation/validation.go (1.37) and the shapes in k8s.io/api/resource/v1.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from dra_infra.cel import check_expression
from dra_infra.errors import Problem
from dra_infra.model import names
from dra_infra.model.device_class import API_VERSION, DeviceClass, DeviceSelector
from dra_infra.model.program import SECRET, UNKNOWN
from dra_infra.model.record import Record
from dra_infra.model.resource_claim import (
    DeviceClaim,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimTemplate,
)
from dra_infra.validation.products import check_products

_KINDS: Mapping[str, type[Record]] = {
    "DeviceClass": DeviceClass,
    "ResourceClaim": ResourceClaim,
    "ResourceClaimTemplate": ResourceClaimTemplate,
}
MAX_LIST = 32
MAX_DEVICES = 32


def check_device_object(manifest: Mapping[str, Any], *, classes: Collection[str]) -> Iterator[Problem]:
    """Check one object of resource.k8s.io/v1; objects of other groups pass.

    Args:
        manifest: Plain JSON data.
        classes: Names of the DeviceClasses that are known.
    """
    record_type = _KINDS.get(str(manifest.get("kind")))
    if record_type is None or manifest.get("apiVersion") != API_VERSION:
        return
    try:
        record = record_type.from_manifest(manifest)
    except ValidationError as error:
        yield from _shape_problems(error)
        return
    yield from _check_object_name(manifest)
    if isinstance(record, DeviceClass):
        yield from _check_selectors(record.spec.selectors, "spec.selectors")
    elif isinstance(record, ResourceClaim):
        yield from _check_claim(record.spec.devices, "spec.devices", classes)
    elif isinstance(record, ResourceClaimTemplate):
        yield from _check_claim(record.spec.spec.devices, "spec.spec.devices", classes)


def _shape_problems(error: ValidationError) -> Iterator[Problem]:
    """What the records could not hold: misspelt fields, which the server drops silently, and wrong types."""
    for each in error.errors(include_url=False):
        path = _field_path(each["loc"])
        if each["type"] == "extra_forbidden":
            yield Problem(
                path=path,
                code="unknown-field",
                message="the API has no such field; the server drops it silently",
                hint="check the spelling against `kubectl explain`",
            )
        elif each["type"] == "missing":
            yield Problem(path=path, code="missing-field", message="is required")
        else:
            yield Problem(path=path, code="wrong-type", message=f"{each['input']!r}: {each['msg'].lower()}")


def _field_path(location: Sequence[int | str]) -> str:
    path = ""
    for step in location:
        path += f"[{step}]" if isinstance(step, int) else f".{step}" if path else step
    return path


def _check_object_name(manifest: Mapping[str, Any]) -> Iterator[Problem]:
    metadata = manifest.get("metadata")
    name = metadata.get("name") if isinstance(metadata, Mapping) else None
    if isinstance(name, str) and name not in (UNKNOWN, SECRET) and not names.is_dns_subdomain(name):
        yield Problem(
            path="metadata.name",
            code="invalid-name",
            message=f"{name!r} is not a DNS subdomain name",
            hint="use lower-case letters, digits, '-' and '.'",
        )


def _check_claim(claim: DeviceClaim, path: str, classes: Collection[str]) -> Iterator[Problem]:
    requests = claim.requests or []
    if len(requests) > MAX_LIST:
        yield _too_many(f"{path}.requests", len(requests))
        return
    known: set[str] = set()
    total = 0
    for index, request in enumerate(requests):
        at = f"{path}.requests[{index}]"
        if not names.is_dns_label(request.name):
            yield Problem(
                path=f"{at}.name", code="invalid-name", message=f"{request.name!r} is not a DNS label"
            )
        if request.name in known:
            yield Problem(
                path=at, code="duplicate-request", message=f"{request.name!r} is the name of another request"
            )
        known.add(request.name)
        if (request.exactly is None) == (request.first_available is None):
            yield Problem(
                path=at, code="one-of", message="exactly one of `exactly` and `firstAvailable` must be set"
            )
        if request.exactly is not None:
            total += request.exactly.count or 1
            yield from _check_leaf(request.exactly, f"{at}.exactly", classes)
        for position, sub in enumerate(request.first_available or []):
            known.add(f"{request.name}/{sub.name}")
            yield from _check_leaf(sub, f"{at}.firstAvailable[{position}]", classes)
    if total > MAX_DEVICES:
        yield Problem(
            path=f"{path}.requests",
            code="too-many-devices",
            message=f"{total} devices are asked for, the scheduler allocates at most {MAX_DEVICES} per claim",
            hint="use several claims or pods",
            severity="warning",
        )
    yield from _check_constraints(claim, path, known)


def _check_leaf(
    leaf: ExactDeviceRequest | DeviceSubRequest, path: str, classes: Collection[str]
) -> Iterator[Problem]:
    name = leaf.device_class_name
    if name not in (UNKNOWN, SECRET):
        if not names.is_dns_subdomain(name):
            yield Problem(
                path=f"{path}.deviceClassName",
                code="invalid-name",
                message=f"{name!r} is not a DNS subdomain name",
            )
        elif name not in classes:
            yield Problem(
                path=f"{path}.deviceClassName",
                code="class-not-known",
                message=f"DeviceClass {name!r} is neither in this program nor in the fleet",
                hint="the server does not check it: pods stay pending until the class exists",
                severity="warning",
            )
    if leaf.allocation_mode == "All":
        if leaf.count:
            yield Problem(
                path=f"{path}.count",
                code="count-with-all",
                message="must not be specified when allocationMode is 'All'",
            )
    elif leaf.count is not None and leaf.count < 0:
        # A count of 0 passes: the server takes it for absent and defaults it to 1 (SetDefaults_ExactDeviceRequest).
        yield Problem(path=f"{path}.count", code="count-below-one", message="must be greater than zero")
    yield from _check_selectors(leaf.selectors, f"{path}.selectors")


def _check_selectors(selectors: Sequence[DeviceSelector] | None, path: str) -> Iterator[Problem]:
    if selectors is None:
        return
    if len(selectors) > MAX_LIST:
        yield _too_many(path, len(selectors))
        return
    for index, selector in enumerate(selectors):
        if selector.cel is None:
            yield Problem(path=f"{path}[{index}].cel", code="missing-field", message="is required")
        elif selector.cel.expression not in (UNKNOWN, SECRET):
            at = f"{path}[{index}].cel.expression"
            yield from check_expression(selector.cel.expression, path=at).problems
            yield from check_products(selector.cel.expression, path=at)


def _check_constraints(claim: DeviceClaim, path: str, known: Collection[str]) -> Iterator[Problem]:
    constraints = claim.constraints or []
    if len(constraints) > MAX_LIST:
        yield _too_many(f"{path}.constraints", len(constraints))
        return
    for index, constraint in enumerate(constraints):
        at = f"{path}.constraints[{index}]"
        for position, name in enumerate(constraint.requests or []):
            if name not in known:
                yield Problem(
                    path=f"{at}.requests[{position}]",
                    code="unknown-request",
                    message=f"{name!r} is not a request of this claim",
                )
        attribute = constraint.match_attribute or constraint.distinct_attribute
        if attribute is None:
            yield Problem(
                path=at, code="missing-field", message="matchAttribute or distinctAttribute must be set"
            )
            continue
        parts = names.split_qualified_name(attribute)
        if parts is None or not parts[0]:
            field = "matchAttribute" if constraint.match_attribute else "distinctAttribute"
            yield Problem(
                path=f"{at}.{field}",
                code="invalid-attribute-name",
                message=f"{attribute!r} needs a domain and a name separated by a slash",
            )


def _too_many(path: str, count: int) -> Problem:
    return Problem(path=path, code="too-many-items", message=f"{count} items, must have at most {MAX_LIST}")
