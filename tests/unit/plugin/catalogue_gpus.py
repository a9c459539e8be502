"""The fake of NVML loaded with what the catalogue knows of a fleet's GPUs, and what a fleet of them publishes."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pynvml

from dra_infra.catalog.fleets import load_fleet
from dra_infra.catalog.mig import MigProfile, mig_profiles_of, placements_of
from dra_infra.catalog.records import fleet_kinds, gpu_products
from dra_infra.kubernetes.api import Device
from tests.unit.plugin.fake_nvml import FakeGpu, FakeMig, FakeNvml, FakeProfile

_SUFFIXES = {"": "", "+me": "_REV1", "+gfx": "_GFX", "-me": "_NO_ME", "+me.all": "_ALL_ME"}
_ADDRESSING = {"HMM": pynvml.NVML_DEVICE_ADDRESSING_MODE_HMM, "ATS": pynvml.NVML_DEVICE_ADDRESSING_MODE_ATS}
_ADDRESSING["None"] = pynvml.NVML_DEVICE_ADDRESSING_MODE_NONE


@cache
def published(fleet: str) -> tuple[Device, ...]:
    """What the first node of a fleet publishes under the newest release of NVIDIA's driver."""
    loaded = load_fleet(fleet, driver="0.5")
    node = loaded.nodes[0].name
    return tuple(
        device
        for each in loaded.slices
        if each.spec.node_name == node and each.spec.driver == "gpu.nvidia.com"
        for device in each.spec.devices or ()
    )


def fake_of(kind: str, devices: tuple[Device, ...], *, mig: tuple[str, ...] = ()) -> FakeNvml:
    """The GPUs of a kind of fleet.

    Args:
        kind: Its name.
        devices: Of them the UUIDs are taken, which fleets make up, and nothing else.
        mig: Profiles on every GPU.
    """
    fleet = fleet_kinds()[kind]
    product = gpu_products()[fleet.gpu]
    assert fleet.kernel_driver
    uuids = {each.name: _text(each, "uuid") for each in devices}
    major, minor, _ = map(int, product.cuda_compute_capability.split("."))
    gpus = []
    for number in range(fleet.count):
        profiles = {each.name: profile_of(each, fleet.gpu) for each in mig_profiles_of(fleet.gpu)}
        gpu = FakeGpu(
            minor=number,
            uuid=uuids.get(f"gpu-{number}") or _parent(devices, number),
            name=fleet.gpu,
            brand=_number("NVML_BRAND_", product.brand or fleet.invented.brand),
            architecture=_number("NVML_DEVICE_ARCH_", product.architecture.split()[0]),
            capability=(major, minor),
            addressing=_ADDRESSING.get(product.addressing_mode or ""),
            bus_id=f"0000{fleet.invented.pci[number][0]}".upper(),
            memory_mib=product.memory_mib,
            mig_mode=bool(mig) if product.mig_capable else None,
            profiles=tuple(profiles.values()),
        )
        for instance, placed in enumerate(placements_of(mig, fleet.gpu) or () if mig else ()):
            gpu.migs.append(
                FakeMig(
                    uuid=_mig_uuid(devices, number, placed.profile, placed.start),
                    gi=instance + 1,
                    profile=profiles[placed.profile],
                    start=placed.start,
                    size=placed.size,
                )
            )
        gpus.append(gpu)
    release = [int(part) for part in fleet.kernel_driver.cuda_driver_version.split(".")]
    return FakeNvml(
        *gpus,
        driver_version=fleet.kernel_driver.driver_version,
        cuda=release[0] * 1000 + release[1] * 10,
    )


def make_sysfs(kind: str, system: Path) -> None:
    """What the kernel says of the GPUs' PCI devices, below *system*."""
    bus = system / "sys/bus/pci/devices"
    bus.mkdir(parents=True)
    for address, root, numa in fleet_kinds()[kind].invented.pci:
        device = system / "sys/devices" / root / "0000:00:01.0" / address
        device.mkdir(parents=True)
        (device / "numa_node").write_text(f"{numa}\n")
        (bus / address).symlink_to(f"../../../devices/{root}/0000:00:01.0/{address}")


def profile_of(known: MigProfile, product: str) -> FakeProfile:
    """A profile of a product, as NVML would tell it."""
    suffix = known.attributes[0] if known.attributes else ""
    double = known.compute_slices == 1 and not suffix and known.memory_slices > _smallest(product)
    return FakeProfile(
        shape=f"{known.compute_slices}_SLICE" + ("_REV2" if double else _SUFFIXES[suffix]),
        id=known.gi_profile_id,
        memory_mib=known.memory_mib or 0,
        multiprocessors=known.multiprocessors or 0,
        copy_engines=known.copy_engines or 0,
        decoders=known.decoders or 0,
        encoders=known.encoders or 0,
        jpeg_engines=known.jpeg_engines or 0,
        ofa_engines=known.ofa_engines or 0,
    )


def _smallest(product: str) -> int:
    return min(each.memory_slices for each in mig_profiles_of(product))


def _parent(devices: tuple[Device, ...], number: int) -> str:
    return next(_text(each, "parentUUID") for each in devices if each.name.startswith(f"gpu-{number}-mig-"))


def _mig_uuid(devices: tuple[Device, ...], number: int, profile: str, start: int) -> str:
    return next(
        _text(each, "uuid")
        for each in devices
        if each.name.startswith(f"gpu-{number}-mig-")
        and each.name.endswith(f"-{start}")
        and _text(each, "profile") == profile
    )


def _text(device: Device, attribute: str) -> str:
    value = (device.attributes or {})[attribute].string
    assert value
    return value


def _number(prefix: str, word: str) -> int:
    return int(getattr(pynvml, prefix + word.upper()))
