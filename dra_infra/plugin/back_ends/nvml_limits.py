"""What the NVML back end does not do, and says so: NVIDIA's DRA driver does it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from dra_infra.errors import PluginError, Problem
from dra_infra.plugin.claims import Claim

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
    # Late: it loads the catalogue, and most claims have no config.
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
