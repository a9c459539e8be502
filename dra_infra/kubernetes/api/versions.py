"""Converts objects of resource.k8s.io from one version of the API to another, without loss.

v1 and v1beta2 are arranged alike; v1beta1 is not. A server converts in the same way between what clients send and ask
for. Upstream: pkg/apis/resource/*/conversion.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dra_infra.kubernetes.api import v1beta1
from dra_infra.kubernetes.api.decoding import GROUP, VERSIONS, JsonReader, can_decode, record_of
from dra_infra.kubernetes.api.gates import ANY, NEWEST, Release
from dra_infra.kubernetes.api.manifests import mapping
from dra_infra.kubernetes.problems import Problem


@dataclass(frozen=True, slots=True)
class Converted:
    """An object in another version.

    Args:
        manifest: The object. Fields that the version or minor cannot hold are still there where JSON can say them.
        problems: What would be lost: `field-not-in-version` with the field's path in *manifest*, or
            `unknown-version` when there is no such kind in the version.
    """

    manifest: dict[str, Any]
    problems: tuple[Problem, ...] = ()


def convert(manifest: Mapping[str, Any], version: str, *, minor: int = NEWEST) -> Converted:
    """*manifest* in *version* (`v1`, `v1beta2` or `v1beta1`), for a server of *minor* (37 for 1.37).

    Raises:
        ValueError: When *manifest* is of no kind and version that is known here, or *version* is none.
    """
    if not can_decode(manifest) or version not in VERSIONS:
        source = f"{manifest.get('apiVersion')} {manifest.get('kind')}"
        raise ValueError(f"{source} cannot be converted to {GROUP}/{version}")
    kind, source_version = str(manifest["kind"]), str(manifest["apiVersion"]).rpartition("/")[2]
    if not _release(minor).knows(kind, version):
        return Converted(dict(manifest), (_no_such_kind(kind, version, minor),))
    hub = v1beta1.to_hub(manifest) if source_version == "v1beta1" else dict(manifest)
    problems: list[Problem] = []
    if version == "v1beta1" and source_version != "v1beta1":
        problems.extend(_not_in_v1beta1(hub, kind))
        hub = v1beta1.from_hub(hub)
    converted = {**hub, "apiVersion": f"{GROUP}/{version}"}
    problems.extend(_not_in_minor(converted, kind, version, minor))
    return Converted(converted, tuple(problems))


def _not_in_minor(manifest: Mapping[str, Any], kind: str, version: str, minor: int) -> Iterator[Problem]:
    shapes = v1beta1.SHAPES if version == "v1beta1" else {}
    known, ever = (JsonReader(version, each, shapes) for each in (minor, ANY))
    for reader in (known, ever):
        reader.read(record_of(kind), manifest)
    # A field that no minor knows is somebody's typing error and not lost by a conversion.
    never = set(ever.unknown_fields)
    for path in known.unknown_fields:
        if path not in never:
            yield Problem(
                path=path,
                code="field-not-in-version",
                message=f"{GROUP}/{version} of Kubernetes 1.{minor} has no such field",
                hint="leave it out, or use another minor",
            )


def _not_in_v1beta1(hub: Mapping[str, Any], kind: str) -> Iterator[Problem]:
    if kind == "ResourceSlice":
        spec = mapping(hub.get("spec"))
        for field, empty in (("nodeName", ""), ("allNodes", False)):
            if spec.get(field) == empty and spec.get(field) is not None:
                yield _emptied(f"spec.{field}", f"an empty {field}")
        return
    path, spec = ("spec.spec", mapping(hub.get("spec"))) if kind == "ResourceClaimTemplate" else ("spec", hub)
    requests = mapping(mapping(spec.get("spec")).get("devices")).get("requests")
    for index, request in enumerate(requests if isinstance(requests, list) else ()):
        exactly = mapping(request).get("exactly")
        if isinstance(exactly, Mapping) and not v1beta1.is_exact(exactly):
            yield _emptied(f"{path}.devices.requests[{index}].exactly", "an empty `exactly`")


def _emptied(path: str, what: str) -> Problem:
    return Problem(
        path=path,
        code="field-not-in-version",
        message=f"{GROUP}/v1beta1 cannot tell {what} from an absent one",
        hint="give it a value, or leave it out",
    )


def _no_such_kind(kind: str, version: str, minor: int) -> Problem:
    held = [each for each in VERSIONS if _release(minor).knows(kind, each)]
    return Problem(
        path="apiVersion",
        code="unknown-version",
        message=f"Kubernetes 1.{minor} has no {kind} in {GROUP}/{version}",
        hint=f"write apiVersion: {GROUP}/{held[0]}" if held else f"1.{minor} has no {kind} at all",
    )


def _release(minor: int) -> Release:
    return Release(minor=f"1.{minor}", gates=frozenset())
