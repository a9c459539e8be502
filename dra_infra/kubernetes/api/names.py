"""Content formats of names, as the API server checks them, with its texts.

Every function named for a format returns one text per thing that is wrong, and nothing for a name in that format.
Lengths are in bytes of UTF-8.

Upstream: k8s.io/apimachinery/pkg/api/validate/content and, before 1.37 for most of them,
k8s.io/apimachinery/pkg/util/validation.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from dra_infra.kubernetes.api.limits import MAX_DRIVER_NAME, MAX_IDENTIFIER

LABEL_LENGTH = 63
SUBDOMAIN_LENGTH = 253

_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = rf"{_LABEL}(\.{_LABEL})*"
_LABEL_1035: Final = "[a-z]([-a-z0-9]*[a-z0-9])?"
_KEY: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_IDENTIFIER: Final = "[A-Za-z_][A-Za-z0-9_]*"

_LABEL_PATTERN = re.compile(_LABEL)
_SUBDOMAIN_PATTERN = re.compile(_SUBDOMAIN)
_LABEL_1035_PATTERN = re.compile(_LABEL_1035)
# (?i) of Go also lets the long s and the Kelvin sign through, for they fold to s and k.
_CASELESS_PATTERN = re.compile(_SUBDOMAIN.replace("a-z", "a-zA-Z\u017f\u212a"))
_KEY_PATTERN = re.compile(_KEY)
_VALUE_PATTERN = re.compile(f"({_KEY})?")
_IDENTIFIER_PATTERN = re.compile(_IDENTIFIER)


def _regex(text: str, pattern: str, *examples: str) -> str:
    shown = "".join(f"{' or ' if index else ''}'{each}', " for index, each in enumerate(examples))
    return f"{text} (e.g. {shown}regex used for validation is '{pattern}')"


_LABEL_TEXT: Final = _regex(
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
    "and must start and end with an alphanumeric character",
    _LABEL,
    "my-name",
    "123-abc",
)
_SUBDOMAIN_TEXT: Final = _regex(
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
    "and must start and end with an alphanumeric character",
    _SUBDOMAIN,
    "example.com",
)
_LABEL_1035_TEXT: Final = _regex(
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character",
    _LABEL_1035,
    "my-name",
    "abc-123",
)
_CASELESS_TEXT: Final = _regex(
    "an RFC 1123 subdomain must consist of alphanumeric characters, '-' or '.', "
    "and must start and end with an alphanumeric character",
    _SUBDOMAIN,
    "Example.com",
)
_KEY_TEXT: Final = _regex(
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
    _KEY,
    "MyName",
    "my.name",
    "123-abc",
)
_VALUE_TEXT: Final = _regex(
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character",
    f"({_KEY})?",
    "MyValue",
    "my_value",
    "12345",
)
_IDENTIFIER_TEXT: Final = _regex(
    "a valid C identifier must start with alphabetic character or '_', "
    "followed by a string of alphanumeric characters or '_'",
    _IDENTIFIER,
    "my_name",
    "MY_NAME",
    "MyName",
)

_SEMVER_PATTERN = re.compile(
    r"(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)"
    r"(-(0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)(\.(0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*))*)?"
    r"(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?"
)

Texts = tuple[str, ...]


def size(text: str) -> int:
    """Bytes of *text* in UTF-8."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


@lru_cache(maxsize=4096)
def dns_label(text: str, unit: str = "characters") -> Texts:
    """Lower-case letters, digits and `-`, at most 63 bytes. *unit* is the word for the limit, which releases differ in."""
    told = "must not contain dots" if "." in text and _SUBDOMAIN_PATTERN.fullmatch(text) else _LABEL_TEXT
    return _wrong(text, LABEL_LENGTH, unit, _LABEL_PATTERN, told)


@lru_cache(maxsize=4096)
def dns_label_1035(text: str) -> Texts:
    """The same starting with a letter."""
    return _wrong(text, LABEL_LENGTH, "characters", _LABEL_1035_PATTERN, _LABEL_1035_TEXT)


@lru_cache(maxsize=4096)
def dns_subdomain(text: str, unit: str = "characters") -> Texts:
    """Labels joined by dots, at most 253 bytes."""
    return _wrong(text, SUBDOMAIN_LENGTH, unit, _SUBDOMAIN_PATTERN, _SUBDOMAIN_TEXT)


