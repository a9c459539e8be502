"""Advice on a program for a fleet: hardware and settings that the nodes lack for what it asks for.

Placement says that nothing fits; this says why, where the setting of the nodes is the reason. Each finding is at the
field that asks for the missing thing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dra_infra.advice.claims import Leaf, class_selectors, leaves_of
from dra_infra.advice.findings import Finding, Place
from dra_infra.advice.references import KnownObjects
from dra_infra.advice.study import study
from dra_infra.catalog.drivers import Pins
from dra_infra.catalog.vocabulary import product_memory
from dra_infra.errors import InvalidSpecError, Problem
from dra_infra.fleet import Fleet
from dra_infra.kubernetes.api import (
    CLAIM_KINDS,
    Device,
    DeviceCapacity,
    DeviceClaim,
    Release,
    ResourceClaim,
    ResourceClaimTemplate,
    can_decode,
    decode,
    drop_from_slice,
)
from dra_infra.kubernetes.apiserver import environment_of
from dra_infra.kubernetes.cel import DeviceView, Environment, compile_expression
from dra_infra.output.wording import join_words
from dra_infra.specs.compute_domains import CLIQUE_LABEL, is_compute_domain

MOST_COUNTER_SETS: Final = 8
"""ResourceSliceMaxCounterSets of resource/v1 types.go: from Kubernetes 1.35 on, all of a node are in one slice."""

_DRIVER: Final = "gpu.nvidia.com"
_PROFILE: Final = Place("attribute", _DRIVER, "profile")
_NEEDS_MIG_MODE: Final = ("A100", "A30")
"""GPUs that cannot change to MIG mode while the driver runs: from 0.4 on, without it they are published whole alone."""


@dataclass(frozen=True, eq=False)
class _Hardware:
    """The MIG profiles and whole GPUs of a fleet, as far as advice asks for them.

    Args:
        profiles: Profiles of its MIG devices.
        dynamic: Whether MIG devices are made when they are allocated.
        whole: A device of each product that is published whole, and whether it can be partitioned.
    """

    profiles: frozenset[str]
    dynamic: bool
    whole: Mapping[tuple[str, bool], Device]


def advise_on_fleet(
    objects: Sequence[Mapping[str, Any]],
    fleet: Fleet,
    *,
    release: Release,
    pins: Pins,
    known_objects: KnownObjects,
) -> Iterator[tuple[int | None, Problem]]:
    """Advice on objects for the hardware that they are meant for.

    Returns:
        Pairs of an object's position, or None for the fleet itself, and a warning whose path begins inside the object;
        codes `mig-not-in-fleet`, `memory-just-missed`, `no-fabric`, `too-many-items`, `field-dropped`.
    """
    yield from ((None, problem) for problem in (*_check_counters(fleet), *_check_gates(fleet, release)))
    environment = environment_of(release)
    hardware: _Hardware | None = None
    for index, manifest in enumerate(objects):
        if is_compute_domain(manifest):
            yield from ((index, problem) for problem in _check_fabric(fleet))
        found = _claim_of(manifest, environment)
        if found is None:
            continue
        hardware = hardware or _read(fleet)
        claim, path = found
        for position, request in enumerate(claim.requests or ()):
            leaves = leaves_of(request, f"{path}.requests[{position}]")
            selectors = [
                (
                    *(class_selectors(str(leaf.request.device_class_name), known_objects, pins) or ()),
                    *leaf.selectors,
                )
                for leaf in leaves
            ]
            yield from (
                (index, problem)
                for problem in _check_profiles(leaves, selectors, hardware, fleet, environment, pins)
            )
            for leaf, texts in zip(leaves, selectors, strict=True):
                yield from ((index, problem) for problem in _check_memory(leaf, texts, hardware, environment))


def _claim_of(manifest: Mapping[str, Any], environment: Environment) -> tuple[DeviceClaim, str] | None:
    if manifest.get("kind") not in CLAIM_KINDS or not can_decode(manifest):
        return None
    record = decode(manifest, minor=environment.minor).record
    if isinstance(record, ResourceClaim):
        return record.spec.devices, "spec.devices"
    if isinstance(record, ResourceClaimTemplate):
        return record.spec.spec.devices, "spec.spec.devices"
    return None


def _read(fleet: Fleet) -> _Hardware:
    profiles: set[str] = set()
    whole: dict[tuple[str, bool], Device] = {}
    dynamic = False
    for slice_ in fleet.slices:
        if slice_.spec.driver != _DRIVER:
            continue
        for device in slice_.spec.devices or ():
            profile, product = _text(device, "profile"), _text(device, "productName")
            dynamic = dynamic or bool(device.consumes_counters)
            if profile:
                profiles.add(profile)
            elif product and _text(device, "type") == "gpu":
                whole.setdefault((product, bool(device.consumes_counters)), device)
    return _Hardware(frozenset(profiles), dynamic, whole)


def _text(device: Device, name: str) -> str:
    attribute = (device.attributes or {}).get(name)
    return (attribute.string if attribute is not None else None) or ""


def _check_profiles(
    leaves: Sequence[Leaf],
    selectors: Sequence[tuple[str, ...]],
    hardware: _Hardware,
    fleet: Fleet,
    environment: Environment,
    pins: Pins,
) -> Iterator[Problem]:
    """Check that MIG devices of a profile are there, under one of the alternatives."""
    asked = [_profiles_of(texts, environment, pins) for texts in selectors]
    if not asked or not all(asked) or any(wanted & hardware.profiles for wanted in asked):
        return
    if not hardware.profiles and not hardware.whole:
        return
    named = join_words(sorted(set().union(*asked)))
    has = f"it has {join_words(sorted(hardware.profiles))}" if hardware.profiles else "its GPUs are whole"
    hint = "partition the nodes (mig_config of GpuOperator), ask for what they have, or turn DynamicMIG on"
    off = sorted(
        product
        for product, partitioned in hardware.whole
        if not partitioned and any(name in product for name in _NEEDS_MIG_MODE)
    )
    if hardware.dynamic and off:
        hint = f"turn MIG mode on before the driver starts: DynamicMIG does not for {join_words(off)}"
    yield Finding(
        "mig-not-in-fleet", f"no MIG device of {fleet.name} has the profile {named}: {has}", hint
    ).at(leaves[0].path)


def _profiles_of(texts: Sequence[str], environment: Environment, pins: Pins) -> frozenset[str]:
    """The profiles of which a device must have one; none where any will do."""
    mig = pins.releases[_DRIVER].devices["mig"]
    for text in texts:
        found = study(text, environment)
        for test in found.on(mig).tests if found is not None else ():
            if test.place == _PROFILE and test.operator in ("==", "in"):
                return frozenset(map(str, test.values))
    return frozenset()


def _check_memory(
    leaf: Leaf, texts: Sequence[str], hardware: _Hardware, environment: Environment
) -> Iterator[Problem]:
    """Find GPUs that are left out for the little memory that DynamicMIG takes: they then have that of their largest profile."""
    for (product, partitioned), device in hardware.whole.items():
        physical = product_memory().get(product)
        if not partitioned or physical is None or "memory" not in (device.capacity or {}):
            continue
        reported = device.capacity["memory"].value  # type: ignore[index]  # it has one
        full = {**(device.capacity or {}), "memory": DeviceCapacity(value=f"{physical}Mi")}
        if _passes(texts, device, full, environment) and not _passes(
            texts, device, device.capacity, environment
        ):
            yield Finding(
                "memory-just-missed",
                f"with DynamicMIG an {product} reports {reported} of its {physical}Mi, those of its largest MIG profile",
                f"ask for {reported} or less",
            ).at(f"{leaf.path}.selectors" if leaf.selectors else leaf.path)


def _passes(texts: Sequence[str], device: Device, capacity: Any, environment: Environment) -> bool:
    view = DeviceView(_DRIVER, device.attributes, capacity)
    try:
        return all(compile_expression(text, environment).matches(view) for text in texts)
    except InvalidSpecError:
        return False


def _check_fabric(fleet: Fleet) -> Iterator[Problem]:
    if fleet.nodes and not any(CLIQUE_LABEL in node.labels for node in fleet.nodes):
        yield Finding(
            "no-fabric",
            f"no node of {fleet.name} has the label {CLIQUE_LABEL}: their GPUs are not joined across nodes, and pods get no "
            "channel, without a word",
            "leave the ComputeDomain out, or name racks such as gb200-nvl72",
        ).at("spec")


def _check_gates(fleet: Fleet, release: Release) -> Iterator[Problem]:
    """Yield the fields of slices that a server of the release clears, one for each gate, at the first slice that has them."""
    first: dict[str, tuple[str, str]] = {}
    counts: Counter[str] = Counter()
    for slice_ in fleet.slices:
        lost = {each.gate: each.path for each in reversed(drop_from_slice(slice_.spec, release)[1])}
        counts.update(lost.keys())
        for gate, path in lost.items():
            first.setdefault(gate, (slice_.metadata.name or "", path))
    for gate, (name, path) in first.items():
        others = f", and in {counts[gate] - 1:,} other slices" if counts[gate] > 1 else ""
        yield Finding(
            "field-dropped",
            f"Kubernetes {release.minor} clears it without a word{others}: the gate {gate} is off, so the answer is that of "
            "devices without it",
            f"name the gate if the cluster has it on: {gate}=true",
        ).at(f"{fleet.name}.ResourceSlice {name}.{path}")


def _check_counters(fleet: Fleet) -> Iterator[Problem]:
    for slice_ in fleet.slices:
        sets = len(slice_.spec.shared_counters or ())
        if sets > MOST_COUNTER_SETS:
            yield Finding(
                "too-many-items",
                f"{sets} counter sets, the API server takes at most {MOST_COUNTER_SETS} in a slice: the GPUs of such a node "
                "are not published with DynamicMIG from Kubernetes 1.35 on",
                "turn DynamicMIG off on nodes with more than 8 GPUs that can be partitioned",
            ).at(f"{fleet.name}.ResourceSlice {slice_.metadata.name}.spec.sharedCounters")
