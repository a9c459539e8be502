"""One device as selectors see it: for the engine, and for the interpreter."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from dra_infra.cel.declare import run_environment
from dra_infra.cel.lowering import DOMAIN_MAPS
from dra_infra.cel.values import encode_quantity, encode_semver
from dra_infra.model.quantity import Quantity
from dra_infra.model.semver import Semver

if TYPE_CHECKING:
    # Selectors are written where no record is, and pydantic takes longer to load than all of this package.
    from dra_infra.model.resource_slice import DeviceAttribute, DeviceCapacity

_INT64: Final = range(-(2**63), 2**63)


class DeviceView:
    """One device as selectors see it, ready to be evaluated on many times.

    Args:
        driver: Name of the driver; attribute and capacity names without a domain belong to it.
        attributes: By qualified name.
        capacity: By qualified name.
        allow_multiple_allocations: Whether several claims may share the device.
    """

    __slots__ = (
        "_activation",
        "_attributes",
        "_bound",
        "_capacity",
        "_data",
        "_driver",
        "_shared",
        "_variables",
        "failure",
        "is_decided",
        "is_plain",
    )

    def __init__(
        self,
        driver: str,
        attributes: Mapping[str, DeviceAttribute] | None = None,
        capacity: Mapping[str, DeviceCapacity] | None = None,
        allow_multiple_allocations: bool = False,  # noqa: FBT001, FBT002  (the field's name and order in the API)
    ) -> None:
        self.failure = ""
        self.is_decided = True
        self.is_plain = True
        self._driver = driver
        self._attributes = attributes or {}
        self._capacity = capacity or {}
        self._shared = allow_multiple_allocations
        self._variables: dict[str, Any] | None = None
        self._data: dict[str, Any] = {
            "device.driver": driver,
            "device.allowMultipleAllocations": allow_multiple_allocations,
            "device.attributes": self._group(self._attributes, _attribute_value),
            "device.capacity": self._group(self._capacity, _capacity_value),
        }
        self._expect_readable("the driver name", driver)
        for name, prefix in DOMAIN_MAPS.items():
            for domain, values in self._data[name].items():
                self._data[prefix + domain] = values
        self._bound = frozenset(self._data)
        self._activation: Any = None

    def activation(self, variables: frozenset[str]) -> Any:
        """The engine's view of the device, in which at least *variables* are bound."""
        if not variables <= self._bound:
            for variable in variables - self._bound:
                self._data[variable] = {}
            self._bound |= variables
            self._activation = None
        if self._activation is None:
            self._activation = run_environment().Activation(self._data)
        return self._activation

    def variables(self) -> Mapping[str, Any]:
        """The interpreter's view of the device."""
        if self._variables is None:
            from dra_infra.cel.interpreter.device import read_device

            self._variables = read_device(self._driver, self._attributes, self._capacity, self._shared)
        return self._variables

    def _group(self, named: Mapping[str, Any], convert: Callable[[Any], Any]) -> dict[str, dict[str, Any]]:
        domains: dict[str, dict[str, Any]] = {}
        for name in sorted(named):
            domain, slash, identifier = name.partition("/")
            if not slash:
                domain, identifier = self._driver, name
            try:
                value = convert(named[name])
            except _ConversionError as error:
                self._fail(f"{error.subject} {name}: {error}", decided=error.decided)
                continue
            for item in value if isinstance(value, list) else (value,):
                self._expect_readable(f"attribute {name}", item)
            group = domains.setdefault(domain, {})
            if identifier in group and group[identifier] != value:
                # Upstream goes over a Go map here, and the later spelling wins.
                text = f"{domain}/{identifier} is given twice, and which value counts is random upstream"
                self._fail(text, decided=False)
            group[identifier] = value
        return domains

    def _expect_readable(self, subject: str, value: Any) -> None:
        if isinstance(value, str):
            if "\0" in value:
                self.is_plain = False  # The engine stops there.
            if any("\ud800" <= character <= "\udfff" for character in value):
                self._fail(f"{subject} holds half of a character pair", decided=False)
        elif isinstance(value, int) and value not in _INT64:
            self._fail(f"{subject}: {value} is beyond 64 bits", decided=False)

    def _fail(self, text: str, *, decided: bool) -> None:
        self.is_plain = False
        if not self.failure:
            self.failure, self.is_decided = text, decided


class _ConversionError(Exception):
    def __init__(self, subject: str, text: str, *, decided: bool) -> None:
        super().__init__(text)
        self.subject = subject
        self.decided = decided


def _attribute_value(attribute: DeviceAttribute) -> Any:
    """The one value that is set, in the order in which upstream looks (getAttributeValue in cel/compile.go)."""
    for values in (attribute.ints, attribute.bools, attribute.strings):
        if values is not None:
            return values
    if attribute.versions is not None:
        return [_version(item) for item in attribute.versions]
    for value in (attribute.int_, attribute.bool_, attribute.string):
        if value is not None:
            return value
    if attribute.version is not None:
        return _version(attribute.version)
    raise _ConversionError("attribute", "unsupported attribute value", decided=True)


def _version(text: str) -> bytes:
    try:
        return encode_semver(Semver.parse(text))
    except ValueError as error:
        raise _ConversionError("attribute", f"parse semantic version: {error}", decided=True) from error


def _capacity_value(capacity: DeviceCapacity) -> Any:
    try:
        return encode_quantity(Quantity.parse(capacity.value))
    except ValueError as error:
        raise _ConversionError("capacity", str(error), decided=False) from error
