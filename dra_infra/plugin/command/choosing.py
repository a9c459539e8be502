"""The back end that the settings name. Each is loaded where it is asked for alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from dra_infra.errors import Problem
from dra_infra.plugin.back_end import BackEnd
from dra_infra.plugin.command.places import Places
from dra_infra.plugin.command.settings import Settings

_NVIDIA: Final = "gpu.nvidia.com"


def name_of_driver(settings: Settings) -> str:
    """What the driver is called: the folders' names come of it.

    Raises:
        FleetError: As `load_fleet`.
        PluginError: `sim-no-devices`, `back-end-not-loaded`.
    """
    if ":" in settings.back_end:
        from dra_infra.plugin.back_ends.own import load

        return load(settings.back_end, driver=settings.driver).driver
    if settings.driver:
        return settings.driver
    if settings.back_end == "nvml":
        return _NVIDIA
    from dra_infra.plugin.back_ends.sim_node import simulate_node

    return simulate_node(settings.fleet, node=settings.node_name).driver


def make_back_end(
    settings: Settings, places: Places, noticed: Callable[[Sequence[Problem]], None]
) -> BackEnd:
    """What knows the node's devices.

    Args:
        settings: Of the plugin.
        places: Where simulated hardware keeps what it keeps.
        noticed: Is told what is wrong, and keeps nothing from working.

    Raises:
        FleetError: As `load_fleet`.
        PluginError: What the back end says.
    """
    if ":" in settings.back_end:
        from dra_infra.plugin.back_ends.own import load

        return load(settings.back_end, driver=settings.driver)
    if settings.back_end == "nvml":
        from dra_infra.plugin.back_ends.nvml import NvmlBackEnd

        return NvmlBackEnd(
            node=settings.node_name,
            driver=name_of_driver(settings),
            driver_root=str(settings.driver_root),
            driver_root_on_host=str(settings.driver_root_on_host or settings.driver_root),
            toolkit=str(settings.toolkit) if settings.toolkit else None,
            noticed=noticed,
        )
    from dra_infra.plugin.back_ends.sim import SimulatedBackEnd

    return SimulatedBackEnd(
        settings.fleet,
        node=settings.node_name,
        folder=places.simulation,
        driver=settings.driver or None,
        commands=places.commands,
        noticed=noticed,
        mig_delay=settings.mig_delay,
    )
