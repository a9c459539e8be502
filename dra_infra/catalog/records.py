"""What named fleets are made of, as records that are checked while loading."""

from __future__ import annotations

from functools import cache

from pydantic import BaseModel, ConfigDict, Field

from dra_infra.catalog.vocabulary import read_data


class Fact(BaseModel):
    """One entry of a data file; every entry names where it comes from."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    source: str = Field(min_length=10)


class GpuProduct(Fact):
    """A GPU as NVML reports it."""

    brand: str
    architecture: str
    cuda_compute_capability: str = Field(pattern=r"^\d+\.\d+\.\d+$")
    memory_mib: int = Field(gt=0)
    mig_capable: bool
    addressing_mode: str


class KernelDriver(BaseModel):
    """The versions that the driver publishes about the host's kernel driver."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    driver_version: str
    cuda_driver_version: str


class InventedNode(BaseModel):
    """What a named fleet makes up: node sizes, and bus id and PCIe root of each GPU."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    node: dict[str, str]
    pci: tuple[tuple[str, str], ...] = ()


class FleetKind(Fact):
    """A fleet that has a name: equal nodes of one kind, whose devices come from one release line of a driver."""

    title: str
    driver: str
    line: str
    gpu: str = ""
    count: int = Field(gt=0, le=128)
    kernel_driver: KernelDriver | None = None
    invented: InventedNode


@cache
def gpu_products() -> dict[str, GpuProduct]:
    """GPU products by the name that NVML reports."""
    return {name: GpuProduct.model_validate(entry) for name, entry in read_data("gpus.yaml").items()}


@cache
def fleet_kinds() -> dict[str, FleetKind]:
    """Fleets by name."""
    return {name: FleetKind.model_validate(entry) for name, entry in read_data("fleets.yaml").items()}
