"""NVML back end: NVIDIA GPUs of a node without NVIDIA's DRA driver.

They are found through NVML, and published as that driver publishes them.

It gives out what is there, and changes nothing of it: what the driver's chart does besides is refused
(`needs-vendor-driver`), with the word that NVIDIA's DRA driver does it. GPUs and MIG devices are looked for once, as
the driver does: who repartitions a GPU starts the plugin anew.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from dra_infra.errors import PluginError, Problem
from dra_infra.kubernetes.api import Device
from dra_infra.plugin.back_end import Inventory
from dra_infra.plugin.back_ends.driver_files import DriverRoot
from dra_infra.plugin.back_ends.nvml_devices import NvmlEdits, gpu_name, mig_device, mig_name, whole_device
from dra_infra.plugin.back_ends.nvml_gpus import Gpu, find_gpus, in_mig_mode
from dra_infra.plugin.back_ends.nvml_health import HealthMonitor
from dra_infra.plugin.back_ends.nvml_library import Nvml
from dra_infra.plugin.back_ends.nvml_mig import MigDevice
from dra_infra.plugin.claims import Claim, Edits

_KINDS_OF: Final = "gpu.nvidia.com"
"""The driver whose configs are understood, whatever name the devices are published under."""

_CHART: Final = (
    "install NVIDIA's driver in place of this plugin on the node: dra.DraDriver(...) deploys its chart"
)


def check_configs(claim: Claim, types: Mapping[str, str]) -> None:
    """Refuse what a config asks for and only NVIDIA's driver does: slices of time other than Default, MPS, VFIO.

    Args:
        claim: The claim.
        types: gpu or mig, by device.

    Raises:
        PluginError: `needs-vendor-driver`, and what the decoder says of a config that is none.
    """
    if not any(device.configs for device in claim.devices):
        return
    # Late: with the catalogue it takes 1.1 MiB and 44 ms, and most claims have no config.
    from dra_infra.plugin.configs import ConfigDecoder

    effective = ConfigDecoder(_KINDS_OF).decode(claim, lambda device: types[device])
    problems = [
        needs_vendor_driver(f"{claim}: device {device.device}", wish)
        for device, config in zip(claim.devices, effective, strict=True)
        for wish in _wishes(config.strategy, config.interval, device.configs)
    ]
    if problems:
        raise PluginError(problems)


def unknown(claim: Claim, device: str, *, in_mig_mode: bool) -> Problem:
    """Why a device that a claim was allocated is not given out."""
    if in_mig_mode:
        return switched(claim, device)
    path = f"{claim}: device {device}"
    if re.fullmatch(r"gpu-\d+-mig-.+", device):
        return needs_vendor_driver(path, "making this MIG device, which is not there,")
    if re.fullmatch(r"gpu-vfio-\d+", device):
        return needs_vendor_driver(path, "passing a GPU through with VFIO")
    return gone(claim, device, "it was not found at the plugin's start")


def switched(claim: Claim, device: str) -> Problem:
    """A GPU that would have to leave MIG mode."""
    return needs_vendor_driver(f"{claim}: device {device}", "taking this GPU out of MIG mode")


def gone(claim: Claim, device: str, why: str) -> Problem:
    """A device that was published and does not answer any more."""
    return Problem(
        path=f"{claim}: device {device}",
        code="device-not-allocatable",
        message=f"is not there any more: {why}",
        hint="see `nvidia-smi` on the node; after a change of GPUs or MIG devices, restart the plugin",
    )


def needs_vendor_driver(path: str, wish: str) -> Problem:
    """Something that changes the hardware's state."""
    return Problem(
        path=path, code="needs-vendor-driver", message=f"{wish} is not done through NVML alone", hint=_CHART
    )


def _wishes(strategy: str, interval: str, configs: tuple[str, ...]) -> Iterator[str]:
    if strategy == "MPS":
        yield "sharing by MPS, which needs a daemon for the claim,"
    elif strategy == "TimeSlicing" and interval not in ("", "Default"):
        yield f"setting slices of time to {interval}"
    if any(_kind(text) == "VfioDeviceConfig" for text in configs):
        yield "passing a GPU through with VFIO"


def _kind(text: str) -> Any:
    try:
        config = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return config.get("kind") if isinstance(config, dict) else None


DRIVER: Final = "gpu.nvidia.com"


