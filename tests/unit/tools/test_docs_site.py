from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
import yaml

from tools import docs_versions
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


def test_every_page_is_in_the_navigation_once_or_left_out_by_name():
    before, _, after = (ROOT / "mkdocs.yml").read_text().partition("\nnav:\n")
    left_out = before.partition("\nnot_in_nav: |\n")[2].split()
    assert left_out == ["parity.md", "_index.md", "installation-configuration.md"]
    listed = navigated(yaml.load(after, Loader=yaml.SafeLoader))
    assert sorted([*listed, *left_out]) == sorted(
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


def git(folder: Path, *command: str, given: str = "") -> str:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.com"]
    done = subprocess.run(
        ["git", *identity, *command], cwd=folder, input=given, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def published(folder: Path, **files: str) -> Path:
    """A clone with these files on the branch, and a stand-in for mike that notes what it is asked for."""
    git(folder, "init", "--quiet")
    blobs = {name: git(folder, "hash-object", "-w", "--stdin", given=text) for name, text in files.items()}
    tree = git(folder, "mktree", given="".join(f"100644 blob {blobs[name]}\t{name}.json\n" for name in blobs))
    git(folder, "branch", docs_versions.BRANCH, git(folder, "commit-tree", tree, "-m", "sites"))
    mike = folder / "mike"
    mike.write_text('#!/bin/sh\necho "$@" >> asked\n')
    mike.chmod(0o755)
    return folder


@pytest.mark.parametrize(
    ("listed", "version", "is_latest"),
    [
        ((), "0.1.0", True),
        (("0.9.0",), "0.10.0", True),
        (("0.10.0", "0.9.0"), "0.9.1", False),
        (("0.10.0", "main"), "0.10.0", True),
        (("2.0.0",), "1.99.99", False),
    ],
)
def test_the_site_that_is_shown_first_is_that_of_the_newest_version(
    tmp_path: Path, listed: tuple[str, ...], version: str, is_latest: bool
):
    clone = published(tmp_path, versions=json.dumps([{"version": each, "aliases": []} for each in listed]))
    docs_versions.add(clone / "python", clone, version, clone)
    deployed, default = (clone / "asked").read_text().splitlines()
    assert deployed.endswith(f" {version} latest" if is_latest else f" {version}")
    assert default.endswith(" latest")


def test_the_first_site_is_shown_first(tmp_path: Path):
    git(tmp_path, "init", "--quiet")
    assert docs_versions.is_newest("0.1.0", tmp_path)


@pytest.mark.parametrize(
    "files", [{}, {"versions": "[1]"}, {"versions": "["}, {"versions": '[{"title": "1"}]'}]
)
def test_a_branch_without_a_list_of_versions_is_told(tmp_path: Path, files: dict[str, str]):
    clone = published(tmp_path, **files)
    with pytest.raises(ToolError, match=r"versions\.json of the branch gh-pages cannot be read"):
        docs_versions.add(clone / "python", clone, "1.0.1", clone)
    assert not (clone / "asked").exists()


@pytest.mark.parametrize(
    "words", [["1.", "2.3"], ["1.2.3", "1.2.4"], ["1.2"], [], ["\N{ARABIC-INDIC DIGIT ONE}.2.3"]]
)
def test_words_that_are_no_version_are_refused_before_anything_is_built(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr("tools.docs_site.environment", lambda: pytest.fail("it was built"))
    assert docs_versions.main(words) == 1
    assert "is no version" in capsys.readouterr().err
