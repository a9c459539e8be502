"""`make house`: each figure of the structure is missed when it is passed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import house


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "__init__.py").write_text("")
    return tmp_path


def write(root: Path, name: str, text: str) -> None:
    (root / "p" / f"{name}.py").write_text(text)


def test_a_circle_through_a_function_is_found(root: Path) -> None:
    write(root, "a", "from p.b import x\n")
    write(root, "b", "x = 1\n\n\ndef late():\n    from p import a\n\n    return a\n")

    measured = house.measure(root, "p")

    assert set(measured.circle) == {"p.a", "p.b"}
    assert measured.late == {"p.b": 1}


def test_a_circle_of_types_alone_is_found(root: Path) -> None:
    write(root, "a", "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    from p.b import B\n")
    write(root, "b", "from p.a import A\n")

    assert house.measure(root, "p").circle


def test_imports_that_point_one_way_are_no_circle(root: Path) -> None:
    write(root, "a", "from p.b import B\nfrom p.c import C\n")
    write(root, "b", "from p.c import C\n")
    write(root, "c", "import os\n")

    measured = house.measure(root, "p")

    assert measured.circle == ()
    assert measured.imports["p.a"] == {"p.b", "p.c"}


def test_a_module_that_is_too_long_is_told(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(house, "MEDIAN", range(1000))
    write(root, "long", "x = 1\n" * (house.LONGEST_MODULE + 1))

    assert list(house.find_faults(house.measure(root, "p"))) == ["p.long has 451 lines, and 450 at most"]


@pytest.mark.parametrize("figure", ["MOST_MODULES", "MOST_LINES", "MOST_IN_FOLDER"])
def test_a_figure_that_is_passed_is_told(root: Path, figure: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(house, "MEDIAN", range(1000))
    write(root, "a", "x = 1\n")
    assert list(house.find_faults(house.measure(root, "p"))) == []

    monkeypatch.setattr(house, figure, 0)

    assert len(list(house.find_faults(house.measure(root, "p")))) == 1


def test_our_own_house_is_as_it_has_to_be() -> None:
    assert list(house.find_faults(house.measure(house.ROOT))) == []
