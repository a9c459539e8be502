"""What commands read from the stack: its fleet."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from dra_infra.catalog import load_fleet
from dra_infra.engine.project import load_project
from dra_infra.model.fleet import Fleet
from dra_infra.model.gates import SUPPORTED_MINORS

FLEET_SETTING = "dra-infra:fleet"


def choose_fleet(
    fleet: str | None, directory: Path, *, stack: str | None, config: Mapping[str, str]
) -> Fleet | None:
    """The fleet that was named, else the stack's, else none.

    Raises:
        FleetError: When it cannot be read.
    """
    project = load_project(directory, stack, config)
    settings = project.config
    name = fleet or settings.get(FLEET_SETTING)
    if name and not fleet and FLEET_SETTING not in config and (project.root / name).is_file():
        # The stack file names it as it lies beside it, wherever the command is run.
        name = str(project.root / name)
    minor = settings.get("dra-infra:kubernetes")
    return load_fleet(name, kubernetes=minor if minor in SUPPORTED_MINORS else None) if name else None
