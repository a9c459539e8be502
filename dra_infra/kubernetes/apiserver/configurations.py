"""Hand-written rules for selectors, CEL expressions, opaque configs and attribute names (validation.go).

Claims and classes share them. CEL expressions are checked for length, compilation and cost, as the server checks new
ones (validateCELExpression in pkg/apis/resource/validation/validation.go). Expressions that were stored before are
not checked again.

Names of attributes and capacities are `id`, or `domain/id` (validateQualifiedName).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from dra_infra.kubernetes.api import names
from dra_infra.kubernetes.api.device_class import DeviceSelector, OpaqueDeviceConfiguration
from dra_infra.kubernetes.api.gates import Release
from dra_infra.kubernetes.api.go_text import go_json
from dra_infra.kubernetes.api.limits import (
    MAX_COST,
    MAX_DRIVER_NAME,
    MAX_EXPRESSION,
    MAX_IDENTIFIER,
    MAX_PARAMETERS,
)
from dra_infra.kubernetes.api.names import size
from dra_infra.kubernetes.api.placeholders import is_placeholder
from dra_infra.kubernetes.apiserver.field_errors import (
    FieldError,
    Printed,
    check_items,
    forbidden,
    invalid,
    malformed,
    required,
    too_long,
)
from dra_infra.kubernetes.cel.check import Checked, check_derived, check_expression
from dra_infra.kubernetes.cel.environment import Environment


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
    if is_placeholder(expression) or (stored and release.number >= 37):
        return
    yield from _check(expression, path, release, stored=stored)


def check_derived_expression(expression: str, path: str, release: Release) -> Iterator[FieldError]:
    """Check the expression of a derived attribute."""
    if not is_placeholder(expression):
        yield from _check(expression, path, release, derived=True)


def compiled(expression: str, release: Release, *, derived: bool = False, stored: bool = False) -> Checked:
    """Compiles *expression* as a server of *release* does."""
    check = check_derived if derived else check_expression
    return check(expression, environment=environment_of(release, stored=stored))


def _check(
    expression: str, path: str, release: Release, *, derived: bool = False, stored: bool = False
) -> Iterator[FieldError]:
    if len(expression) > MAX_EXPRESSION or size(expression) > MAX_EXPRESSION:
        yield too_long("cel.length", path, MAX_EXPRESSION)
        return
    checked = compiled(expression, release, derived=derived, stored=stored)
    if checked.kind == "FieldValueInvalid":
        yield invalid("cel.compiles", path, expression, checked.detail)
    elif (checked.cost or 0) > MAX_COST:
        yield forbidden("cel.cost", path, "too complex, exceeds cost limit")


def check_selectors(
    selectors: Sequence[DeviceSelector] | None, path: str, release: Release, *, stored: bool = False
) -> Iterator[FieldError]:
    """Check a list of selectors, which may be those that were *stored* before."""
    yield from check_items(
        selectors,
        path,
        lambda selector, at: _check_selector(selector, at, release, stored=stored),
        size_rule="selectors.size",
        checks_all=release.number < 35,
    )


def _check_selector(
    selector: DeviceSelector, path: str, release: Release, *, stored: bool
) -> Iterator[FieldError]:
    if selector.cel is None:
        yield required("selectors.cel-required", f"{path}.cel")
    else:
        yield from check_selector(selector.cel.expression, f"{path}.cel.expression", release, stored=stored)


def check_configuration(
    opaque: OpaqueDeviceConfiguration | None, path: str, release: Release, *, stored: bool = False
) -> Iterator[FieldError]:
    """Check the driver and parameters of a config."""
    if opaque is None:
        yield required("config.opaque-required", f"{path}.opaque")
        return
    yield from check_driver_name(
        opaque.driver,
        f"{path}.opaque.driver",
        covered=True,
        length_covered=release.number >= 36,
        checks_missing=release.number < 35,
    )
    yield from _check_parameters(opaque.parameters, f"{path}.opaque.parameters", stored=stored)


def check_driver_name(
    name: str,
    path: str,
    *,
    rule: str = "config.driver",
    covered: bool = False,
    length_covered: bool = False,
    checks_missing: bool = False,
) -> Iterator[FieldError]:
    """Check a driver's name; *rule* is the stem of the names of the rules (ValidateCSIDriverName).

    Up to 1.34 the format of a name that is missing is checked too.
    """
    if not name:
        yield required(f"{rule}-required", path, covered=covered)
        if not checks_missing:
            return
    if names.size(name) > MAX_DRIVER_NAME:
        yield too_long(
            f"{rule}-length",
            path,
            MAX_DRIVER_NAME,
            origin="maxLength" if length_covered else "",
            covered=length_covered,
        )
    for told in names.dns_subdomain(name.lower()):
        yield invalid(
            f"{rule}-format",
            path,
            name,
            told,
            origin="format=k8s-long-name-caseless" if covered else "",
            covered=covered,
        )


def _check_parameters(parameters: Any, path: str, *, stored: bool = False) -> Iterator[FieldError]:
    """Check that *parameters* are a small JSON object (validateRawExtension)."""
    if parameters is None:
        yield required("config.parameters-required", path)
        return
    if is_placeholder(parameters):
        return
    # The server counts the bytes that it was sent. Ours are the compact ones: what every client of ours sends.
    text = json.dumps(parameters, ensure_ascii=False, separators=(",", ":"))
    if not stored and names.size(text) > MAX_PARAMETERS:
        yield too_long("config.parameters-length", path, MAX_PARAMETERS)
    elif not isinstance(parameters, dict):
        yield invalid("config.parameters-object", path, "<value omitted>", "must be a valid JSON object")


_ORIGIN = "format=k8s-resource-fully-qualified-name"
_RULE = "constraint.attribute"


def check_fully_qualified(name: str, path: str, release: Release, *, covered: bool) -> Iterator[FieldError]:
    """Check the attribute of a constraint by the hand-written rules."""
    if is_placeholder(name):
        return
    if release.number < 35:
        yield from _check_old(name, path)
        return
    for error in _check_qualified(name, path):
        yield replace(error, rule=_RULE, origin=_ORIGIN, covered=covered)
    if "/" not in name:
        yield invalid(
            _RULE,
            path,
            _typed(name),
            "a fully qualified name must be a domain and a name separated by a slash",
            origin=_ORIGIN,
            covered=covered,
        )


def check_qualified(name: str, path: str, release: Release, *, rule: str) -> Iterator[FieldError]:
    """Check the name of an attribute or capacity of a device, which needs no domain."""
    if is_placeholder(name):
        return
    check = _check_old_qualified if release.number < 35 else _check_qualified
    for error in check(name, path):
        yield replace(error, rule=rule)


def _check_qualified(name: str, path: str) -> Iterator[FieldError]:
    parts = name.split("/")
    if len(parts) == 1:
        yield from _check_identifier(parts[0], path)
    elif len(parts) == 2:
        domain, identifier = parts
        if not domain:
            yield invalid(_RULE, path, "", "the domain must not be empty")
        else:
            yield from check_driver_name(domain, path, rule=_RULE)
        if not identifier:
            yield invalid(_RULE, path, "", "the name must not be empty")
        else:
            yield from _check_identifier(identifier, path)
    # A name with more than one slash passes: the server does not look at it (its own comment calls it incomplete).


def _check_old(name: str, path: str) -> Iterator[FieldError]:
    """Check the attribute of a constraint as servers up to 1.34 do."""
    yield from _check_old_qualified(name, path)
    if name and "/" not in name:
        yield invalid(_RULE, path, _typed(name), "must include a domain")


def _typed(name: str) -> object:
    """A text of a type of its own, which the server prints as JSON."""
    return name if is_placeholder(name) else Printed(go_json(name))


def _check_old_qualified(name: str, path: str) -> Iterator[FieldError]:
    """Check a name as servers up to 1.34 do, for which empty parts are missing values."""
    if not name:
        yield required("constraint.attribute-required", path, "name required")
        return
    domain, slash, identifier = name.partition("/")
    if not slash:
        yield from _check_identifier(name, path)
    elif "/" not in identifier:
        if domain:
            for error in check_driver_name(domain, path, rule=_RULE):
                yield replace(error, rule=_RULE)
        else:
            yield required(_RULE, path, "the domain must not be empty")
        if identifier:
            yield from _check_identifier(identifier, path)
        else:
            yield required(_RULE, path, "the name must not be empty")


def _check_identifier(identifier: str, path: str) -> Iterator[FieldError]:
    """Check the part behind the domain."""
    if names.size(identifier) > MAX_IDENTIFIER:
        yield too_long(_RULE, path, MAX_IDENTIFIER)
    yield from malformed(_RULE, path, identifier, names.c_identifier(identifier))
