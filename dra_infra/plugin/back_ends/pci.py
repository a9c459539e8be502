"""What the kernel says of a PCI device (sysfs): its root complex and its NUMA node."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

_ADDRESS: Final = re.compile(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]")
_LONG_DOMAIN: Final = re.compile(r"0000(?=[0-9a-f]{4}:)")


def bus_id(written: str) -> str | None:
    """An address as the standard attribute `pciBusID` has it; None where it is none.

    NVML writes domains with eight digits (GetPCIBusID of go-nvlib takes four off), Kubernetes wants four
    (verifyPCIBDFFormat of k8s.io/dynamic-resource-allocation).
    """
    address = _LONG_DOMAIN.sub("", written.lower(), count=1)
    return address if _ADDRESS.fullmatch(address) else None


def pcie_root(address: str, sysfs: Path) -> str | None:
    """The root complex of a device, `pci0000:64`: the first folder of its path, as resolvePCIeRoot of the same has it."""
    try:
        path = (sysfs / "bus/pci/devices" / address).readlink()
    except OSError:
        return None
    parts = path.parts
    if "devices" not in parts or parts[-1] != address:
        return None
    root = parts[parts.index("devices") + 1]
    return root if root.startswith("pci") else None


def numa_node(address: str, sysfs: Path) -> int | None:
    """The NUMA node of a device; None where the kernel says none, which it writes as -1."""
    try:
        node = int((sysfs / "bus/pci/devices" / address / "numa_node").read_text())
    except (OSError, ValueError):
        return None
    return node if node >= 0 else None
