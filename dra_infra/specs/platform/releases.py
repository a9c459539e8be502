"""Chooses the chart and version that are meant."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from dra_infra.catalog.charts import (
    Chart,
    Product,
    bare_version,
    chart_name_of,
    chart_of,
    charts,
    value_types,
)
from dra_infra.errors import Problem
from dra_infra.output.wording import nearest
from dra_infra.specs.arguments import shorten

_VERSION = re.compile(r"v?\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?", re.ASCII)


@dataclass(frozen=True)
class ChosenRelease:
    """A version of a chart; `line` is that of the DRA driver it installs, of the operator its first two numbers."""

    product: Product
    name: str
    chart: Chart
    version: str
    line: str

    @cached_property
    def types(self) -> Mapping[str, str]:
        """Path to type of every value; empty where they are not known."""
        return value_types(self.name, self.version)

    def knows(self, path: str) -> bool:
        """The chart has a value at *path*, or takes any key above it; True where its values are not known."""
        above = [path.rsplit(".", steps)[0] for steps in range(path.count(".") + 1)]
        return not self.types or any(each in self.types for each in above)


def newest_of_line(product: Product, line: str) -> str:
    """The newest version of a release line, of those whose values are known if there are any; empty for no line."""
    found = [
        (bool(each.keys), index, version)
        for chart in charts().values()
        if chart.product == product
        for index, (version, each) in enumerate(chart.versions.items())
        if line and each.line == line
    ]
    return max(found, default=(False, 0, ""))[2]


def choose_release(product: Product, version: object, *, otherwise: str = "") -> ChosenRelease | Problem:
    """The chart that a version belongs to.

    Args:
        product: What is installed.
        version: As the user gave it; None takes the other, or the newest whose values are known.
        otherwise: Version where the user gives none.

    Returns:
        The release, or a problem `wrong-type` or `unknown-chart-version`. A version newer than all that are known,
        or a patch of a known line, is taken as it is.
    """
    own = {name: chart for name, chart in charts().items() if chart.product == product}
    if version is None:
        version = otherwise or list(own.values())[-1].newest
    if not isinstance(version, str):
        message = f"{shorten(version)} is not a version"
        return Problem(path="version", code="wrong-type", message=message, hint=_listed(own))
    bare = bare_version(version)
    known = chart_of(product, bare)
    if known:
        return ChosenRelease(product, *known, bare, _line(known.chart, bare))
    if not _VERSION.fullmatch(version.strip()):
        return _unknown(f"{shorten(version)} is not a version", bare, own)
    for name, chart in own.items():
        if any(_two(each) == _two(bare) for each in chart.versions):
            return ChosenRelease(product, name, chart, bare, _line(chart, bare))
    name, chart = list(own.items())[-1]
    if _two(bare) > max(map(_two, chart.versions)) and not _belongs_to_older(own, bare):
        return ChosenRelease(product, name, chart, bare, "")
    return _unknown(f"there is no version {shorten(bare)} of the {product}", bare, own)


def check_chart_name(chosen: ChosenRelease, chart: object) -> Iterator[Problem]:
    """A chart that the user names is not that of another version: `unknown-chart-version`."""
    last = chart_name_of(chart) if isinstance(chart, str) else ""
    if last in charts() and last != chosen.name:
        message = f"{chosen.version} is a version of the chart {chosen.name}, not of {last}"
        hint = f"leave chart= out, or write a version of {last}: {', '.join(charts()[last].versions)}"
        yield Problem(path="chart", code="unknown-chart-version", message=message, hint=hint)


def numbers(version: str) -> tuple[int, ...]:
    """The numbers that a version starts with: (0, 4, 1) of `v0.4.1`."""
    return tuple(int(each) for each in re.findall(r"\d+", bare_version(version).partition("-")[0]))


def is_older(version: str, least: str) -> bool:
    """True for a version older than *least*, as far as that one is written: 565.57 is not older than 565."""
    wanted = numbers(least)
    return numbers(version)[: len(wanted)] < wanted


def _belongs_to_older(own: Mapping[str, Chart], version: str) -> bool:
    """25.4 is newer than 0.5 by number alone: the DRA driver went from years to semantic versions."""
    return len(own) > 1 and numbers(version)[0] >= 25


def _line(chart: Chart, version: str) -> str:
    known = chart.versions.get(version)
    of_line = [each.line for other, each in chart.versions.items() if _two(other) == _two(version)]
    return (known.line if known else next(iter(of_line), "")) or ".".join(map(str, _two(version)))


def _two(version: str) -> tuple[int, ...]:
    return numbers(version)[:2]


def _unknown(message: str, version: str, own: Mapping[str, Chart]) -> Problem:
    every = [each for chart in own.values() for each in chart.versions]
    near = nearest(version[:40], every)
    hint = f"did you mean {near}? {_listed(own)}" if near else _listed(own)
    return Problem(path="version", code="unknown-chart-version", message=message, hint=hint)


def _listed(own: Mapping[str, Any]) -> str:
    return "known are " + ", ".join(each for chart in own.values() for each in chart.versions)
