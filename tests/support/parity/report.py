"""Write docs/parity.md from what the last runs counted."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from dra_infra.kubernetes.api import SUPPORTED_MINORS
from dra_infra.kubernetes.apiserver import RULES
from tests.support.parity.compare import accepted_details
from tests.support.parity.differential import RESULTS
from tests.support.parity.gate_sets import GATE_SETS
from tests.support.parity.mutants import NOT_ASKED, rules_of
from tests.support.parity.rows import ROWS
from tools import toolsets

PAGE = Path(__file__).parents[3] / "docs" / "parity.md"
CEL_SECTION = "cel.md"
"""File among the results with the section about expressions, written by their own comparison."""
CORE_SECTION = "core-fields.md"
"""The same about fields of Kubernetes' own kinds."""
ALLOCATION_SECTION = "allocation.md"
"""The same about the allocator."""
PLATFORM_SECTION = "platforms.md"
"""The same about whole platforms on the real scheduler, which `make soak` creates."""

_INTRODUCTION = """\
# Parity with the API server

`make parity` writes this page; nothing in it is written by hand.

Every object of the tables below was sent to a real kube-apiserver with `dryRun=All`, once with `fieldValidation=Strict`
and once with `Warn`, and given to `dra_infra.kubernetes.apiserver.verdict.judge`. Both must agree on whether it is accepted; where it is
not, on the path, kind, bad value and text of every error (422) or on what cannot be decoded (400); where it is, on the
stored object with its defaults and without dropped fields; and always on the fields that are unknown.

The objects are valid ones that were broken in up to six places at random (`generation.py`; a case is found again by its
name), objects with every field of which each was broken in every way (`bases.py`), replacements of stored objects
(`updates.py`), and one named case for each rule of the API server (`rows.py`), all in `tests/e2e/parity`.

`test_apply.py` sends generated objects as a server-side apply as well, on 1.34 and 1.37: it takes and stores what a creation does. It refuses in addition
items of a list that are there twice, which `validate` reports as a warning, and reads whole numbers such as 1000.0. Not compared are applies by several
managers, other patches, and what controllers write into `status`.

    make parity            # 1,500 generated objects for each server with its default gates
    make parity N=100000   # the long run
    make parity-mutants    # switches off each of our rules in turn; each has to be missed
"""
_GATES = """\
`default`: gates as the minor ships them. `all`: every one that is not locked is on, alphas too. `none`: every one that
is not locked is off, but for DynamicResourceAllocation."""

Results = Mapping[tuple[str, str], Mapping[str, Any]]


def read(folder: Path = RESULTS) -> Results:
    """Counts of the last runs by minor and gate set."""
    found = {}
    for minor in SUPPORTED_MINORS:
        for gate_set in GATE_SETS:
            path = folder / f"{minor}-{gate_set}.json"
            if path.exists():
                found[minor, gate_set] = json.loads(path.read_text())
    return found


def page(
    results: Results, *, core: str = "", cel: str = "", allocation: str = "", platforms: str = ""
) -> str:
    """The text of docs/parity.md."""
    parts = [
        _INTRODUCTION,
        "## Counts",
        _table(("Server", "Gates", "Accepted", "400", "422", "Updates", "Differences"), _counts(results)),
        _GATES,
        "## Rules",
        "How often each rule of ours was broken, in agreement with the server of that minor. A dash: the minor does not have it.",
        _table(("Rule", "Meaning", *SUPPORTED_MINORS), _rules(results)),
        "## Rows of the reference",
        "Named cases, and whether the servers answered as they are known to.",
        _table(("Section", "Case", *SUPPORTED_MINORS), _rows(results)),
        "## Rules that no server is asked about",
        "\n".join(f"- `{name}`: {reason}." for name, reason in NOT_ASKED.items()),
        "## Differences of wording",
        _details(),
    ]
    parts += [section.strip() for section in (core, cel, allocation, platforms) if section]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def write() -> Path:
    """Write the page and return where."""
    sections = {
        "core": CORE_SECTION,
        "cel": CEL_SECTION,
        "allocation": ALLOCATION_SECTION,
        "platforms": PLATFORM_SECTION,
    }
    PAGE.write_text(page(read(), **{name: _section(file) for name, file in sections.items()}))
    return PAGE


def _section(name: str) -> str:
    path = RESULTS / name
    return path.read_text() if path.exists() else ""


def _counts(results: Results) -> Iterator[Sequence[str]]:
    versions = {one.name: one.version for one in toolsets.load()}
    for (minor, gate_set), result in results.items():
        asked: Mapping[str, int] = result["asked"]
        of = {
            outcome: sum(count for name, count in asked.items() if name.endswith(f" {outcome}"))
            for outcome in ("accepted", "400", "422")
        }
        updates = sum(count for name, count in asked.items() if " update " in name)
        numbers = (*of.values(), updates, result["count"])
        yield (versions[f"kubernetes-{minor}"], gate_set, *(f"{number:,}" for number in numbers))


def _rules(results: Results) -> Iterator[Sequence[str]]:
    for name, rule in RULES.items():
        cells = []
        for minor in SUPPORTED_MINORS:
            count = sum(results.get((minor, gates), {}).get("rules", {}).get(name, 0) for gates in GATE_SETS)
            cells.append(f"{count:,}" if count or name in rules_of(minor) else "-")
        yield (f"`{name}`", rule.text, *cells)


def _rows(results: Results) -> Iterator[Sequence[str]]:
    for row in ROWS.values():
        cells = []
        for minor in SUPPORTED_MINORS:
            state = results.get((minor, row.gate_set), {}).get("rows", {}).get(row.id)
            cells.append({True: "yes", False: "**no**", None: "-"}[state])
        yield (row.section, row.text, *cells)


def _details() -> str:
    if not accepted_details():
        return "None."
    return _table(
        ("The server says", "We say", "Why"),
        ((f"`{each.server.pattern}`", f"`{each.ours.pattern}`", each.reason) for each in accepted_details()),
    )


def _table(heading: Sequence[str], lines: Iterator[Sequence[str]] | Any) -> str:
    rows = [heading, ["---"] * len(heading), *lines]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows)
