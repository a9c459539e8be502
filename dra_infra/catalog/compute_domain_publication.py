"""What `compute-domain.nvidia.com` publishes on a node: one channel and one daemon, whatever the fabric."""

from __future__ import annotations

from typing import Final

from dra_infra.catalog.device_patterns import DevicePattern, PoolPattern, SlicePattern, attributes_of, by_name
from dra_infra.catalog.drivers import DriverRelease, drivers
from dra_infra.model.resource_slice import Device

COMPUTE_DOMAIN_DRIVER: Final = "compute-domain.nvidia.com"


def compute_domain_release(line: str) -> DriverRelease:
    """The driver's part for ComputeDomains in a release line; it comes with that for GPUs."""
    return drivers()[COMPUTE_DOMAIN_DRIVER].by_line[line]


def publish_compute_domains(line: str) -> PoolPattern:
    """The pool of a node whose IMEX daemons are the driver's; where the host has its own, there is no daemon-0."""
    devices = [
        DevicePattern(Device(name=type_.device_name.format(id=0), attributes=attributes_of(type_, {})))
        for type_ in compute_domain_release(line).devices.values()
    ]
    return PoolPattern(COMPUTE_DOMAIN_DRIVER, (SlicePattern(by_name(devices)),))
