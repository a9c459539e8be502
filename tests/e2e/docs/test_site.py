"""The site of the documentation, built as `make docs` does; needs a package index once, for the pinned mkdocs."""

from __future__ import annotations

import re

import pytest

from tools import docs_site
from tools.errors import ToolError

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def python():
    return docs_site.environment()


def test_the_site_is_whole_and_loads_nothing_from_elsewhere(python, tmp_path):
    site = docs_site.build(python, tmp_path)
    built = sorted(site.rglob("*.html"))
    assert len(built) >= 45
    assert [address for page in built for address in docs_site.loads_from(page)] == []
    assert not re.search(r"google-analytics|googletagmanager|fonts\.g", (site / "index.html").read_text())


@pytest.mark.parametrize("link", ["nowhere.md", "errors.md#no-such-code"])
def test_a_broken_link_or_anchor_stops_the_build(
    python, tmp_path, link: str, monkeypatch: pytest.MonkeyPatch
):
    pages = docs_site.pages
    monkeypatch.setattr(docs_site, "pages", lambda root: {**pages(root), "mig.md": f"# M\n\n[x]({link})\n"})
    with pytest.raises(ToolError, match=r"nowhere|no-such-code"):
        docs_site.build(python, tmp_path)
