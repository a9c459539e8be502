"""The plan of a cut-over: `migrate --plan`."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any, Final

from dra_infra.catalog import load_fleet
from dra_infra.catalog.driver_gates import driver_needs
from dra_infra.catalog.drivers import read_pins
from dra_infra.catalog.snapshots import Snapshot
from dra_infra.cutover.plan import Plan, make_plan
from dra_infra.cutover.sides import all_on_plugin, as_it_is
from dra_infra.kubernetes.api import Release
from dra_infra.migration.device_plugin import DevicePlugin
from dra_infra.migration.needs import Settings
from dra_infra.migration.outcomes import Migrated
from dra_infra.output.wording import join_words
from dra_infra.placement.running import NOTHING_RUNS, Running
from dra_infra.program_objects import Program, ProgramObject

_SECONDS: Final = 40.0, 60.0
"""Seconds for which fewer nodes at a time are searched for, and after which nothing more is decided."""

_THERE: Final = ("Pod", "DaemonSet", "PodDisruptionBudget")
"""Kinds of what is there that a plan speaks of."""


def plan_cut_over(
    objects: Sequence[Mapping[str, Any]],
    migrated: Sequence[Migrated],
    settings: Settings,
    *,
    fleet: str | None,
    cluster: Snapshot | None,
    release: Release,
    driver: str,
    namespaces: Sequence[str] = (),
    files: Sequence[str] = (),
) -> Plan:
    """Plan the cut-over on a cluster, of which some *namespaces* or all were read, with hardware of *fleet*, or on *fleet* alone.

    *files* has the file of each object, which commands name.

    Raises:
        FleetError: `hardware-not-known`, and the codes of `load_fleet`.
    """
    named = load_fleet(fleet, kubernetes=release.minor, driver=driver) if fleet is not None else None
    running = NOTHING_RUNS
    if cluster is not None:
        load = cache(partial(load_fleet, kubernetes=release.minor, driver=driver))
        kernel_driver = driver_needs()[read_pins(driver).releases["gpu.nvidia.com"].line].kernel_driver
        has_shares = not settings.no_shares
        sides = as_it_is(cluster.fleet, named, load=load, has_shares=has_shares, kernel_driver=kernel_driver)
        results = [each for done in migrated for each in (done.manifest, *done.added) if each is not None]
        own = [ProgramObject(urn=str(at), manifest=each) for at, each in enumerate((*objects, *results))]
        running = Running.of(cluster, Program(project="", stack="", objects=tuple(own)))
    else:
        assert named is not None  # noqa: S101  (`migrate` refuses a plan without either)
        sides = all_on_plugin(named, settings.plugin or DevicePlugin())
    start = time.monotonic()
    plan = make_plan(
        objects,
        migrated,
        sides,
        release=release,
        is_late=lambda: time.monotonic() > start + _SECONDS[1],
        stops=lambda: time.monotonic() > start + _SECONDS[0],
        taken=running.taken,
        running=[each for kind in _THERE for each in running.of_kind(kind)],
        kinds=settings.kinds,
        owners=running.owners_of,
        files=files,
    )
    why = f"only pods of {join_words(namespaces)} were read: what others have on these nodes is not known"
    return replace(plan, reasons=(why, *plan.reasons)) if namespaces else plan
