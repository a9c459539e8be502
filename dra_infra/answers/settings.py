"""Reads what questions are about: stack settings, the fleet, the program, and the file of `--snapshot`.

Settings of the stack are held to those that there are. The program that a question is about is a Pulumi program or
manifests; the fleet is named hardware or a snapshot.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Final

from dra_infra.catalog import load_fleet
from dra_infra.catalog.node_pools import MAX_PRICES, price_pools, read_prices
from dra_infra.catalog.snapshots import Snapshot, load_snapshot
from dra_infra.documents.json_texts import MAX_BYTES
from dra_infra.errors import FleetError, InvalidSpecError, Problem, ProgramError
from dra_infra.fleet import Fleet
from dra_infra.program.project import (
    FLEET_SETTING,
    Project,
    driver_of,
    kubernetes_of,
    load_project,
    stacks_with_file,
)
from dra_infra.program.project_files import nearest_path
from dra_infra.program.python_start import add_for_own_program
from dra_infra.program.synth import DEFAULT_TIMEOUT, synth_project
from dra_infra.program_objects import Program
from dra_infra.sources.delivered_objects import find_checkout
from dra_infra.sources.manifests import build_side, read_side
from dra_infra.sources.subject import find_source
from dra_infra.target import (
    GATES_SETTING,
    NEWEST_DRIVER,
    ClusterTarget,
    check_target,
    read_gates,
    supported_version,
    write_gates,
)

SETTINGS: Final = ("driver", "fleet", "gates", "kubernetes")
"""Settings of ours in a stack: each as `dra-infra:NAME`."""


def choose_fleet(fleet: str | None, project: Project | None, config: Mapping[str, str]) -> Fleet | None:
    """Return the fleet that was named, else the stack's, else none. `dra-infra:driver` is the driver of hardware that names none.

    Args:
        fleet: What the user named.
        project: The program's project; None for manifests and charts.
        config: Settings that the user gave, those of options among them.

    Raises:
        FleetError: When it cannot be read.
    """
    settings = project.config if project else config
    name = fleet or settings.get(FLEET_SETTING)
    if name and project and not fleet and FLEET_SETTING not in config and (project.root / name).is_file():
        # The stack file names it as it lies beside it, wherever the command is run.
        name = str(project.root / name)
    if not name:
        return None
    return load_fleet(name, kubernetes=kubernetes_of(settings), driver=driver_of(settings))


def with_options(
    config: Mapping[str, str],
    *,
    kubernetes: str | None = None,
    driver: str | None = None,
    gates: Mapping[str, bool] = MappingProxyType({}),
) -> Mapping[str, str]:
    """Return the settings with those that `--kubernetes`, `--driver` and `--gate` name.

    Components of a program read them, so a component refuses what the answer refuses and nothing else.

    Raises:
        InvalidSpecError: For a minor that there is not, or gates that it does not have.
    """
    if (kubernetes or gates) and (
        mistaken := check_target(ClusterTarget(kubernetes=kubernetes, gates=gates))
    ):
        raise InvalidSpecError(mistaken)
    given = {"kubernetes": kubernetes, "driver": driver}
    settings = {**config, **{f"dra-infra:{name}": value for name, value in given.items() if value}}
    return with_gates(settings, gates)


def with_gates(config: Mapping[str, str], gates: Mapping[str, bool]) -> Mapping[str, str]:
    """Return the settings, whose gates are those that they name and the given ones.

    Raises:
        InvalidSpecError: `wrong-type`, when the settings name gates in another form than `read_gates` reads.
    """
    if not gates:
        return config
    return {**config, GATES_SETTING: write_gates({**read_gates(config.get(GATES_SETTING, "")), **gates})}


def load_checked(
    directory: Path, stack: str | None, config: Mapping[str, str]
) -> tuple[Project, tuple[Problem, ...]]:
    """Return the project in *directory*, after `check_settings`, with the warnings of that.

    Raises:
        ProgramError: As `check_settings`, and with the codes of `load_project`.
    """
    project = load_project(directory, stack, config)
    return project, check_settings(project, stack, config)


def check_settings(project: Project, stack: str | None, config: Mapping[str, str]) -> tuple[Problem, ...]:
    """Refuse a stack, setting or gate that was mistyped, and return warnings about what may be one.

    Only what is asked about is held to this: the base of a review may be older than a stack.

    Raises:
        ProgramError: With codes `stack-not-known`, `unknown-setting`, `wrong-type`, and the codes of `check_target` for gates.
    """
    found = [
        *_stack_problems(project, asked=stack is not None),
        *find_wrong_settings(project.config),
    ]
    if found:
        raise ProgramError(found)
    return tuple(_bare_names(project, config))


def _stack_problems(project: Project, *, asked: bool) -> Iterator[Problem]:
    files = stacks_with_file(project.stack_file)
    if not asked or not files or project.stack in files:
        return
    near = difflib.get_close_matches(project.stack[:80], files, n=1)
    start = f"did you mean {near[0]}?" if near else f"stacks with a file are {', '.join(files)};"
    yield Problem(
        path="--stack",
        code="stack-not-known",
        message=f"there is no {project.stack_file.name}, so {project.stack!r} has no settings",
        hint=f"{start} for a stack without settings, write an empty {project.stack_file.name}",
    )


def find_wrong_settings(config: Mapping[str, str]) -> Iterator[Problem]:
    """Yield settings of ours that there are not, and gates that no cluster of their minor can have.

    Codes: `unknown-setting`, `wrong-type`, and those of `check_target` for gates.

    Args:
        config: Settings of a stack by full key.
    """
    known = [f"dra-infra:{name}" for name in SETTINGS]
    for key in sorted(config):
        if key.startswith("dra-infra:") and key not in known:
            near = difflib.get_close_matches(key[:80], known, n=1, cutoff=0.8)
            hint = f"did you mean {near[0]}?" if near else f"settings are {', '.join(known)}"
            yield Problem(path=key, code="unknown-setting", message="there is no such setting", hint=hint)
    try:
        gates = read_gates(config.get(GATES_SETTING, ""))
    except InvalidSpecError as error:
        yield from error.problems
        return
    if gates:
        yield from check_target(ClusterTarget(kubernetes=kubernetes_of(config), gates=gates))


def _bare_names(project: Project, config: Mapping[str, str]) -> Iterator[Problem]:
    for key in sorted(set(config) & set(SETTINGS)):
        # A program may have a setting of that name; one that its stack knows is meant.
        if f"{project.name}:{key}" not in project.keys_of_files:
            yield Problem(
                path=f"--config {key}",
                code="unknown-setting",
                message=f"sets {project.name}:{key}, a setting of the program",
                hint=f"for the stack's {key} write --config dra-infra:{key}=...",
                severity="warning",
            )


def read_program(
    path: Path,
    *,
    stack: str | None,
    config: Mapping[str, str],
    timeout: float = DEFAULT_TIMEOUT,
    kind: str | None = None,
) -> tuple[Project | None, Program]:
    """The objects of a Pulumi program with its project, or of a folder or file of manifests, which have none.

    Args:
        path: The folder or file.
        stack: Stack of the program.
        config: Settings over those of the stack file.
        timeout: Seconds that the program may run.
        kind: What the user says that it is; None reads it off the path.

    Raises:
        ProgramError: When there is nothing to read, for a chart, and what `synth` raises.
    """
    source = find_source(path, kind, stack=stack, config=config)
    if source.kind == "chart":
        raise ProgramError.of(
            path=str(path),
            code="no-project",
            message="a chart has no objects before it is rendered",
            hint=f"helm template {path} > rendered.yaml, and name that file",
        )
    if source.kind == "program":
        project = load_project(source.root, stack, config)
        add_for_own_program()
        return project, synth_project(project, timeout=timeout, is_own_process=True)
    root = source.root
    label = source.root.stem or "manifests"
    if source.kind == "kustomization":
        return None, build_side(
            root,
            inside=_top_of(root),
            shown=source.shown,
            label=label,
            config=config,
            timeout=timeout,
            checkout=lambda: find_checkout(root),
        ).program
    inside = root if root.is_dir() else root.parent
    side = read_side(
        root,
        inside=inside,
        shown=source.shown,
        label=label,
        config=config,
        checkout=lambda: find_checkout(root),
    )
    if not side.program.objects and not side.program.problems:
        left_out = "; ".join(str(each.name) + ": " + each.reason for each in side.program.not_seen[:3])
        raise ProgramError.of(
            path=source.shown,
            code="no-project",
            message=f"holds neither a Pulumi program nor a manifest{f' ({left_out})' if left_out else ''}",
            hint="name the folder with Pulumi.yaml, or YAML and JSON files of objects",
        )
    return None, side.program


def _top_of(folder: Path) -> Path:
    """The repository of a kustomization, whose bases lie beside it; without one the current folder, or its own."""
    for each in (folder, *folder.parents):
        if (each / ".git").exists():
            return each
    current = Path.cwd()
    return current if folder.is_relative_to(current) else folder


def find_fleet(name: str | None, project: Project | None, config: Mapping[str, str]) -> Fleet:
    """Return the fleet that was named, else the stack's; the arguments are those of `choose_fleet`.

    Raises:
        FleetError: `no-fleet` when none is named, and what `load_fleet` raises.
    """
    chosen = choose_fleet(name, project, config)
    if chosen is None:
        raise FleetError.of(
            path="--fleet",
            code="no-fleet",
            message="no hardware is named to place on",
            hint=f"add --fleet 'hgx-h100 x 4' or --snapshot cluster.yaml, or set {FLEET_SETTING} in the stack file",
        )
    return chosen


def set_prices(fleet: Fleet, file: Path | None) -> Fleet:
    """The fleet with the prices of a file for its node pools; `-` is standard input, None leaves it as it is.

    Raises:
        FleetError: `prices-unreadable`, `node-pool`.
    """
    if file is None:
        return fleet
    try:
        if str(file) == "-":
            data = sys.stdin.buffer.read(MAX_PRICES + 1)
        else:
            with file.open("rb") as opened:
                data = opened.read(MAX_PRICES + 1)
    except OSError as error:
        raise FleetError.of(
            path="--prices",
            code="prices-unreadable",
            message=f"{file} cannot be read: {error.strerror or error}",
            hint='name a file with JSON such as {"a3-h100": 98.32}',
        ) from error
    return price_pools(fleet, read_prices(data, "--prices"))


def on_server_of(program: Program, snapshot: Snapshot | None) -> Program:
    """Return a program for the release of the API server that a snapshot was read from.

    A release that the stack or the user names counts before that of the snapshot. A minor alone stands for the server's patch of it.
    A program stays as it is where the snapshot does not name a supported release, or where that release cannot have the program's gates.
    """
    patch = supported_version(snapshot.server) if snapshot is not None else ""
    named = program.target
    if not patch or named.patch or not (named.kubernetes is None or patch.startswith(f"{named.kubernetes}.")):
        return program
    return program if check_target(replace(named, kubernetes=patch)) else replace(program, kubernetes=patch)


def read_snapshot(file: Path, *, driver: str = NEWEST_DRIVER) -> Snapshot:
    """Read the snapshot that `dra-infra snapshot` or kubectl wrote to *file*.

    Args:
        file: The file.
        driver: Releases of the drivers on nodes that node pools of the cluster may add.

    Raises:
        FleetError: `fleet-unreadable`, and the codes of `load_snapshot`.
    """
    try:
        with file.open("rb") as opened:
            data = opened.read(MAX_BYTES + 1)
        return load_snapshot([data.decode("utf-8-sig")], driver=driver)
    except OSError as error:
        why = error.strerror or str(error)
    except UnicodeDecodeError as error:
        why = f"byte {error.start} is not UTF-8"
    raise FleetError.of(
        path="--snapshot",
        code="fleet-unreadable",
        message=f"{file} cannot be read: {why}",
        hint=nearest_path(file) or "name a file that `dra-infra snapshot` or `kubectl get -o yaml` wrote",
    )
