"""What a run of a user's program gave: the objects by URN, in plain data.

These records are the joint between the engine, which makes them, and validation, simulation and planning, which
read them. They hold no Pulumi type.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from dra_infra.errors import Place, Problem
from dra_infra.model.markers import SECRET, UNKNOWN
from dra_infra.model.metadata import ObjectRef
from dra_infra.model.target import ClusterTarget, Release

__all__ = ["SECRET", "UNKNOWN", "NotSeen", "Program", "ProgramObject", "ProgramRelease", "Replacement"]

Replacement = Literal["provider", "delete-first", "in-place"]
"""How a change of an object that cannot change in place goes: as the provider decides, the old one deleted first, or not
at all, for kubectl and Helm change objects in place or are refused."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ProgramObject:
    """One Kubernetes object that a program asks for.

    Args:
        urn: Pulumi's identity of the resource, equal to the real engine's.
        manifest: Plain JSON data; `UNKNOWN` and `SECRET` stand for values that are not to be had.
        component: The dra-infra component it comes from, `GpuClaimTemplate("trainer")`; empty for the user's own.
        replacement: What the program asked the engine to do on a change that needs a new object.
        place: Where the user wrote it.
        target: The cluster that its component compiles for, where that is another than the stack's.
        chart: Where Helm makes it, the chart; Helm changes objects in place.
    """

    urn: str
    manifest: Mapping[str, Any]
    component: str = ""
    replacement: Replacement = "provider"
    place: Place | None = None
    target: ClusterTarget | None = None
    chart: str = ""

    @property
    def ref(self) -> ObjectRef:
        """Kind, namespace and name of the object."""
        metadata = self.manifest.get("metadata")
        metadata = metadata if isinstance(metadata, Mapping) else {}
        return ObjectRef(
            kind=str(self.manifest.get("kind", "")),
            name=str(metadata.get("name") or UNKNOWN),
            namespace=str(metadata.get("namespace") or ""),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class ProgramRelease:
    """A Helm release that a program asks for; its objects come from its chart.

    Args:
        urn: Pulumi's identity of the resource.
        name: Of the release.
        namespace: Where it goes.
        chart: A name, an address, or a path from the folder of the program.
        repository: Where a name is looked up; empty for an address or a path.
        version: Of the chart; empty for the newest, or what lies at a path.
        values: Plain JSON data as the chart gets it, nulls too; `UNKNOWN` and `SECRET` as in manifests.
        has_crds: Whether Helm installs the CRDs of the chart.
        component: The dra-infra component it comes from; empty for the user's own.
        place: Where the user wrote it.
        target: The cluster that its component compiles for, where that is another than the stack's.
    """

    urn: str
    name: str
    namespace: str
    chart: str
    repository: str = ""
    version: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)
    has_crds: bool = True
    component: str = ""
    place: Place | None = None
    target: ClusterTarget | None = None


@dataclass(frozen=True, order=True, kw_only=True, slots=True)
class NotSeen:
    """Something in the program whose result is not known offline, and therefore not in the answer."""

    what: str
    name: str
    reason: str

    def __str__(self) -> str:
        return f"{self.what} {self.name}: {self.reason}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Program:
    """All that a run gave; `objects` are sorted by namespace, kind and name."""

    project: str
    stack: str
    objects: tuple[ProgramObject, ...] = ()
    not_seen: tuple[NotSeen, ...] = ()
    problems: tuple[Problem, ...] = ()
    kubernetes: str | None = None
    """The Kubernetes minor that the stack is for (`dra-infra:kubernetes`), when it says."""
    driver: str = "newest"
    """The release of the drivers that the stack is for (`dra-infra:driver`)."""
    releases: tuple[ProgramRelease, ...] = ()
    """Helm releases, sorted by URN; their objects are not among `objects`."""
    resources: tuple[str, ...] = ()
    """URNs of every registered resource, components included, sorted."""
    pins: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Releases of packages that the project's lock and requirement files pin, by name, as far as they decide bytes."""

    @property
    def release(self) -> Release:
        """Whose server and scheduler the stack is for: its minor, or the newest."""
        return ClusterTarget(kubernetes=self.kubernetes).releases[-1]
