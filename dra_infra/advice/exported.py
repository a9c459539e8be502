"""Advice on objects as `kubectl get -o yaml` prints them, to be created again.

Source: Create in k8s.io/apiserver pkg/storage/etcd3/store.go, and PrepareForCreate of the strategies below
pkg/registry/resource.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from dra_infra.errors import Problem
from dra_infra.kubernetes.api import group_of, is_placeholder, mapping

EXPORTED: Final = frozenset({"exported-object", "status-cleared"})
"""Codes of what the server itself wrote into an object."""

_WITH_STATUS: Final = ("DeviceTaintRule", "ResourceClaim")
"""Kinds of resource.k8s.io with a status, which a create clears."""


def advise_exported(manifest: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield what the server wrote into an object, and refuses or clears in a create: codes `exported-object`, `status-cleared`."""
    version = mapping(manifest.get("metadata")).get("resourceVersion")
    if isinstance(version, str) and not is_placeholder(version) and version.isdigit() and int(version) > 0:
        yield Problem(
            path="metadata.resourceVersion",
            code="exported-object",
            message="resourceVersion should not be set on objects to be created",
            hint="leave out what the server wrote: metadata.resourceVersion, uid, creationTimestamp, managedFields, and status",
        )
    has_status = bool(manifest.get("status")) and manifest.get("kind") in _WITH_STATUS
    if has_status and group_of(manifest) == "resource.k8s.io":
        yield Problem(
            path="status",
            code="status-cleared",
            message="the server clears the status of an object that is created, so the new one has no devices or conditions",
            hint="leave status out",
            severity="warning",
        )
