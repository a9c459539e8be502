from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tools.docs_site import ROOT, loads_from, pages
from tools.errors import ToolError


def written(folder: Path, files: dict[str, str]) -> Path:
    for name, text in {
        "README.md": "# R\n",
        "CONTRIBUTING.md": "# C\n",
        "CHANGELOG.md": "# L\n",
        **files,
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def navigated(entry: object) -> list[str]:
    if isinstance(entry, str):
        return [entry]
    entries = entry.values() if isinstance(entry, dict) else entry
    return [page for each in entries for page in navigated(each)]  # type: ignore[union-attr]


def test_every_page_is_in_the_navigation_once():
    text = (ROOT / "mkdocs.yml").read_text()
    listed = navigated(yaml.load(text.partition("\nnav:\n")[2], Loader=yaml.SafeLoader))
    assert sorted(listed) == sorted(
        page for page in pages(ROOT) if not page.startswith(("files/", "images/"))
    )


def test_links_lead_to_the_same_place_in_the_site(tmp_path: Path):
    example = {
        "examples/00-a/README.md": "# A\n[m](../../docs/mig.md#x) [o](expected.yaml)\n",
        "examples/00-a/__main__.py": "x = 1\n",
        "examples/00-a/expected.yaml": "kind: A\n",
        "examples/00-a/review.md": "# A report\n",
    }
    root = written(
        tmp_path,
        {
            "README.md": "[all](examples) [one](examples/00-a) [m](docs/mig.md)\n```\n[kept](nowhere.md)\n```\n",
            "docs/mig.md": "[why](adr/0001-components-report-specs-raise.md) [r](../examples/00-a/review.md) [w](https://example.com)\n",
            "docs/adr/0001-components-report-specs-raise.md": "[up](../mig.md)\n",
            **example,
        },
    )
    found = pages(root)
    assert found["index.md"] == (
        "[all](how-to/index.md) [one](how-to/00-a.md) [m](mig.md)\n```\n[kept](nowhere.md)\n```\n"
    )
    assert found["mig.md"] == (
        "[why](adr/0001-components-report-specs-raise.md) [r](files/examples/00-a/review.md.txt) [w](https://example.com)\n"
    )
    assert found["adr/0001-components-report-specs-raise.md"] == "[up](../mig.md)\n"
    recipe = found["how-to/00-a.md"]
    assert isinstance(recipe, str)
    assert "[m](../mig.md#x) [o](../files/examples/00-a/expected.yaml)" in recipe
    assert "x = 1" in recipe
    assert "kind: A" in recipe
    assert found["files/examples/00-a/expected.yaml"] == root / "examples/00-a/expected.yaml"
    assert found["how-to/index.md"] == (
        "# Recipes\n\nEach is a program to copy, with what it compiles to; the tests run all of them.\n\n- [A](00-a.md)\n"
    )


@pytest.mark.parametrize("target", ["nowhere.md", "../outside.md", "docs/nothing/"])
def test_a_link_to_nothing_stops_the_build(tmp_path: Path, target: str):
    (tmp_path / "outside.md").write_text("# O\n")
    root = written(tmp_path / "root", {"README.md": f"[x]({target})\n", "docs/a.md": "# A\n"})
    with pytest.raises(ToolError, match=r"README\.md links to "):
        pages(root)


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("a.html", '<script src="https://cdn.example/x.js"></script>', ["https://cdn.example/x.js"]),
        ("a.html", '<link rel="stylesheet" href="//fonts.example/x.css">', ["//fonts.example/x.css"]),
        ("a.html", '<style>@import "https://fonts.example/x";</style>', ["https://fonts.example/x"]),
        ("a.html", '<p style="background:url(http://x.example/a)">', ["http://x.example/a"]),
        ("a.html", '<img src="HTTPS://x.example/a.png">', ["HTTPS://x.example/a.png"]),
        ("a.css", "@font-face{src:url('https://fonts.example/x.woff2')}", ["https://fonts.example/x.woff2"]),
        ("a.html", '<a href="https://example.com">a</a><link rel="canonical" href="https://x.example/">', []),
        ("a.html", '<script src="assets/x.js"></script><link rel="icon" href="i.png">', []),
    ],
)
def test_what_a_page_loads_from_elsewhere_is_found(tmp_path: Path, name: str, text: str, expected: list[str]):
    (tmp_path / name).write_text(text)
    assert list(loads_from(tmp_path / name)) == expected
