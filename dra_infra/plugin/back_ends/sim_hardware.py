"""State of simulated hardware: it outlives the plugin, and a boot of the machine clears it.

<device>.<uid>.use    a claim has the device: its config, as JSON
<device>.mig          a MIG device that was made
claims/<uid>.json     what the containers of a claim see
<gpu>.sharing         slices of time, or MPS, that were set on a GPU

Devices that exclude each other on simulated hardware are refused: the last line of defence behind the scheduler.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from dra_infra.errors import PluginError, Problem
from dra_infra.plugin.back_ends.sim_node import NVIDIA, SimulatedNode
from dra_infra.plugin.claims import Claim, check_uid
from dra_infra.plugin.configs import EffectiveConfig
from dra_infra.plugin.disk import Disk, Folder, explain_os_errors

_MARKERS: Final = "claims"

_BOOT: Final = re.compile(r"[0-9A-Za-z-]{1,64}")


class Use(NamedTuple):
    """Use of a device by a claim."""

    device: str
    uid: str


class Hardware:
    """Files in a folder of the boot. Every method raises `PluginError` (`plugin-folder-not-usable`).

    Args:
        folder: Is made where it is not there; what earlier boots left in it is removed.
        boot_id: Of the machine.
    """

    def __init__(self, folder: Path, boot_id: str, disk: Disk | None = None) -> None:
        boot = boot_id if _BOOT.fullmatch(boot_id) else "unknown"
        path = folder / boot
        with explain_os_errors("cannot be made", path):
            (path / _MARKERS).mkdir(mode=0o755, parents=True, exist_ok=True)
            for old in folder.iterdir():
                if old.name != boot and old.is_dir() and not old.is_symlink():
                    shutil.rmtree(old, ignore_errors=True)
        self.path = path
        self._folder = Folder(path, disk, mode=0o644)
        self._markers = Folder(path / _MARKERS, disk, mode=0o644)

    def uses(self) -> frozenset[Use]:
        """Devices in use, with the claims that have them."""
        return frozenset(Use(*name.removesuffix(".use").split(".", 1)) for name in self._names(".use"))

    def uses_of(self, uid: str) -> list[Use]:
        """Devices of a claim."""
        end = f".{uid}.use"
        return [Use(name.removesuffix(end), uid) for name in self._names(end)]

    def holders(self, *, but: str) -> Mapping[str, str]:
        """Devices that other claims than *but* have, each with the UID of one that has it."""
        end = f".{but}.use"
        found = (name for name in self._names(".use") if not name.endswith(end))
        # Names alone, without a look at more: there may be a thousand.
        return dict(name[:-4].split(".", 1) for name in found)

    def config_of(self, use: Use) -> str:
        """The config under which a claim has a device, as `take` got it."""
        return str(self._read(f"{use.device}.{use.uid}.use").get("config", ""))

    def take(self, use: Use, config: str) -> None:
        """Note that a claim has a device."""
        _write(self._folder, f"{use.device}.{use.uid}.use", {"config": config})

    def give_back(self, use: Use) -> None:
        """Note that a claim has a device no more."""
        self._folder.remove(f"{use.device}.{use.uid}.use")

    def made(self) -> Mapping[str, Mapping[str, Any]]:
        """MIG devices that were made, by name."""
        return {name.removesuffix(".mig"): self._read(name) for name in self._names(".mig")}

    def make(self, device: str, what: Mapping[str, Any]) -> None:
        """Make a MIG device."""
        _write(self._folder, f"{device}.mig", what)

    def destroy(self, device: str) -> None:
        """Destroy a MIG device that was made."""
        self._folder.remove(f"{device}.mig")

    def sharing(self) -> Mapping[str, Mapping[str, Any]]:
        """Settings of GPUs, by the name of the whole GPU."""
        return {name.removesuffix(".sharing"): self._read(name) for name in self._names(".sharing")}

    def share(self, device: str, how: Mapping[str, Any]) -> None:
        """Set slices of time, or MPS."""
        _write(self._folder, f"{device}.sharing", how)

    def reset(self, device: str) -> None:
        """Set a GPU back to what it was."""
        self._folder.remove(f"{device}.sharing")

    def write_marker(self, uid: str, content: Mapping[str, Any]) -> Path:
        """The file that the claim's containers see."""
        name = f"{check_uid(uid)}.json"
        _write(self._markers, name, content)
        return self._markers.path / name

    def remove_marker(self, uid: str) -> None:
        """Remove that file."""
        self._markers.remove(f"{check_uid(uid)}.json")

    def tidy(self) -> None:
        """Take away what a crash left half-written."""
        self._folder.remove_temporary(bool)
        self._markers.remove_temporary(bool)

    def _names(self, end: str) -> list[str]:
        # What is no file of ours has another number of dots, and what is half-written begins with one.
        dots = 2 if end.endswith(".use") else 1
        return [
            name
            for name in self._folder.names()
            if name.endswith(end) and name.count(".") == dots and name[0] != "."
        ]

    def _read(self, name: str) -> dict[str, Any]:
        with suppress(ValueError):
            found = json.loads(self._folder.read(name) or b"{}")
            return found if isinstance(found, dict) else {}
        return {}


