"""The simulated driver: claims run end to end on a machine without the hardware."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from dra_infra.errors import PluginError, Problem
from dra_infra.model.fleet import Fleet
from dra_infra.model.quantity import Quantity
from dra_infra.plugin.back_end import Inventory
from dra_infra.plugin.back_ends.sim_edits import edits_of, marker_of, uuid_of
from dra_infra.plugin.back_ends.sim_hardware import Hardware, Use
from dra_infra.plugin.back_ends.sim_node import NVIDIA, simulate_node
from dra_infra.plugin.claims import Claim, Edits
from dra_infra.plugin.configs import EffectiveConfig
from dra_infra.plugin.disk import Disk

_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
_UNCHANGED: Final = "Default"
_INTERVALS: Final = ("Default", "Short", "Medium", "Long")
"""As nvidia-smi counts them, from 0."""


class SimulatedBackEnd:
    """Devices of a named fleet, a `BackEnd`.

    Args:
        fleet: What the node has: `hgx-h100`, `a100-80gb mig=1g.10gb*7`, `example`, a file, or a fleet.
        node: Name of the node.
        folder: Keeps what hardware would keep: who has a device, MIG devices, slices of time.
        driver: Which of the fleet's drivers, or what to call its only one; None for the fleet's own.
        boot_id: Of the machine; None for what the kernel says.
        disk: What changes the folder.

    Raises:
        FleetError: As `load_fleet`.
        PluginError: `sim-no-devices`, `plugin-folder-not-usable`.
    """

    def __init__(
        self,
        fleet: str | Fleet,
        *,
        node: str,
        folder: Path,
        driver: str | None = None,
        boot_id: str | None = None,
        disk: Disk | None = None,
    ) -> None:
        self._node = simulate_node(fleet, node=node, driver=driver)
        self._hardware = Hardware(folder, boot_id or _BOOT_ID.read_text().strip(), disk)
        self._tidy = False

    @property
    def driver(self) -> str:
        """Name of the driver."""
        return self._node.driver

    def inventory(self) -> Inventory:
        """What there is now."""
        return Inventory(devices=tuple(self._node.devices.values()), counters=self._node.counters)

    def watch(self, changed: Callable[[], None]) -> None:
        """Call *changed* whenever `inventory` may answer something else."""

    def close(self) -> None:
        """Stop watching."""

    def prepare(self, claim: Claim) -> Sequence[Edits]:
        """Take the devices, make those that are made on demand, and set what the configs ask for.

        Raises:
            PluginError: `device-not-allocatable`, `device-held`, `config-conflict`, `plugin-folder-not-usable`, and the
                codes of `ConfigDecoder.decode`.
        """
        self._tidy_once()
        self._refuse_unknown(claim)
        configs = self._node.decoder.decode(claim, self._node.type_of)
        wanted = {
            each.device: config
            for each, config in zip(claim.devices, configs, strict=True)
            if not each.admin_access
        }
        others = frozenset(use for use in self._hardware.uses() if use.uid != claim.uid)
        self._refuse_held(claim, wanted, others)
        for device, config in wanted.items():
            self._hardware.take(Use(device, claim.uid), _text(config))
            self._set_up(device, config)
        marker = self._hardware.write_marker(claim.uid, marker_of(self._node, claim, configs))
        return edits_of(self._node, claim, configs, str(marker))

    def release(self, claim: Claim) -> None:
        """Undo it, whatever of it was done.

        Raises:
            PluginError: `plugin-folder-not-usable`.
        """
        self._tidy_once()
        uses = self._hardware.uses()
        for use in sorted(use for use in uses if use.uid == claim.uid):
            if not any(other.device == use.device and other.uid != claim.uid for other in uses):
                self._hardware.reset(use.device)
                self._hardware.destroy(use.device)
            self._hardware.give_back(use)
        self._hardware.remove_marker(claim.uid)

    @property
    def state_folder(self) -> Path:
        """Where the state of the hardware is, of this boot."""
        return self._hardware.path

    def sharing(self) -> Mapping[str, Mapping[str, Any]]:
        """Slices of time and MPS as they are set now, by the device's name."""
        return self._hardware.sharing()

    def mig_devices(self) -> Mapping[str, Mapping[str, Any]]:
        """MIG devices that were made on demand and are there now, by name."""
        return self._hardware.made()

    def _tidy_once(self) -> None:
        # Not at the start: then another instance may be writing. Whoever prepares or releases is alone.
        if not self._tidy:
            self._hardware.tidy()
            self._tidy = True

    def _set_up(self, device: str, config: EffectiveConfig) -> None:
        if self._node.is_made(device) and device not in self._hardware.made():
            self._hardware.make(device, self._mig(device))
        if config.strategy == "MPS":
            self._hardware.share(device, {"computeMode": "EXCLUSIVE_PROCESS", **config.mps})
        elif config.strategy == "TimeSlicing" and self._node.type_of(device) == "gpu":
            interval = config.interval or _UNCHANGED
            slices = {
                "computeMode": "DEFAULT",
                "interval": interval,
                "timeSlice": _INTERVALS.index(interval),
            }
            self._hardware.share(device, slices)

    def _mig(self, device: str) -> dict[str, Any]:
        return {
            "uuid": uuid_of(self._node, device),
            "profile": self._node.attribute(device, "profile"),
            "parentUUID": self._node.attribute(device, "parentUUID"),
        }

    def _refuse_unknown(self, claim: Claim) -> None:
        problems = [
            Problem(
                path=f"{claim}: device {each.device}",
                code="device-not-allocatable",
                message="requested device is not allocatable: there is none of that name",
                hint="delete the pod: a new one is allocated what there is now",
            )
            for each in claim.devices
            if each.device not in self._node.devices
        ]
        if problems:
            raise PluginError(problems)

    def _refuse_held(
        self, claim: Claim, wanted: Mapping[str, EffectiveConfig], others: frozenset[Use]
    ) -> None:
        problems: list[Problem] = []
        for device, config in wanted.items():
            for use in sorted(others):
                problems += self._against(claim, device, config, use)
        problems += self._crowded(claim, wanted, others)
        if problems:
            raise PluginError(problems)

    def _against(self, claim: Claim, device: str, config: EffectiveConfig, use: Use) -> Iterator[Problem]:
        path = f"{claim}: device {device}"
        node = self._node
        if use.device == device:
            if node.origin == NVIDIA and self._hardware.config_of(use) != _text(config):
                yield Problem(
                    path=path,
                    code="config-conflict",
                    message=f"requested device {device} has conflicting configuration with already prepared claim {use.uid}",
                    hint="give all claims that share a device the same config",
                )
        elif node.gpu_of(use.device) == node.gpu_of(device) and "vfio" in (
            node.type_of(device),
            node.type_of(use.device),
        ):
            yield _held(path, f"its GPU is in use as {use.device} for the claim with the UID {use.uid}")

    def _crowded(
        self, claim: Claim, wanted: Mapping[str, EffectiveConfig], others: frozenset[Use]
    ) -> Iterator[Problem]:
        """What the placement rules of MIG say, whole GPUs included: devices of one GPU share its counters."""
        there = {use.device: use.uid for use in sorted(others)}
        for counters in self._node.counters:
            mine = [device for device in wanted if counters.name in self._consumed(device)]
            rivals = [device for device in there if counters.name in self._consumed(device)]
            taken: dict[str, Any] = {}
            for device in dict.fromkeys([*mine, *rivals]):
                for name, amount in self._consumed(device)[counters.name].items():
                    taken[name] = taken.get(name, 0) + amount
            over = [
                name
                for name, counter in (counters.counters or {}).items()
                if taken.get(name, 0) > Quantity.parse(counter.value).value
            ]
            if mine and over and set(rivals) - set(mine):
                held = ", ".join(f"{each} of {there[each]}" for each in rivals if each not in mine)
                yield _held(
                    f"{claim}: device {mine[0]}", f"does not fit {counters.name} beside {held}: {over[0]}"
                )

    def _consumed(self, device: str) -> dict[str, dict[str, Any]]:
        known = self._node.devices.get(device)
        return {
            each.counter_set: {
                name: Quantity.parse(counter.value).value for name, counter in (each.counters or {}).items()
            }
            for each in (known.consumes_counters if known else None) or ()
        }


def _held(path: str, message: str) -> Problem:
    hint = "the kubelet asks again when that claim's pods are gone; if it stays so, look for them"
    return Problem(path=path, code="device-held", message=message, hint=hint)


def _text(config: EffectiveConfig) -> str:
    """A config as it is compared: two texts of one meaning are one config."""
    return json.dumps([config.kind, config.values], sort_keys=True)
