"""GPUs, VFIO devices and MIG devices, static and dynamic, as a release of the NVIDIA driver publishes them.

Source: cmd/gpu-kubelet-plugin/partitions.go, mig.go and driver.go in kubernetes-sigs/dra-driver-nvidia-gpu.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic.alias_generators import to_camel

from dra_infra.catalog.mig import (
    ENGINES,
    MigProfile,
    Placement,
    find_mig_profile,
    memory_slices_of,
    mig_profiles_of,
    placements_of,
)
from dra_infra.catalog.node_groups import (
    DevicePattern,
    NodeGroup,
    PoolPattern,
    Seeded,
    SlicePattern,
    attributes_of,
    by_name,
    capacity_of,
    mebibytes,
    shareable_capacity,
)
from dra_infra.catalog.records import gpu_products
from dra_infra.kubernetes.api import Counter, CounterSet, Device, DeviceCounterConsumption

_PARTITIONS = ("gpuModuleID", "partition1", "partition2", "partition4", "partition8")
_NVIDIA_VENDOR = "0x10de"


def whole_gpu(
    group: NodeGroup, minor: int, *, capacity: Mapping[str, str] | None = None, without: Iterable[str] = ()
) -> DevicePattern:
    """The GPU as one device.

    Args:
        group: The nodes.
        minor: Number of the GPU.
        capacity: What DynamicMIG makes of its capacity.
        without: Attributes that it lacks.
    """
    type_ = group.release.devices["gpu"]
    memory = gpu_products()[group.kind.gpu].memory_mib
    uuid_ = gpu_uuid("uuid", minor)
    values = {
        **parent_values(group, minor),
        **_fabric_values(group, minor),
        "index": minor,
        "minor": minor,
        **dict.fromkeys(without),
    }
    device = Device(
        name=type_.device_name.format(minor=minor),
        attributes=attributes_of(type_, values, seeded=(uuid_,)),
        capacity=capacity_of(type_, capacity or {"memory": mebibytes(memory) if memory else None}),
    )
    return DevicePattern(shared(device, group.shares), (uuid_,))


def vfio_device(group: NodeGroup, minor: int) -> DevicePattern:
    """The GPU as a device that is passed through; it is published beside the whole GPU."""
    type_ = group.release.devices["vfio"]
    kind = group.kind
    parent = parent_values(group, minor)
    bus, _, numa = kind.invented.pci[minor]
    values = {
        **_fabric_values(group, minor),
        **{name: parent[name] for name in parent if name.startswith("resource.kubernetes.io/")},
        # The same on every node: it is made of the PCI address alone.
        "uuid": str(uuid.uuid5(uuid.NAMESPACE_DNS, bus)),
        "deviceID": f"0x{(gpu_products()[kind.gpu].device_id or '').lower()}",
        "vendorID": _NVIDIA_VENDOR,
        "productName": kind.pci_name,
        "iommuFDEnabled": True,
        "numa": numa,
    }
    return DevicePattern(
        Device(
            name=type_.device_name.format(index=minor),
            attributes=attributes_of(type_, values),
            capacity=capacity_of(type_, {"addressableMemory": kind.invented.addressable_memory}),
        )
    )


def gpu_uuid(attribute: str, minor: int) -> Seeded:
    """The UUID of a GPU, under the name of an attribute."""
    return Seeded(attribute, "GPU-", f"gpu-{minor}")


def parent_values(group: NodeGroup, minor: int) -> dict[str, Any]:
    """Values that a GPU and its MIG devices have in common, by the names of all release lines."""
    kind = group.kind
    product = gpu_products()[kind.gpu]
    bus, root, numa = kind.invented.pci[minor]
    assert kind.kernel_driver is not None  # noqa: S101  (a kind with a product has one; the data test checks it)
    return {
        "productName": kind.gpu,
        "brand": product.brand or kind.invented.brand or None,
        "architecture": product.architecture,
        "cudaComputeCapability": product.cuda_compute_capability,
        "driverVersion": kind.kernel_driver.driver_version,
        "cudaDriverVersion": kind.kernel_driver.cuda_driver_version,
        "addressingMode": product.addressing_mode,
        "resource.kubernetes.io/pciBusID": bus,
        "pcieBusID": bus,
        "resource.kubernetes.io/pcieRoot": root,
        "resource.kubernetes.io/numaNode": [numa] if "DRAListTypeAttributes" in group.gates else numa,
    }


def shared(device: Device, shares: str) -> Device:
    """The device with what the driver's value `consumableShares` adds (applyConsumableShares, driver 0.5)."""
    if not shares:
        return device
    capacity = dict(device.capacity or {})
    if memory := capacity.get("memory"):
        least, default = ("1Mi", memory.value) if shares == "memory" else ("0", "0")
        capacity["memory"] = shareable_capacity(memory.value, default=default, least=least, step="1Mi")
        if shares.isdigit():
            capacity["shares"] = shareable_capacity(shares, default="1", least="1", step="1")
    return device.changed({"allow_multiple_allocations": True, "capacity": capacity})


