"""The review of a change of each example, as a comment, beside the program: what a reader of the examples sees first."""

from __future__ import annotations

import importlib.util
import os
import shutil
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from dra_infra.answers.reviewing import compare
from dra_infra.catalog import load_fleet
from dra_infra.fleet import Fleet
from dra_infra.program.synth import synth
from dra_infra.program_objects import Program
from dra_infra.review import Review, render_html, render_markdown
from tests.support.recipes.recipe import RECIPES, Recipe

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def demo() -> ModuleType:
    spec = importlib.util.spec_from_file_location("demo", EXAMPLES / "demo.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def reviewed(demo: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Review:
    changed = tmp_path_factory.mktemp("demo") / demo.QUICKSTART.name
    demo.change_program(changed)
    fleet = load_fleet(demo.FLEET)
    base, head = synth(demo.QUICKSTART), synth(changed)
    return review_on(fleet, base, head)


def review_on(fleet: Fleet, base: Program, head: Program) -> Review:
    """A review whose bytes do not change with each release of dra-infra."""
    made = compare(base, head, base_label="main", fleet=fleet)
    return replace(made, provenance=replace(made.provenance, version="X.Y.Z"))


def test_the_comment_on_the_change_of_the_demo_lies_beside_the_quickstart(reviewed: Review):
    text = render_markdown(reviewed)
    golden = EXAMPLES / "00-quickstart/review.md"
    if os.environ.get("DRA_INFRA_UPDATE_GOLDEN") == "1":
        golden.write_text(text, encoding="utf-8")
    assert golden.is_file(), "run `make golden`, and read what it wrote"
    assert golden.read_text(encoding="utf-8") == text


@pytest.mark.parametrize("recipe", [each for each in RECIPES if each.example != "00-quickstart"], ids=str)
def test_the_comment_on_a_change_lies_beside_every_other_example(recipe: Recipe, tmp_path: Path):
    folder = EXAMPLES / recipe.example
    changed = tmp_path / recipe.example
    shutil.copytree(folder, changed)
    program = (folder / "__main__.py").read_text(encoding="utf-8")
    assert recipe.replacing[0] in program
    (changed / "__main__.py").write_text(program.replace(*recipe.replacing), encoding="utf-8")
    fleet = load_fleet(str(folder / recipe.fleet) if recipe.fleet.endswith(".yaml") else recipe.fleet)
    fleet = replace(fleet, name=recipe.fleet)
    base, head = synth(folder), synth(changed)
    text = render_markdown(review_on(fleet, base, head))
    golden = folder / "review.md"
    if os.environ.get("DRA_INFRA_UPDATE_GOLDEN") == "1":
        golden.write_text(text, encoding="utf-8")
    assert golden.is_file(), "run `make golden`, and read what it wrote"
    assert golden.read_text(encoding="utf-8") == text


def test_the_change_of_the_demo_is_worth_a_look(reviewed: Review):
    assert reviewed.grade == "danger"
    assert {danger.code for danger in reviewed.dangers} >= {"job-replaced"}
    page = render_html(reviewed)
    # The last two nodes hold the same: nothing.
    assert all(f"<span>hgx-h100-{nodes}</span>" in page for nodes in ("0", "1", "2..3"))
