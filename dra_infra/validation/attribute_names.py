"""Names of attributes and capacities: `id`, or `domain/id` (validateQualifiedName, validation.go)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dra_infra.model.target import Release
from dra_infra.validation import formats
from dra_infra.validation.configurations import check_driver_name
from dra_infra.validation.field_errors import FieldError, invalid, required, too_long

MAX_IDENTIFIER = 32
_ORIGIN = "format=k8s-resource-fully-qualified-name"
_RULE = "constraint.attribute"


def check_fully_qualified(name: str, path: str, release: Release, *, covered: bool) -> Iterator[FieldError]:
    """Check the attribute of a constraint by the hand-written rules."""
    if release.number < 35:
        yield from _check_old(name, path)
        return
    for error in _check_qualified(name, path):
        yield _marked(error, covered=covered)
    if "/" not in name:
        yield invalid(
            _RULE,
            path,
            name,
            "a fully qualified name must be a domain and a name separated by a slash",
            origin=_ORIGIN,
            covered=covered,
        )


def check_qualified(name: str, path: str, release: Release, *, rule: str) -> Iterator[FieldError]:
    """Check the name of an attribute or capacity of a device, which needs no domain."""
    check = _check_old_qualified if release.number < 35 else _check_qualified
    for error in check(name, path):
        yield replace(error, rule=rule)


def _check_qualified(name: str, path: str) -> Iterator[FieldError]:
    parts = name.split("/")
    if len(parts) == 1:
        yield from check_identifier(parts[0], path)
    elif len(parts) == 2:
        domain, identifier = parts
        if not domain:
            yield invalid(_RULE, path, "", "the domain must not be empty")
        else:
            yield from check_driver_name(domain, path, rule=_RULE)
        if not identifier:
            yield invalid(_RULE, path, "", "the name must not be empty")
        else:
            yield from check_identifier(identifier, path)
    # A name with more than one slash passes: the server does not look at it (its own comment calls it incomplete).


def _check_old(name: str, path: str) -> Iterator[FieldError]:
    """As up to 1.34."""
    yield from _check_old_qualified(name, path)
    if name and "/" not in name:
        yield invalid(_RULE, path, name, "must include a domain")


def _check_old_qualified(name: str, path: str) -> Iterator[FieldError]:
    """As up to 1.34, where empty parts are missing values and the texts are others."""
    if not name:
        yield required("constraint.attribute-required", path, "name required")
        return
    domain, slash, identifier = name.partition("/")
    if not slash:
        yield from check_identifier(name, path)
    elif "/" not in identifier:
        if domain:
            yield from check_driver_name(domain, path, rule=_RULE)
        else:
            yield required(_RULE, path, "the domain must not be empty")
        if identifier:
            yield from check_identifier(identifier, path)
        else:
            yield required(_RULE, path, "the name must not be empty")


def check_identifier(identifier: str, path: str, rule: str = _RULE) -> Iterator[FieldError]:
    """Check the part behind the domain."""
    if formats.size(identifier) > MAX_IDENTIFIER:
        yield too_long(rule, path, MAX_IDENTIFIER)
    for told in formats.c_identifier(identifier):
        yield invalid(rule, path, identifier, told)


def _marked(error: FieldError, *, covered: bool) -> FieldError:
    return replace(error, rule=_RULE, origin=_ORIGIN, covered=covered)
