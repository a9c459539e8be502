"""A real Kubernetes control plane on loopback, and what tests need to talk to it.

Nodes are objects that tests write; where something has to answer for their pods, `NodeStandIn` does, and says so
by its name.
"""

from __future__ import annotations

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
