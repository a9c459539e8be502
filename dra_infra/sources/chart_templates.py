"""Templates of charts among manifests: what Helm has to fill in first is no YAML, or names objects that nobody meant."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from dra_infra.errors import Place, Problem
from dra_infra.output.wording import count_of

CHART_NOT_READ: Final = "chart-not-read"
"""The code of a chart among manifests, whose templates are not checked."""

_ACTION: Final = b"{{"
_MOST_READ: Final = 1_000_000


def find_chart(file: Path) -> Path | None:
    """Return the folder of the chart of which a file is a template that Helm fills in; None for any other file."""
    for folder in file.parents:
        if folder.name == "templates" and (folder.parent / "Chart.yaml").is_file():
            return folder.parent if _has_actions(file) else None
    return None


def _has_actions(file: Path) -> bool:
    try:
        with file.open("rb") as opened:
            return _ACTION in opened.read(_MOST_READ)
    except OSError:
        return False


def describe_charts(charts: Mapping[Path, int]) -> Iterator[Problem]:
    """Yield a problem for each chart, with the number of its templates that were not read."""
    for chart, number in sorted(charts.items()):
        what = "it is filled in" if number == 1 else "they are filled in"
        yield Problem(
            path="chart",
            code=CHART_NOT_READ,
            message=f"{count_of(number, 'template')} of it cannot be checked before {what} by Helm",
            hint=f"helm template {chart.as_posix()} | dra-infra validate -; a change of it: dra-infra review {chart.as_posix()}",
            place=Place(file=(chart / "Chart.yaml").as_posix(), line=1, column=1),
        )
