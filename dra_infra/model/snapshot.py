"""A cluster as it was read: its fleet, and the objects that run on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dra_infra.model.fleet import Fleet


@dataclass(frozen=True, kw_only=True, slots=True)
class Snapshot:
    """What `kubectl get -o yaml` printed, each object once.

    Args:
        fleet: Its Nodes, ResourceSlices and DeviceClasses; without nodes nothing can be placed.
        objects: Everything else, as plain data by kind, namespace and name. Values of Secrets are not in it.
    """

    fleet: Fleet
    objects: tuple[Mapping[str, Any], ...] = field(default=(), repr=False)
