"""The Helm charts of the DRA driver, the GPU Operator and the example driver: names, addresses, versions, values."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from functools import cache
from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from dra_infra.catalog.records import Fact
from dra_infra.catalog.vocabulary import read_data

Product = Literal["NVIDIA DRA driver", "GPU Operator", "DRA example driver"]

_TYPE = r"^(any|string|bool|int|number|list|map)(\|(string|bool|int|number|list|map))*$"


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ChartVersion(_Record):
    """One version of a chart; what is not known is empty.

    Args:
        date: Day of the release.
        line: Release line of the DRA driver that it installs, None for the operator.
        kubernetes: Range that the chart itself declares.
        kernel_driver: Version of NVIDIA's kernel driver that it installs by default.
        dra_driver: Version of the DRA driver that it carries.
        keys: Version whose file in `chart_values/` lists the values.
        uncertain: What is not known about the version.
    """

    date: dt.date | None = None
    line: str = ""
    kubernetes: str = ""
    kernel_driver: str = ""
    dra_driver: str = ""
    keys: str = ""
    uncertain: str = ""


class UnlistedValue(_Record):
    """A value that templates read and values.yaml does not show; `since` and `until` are the first two numbers."""

    type: str = Field(pattern=_TYPE)
    since: str = ""
    until: str = ""

    def is_in(self, version: str) -> bool:
        """Whether *version* reads it."""
        line = _numbers(version)[:2]
        return (not self.since or line >= _numbers(self.since)) and (
            not self.until or line <= _numbers(self.until)
        )


class Chart(Fact):
    """A chart with its versions, oldest first.

    Args:
        repository: `oci://` names the chart itself, `https://` the repository in which its name is looked up.
        namespace: Where its documentation installs it.
        version_prefix: In front of the chart's own version, and of the application's.
        app_version_prefix: In front of the application's version alone.
        refused: Values that make the chart fail, with the reason.
        types: Types that are accepted instead of the one that the default has.
    """

    title: str
    product: Product
    repository: str = Field(pattern=r"^(oci|https)://")
    namespace: str
    version_prefix: str = ""
    app_version_prefix: str = ""
    versions: Mapping[str, ChartVersion]
    unlisted: Mapping[str, UnlistedValue] = {}
    refused: Mapping[str, str] = {}
    types: Mapping[str, str] = {}

    @property
    def newest(self) -> str:
        """The newest version whose values are known."""
        return [version for version, each in self.versions.items() if each.keys][-1]

    def helm_version(self, version: str) -> str:
        """What `helm install --version` is given: `v26.7.0` for the operator, `0.4.1` for the driver."""
        return f"{self.version_prefix}{version}"

    def app_version(self, version: str) -> str:
        """The chart's appVersion."""
        return f"{self.app_version_prefix or self.version_prefix}{version}"


class _KeyFile(_Record):
    """A file of `chart_values/`, as `tools/chart_keys.py` writes it."""

    chart: str
    version: str
    keys: Mapping[str, str]


class KnownChart(NamedTuple):
    """A chart by its name."""

    name: str
    chart: Chart


@cache
def charts() -> dict[str, Chart]:
    """Every chart that is known, by name."""
    return {name: Chart.model_validate(entry) for name, entry in read_data("charts.yaml").items()}


def chart_of(product: Product, version: str) -> KnownChart | None:
    """The chart that installs a version of a product, None where no such version is known.

    The DRA driver changed its chart's name at 0.4. *version* may have a leading v.
    """
    bare = bare_version(version)
    for name, chart in charts().items():
        if chart.product == product and bare in chart.versions:
            return KnownChart(name, chart)
    return None


def bare_version(version: str) -> str:
    """A version as this catalogue writes it: no blanks, no leading v."""
    return version.strip().removeprefix("v")


@cache
def value_types(name: str, version: str) -> Mapping[str, str]:
    """Path to type of every value that a version of a chart knows; empty where they are not known.

    Types are those of `tools/chart_keys.py`, several joined by `|`.
    """
    chart = charts().get(name)
    known = chart and chart.versions.get(bare_version(version))
    if not chart or not known or not known.keys:
        return {}
    listed = _KeyFile.model_validate(read_data(f"chart_values/{name}-{known.keys}.yaml")).keys
    unlisted = {path: value.type for path, value in chart.unlisted.items() if value.is_in(known.keys)}
    types = {path: type_ for path, type_ in chart.types.items() if path in listed}
    # What values.yaml shows is known more exactly than what a template was seen to read.
    merged = unlisted | dict(listed) | types
    branches = {above for path in merged for above in above_path(path)}
    return {path: type_ for path, type_ in sorted(merged.items()) if path not in branches}


def above_path(path: str) -> list[str]:
    """Every mapping that holds a value: `a`, `a.b` of `a.b.c`."""
    keys = path.split(".")
    return [".".join(keys[:length]) for length in range(1, len(keys))]


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in version.split("."))
