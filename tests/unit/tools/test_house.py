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


def test_too_many_imports_inside_functions_are_reported(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(root, "a", "x = 1\n")
    write(root, "b", "def late():\n    from p import a\n\n    return a\n")
    assert list(house.find_faults(house.measure(root, "p"))) == []

    monkeypatch.setattr(house, "MOST_IN_FUNCTIONS", 0)

    assert list(house.find_faults(house.measure(root, "p"))) == ["1 imports inside functions, and 0 at most"]


def test_the_length_of_a_module_has_no_limit(root: Path) -> None:
    write(root, "long", "x = 1\n" * 2_000)

    assert list(house.find_faults(house.measure(root, "p"))) == []


def test_our_own_house_is_as_it_has_to_be() -> None:
    assert list(house.find_faults(house.measure(house.ROOT))) == []


def test_functions_that_are_long_or_take_many_parameters_are_named(root: Path) -> None:
    parameters = ", ".join(f"p{number}" for number in range(house.MANY + 1))
    long = "def long():\n" + "    x = 1\n" * house.LONG
    write(
        root,
        "a",
        f"{long}\n\ndef many({parameters}): ...\n\n\nclass A:\n    def __init__(self, {parameters}): ...\n",
    )

    assert house.measure(root, "p").large == {"p.a.long": "71 lines", "p.a.many": "13 parameters"}
