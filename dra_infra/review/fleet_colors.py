"""Who has which colour on the map of a fleet: workloads while they are few, else teams or namespaces."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from dra_infra.kubernetes.api import ObjectRef
from dra_infra.output.wording import count_of
from dra_infra.placement.placement import Placement

COLORS: Final = 8
"""Colours of the page's palette that can be told apart."""

OTHER: Final = COLORS
"""The grey of all that has no colour of its own."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LegendEntry:
    """One colour: whose it is, and what is to be said of them.

    Args:
        color: Index into the palette, `OTHER` for the rest.
        letter: Of a workload that has the colour alone; empty where several share it.
        name: A workload with its namespace, a team, a namespace, or `other`.
        note: `12 workloads`, `3 of 4 pods`, `gone`; empty where there is nothing to say.
    """

    color: int
    letter: str
    name: str
    note: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Colors:
    """The colours of all workloads of a review.

    Args:
        by: What has a colour.
        names: Who has each of them: one to eight.
        of: The colour of each workload, by its index.
        owners: The workloads.
    """

    by: Literal["workload", "team", "namespace"]
    names: tuple[str, ...]
    of: tuple[int, ...] = field(repr=False)
    owners: tuple[ObjectRef, ...] = field(repr=False)

    def name(self, color: int) -> str:
        """Whose colour it is."""
        return self.names[color] if color < len(self.names) else "other"

    def list_entries(self, after: Placement) -> Iterator[LegendEntry]:
        """The legend, `other` last."""
        new = {workload.owner: workload for workload in after.workloads}
        for color in sorted(set(self.of)):
            mine = [index for index, each in enumerate(self.of) if each == color]
            there = [new[self.owners[index]] for index in mine if self.owners[index] in new]
            placed, pods = sum(len(each.pods) for each in there), sum(each.replicas for each in there)
            alone = self.by == "workload" and color < COLORS
            notes = [] if alone else [count_of(len(mine), "workload")]
            if placed < pods:
                notes.append(f"{placed:,} of {count_of(pods, 'pod')}")
            elif not there:
                notes.append("gone")
            letter = letter_of(mine[0]) if alone else ""
            yield LegendEntry(color=color, letter=letter, name=self.name(color), note=", ".join(notes))


def choose_colors(
    owners: Sequence[ObjectRef], held: Mapping[int, int], teams: Mapping[ObjectRef, str]
) -> Colors:
    """Share out at most eight colours; where there are more names, those with most devices get one.

    Args:
        owners: The workloads in the order of the review.
        held: Devices by the index of the workload that holds them.
        teams: Team by workload, as far as known.
    """
    by: Literal["workload", "team", "namespace"] = "workload"
    names = [f"{owner.namespace}/{owner.name}".removeprefix("/") for owner in owners]
    if len(owners) <= COLORS:
        return Colors(by=by, names=tuple(names), of=tuple(range(len(owners))), owners=tuple(owners))
    of_teams = [teams.get(owner, "") for owner in owners]
    namespaces = [owner.namespace for owner in owners]
    if all(of_teams) and len(set(of_teams)) > 1:
        by = "team"
        names = of_teams
    elif len(set(namespaces)) > 1:
        by = "namespace"
        names = namespaces
    devices: Counter[str] = Counter()
    for index, name in enumerate(names):
        devices[name] += held.get(index, 0)
    first = sorted(sorted(devices, key=lambda name: (-devices[name], name))[:COLORS])
    indexes = {name: color for color, name in enumerate(first)}
    of = tuple(indexes.get(name, OTHER) for name in names)
    return Colors(by=by, names=tuple(first), of=of, owners=tuple(owners))


def letter_of(index: int) -> str:
    """The letter on the cells of a workload: `A` to `Z`, then `A1`."""
    letter = chr(ord("A") + index % 26)
    return letter if index < 26 else f"{letter}{index // 26}"
