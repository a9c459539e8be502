"""Snapshots of clusters: plain objects, as `kubectl get -o yaml` or `-o json` prints them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from dra_infra.catalog.fleet_files import gather_fleet
from dra_infra.errors import FleetError, Problem, ProblemsError
from dra_infra.model.program import SECRET
from dra_infra.model.snapshot import Snapshot
from dra_infra.model.yaml import read_manifests

NAME: Final = "the snapshot"
_FLEET_KINDS: Final = frozenset({"DeviceClass", "Node", "ResourceSlice"})
_SECRET_FIELDS: Final = ("data", "stringData")
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"


def load_snapshot(texts: Iterable[str], *, name: str = NAME) -> Snapshot:
    """Read a cluster from YAML or JSON with any number of documents; lists of every kind are opened.

    An object that several texts hold, or one text twice, counts once: as the last of them has it. Values of Secrets and
    what `kubectl apply` repeats in annotations are taken out here, so that nothing later can show them.

    Args:
        texts: Contents of files.
        name: What the fleet is called in answers.

    Raises:
        FleetError: The codes of `read_manifests`, and `fleet-object` for a Node, slice or class that is malformed.
    """
    found: dict[tuple[str, str, str, str], dict[str, Any]] = {}
    for number, text in enumerate(texts):
        try:
            read = read_manifests(text, file=name)
        except ProblemsError as error:
            raise FleetError(error.problems) from error
        for position, manifest in enumerate(read):
            key = _identify(manifest)
            if not key[3]:
                # What has no name cannot be told apart, and stays.
                key = (*key[:3], f"{number}[{position}]")
            found[key] = manifest
    objects = [_without_secrets(found[key]) for key in sorted(found)]
    if not objects:
        raise FleetError([_empty(name)])
    hardware = [each for each in objects if _is_hardware(each)]
    others = [each for each in objects if not _is_hardware(each)]
    return Snapshot(
        fleet=gather_fleet(hardware, name),
        objects=tuple(others),
    )


def _is_hardware(manifest: Mapping[str, Any]) -> bool:
    return manifest.get("kind") in _FLEET_KINDS


def _identify(manifest: Mapping[str, Any]) -> tuple[str, str, str, str]:
    metadata = manifest.get("metadata")
    metadata = metadata if isinstance(metadata, Mapping) else {}
    group, slash, _ = str(manifest.get("apiVersion", "")).rpartition("/")
    name = metadata.get("name")
    return (
        group if slash else "",
        str(manifest.get("kind", "")),
        str(metadata.get("namespace") or ""),
        name if isinstance(name, str) else "",
    )


def _without_secrets(manifest: dict[str, Any]) -> dict[str, Any]:
    metadata = manifest.get("metadata")
    if isinstance(metadata, dict):
        annotations = metadata.get("annotations")
        if isinstance(annotations, dict) and _LAST_APPLIED in annotations:
            annotations = {key: value for key, value in annotations.items() if key != _LAST_APPLIED}
            metadata = {**metadata, "annotations": annotations}
        metadata = {key: value for key, value in metadata.items() if key != "managedFields"}
        manifest = {**manifest, "metadata": metadata}
    if manifest.get("kind") == "Secret":
        masked: dict[str, Any] = {field: SECRET for field in _SECRET_FIELDS if field in manifest}
        manifest = {**manifest, **masked}
    return manifest


def _empty(name: str) -> Problem:
    return Problem(
        path=name[:200],
        code="fleet-unreadable",
        message="the snapshot holds no object",
        hint="write it with: kubectl get nodes,resourceslices,deviceclasses,resourceclaims,pods,resourcequotas,jobs -A -o yaml",
    )
