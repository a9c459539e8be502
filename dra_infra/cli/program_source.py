"""The program that a question is about, and the fleet: a Pulumi program or manifests, named hardware or a snapshot."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from dra_infra.catalog import load_fleet
from dra_infra.cli.review_manifests import read_side
from dra_infra.cli.review_source import Source, find_source
from dra_infra.cli.settings import FLEET_SETTING, choose_fleet
from dra_infra.cli.sources import SUFFIXES
from dra_infra.engine.synth import DEFAULT_TIMEOUT, synth
from dra_infra.errors import FleetError, Problem, ProgramError
from dra_infra.model.fleet import Fleet
from dra_infra.model.gates import SUPPORTED_MINORS
from dra_infra.model.program import Program


def read_program(
    path: Path, *, stack: str | None, config: Mapping[str, str], timeout: float = DEFAULT_TIMEOUT
) -> tuple[Source, Program]:
    """The objects of a Pulumi program, or of a folder or file of manifests.

    Raises:
        ProgramError: When there is nothing to read, for a chart, and what `synth` raises.
    """
    source = _find_source(path)
    if source.kind == "chart":
        problem = Problem(
            path=str(path),
            code="no-project",
            message="a chart has no objects before it is rendered",
            hint=f"helm template {path} > rendered.yaml, and name that file",
        )
        raise ProgramError([problem])
    if source.kind == "program":
        return source, synth(source.root, stack=stack, config=config, timeout=timeout)
    root = source.root
    side = read_side(
        root,
        inside=root if root.is_dir() else root.parent,
        shown=source.shown,
        label=root.stem or "manifests",
        config=config,
    )
    return source, side.program


def _find_source(path: Path) -> Source:
    """What lies at *path*; a folder of a project that holds manifests and no Python is manifests."""
    is_plain = path.is_dir() and not any(path.glob("*.py")) and not (path / "Pulumi.yaml").exists()
    has_manifests = is_plain and any(each.suffix in SUFFIXES for each in path.iterdir())
    return find_source(path, "manifests" if has_manifests and not (path / "Chart.yaml").exists() else None)


def find_fleet(
    name: str | None,
    source: Source,
    *,
    stack: str | None,
    config: Mapping[str, str],
    driver: str | None = None,
) -> Fleet:
    """The fleet that was named, else the stack's.

    Raises:
        FleetError: `no-fleet` when none is named, and what `load_fleet` raises.
    """
    chosen: Fleet | None = None
    if source.kind == "program":
        chosen = choose_fleet(name, source.root, stack=stack, config=config, driver=driver)
    elif named := name or config.get(FLEET_SETTING):
        minor = config.get("dra-infra:kubernetes")
        known = minor if minor in SUPPORTED_MINORS else None
        chosen = load_fleet(named, kubernetes=known, driver=driver)
    if chosen is None:
        problem = Problem(
            path="--fleet",
            code="no-fleet",
            message="no hardware is named to place on",
            hint=f"add --fleet 'hgx-h100 x 4' or --snapshot cluster.yaml, or set {FLEET_SETTING} in the stack file",
        )
        raise FleetError([problem])
    return chosen
