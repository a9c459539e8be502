"""What cannot stand beside our plugin on one cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from dra_infra.errors import Problem
from dra_infra.specs.arguments import is_output
from dra_infra.specs.node_plugin.plan import NodePluginPlan
from dra_infra.specs.platform.installations import Installation

_WORDS: Final = {
    "operator": "write gpu_cluster=False for the operator",
    "driver": "write driver=None",
    "example": "write example=None",
}


def check_beside(
    plugin: NodePluginPlan, installed: Mapping[str, Installation], *, driver_root: object = None
) -> Iterator[Problem]:
    """Problems at `node_plugin...`, for charts by the name of their part.

    The kubelet takes one driver of a name on a node, and each of the two deletes the slices of the other.
    Codes: `platform-conflict`, `device-plugin-beside-dra`.

    Args:
        plugin: Ours.
        installed: Charts.
        driver_root: Where platform or operator have NVIDIA's kernel driver on nodes; None where neither says so.
    """
    hardware = plugin.hardware
    for part, installation in installed.items():
        if hardware.driver in _drivers_of(installation):
            yield Problem(
                path="node_plugin.driver" if hardware.is_named else "node_plugin",
                code="platform-conflict",
                message=f"{installation.release.name} brings a driver called {hardware.driver} too, and a node has one of a name",
                hint=f"{_WORDS[part]}, or name another fleet or driver for the plugin",
            )
    operator = installed.get("operator")
    if hardware.back_end == "nvml":
        # Of a platform's nodes the user may know more; an operator does what its chart says.
        is_sure = operator is not None and operator.values.get("driver.enabled") is True
        yield from _check_driver_root(plugin.driver_root, driver_root, is_sure=is_sure)
    if hardware.back_end == "nvml" and operator and operator.values.get("devicePlugin.enabled") is True:
        yield Problem(
            path=f"operator.{operator.values.where('devicePlugin.enabled')}",
            code="device-plugin-beside-dra",
            message="the device plugin and the node plugin both give out the GPUs of a node, and neither sees the other",
            hint="write device_plugin=False for the operator",
        )


def _check_driver_root(told: str | None, known: object, *, is_sure: bool) -> Iterator[Problem]:
    if not isinstance(known, str) or (told is not None and not is_sure):
        return
    looked = told or "/"
    if looked.rstrip("/") != known.rstrip("/"):
        yield Problem(
            path="node_plugin.nvidia_driver_root",
            code="platform-conflict",
            message=f"the kernel driver is in {known} on the nodes, and the node plugin looks for it in {looked}",
            hint=f'write node_plugin={{"back_end": "nvml", "nvidia_driver_root": "{known}"}}',
        )


def _drivers_of(installation: Installation) -> set[str]:
    """Names of the drivers of a chart, as far as they are known."""
    named = installation.values.get("driverName")
    if named and not is_output(named):
        return {str(named)}
    return {driver for driver, _ in installation.classes}
