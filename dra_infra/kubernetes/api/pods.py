"""Claim parts of pod specs, decoded as the API server decodes them (k8s.io/api/core/v1)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import Field

from dra_infra.kubernetes.api.decoding import JsonReader
from dra_infra.kubernetes.api.gates import NEWEST
from dra_infra.kubernetes.api.manifests import mapping
from dra_infra.kubernetes.api.record import CoreRecord, Text
from dra_infra.kubernetes.api.workload_kinds import BUILT_IN_KINDS, WorkloadKinds


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
    manifest: Mapping[str, Any], *, minor: int = NEWEST, kinds: WorkloadKinds = BUILT_IN_KINDS
) -> DecodedPods | None:
    """Decode the claim parts of *manifest*; None when it has no pod template.

    Args:
        manifest: Any object.
        minor: The server's minor, 37 for 1.37.
        kinds: The kinds whose pod templates are looked at.
    """
    kind = kinds.find(manifest)
    holders = kind.find_holders(manifest) if kind is not None else ()
    if not holders:
        return None
    reader = JsonReader("v1", minor)
    pods = tuple(_read_pod(reader, spec, path) for path, spec in holders if isinstance(spec, Mapping))
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
