"""A small cluster, and pods that come one after the other."""

from __future__ import annotations

from dataclasses import dataclass

from tools.cluster import Manifest


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """What is put on the control plane.

    Args:
        name: Shown when it fails.
        fleet: Classes, nodes and slices, in the order in which they are created.
        objects: Claims, templates, and whatever else the pods need.
        pods: In the order in which they are created.
        pinned: Whether the first pod is also sent to each node by itself, to see which ones take it.
    """

    name: str
    fleet: tuple[Manifest, ...]
    objects: tuple[Manifest, ...]
    pods: tuple[Manifest, ...]
    pinned: bool = True

    def __str__(self) -> str:
        return self.name
