"""Makes the back end that the settings name, ours or one that others write.

Each is imported where it is asked for alone: sim takes 2.2 MiB and 86 ms, nvml 0.6 MiB and 28 ms. A back end of others is named as in `--back-end serial_ports:SerialPorts`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final, cast

from dra_infra.errors import PluginError, Problem
from dra_infra.kubernetes.api.names import is_dns_subdomain
from dra_infra.plugin.back_end import BackEnd, Bindings
from dra_infra.plugin.command.instance import Paths
from dra_infra.plugin.command.settings import Settings

_NVIDIA: Final = "gpu.nvidia.com"


def driver_name(settings: Settings) -> str:
    """Name of the driver, of which the folders' names are made.

    Raises:
        FleetError: As `load_fleet`.
        PluginError: `sim-no-devices`, `back-end-not-loaded`.
    """
    if ":" in settings.back_end:
        return load(settings.back_end, driver=settings.driver).driver
    if settings.driver:
        return settings.driver
    if settings.back_end == "nvml":
        return _NVIDIA
    from dra_infra.plugin.back_ends.sim_node import simulate_node

    return simulate_node(settings.fleet, node=settings.node_name).driver


@dataclass(frozen=True, kw_only=True, slots=True)
class LoadedBackEnd:
    """A back end, and what only some of them have besides.

    Args:
        back_end: It.
        bindings: Says when its devices with binding conditions are ready: only simulated ones have any.
        whole_names_only: As of `ClaimReader`.
        try_edits: Finds out what a container would get; raises `PluginError`.
    """

    back_end: BackEnd
    bindings: Bindings | None = None
    whole_names_only: bool = False
    try_edits: Callable[[], str] | None = None


def make_back_end(
    settings: Settings, paths: Paths, noticed: Callable[[Sequence[Problem]], None]
) -> LoadedBackEnd:
    """Make the back end that the settings name; *noticed* is told what is wrong and keeps nothing from working.

    Raises:
        FleetError: As `load_fleet`.
        PluginError: What the back end says.
    """
    if ":" in settings.back_end:
        return LoadedBackEnd(back_end=load(settings.back_end, driver=settings.driver))
    if settings.back_end == "nvml":
        from dra_infra.plugin.back_ends.nvml import NvmlBackEnd

        gpus = NvmlBackEnd(
            driver=driver_name(settings),
            driver_root=str(settings.driver_root),
            driver_root_on_host=str(settings.driver_root_on_host or settings.driver_root),
            toolkit=str(settings.toolkit) if settings.toolkit else None,
            noticed=noticed,
        )
        return LoadedBackEnd(back_end=gpus, try_edits=gpus.try_edits)
    from dra_infra.plugin.back_ends.sim import SimulatedBackEnd

    simulated = SimulatedBackEnd(
        settings.fleet,
        node=settings.node_name,
        folder=paths.simulation,
        driver=settings.driver or None,
        commands=paths.commands,
        noticed=noticed,
        mig_delay=settings.mig_delay,
    )
    return LoadedBackEnd(back_end=simulated, bindings=simulated, whole_names_only=simulated.whole_names_only)


_MEMBERS: Final = ("inventory", "watch", "prepare", "release", "close")


@cache
def load(name: str, *, driver: str = "") -> BackEnd:
    """The back end that a class makes, once: what it opens stays open.

    Args:
        name: `module:Class`; the module is looked for as every import is, so PYTHONPATH may name its folder.
        driver: What it is expected to be called; empty where nobody said.

    Raises:
        PluginError: `back-end-not-loaded`, and what the class says itself.
    """
    module, _, kind = name.partition(":")
    try:
        # What others wrote may raise anything, and whoever starts the plugin is to read what.
        made = _class(name, module, kind)()
    except PluginError:
        raise
    except Exception as error:
        raise _refused(name, f"{type(error).__name__}: {error}", "it is called without arguments") from error
    if lacking := [each for each in _MEMBERS if not callable(getattr(made, each, None))]:
        raise _refused(
            name, f"has no {', '.join(lacking)}", "a back end has all of dra_infra.plugin.back_end.BackEnd"
        )
    called = getattr(made, "driver", None)
    if not isinstance(called, str) or not is_dns_subdomain(called):
        raise _refused(name, f"its driver is called {called!r}", 'driver = "serial.example.com"')
    if driver and driver != called:
        raise _refused(name, f"its driver is called {called}, not {driver}", "leave --driver out")
    return cast(BackEnd, made)


def _class(name: str, module: str, kind: str) -> Callable[[], object]:
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError as error:
        hint = "name its folder in PYTHONPATH" if error.name == module else "install it where the plugin runs"
        raise _refused(name, f"there is no module {error.name}", hint) from error
    made = getattr(found, kind, None)
    if not callable(made):
        raise _refused(name, f"{module} has no class {kind}", "write the name of a class behind the colon")
    return cast("Callable[[], object]", made)


def _refused(name: str, message: str, hint: str) -> PluginError:
    return PluginError.of(path=f"--back-end {name}", code="back-end-not-loaded", message=message, hint=hint)
