"""MIG devices, static and dynamic, as the release of the NVIDIA driver publishes them.

Source: cmd/gpu-kubelet-plugin/partitions.go, mig.go and driver.go in kubernetes-sigs/dra-driver-nvidia-gpu.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from dra_infra.catalog.device_patterns import (
    DevicePattern,
    PoolPattern,
    Seeded,
    SlicePattern,
    attributes_of,
    by_name,
    capacity_of,
    mebibytes,
)
from dra_infra.catalog.gpu_publication import gpu_uuid, parent_values, shared, whole_gpu
from dra_infra.catalog.mig import (
    ENGINES,
    MigProfile,
    Placement,
    find_mig_profile,
    memory_slices_of,
    mig_profiles_of,
    placements_of,
)
from dra_infra.catalog.node_groups import NodeGroup
from dra_infra.catalog.records import gpu_products
from dra_infra.model.device import Counter, CounterSet, DeviceCounterConsumption
from dra_infra.model.resource_slice import Device

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
    counters = {minor: _counter_set(group, minor) for minor in order}
    slices = [
        SlicePattern(_dynamic_devices(group, minor), () if separate_counters else (counters[minor],))
        for minor in order
    ]
    if separate_counters:
        slices.insert(0, SlicePattern(counters=tuple(counters.values())))
    return PoolPattern(group.release.driver, tuple(slices))


def is_estimated(product: str, profiles: Iterable[str] | None = None) -> bool:
    """Whether amounts of these profiles, or of any, are not known, so that what is published of them is made up."""
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


def _counter_set(group: NodeGroup, minor: int) -> CounterSet:
    product = group.kind.gpu
    amounts = {**_totals(product), **_slice_names(range(memory_slices_of(product)))}
    return CounterSet(name=_counter_set_name(minor), counters=_counters(amounts))


def _consumption(minor: int, amounts: dict[str, str]) -> DeviceCounterConsumption:
    return DeviceCounterConsumption(counter_set=_counter_set_name(minor), counters=_counters(amounts))


def _counter_set_name(minor: int) -> str:
    return f"gpu-{minor}-counter-set"


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
    engines = {_camel(engine): getattr(profile, engine) or 0 for engine in ENGINES}
    memory = profile.memory_mib
    if memory is None:
        total = gpu_products()[product].memory_mib or 0
        memory = total * profile.memory_slices // memory_slices_of(product) // 1024 * 1024
    return {"memory": memory, **engines}


def _printed(numbers: dict[str, int]) -> dict[str, str]:
    return {name: mebibytes(number) if name == "memory" else str(number) for name, number in numbers.items()}


def _camel(field: str) -> str:
    first, *others = field.split("_")
    return first + "".join(map(str.capitalize, others))


def _profile(group: NodeGroup, name: str) -> MigProfile:
    profile = find_mig_profile(name, group.kind.gpu)
    assert profile is not None  # noqa: S101  (the settings of a group are checked)
    return profile
