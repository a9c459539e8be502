"""The catalogue of metrics of devices, and of what is made of them: alerts, and the panels of a dashboard, for a minor and its gates.

The names of metrics change from minor to minor. Expressions name them by keys, and stand only where all of theirs are exposed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Final, Literal

from pydantic import Field

from dra_infra.catalog.records import Entry, Fact
from dra_infra.catalog.vocabulary import read_data
from dra_infra.kubernetes.api import Release

SEVERITIES: Final = ("critical", "warning", "info")
"""Severities of kubernetes-mixin, which routes of Alertmanager know."""

PLUGIN: Final = "dra-infra-plugin"
"""The job of our node plugin."""

_FILLED: Final = re.compile(r"<([a-z_]+)>")
_NO_METRICS: Final = frozenset({"any", "job", "rate", "threshold"})


class Metric(Fact):
    """A metric of a server, of the kubelet, or of our node plugin.

    Args:
        names: Its name, by the minor from which on it is called so.
        exposed_by: Who exposes it, which is the name of the job too.
        form: A histogram is queried by the names of its parts.
        gate: Without which it is not exposed.
        labels: Those that every minor has.
    """

    names: dict[str, str] = Field(min_length=1)
    exposed_by: Literal["kube-controller-manager", "kube-scheduler", "kubelet", "dra-infra-plugin"]
    form: Literal["plain", "histogram"] = "plain"
    gate: str = ""
    labels: tuple[str, ...] = ()

    def name_in(self, release: Release) -> str:
        """Its name; empty where it is not exposed."""
        if self.gate and self.gate not in release.gates:
            return ""
        since = [minor for minor in self.names if _number(minor) <= _number(release.minor)]
        return self.names[max(since, key=_number)] if since else ""


class Alert(Entry):
    """An alert, as kubernetes-mixin writes them.

    Args:
        expr: With keys of metrics.
        threshold: Above which it fires; None where there is nothing to set.
        wait: How long it has to hold.
        severity: One of `SEVERITIES`.
        summary: One sentence.
        description: With the labels and the value.
        means: For the page of runbooks.
        act: Likewise, what to do.
    """

    expr: str
    threshold: float | None = None
    wait: str = Field(alias="for")
    severity: Literal["critical", "warning", "info"]
    summary: str = Field(pattern=r"\.$")
    description: str
    means: str
    act: str


class Query(Entry):
    """A line of a panel."""

    expr: str
    legend: str


class Panel(Entry):
    """A panel of the dashboard."""

    title: str
    unit: str
    queries: tuple[Query, ...] = Field(min_length=1)


@cache
def metrics() -> Mapping[str, Metric]:
    """All metrics by key."""
    return {key: Metric.model_validate(each) for key, each in read_data("monitoring.yaml")["metrics"].items()}


@cache
def alerts() -> Mapping[str, Alert]:
    """All alerts by name."""
    return {name: Alert.model_validate(each) for name, each in read_data("monitoring.yaml")["alerts"].items()}


@cache
def panels() -> tuple[Panel, ...]:
    """All panels, in order."""
    return tuple(Panel.model_validate(each) for each in read_data("monitoring.yaml")["panels"])


def metrics_of(expr: str) -> tuple[Metric, ...]:
    """The metrics that an expression names."""
    return tuple(metrics()[key] for key in _keys(expr))


def fill(expr: str, release: Release, jobs: Mapping[str, str], *, selector: str = "", **values: str) -> str:
    """An expression for a release; empty where one of its metrics is not exposed there.

    Args:
        expr: With keys of metrics.
        release: The minor and its gates.
        jobs: Names of jobs, by who exposes a metric, where they are called otherwise.
        selector: More matchers, `cluster="$cluster"`.
        values: Of `threshold` and `rate`.
    """
    named = metrics_of(expr)
    known = {key: metrics()[key].name_in(release) for key in _keys(expr)}
    if not all(known.values()):
        return ""
    exposed_by = named[0].exposed_by
    job = f'job="{jobs.get(exposed_by, exposed_by)}"'
    known["job"] = f"{selector}, {job}" if selector else job
    return _FILLED.sub(lambda found: {**known, **values}.get(found[1], found[0]), expr)


def _keys(expr: str) -> Iterator[str]:
    return (key for key in _FILLED.findall(expr) if key not in _NO_METRICS)


def _number(minor: str) -> int:
    return int(minor.partition(".")[2])
