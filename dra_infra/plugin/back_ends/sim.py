"""The simulated driver: claims run end to end on a machine without the hardware."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from dra_infra.catalog.drivers import drivers
from dra_infra.errors import Problem
from dra_infra.fleet import Fleet
from dra_infra.plugin.back_end import Inventory
from dra_infra.plugin.back_ends.sim_commands import Binding, Commands, is_for, malformed
from dra_infra.plugin.back_ends.sim_edits import edits_of, marker_of, uuid_of
from dra_infra.plugin.back_ends.sim_faults import (
    WatchedCommands,
    apply,
    devices_like,
    disturb_preparing,
    gone_devices,
    unknown_devices,
)
from dra_infra.plugin.back_ends.sim_hardware import (
    Hardware,
    Use,
    config_text,
    refuse_conflicts,
    refuse_partial_partitions,
    refuse_unknown,
)
from dra_infra.plugin.back_ends.sim_node import simulate_node
from dra_infra.plugin.claims import Claim, ClaimReference, Edits
from dra_infra.plugin.configs import EffectiveConfig
from dra_infra.plugin.disk import Disk

_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
_INTERVALS: Final = ("Default", "Short", "Medium", "Long")
"""Intervals of time slices, as nvidia-smi counts them from 0."""


def _silent(_: Sequence[Problem]) -> None:
    """Ignore problems."""


class SimulatedBackEnd:
    """Devices of a named fleet, a `BackEnd`.

    Args:
        fleet: What the node has: `hgx-h100`, `a100-80gb mig=1g.10gb*7`, `example`, a file, or a fleet.
        node: Name of the node.
        folder: Keeps what hardware would keep: who has a device, MIG devices, slices of time. Runtimes mount files of it.
        driver: Which of the fleet's drivers, or what to call the one that there is; None for the fleet's own.
        commands: The file that says what happens to devices; it need not be there.
        noticed: Is told what is wrong with that file.
        mig_delay: Seconds that making a MIG device takes.
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
        commands: Path | None = None,
        noticed: Callable[[Sequence[Problem]], None] = _silent,
        mig_delay: float = 0.0,
        boot_id: str | None = None,
        disk: Disk | None = None,
    ) -> None:
        self._node = simulate_node(fleet, node=node, driver=driver)
        self.hardware = Hardware(folder, boot_id or _BOOT_ID.read_text().strip(), disk)
        self._commands_path = commands
        self._commands = WatchedCommands(commands, noticed, self._judge)
        self._mig_delay = mig_delay
        self._inventory: tuple[Commands, frozenset[str], Inventory] | None = None
        self._tidy = False

    @property
    def driver(self) -> str:
        """Name of the driver."""
        return self._node.driver

    @property
    def whole_names_only(self) -> bool:
        """True where the simulated driver ignores configs which name a request with subrequests: those of the catalogue do.

        Source: nvidia driver 25.3 to 0.5 and Kubernetes' example driver, which compare names as they are.
        """
        return self._node.origin in drivers()

    def inventory(self) -> Inventory:
        """Devices that there are now."""
        commands = self._commands.now()
        withdrawn = self._passed_through()
        kept = self._inventory
        # Asked again and again by those who wait for a change of it.
        if kept is None or kept[0] is not commands or kept[1] != withdrawn:
            kept = self._inventory = commands, withdrawn, apply(self._node, commands, withdrawn)
        return kept[2]

    def watch(self, changed: Callable[[], None]) -> None:
        """Call *changed* whenever commands change; several may watch."""
        self._commands.watch(changed)

    def close(self) -> None:
        """Stop watching, and end what takes long."""
        self._commands.close()

    def binding(self, claim: ClaimReference, device: str) -> Binding | None:
        """Binding that commands give to a claim's device with binding conditions; None where nothing is decided yet."""
        said = [each for each in self._commands.now().bindings if each.device in ("", device)]
        return next((each for each in reversed(said) if is_for(each.claim, claim)), None)

    def prepare(self, claim: Claim) -> Sequence[Edits]:
        """Take the devices, make those that are made on demand, and set what the configs ask for.

        Raises:
            PluginError: `device-not-allocatable`, `device-held`, `config-conflict`, `fabric-partition-mismatch`,
                `sim-told-to-fail`,
                `plugin-folder-not-usable`, and the codes of `ConfigDecoder.decode`.
        """
        self._tidy_once()
        commands = self._commands.now()
        refuse_unknown(self._node, claim, gone_devices(self._node, commands))
        configs = self._node.decoder.decode(claim, self._node.type_of)
        wanted = {
            each.device: config
            for each, config in zip(claim.devices, configs, strict=True)
            if not each.admin_access
        }
        refuse_partial_partitions(self._node, claim, wanted)
        refuse_conflicts(self._node, self.hardware, claim, wanted)
        for device, config in wanted.items():
            self.hardware.take(Use(device, claim.uid), config_text(config))
            self._set_up(device, config)
        # Late, so that there is something to undo.
        disturb_preparing(commands, claim, self._commands.ended.wait)
        marker = self.hardware.write_marker(claim.uid, marker_of(self._node, claim, configs))
        self._notify_passed_through()
        return edits_of(self._node, claim, configs, str(marker))

    def release(self, claim: Claim) -> None:
        """Undo it, whatever of it was done.

        Raises:
            PluginError: `plugin-folder-not-usable`.
        """
        self._tidy_once()
        others = self.hardware.holders(but=claim.uid)
        for use in self.hardware.uses_of(claim.uid):
            if use.device not in others:
                self.hardware.reset(use.device)
                self.hardware.destroy(use.device)
            self.hardware.give_back(use)
        self.hardware.remove_marker(claim.uid)
        self._notify_passed_through()

    def _tidy_once(self) -> None:
        # Not at the start: then another instance may be writing. Whoever prepares or releases is alone.
        if not self._tidy:
            self.hardware.tidy()
            self._tidy = True

    def _set_up(self, device: str, config: EffectiveConfig) -> None:
        if self._node.is_made(device) and device not in self.hardware.made():
            self._commands.ended.wait(self._mig_delay)
            self.hardware.make(device, self._mig(device))
        if config.strategy == "MPS":
            self.hardware.share(device, {"computeMode": "EXCLUSIVE_PROCESS", **config.mps})
        elif config.strategy == "TimeSlicing" and self._node.type_of(device) == "gpu":
            number = _INTERVALS.index(config.interval)
            slices = {"computeMode": "DEFAULT", "interval": config.interval, "timeSlice": number}
            self.hardware.share(device, slices)

    def _mig(self, device: str) -> dict[str, Any]:
        return {
            "uuid": uuid_of(self._node, device),
            "profile": self._node.attribute(device, "profile"),
            "parentUUID": self._node.attribute(device, "parentUUID"),
        }

    def _passed_through(self) -> frozenset[str]:
        """Devices withdrawn since their GPU is in use otherwise: whole, or passed through (nvidia driver, VFIO)."""
        if not self._node.passes_through:
            return frozenset()
        node = self._node
        used = {(node.gpu_of(use.device), node.type_of(use.device) == "vfio") for use in self.hardware.uses()}
        return frozenset(
            name for name in node.devices if (node.gpu_of(name), node.type_of(name) != "vfio") in used
        )

    def _notify_passed_through(self) -> None:
        if self._node.passes_through:
            self._commands.notify()

    def _judge(self, commands: Commands) -> Iterator[Problem]:
        for name in unknown_devices(self._node, commands):
            if self._commands_path:
                yield malformed(
                    self._commands_path,
                    name,
                    "there is no such device",
                    severity="warning",
                    hint=devices_like(name, self._node),
                )
