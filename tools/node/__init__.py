"""A real node on this machine: kubelet, containerd and runc, for a control plane of `tools.cluster`."""

from __future__ import annotations

from tools.node.images import BUSYBOX
from tools.node.real_node import RealNode

__all__ = ["BUSYBOX", "RealNode"]
