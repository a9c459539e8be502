"""The catalogue's data files as records, loaded when first asked for and checked while loading."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field


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


class ProductNames(Fact):
    """Names of GPU products from one source."""

    names: tuple[str, ...]


class ShippedClass(BaseModel):
    """A DeviceClass that a driver's chart renders."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    expression: str
    extended_resource_name: str | None = None


class DriverRelease(Fact):
    """What one release of a driver publishes for a device."""

    driver: str
    version: str
    device_name: str
    attributes: dict[str, str]
    capacity: dict[str, str]
    constants: dict[str, str] = Field(default_factory=dict)
    classes: tuple[ShippedClass, ...]


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
    """A fleet that has a name: equal nodes of one kind."""

    title: str
    driver: str
    gpu: str = ""
    count: int = Field(gt=0, le=128)
    kernel_driver: KernelDriver | None = None
    invented: InventedNode


@cache
def gpu_products() -> dict[str, GpuProduct]:
    """GPU products by the name that NVML reports."""
    return {name: GpuProduct.model_validate(entry) for name, entry in _read("gpus.yaml").items()}


@cache
def product_names() -> tuple[str, ...]:
    """The names of GPU products that are known at all, sorted; a newer product may be missing."""
    groups = [ProductNames.model_validate(entry) for entry in _read("product_names.yaml").values()]
    return tuple(sorted({name for group in groups for name in group.names} | set(gpu_products())))


@cache
def driver_releases() -> dict[str, DriverRelease]:
    """Driver releases by the catalogue's own key, such as `nvidia-25.12`."""
    return {name: DriverRelease.model_validate(entry) for name, entry in _read("drivers.yaml").items()}


@cache
def fleet_kinds() -> dict[str, FleetKind]:
    """Fleets by name."""
    return {name: FleetKind.model_validate(entry) for name, entry in _read("fleets.yaml").items()}


def _read(file: str) -> dict[str, Any]:
    text = resources.files("dra_infra.catalog").joinpath("data", file).read_text(encoding="utf-8")
    data: dict[str, Any] = yaml.load(text, Loader=yaml.CSafeLoader)
    return data
