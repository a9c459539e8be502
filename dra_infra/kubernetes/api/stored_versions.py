"""The version of resource.k8s.io in which each minor writes an object to etcd, and the minor that no longer reads a version.

A server writes the newest version that the minor before it has too, so that a rollback can read it. An object keeps the version
in etcd until it is written again.

Source: pkg/kubeapiserver/default_storage_factory_builder.go and pkg/apis/resource/install/install.go of Kubernetes 1.34.10,
1.35.8, 1.36.4 and 1.37.1, with `emulatedStorageVersion` in k8s.io/apiserver; removals as the `APILifecycleRemoved` functions of
k8s.io/api 0.37.1 have them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dra_infra.kubernetes.api.gates import Release

_USUAL: Final = {34: "v1beta2", 35: "v1"}
_STORED: Final[Mapping[str, Mapping[int, str]]] = {
    "DeviceClass": _USUAL,
    "ResourceClaim": _USUAL,
    "ResourceClaimTemplate": _USUAL,
    "ResourceSlice": _USUAL,
    "DeviceTaintRule": {34: "v1alpha3", 37: "v1beta2"},
    "ResourcePoolStatusRequest": {36: "v1alpha3"},
}
"""Kind to the version that is written, by the first minor that writes it."""

_REMOVED: Final[Mapping[str, Mapping[str, str]]] = {
    "DeviceTaintRule": {"v1alpha3": "1.39", "v1beta2": "1.42"},
    "ResourcePoolStatusRequest": {"v1alpha3": "1.42"},
}
_USUALLY_REMOVED: Final = {"v1beta1": "1.38", "v1beta2": "1.39"}


def stored_version(kind: str, release: Release) -> str:
    """Return the version in which a server writes a kind to etcd; empty for a kind that the release does not have."""
    since = [minor for minor in _STORED.get(kind, {}) if minor <= release.number]
    return _STORED[kind][max(since)] if since else ""


def removed_in(kind: str, version: str) -> str:
    """Return the minor from which on a version is announced to be neither served nor read; empty where none is announced."""
    return _REMOVED.get(kind, _USUALLY_REMOVED).get(version, "") if kind in _STORED else ""
