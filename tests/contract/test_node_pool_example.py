"""The example of a node pool that does not grow: every command gives the same answer, and the README shows it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import dra_infra as dra
from dra_infra.answers.reviewing import compare
from dra_infra.catalog import load_fleet
from dra_infra.cli.app import app
from dra_infra.placement.texts import describe_growth
from dra_infra.program.synth import synth
from dra_infra.review import render_html, render_markdown

EXAMPLE = Path(__file__).parents[2] / "examples/22-node-pool-from-zero"
FLEETS = {"fleet.yaml": "does-not-grow", "mended.yaml": "fits-grown"}


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: CliRunner().invoke(app, [str(each) for each in arguments])


@pytest.mark.parametrize(("fleet", "verdict"), FLEETS.items())
def test_simulate_and_explain_end_with_what_the_autoscaler_does(
    run: Callable[..., Result], fleet: str, verdict: str
) -> None:
    ends = []
    for arguments in (("simulate", EXAMPLE), ("explain", "deployment/server", EXAMPLE)):
        result = run(*arguments, "--fleet", EXAMPLE / fleet, "--json")
        growth = json.loads(result.stdout)["growth"]
        ends.append((result.exit_code, growth["verdict"], [each["answer"] for each in growth["outlooks"]]))
    answer = "grows" if verdict == "fits-grown" else verdict
    assert ends == [(0 if answer == "grows" else 1, verdict, [answer])] * 2


@pytest.mark.parametrize(("fleet", "verdict"), FLEETS.items())
def test_a_test_and_a_review_agree_with_it(fleet: str, verdict: str) -> None:
    loaded = load_fleet(str(EXAMPLE / fleet))
    fits = dra.testing.synth(EXAMPLE).fits_within_limits(loaded)
    assert bool(fits) == (verdict == "fits-grown")
    program = synth(EXAMPLE)
    review = compare(replace(program, objects=()), program, base_label="main", fleet=loaded)
    assert review.growth is not None
    assert review.growth.after.verdict == verdict
    assert review.failed == (verdict != "fits-grown")
    if review.failed:
        for text in (render_markdown(review), render_html(review)):
            assert "does not grow" in text
            assert "karpenter-provider-aws" in text
            assert "1 of 1 workload fits" not in text


@pytest.mark.parametrize("fleet", FLEETS)
def test_the_readme_shows_the_line(fleet: str) -> None:
    fits = dra.testing.synth(EXAMPLE).fits_within_limits(load_fleet(str(EXAMPLE / fleet)))
    assert describe_growth(fits.growth) in (EXAMPLE / "README.md").read_text(encoding="utf-8")


def test_no_driver_is_missing_where_nodes_to_come_bring_its_devices(run: Callable[..., Result]) -> None:
    result = run("explain", "deployment/server", EXAMPLE, "--fleet", EXAMPLE / "fleet.yaml")
    assert "driver-missing" not in result.stdout
    assert "does not grow" in result.stdout
