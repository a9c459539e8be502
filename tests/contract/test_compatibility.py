from __future__ import annotations

import os

from tests.contract.compatibility import rendered
from tests.support.pages.documents import ROOT

PAGE = ROOT / "docs" / "compatibility.md"


def test_the_page_says_what_the_catalogue_says():
    now = rendered(PAGE.read_text())
    if os.environ.get("DRA_INFRA_UPDATE_GOLDEN") == "1":
        PAGE.write_text(now)
    assert PAGE.read_text() == now, "run `make golden`, and read what it wrote"
    assert "| 1.37 |" in now
