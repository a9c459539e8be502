"""Cluster snapshots: plain objects, as `kubectl get -o yaml` or `-o json` prints them.

A snapshot is a cluster as it was read: its fleet, and the objects that run on it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from dra_infra.catalog.fleet_files import gather_fleet
from dra_infra.catalog.fleets import build
from dra_infra.catalog.pool_objects import add_pools, is_pool
from dra_infra.catalog.snapshot_headers import find_namespaces, find_read_kinds, find_server_version
from dra_infra.documents.yaml import iterate_manifests
from dra_infra.errors import FleetError, ProblemsError
from dra_infra.fleet import Fleet
from dra_infra.kubernetes.api import group_of, mapping
from dra_infra.kubernetes.api.limits import MAX_DEVICES
from dra_infra.markers import SECRET
from dra_infra.output.wording import nearest
from dra_infra.target import NEWEST_DRIVER


@dataclass(frozen=True, kw_only=True, slots=True)
class Snapshot:
    """Objects of a cluster, as `kubectl get -o yaml` prints them, each once.

    Args:
        fleet: Its Nodes, ResourceSlices and DeviceClasses; without nodes nothing can be placed.
        objects: Everything else, as plain data by kind, namespace and name. Values of Secrets are not in it.
        read: Plurals of the kinds that were looked at, also where there is no object of them: by its header, or by a typed list such as
            ResourceClaimList.
        whole: By plural of the kinds that its header says were read, the namespaces that these objects are of; empty for all. What is not in
            it does not exist there.
        server: Version of the API server by its header, as it reported it; empty if it is not known. Of several texts, the last one's.
    """

    fleet: Fleet
    objects: tuple[Mapping[str, Any], ...] = field(default=(), repr=False)
    read: frozenset[str] = frozenset()
    whole: Mapping[str, frozenset[str]] = field(default_factory=dict)
    server: str = ""

    def has_all(self, plural: str, namespace: str) -> bool:
        """Return whether every object of a kind in a namespace is in it."""
        namespaces = self.whole.get(plural)
        return namespaces is not None and (not namespaces or namespace in namespaces)


NAME: Final = "the snapshot"
_KINDS: Final = frozenset(
    {
        "DeviceClass",
        "DeviceTaintRule",
        "ResourceClaim",
        "ResourceClaimTemplate",
        "ResourcePoolStatusRequest",
        "ResourceSlice",
    }
)
_FLEET_KINDS: Final = frozenset({"DeviceClass", "Node", "ResourceSlice"})
_SECRET_FIELDS: Final = ("data", "stringData")
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"


def load_snapshot(texts: Iterable[str], *, name: str = NAME, driver: str = NEWEST_DRIVER) -> Snapshot:
    """Read a cluster from YAML or JSON with any number of documents; lists of every kind are opened.

    An object that several texts hold, or one text twice, counts once: as the last of them has it. Values of Secrets and
    what `kubectl apply` repeats in annotations are taken out here, so that nothing later can show them.

    Args:
        texts: The documents.
        name: What the cluster is called in answers.
        driver: Releases of the drivers on nodes that node pools of the cluster may add.

    Raises:
        FleetError: The codes of `iterate_manifests`, and `fleet-object` for a Node, slice or class that is malformed.
    """
    try:
        texts = tuple(texts)
        lists: set[str] = set()
        manifests = (
            each for text in texts for each in iterate_manifests(text, file=name, note_list=lists.add)
        )
        snapshot = snapshot_of(manifests, name=name, driver=driver)
        whole = {plural: find_namespaces(text) for text in texts for plural in find_read_kinds(text)}
        server = next(filter(None, map(find_server_version, reversed(texts))), "")
        read = frozenset({*whole, *map(_plural_of, lists)})
        return replace(snapshot, read=read, whole=whole, server=server)
    except ProblemsError as error:
        raise FleetError(error.problems) from error


def snapshot_of(
    manifests: Iterable[dict[str, Any]], *, name: str = NAME, driver: str = NEWEST_DRIVER
) -> Snapshot:
    """The cluster of its objects, as of `load_snapshot`.

    Raises:
        FleetError: `fleet-unreadable`, and `fleet-object` for a Node, slice or class that is malformed.
    """
    found: dict[tuple[str, str, str, str], dict[str, Any]] = {}
    for number, manifest in enumerate(manifests):
        key = _group_kind_and_name(manifest)
        # What has no name cannot be told apart, and stays.
        found[key if key[3] else (*key[:3], f"[{number}]")] = manifest
    if not found:
        raise FleetError.of(
            path=name[:200],
            code="fleet-unreadable",
            message="the snapshot holds no object",
            hint="write it with: kubectl get nodes,resourceslices,deviceclasses,resourceclaims,pods,resourcequotas,jobs -A -o yaml",
        )
    others: list[dict[str, Any]] = []
    fleet = gather_fleet(_take_hardware(found, others), name)
    if pools := [each for each in others if is_pool(each)]:
        fleet = add_pools(fleet, pools, build, driver=driver)
    notes = (*_name_large(fleet), *_name_unknown(others))
    return Snapshot(fleet=replace(fleet, notes=(*fleet.notes, *notes)), objects=tuple(others))


def _plural_of(kind: str) -> str:
    """Return the name of a kind in paths of the API, such as `deviceclasses`, as far as it follows from the kind."""
    name = kind.lower()
    return f"{name}es" if name.endswith("s") else f"{name}s"


def _name_large(fleet: Fleet) -> Iterator[str]:
    for each in fleet.slices:
        number = len(each.spec.devices or ())
        if number > MAX_DEVICES:
            yield (
                f"ResourceSlice {each.metadata.name} has {number} devices, and API servers take at most {MAX_DEVICES}: "
                "it was not read from one"
            )


def _name_unknown(objects: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Kinds of the group that do not exist: an object of one of them is not taken for what was meant."""
    kinds = Counter(
        str(each.get("kind"))
        for each in objects
        if str(each.get("apiVersion", "")).startswith("resource.k8s.io/") and each.get("kind") not in _KINDS
    )
    for kind, number in sorted(kinds.items()):
        near = nearest(kind, sorted(_KINDS))
        meant = f": write {near}" if near else ""
        yield f"{number} of kind {kind[:80]} left out, which resource.k8s.io does not have{meant}"


def _take_hardware(
    found: dict[tuple[str, str, str, str], dict[str, Any]], others: list[dict[str, Any]]
) -> Iterator[dict[str, Any]]:
    """Nodes, slices and classes one by one, the rest into *others*.

    Each object is let go as it is taken: the slices of a large cluster in two forms at once are hundreds of MiB.
    """
    for key in sorted(found):
        manifest = _without_secrets(found.pop(key))
        if manifest.get("kind") in _FLEET_KINDS:
            yield manifest
        else:
            others.append(manifest)


def _group_kind_and_name(manifest: Mapping[str, Any]) -> tuple[str, str, str, str]:
    """Return what sorts the objects of a snapshot: group, kind, namespace, and the name, empty for an object without one."""
    metadata = mapping(manifest.get("metadata"))
    name = metadata.get("name")
    return (
        group_of(manifest),
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
