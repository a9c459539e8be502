"""Labels of the nodes of a fleet: those of the kubelet, and those of GPU feature discovery that people select by."""

from __future__ import annotations

import uuid

from dra_infra.catalog.node_groups import NodeGroup
from dra_infra.catalog.records import gpu_products
from dra_infra.catalog.systems import systems


def group_labels(group: NodeGroup) -> dict[str, str]:
    """The labels that all nodes of the group have."""
    kind = group.kind
    labels = {
        "kubernetes.io/arch": systems()[kind.system].architecture if kind.system else "amd64",
        "kubernetes.io/os": "linux",
    }
    if not kind.gpu:
        return labels
    product = gpu_products()[kind.gpu]
    major, minor, _ = product.cuda_compute_capability.split(".")
    found = {
        "nvidia.com/cuda.driver-version.full": kind.kernel_driver.driver_version
        if kind.kernel_driver
        else "",
        "nvidia.com/gpu.compute.major": major,
        "nvidia.com/gpu.compute.minor": minor,
        "nvidia.com/gpu.count": str(group.devices),
        "nvidia.com/gpu.family": product.architecture.lower().replace(" ", "-"),
        "nvidia.com/gpu.memory": str(product.memory_mib or ""),
        "nvidia.com/gpu.present": "true",
        "nvidia.com/gpu.product": kind.gpu.replace(" ", "-"),
        "nvidia.com/mig.capable": str(product.mig_capable).lower(),
    }
    return labels | {name: value for name, value in found.items() if value}


def rack_labels(group: NodeGroup, namespace: uuid.UUID, *, first: int, index: int) -> dict[str, str]:
    """The NVLink domain of a node of a rack: a cluster UUID and a clique id, both made up; empty where there is none.

    Args:
        group: The nodes.
        namespace: Of the UUIDs of the fleet.
        first: Number of the first node of the group.
        index: Number of the node within the group.
    """
    if not group.rack_nodes:
        return {}
    rack = first + index // group.rack_nodes * group.rack_nodes
    cluster = uuid.uuid5(namespace, f"{group.name}/rack/{rack}")
    return {"nvidia.com/gpu.clique": f"{cluster}.{group.kind.invented.clique}"}
