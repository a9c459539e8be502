"""Keys of ResourceQuotas that count claims and devices (pkg/quota/v1/evaluator/core/resource_claims.go)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

_OBJECTS: Final = "count/"
_REQUESTS: Final = "requests."
_CLASS_SUFFIX: Final = ".deviceclass.resource.k8s.io/devices"
_IMPLICIT_PREFIX: Final = "requests.deviceclass.resource.kubernetes.io/"
_NATIVE: Final = "kubernetes.io/"


class QuotaSubject(StrEnum):
    """What a key limits."""

    OBJECTS = "objects"
    CLASS_DEVICES = "devices of a class"
    CLASS_EXTENDED_RESOURCE = "devices of a class by its implicit extended resource"
    EXTENDED_RESOURCE = "extended resource"
    OTHER = "something that no claim uses"


@dataclass(frozen=True, order=True, slots=True)
class QuotaKey:
    """One key of a quota's `spec.hard`.

    Args:
        subject: What it limits.
        name: Of what: `resourceclaims.resource.k8s.io`, the name of a class, or that of an extended resource.
        text: The key.
    """

    subject: QuotaSubject
    name: str
    text: str

    @classmethod
    def parse(cls, text: str) -> QuotaKey:
        """Read a key; one that has nothing to do with claims is `OTHER`, with itself as name."""
        if text.startswith(_OBJECTS):
            return cls(QuotaSubject.OBJECTS, text.removeprefix(_OBJECTS), text)
        if text.endswith(_CLASS_SUFFIX) and text != _CLASS_SUFFIX:
            return cls(QuotaSubject.CLASS_DEVICES, text.removesuffix(_CLASS_SUFFIX), text)
        if text.startswith(_IMPLICIT_PREFIX) and text != _IMPLICIT_PREFIX:
            return cls(QuotaSubject.CLASS_EXTENDED_RESOURCE, text.removeprefix(_IMPLICIT_PREFIX), text)
        name = text.removeprefix(_REQUESTS)
        # Resources without a domain, and those of kubernetes.io, are Kubernetes' own.
        if text.startswith(_REQUESTS) and "/" in name and _NATIVE not in name:
            return cls(QuotaSubject.EXTENDED_RESOURCE, name, text)
        return cls(QuotaSubject.OTHER, text, text)

    def __str__(self) -> str:
        return self.text


def class_key(name: str) -> QuotaKey:
    """The key that limits the devices that claims ask of class *name*."""
    return QuotaKey(QuotaSubject.CLASS_DEVICES, name, f"{name}{_CLASS_SUFFIX}")
