"""The real osv-scanner, on pins of ours and a database of the test.

It is built by `make advisories`, not by `make tools`. Where it is not built these tests are skipped, and say so; with
`DRA_INFRA_ADVISORIES=required`, as CI sets it behind `make advisories`, they fail.
"""

from __future__ import annotations

import json
import os
import re
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tools import advisories, build
from tools.errors import ToolError

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).parents[3]
RUN = ROOT / "requirements" / "run.txt"
MODULE = ROOT / "tools" / "kubeconform" / "go.mod"


@pytest.fixture(scope="module")
def scanner() -> Path:
    try:
        return build.binary("osv-scanner")
    except ToolError as error:
        failure = str(error)
    if os.environ.get("DRA_INFRA_ADVISORIES") == "required":
        pytest.fail(failure, pytrace=False)
    pytest.skip(
        f"NOT RUN: osv-scanner is not built; python -m tools.build --only osv-scanner builds it\n{failure}"
    )


def pinned(file: Path, name: str) -> str:
    found = re.search(rf"^\s*{re.escape(name)}(?:==| v)(\S+)", file.read_text(), re.MULTILINE)
    assert found, name
    return found[1]


def next_patch(version: str) -> str:
    *head, last = version.split(".")
    return ".".join([*head, str(int(last) + 1)])


def record(
    identifier: str, ecosystem: str, name: str, *events: dict[str, str], **more: Any
) -> dict[str, Any]:
    kind = "SEMVER" if ecosystem == "Go" else "ECOSYSTEM"
    affected = {
        "package": {"ecosystem": ecosystem, "name": name},
        "ranges": [{"type": kind, "events": list(events)}],
    }
    return {
        "schema_version": "1.6.0",
        "id": identifier,
        "modified": "2026-11-01T00:00:00Z",
        "affected": [affected],
        **more,
    }


Archives = dict[str, advisories.Archive]


@pytest.fixture
def database(tmp_path: Path) -> Archives:
    """Advisories about what is pinned now: two that hold, and others that look like it."""
    jinja, text = pinned(RUN, "jinja2"), pinned(MODULE, "golang.org/x/text")
    zero = {"introduced": "0"}
    records = {
        "PyPI": [
            record("PY-HOLDS", "PyPI", "Jinja2", zero, {"fixed": next_patch(jinja)}),
            record("PY-FIXED", "PyPI", "jinja2", zero, {"fixed": jinja}),
            record("PY-LATER", "PyPI", "jinja2", {"introduced": next_patch(jinja)}),
            record("PY-WITHDRAWN", "PyPI", "jinja2", zero, withdrawn="2026-11-02T00:00:00Z"),
            record("PY-OTHER", "PyPI", "jinja", zero),
        ],
        "Go": [
            record("GO-HOLDS", "Go", "golang.org/x/text", zero, {"last_affected": text}),
            record("GO-FIXED", "Go", "golang.org/x/text", zero, {"fixed": text}),
        ],
    }
    pins = advisories.pins_of(RUN) | advisories.pins_of(MODULE)
    for ecosystem, each in records.items():
        with zipfile.ZipFile(tmp_path / f"{ecosystem}.zip", "w") as archive:
            for one in each:
                archive.writestr(f"{one['id']}.json", json.dumps(one))
    return {each: advisories.load(advisories.archive_of(tmp_path, each), each, pins) for each in records}


def test_what_affects_a_pin_is_found_and_nothing_else(scanner: Path, database: Archives):
    found = advisories.scan(scanner, database, [RUN, MODULE])
    assert [(each.file, each.package, each.advisory) for each in found] == [
        ("requirements/run.txt", "jinja2", ("PY-HOLDS",)),
        ("tools/kubeconform/go.mod", "golang.org/x/text", ("GO-HOLDS",)),
    ]


def test_every_pin_of_the_repository_is_read(scanner: Path, database: Archives):
    advisories.scan(scanner, database, advisories.pinned_files(ROOT))


@pytest.mark.parametrize(("until", "is_kept"), [("2999-01-01", True), ("2020-01-01", False)])
def test_what_is_accepted_is_left_out_until_its_day(
    scanner: Path, database: Archives, tmp_path: Path, until: str, is_kept: bool
):
    accepted = tmp_path / "accepted.toml"
    accepted.write_text(f'[[IgnoredVulns]]\nid = "PY-HOLDS"\nignoreUntil = {until}\nreason = "a test"\n')
    assert (advisories.scan(scanner, database, [RUN], accepted) == []) is is_kept


def test_a_database_that_is_not_there_is_no_clean_result(scanner: Path, database: Archives):
    del database["PyPI"]
    with pytest.raises(ToolError, match="osv-scanner ends with"):
        advisories.scan(scanner, database, [RUN])
