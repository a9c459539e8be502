"""A real Kubernetes control plane on loopback, and what tests need to talk to it.

Nodes are objects that tests write; where something has to answer for their pods, `NodeStandIn` does, and says so
by its name.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tools.cluster.api import Api, ApiError, Manifest, WaitTimeoutError, kind_of
    from tools.cluster.connection import Connection
    from tools.cluster.control_plane import ControlPlane
    from tools.cluster.node_standin import NodeStandIn
    from tools.cluster.nodes import create_fleet, node

__all__ = [
    "Api",
    "ApiError",
    "Connection",
    "ControlPlane",
    "Manifest",
    "NodeStandIn",
    "WaitTimeoutError",
    "create_fleet",
    "kind_of",
    "node",
]

_HOMES = {
    "Api": "api",
    "ApiError": "api",
    "Connection": "connection",
    "ControlPlane": "control_plane",
    "Manifest": "api",
    "NodeStandIn": "node_standin",
    "WaitTimeoutError": "api",
    "create_fleet": "nodes",
    "kind_of": "api",
    "node": "nodes",
}


def __getattr__(name: str) -> Any:
    """Loaded when first used: ``python -m tools.cluster`` comes by here before it can answer to Ctrl-C."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
