"""Helm releases of a program whose charts are known here."""

from __future__ import annotations

import re
from typing import Final

from dra_infra.catalog.charts import bare_version, charts
from dra_infra.errors import Problem
from dra_infra.model.metadata import ObjectRef
from dra_infra.model.program import ProgramRelease
from dra_infra.specs.platform.releases import ChosenRelease, choose_release, numbers

DRIVER: Final = "NVIDIA DRA driver"
OPERATOR: Final = "GPU Operator"


def ref_of(release: ProgramRelease) -> ObjectRef:
    """What dangers call a release."""
    return ObjectRef(kind="Release", name=release.name, namespace=release.namespace)


def choose_chart(release: ProgramRelease) -> ChosenRelease | None:
    """The known chart; None for one that is not known here."""
    chart = charts().get(name_of_chart(release))
    if chart is None or not numbers(release.version):
        return None
    chosen = choose_release(chart.product, release.version)
    return None if isinstance(chosen, Problem) else chosen


def name_of_chart(release: ProgramRelease) -> str:
    """The name of a chart, from an address or a path."""
    return re.sub(r"(-v?\d[^/]*)?(\.tgz)?/?$", "", release.chart.strip()).rpartition("/")[2]


def show_version(version: str) -> str:
    """A version of a chart, also where none is written."""
    return bare_version(version) or "whatever is newest"
