"""What commands read from the stack: its fleet."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from dra_infra.catalog import load_fleet
from dra_infra.engine.project import load_project
from dra_infra.model.fleet import Fleet

FLEET_SETTING = "dra-infra:fleet"


def choose_fleet(
    fleet: str | None, directory: Path, *, stack: str | None, config: Mapping[str, str]
) -> Fleet | None:
    """The fleet that was named, else the stack's, else none.

    Raises:
        FleetError: When it cannot be read.
    """
    name = fleet or load_project(directory, stack, config).config.get(FLEET_SETTING)
    return load_fleet(name) if name else None
