"""Helm charts of the DRA driver, the GPU Operator and the example driver, and checks of their values.

A chart has its names, addresses, versions and values. Values are checked for keys that the chart knows and for the
right types: Helm itself drops unknown keys silently.
"""

from __future__ import annotations

import datetime as dt
import difflib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final, Literal, NamedTuple

from pydantic import Field

from dra_infra.catalog.records import Entry, Fact
from dra_infra.catalog.vocabulary import letters_of, numbers_of, read_data
from dra_infra.errors import Problem
from dra_infra.output.wording import nearest

Product = Literal["NVIDIA DRA driver", "GPU Operator", "DRA example driver"]

_TYPE = r"^(any|string|bool|int|number|list|map)(\|(string|bool|int|number|list|map))*$"


class ChartVersion(Entry):
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


class UnlistedValue(Entry):
    """A value that templates read and values.yaml does not show; `since` and `until` are the first two numbers."""

    type: str = Field(pattern=_TYPE)
    since: str = ""
    until: str = ""

    def is_in(self, version: str) -> bool:
        """The chart reads it in *version*."""
        line = numbers_of(version)[:2]
        return (not self.since or line >= numbers_of(self.since)) and (
            not self.until or line <= numbers_of(self.until)
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
        """The version for `helm install --version`: `v26.7.0` for the operator, `0.4.1` for the driver."""
        return f"{self.version_prefix}{version}"

    def app_version(self, version: str) -> str:
        """The chart's appVersion."""
        return f"{self.app_version_prefix or self.version_prefix}{version}"


class _KeyFile(Entry):
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


def chart_name_of(written: str) -> str:
    """The name of a chart that is written as a name, an address or a path, with or without a version."""
    return re.sub(r"(-v?\d[^/]*)?(\.tgz)?/?$", "", written.strip()).rpartition("/")[2]


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


_SAID: Final = {
    "string": "a string",
    "bool": "true or false",
    "int": "a whole number",
    "number": "a number",
    "list": "a list",
    "map": "a mapping",
}
_SHOWN = 6
"""How many keys a hint lists."""


def check_values(chart: str, version: str, values: Mapping[str, Any]) -> list[Problem]:
    """Compare values with those that a version of a chart knows.

    Args:
        chart: Name of the chart, `dra-driver-nvidia-gpu`.
        version: With or without a leading v.
        values: As in a values file. What is no JSON value, such as one that is only known later, is not judged; null
            is always right, for Helm then takes the default away.

    Returns:
        Problems whose paths start at the values: `unknown-chart-value`, `chart-value-type`; or one warning
        `values-not-known` when there is nothing to compare with. Source: `chart_values/*.yaml` and `charts.yaml`.
    """
    types = value_types(chart, bare_version(version))
    if not types:
        return [_not_known(chart, bare_version(version))]
    return list(_Check(chart, bare_version(version), types).value("", values))


class _Check(NamedTuple):
    chart: str
    version: str
    types: Mapping[str, str]

    def value(self, path: str, value: object) -> Iterator[Problem]:
        """Problems of what stands at a path that the chart knows."""
        type_ = self.types.get(path, "map")
        if not _fits(value, type_):
            yield self._wrong_type(path, value, type_)
        elif path not in self.types and isinstance(value, Mapping):
            for key, inner in value.items():
                below = f"{path}.{key}" if path else str(key)
                if "." not in str(key) and _names_below(self.types, below, itself=True):
                    yield from self.value(below, inner)
                else:
                    yield self._unknown(path, below, inner)

    def _wrong_type(self, path: str, value: object, type_: str) -> Problem:
        wanted = " or ".join(_SAID[each] for each in type_.split("|"))
        if type_ == "map" and path not in self.types:
            hint = f"{path or 'the chart'} holds {_listed(_names_below(self.types, path))}"
        else:
            hint = _right_value(_last(path), value, type_) or f"give {wanted}"
        return Problem(
            path=path,
            code="chart-value-type",
            message=f"{_written(value)} is not {wanted}, which {self.chart} {self.version} expects",
            hint=hint,
        )

    def _unknown(self, above: str, path: str, value: object) -> Problem:
        refusal = charts()[self.chart].refused.get(path)
        return Problem(
            path=path,
            code="unknown-chart-value",
            message=f"{self.chart} {self.version} has no value {path}"
            + ("" if refusal else ", and Helm drops it without a word"),
            hint=refusal or self._hint(above, path, value),
        )

    def _hint(self, above: str, path: str, value: object) -> str:
        if _names_below(self.types, path, itself=True):
            return f"a dot in a key is no step into it: write {_nested(path, value)}"
        elsewhere = _versions_with(self.chart, path)
        if elsewhere:
            return f"it is a value of {elsewhere}"
        near = nearest_values(path, self.types)
        if len(near) == 1:
            return f"did you mean {near[0]}? write {_nested(near[0], value)}"
        if near:
            return f"did you mean {', '.join(near[:-1])} or {near[-1]}?"
        where = f"below {above}" if above else "at the top"
        return f"{where} there are {_listed(_names_below(self.types, above))}"


def nearest_values(path: str, types: Mapping[str, str]) -> list[str]:
    """The paths, of values or of mappings that hold values, that are most likely meant by an unknown one."""
    known = sorted({*types, *(branch for each in types for branch in above_path(each))})
    above, _, name = path.rpartition(".")
    alike = {letters_of(each): each for each in known}
    if letters_of(path) in alike:
        return [alike[letters_of(path)]]
    siblings = {letters_of(_last(each)): each for each in known if each.rpartition(".")[0] == above}
    if close := nearest(letters_of(name), siblings, cutoff=0.7):
        return [siblings[close]]
    same_name = [each for each in known if letters_of(_last(each)) == letters_of(name)]
    if same_name:
        return sorted(difflib.get_close_matches(path[:80], same_name, n=3, cutoff=0.0))
    elsewhere = set(alike) - set(map(letters_of, above_path(path)))
    close = nearest(letters_of(path), sorted(elsewhere), cutoff=0.75)
    return [alike[close]] if close else []


def _fits(value: object, types: str) -> bool:
    if value is None or types == "any":
        return True
    match value:
        case bool():
            return "bool" in types.split("|")
        case int():
            return not {"int", "number"}.isdisjoint(types.split("|"))
        case float():
            return "number" in types.split("|")
        case str():
            return "string" in types.split("|")
        case Mapping():
            return "map" in types.split("|")
        case list() | tuple():
            return "list" in types.split("|")
    # Not a JSON value: only known later.
    return True


def _right_value(name: str, value: object, types: str) -> str:
    """The line to write where the value shows what is meant."""
    if isinstance(value, str) and "bool" in types and value.strip().lower() in ("true", "false"):
        return f"write {name}: {value.strip().lower()}, without quotes; a template takes any text for true"
    if isinstance(value, str) and "int" in types and re.fullmatch(r"-?\d{1,18}", value.strip()):
        return f"write {name}: {value.strip()}, without quotes"
    if isinstance(value, bool | int | float) and types == "string":
        return f'write {name}: "{json.dumps(value)}", with quotes'
    if isinstance(value, str | Mapping) and types == "list":
        return f"write {name}: [{_written(value)}]"
    return ""


def _not_known(name: str, version: str) -> Problem:
    chart = charts().get(name)
    known = [each for each, entry in chart.versions.items() if entry.keys] if chart else []
    owner = next((other for other, each in charts().items() if version in each.versions), name)
    near = nearest(name, charts())
    if owner != name and (chart is None or version not in chart.versions):
        hint = f"{version} is a version of the chart {owner}"
    elif known:
        hint = f"their keys and types are not checked; known are the values of {', '.join(known)}"
    elif near:
        hint = f"did you mean the chart {near}?"
    else:
        hint = f"known charts are {', '.join(charts())}"
    return Problem(
        path="",
        code="values-not-known",
        message=f"the values of the chart {name[:80]} {version[:40]} are not known here",
        hint=hint,
        severity="warning",
    )


def _versions_with(chart: str, path: str) -> str:
    """The versions of the same product that know a path, as text."""
    product = charts()[chart].product
    found = [
        f"{name} {version}"
        for name, each in charts().items()
        if each.product == product
        for version in each.versions
        if _names_below(value_types(name, version), path, itself=True)
    ]
    return " to ".join(dict.fromkeys((found[0], found[-1]))) if found else ""


def _names_below(types: Mapping[str, str], above: str, *, itself: bool = False) -> list[str]:
    """The keys in a mapping; with *itself* something also where the path is that of a value."""
    start = f"{above}." if above else ""
    names = {path[len(start) :].partition(".")[0] for path in types if path.startswith(start)}
    return sorted(names) or ([above] if itself and above in types else [])


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def _nested(path: str, value: object) -> str:
    """`{a: {b: value}}` of a path and a value, as one line of YAML."""
    *mappings, name = path.split(".")
    return "".join(f"{key}: {{" for key in mappings) + f"{name}: {_written(value)}" + "}" * len(mappings)


def _written(value: object) -> str:
    """A value as JSON, which is YAML too, cut where it is long."""
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return "..."
    return text if len(text) <= 60 else "..."


def _last(path: str) -> str:
    return path.rpartition(".")[2]
