"""Devices by team: who holds them, which of these nobody uses, and what is free.

A team is a namespace, or the value of a label that several namespaces have.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dra_infra.client.objects import labels_of, name_of, namespace_of
from dra_infra.cluster.status import ClaimStatus, Status
from dra_infra.kubernetes.api import mapping
from dra_infra.kubernetes.apiserver import QuotaKey, read_hard
from dra_infra.output.escaping import one_line
from dra_infra.output.wording import count_of, join_words

_UNUSED: Final = "allocated"
"""The state of a claim that has devices while no pod uses it."""

_ORDER: Final = ("in use", "allocated", "pending", "deleting")


@dataclass(frozen=True, kw_only=True, slots=True)
class TeamDevices:
    """The devices of one driver that a team holds.

    Args:
        driver: The driver.
        used: Devices of claims that pods use; a device of several claims counts once.
        unused: Devices of claims that no pod uses.
        shares: Of both, those that the team may have together with others.
        names: All of them, `pool/device`.
    """

    driver: str
    used: int
    unused: int
    shares: int
    names: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Team:
    """Holds what a team has.

    Args:
        name: Of its namespace, or the value of the label; empty for namespaces without it.
        namespaces: With claims of the team.
        devices: By driver.
        claims: Numbers of claims by state.
        waiting: Pods whose claims are not made yet.
        quota: Devices that ResourceQuotas allow, and count as used, by class.
    """

    name: str
    namespaces: tuple[str, ...]
    devices: tuple[TeamDevices, ...]
    claims: Mapping[str, int]
    waiting: int
    quota: Mapping[str, Mapping[str, int]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Teams:
    """All teams that have claims or a quota of devices, and what nobody has.

    Args:
        label: The label of namespaces that names teams; empty where each namespace is one.
        teams: By name.
        published: Devices by driver; empty where not every namespace's claims were seen, for nobody knows then what is free.
        free: Of these, devices that no claim has.
    """

    label: str
    teams: tuple[Team, ...]
    published: Mapping[str, int]
    free: Mapping[str, int]


def find_teams(
    status: Status,
    namespaces: Sequence[Mapping[str, Any]] = (),
    *,
    label: str = "",
    sees_all: bool = True,
    quotas: Sequence[Mapping[str, Any]] = (),
) -> Teams:
    """Find what each team holds.

    Args:
        status: Every claim.
        namespaces: Where *label* is looked up.
        label: Of namespaces; empty for a team of each namespace.
        sees_all: Whether the claims of all namespaces are in *status*.
        quotas: ResourceQuotas; of several in a namespace the least allows.
    """
    values = {name_of(each): str(labels_of(each).get(label, "")) for each in namespaces}

    def team_of(namespace: str) -> str:
        return values.get(namespace, "") if label else namespace

    claims: defaultdict[str, list[ClaimStatus]] = defaultdict(list)
    waiting: defaultdict[str, int] = defaultdict(int)
    spaces: defaultdict[str, set[str]] = defaultdict(set)
    for claim in status.claims:
        claims[team_of(claim.namespace)].append(claim)
        spaces[team_of(claim.namespace)].add(claim.namespace)
    for pod in status.waiting:
        waiting[team_of(pod.namespace)] += 1
        spaces[team_of(pod.namespace)].add(pod.namespace)
    allowed: dict[tuple[str, str], tuple[int, int]] = {}
    for each in quotas:
        used = read_hard({"spec": {"hard": mapping(each.get("status")).get("used")}})
        for key, hard in read_hard(each).items():
            if (class_name := QuotaKey(key).class_name) is not None:
                spaces[team_of(namespace_of(each))].add(namespace_of(each))
                where = (namespace_of(each), class_name)
                found = (hard, used.get(key, 0))
                allowed[where] = min(allowed.get(where, found), found)
    quota: defaultdict[str, dict[str, dict[str, int]]] = defaultdict(dict)
    for (namespace, class_name), (hard, taken) in sorted(allowed.items()):
        total = quota[team_of(namespace)].setdefault(class_name, {"hard": 0, "used": 0})
        total["hard"] += hard
        total["used"] += taken
    teams = tuple(
        Team(
            name=name,
            namespaces=tuple(sorted(spaces[name])),
            devices=tuple(_devices(claims[name])),
            claims={
                state: number
                for state in _ORDER
                if (number := sum(each.state == state for each in claims[name]))
            },
            waiting=waiting[name],
            quota=quota[name],
        )
        for name in sorted(spaces)
    )
    published = status.published if sees_all else {}
    free = {driver: number - status.taken[driver] for driver, number in published.items()}
    return Teams(label=label, teams=teams, published=published, free=free)


def _devices(claims: Sequence[ClaimStatus]) -> Iterator[TeamDevices]:
    used: defaultdict[str, set[str]] = defaultdict(set)
    held: defaultdict[str, set[str]] = defaultdict(set)
    shares: defaultdict[str, set[str]] = defaultdict(set)
    for claim in claims:
        for each in claim.devices:
            # What is only looked at is another's, or nobody's.
            if each.is_admin:
                continue
            name = f"{each.pool}/{each.device}"
            held[each.driver].add(name)
            if claim.state != _UNUSED:
                used[each.driver].add(name)
            if each.share:
                shares[each.driver].add(name)
    for driver in sorted(held):
        yield TeamDevices(
            driver=driver,
            used=len(used[driver]),
            unused=len(held[driver] - used[driver]),
            shares=len(shares[driver]),
            names=tuple(sorted(held[driver])),
        )


def describe_teams(found: Teams) -> Iterator[str]:
    """A line for each team and driver, and one for what is free of each driver."""
    rows = [row for team in found.teams for row in _rows(team, found.label)]
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(3)]
    for row in rows:
        cells = [f"{cell:{width}}" for cell, width in zip(row[:3], widths, strict=True)]
        yield "  ".join([*cells, row[3]]).rstrip()
    yield count_of(len(found.teams), "team")
    for driver, number in found.published.items():
        yield f"{driver}: {found.free[driver]:,} of {count_of(number, 'device')} free"


def _rows(team: Team, label: str) -> Iterator[tuple[str, str, str, str]]:
    # On one line first: what is spelled out takes more room.
    name = one_line(team.name) or f"(no label {one_line(label)})"
    told = [f"{number} {state}" for state, number in team.claims.items()]
    if team.waiting:
        told.append(f"{count_of(team.waiting, 'pod')} without claims")
    claims = f"{count_of(sum(team.claims.values()), 'claim')}{f': {join_words(told)}' if told else ''}"
    if team.quota:
        shares = (f"{each['used']} of {each['hard']} {one_line(key)}" for key, each in team.quota.items())
        claims += f"; quota: {join_words(shares)}"
    for number, each in enumerate(team.devices):
        amount = count_of(each.used + each.unused, "device")
        notes = [f"{each.unused} in no use"] if each.unused else []
        notes += [f"{each.shares} shared"] if each.shares else []
        held = f"{amount}{f' ({join_words(notes)})' if notes else ''}"
        yield name, one_line(each.driver), held, claims if number == 0 else ""
    if not team.devices:
        yield name, "-", "no devices", claims


_METRICS: Final = {
    "dra_infra_team_devices": "Devices that claims of a team have, by whether a pod uses them.",
    "dra_infra_team_claims": "Claims of a team by state.",
    "dra_infra_team_quota": "Devices that quotas of a team allow, by class, and what they count as used.",
    "dra_infra_devices": "Published devices by whether a claim has them.",
}


def to_prometheus(found: Teams) -> Iterator[str]:
    """The numbers in the text format of Prometheus, for a file of the node exporter or a push."""
    samples: dict[str, list[tuple[dict[str, str], int]]] = {name: [] for name in _METRICS}
    for team in found.teams:
        for metric, labels, number in _samples_of(team):
            samples[metric].append(({"team": team.name, **labels}, number))
    for driver, number in found.published.items():
        for state, amount in (("taken", number - found.free[driver]), ("free", found.free[driver])):
            samples["dra_infra_devices"].append(({"driver": driver, "state": state}, amount))
    for name, meaning in _METRICS.items():
        yield f"# HELP {name} {meaning}"
        yield f"# TYPE {name} gauge"
        for labels, amount in samples[name]:
            shown = ",".join(f"{key}={_quoted(value)}" for key, value in labels.items())
            yield f"{name}{{{shown}}} {amount}"


def _samples_of(team: Team) -> Iterator[tuple[str, dict[str, str], int]]:
    for each in team.devices:
        for state, number in (("used", each.used), ("unused", each.unused)):
            yield "dra_infra_team_devices", {"driver": each.driver, "state": state}, number
    for state in _ORDER:
        yield "dra_infra_team_claims", {"state": state}, team.claims.get(state, 0)
    for name, quota in team.quota.items():
        for state, number in quota.items():
            yield "dra_infra_team_quota", {"class": name, "state": state}, number


def _quoted(value: str) -> str:
    """A label's value, whose escapes are those of JSON for a backslash and a quote, and there are no others."""
    return json.dumps(one_line(value), ensure_ascii=False)
