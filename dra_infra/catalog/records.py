"""Catalogue records: what all have in common, GPU products, and the named fleets.

Records are checked while loading.
"""

from __future__ import annotations

from functools import cache
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from dra_infra.catalog.drivers import drivers
from dra_infra.catalog.vocabulary import read_data


class Entry(BaseModel):
    """A part of a data file, which has no keys but those of its record."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Fact(Entry):
    """An entry that names where it comes from."""

    source: str = Field(min_length=10)


class KernelDriver(Entry):
    """The versions that the driver publishes about the host's kernel driver."""

    driver_version: str
    cuda_driver_version: str


class InventedNode(Entry):
    """Facts of a node that a named fleet makes up.

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


class PublishedDevices(Entry):
    """Devices of a node as a driver writes them into its slice, the same on every node.

    Args:
        attributes: What all devices have, by name as the driver writes it; the driver's entry says the type.
        capacity: Likewise.
        devices: Attributes that a device has for itself, by the name of the device.
    """

    attributes: dict[str, str | int | bool] = {}
    capacity: dict[str, str] = {}
    devices: dict[str, dict[str, str | int | bool]] = Field(min_length=1)


class FleetKind(Fact):
    """A fleet that has a name: equal nodes of one kind, whose devices come from one release line of a driver.

    Args:
        also: Other names of it.
        system: Name of the board, server or rack in systems.yaml; empty without hardware.
        line: Release line of the driver, where none is asked for: the newest, or the one that publishes the listed devices.
        gpu: Name of the product as NVML reports it; empty without hardware.
        count: Devices per node.
        pci_name: Name of the GPU in the PCI database.
        compute_domains: Whether the driver's part for ComputeDomains is there, where nothing is said.
        labels: Labels of nodes that a cloud sets.
        published: Devices that are listed one by one, by driver.
    """

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
    labels: dict[str, str] = {}
    published: dict[str, PublishedDevices] = {}
    invented: InventedNode


@cache
def fleet_kinds() -> dict[str, FleetKind]:
    """Fleets by name; other names are not among them."""
    return {
        name: FleetKind.model_validate({"line": drivers()[entry["driver"]].newest.line, **entry})
        for name, entry in read_data("fleets.yaml").items()
    }


@cache
def fleet_names() -> dict[str, str]:
    """Every name that a fleet can be asked for by, with the one that it has."""
    names = {name: name for name in fleet_kinds()}
    return names | {other: name for name, kind in fleet_kinds().items() for other in kind.also}


class GpuProduct(Fact):
    """A GPU as NVML reports it; what is not known is None.

    Args:
        brand: go-nvlib's string.
        architecture: go-nvlib's string, `Hopper`.
        memory_mib: NVML's total.
        mig_slices: Compute slices of MIG: 7, 4, or 0 without MIG.
        addressing_mode: What NVML reports on x86 hosts with open kernel modules, on Grace with its own.
        device_id: PCI device id, four hexadecimal digits.
        nvlink: What NVLink joins: every GPU of a `board` or `rack`, some pairs of a `mesh`, cards over a `bridge`, GPU
            and CPU of a `chip`.
        nvlink_gb_per_s: Bandwidth of NVLink per GPU in GB/s, both directions.
        short_names: What people write instead; several products may share one.
        uncertain: Names of fields that are likely, and no measurement.
    """

    brand: str | None = None
    architecture: str
    cuda_compute_capability: str = Field(pattern=r"^\d+\.\d+\.\d+$")
    memory_mib: int | None = Field(default=None, gt=0)
    mig_slices: Literal[0, 4, 7]
    addressing_mode: Literal["HMM", "ATS", "None"] | None = None
    device_id: str | None = Field(default=None, pattern=r"^[0-9A-F]{4}$")
    nvlink: Literal["board", "rack", "mesh", "bridge", "chip", "none"] | None = None
    nvlink_gb_per_s: int | None = Field(default=None, gt=0)
    short_names: tuple[str, ...] = Field(min_length=1)
    uncertain: tuple[str, ...] = ()

    @property
    def mig_capable(self) -> bool:
        """MIG can partition it."""
        return self.mig_slices > 0

    @field_validator("uncertain")
    @classmethod
    def _names_fields(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        if not set(names) <= set(cls.model_fields):
            raise ValueError(f"{names} are not all fields")
        return names


@cache
def gpu_products() -> dict[str, GpuProduct]:
    """GPU products by the name that NVML reports."""
    return {name: GpuProduct.model_validate(entry) for name, entry in read_data("gpus.yaml").items()}
