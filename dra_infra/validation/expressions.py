"""CEL expressions in claims and classes: length, compilation and cost, as the server checks new ones.

Upstream: validateCELExpression in pkg/apis/resource/validation/validation.go. Expressions that were stored before are
not checked again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from dra_infra.cel.check import Checked, check_derived, check_expression
from dra_infra.cel.release import Environment
from dra_infra.model.device_class import DeviceClass, DeviceSelector
from dra_infra.model.markers import SECRET, UNKNOWN
from dra_infra.model.resource_claim import (
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimTemplate,
)
from dra_infra.model.target import Release
from dra_infra.validation.field_errors import FieldError, forbidden, invalid, too_long
from dra_infra.validation.formats import size

if TYPE_CHECKING:
    from dra_infra.validation.verdict import Judged

MAX_LENGTH: Final = 10 * 1024
"""Bytes (CELSelectorExpressionMaxLength in k8s.io/api/resource/v1)."""

MAX_COST: Final = 1_000_000
"""CELSelectorExpressionMaxCost, and DeviceClaimDerivedAttributeCELMaxCost for a claim's derived attributes together."""

_NOT_TOLD: Final = (UNKNOWN, SECRET)


@lru_cache(maxsize=64)
def environment_of(release: Release, *, stored: bool = False) -> Environment:
    """The CEL environment in which a server of *release* compiles a new (or stored) expression."""
    return Environment(
        minor=release.number,
        stored=stored,
        list_attributes=release.enabled("DRAListTypeAttributes"),
        consumable_capacity=release.enabled("DRAConsumableCapacity"),
    )


def check_selector(
    expression: str, path: str, release: Release, *, stored: bool = False
) -> Iterator[FieldError]:
    """Check a selector's expression; since 1.37 one that was *stored* before is taken as it is."""
    if expression in _NOT_TOLD or (stored and release.number >= 37):
        return
    yield from _check(expression, path, release, stored=stored)


def check_derived_expression(expression: str, path: str, release: Release) -> Iterator[FieldError]:
    """Check the expression of a derived attribute."""
    if expression not in _NOT_TOLD:
        yield from _check(expression, path, release, derived=True)


def compiled(expression: str, release: Release, *, derived: bool = False, stored: bool = False) -> Checked:
    """What a server of *release* knows of *expression*."""
    check = check_derived if derived else check_expression
    return check(expression, environment=environment_of(release, stored=stored))


def _check(
    expression: str, path: str, release: Release, *, derived: bool = False, stored: bool = False
) -> Iterator[FieldError]:
    if len(expression) > MAX_LENGTH or size(expression) > MAX_LENGTH:
        yield too_long("cel.length", path, MAX_LENGTH)
        return
    checked = compiled(expression, release, derived=derived, stored=stored)
    if checked.kind == "FieldValueInvalid":
        yield invalid("cel.compiles", path, expression, checked.detail)
    elif (checked.cost or 0) > MAX_COST:
        yield forbidden("cel.cost", path, "too complex, exceeds cost limit")


def find_undecided(record: Judged, release: Release) -> Iterator[str]:
    """Paths of the expressions in *record* about which nothing can be said here."""
    for expression, path, derived in _expressions(record):
        if size(expression) <= MAX_LENGTH and compiled(expression, release, derived=derived).undecided:
            yield path


def _expressions(record: Judged) -> Iterator[tuple[str, str, bool]]:
    if isinstance(record, ResourceClaimTemplate):
        devices, path = record.spec.spec.devices, "spec.spec.devices"
    elif isinstance(record, ResourceClaim):
        devices, path = record.spec.devices, "spec.devices"
    elif isinstance(record, DeviceClass):
        yield from _in_selectors(record.spec.selectors, "spec.selectors")
        return
    elif record.kind == "DeviceTaintRule":
        chosen = record.spec.device_selector
        yield from _in_selectors(chosen.selectors if chosen else None, "spec.deviceSelector.selectors")
        return
    else:
        return
    for index, request in enumerate(devices.requests or ()):
        at = f"{path}.requests[{index}]"
        leaves: list[tuple[str, ExactDeviceRequest | DeviceSubRequest]] = [
            (f"{at}.firstAvailable[{position}]", sub)
            for position, sub in enumerate(request.first_available or ())
        ]
        if request.exactly is not None:
            leaves.append((f"{at}.exactly", request.exactly))
        for place, leaf in leaves:
            yield from _in_selectors(leaf.selectors, f"{place}.selectors")
            for position, attribute in enumerate(leaf.derived_attributes or ()):
                yield attribute.expression, f"{place}.derivedAttributes[{position}].expression", True


def _in_selectors(selectors: Sequence[DeviceSelector] | None, path: str) -> Iterator[tuple[str, str, bool]]:
    for index, selector in enumerate(selectors or ()):
        if selector.cel is not None:
            yield selector.cel.expression, f"{path}[{index}].cel.expression", False
