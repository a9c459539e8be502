"""Make nodes and their ResourceSlices without any kubelet or driver."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tools.cluster.api import Api, Manifest

_CAPACITY = {"cpu": "64", "memory": "512Gi", "pods": "250"}
_READY = {
    "type": "Ready",
    "status": "True",
    "reason": "HandMade",
    "message": "made by a test, no kubelet behind it",
}


def node(name: str, *, labels: Mapping[str, str] | None = None) -> Manifest:
    """Manifest of a plain node with room for many pods."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
    }


def create_fleet(api: Api, manifests: Iterable[Mapping[str, Any]]) -> list[Manifest]:
    """Create the objects of a fleet in the order given: nodes, slices, classes or any other kind.

    A node takes pods at once: its status is the manifest's, completed with capacity for CPU, memory and pods and with
    a Ready condition (the API server drops the status of a Node that is created, so it is written separately).
    Hand-made nodes stay ready only in a cluster without the node-lifecycle controller, as `ControlPlane` is.

    Returns:
        The objects as the server has them.

    Raises:
        ApiError: When the server refuses one of them; those before it stay.
    """
    return [
        _create_node(api, manifest) if manifest["kind"] == "Node" else api.create(manifest)
        for manifest in manifests
    ]


def _create_node(api: Api, manifest: Mapping[str, Any]) -> Manifest:
    given = manifest.get("status", {})
    capacity = {**_CAPACITY, **given.get("capacity", {})}
    status = {
        **given,
        "capacity": capacity,
        "allocatable": {**capacity, **given.get("allocatable", {})},
        "conditions": given.get("conditions", [_READY]),
    }
    api.create({key: value for key, value in manifest.items() if key != "status"})
    return api.patch("v1/Node", manifest["metadata"]["name"], {"status": status}, subresource="status")