class NvmlBackEnd:
    """The GPUs of this node (`BackEnd`).

    NVML is started by the first question, and a question that fails starts it anew: claims are released without it.

    Args:
        driver: Name under which they are published.
        driver_root: Folder of the driver's files as this process sees it.
        driver_root_on_host: The same folder on the node; None where it has the same path.
        toolkit: Path of nvidia-ctk; None to look for it, empty or /dev/null to do without.
        pynvml: NVML's bindings; None for those of nvidia-ml-py.
        noticed: Told of GPUs that are left out.
        system: Folder of /proc, /sys and /dev.
    """

    def __init__(
        self,
        *,
        driver: str = DRIVER,
        driver_root: str = "/",
        driver_root_on_host: str | None = None,
        toolkit: str | None = None,
        pynvml: Any = None,
        noticed: Callable[[Sequence[Problem]], None] = lambda _: None,
        system: Path = Path("/"),
    ) -> None:
        self._driver = driver
        self._nvml = Nvml(driver_root, pynvml=pynvml, system=system)
        root = DriverRoot(
            here=Path(driver_root), on_host=Path(driver_root_on_host or driver_root), system=system
        )
        self._edits = NvmlEdits(self._nvml, root, toolkit=toolkit)
        self._noticed = noticed
        self._sysfs = system / "sys"
        self._lock = threading.Lock()
        self._gpus: tuple[Gpu, ...] = ()
        self._monitor: HealthMonitor | None = None
        self._inventory: tuple[int, Inventory] | None = None
        self._watchers: list[Callable[[], None]] = []

    @property
    def driver(self) -> str:
        """As `BackEnd.driver`."""
        return self._driver

    @property
    def edits_from(self) -> str:
        """Source of the edits of containers: the path of nvidia-ctk, or that it is done without."""
        return self._edits.source

    def try_edits(self) -> str:
        """How much a container would get with the first device, and what said so; nobody gets it.

        Raises:
            PluginError: As `prepare`.
        """
        self._find()
        gpu = next(each for each in self._gpus if each.mig is None or each.mig)
        edits = self._edits.mig(gpu, gpu.mig[0]) if gpu.mig else self._edits.whole(gpu)
        counts = f"{len(edits.device_nodes)} device files, {len(edits.mounts)} files of the driver"
        return f"{counts}, by {self.edits_from}"

    def inventory(self) -> Inventory:
        """Devices that there are now, by name as NVIDIA's driver publishes them.

        Raises:
            PluginError: `nvml-not-usable`; `gpu-left-out` where no GPU is left.
        """
        monitor = self._find()
        # Asked every second by some, and made of models: kept until something is told of a device.
        if (kept := self._inventory) and kept[0] == monitor.changes:
            return kept[1]
        changes = monitor.changes
        devices = sorted((each for gpu in self._gpus for each in _devices(gpu)), key=lambda each: each.name)
        inventory = Inventory(
            devices=tuple(_tainted(each, monitor) for each in devices), health=monitor.health()
        )
        self._inventory = (changes, inventory)
        return inventory

    def watch(self, changed: Callable[[], None]) -> None:
        """As `BackEnd.watch`."""
        self._watchers.append(changed)

    def prepare(self, claim: Claim) -> Sequence[Edits]:
        """Edits of containers for each device; nothing is done to the devices.

        Raises:
            PluginError: `needs-vendor-driver`, `device-not-allocatable`, `toolkit-failed`, `driver-files-missing`,
                `nvml-not-usable`, and what is wrong with a config.
        """
        self._find()
        found = {
            name: (gpu, mig)
            for gpu in self._gpus
            for name, mig in ([(gpu_name(gpu), None)] if gpu.mig is None else _named_mig(gpu))
        }
        modes = {gpu_name(gpu) for gpu in self._gpus if gpu.mig is not None}
        if problems := [
            unknown(claim, each.device, in_mig_mode=each.device in modes)
            for each in claim.devices
            if each.device not in found
        ]:
            raise PluginError(problems)
        check_configs(claim, {name: "mig" if mig else "gpu" for name, (_, mig) in found.items()})
        return tuple(self._of(claim, each.device, *found[each.device]) for each in claim.devices)

    def release(self, claim: Claim) -> None:
        """Nothing: nothing was done."""

    def close(self) -> None:
        """As `BackEnd.close`."""
        with self._lock:
            if self._monitor:
                self._monitor.stop()
                self._monitor = None
                self._inventory = None
            self._nvml.stop()

    def _find(self) -> HealthMonitor:
        with self._lock:
            if self._monitor:
                return self._monitor
            self._nvml.start()
            gpus, problems = find_gpus(self._nvml, self._sysfs)
            if not any(gpu.mig is None or gpu.mig for gpu in gpus):
                raise PluginError([replace(each, severity="error") for each in problems])
            self._gpus = gpus
            self._monitor = HealthMonitor(
                self._nvml, gpus, driver=self._driver, changed=self._changed, noticed=self._noticed
            )
            self._monitor.start()
            monitor = self._monitor
        if problems:
            self._noticed(problems)
        return monitor

    def _changed(self) -> None:
        for changed in tuple(self._watchers):
            changed()

    def _of(self, claim: Claim, device: str, gpu: Gpu, mig: MigDevice | None) -> Edits:
        """The edits of a device that still is what was published."""
        pynvml = self._nvml.pynvml
        try:
            handle = pynvml.nvmlDeviceGetHandleByUUID(mig.uuid if mig else gpu.uuid)
            if mig is None and in_mig_mode(self._nvml, handle):
                raise PluginError([switched(claim, device)])
            return self._edits.mig(gpu, mig) if mig else self._edits.whole(gpu)
        except pynvml.NVMLError as error:
            raise PluginError([gone(claim, device, str(error))]) from error


def _devices(gpu: Gpu) -> list[Device]:
    if gpu.mig is None:
        return [whole_device(gpu)]
    return [mig_device(gpu, mig) for mig in gpu.mig]


def _named_mig(gpu: Gpu) -> list[tuple[str, MigDevice | None]]:
    return [(mig_name(gpu, mig), mig) for mig in gpu.mig or ()]


def _tainted(device: Device, monitor: HealthMonitor) -> Device:
    taints = monitor.taints(device.name)
    return device.changed({"taints": taints}) if taints else device
