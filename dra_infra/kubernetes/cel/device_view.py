"""One device as selectors see it: DeviceMatches and getAttributeValue in the `cel` package of DRA."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final

from dra_infra.kubernetes.api.equality import is_same_json
from dra_infra.kubernetes.api.semver import Semver
from dra_infra.kubernetes.cel.interpreter.cheapness import MAX_SIZE
from dra_infra.kubernetes.cel.interpreter.maps import DomainMap, NativeMap
from dra_infra.kubernetes.cel.interpreter.numbers import read_amount
from dra_infra.kubernetes.cel.interpreter.values import INT64, QuantityValue, Value

if TYPE_CHECKING:
    # Selectors are written where no record is, and pydantic takes longer to load than all of this package.
    from dra_infra.kubernetes.api.resource_slice import DeviceAttribute, DeviceCapacity
    from dra_infra.kubernetes.cel.dependencies import Dependencies


class DeviceView:
    """One device as selectors see it, ready to be evaluated on many times.

    Args:
        driver: Name of the driver; attribute and capacity names without a domain belong to it.
        attributes: By qualified name.
        capacity: By qualified name.
        allow_multiple_allocations: Whether several claims may share the device.
        reads_lists: Whether the server reads attributes that are lists; to one that does not they have no value.

    Attributes:
        variables: What an expression reads by name. Where the device has two values under one name, it is one of them.
        ambiguity: The first name with two values, in a sentence; empty where there is none.
        failure: Why no expression can be evaluated on the device; empty when it can.
        is_decided: Whether the server would say the same.
        is_small: Whether no list, map or text is larger than the API allows.
    """

    __slots__ = (
        "_doubled",
        "_driver",
        "_groups",
        "ambiguity",
        "failure",
        "is_decided",
        "is_small",
        "variables",
    )

    def __init__(
        self,
        driver: str,
        attributes: Mapping[str, DeviceAttribute] | None = None,
        capacity: Mapping[str, DeviceCapacity] | None = None,
        allow_multiple_allocations: bool = False,  # noqa: FBT001, FBT002  (the field's name and order in the API)
        *,
        reads_lists: bool = True,
    ) -> None:
        self.failure = ""
        self.is_decided = True
        self.is_small = max(len(attributes or ()), len(capacity or ()), len(driver)) <= MAX_SIZE
        self.ambiguity = ""
        self._driver = driver
        self._doubled: dict[_Name, Value] = {}
        convert = _attribute_value if reads_lists else _scalar_value
        self._groups: Mapping[str, _Group] = {
            "attributes": self._group("attributes", attributes or {}, convert),
            "capacity": self._group("capacity", capacity or {}, _capacity_value),
        }
        self._expect_readable("the driver name", driver)
        fields: dict[str, Value] = {
            "driver": driver,
            "allowMultipleAllocations": allow_multiple_allocations,
            **{name: _domain_map(group) for name, group in self._groups.items()},
        }
        self.variables = _name_variables(fields)

    def list_ways(self, reads: Dependencies) -> Sequence[Mapping[str, Value]] | None:
        """List the variables for every choice between two values that upstream may make; None for too many.

        Args:
            reads: What an expression reads, as `find_dependencies` returns it; None for everything.
        """
        names = [name for name in self._doubled if reads is None or name in reads]
        if len(names) > _MOST_DOUBLED:
            return None
        chosen = (each for number in range(len(names) + 1) for each in combinations(names, number))
        return [self._choose(each) for each in chosen]

    def _choose(self, names: Sequence[_Name]) -> Mapping[str, Value]:
        """Return the variables with the other value of some names."""
        groups = {name: dict(group) for name, group in self._groups.items()}
        for source, domain, identifier in names:
            values = groups[source][domain]
            groups[source][domain] = {**values, identifier: self._doubled[source, domain, identifier]}
        fields = {name: self.variables[f"device.{name}"] for name in ("driver", "allowMultipleAllocations")}
        return _name_variables({**fields, **{name: _domain_map(group) for name, group in groups.items()}})

    def _group(self, source: str, named: Mapping[str, Any], convert: Callable[[Any], Value]) -> _Group:
        domains: dict[str, dict[str, Value]] = {}
        for name in sorted(named):
            domain, slash, identifier = name.partition("/")
            if not slash:
                domain = self._driver
                identifier = name
            try:
                value = convert(named[name])
            except _ConversionError as error:
                self._fail(f"{error.subject} {name}: {error}", decided=error.decided)
                continue
            items = value if isinstance(value, list) else (value,)
            for item in items:
                self._expect_readable(f"attribute {name}", item)
            if len(items) > MAX_SIZE or len(name) > MAX_SIZE:
                self.is_small = False
            group = domains.setdefault(domain, {})
            if identifier in group and not _is_same(group[identifier], value):
                # Upstream goes over a Go map here, and the later spelling wins.
                text = f"{domain}/{identifier} is given twice, and which value counts is random upstream"
                self.ambiguity = self.ambiguity or text
                self._doubled[source, domain, identifier] = group[identifier]
            group[identifier] = value
        return domains

    def _expect_readable(self, subject: str, value: Value) -> None:
        if isinstance(value, str):
            if len(value) > MAX_SIZE:
                self.is_small = False
            if any("\ud800" <= character <= "\udfff" for character in value):
                self._fail(f"{subject} holds half of a character pair", decided=False)
        elif isinstance(value, int) and value not in INT64:
            self._fail(f"{subject}: {value} is beyond 64 bits", decided=False)

    def _fail(self, text: str, *, decided: bool) -> None:
        if not self.failure:
            self.failure = text
            self.is_decided = decided


_Group = Mapping[str, Mapping[str, Value]]
"""Values by domain and identifier."""
_Name = tuple[str, str, str]
"""`attributes` or `capacity`, domain and identifier."""
_MOST_DOUBLED: Final = 6
"""Names with two values that an expression may read: all combinations of their values are evaluated."""


def _domain_map(group: _Group) -> DomainMap:
    return DomainMap.of((domain, NativeMap.of(values.items())) for domain, values in group.items())


def _name_variables(fields: Mapping[str, Value]) -> Mapping[str, Value]:
    return {
        "device": NativeMap.of(fields.items()),
        **{f"device.{name}": value for name, value in fields.items()},
    }


class _ConversionError(Exception):
    def __init__(self, subject: str, text: str, *, decided: bool) -> None:
        super().__init__(text)
        self.subject = subject
        self.decided = decided


def _attribute_value(attribute: DeviceAttribute) -> Value:
    """The one value that is set, in the order in which upstream looks (getAttributeValue in cel/compile.go)."""
    for values in (attribute.ints, attribute.bools, attribute.strings):
        if values is not None:
            return list(values)
    if attribute.versions is not None:
        return [_version(item) for item in attribute.versions]
    return _scalar_value(attribute)


def _scalar_value(attribute: DeviceAttribute) -> Value:
    for value in (attribute.int_, attribute.bool_, attribute.string):
        if value is not None:
            return value
    if attribute.version is not None:
        return _version(attribute.version)
    raise _ConversionError("attribute", "unsupported attribute value", decided=True)


def _version(text: str) -> Semver:
    try:
        return Semver.parse(text)
    except ValueError as error:
        raise _ConversionError("attribute", f"parse semantic version: {error}", decided=True) from error


def _capacity_value(capacity: DeviceCapacity) -> QuantityValue:
    try:
        return QuantityValue(read_amount(capacity.value))
    except ValueError as error:
        raise _ConversionError("capacity", str(error), decided=False) from error


def _is_same(one: Value, other: Value) -> bool:
    if isinstance(one, QuantityValue):
        return one.amount.compare(other.amount) == 0
    return is_same_json(one, other)
