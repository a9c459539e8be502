"""The review of the demo's change, as a comment, beside the program: what a reader of the examples sees first."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from types import ModuleType

import pytest

from dra_infra.catalog import load_fleet
from dra_infra.engine.synth import synth
from dra_infra.planning import Review, render_html, render_markdown, review
from dra_infra.simulation import place

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
    before, after = (place([each.manifest for each in side.objects], fleet) for side in (base, head))
    return review(base, head, base_label="main", before=before, after=after)


def test_the_comment_on_the_change_of_the_demo_lies_beside_the_quickstart(reviewed: Review):
    text = render_markdown(reviewed)
    golden = EXAMPLES / "00-quickstart/review.md"
    if os.environ.get("DRA_INFRA_UPDATE_GOLDEN") == "1":
        golden.write_text(text, encoding="utf-8")
    assert golden.is_file(), "run `make golden`, and read what it wrote"
    assert golden.read_text(encoding="utf-8") == text


def test_the_change_of_the_demo_is_worth_a_look(reviewed: Review):
    assert reviewed.grade == "danger"
    assert {danger.code for danger in reviewed.dangers} >= {"job-replaced"}
    page = render_html(reviewed)
    assert all(f"hgx-h100-{index}" in page for index in range(4))