def _fabric_values(group: NodeGroup, minor: int) -> dict[str, Any]:
    if "FabricManagerPartitioning" not in group.gates:
        return {}
    return dict(zip(_PARTITIONS, group.kind.invented.fabric[minor], strict=True))


_NAMED_BY_IDS = frozenset({"25.3", "25.8"})
"""Lines whose MIG devices are named by numbers alone."""

_FIRST_DYNAMIC = "25.12"
"""The first line with DynamicMIG: it switches MIG mode on Ampere GPUs too, and publishes fewer attributes."""


def static_mig_devices(group: NodeGroup, minor: int, profiles: Sequence[str]) -> list[DevicePattern]:
    """The MIG devices of a GPU that was partitioned before the driver started."""
    placements = placements_of(profiles, group.kind.gpu)
    assert placements is not None  # noqa: S101  (the settings of a group are checked)
    devices = []
    for index, placement in enumerate(placements):
        profile = _profile(group, placement.profile)
        name = _device_name(group, minor, profile, placement)
        seeded = (Seeded("uuid", "MIG-", name), gpu_uuid("parentUUID", minor))
        values = {
            **parent_values(group, minor),
            "profile": profile.name,
            "index": index,
            "parentIndex": minor,
        }
        type_ = group.release.devices["mig"]
        slices = {f"memorySlice{number}": "1" for number in _slices(placement)}
        device = Device(
            name=name,
            attributes=attributes_of(type_, values, seeded=seeded),
            capacity=capacity_of(type_, {**_amounts(profile, group.kind.gpu), **slices}),
        )
        devices.append(DevicePattern(shared(device, group.shares), seeded))
    return devices


def publish_dynamic_mig(group: NodeGroup, *, separate_counters: bool) -> PoolPattern:
    """The pool of a node under the gate DynamicMIG: every placement of every profile of every GPU.

    Args:
        group: The nodes. Ampere GPUs are taken to be in MIG mode, as the operator's documentation asks for.
        separate_counters: Whether counters are in a slice of their own, as from Kubernetes 1.35 on.
    """
    order = sorted(range(group.devices), key=lambda minor: group.kind.invented.pci[minor][0])
    product = group.kind.gpu
    whole = _counters({**_totals(product), **_slice_names(range(memory_slices_of(product)))})
    counters = {minor: CounterSet(name=f"gpu-{minor}-counter-set", counters=whole) for minor in order}
    slices = [
        SlicePattern(_dynamic_devices(group, minor), () if separate_counters else (counters[minor],))
        for minor in order
    ]
    if separate_counters:
        slices.insert(0, SlicePattern(counters=tuple(counters.values())))
    return PoolPattern(group.release.driver, tuple(slices))


def is_estimated(product: str, profiles: Iterable[str] | None = None) -> bool:
    """Amounts of these profiles, or of any, are not known, so that those published are made up."""
    chosen = mig_profiles_of(product)
    names = None if profiles is None else set(profiles)
    return any(
        None in (profile.memory_mib, *(getattr(profile, engine) for engine in ENGINES))
        for profile in chosen
        if names is None or profile.name in names or profile.older_name in names
    )


