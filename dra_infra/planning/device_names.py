"""What the devices of a fleet are called in a report: `H100 80GB HBM3`, `MIG 1g.10gb`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from dra_infra.model.fleet import Fleet
from dra_infra.model.resource_slice import Device, DeviceAttribute
from dra_infra.planning.wording import join_words
from dra_infra.simulation.placement import DeviceChoice

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
