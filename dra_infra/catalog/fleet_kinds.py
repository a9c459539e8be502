"""The fleets that have a name, as records that are checked while loading."""

from __future__ import annotations

from functools import cache

from pydantic import BaseModel, ConfigDict, Field

from dra_infra.catalog.vocabulary import read_data


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class KernelDriver(_Record):
    """The versions that the driver publishes about the host's kernel driver."""

    driver_version: str
    cuda_driver_version: str


class InventedNode(_Record):
    """What a named fleet makes up.

    Args:
        node: Allocatable resources.
        pci: Bus id, PCIe root and NUMA node of each GPU.
        fabric: Module id of each GPU, and its Fabric Manager partitions of 1, 2, 4 and 8 GPUs.
        clique: Clique id of a rack, behind the cluster UUID.
        addressable_memory: What a VFIO device has.
        brand: Where the product's is not known.
    """

    node: dict[str, str]
    pci: tuple[tuple[str, str, int], ...] = ()
    fabric: tuple[tuple[int, int, int, int, int], ...] = ()
    clique: int | None = None
    addressable_memory: str = ""
    brand: str = ""


class FleetKind(_Record):
    """A fleet that has a name: equal nodes of one kind, whose devices come from one release line of a driver.

    Args:
        also: Other names of it.
        system: Name of the board, server or rack in systems.yaml; empty without hardware.
        line: Release line of the driver, where none is asked for.
        gpu: Name of the product as NVML reports it; empty without hardware.
        count: Devices per node.
        pci_name: Name of the GPU in the PCI database.
        compute_domains: Whether the driver's part for ComputeDomains is there, where nothing is said.
    """

    source: str = Field(min_length=10)
    title: str
    also: tuple[str, ...] = ()
    driver: str
    line: str
    system: str = ""
    gpu: str = ""
    count: int = Field(gt=0, le=128)
    pci_name: str = ""
    compute_domains: bool = False
    kernel_driver: KernelDriver | None = None
    invented: InventedNode


@cache
def fleet_kinds() -> dict[str, FleetKind]:
    """Fleets by name; other names are not among them."""
    return {name: FleetKind.model_validate(entry) for name, entry in read_data("fleets.yaml").items()}


@cache
def fleet_names() -> dict[str, str]:
    """Every name that a fleet can be asked for by, with the one that it has."""
    names = {name: name for name in fleet_kinds()}
    return names | {other: name for name, kind in fleet_kinds().items() for other in kind.also}
