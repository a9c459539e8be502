"""The page of upgrades shows what the command prints."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from dra_infra.cli.app import app
from tests.support.pages.documents import ROOT

PAGE = ROOT / "docs" / "upgrades.md"
FOLDER = ROOT / "tests" / "contract" / "pages" / "upgrades"
ASKED = ["team.yaml", "--from", "1.34", "--to", "1.37", "--fleet", "hgx-h100 x 2"]
_BLOCK = re.compile(
    r"(?<=<!-- made by: tests/contract/test_upgrades_page\.py -->\n```\n).*?(?=^```$)",
    re.DOTALL | re.MULTILINE,
)


@pytest.fixture
def printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "team.yaml").write_text((FOLDER / "team.yaml").read_text())
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["upgrade", *ASKED], standalone_mode=False)
    assert result.return_value == 1, result.output
    return result.stdout


def test_the_page_shows_the_whole_report(printed: str) -> None:
    text = PAGE.read_text()
    now = _BLOCK.sub(lambda _: printed, text)
    if os.environ.get("DRA_INFRA_UPDATE_GOLDEN") == "1":
        PAGE.write_text(now)
    assert PAGE.read_text() == now, "run `make golden`, and read what it wrote"


def test_the_example_has_what_the_page_is_about(printed: str) -> None:
    for code in ("upgrade-apply-refused", "upgrade-quota", "upgrade-metric", "upgrade-stored-version"):
        assert f"[{code}]" in printed
    for heading in ("Before the upgrade", "Compared", "Not compared, so nothing is said about it"):
        assert heading in printed.splitlines()