def _dynamic_devices(group: NodeGroup, minor: int) -> tuple[DevicePattern, ...]:
    product = group.kind.gpu
    devices = [
        _dynamic_device(group, minor, profile, start)
        for profile in mig_profiles_of(product)
        for start in profile.placements
    ]
    ampere = gpu_products()[product].architecture == "Ampere"
    if not ampere or group.line == _FIRST_DYNAMIC:
        amounts = _totals(product)
        lacking = ["addressingMode"] if group.line == _FIRST_DYNAMIC else []
        gpu = whole_gpu(group, minor, capacity=amounts, without=lacking)
        consumed = _consumption(minor, {**amounts, **_slice_names(range(memory_slices_of(product)))})
        devices.append(gpu._replace(device=gpu.device.changed({"consumes_counters": [consumed]})))
    return by_name(devices)


def _dynamic_device(group: NodeGroup, minor: int, profile: MigProfile, start: int) -> DevicePattern:
    type_ = group.release.devices["mig"]
    placement = Placement(profile.name, start, profile.memory_slices)
    parent = gpu_uuid("parentUUID", minor)
    values = {**parent_values(group, minor), "profile": profile.name, "uuid": None}
    if group.line == _FIRST_DYNAMIC:
        values |= {"addressingMode": None, "resource.kubernetes.io/pcieRoot": None}
    amounts = _amounts(profile, group.kind.gpu)
    device = Device(
        name=_device_name(group, minor, profile, placement),
        attributes=attributes_of(type_, values, seeded=(parent,)),
        capacity=capacity_of(type_, {**amounts}),
        consumes_counters=[_consumption(minor, {**amounts, **_slice_names(_slices(placement))})],
    )
    return DevicePattern(shared(device, group.shares), (parent,))


def _device_name(group: NodeGroup, minor: int, profile: MigProfile, placement: Placement) -> str:
    if group.line in _NAMED_BY_IDS:
        return f"gpu-{minor}-mig-{profile.gi_profile_id}-{placement.start}-{placement.size}"
    return group.release.devices["mig"].device_name.format(
        minor=minor,
        profile=re.sub(r"[^a-z0-9-]", "-", profile.name.lower().replace(".", "")),
        id=profile.gi_profile_id,
        start=placement.start,
    )


def _consumption(minor: int, amounts: dict[str, str]) -> DeviceCounterConsumption:
    return DeviceCounterConsumption(counter_set=f"gpu-{minor}-counter-set", counters=_counters(amounts))


def _counters(amounts: dict[str, str]) -> dict[str, Counter]:
    """Counters have the names of capacities, split at capitals with hyphens."""
    return {
        re.sub(r"([a-z])([A-Z])", r"\1-\2", name).lower(): Counter(value=value)
        for name, value in amounts.items()
    }


def _slice_names(numbers: Iterable[int]) -> dict[str, str]:
    return {f"memory-slice-{number}": "1" for number in numbers}


def _slices(placement: Placement) -> range:
    return range(placement.start, placement.start + placement.size)


def _amounts(profile: MigProfile, product: str) -> dict[str, str]:
    """The capacities of a profile; what is not known is made up as `docs/fleets.md` says."""
    return _printed(_numbers(profile, product))


def _totals(product: str) -> dict[str, str]:
    """The counters of a GPU: of each capacity the largest that a profile has."""
    numbers = [_numbers(profile, product) for profile in mig_profiles_of(product)]
    return _printed({name: max(each[name] for each in numbers) for name in numbers[0]})


def _numbers(profile: MigProfile, product: str) -> dict[str, int]:
    engines = {to_camel(engine): getattr(profile, engine) or 0 for engine in ENGINES}
    memory = profile.memory_mib
    if memory is None:
        total = gpu_products()[product].memory_mib or 0
        memory = total * profile.memory_slices // memory_slices_of(product) // 1024 * 1024
    return {"memory": memory, **engines}


def _printed(numbers: dict[str, int]) -> dict[str, str]:
    return {name: mebibytes(number) if name == "memory" else str(number) for name, number in numbers.items()}


def _profile(group: NodeGroup, name: str) -> MigProfile:
    profile = find_mig_profile(name, group.kind.gpu)
    assert profile is not None  # noqa: S101  (the settings of a group are checked)
    return profile
