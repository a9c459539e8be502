"""The tables of docs/compatibility.md, from the catalogue and the package's own requirements."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable

from dra_infra.catalog.charts import charts
from dra_infra.catalog.driver_gates import driver_needs
from dra_infra.catalog.platforms import platforms
from dra_infra.kubernetes.api import GATES, KNOWN_PATCHES, SUPPORTED_MINORS
from dra_infra.kubernetes.api.patches import COMPARED_PATCHES, PATCH_ROWS
from tests.support.pages.documents import ROOT


def rendered(text: str) -> str:
    """*text* of the page with its tables as the data has them now."""
    tables = {
        "kubernetes": _kubernetes(),
        "patches": _patches(),
        "driver": _driver(),
        "charts": _charts(),
        "platforms": _platforms(),
        "python": _python(),
    }
    for name, table in tables.items():
        text, count = re.subn(
            rf"(<!-- {name} -->\n).*?(<!-- end -->)",
            lambda found, table=table: f"{found[1]}{table}{found[2]}",
            text,
            flags=re.DOTALL,
        )
        if count != 1:
            raise ValueError(f"there are {count} parts called {name}")
    return text


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    cells = [list(head)]
    lines = [cells[0], ["---"] * len(cells[0]), *map(list, rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _kubernetes() -> str:
    def count(minor: str, *, on: bool) -> str:
        return str(sum(minor in gate and gate[minor].default is on for gate in GATES.values()))

    rows = [
        [
            minor,
            KNOWN_PATCHES[minor][-1],
            COMPARED_PATCHES[minor],
            count(minor, on=True),
            count(minor, on=False),
        ]
        for minor in SUPPORTED_MINORS
    ]
    head = [
        "Minor",
        "Newest patch known",
        "Compared with the servers of",
        "Feature gates: on by default",
        "off",
    ]
    return _table(head, rows)


def _patches() -> str:
    rows = []
    for behaviour, row in PATCH_ROWS.items():
        number = row.change.rpartition("/")[2]
        since = ", ".join(f"1.{minor}.{patch}" for minor, patch in sorted(row.since.items()))
        rows.append([behaviour.value, since, row.before, f"[#{number}]({row.change})"])
    return _table(["From the patch on", "Patches", "Before", "Upstream"], rows)


def _driver() -> str:
    rows = [
        [
            line,
            f"`{needs.chart}`",
            needs.kubernetes_documented or f"{needs.kubernetes} (chart)",
            needs.kernel_driver or "not documented",
            needs.brings,
        ]
        for line, needs in driver_needs().items()
    ]
    return _table(["Line", "Chart", "Kubernetes from", "Kernel driver from", "Brings"], rows)


def _charts() -> str:
    rows = [
        [
            f"`{name}`",
            ", ".join(version for version, each in chart.versions.items() if each.keys),
            ", ".join(version for version, each in chart.versions.items() if not each.keys),
        ]
        for name, chart in charts().items()
    ]
    return _table(["Chart", "Values checked", "Known"], rows)


def _platforms() -> str:
    rows = [[f"`{name}`", each.title, each.kernel_driver] for name, each in platforms().items()]
    return _table(["`platform=`", "", "Kernel driver by"], rows)


def _python() -> str:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    versions = [each.rpartition(" ")[2] for each in project["classifiers"] if "Python :: 3." in each]
    needed = [each for each in project["dependencies"] if each.startswith(("pulumi", "cel-expr"))]
    return _table(
        ["", ""],
        [
            ["Python", ", ".join(versions)],
            *(
                [f"`{re.split('[<>=]', each)[0]}`", f"`{each[len(re.split('[<>=]', each)[0]) :]}`"]
                for each in needed
            ),
            ["helm", "3, on PATH, for `--charts` and reviews of charts alone"],
            ["git", "for `dra-infra review`"],
        ],
    )
