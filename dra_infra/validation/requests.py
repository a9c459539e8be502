"""The hand-written rules for one request of a claim (validateDeviceRequest and below, validation.go)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Self

from dra_infra.model.resource_claim import (
    DerivedAttribute,
    DeviceClaim,
    DeviceRequest,
    DeviceSubRequest,
    DeviceToleration,
    ExactDeviceRequest,
)
from dra_infra.model.target import Release
from dra_infra.validation import formats
from dra_infra.validation.configurations import check_selectors
from dra_infra.validation.expressions import check_derived_expression
from dra_infra.validation.field_errors import FieldError, invalid, not_supported, required
from dra_infra.validation.lists import check_items, check_unique

MAX_FIRST_AVAILABLE = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimContext:
    """What the rules for a request need to know beside it.

    Args:
        release: The server.
        stored: Whether the expressions count as stored: up to 1.34 an update checks the claim again that way.
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
        compared = {request: frozenset(names) for request, names in found.items()}
        return cls(release=release, stored=stored, compared=compared)

    def compares(self, attribute: str, request: str) -> bool:
        """Whether a constraint on *request* (`main` or `main/sub`) compares *attribute*."""
        scopes = {"", request, request.partition("/")[0]}
        return any(attribute in self.compared.get(scope, ()) for scope in scopes)


def check_request(request: DeviceRequest, path: str, context: ClaimContext) -> Iterator[FieldError]:
    """Check one entry of `requests`."""
    for told in formats.dns_label(request.name):
        yield invalid("request.name", f"{path}.name", request.name, told)
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
    goes_on = context.release.number < 35
    yield from check_items(
        request.first_available,
        at,
        lambda sub, place: _check_subrequest(sub, place, context, request.name),
        size_rule="request.first-available-size",
        limit=MAX_FIRST_AVAILABLE,
        goes_on=goes_on,
    )
    if goes_on or len(request.first_available or ()) <= MAX_FIRST_AVAILABLE:
        yield from check_unique(
            request.first_available,
            at,
            lambda sub: sub.name,
            rule="request.duplicate",
            below=".name" if goes_on else "",
        )


def _check_subrequest(
    sub: DeviceSubRequest, path: str, context: ClaimContext, parent: str
) -> Iterator[FieldError]:
    for told in formats.dns_label(sub.name):
        yield invalid("request.name", f"{path}.name", sub.name, told)
    yield from _check_leaf(sub, path, context, f"{parent}/{sub.name}")


def _check_leaf(
    leaf: ExactDeviceRequest | DeviceSubRequest,
    path: str,
    context: ClaimContext,
    name: str,
) -> Iterator[FieldError]:
    # The generated rules know the class name of subrequests only: v1beta1 has that of `exactly` elsewhere.
    in_ladder = isinstance(leaf, DeviceSubRequest)
    class_path = f"{path}.deviceClassName"
    if not leaf.device_class_name:
        yield required("request.class-required", class_path, covered=in_ladder)
    else:
        for told in formats.dns_subdomain(leaf.device_class_name):
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


def taint_effects(release: Release) -> tuple[str, ...]:
    """Effects that a taint or toleration may have, in the server's order."""
    return ("NoExecute", "NoSchedule") if release.number < 35 else ("NoExecute", "NoSchedule", "None")


def check_toleration(toleration: DeviceToleration, path: str, release: Release) -> Iterator[FieldError]:
    """Check a toleration, of a request or of a result."""
    noun, unit = label_wording(release)
    if toleration.key:
        for told in formats.label_key(toleration.key, noun=noun, unit=unit):
            yield invalid(
                "toleration.key",
                f"{path}.key",
                toleration.key,
                told,
                origin="format=k8s-label-key",
                covered=True,
            )
    operator = toleration.operator
    if operator == "Exists":
        if toleration.value:
            yield invalid(
                "toleration.value-with-exists",
                f"{path}.value",
                toleration.value,
                "must be empty for operator `Exists`",
            )
    elif operator == "Equal":
        for told in formats.label_value(toleration.value, unit):
            yield invalid("toleration.value", f"{path}.value", toleration.value, told)
    else:
        yield not_supported(
            "toleration.operator",
            f"{path}.operator",
            operator,
            ("Equal", "Exists"),
            covered=True,
        )
    effects = taint_effects(release)
    if toleration.effect and toleration.effect not in effects:
        yield not_supported("toleration.effect", f"{path}.effect", toleration.effect, effects, covered=True)


def label_wording(release: Release) -> tuple[str, str]:
    """What a release calls a label key, and the unit of its lengths."""
    return ("a qualified name", "characters") if release.number < 35 else ("a valid label key", "bytes")


def _check_derived_attributes(
    leaf: ExactDeviceRequest | DeviceSubRequest,
    path: str,
    context: ClaimContext,
    name: str,
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
