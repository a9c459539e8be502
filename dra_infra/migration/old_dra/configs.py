"""Configs of devices as NVIDIA's driver had them before resource.nvidia.com/v1beta1, in the form of today.

The driver decodes strictly: a config of `gpu.nvidia.com/v1alpha1` is taken by every API server, and its pods never start.
Sources: `api/nvidia.com/resource/gpu/v1alpha1/sharing.go` of NVIDIA/k8s-dra-driver at da6b8351 and 77d3dd2a, and before
October 2023 at a2075fd4; data/device_configs.yaml for what there is now.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Final

from dra_infra.kubernetes.api import mapping
from dra_infra.migration.old_dra.objects import NVIDIA, Remarks, driver_of_today, text

API_VERSION: Final = "resource.nvidia.com/v1beta1"
_OLD_API_VERSIONS: Final = ("gpu.nvidia.com/v1alpha1", "gpu.resource.nvidia.com/v1alpha1")
_INTERVALS: Final = ("Default", "Short", "Medium", "Long")
_SHARING_FIELDS: Final = {"timeSlicingSettings": "timeSlicingConfig"}
"""A field of April 2023, at 25d7bd2c."""
_MPS_FIELDS: Final[Mapping[str, str]] = {
    "activeThreadPercentage": "defaultActiveThreadPercentage",
    "pinnedDeviceMemoryLimit": "defaultPerDevicePinnedMemoryLimit",
}
"""Fields of MPS up to October 2023, and what they are called now."""
_MPS_KEPT: Final = (
    "defaultActiveThreadPercentage",
    "defaultPinnedDeviceMemoryLimit",
    "defaultPerDevicePinnedMemoryLimit",
    "multiUser",
)
_GATES: Final = {"TimeSlicing": "TimeSlicingSettings", "MPS": "MPSSupport"}


def config_entry(parameters: Mapping[str, Any], requests: list[str] | None = None) -> dict[str, Any]:
    """An entry of `config` with parameters for NVIDIA's driver; without *requests* it is for all."""
    named: dict[str, Any] = {"requests": requests} if requests else {}
    return {**named, "opaque": {"driver": NVIDIA, "parameters": copy.deepcopy(dict(parameters))}}


def migrate_configs(entries: Any, path: str, remarks: Remarks) -> Any:
    """The list `config` of a claim or class with each config of NVIDIA's driver in its form of today."""
    if not isinstance(entries, list):
        return entries
    found = (_migrate_entry(each, f"{path}[{index}]", remarks) for index, each in enumerate(entries))
    return [each for each in found if each is not None]


def _migrate_entry(entry: Any, path: str, remarks: Remarks) -> Any:
    opaque = mapping(mapping(entry).get("opaque"))
    parameters = opaque.get("parameters")
    if not isinstance(parameters, Mapping) or parameters.get("apiVersion") not in _OLD_API_VERSIONS:
        return entry
    kind = text(parameters.get("kind"))
    at = f"{path}.opaque.parameters"
    if kind == "ImexChannelConfig":
        message = "an ImexChannelConfig has no successor; its claim gets a channel of a ComputeDomain instead"
        hint = "make a ComputeDomain, and name the claim template that it makes in the pods"
        remarks.decide(at, "imex-channel", message, hint)
        return entry
    if kind not in ("GpuConfig", "MigDeviceConfig"):
        message = f"nobody knows a config {kind or 'without a kind'} of {parameters['apiVersion']}"
        hint = "look it up in the driver's documentation, and write its successor"
        remarks.decide(at, "parameter-not-known", message, hint)
        return entry
    rest = {
        name: value for name, value in parameters.items() if name not in ("apiVersion", "kind", "sharing")
    }
    migrated = {"apiVersion": API_VERSION, "kind": kind, **rest}
    if "sharing" in parameters:
        migrated["sharing"] = migrate_sharing(parameters["sharing"], kind, f"{at}.sharing", remarks)
    remarks.changed(at, "old-config", f"the {kind} of {parameters['apiVersion']} is one of {API_VERSION} now")
    driver: Any = driver_of_today(text(opaque.get("driver")))
    if driver != NVIDIA:
        message = f"gpu.nvidia.com reads a {kind} that is for it, and this one is for {driver or 'no driver'}"
        hint = "write gpu.nvidia.com, or leave the config out"
        remarks.decide(f"{path}.opaque.driver", "parameter-not-known", message, hint)
        driver = opaque.get("driver")
    changed = {name: _of_opaque(name, value, driver, migrated) for name, value in opaque.items()}
    return {name: changed if name == "opaque" else value for name, value in entry.items()}


