"""Claim parts of pod specs, found in every kind that carries a pod template.

They are decoded as the API server decodes them (k8s.io/api/core/v1). Pod templates are found in the kinds of
Kubernetes, and at paths that a user names for custom resources.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic import Field

from dra_infra.kubernetes.api.decoding import JsonReader
from dra_infra.kubernetes.api.gates import NEWEST
from dra_infra.kubernetes.api.manifests import mapping, mappings
from dra_infra.kubernetes.api.metadata import ObjectRef
from dra_infra.kubernetes.api.record import CoreRecord, Text

PodTemplatePaths = Mapping[tuple[str, str], tuple[str, ...]]
"""(apiVersion, kind) to the steps down to what has a pod's `metadata` and `spec`.

The step `*` stands for every item of a list or every value of a map: `("spec", "tasks", "*", "template")`.
"""

BUILT_IN: Final[PodTemplatePaths] = {
    ("v1", "Pod"): (),
    ("v1", "PodTemplate"): ("template",),
    ("v1", "ReplicationController"): ("spec", "template"),
    ("apps/v1", "Deployment"): ("spec", "template"),
    ("apps/v1", "ReplicaSet"): ("spec", "template"),
    ("apps/v1", "StatefulSet"): ("spec", "template"),
    ("apps/v1", "DaemonSet"): ("spec", "template"),
    ("batch/v1", "Job"): ("spec", "template"),
    ("batch/v1", "CronJob"): ("spec", "jobTemplate", "spec", "template"),
}


def find_holders(
    manifest: Mapping[str, Any], custom: PodTemplatePaths | None = None
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The pod templates of *manifest* with their paths; a pod's own path is empty.

    Args:
        manifest: Any object.
        custom: Paths of kinds that Kubernetes does not have itself.
    """
    kind = (str(manifest.get("apiVersion", "")), str(manifest.get("kind", "")))
    steps = BUILT_IN.get(kind)
    if steps is None:
        steps = (custom or {}).get(kind)
    if steps == ():
        yield "", manifest
    elif steps is not None:
        yield from _descend(manifest, steps, "")


