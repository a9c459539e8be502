"""The claim parts of pods, found in every kind that carries a pod template."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from dra_infra.model.metadata import ObjectRef
from dra_infra.model.pod_claims import (
    ContainerClaims,
    ContainerResourceClaim,
    DecodedPods,
    PodClaims,
    PodResourceClaim,
    decode_pod_claims,
)
from dra_infra.model.pod_template_paths import PodTemplatePaths, find_holders

__all__ = [
    "ContainerClaim",
    "ContainerClaims",
    "ContainerResourceClaim",
    "DecodedPods",
    "PodClaimEntry",
    "PodClaims",
    "PodResourceClaim",
    "PodTemplate",
    "PodTemplatePaths",
    "decode_pod_claims",
    "find_pod_templates",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class PodClaimEntry:
    """One entry of `spec.resourceClaims`: a claim by name, or a template from which each pod gets its own."""

    name: str
    claim_name: str | None = None
    template_name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerClaim:
    """One entry of a container's `resources.claims`; no request means all devices of the claim."""

    container: str
    name: str
    request: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PodTemplate:
    """The pods that one object makes.

    Args:
        owner: The object that holds the template.
        path: Field path of the pod spec inside the owner, such as `spec.template.spec`.
        replicas: How many such pods run at once as written: replicas, a Job's parallelism, 1 for a pod. None for a
            DaemonSet, whose number is the number of nodes.
        spec: The pod spec as plain data.
        labels: The labels of the pods.
    """

    owner: ObjectRef
    path: str
    replicas: int | None
    spec: Mapping[str, Any] = field(hash=False)
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def claims(self) -> tuple[PodClaimEntry, ...]:
        """The entries of `spec.resourceClaims` that are objects with a name."""
        return tuple(
            PodClaimEntry(
                name=str(entry["name"]),
                claim_name=entry.get("resourceClaimName"),
                template_name=entry.get("resourceClaimTemplateName"),
            )
            for entry in _objects(self.spec.get("resourceClaims"))
            if "name" in entry
        )

    @property
    def container_claims(self) -> tuple[ContainerClaim, ...]:
        """Every claim that a container or init container uses, in the order written."""
        return tuple(
            ContainerClaim(
                container=str(container.get("name", "")),
                name=str(entry["name"]),
                request=entry.get("request"),
            )
            for container in (
                *_objects(self.spec.get("initContainers")),
                *_objects(self.spec.get("containers")),
            )
            for entry in _objects(_mapping(container.get("resources")).get("claims"))
            if "name" in entry
        )


def find_pod_templates(
    manifest: Mapping[str, Any], custom: PodTemplatePaths | None = None
) -> Iterator[PodTemplate]:
    """The pod templates of *manifest*, if its kind carries any.

    Args:
        manifest: Any object.
        custom: Paths to the pod templates of custom resources.
    """
    metadata = _mapping(manifest.get("metadata"))
    kind = str(manifest.get("kind", ""))
    for path, holder in find_holders(manifest, custom):
        # Any part may be the marker of an unknown or secret value instead of a mapping.
        if not isinstance(holder.get("spec"), Mapping):
            continue
        labels = _mapping(_mapping(holder.get("metadata")).get("labels"))
        yield PodTemplate(
            owner=ObjectRef(
                kind=kind,
                name=str(metadata.get("name") or ""),
                namespace=str(metadata.get("namespace") or ""),
            ),
            path=f"{path}.spec" if path else "spec",
            replicas=_replicas(kind, manifest),
            spec=holder["spec"],
            labels={str(name): str(value) for name, value in labels.items()},
        )


def _replicas(kind: str, manifest: Mapping[str, Any]) -> int | None:
    spec = _mapping(manifest.get("spec"))
    if kind == "DaemonSet":
        return None
    if kind in ("Deployment", "ReplicaSet", "StatefulSet", "ReplicationController"):
        value = spec.get("replicas", 1)
    elif kind == "Job":
        value = spec.get("parallelism", 1)
    elif kind == "CronJob":
        value = _mapping(_mapping(spec.get("jobTemplate")).get("spec")).get("parallelism", 1)
    else:
        value = 1
    return int(value) if isinstance(value, (int, float)) else 1


def _objects(value: Any) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
