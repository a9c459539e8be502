"""Content formats of names, as the API server checks them (k8s.io/apimachinery/pkg/util/validation)."""

from __future__ import annotations

import re

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_C_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

LABEL_LENGTH = 63
SUBDOMAIN_LENGTH = 253
C_IDENTIFIER_LENGTH = 32


def is_dns_label(text: str) -> bool:
    """Lower-case letters, digits and `-`, at most 63 bytes, starting and ending with a letter or digit."""
    return len(text) <= LABEL_LENGTH and _LABEL.fullmatch(text) is not None


def is_dns_subdomain(text: str) -> bool:
    """Labels joined by dots, at most 253 bytes. A single label may be longer than 63 here, as upstream allows."""
    return len(text) <= SUBDOMAIN_LENGTH and all(_LABEL.fullmatch(part) for part in text.split("."))


def is_c_identifier(text: str) -> bool:
    """The part of an attribute name behind the domain; at most 32 bytes."""
    return len(text) <= C_IDENTIFIER_LENGTH and _C_IDENTIFIER.fullmatch(text) is not None


def split_qualified_name(text: str) -> tuple[str, str] | None:
    """Split `domain/id` or `id` (empty domain); None when it is neither.

    Upstream: validateQualifiedName in pkg/apis/resource/validation/validation.go.
    """
    domain, slash, identifier = text.rpartition("/")
    if slash and not (
        domain and "/" not in domain and len(domain) <= LABEL_LENGTH and is_dns_subdomain(domain.lower())
    ):
        return None
    return (domain, identifier) if is_c_identifier(identifier) else None