def _of_opaque(name: str, value: Any, driver: Any, parameters: Mapping[str, Any]) -> Any:
    return {"driver": driver, "parameters": parameters}.get(name, value)


def migrate_sharing(sharing: Any, kind: str, path: str, remarks: Remarks) -> Any:
    """The block `sharing` with the field names of today, for a GpuConfig or a MigDeviceConfig."""
    if not isinstance(sharing, Mapping):
        return sharing
    migrated: dict[str, Any] = {}
    for written, value in sharing.items():
        at = f"{path}.{written}"
        name = str(_SHARING_FIELDS.get(written, written))
        if name == "timeSlicingConfig" and isinstance(value, Mapping):
            slicing = _migrate_slicing(value, kind, at, remarks)
            if slicing is not None:
                migrated[name] = slicing
        elif name == "mpsConfig" and isinstance(value, Mapping):
            migrated[name] = _migrate_mps(value, at, remarks)
        elif name == "strategy" or value is not None:
            migrated[name] = value
    return migrated


def sharing_config(sharing: Any, kind: str, path: str, remarks: Remarks) -> dict[str, Any] | None:
    """The config that says what `sharing` of a classic parameters object said; None where it says nothing."""
    strategy = mapping(sharing).get("strategy")
    if not isinstance(strategy, str) or strategy not in _GATES:
        if sharing:
            message = "the sharing is of no strategy that there was, TimeSlicing or MPS"
            hint = "write a config with a strategy of today, or leave it out"
            remarks.decide(path, "parameter-not-known", message, hint)
        return None
    migrated = migrate_sharing(sharing, kind, path, remarks)
    if kind == "MigDeviceConfig" and strategy == "TimeSlicing":
        remarks.lost(path, "parameter-lost", "slices of time are not set on MIG devices", "leave it out")
        return None
    gate = _GATES[strategy]
    message = f"the sharing {strategy} is a {kind} of the claim now, which needs the driver's gate {gate}"
    hint = f"install the driver with the feature gate {gate}"
    remarks.changed(path, "old-config", message, hint)
    return {"apiVersion": API_VERSION, "kind": kind, "sharing": migrated}


def _migrate_slicing(
    slicing: Mapping[str, Any], kind: str, path: str, remarks: Remarks
) -> dict[str, Any] | None:
    if kind == "MigDeviceConfig":
        if slicing:
            remarks.lost(path, "parameter-lost", "a MigDeviceConfig has no timeSlicingConfig", "leave it out")
        return None
    migrated = {("interval" if name == "timeSlice" else name): value for name, value in slicing.items()}
    if "timeSlice" in slicing:
        remarks.changed(f"{path}.timeSlice", "old-config", "timeSlice is called interval now")
    if migrated.get("interval") is None:
        # Present without an interval the block makes the plugin read a null pointer.
        migrated["interval"] = "Default"
        remarks.changed(path, "old-config", "an interval that is left out is written: Default")
    elif migrated["interval"] not in _INTERVALS:
        message = f"{migrated['interval']!r} is no interval that the driver knows"
        hint = f"write one of {', '.join(_INTERVALS)}"
        remarks.decide(path, "parameter-not-known", message, hint)
    return migrated


def _migrate_mps(mps: Mapping[str, Any], path: str, remarks: Remarks) -> dict[str, Any]:
    migrated: dict[str, Any] = {}
    for name, value in mps.items():
        new = _MPS_FIELDS.get(name, name)
        if new == "defaultPerDevicePinnedMemoryLimit" and isinstance(value, str | int):
            new = "defaultPinnedDeviceMemoryLimit"
        at = f"{path}.{name}"
        if new not in _MPS_KEPT:
            remarks.lost(at, "parameter-lost", f"MPS is given no {name} any more", "leave it out")
            continue
        if new != name:
            remarks.changed(at, "old-config", f"{name} is called {new} now")
        if new == "defaultPerDevicePinnedMemoryLimit" and any(str(key).isdigit() for key in mapping(value)):
            message = "a number named a GPU of the node, and is now a place among the sorted UUIDs of the claim's GPUs"
            hint = "write defaultPinnedDeviceMemoryLimit if all may have the same, or name GPUs by UUID"
            remarks.decide(at, "parameter-not-known", message, hint)
        migrated[new] = value
    return migrated
