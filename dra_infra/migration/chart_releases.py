"""Objects and files that install charts: which chart and release, and its values in every form that they are written in.

The forms are rows of catalog/data/migrated_charts.yaml, each with its source.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final, NamedTuple

from dra_infra.catalog.vocabulary import numbers_of, read_data
from dra_infra.documents.yaml_events import RefusedYamlError, read_documents
from dra_infra.kubernetes.api import (
    FieldPath,
    find_all,
    group_of,
    mapping,
    mappings,
    read_steps,
    show_steps,
    value_at,
)

_EXACT: Final = re.compile(r"v?([0-9]+\.[0-9]+\.[0-9]+)(?:[-+][0-9A-Za-z.+-]*)?")
"""One release; ranges such as `1.x` and `>=1.2` are none."""

_STEP: Final = re.compile(r"\[([0-9]{1,3})\]|((?:\\.|[^.\\\[])+)\.?")
"""A step of a name as `helm --set` takes it, which has a backslash before dots that are no separator."""

_MOST_ITEMS: Final = 100
"""Items of lists that names with positions may make."""


class Release(NamedTuple):
    """The release of a chart that is installed; of a values file nothing is known.

    Args:
        chart: Name of the chart.
        version: As it is written, which may be a range.
        path: Where the version stands, or would stand.
    """

    chart: str = ""
    version: str = ""
    path: str = ""

    def why_too_old(self, chart: str) -> str:
        """Say why *chart* does not take what a migration writes; empty where it does, or where no release is known."""
        match = _EXACT.fullmatch(self.version) if self.chart == chart else None
        since = str(_charts()[chart]["since"])
        if not match or numbers_of(match[1]) >= numbers_of(since):
            return ""
        older = _charts()[chart]["older"]
        return f"{chart} {self.version[:40]} is older than {since}: releases before that {older}"

    def tell_since(self, chart: str) -> str:
        """Name the first release of *chart* that takes what is written, where the input does not name a release."""
        is_known = self.chart == chart and _EXACT.fullmatch(self.version)
        return "" if is_known else f", from {chart} {_charts()[chart]['since']} on"


class Values(NamedTuple):
    """Values of a chart in one of the places where an installation has them.

    Args:
        at: Where they stand.
        data: What they say.
        text: The text that says it; None where it is data of the object.
        is_rewritten: Whether a change can be written into it, which a list of parameters does not take.
    """

    at: FieldPath
    data: Mapping[str, Any]
    text: str | None = None
    is_rewritten: bool = True


class Installation(NamedTuple):
    """A chart that an object installs.

    Args:
        release: The chart and its release.
        values: Its values, each over those before it.
        unread: Where texts stand that are no YAML before something fills them in.
    """

    release: Release
    values: Sequence[Values]
    unread: Sequence[FieldPath] = ()


@cache
def _charts() -> Mapping[str, Mapping[str, Any]]:
    return {each["chart"]: each for each in read_data("migrated_charts.yaml")["charts"]}


@cache
def _installers() -> Mapping[tuple[str, str | None], Sequence[Mapping[str, Any]]]:
    """What installs charts, by API group and kind; a file that is no object has none."""
    by_kind: dict[tuple[str, str | None], list[Mapping[str, Any]]] = {}
    for row in read_data("migrated_charts.yaml")["installers"]:
        by_kind.setdefault((row.get("group", ""), row.get("kind")), []).append(row)
    return by_kind


def find_installations(manifest: Mapping[str, Any]) -> Iterator[Installation]:
    """Yield each chart that an object, or a file that is none, installs."""
    kind = manifest.get("kind")
    for row in _installers().get((group_of(manifest), str(kind)) if kind else ("", None), ()):
        for path in row["releases"]:
            for at, installed in find_all(manifest, read_steps(path)):
                if isinstance(installed, Mapping):
                    yield _read_installation(at, installed, row)


def _read_installation(at: FieldPath, installed: Mapping[str, Any], row: Mapping[str, Any]) -> Installation:
    found: list[Values] = []
    unread: list[FieldPath] = []
    for place in row["values"]:
        if (over := place.get("unless")) and value_at(installed, *read_steps(over)) is not None:
            continue
        for steps, written in find_all(installed, read_steps(place["path"]), at):
            form = place.get("form")
            if form == "text" and isinstance(written, str):
                data = read_text(written)
                if data is None:
                    unread.append(steps)
                else:
                    found.append(Values(steps, data, text=written))
            elif form == "parameters":
                rows = mappings(written)
                texts = frozenset(str(each.get("name")) for each in rows if each.get("forceString") is True)
                pairs = [(each.get("name"), each.get("value")) for each in rows]
                found += read_parameters(steps, pairs, texts)
            elif form == "set":
                found += read_parameters(steps, list(mapping(written).items()))
            elif not form and isinstance(written, Mapping):
                found.append(Values(steps, written))
    chart, version = (value_at(installed, *read_steps(row[each])) for each in ("chart", "version"))
    version_path = show_steps((*at, *read_steps(row["version"])))
    name = str(chart or "").rstrip("/").rpartition("/")[2]
    return Installation(Release(name, str(version or ""), version_path), found, unread)


def read_text(text: str) -> Mapping[str, Any] | None:
    """Data of a text with one document; None for a text that is no YAML."""
    try:
        documents = [each.data for each in read_documents(text)]
    except RefusedYamlError:
        return None
    if all(each is None for each in documents):
        return {}
    return documents[0] if len(documents) == 1 and isinstance(documents[0], dict) else None


def read_parameters(
    at: FieldPath, pairs: Sequence[tuple[Any, Any]], texts: frozenset[str] = frozenset()
) -> Iterator[Values]:
    """Yield the values that parameters make, as `helm --set` reads them.

    Args:
        at: Where they stand.
        pairs: Names and values.
        texts: Names whose values stay texts, as with `--set-string`.
    """
    data: Any = {}
    for name, value in pairs:
        steps = tuple(
            int(found[1]) if found[1] else re.sub(r"\\(.)", r"\1", found[2])
            for found in _STEP.finditer(str(name or ""))
        )
        if steps and all(each < _MOST_ITEMS for each in steps if isinstance(each, int)):
            data = _put(data, steps, str(value) if str(name) in texts else _read_word(value))
    if data:
        yield Values(at, data, is_rewritten=False)


def _put(data: Any, steps: Sequence[str | int], value: Any) -> Any:
    if not steps:
        return value
    step, *rest = steps
    if isinstance(step, int):
        items = list(data) if isinstance(data, list) else []
        items += [None] * (step + 1 - len(items))
        items[step] = _put(items[step], rest, value)
        return items
    return {**mapping(data), step: _put(mapping(data).get(step), rest, value)}


def _read_word(value: Any) -> Any:
    """The value that `helm --set` makes of a word."""
    words = {"true": True, "false": False, "null": None}
    if not isinstance(value, str) or value in words:
        return words.get(value, value) if isinstance(value, str) else value
    return int(value) if re.fullmatch("0|[1-9][0-9]{0,17}", value) else value


def merge_values(parts: Sequence[Values]) -> Mapping[str, Any]:
    """Return the values of all *parts* together, as Helm merges them: of lists the last counts."""
    merged: Mapping[str, Any] = {}
    for each in parts:
        merged = _merge(merged, each.data)
    return merged


def _merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> Mapping[str, Any]:
    merged = dict(below)
    for key, value in above.items():
        held = merged.get(key)
        if isinstance(held, Mapping) and isinstance(value, Mapping):
            merged[key] = _merge(held, value)
        else:
            merged[key] = value
    return merged