def _write(folder: Folder, name: str, content: Mapping[str, Any]) -> None:
    # A whole line: what a container prints of it shows in `kubectl logs` only then.
    encoded = json.dumps(content, sort_keys=True).encode() + b"\n"
    if folder.read(name) != encoded:
        folder.replace(name, encoded)


_MODULE: Final = "gpuModuleID"

Wanted = Mapping[str, EffectiveConfig]
"""Devices that a claim is to have, with what counts for each."""


def refuse_unknown(node: SimulatedNode, claim: Claim, gone: frozenset[str]) -> None:
    """Check that the node has the devices at all.

    Raises:
        PluginError: `device-not-allocatable`, for each that it has not.
    """
    problems = [
        Problem(
            path=f"{claim}: device {each.device}",
            code="device-not-allocatable",
            message="requested device is not allocatable: the node does not have it, or has it no more",
            hint="delete the pod: a new one is allocated what there is now",
        )
        for each in claim.devices
        if each.device not in node.devices or each.device in gone
    ]
    if problems:
        raise PluginError(problems)


def refuse_conflicts(node: SimulatedNode, hardware: Hardware, claim: Claim, wanted: Wanted) -> None:
    """Check that the hardware can give a claim its devices beside those of others.

    A device that claims share has one config; a whole GPU excludes its MIG devices, and they those that they overlap with,
    by the counters of the GPU; a GPU that is passed through excludes itself.

    Raises:
        PluginError: `device-held`, `config-conflict`; all at once.
    """
    # One holder of each device stands for all: they have the same config.
    there = hardware.holders(but=claim.uid)
    problems: list[Problem] = []
    for device, config in wanted.items():
        path = f"{claim}: device {device}"
        if node.origin == NVIDIA and device in there:
            problems += _configured_otherwise(hardware, path, config, Use(device, there[device]))
        problems += _passed_through(node, path, device, there)
    problems += _crowded(node, claim, wanted, there)
    if problems:
        raise PluginError(problems)


def refuse_partial_partitions(node: SimulatedNode, claim: Claim, wanted: Wanted) -> None:
    """Check that the whole GPUs of a claim are one partition of the Fabric Manager, which is activated for them alone.

    Holds on nodes whose GPUs have attributes of partitions (NVIDIA driver 0.5, gate FabricManagerPartitioning): for every
    claim with whole GPUs, whatever it asked for.

    Raises:
        PluginError: `fabric-partition-mismatch`.
    """
    gpus = [device for device in wanted if node.attribute(device, _MODULE) is not None]
    partitions = {node.attribute(each, f"partition{len(gpus)}") for each in gpus}
    if not gpus or (len(partitions) == 1 and None not in partitions):
        return
    modules = ", ".join(str(node.attribute(each, _MODULE)) for each in gpus)
    raise PluginError.of(
        path=str(claim),
        code="fabric-partition-mismatch",
        message=f"GPU module set [{modules}] does not match any FM partition",
        hint="ask for 1, 2, 4 or 8 GPUs, with a constraint on gpu.nvidia.com/partition2 for 2 of them",
    )


def config_text(config: EffectiveConfig) -> str:
    """A config as it is compared: two texts of one meaning are one config."""
    return json.dumps([config.kind, config.values], sort_keys=True)


def _configured_otherwise(
    hardware: Hardware, path: str, config: EffectiveConfig, use: Use
) -> Iterator[Problem]:
    if hardware.config_of(use) != config_text(config):
        yield Problem(
            path=path,
            code="config-conflict",
            message=f"requested device {use.device} has conflicting configuration with already prepared claim {use.uid}",
            hint="give all claims that share a device the same config",
        )


def _passed_through(
    node: SimulatedNode, path: str, device: str, there: Mapping[str, str]
) -> Iterator[Problem]:
    if not node.passes_through:
        return
    for other, uid in there.items():
        types = {node.type_of(device), node.type_of(other)}
        if node.gpu_of(other) == node.gpu_of(device) and other != device and "vfio" in types:
            yield _held(path, f"its GPU is in use as {other} for the claim with the UID {uid}")


def _crowded(
    node: SimulatedNode, claim: Claim, wanted: Wanted, there: Mapping[str, str]
) -> Iterator[Problem]:
    for name in dict.fromkeys(name for device in wanted for name in node.consumed(device)):
        of_set = [device for device in {**wanted, **there} if name in node.consumed(device)]
        mine = [device for device in of_set if device in wanted]
        rivals = [device for device in of_set if device not in wanted]
        over = [
            counter
            for counter, amount in node.totals(name).items()
            if sum(node.consumed(device)[name].get(counter, 0) for device in of_set) > amount
        ]
        if rivals and over:
            held = ", ".join(f"{each} for the claim with the UID {there[each]}" for each in rivals)
            yield _held(f"{claim}: device {mine[0]}", f"its GPU has no room for it beside {held}: {over[-1]}")


def _held(path: str, message: str) -> Problem:
    hint = "the kubelet asks again when that claim's pods are gone; if it stays so, look for them"
    return Problem(path=path, code="device-held", message=message, hint=hint)
