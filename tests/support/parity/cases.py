"""What is asked of both sides, and what a server answers: records that go into JSON lines and back."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Json = Any
Object = dict[str, Any]

PLAIN, ADMIN, MISLABELLED = "plain", "admin", "mislabelled"
NAMESPACES: Mapping[str, Mapping[str, str]] = {
    PLAIN: {},
    ADMIN: {"resource.kubernetes.io/admin-access": "true"},
    MISLABELLED: {"resource.kubernetes.io/admin-access": "True"},
}
"""Labels of the namespaces that every server of the harness has."""

RESOURCES: Mapping[str, tuple[str, bool]] = {
    "DeviceClass": ("deviceclasses", False),
    "ResourceClaim": ("resourceclaims", True),
    "ResourceClaimTemplate": ("resourceclaimtemplates", True),
    "ResourceSlice": ("resourceslices", False),
    "DeviceTaintRule": ("devicetaintrules", False),
    "Pod": ("pods", True),
    "Deployment": ("deployments", True),
    "StatefulSet": ("statefulsets", True),
    "DaemonSet": ("daemonsets", True),
    "ReplicaSet": ("replicasets", True),
    "Job": ("jobs", True),
    "CronJob": ("cronjobs", True),
}
"""Plural and whether it lives in namespaces, by kind."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """One object to be created, or to replace the stored *old* one.

    Args:
        id: What the case is, or how it was generated: ``<kind>/<seed>/<index>``.
        object: The manifest.
        namespace: Namespace of the request, one of `NAMESPACES`; the manifest need not name it.
        old: For updates: the object as the server has stored it.
    """

    id: str
    object: Object
    namespace: str = PLAIN
    old: Object | None = None

    @property
    def kind(self) -> str:
        """Kind of the object, as the request's address names it."""
        return str(self.object["kind"])

    @property
    def namespace_labels(self) -> Mapping[str, str] | None:
        """Labels of the namespace of the request; None for objects that live in none."""
        return NAMESPACES[self.namespace] if RESOURCES[self.kind][1] else None


NO_ANSWER = 0
"""Stands for the HTTP status of a request over which the server failed."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What the server says to one request.

    Args:
        code: HTTP status.
        reason: `Invalid`, `BadRequest`...; empty when accepted.
        message: The status' message; empty when accepted.
        causes: `reason`, `message` and `field` of each cause.
        warnings: Texts of the Warning headers.
        stored: The object as it would be stored; None unless accepted.
    """

    code: int
    reason: str = ""
    message: str = ""
    causes: tuple[Mapping[str, str], ...] = ()
    warnings: tuple[str, ...] = ()
    stored: Object | None = field(default=None, repr=False)

    @property
    def is_accepted(self) -> bool:
        """Whether the server would store the object."""
        return NO_ANSWER < self.code < 400


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """A case with the answers of one server: under strict field validation, and under that which only warns."""

    case: Case
    minor: str
    gates: str
    strict: Answer
    warn: Answer

    def to_line(self) -> str:
        """One line of JSON."""
        return json.dumps(dataclasses.asdict(self), ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def from_line(cls, line: str) -> Recorded:
        """The inverse of `to_line`."""
        read = json.loads(line)
        return cls(
            case=Case(**read["case"]),
            minor=read["minor"],
            gates=read["gates"],
            strict=_answer(read["strict"]),
            warn=_answer(read["warn"]),
        )


def read_recorded(path: Path) -> Iterator[Recorded]:
    """The records of a file of JSON lines."""
    with path.open(encoding="utf-8") as lines:
        yield from map(Recorded.from_line, lines)


def _answer(read: Object) -> Answer:
    return Answer(**{**read, "causes": tuple(read["causes"]), "warnings": tuple(read["warnings"])})
