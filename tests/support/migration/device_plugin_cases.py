"""The cases of cases/device_plugin.yaml, which the docs show, and what is made of them."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from dra_infra.migration.device_plugin import read_plugin_config
from dra_infra.migration.estate import migrate_objects
from dra_infra.migration.needs import Settings
from dra_infra.migration.outcomes import Migrated
from dra_infra.migration.plugin_configs import find_intel_shares

FOLDER = Path(__file__).parents[2] / "unit/migration/cases"
INPUTS = FOLDER / "device_plugin.yaml"
OUTPUTS = FOLDER / "device_plugin_outputs.yaml"

UNTOUCHED = "untouched"


@dataclass(frozen=True, kw_only=True)
class Case:
    """A row of the table.

    Args:
        id: Its name.
        was: What the input is, in words.
        becomes: What is there then, in words.
        input: The objects.
        plugin: Configuration of NVIDIA's plugin; None where nobody said.
        profile: What `--mig-profile` says.
        no_shares: Why claims cannot share devices.
        mps_memory: MiB of a GPU, which `--mps-memory` says.
        remarks: Code and outcome by path, by the position of the object.
    """

    id: str
    was: str
    becomes: str
    input: Sequence[Mapping[str, Any]]
    plugin: Mapping[str, Any] | None = None
    profile: str = ""
    no_shares: str = ""
    mps_memory: int = 0
    remarks: Mapping[int, Mapping[str, str]] = field(default_factory=dict)

    @property
    def settings(self) -> Settings:
        """What is known of the cluster."""
        plugin = None if self.plugin is None else read_plugin_config(self.plugin, file="plugin.yaml")
        if plugin is not None and self.profile:
            plugin = replace(plugin, profiles=(self.profile,))
        shares = find_intel_shares(self.input)
        return Settings(
            plugin=plugin, no_shares=self.no_shares, mps_memory=self.mps_memory, intel_shares=shares
        )

    def migrate(self) -> list[Migrated]:
        """What becomes of the objects."""
        return migrate_objects(self.input, self.settings)

    def shown(self) -> list[Any]:
        """What is in the place of each object, as device_plugin_outputs.yaml has it."""
        rows: list[Any] = []
        for was, done in zip(self.input, self.migrate(), strict=True):
            rows.append(UNTOUCHED if done.manifest is was else done.manifest)
            rows += done.added
        return rows

    def made(self) -> list[Mapping[str, Any]]:
        """The objects that the migration wrote, claim templates first."""
        written = [each for each in self.shown() if each != UNTOUCHED]
        return sorted(written, key=lambda each: each["kind"] != "ResourceClaimTemplate")


@functools.cache
def cases() -> tuple[Case, ...]:
    """All rows, in their order."""
    return tuple(Case(**each) for each in yaml.safe_load(INPUTS.read_text()))


def case(name: str) -> Case:
    """The row of that name."""
    return next(each for each in cases() if each.id == name)


def table() -> str:
    """The rows as a table in Markdown."""
    lines = ["| What was | What becomes of it | To decide | Lost |", "| --- | --- | --- | --- |"]
    for each in cases():
        said = [remark.partition(" ") for remarks in each.remarks.values() for remark in remarks.values()]
        cells = (
            ", ".join(sorted({f"`{code}`" for code, _, outcome in said if outcome == wanted}))
            for wanted in ("decide", "lost")
        )
        lines.append(f"| {each.was} | {each.becomes} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"
