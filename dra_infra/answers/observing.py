"""The answer of `dra-infra status`: the claims of a cluster with their devices, and what each team has."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from dra_infra.answers.settings import read_snapshot
from dra_infra.client.kinds import CLAIMS, EVENTS, NAMESPACES, PODS, QUOTAS, SLICES, Kind
from dra_infra.client.kubeconfig import REQUEST_TIMEOUT
from dra_infra.client.objects import is_object, namespace_of, text
from dra_infra.client.refusals import nothing_seen
from dra_infra.cluster.reading import Listing, Reader, open_reader
from dra_infra.cluster.status import Graph, Seen, Status, find_graph, find_status
from dra_infra.cluster.teams import Teams, find_teams
from dra_infra.cluster.watching import Watch
from dra_infra.errors import Problem
from dra_infra.kubernetes.api import can_decode, convert

Items = Mapping[Kind, Sequence[Mapping[str, Any]]]
"""The objects of a cluster by kind."""

_KINDS: Final = (CLAIMS, PODS, SLICES, EVENTS)
_WARNINGS: Final[Mapping[Kind, str]] = {EVENTS: "type=Warning"}
_TICK: Final = 1.0
"""Seconds after which a waiting main thread looks for signals."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ClusterStatus:
    """The answer.

    Args:
        claims: Every claim, the pods that wait for one, and devices by driver.
        teams: Devices and quota of each team; None unless teams were requested.
        problems: What could not be read.
        pods: The pods that the graph is drawn of.
    """

    claims: Status
    teams: Teams | None = None
    problems: tuple[Problem, ...] = ()
    pods: Sequence[Mapping[str, Any]] = field(default=(), repr=False)

    @property
    def graph(self) -> Graph:
        """How pods, claims, classes and devices are connected."""
        return find_graph(self.claims, self.pods)

    @property
    def exit_code(self) -> int:
        """Always 0: a status judges nothing, and what could not be read is in `problems`."""
        return 0


@dataclass(frozen=True, kw_only=True, slots=True)
class LiveStatus:
    """A status that can be followed.

    Args:
        now: The status when it was read.
        reader: Reads the cluster again.
        listings: The objects that were read.
        team_label: Label of namespaces that names teams; None unless teams were requested.
        sees_all: Whether the claims of all namespaces are seen.
    """

    now: ClusterStatus
    reader: Reader = field(repr=False)
    listings: Sequence[Listing] = field(repr=False)
    team_label: str | None = None
    sees_all: bool = True

    def follow(self) -> Iterator[ClusterStatus]:
        """Yield the status as it is, and again after each change, without end."""
        kinds = [each.kind for each in self.listings]
        changes = -1
        with Watch(self.reader, self.listings, field_selectors=_WARNINGS) as following:
            while True:
                count = following.wait(changes, _TICK) if changes >= 0 else 0
                if count != changes:
                    changes = count
                    problems = (*self.now.problems, *following.problems)
                    items = {kind: following.items(kind) for kind in kinds}
                    yield find_cluster_status(
                        items, team_label=self.team_label, sees_all=self.sees_all, problems=problems
                    )


def observe(
    *,
    kubeconfig: Path | None = None,
    context: str | None = None,
    request_timeout: float = REQUEST_TIMEOUT,
    namespaces: Sequence[str] = (),
    team_label: str | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> LiveStatus:
    """Read the claims of a live cluster, and return their status.

    Args:
        kubeconfig: The kubeconfig; None takes the one that kubectl would take.
        context: Its context; None takes the current one.
        request_timeout: Seconds of silence after which a request is given up.
        namespaces: Namespaces to read; empty for all.
        team_label: Label of namespaces whose value is the team; empty for a team of each namespace, None for no teams.
        tell: Called with what is being read, for a progress line.

    Raises:
        ClusterError: When neither claims nor pods can be read.
    """
    has_teams = team_label is not None
    kinds = (*_KINDS, *([QUOTAS] if has_teams else []), *([NAMESPACES] if team_label else []))
    reader = open_reader(
        kubeconfig, context, namespaces=namespaces, request_timeout=request_timeout, tell=tell
    )
    listings = [reader.list(kind, field_selector=_WARNINGS.get(kind, "")) for kind in kinds]
    problems = tuple(problem for each in listings for problem in each.problems)
    claims, pods, *_ = listings
    if not claims.is_seen and not pods.is_seen:
        raise nothing_seen(list(problems))
    sees_all = not namespaces and not claims.problems
    items = {each.kind: each.items for each in listings}
    now = find_cluster_status(items, team_label=team_label, sees_all=sees_all, problems=problems)
    return LiveStatus(now=now, reader=reader, listings=listings, team_label=team_label, sees_all=sees_all)


def observe_snapshot(
    file: Path, *, namespaces: Sequence[str] = (), team_label: str | None = None
) -> ClusterStatus:
    """Return the status of the claims in a snapshot.

    Args:
        file: The cluster as `dra-infra snapshot` or kubectl wrote it.
        namespaces: Namespaces to read; empty for all.
        team_label: As for `observe`.

    Raises:
        FleetError: When the snapshot cannot be read.
    """
    return find_cluster_status(_read_items(file, namespaces), team_label=team_label, sees_all=not namespaces)


def find_cluster_status(
    items: Items,
    *,
    team_label: str | None = None,
    sees_all: bool = True,
    problems: tuple[Problem, ...] = (),
) -> ClusterStatus:
    """Return the status of the claims among objects of a cluster.

    Args:
        items: The objects.
        team_label: As for `observe`.
        sees_all: Whether the claims of all namespaces are among them.
        problems: What could not be read.
    """
    seen = Seen(claims=items[CLAIMS], pods=items[PODS], slices=items[SLICES], events=items[EVENTS])
    claims = find_status(seen)
    teams = None
    if team_label is not None:
        spaces, quotas = items.get(NAMESPACES, ()), items.get(QUOTAS, ())
        teams = find_teams(claims, spaces, label=team_label, sees_all=sees_all, quotas=quotas)
    return ClusterStatus(claims=claims, teams=teams, problems=problems, pods=seen.pods)


def _read_items(file: Path, namespaces: Sequence[str]) -> Items:
    """The objects of a snapshot by kind, in the best version; of the namespaces that are named alone."""
    taken = read_snapshot(file)
    by_name = {kind.name: kind for kind in (*_KINDS, QUOTAS, NAMESPACES)}
    found: dict[Kind, list[Mapping[str, Any]]] = {kind: [] for kind in by_name.values()}
    found[SLICES] += [each.to_manifest() for each in taken.fleet.slices]
    for each in taken.objects:
        kind = by_name.get(text(each.get("kind")))
        if kind is None or not is_object(each):
            continue
        if kind.namespaced and namespaces and namespace_of(each) not in namespaces:
            continue
        # Of kubectl it may be an older version; what no server sends is shown as it is.
        found[kind].append(convert(each, "v1") if can_decode(each) else each)
    return found
