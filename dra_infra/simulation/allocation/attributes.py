"""Values of attributes as constraints compare them.

Source: lookupAttribute, lookupStaticAttribute and attributeAsSet.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from dra_infra.model.device import DeviceAttribute
from dra_infra.simulation.allocation.identity import Published
from dra_infra.simulation.allocation.requests import Wanted

Lookup: TypeAlias = Callable[[Wanted, Published, str], DeviceAttribute | None]
"""The attribute of a device by its fully qualified name; a request may bring derived ones."""

Scalar: TypeAlias = tuple[str, object]
"""Type and value."""

Values: TypeAlias = tuple[str, frozenset[object]]
"""Type and values, never none."""

_SCALARS = ("string", "int_", "bool_", "version")
_LISTS = ("ints", "bools", "strings", "versions")
_SCALARS_OF_SETS = ("int_", "bool_", "string", "version")
_SINGLE = {"ints": "int_", "bools": "bool_", "strings": "string", "versions": "version"}


def static_attribute(published: Published, name: str) -> DeviceAttribute | None:
    """The attribute that is spelled so, or without its domain when that is the driver's."""
    attributes = published.device.attributes or {}
    found = attributes.get(name)
    if found is not None:
        return found
    domain, slash, identifier = name.partition("/")
    return attributes.get(identifier) if slash and domain == published.id.driver else None


def scalar(attribute: DeviceAttribute) -> Scalar | None:
    """The one value of an attribute; None for a list, which comparisons of scalars do not know."""
    for kind in _SCALARS:
        value = getattr(attribute, kind)
        if value is not None:
            return kind, value
    return None


def values(attribute: DeviceAttribute) -> Values | None:
    """All values of an attribute; a scalar is a list of one."""
    for kind in _LISTS:
        several = getattr(attribute, kind)
        if several:
            return _SINGLE[kind], frozenset(several)
    for kind in _SCALARS_OF_SETS:
        value = getattr(attribute, kind)
        if value is not None:
            return kind, frozenset((value,))
    return None


def common(one: Values, other: Values) -> Values | None:
    """What both have; None when that is nothing, as it is for different types."""
    shared = one[1] & other[1] if one[0] == other[0] else frozenset()
    return (one[0], shared) if shared else None
