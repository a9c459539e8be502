"""Reads a scene: the one door from files, programs and options to a question (ADR 21)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TypedDict, Unpack

from dra_infra.advice.clusters import of_provider
from dra_infra.answers.scene import Scene
from dra_infra.answers.settings import (
    check_settings,
    choose_fleet,
    find_fleet,
    on_server_of,
    read_program,
    read_snapshot,
    set_prices,
    with_options,
)
from dra_infra.catalog.workload_kinds import load_workload_kinds, workload_kinds
from dra_infra.placement.running import NOTHING_RUNS, Running
from dra_infra.program.synth import DEFAULT_TIMEOUT


class HardwareOptions(TypedDict, total=False):
    """The options of a cluster but for its release, and the configuration with which its program runs.

    Args:
        fleet: Hardware by name, such as `hgx-h100 x 4`, or a file; None takes the stack's `dra-infra:fleet`.
        snapshot: The cluster as `dra-infra snapshot` or kubectl wrote it, in place of a fleet. What runs there counts.
        gates: Feature gates that the cluster sets otherwise than its minor does.
        driver: Releases of the drivers, for the checks and for fleets by name; None takes the stack's, else the newest.
        stack: Stack whose configuration is read.
        config: Settings over those of the stack file.
        kinds: A file that names kinds of objects that make pods.
    """

    fleet: str | None
    snapshot: Path | None
    gates: Mapping[str, bool]
    driver: str | None
    stack: str | None
    config: Mapping[str, str]
    kinds: Path | None


class ClusterOptions(HardwareOptions, total=False):
    """The options that say which cluster a question is about, and with which configuration its program runs.

    Args:
        kubernetes: Kubernetes minor, such as `1.37`; None takes the stack's, else the newest.
    """

    kubernetes: str | None


class SceneOptions(ClusterOptions, total=False):
    """The options that say what a scene is made of; every command that asks about one takes them by these names.

    Args:
        prices: A file with the prices of node pools.
        provider: Only the objects of this provider of the program, which is one of its clusters.
    """

    prices: Path | None
    provider: str | None


def read_scene(
    path: Path | str = ".",
    *,
    timeout: float = DEFAULT_TIMEOUT,
    needs_fleet: bool = True,
    **options: Unpack[SceneOptions],
) -> Scene:
    """Read the objects of a Pulumi program or of manifests, and the hardware that they are placed on.

    A Pulumi program runs in this process, with all rights of the user. Read only programs that you trust.

    Args:
        path: The folder of a Pulumi project, or a folder or file of manifests.
        timeout: Seconds that the program may run.
        needs_fleet: Whether hardware has to be named. If it is not, the scene has none where none is named, and nothing is placed.
        options: Hardware, release and configuration.

    Returns:
        The scene. Its `warnings` are about the options.

    Raises:
        FleetError: When no fleet is named, or a fleet, snapshot or prices cannot be read.
        InvalidSpecError: For a minor or gate that there is not.
        ProgramError: When there is no program, it fails, or it has no such provider, stack or setting.
    """
    stack, gates = options.get("stack"), options.get("gates", {})
    config = with_options(
        options.get("config", {}),
        kubernetes=options.get("kubernetes"),
        driver=options.get("driver"),
        gates=gates,
    )
    project, program = read_program(Path(path), stack=stack, config=config, timeout=timeout)
    if (provider := options.get("provider")) is not None:
        program = of_provider(program, provider)
    program = replace(program, gates={**program.gates, **gates})
    warnings = check_settings(project, stack, config) if project is not None else ()
    snapshot, kinds = options.get("snapshot"), options.get("kinds")
    cluster = read_snapshot(snapshot, driver=program.driver) if snapshot is not None else None
    program = on_server_of(program, cluster)
    choose = find_fleet if needs_fleet else choose_fleet
    hardware = cluster.fleet if cluster else choose(options.get("fleet"), project, config)
    scene = Scene.of(
        program,
        fleet=set_prices(hardware, options.get("prices")) if hardware is not None else None,
        running=Running.of(cluster, program) if cluster else NOTHING_RUNS,
        kinds=load_workload_kinds(kinds) if kinds else workload_kinds(),
    )
    return replace(scene, warnings=warnings)
