"""`tests/README.md` says where the tests of a part are, and what several areas import lies in `tests/support`."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
PAGE = (TESTS / "README.md").read_text(encoding="utf-8")


def area_of(folder: Path) -> tuple[str, ...]:
    """Return the area of a folder: `unit/review`, `e2e/node`, `contract`."""
    parts = folder.relative_to(TESTS).parts
    return parts[: 2 if parts[:1] in {("unit",), ("e2e",)} else 1]


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`((?:unit|contract|e2e|support)/[\w*./]+)`", PAGE))))
def test_what_the_page_names_is_there(name: str):
    assert any(TESTS.glob(name)), name


@pytest.mark.parametrize("kind", ["unit", "e2e"])
def test_every_area_is_on_the_page(kind: str):
    areas = {folder.name for folder in (TESTS / kind).iterdir() if any(folder.glob("**/test_*.py"))}
    unnamed = {area for area in areas if f"`{kind}/{area}" not in PAGE}
    # Small ones, found by their names.
    assert unnamed <= {"benchmarks", "company", "docs", "image", "kinds", "monitoring", "recipes", "release"}


def test_areas_import_from_each_other_through_support_alone():
    imports: set[str] = set()
    for file in TESTS.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if (
                not isinstance(node, ast.ImportFrom)
                or node.level
                or not (node.module or "").startswith("tests.")
            ):
                continue
            folder = TESTS.parent.joinpath(*str(node.module).split("."))
            for target in [folder / each.name for each in node.names] if folder.is_dir() else [folder]:
                area = area_of(target.parent)
                if area not in {("support",), area_of(file.parent)} and "test_" not in target.name:
                    imports.add(f"{file.relative_to(TESTS)} -> {target.relative_to(TESTS)}")
    # Fixtures belong to the conftest of their area.
    assert all(line.endswith("/conftest") for line in imports), sorted(imports)