def _descend(value: Any, steps: tuple[str, ...], path: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if not steps:
        if isinstance(value, Mapping):
            yield path, value
        return
    step, *rest = steps
    if step == "*" and isinstance(value, list):
        for index, item in enumerate(value):
            yield from _descend(item, tuple(rest), f"{path}[{index}]")
    elif isinstance(value, Mapping):
        for name in sorted(map(str, value)) if step == "*" else [step]:
            yield from _descend(value.get(name), tuple(rest), f"{path}.{name}" if path else name)


class PodResourceClaim(CoreRecord):
    """An entry of `resourceClaims`: a claim, or a template from which each pod gets one."""

    WRITTEN_EMPTY = ("name",)

    name: Text = ""
    resource_claim_name: Text | None = None
    resource_claim_template_name: Text | None = None


class ContainerResourceClaim(CoreRecord):
    """An entry of a container's `resources.claims`; an empty request means all devices of the claim."""

    GO_NAME = "ResourceClaim"
    WRITTEN_EMPTY = ("name",)

    name: Text = ""
    request: Text = ""


class _ResourceRequirements(CoreRecord):
    GO_NAME = "ResourceRequirements"

    claims: list[ContainerResourceClaim] | None = None


class _Container(CoreRecord):
    GO_NAME = "Container"

    resources: _ResourceRequirements = Field(default=_ResourceRequirements.empty())


class _PodSpec(CoreRecord):
    GO_NAME = "PodSpec"

    resource_claims: list[PodResourceClaim] | None = None
    init_containers: list[_Container] | None = None
    containers: list[_Container] | None = None
    resources: _ResourceRequirements = Field(default=_ResourceRequirements.empty())


@dataclass(frozen=True, slots=True)
class ContainerClaims:
    """Claims that one container uses."""

    path: str
    claims: tuple[ContainerResourceClaim, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PodClaims:
    """The parts of one pod spec that are about claims.

    Args:
        path: Of the pod spec: `spec`, `spec.template.spec`.
        resource_claims: The pod's entries.
        containers: (path below the pod spec, entries) of each container: `initContainers[0]`, `containers[1]`.
        pod_level_claims: What `resources.claims` of the pod as a whole holds, which it may not; None when absent.
    """

    path: str
    resource_claims: tuple[PodResourceClaim, ...]
    containers: tuple[ContainerClaims, ...]
    pod_level_claims: tuple[ContainerResourceClaim, ...] | None = None


@dataclass(frozen=True, slots=True)
class DecodedPods:
    """The pod specs of an object, with what the server's decoder says about their claim parts.

    Args:
        pods: One for each pod template, in the order of their paths.
        unknown_fields: Paths of fields of claim entries that no server knows.
        type_errors: (path, text) of what cannot be decoded.
    """

    pods: tuple[PodClaims, ...]
    unknown_fields: tuple[str, ...]
    type_errors: tuple[tuple[str, str], ...]


def decode_pod_claims(
    manifest: Mapping[str, Any], *, minor: int = NEWEST, custom: PodTemplatePaths | None = None
) -> DecodedPods | None:
    """Decode the claim parts of *manifest*; None when its kind has no pod template.

    Args:
        manifest: Any object.
        minor: The server's minor, 37 for 1.37.
        custom: Paths to the pod templates of custom resources.
    """
    holders = tuple(find_holders(manifest, custom))
    if not holders:
        return None
    reader = JsonReader("v1", minor)
    pods = tuple(
        _read_pod(reader, holder["spec"], f"{path}.spec" if path else "spec")
        for path, holder in holders
        if isinstance(holder.get("spec"), Mapping)
    )
    errors = (*reader.final_errors, *reader.errors)
    return DecodedPods(pods, tuple(reader.unknown_fields[:100]), errors)


def _read_pod(reader: JsonReader, spec: Mapping[str, Any], path: str) -> PodClaims:
    if not has_claim_parts(spec):
        return PodClaims(path=path, resource_claims=(), containers=_containers_without_claims(spec))
    # In the order of the object: the server tells the first error and no other.
    parts = {name: part for name, value in spec.items() for part in _claim_part(name, value)}
    pod = _PodSpec.from_manifest(reader.read(_PodSpec, parts, path))
    containers = [
        *((f"initContainers[{index}]", each) for index, each in enumerate(pod.init_containers or ())),
        *((f"containers[{index}]", each) for index, each in enumerate(pod.containers or ())),
    ]
    return PodClaims(
        path=path,
        resource_claims=tuple(pod.resource_claims or ()),
        containers=tuple(ContainerClaims(at, tuple(each.resources.claims or ())) for at, each in containers),
        pod_level_claims=None if pod.resources.claims is None else tuple(pod.resources.claims),
    )


def has_claim_parts(spec: Any) -> bool:
    """Checks that a pod spec says anything about claims: most do not, and are read in a tenth of the time."""
    spec = mapping(spec)
    if spec.get("resourceClaims") is not None or "claims" in mapping(spec.get("resources")):
        return True
    return any(
        "claims" in mapping(mapping(item).get("resources"))
        for _, items in _containers(spec)
        for item in items
    )


def _containers_without_claims(spec: Mapping[str, Any]) -> tuple[ContainerClaims, ...]:
    return tuple(
        ContainerClaims(f"{name}[{index}]", ())
        for name, items in _containers(spec)
        for index in range(len(items))
    )


def _containers(spec: Mapping[str, Any]) -> Iterator[tuple[str, list[Any]]]:
    for name in ("initContainers", "containers"):
        items = spec.get(name)
        if isinstance(items, list):
            yield name, items


def _claim_part(name: str, value: Any) -> Iterator[Any]:
    """The part of a field of a pod spec that is about claims; nothing of most fields."""
    if name == "resourceClaims":
        yield value
    elif name in ("initContainers", "containers") and isinstance(value, list):
        yield [{"resources": _claims(mapping(item).get("resources"))} for item in value]
    elif name == "resources":
        yield _claims(value)


def _claims(resources: Any) -> dict[str, Any]:
    return {name: value for name, value in mapping(resources).items() if name == "claims"}


@dataclass(frozen=True, slots=True, kw_only=True)
class PodClaimEntry:
    """One entry of `spec.resourceClaims`: a claim by name, or a template from which each pod gets its own."""

    name: str
    claim_name: str | None = None
    template_name: str | None = None


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
            for entry in mappings(self.spec.get("resourceClaims"))
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
    metadata = mapping(manifest.get("metadata"))
    kind = str(manifest.get("kind", ""))
    for path, holder in find_holders(manifest, custom):
        # Any part may be the marker of an unknown or secret value instead of a mapping.
        if not isinstance(holder.get("spec"), Mapping):
            continue
        labels = mapping(mapping(holder.get("metadata")).get("labels"))
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
    spec = mapping(manifest.get("spec"))
    if kind == "DaemonSet":
        return None
    if kind in ("Deployment", "ReplicaSet", "StatefulSet", "ReplicationController"):
        value = spec.get("replicas", 1)
    elif kind == "Job":
        value = spec.get("parallelism", 1)
    elif kind == "CronJob":
        value = mapping(mapping(spec.get("jobTemplate")).get("spec")).get("parallelism", 1)
    else:
        value = 1
    return int(value) if isinstance(value, (int, float)) else 1
