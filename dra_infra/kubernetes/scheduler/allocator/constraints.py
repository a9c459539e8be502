"""The matchAttribute and distinctAttribute constraints, while devices are picked and given back.

Source: matchAttributeConstraint and distinctAttributeConstraint. They had bugs, which are kept for the minors that
have them: see the classes. Values of attributes as constraints compare them are those of lookupAttribute,
lookupStaticAttribute and attributeAsSet.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TypeAlias

from dra_infra.kubernetes.api.resource_claim import DeviceConstraint, ResourceClaim
from dra_infra.kubernetes.api.resource_slice import DeviceAttribute
from dra_infra.kubernetes.scheduler.allocator.identity import Published, abort
from dra_infra.kubernetes.scheduler.allocator.requests import Wanted, claim_name
from dra_infra.kubernetes.scheduler.allocator.variants import Quirk, Variant

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


def scalar_value(attribute: DeviceAttribute) -> Scalar | None:
    """The one value of an attribute; None for a list, which comparisons of scalars do not know."""
    for kind in _SCALARS:
        value = getattr(attribute, kind)
        if value is not None:
            return kind, value
    return None


def attribute_values(attribute: DeviceAttribute) -> Values | None:
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
    """The values that both have; None when there is none, as it is for different types."""
    shared = one[1] & other[1] if one[0] == other[0] else frozenset()
    return (one[0], shared) if shared else None


def build_constraints(claim: ResourceClaim, lookup: Lookup, variant: Variant) -> list[Constraint]:
    """The constraints of a claim, in order.

    Raises:
        AllocationError: For one that the copy does not know; the stable one has no distinctAttribute.
    """
    built: list[Constraint] = []
    for number, constraint in enumerate(claim.spec.devices.constraints or ()):
        if constraint.match_attribute is not None:
            built.append(_Match(constraint, constraint.match_attribute, lookup, variant))
        elif constraint.distinct_attribute is not None and variant.is_extended:
            built.append(_Distinct(constraint, constraint.distinct_attribute, lookup, variant))
        else:
            raise abort(
                f"claim {claim_name(claim)}, constraint #{number}: empty constraint (unsupported constraint type?)"
            )
    return built


class Scope:
    """The requests that a constraint is about: those that it names, or all."""

    def __init__(self, constraint: DeviceConstraint) -> None:
        self._names = frozenset(constraint.requests or ())

    def covers(self, wanted: Wanted) -> bool:
        """Checks that devices of a request count."""
        if not self._names:
            return True
        return wanted.full_name in self._names or bool(wanted.parent and wanted.parent in self._names)


class Constraint(ABC):
    """A condition that all devices of some requests of a claim must fulfil."""

    def __init__(
        self, constraint: DeviceConstraint, attribute: str, lookup: Lookup, variant: Variant
    ) -> None:
        self._scope = Scope(constraint)
        self._attribute = attribute
        self._lookup = lookup
        self._is_listing = variant.features.list_attributes
        self._count = 0

    def add(self, wanted: Wanted, published: Published) -> bool:
        """Count a device if it may be picked beside those that are counted."""
        if not self._scope.covers(wanted):
            return True
        attribute = self._lookup(wanted, published, self._attribute)
        if attribute is None or not self._keep(attribute, wanted, published):
            return False
        self._count += 1
        return True

    def remove(self, wanted: Wanted) -> None:
        """Take back what `add` counted; the last one first."""
        if self._scope.covers(wanted):
            self._count -= 1
            self._forget(wanted)

    @abstractmethod
    def _keep(self, attribute: DeviceAttribute, wanted: Wanted, published: Published) -> bool:
        """Keep the attribute of one more device, if it may be beside those that are kept."""

    @abstractmethod
    def _forget(self, wanted: Wanted) -> None:
        """Forget the attribute of the device that was kept last."""


class _Match(Constraint):
    """All devices have the same value, or with list attributes a value in common.

    In 1.36 the values in common stay as narrow as they once were while devices are given back.
    """

    def __init__(
        self, constraint: DeviceConstraint, attribute: str, lookup: Lookup, variant: Variant
    ) -> None:
        super().__init__(constraint, attribute, lookup, variant)
        self._forgets = not variant.has(Quirk.LISTS_STAY_NARROW)
        self._first: DeviceAttribute | None = None
        self._common: list[Values] = []

    def _keep(self, attribute: DeviceAttribute, wanted: Wanted, published: Published) -> bool:  # noqa: ARG002
        return self._add_values(attribute) if self._is_listing else self._add_scalar(attribute)

    def _forget(self, wanted: Wanted) -> None:  # noqa: ARG002
        if self._is_listing and self._forgets:
            del self._common[self._count :]

    def _add_scalar(self, attribute: DeviceAttribute) -> bool:
        if self._count == 0:
            # The first may be of any type, even one that no other can be compared with.
            self._first = attribute
            return True
        value = scalar_value(attribute)
        return (
            value is not None
            and self._first is not None
            and getattr(self._first, value[0]) == value[1]
            and getattr(self._first, value[0]) is not None
        )

    def _add_values(self, attribute: DeviceAttribute) -> bool:
        values = attribute_values(attribute)
        if values is None:
            return False
        if self._count == 0:
            self._common = [values]
            return True
        narrowed = common(self._common[-1], values)
        if narrowed is None:
            return False
        if self._forgets:
            self._common.append(narrowed)
        else:
            self._common = [narrowed]
        return True


class _Distinct(Constraint):
    """No two devices have the same value, or with list attributes any value in common.

    Before 1.37 one value is kept per request, that of its last device, and giving back any device of the request
    forgets it. In 1.34 two devices never have the same value, for pointers are compared in place of values; only a
    device that is picked twice has.
    """

    def __init__(
        self, constraint: DeviceConstraint, attribute: str, lookup: Lookup, variant: Variant
    ) -> None:
        super().__init__(constraint, attribute, lookup, variant)
        self._keeps_all = not variant.has(Quirk.DISTINCT_FORGETS)
        self._compares_pointers = variant.has(Quirk.DISTINCT_BY_POINTER)
        self._kept: dict[object, tuple[DeviceAttribute, Published]] = {}

    def _keep(self, attribute: DeviceAttribute, wanted: Wanted, published: Published) -> bool:
        is_first = self._count == 0 and not self._keeps_all
        if not is_first and not self._is_new(attribute, published):
            return False
        self._kept[self._key(wanted)] = (attribute, published)
        return True

    def _forget(self, wanted: Wanted) -> None:
        self._kept.pop(self._key(wanted), None)

    def _key(self, wanted: Wanted) -> object:
        return self._count if self._keeps_all else wanted.parent or wanted.name

    def _is_new(self, attribute: DeviceAttribute, published: Published) -> bool:
        if self._is_listing:
            values = attribute_values(attribute)
            return values is not None and not any(
                (known := attribute_values(kept)) is not None and common(values, known) is not None
                for kept, _ in self._kept.values()
            )
        value = scalar_value(attribute)
        if value is None:
            # Such a value is only refused where there is one to compare it with.
            return not self._kept
        return not any(
            getattr(kept, value[0]) == value[1]
            and getattr(kept, value[0]) is not None
            and (owner is published or not self._compares_pointers)
            for kept, owner in self._kept.values()
        )