@lru_cache(maxsize=4096)
def dns_subdomain_caseless(text: str) -> Texts:
    """The same with letters of either case."""
    return _wrong(text, SUBDOMAIN_LENGTH, "bytes", _CASELESS_PATTERN, _CASELESS_TEXT)


def _wrong(text: str, limit: int, unit: str, pattern: re.Pattern[str], told: str) -> Texts:
    found = []
    if size(text) > limit:
        found.append(f"must be no more than {limit} {unit}")
    if not pattern.fullmatch(text):
        found.append(told)
    return tuple(found)


@lru_cache(maxsize=4096)
def label_key(text: str, *, noun: str = "a valid label key", unit: str = "bytes") -> Texts:
    """`name` or `prefix/name`; the name at most 63 bytes, the prefix a subdomain."""
    parts = text.split("/")
    if len(parts) > 2:
        return (
            f"{noun} {_KEY_TEXT} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
        )
    found: list[str] = []
    if len(parts) == 2:
        if not parts[0]:
            found.append("prefix part must be non-empty")
        found.extend(f"prefix part {told}" for told in (dns_subdomain(parts[0], unit) if parts[0] else ()))
    name = parts[-1]
    if not name:
        found.append("name part must be non-empty")
    elif size(name) > LABEL_LENGTH:
        found.append(f"name part must be no more than {LABEL_LENGTH} {unit}")
    if not _KEY_PATTERN.fullmatch(name):
        found.append(f"name part {_KEY_TEXT}")
    return tuple(found)


@lru_cache(maxsize=4096)
def label_value(text: str, unit: str = "bytes") -> Texts:
    """Empty, or at most 63 bytes of letters, digits and `-_.`."""
    return _wrong(text, LABEL_LENGTH, unit, _VALUE_PATTERN, _VALUE_TEXT)


def c_identifier(text: str) -> Texts:
    """A letter or `_`, then letters, digits and `_`. The length is a rule of its own."""
    return () if _IDENTIFIER_PATTERN.fullmatch(text) else (_IDENTIFIER_TEXT,)


def semver(text: str) -> Texts:
    """A version of semver.org 2.0.0. The length is a rule of its own."""
    is_one = _SEMVER_PATTERN.fullmatch(text)
    return () if is_one else ("must be a string compatible with semver.org spec 2.0.0",)


def is_dns_label(text: str) -> bool:
    """Checks that *text* is a DNS label."""
    return len(text) <= LABEL_LENGTH and not dns_label(text)


def is_dns_subdomain(text: str) -> bool:
    """Checks that *text* is a DNS subdomain; one of its labels may have more than 63 bytes, as upstream allows."""
    return len(text) <= SUBDOMAIN_LENGTH and not dns_subdomain(text)


def is_driver_name(text: str) -> bool:
    """A DNS subdomain of at most 63 bytes: the name of a DRA driver, in lower case, as all drivers have it."""
    return len(text) <= MAX_DRIVER_NAME and is_dns_subdomain(text)


def is_label_key(text: str) -> bool:
    """Checks that *text* may be the key of a label, annotation or taint."""
    return not label_key(text)


def is_label_value(text: str) -> bool:
    """Checks that *text* may be the value of a label or taint."""
    return not label_value(text)


def is_c_identifier(text: str) -> bool:
    """Checks that *text* may be an attribute's name behind the domain."""
    return len(text) <= MAX_IDENTIFIER and not c_identifier(text)


def is_extended_resource_name(name: str) -> bool:
    """Checks that a resource is neither Kubernetes' own nor malformed (IsExtendedResourceName of core/v1/helper)."""
    is_native = "/" not in name or "kubernetes.io/" in name
    return not is_native and not name.startswith("requests.") and is_label_key(f"requests.{name}")


def split_qualified_name(text: str) -> tuple[str, str] | None:
    """Split `domain/id` or `id` (empty domain); None when it is neither.

    Upstream: validateQualifiedName in pkg/apis/resource/validation/validation.go.
    """
    domain, slash, identifier = text.rpartition("/")
    if slash and not (
        domain and "/" not in domain and len(domain) <= MAX_DRIVER_NAME and is_dns_subdomain(domain.lower())
    ):
        return None
    return (domain, identifier) if is_c_identifier(identifier) else None
