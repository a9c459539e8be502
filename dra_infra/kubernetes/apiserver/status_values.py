"""Validation of values in the status of a claim: share ids, interface addresses, conditions."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Sequence

from dra_infra.kubernetes.api import names
from dra_infra.kubernetes.api.gates import Release
from dra_infra.kubernetes.api.metadata import Condition
from dra_infra.kubernetes.apiserver.field_errors import (
    FieldError,
    duplicate,
    invalid,
    label_wording,
    not_supported,
    quoted,
    required,
    too_long,
    too_many,
)

MAX_CONDITIONS = 8
MAX_REASON = 1024
MAX_MESSAGE = 32 * 1024

_STATUSES = ("False", "True", "Unknown")
_REASON = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"
_REASON_TEXT = (
    "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric characters "
    "or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName',  or "
    f"'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is '{_REASON}')"
)
_UUID = re.compile("[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}")
_UUID_ORIGIN = "format=k8s-uuid"
_NORMAL = "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase hexadecimal characters"
_OCTETS = re.compile(r"(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})", re.ASCII)


def check_share_id(text: str, path: str) -> Iterator[FieldError]:
    """The id of a share, by the hand-written rule (validateUID)."""
    wrong = _uuid_error(text)
    if wrong:
        told = f"error validating uid: {wrong}"
        yield invalid("status.share-id", path, text, told, origin=_UUID_ORIGIN, covered=True)
    elif names.size(text) != 36 or text != text.lower():
        yield invalid("status.share-id", path, text, _NORMAL, origin=_UUID_ORIGIN, covered=True)


def check_generated_share_id(text: str, path: str) -> Iterator[FieldError]:
    """The same by the generated rule."""
    if not _UUID.fullmatch(text) or text != text.lower():
        told = "must be a lowercase UUID in 8-4-4-4-12 format"
        yield invalid("status.share-id", path, text, told, origin=_UUID_ORIGIN)


def _uuid_error(text: str) -> str:
    length = names.size(text)
    if length == 45:
        if text[:9].lower() != "urn:uuid:":
            return f"invalid urn prefix: {quoted(text[:9])}"
        text = text[9:]
    elif length == 38:
        if text[0] != "{" or text[-1] != "}":
            return "invalid bracketed UUID format"
        text = text[1:-1]
    elif length == 32:
        return "" if re.fullmatch("[0-9a-fA-F]{32}", text) else "invalid UUID format"
    elif length != 36:
        return f"invalid UUID length: {length}"
    return "" if _UUID.fullmatch(text) else "invalid UUID format"


def check_address(text: str, path: str) -> Iterator[FieldError]:
    """An address with the length of its network's prefix (IsValidInterfaceAddress)."""
    canonical = _canonical_address(text)
    if not canonical:
        told = "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)"
        yield invalid("status.address", path, text, told)
    elif canonical != text:
        yield invalid("status.address", path, text, f"must be in canonical form ({quoted(canonical)})")


def _canonical_address(text: str) -> str:
    address, slash, length = text.partition("/")
    if not slash or not re.fullmatch("[0-9]+", length):
        return ""
    bits = int(length)
    found = _OCTETS.fullmatch(address)
    if found:
        octets = [int(each) for each in found.groups()]
        fits = max(octets) < 256 and bits <= 32
        return f"{'.'.join(map(str, octets))}/{bits}" if fits else ""
    try:
        parsed = ipaddress.IPv6Address(address)
    except ValueError:
        return ""
    if "%" in address or bits > 128:
        return ""
    mapped = parsed.ipv4_mapped
    if mapped is not None:
        return f"{mapped}/{bits - 96 if bits > 32 else bits}"
    return f"{parsed.compressed}/{bits}"


def check_conditions(
    conditions: Sequence[Condition] | None, path: str, release: Release
) -> Iterator[FieldError]:
    """At most 8 conditions of different types (metav1 ValidateConditions)."""
    given = conditions or ()
    if len(given) > MAX_CONDITIONS:
        yield too_many("condition.size", path, len(given), MAX_CONDITIONS)
    seen = set()
    for index, condition in enumerate(given):
        at = f"{path}[{index}]"
        if condition.type in seen:
            # Since 1.37 at the condition as a whole.
            yield duplicate(
                "condition.duplicate", at if release.number >= 37 else f"{at}.type", condition.type
            )
        seen.add(condition.type)
        yield from _check_condition(condition, at, release)


def _check_condition(condition: Condition, path: str, release: Release) -> Iterator[FieldError]:
    noun, unit = label_wording(release)
    # Up to 1.36 what is empty is as wrong as any other text.
    tells_empty = release.number >= 37
    if tells_empty and not condition.type:
        yield required("condition.required", f"{path}.type", "is required")
    else:
        for told in names.label_key(condition.type, noun=noun, unit=unit):
            yield invalid("condition.type", f"{path}.type", condition.type, told)
    if tells_empty and not condition.status:
        yield required("condition.required", f"{path}.status")
    elif condition.status not in _STATUSES:
        yield not_supported("condition.status", f"{path}.status", condition.status, _STATUSES)
    if condition.observed_generation < 0:
        told = "must be greater than or equal to zero"
        yield invalid(
            "condition.generation", f"{path}.observedGeneration", condition.observed_generation, told
        )
    if condition.last_transition_time is None:
        yield required("condition.required", f"{path}.lastTransitionTime")
    yield from _check_reason(condition, path)
    if names.size(condition.message) > MAX_MESSAGE:
        yield too_long("condition.length", f"{path}.message", MAX_MESSAGE)


def _check_reason(condition: Condition, path: str) -> Iterator[FieldError]:
    if not condition.reason:
        yield required("condition.required", f"{path}.reason")
    else:
        if not re.fullmatch(_REASON, condition.reason):
            yield invalid("condition.reason", f"{path}.reason", condition.reason, _REASON_TEXT)
        if names.size(condition.reason) > MAX_REASON:
            yield too_long("condition.length", f"{path}.reason", MAX_REASON)
