"""The hand-written rules for attributes of devices (validateDeviceAttribute, validation.go)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dra_infra.model.device import Device, DeviceAttribute
from dra_infra.model.target import Release
from dra_infra.validation import formats
from dra_infra.validation.attribute_names import check_qualified
from dra_infra.validation.field_errors import FieldError, Printed, invalid, required, too_long
from dra_infra.validation.lists import keyed

MAX_TEXT = 64
"""Bytes of a text or version (DeviceAttributeMaxValueLength)."""

MAX_ENTRIES = 32
MAX_VALUES = 48

VALUES = {
    "int": "int_",
    "bool": "bool_",
    "string": "string",
    "version": "version",
    "ints": "ints",
    "bools": "bools",
    "strings": "strings",
    "versions": "versions",
}
"""JSON name of each kind of value to the field of the record, in the server's order."""

LISTS = ("ints", "bools", "strings", "versions")


def check_attributes(
    attributes: Mapping[str, DeviceAttribute] | None, path: str, release: Release
) -> Iterator[FieldError]:
    """Check names and values of attributes."""
    for name, attribute in (attributes or {}).items():
        at = f"{path}[{keyed(name)}]"
        yield from check_qualified(
            name, path if release.number >= 36 else at, release, rule="device.attribute-name"
        )
        yield from _check_attribute(attribute, at, release)


def check_number_of_entries(device: Device, path: str, release: Release) -> Iterator[FieldError]:
    """Check how many attributes, capacities and values a device has."""
    entries = len(device.attributes or ()) + len(device.capacity or ())
    if entries > MAX_ENTRIES:
        told = f"the total number of attributes and capacities must not exceed {MAX_ENTRIES}"
        yield invalid("device.entries", path, entries, told)
    values = sum(_values(attribute) for attribute in (device.attributes or {}).values())
    if release.number >= 36 and values > MAX_VALUES:
        told = f"the total number of attribute values must not exceed {MAX_VALUES}"
        yield invalid("device.values", path, values, told)


def _values(attribute: DeviceAttribute) -> int:
    return sum(len(getattr(attribute, name) or ()) for name in LISTS) or 1


def given(attribute: DeviceAttribute) -> tuple[str, ...]:
    """JSON names of the kinds of value that are there, empty lists among them."""
    return tuple(name for name, field in VALUES.items() if getattr(attribute, field) is not None)


def _check_attribute(attribute: DeviceAttribute, path: str, release: Release) -> Iterator[FieldError]:
    if attribute.string is not None:
        yield from _check_length(attribute.string, f"{path}.string")
    if attribute.version is not None:
        yield from _check_version(attribute.version, f"{path}.version")
    for name in LISTS:
        if getattr(attribute, name) == []:
            yield invalid("attribute.list-empty", f"{path}.{name}", [], "must not be empty if specified")
    for index, text in enumerate(attribute.strings or ()):
        yield from _check_length(text, f"{path}.strings[{index}]")
    for index, text in enumerate(attribute.versions or ()):
        yield from _check_version(text, f"{path}.versions[{index}]")
    told = "exactly one value must be specified"
    number = len(given(attribute))
    if number == 0 and release.number < 35:
        yield required("attribute.one-of-none", path, told)
    elif number == 0:
        yield invalid("attribute.one-of-none", path, "", told, origin="union", covered=True)
    elif number > 1:
        shown = Printed(attribute.to_internal_json(release.number))
        yield invalid("attribute.one-of-many", path, shown, told, origin="union", covered=True)


def _check_length(text: str, path: str) -> Iterator[FieldError]:
    if formats.size(text) > MAX_TEXT:
        yield too_long("attribute.length", path, MAX_TEXT)


def _check_version(text: str, path: str) -> Iterator[FieldError]:
    for told in formats.semver(text):
        yield invalid("attribute.version", path, text, told)
    yield from _check_length(text, path)
