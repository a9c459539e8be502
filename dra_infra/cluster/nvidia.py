"""Names by which NVIDIA's driver and labels are known in a cluster.

Source: the charts nvidia-dra-driver-gpu 25.3 to 25.12 and dra-driver-nvidia-gpu 0.4 and 0.5 (kubelet plugin: node
affinity, containers, gates), and the GPU Operator 26.7 (labels of the MIG manager).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from dra_infra.client.objects import labels_of, name_of, text
from dra_infra.kubernetes.api import mapping, mappings

GPU_DRIVER: Final = "gpu.nvidia.com"
DOMAIN_DRIVER: Final = "compute-domain.nvidia.com"
MIG_CLASS: Final = "mig.nvidia.com"

GPU_LABELS: Final[Mapping[str, str]] = {
    "feature.node.kubernetes.io/pci-10de.present": "true",
    "feature.node.kubernetes.io/pci-0302_10de.present": "true",
    "feature.node.kubernetes.io/pci-0300_10de.present": "true",
    "nvidia.com/gpu.present": "true",
}
"""The labels of which the kubelet plugin wants one, but for that of NVIDIA's processors."""

DRIVER_GATES: Final[Mapping[str, str]] = {
    "DynamicMIG": "DRAPartitionableDevices",
    "NVMLDeviceHealthCheck": "DRADeviceTaints",
    "ConsumableShares": "DRAConsumableCapacity",
}
"""Gates of the driver, and the gate of Kubernetes without which they do nothing."""

_CONTAINERS: Final[Mapping[str, str]] = {"gpus": GPU_DRIVER, "compute-domains": DOMAIN_DRIVER}
_IMAGE: Final = re.compile(
    r"(?:^|/)(?:k8s-dra-driver-gpu|dra-driver-nvidia-gpu)(?::v?(?P<version>[\w.-]+))?(?:@|$)"
)


def has_gpus(node: Mapping[str, Any]) -> bool:
    """True where the labels of a node say that it has NVIDIA GPUs."""
    labels = labels_of(node)
    return any(labels.get(name) == value for name, value in GPU_LABELS.items())


def drivers_of(daemon_set: Mapping[str, Any]) -> set[str]:
    """The DRA drivers that a DaemonSet runs: NVIDIA's by its containers, another one by the folder of its socket."""
    template = mapping(mapping(mapping(daemon_set.get("spec")).get("template")).get("spec"))
    found = {
        _CONTAINERS[text(each.get("name"))]
        for each in mappings(template.get("containers"))
        if text(each.get("name")) in _CONTAINERS and _IMAGE.search(text(each.get("image")))
    }
    for volume in mappings(template.get("volumes")):
        path = text(mapping(volume.get("hostPath")).get("path")).rstrip("/")
        folder, _, last = path.rpartition("/")
        # Plugins keep their socket in a folder with the driver's name; those of CSI do so too.
        if folder.endswith("/kubelet/plugins") and "dra" in name_of(daemon_set) and "." in last:
            found.add(last)
    return found


def version_of(daemon_set: Mapping[str, Any]) -> str:
    """The release of NVIDIA's driver by the tag of its image; empty where it is not told."""
    template = mapping(mapping(mapping(daemon_set.get("spec")).get("template")).get("spec"))
    for each in mappings(template.get("containers")):
        found = _IMAGE.search(text(each.get("image")))
        if found and found["version"]:
            return found["version"]
    return ""


def driver_gates(daemon_set: Mapping[str, Any]) -> set[str]:
    """Gates of NVIDIA's driver that are switched on in its DaemonSet."""
    template = mapping(mapping(mapping(daemon_set.get("spec")).get("template")).get("spec"))
    found = set()
    for container in mappings(template.get("containers")):
        for variable in mappings(container.get("env")):
            if variable.get("name") == "FEATURE_GATES":
                pairs = (each.partition("=") for each in text(variable.get("value")).split(","))
                found |= {name.strip() for name, _, value in pairs if value.strip().lower() == "true"}
    return found
