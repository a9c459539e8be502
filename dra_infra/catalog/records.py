"""GPU products, and what every record of the catalogue has in common."""

from __future__ import annotations

from functools import cache
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from dra_infra.catalog.fleet_kinds import FleetKind, fleet_kinds
from dra_infra.catalog.vocabulary import read_data

__all__ = ["Fact", "FleetKind", "GpuProduct", "fleet_kinds", "gpu_products"]


class Fact(BaseModel):
    """One entry of a data file; every entry names where it comes from."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    source: str = Field(min_length=10)


class GpuProduct(Fact):
    """A GPU as NVML reports it; what is not known is None.

    Args:
        brand: go-nvlib's string.
        architecture: go-nvlib's string, `Hopper`.
        memory_mib: NVML's total.
        mig_slices: Compute slices of MIG: 7, 4, or 0 without MIG.
        addressing_mode: What NVML reports on x86 hosts with open kernel modules, on Grace with its own.
        device_id: PCI device id, four hexadecimal digits.
        nvlink: What NVLink joins: every GPU of a `board` or `rack`, cards over a `bridge`, GPU and CPU of a `chip`.
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
    nvlink: Literal["board", "rack", "bridge", "chip", "none"] | None = None
    nvlink_gb_per_s: int | None = Field(default=None, gt=0)
    short_names: tuple[str, ...] = Field(min_length=1)
    uncertain: tuple[str, ...] = ()

    @property
    def mig_capable(self) -> bool:
        """Whether MIG can partition it."""
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
