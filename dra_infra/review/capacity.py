"""Placement of both sides of a review on one fleet, beside what runs there, and what each leaves of it.

What base and head leave is compared per device class and MIG profile. Devices that pods ask of a device plugin by an
extended resource, `limits: {nvidia.com/gpu: 1}`, are not placed. In a report the devices of a fleet are called as in
`H100 80GB HBM3`, `MIG 1g.10gb`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from dra_infra.catalog.snapshots import Snapshot
from dra_infra.kubernetes.api.device_class import DeviceClass
from dra_infra.kubernetes.api.pods import PodTemplate, find_pod_templates
from dra_infra.kubernetes.api.resource_slice import Device, DeviceAttribute
from dra_infra.kubernetes.scheduler.extended_resources import GATE, OF_CLASS
from dra_infra.kubernetes.scheduler.fleet import Fleet
from dra_infra.kubernetes.scheduler.placed_pods import NOTHING_TAKEN
from dra_infra.output.wording import count_of, join_words
from dra_infra.placement.placement import DeviceChoice, Placement, Room
from dra_infra.placement.scheduling import place
from dra_infra.program_objects import NotSeen, Program, get_field
from dra_infra.review.running import find_taken

NO_ROOM = Room(claims=0, largest=0, per_node={})


@dataclass(frozen=True, kw_only=True, slots=True)
class RoomChange:
    """How many more claims of one kind fit beside the program.

    Args:
        name: The device class, or MIG profile.
        before: What the base leaves.
        after: What the head leaves.
    """

    name: str
    before: Room
    after: Room

    @property
    def spread(self) -> str:
        """Where what is left lies: `largest 8 devices; 8 on 3 nodes, 2 on 1 node`."""
        if not self.after.claims:
            return "none left"
        places = ", ".join(
            f"{claims:,} on {count_of(nodes, 'node')}" for claims, nodes in self.after.per_node.items()
        )
        return f"largest claim {count_of(self.after.largest, 'device')}; {places}"


def compare_rooms(before: Placement | None, after: Placement | None) -> tuple[RoomChange, ...]:
    """One entry per class and profile that has devices on either side, by name."""
    old = {each.name: each.after for each in before.headroom} if before else {}
    new = {each.name: each.after for each in after.headroom} if after else {}
    return tuple(
        RoomChange(name=name, before=old.get(name, NO_ROOM), after=new.get(name, NO_ROOM))
        for name in sorted({*old, *new})
    )


def find_unplaced_resources(program: Program, shipped: Sequence[DeviceClass] = ()) -> Iterator[NotSeen]:
    """One per workload without claims that asks for extended resources which no class serves.

    Args:
        program: Its objects; classes among them count before *shipped*.
        shipped: Classes of the fleet.
    """
    served: set[str] = set()
    is_on = program.release.enabled(GATE)
    if is_on:
        served = {str(each.spec.extended_resource_name) for each in shipped}
        served |= {
            str(get_field(item.manifest, "spec.extendedResourceName"))
            for item in program.objects
            if item.ref.kind == "DeviceClass"
        }
    for item in program.objects:
        for template in find_pod_templates(item.manifest):
            names = [] if template.claims else sorted(_find_names(template))
            if names and not any(name in served or (is_on and name.startswith(OF_CLASS)) for name in names):
                reason = f"it asks the device plugin for {join_words(names)}, not DRA: not placed"
                yield NotSeen(what="placement of", name=str(template.owner), reason=reason)


def _find_names(template: PodTemplate) -> set[str]:
    found: set[str] = set()
    for list_name in ("initContainers", "containers"):
        containers = template.spec.get(list_name)
        for container in containers if isinstance(containers, list) else ():
            for amounts in ("limits", "requests"):
                asked: Any = (
                    get_field(container, f"resources.{amounts}") if isinstance(container, Mapping) else None
                )
                found |= {str(name) for name in (asked if isinstance(asked, Mapping) else {})}
    return {name for name in found if _is_extended(name)}


def _is_extended(name: str) -> bool:
    """True for a resource whose domain is not Kubernetes' own; IsExtendedResourceName of the API helpers."""
    domain, slash, _ = name.partition("/")
    return bool(slash) and (name.startswith(OF_CLASS) or not f".{domain}".endswith(".kubernetes.io"))


def place_sides(
    base: Program, head: Program, fleet: Fleet, snapshot: Snapshot | None = None
) -> tuple[Placement, Placement]:
    """Where the pods of both go, with nothing of the one in the way of the other.

    Args:
        base: The program before.
        head: The program after.
        fleet: Where to; that of the snapshot, when it is one.
        snapshot: What runs there: what is not the programs' own is not free.
    """
    taken = find_taken(snapshot, base, head)[0] if snapshot else NOTHING_TAKEN
    before, after = (
        place(
            [each.manifest for each in side.objects],
            fleet,
            taken=taken,
            release=side.release,
            with_headroom=True,
        )
        for side in (base, head)
    )
    return before, after


TIMES: Final = "\N{MULTIPLICATION SIGN}"

DeviceKey = tuple[str, str, str]
"""Driver, pool, name: what makes a device unique in a cluster."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DeviceNames:
    """The models of all devices of one fleet, by device."""

    models: Mapping[DeviceKey, str] = field(repr=False)
    kinds: frozenset[str] = field(init=False, repr=False)
    """All models of the fleet."""

    def __post_init__(self) -> None:
        """Gather the models once: every workload of a review asks for them."""
        object.__setattr__(self, "kinds", frozenset(self.models.values()))

    @classmethod
    def of(cls, fleet: Fleet) -> DeviceNames:
        """Read every slice once."""
        return cls(
            models={
                (slice_.spec.driver, slice_.spec.pool.name, device.name): name_model(
                    slice_.spec.driver, device
                )
                for slice_ in fleet.slices
                for device in slice_.spec.devices or ()
            }
        )

    def describe(self, devices: Iterable[DeviceChoice]) -> str:
        """`4 x H100 80GB HBM3 and 1 x MIG 1g.10gb`, with the sign for times; each device counts once."""
        keys = dict.fromkeys(key_of(choice) for choice in devices)
        counts = Counter(self.models.get(key, key[0]) for key in keys)
        return join_words(f"{number} {TIMES} {model}" for model, number in counts.items()) or "no devices"


def key_of(choice: DeviceChoice) -> DeviceKey:
    """The device that was chosen."""
    return choice.driver, choice.pool, choice.device


def name_model(driver: str, device: Device) -> str:
    """The model that NVIDIA's driver publishes, for partitions the profile, else the driver's name."""
    product = _read(device, driver, "productName").removeprefix("NVIDIA ")
    profile = _read(device, driver, "profile")
    if profile:
        return f"MIG {profile}"
    return product or _read(device, driver, "model") or driver


def _read(device: Device, driver: str, name: str) -> str:
    attributes = device.attributes or {}
    value = attributes.get(name) or attributes.get(f"{driver}/{name}") or DeviceAttribute()
    return value.string or ""
