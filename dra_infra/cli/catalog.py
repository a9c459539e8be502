"""The `dra-infra catalog` command: prints the catalogue with the source of each fact."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from dra_infra.cli.catalog_sections import SECTIONS, Entry, NameNotKnownError, Section
from dra_infra.cli.printing import say, write_json, write_lines
from dra_infra.output.report_data import camel_case, make_report

_LINE: Final = 80
"""Length of a list that still stands on the line of its field."""


_RAW: Final = ("pci", "fabric")
"""Addresses on the bus and ports of the fabric, a tuple for each GPU."""
_FIELD: Final = re.compile(r"[a-z]+(?:[_ ][a-z]+)+")
"""A field of ours of several words."""
_LEGENDS: Final = {
    "systems": "JOINED: GPUs of one node that NVLink joins. PROMISE: how that can be promised to a pod: count, by a "
    "number of GPUs;\ncompute-domain, across the nodes of a rack too; none, it cannot."
}
"""Explanations of a section's headings, printed on standard error."""


def run(section: str | None, name: str | None, *, form: str) -> int:
    """Print the sections, the table of one, or what is known of one name.

    Raises:
        NameNotKnownError: With the nearest name.
    """
    as_json = form == "json"
    if section is None:
        overview = {each: {"holds": chosen.title} for each, chosen in SECTIONS.items()}
        _write(overview, _table(overview, ("holds",)), as_json=as_json)
        return 0
    if section not in SECTIONS:
        raise NameNotKnownError(f"there is no section {section[:80]!r}; {_nearest(section, list(SECTIONS))}")
    chosen = SECTIONS[section]
    if name is None:
        entries = chosen.entries()
        _write(entries, _table(entries, chosen.columns), as_json=as_json)
        if section in _LEGENDS and not as_json:
            for line in _LEGENDS[section].splitlines():
                say(line)
        return 0
    found = _found(chosen, section, name)
    _write(found, _all_details(found), as_json=as_json)
    return 0


def _write(entries: Mapping[str, Entry], lines: Iterable[str], *, as_json: bool) -> None:
    """JSON of a stable shape, or *lines*."""
    if as_json:
        write_json(
            make_report("catalog", {"entries": _in_camel_case(entries)}), sort_keys=False, letters=True
        )
    else:
        write_lines(lines)


def _in_camel_case(value: Any) -> Any:
    """Return entries with our fields in camel case; what others named has a dot, a dash or a capital letter."""
    if isinstance(value, Mapping):
        return {_key(key): _in_camel_case(item) for key, item in value.items()}
    return [_in_camel_case(item) for item in value] if isinstance(value, list | tuple) else value


def _key(key: str) -> str:
    return camel_case(key) if _FIELD.fullmatch(key) else key


def _readable(entry: Entry) -> Entry:
    """*entry* without the numbers that mean something to a program alone; JSON has them."""
    invented = entry.get("invented")
    if not isinstance(invented, Mapping):
        return entry
    return {**entry, "invented": {key: value for key, value in invented.items() if key not in _RAW}}


def _found(section: Section, title: str, name: str) -> dict[str, Entry]:
    found = section.find(name)
    if not found:
        raise NameNotKnownError(f"{title} has no {name[:80]!r}; {_nearest(name, section.known())}")
    return found


def _nearest(name: str, known: Sequence[str]) -> str:
    by_letters = {each.lower(): each for each in known}
    near = difflib.get_close_matches(name.lower()[:80], by_letters, n=3, cutoff=0.6)
    if near:
        return f"did you mean {' or '.join(by_letters[each] for each in near)}?"
    return f"known are {', '.join(known)}"


def _table(entries: Mapping[str, Entry], columns: Sequence[str]) -> Iterator[str]:
    rows = [["name", *columns]]
    rows += [[name, *(_cell(entry.get(column, "")) for column in columns)] for name, entry in entries.items()]
    rows[0] = [heading.replace("_", " ").upper() for heading in rows[0]]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()


def _all_details(found: Mapping[str, Entry]) -> Iterator[str]:
    for number, (name, entry) in enumerate(found.items()):
        if number:
            yield ""
        yield name
        yield from _lines(_readable(entry), "  ")


def _lines(entry: Entry, indent: str) -> Iterator[str]:
    """Fields under each other; records of one shape as a table."""
    width = max((len(field) for field, value in entry.items() if not _is_block(value)), default=0)
    for field, value in entry.items():
        if not _is_block(value):
            yield f"{indent}{field:{width}}  {_cell(value)}".rstrip()
            continue
        yield f"{indent}{field}"
        if isinstance(value, Mapping) and all(isinstance(each, Mapping) for each in value.values()):
            columns = list(dict.fromkeys(column for each in value.values() for column in each))
            yield from (f"{indent}  {line}" for line in _table(value, columns))
        elif isinstance(value, Mapping):
            yield from _lines(value, f"{indent}  ")
        else:
            yield from (f"{indent}  {_cell(each)}" for each in value)


def _is_block(value: Any) -> bool:
    """True where a value needs lines of its own."""
    return isinstance(value, Mapping | list | tuple) and (
        len(_cell(value)) > _LINE or (isinstance(value, Mapping) and bool(value))
    )


def _cell(value: Any) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case Mapping() | list() | tuple():
            return ", ".join(map(_cell, value))
    return " ".join(str(value).split())
