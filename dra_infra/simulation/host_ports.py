"""Ports of nodes that pods take: the NodePorts plugin.

Source: pkg/scheduler/framework/plugins/nodeports/node_ports.go, HostPortInfo in k8s.io/kube-scheduler/framework.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from dra_infra.simulation.pod_shapes import HostPort


class PortRecord:
    """The ports in use on each node."""

    def __init__(self) -> None:
        self._used: dict[int, Counter[HostPort]] = {}

    def count(self, ports: Iterable[HostPort], node: int, delta: int) -> None:
        """Take note of a pod more or less on a node."""
        used = self._used.setdefault(node, Counter())
        for port in ports:
            used[port] += delta
            if not used[port]:
                del used[port]
        if not used:
            del self._used[node]

    def refusal(self, ports: Iterable[HostPort], node: int) -> str:
        """Which port is taken, in the user's words; empty when none is."""
        used = self._used.get(node)
        if used:
            for port in ports:
                if any(port.conflicts(other) for other in used):
                    return f"host port {port} is taken"
        return ""

    def open_nodes(self, ports: Sequence[HostPort], nodes: Iterable[int]) -> list[int]:
        """Those of the nodes on which the ports are free, in order."""
        taken = {node for node in self._used if self.refusal(ports, node)}
        return [node for node in nodes if node not in taken]

    def copy(self) -> PortRecord:
        """The same, to be changed apart from this one."""
        copied = PortRecord()
        copied._used = {node: Counter(used) for node, used in self._used.items()}
        return copied
