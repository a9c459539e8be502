"""What a change does to node pools: nodes, money, teams, and what is idle."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from importlib.resources import files

import pytest
import yaml

from dra_infra.answers.reviewing import compare
from dra_infra.catalog import load_fleet
from dra_infra.program_objects import Program
from dra_infra.review import render_html, render_json, render_markdown, render_text
from tests.support.review.json_schema import find_violations

from .conftest import an_object, claim_spec

SCHEMA = json.loads((files("dra_infra.review") / "schemas/review-v1.json").read_text(encoding="utf-8"))


def a_program(**workloads):
    """A Deployment per keyword: replicas, devices of each pod, and labels; a shared claim where devices are 0."""
    device_class = an_object("DeviceClass", "h100", {}, api_version="resource.k8s.io/v1", namespace="")
    items = [device_class]
    for name, (replicas, count, labels) in workloads.items():
        template = {"spec": claim_spec(count)}
        items.append(an_object("ResourceClaimTemplate", name, template, api_version="resource.k8s.io/v1"))
        pod = {
            "containers": [{"name": "c", "image": "i", "resources": {"claims": [{"name": "g"}]}}],
            "resourceClaims": [{"name": "g", "resourceClaimTemplateName": name}],
        }
        spec = {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name, **labels}}, "spec": pod},
        }
        items.append(an_object("Deployment", name, spec, api_version="apps/v1"))
    return Program(project="p", stack="dev", objects=tuple(items))


@pytest.fixture
def fleet(tmp_path):
    def fleet(least=1, most=4, **pool):
        file = tmp_path / "pools.yaml"
        pools = [{"name": "a3", "nodes": "hgx-h100", "min": least, "max": most, **pool}]
        file.write_text(yaml.safe_dump({"pools": pools, "currency": "USD", "teamLabel": "team"}))
        return load_fleet(str(file))

    return fleet


def reviewed(base, head, fleet):
    return compare(base, head, base_label="main", fleet=fleet)


def rows(review):
    return {
        (row.part, row.name): (*(None if each is None else float(each) for each in row.devices), *row.cost)
        for row in review.growth.rows
    }


def test_a_change_that_needs_more_nodes_says_how_many_and_what_they_cost(fleet):
    base, head = a_program(serve=(2, 4, {})), a_program(serve=(5, 4, {}))
    review = reviewed(base, head, fleet(price=98.32))
    assert str(review.growth) == "+2 nodes of a3, +196.64 USD an hour; 4 of 24 devices of pools idle"
    assert review.grade == "ok"
    assert review.fit.endswith("pools.yaml with a3 x 3")
    back = reviewed(head, base, fleet(price=98.32))
    assert str(back.growth) == "-2 nodes of a3, -196.64 USD an hour; 0 of 8 devices of pools idle"
    same = reviewed(base, base, fleet(price=98.32))
    assert str(same.growth) == "no node more or less; 0 of 8 devices of pools idle"


def test_costs_are_told_per_workload_and_team_and_add_up(fleet):
    base = a_program(serve=(1, 4, {"team": "web"}))
    head = a_program(serve=(1, 4, {"team": "web"}), train=(1, 5, {"team": "research"}), tune=(1, 1, {}))
    review = reviewed(base, head, fleet(price="10.01"))
    found = rows(review)
    assert found["team", "web"] == found["workload", "Deployment ml/serve"]
    assert found["team", "research"][1] == 5
    assert found["team", "ml"][1] == 1
    assert found["all", ""] == (8, 16, Decimal("10.01"), Decimal("20.02"))
    assert found["idle", ""][:2] == (4, 6)
    for side in (2, 3):
        parts = [values[side] for (part, _), values in found.items() if part in ("workload", "idle")]
        assert sum(parts) == found["all", ""][side]
        teams = [values[side] for (part, _), values in found.items() if part in ("team", "idle")]
        assert sum(teams) == found["all", ""][side]


def test_each_part_of_an_object_belongs_to_the_team_of_the_object_else_of_its_pods(fleet):
    def group(name, labels, label_of_pods):
        pod = {
            "containers": [{"name": "c", "image": "i", "resources": {"claims": [{"name": "g"}]}}],
            "resourceClaims": [{"name": "g", "resourceClaimTemplateName": "one"}],
        }
        template = {"metadata": {"labels": {"team": label_of_pods}}, "spec": pod}
        spec = {"leaderWorkerTemplate": {"size": 2, "leaderTemplate": template, "workerTemplate": template}}
        made = an_object("LeaderWorkerSet", name, spec, api_version="leaderworkerset.x-k8s.io/v1")
        return replace(made, manifest=made.manifest | {"metadata": made.manifest["metadata"] | labels})

    program = a_program(one=(0, 1, {}))
    groups = group("a", {"labels": {"team": "web"}}, "other"), group("b", {}, "research")
    program = replace(program, objects=(*program.objects, *groups))
    review = reviewed(program, program, fleet(price=1))
    teams = {(each.owner.name, each.owner.part): each.team for each in review.workloads}
    assert teams == {
        ("a", "leader"): "web",
        ("a", "workers"): "web",
        ("b", "leader"): "research",
        ("b", "workers"): "research",
        ("one", ""): "",
    }
    found = rows(review)
    assert {name: found["team", name][1] for name in ("web", "research")} == {"web": 2, "research": 2}


def test_without_prices_devices_are_counted_and_nothing_costs(fleet):
    review = reviewed(a_program(serve=(2, 4, {})), a_program(serve=(3, 4, {})), fleet())
    assert str(review.growth) == "+1 node of a3; 4 of 16 devices of pools idle"
    assert rows(review)["all", ""] == (8, 16, None, None)


def test_a_head_that_never_fits_within_the_limits_fails_and_says_why(fleet):
    review = reviewed(a_program(serve=(2, 4, {})), a_program(serve=(9, 4, {})), fleet(price=1))
    assert review.growth.after.verdict == "never-within-limits"
    assert str(review.growth).startswith("never within the limits: with a3 x 4, 36 devices asked")
    assert review.failed
    assert rows(review)["all", ""] == (8, None, Decimal(1), None)
    assert list(find_violations(json.loads(render_json(review)), SCHEMA)) == []


def test_a_head_that_fits_where_the_base_never_did_says_so(fleet):
    review = reviewed(a_program(serve=(9, 4, {})), a_program(serve=(3, 4, {})), fleet())
    assert str(review.growth).endswith("; the base is not known to fit within the limits")


def test_a_pool_without_nodes_is_a_fleet_too(fleet):
    review = reviewed(a_program(), a_program(serve=(1, 8, {})), fleet(0, price="2.5"))
    assert str(review.growth) == "+1 node of a3, +2.50 USD an hour; 0 of 8 devices of pools idle"
    assert review.problems == ()


def test_the_page_has_a_section_of_node_pools_to_which_its_list_of_sections_leads(fleet):
    page = render_html(reviewed(a_program(serve=(2, 4, {})), a_program(serve=(5, 4, {})), fleet(price=98.32)))
    sections, content = page.split("</nav>")
    assert '<li><a href="#pools">Node pools</a></li>' in sections
    assert "<section" not in sections
    assert '<h2 id="pools">Node pools</h2>' in content


def test_a_fleet_without_pools_has_no_growth():
    review = reviewed(a_program(), a_program(serve=(1, 8, {})), load_fleet("hgx-h100"))
    assert review.growth is None
    assert json.loads(render_json(review))["growth"] is None


@pytest.mark.parametrize("render", [render_text, render_markdown, render_html])
def test_every_report_shows_what_the_change_costs(fleet, render):
    team = {"team": "web"}
    review = reviewed(a_program(serve=(2, 4, team)), a_program(serve=(5, 4, team)), fleet(price=98.32))
    shown = render(review)
    for text in ("+2 nodes of a3, +196.64 USD an hour", "team web", "98.32 → 294.96", "USD an hour"):
        assert text in shown
    assert list(find_violations(json.loads(render_json(review)), SCHEMA)) == []


def test_a_long_list_of_workloads_is_cut_and_counted(fleet):
    many = {f"w{number:02}": (1, 1, {}) for number in range(60)}
    review = reviewed(a_program(), a_program(**many), fleet(0, 8))
    assert (len(review.growth.shown), review.growth.left_out) == (42, 21)
    assert "… 21 more rows" in render_text(review)
    assert len(json.loads(render_json(review))["growth"]["costs"]) == 63


@pytest.mark.parametrize("render", [render_text, render_markdown, render_html, render_json])
def test_a_team_that_is_called_by_a_stranger_stays_in_its_cell(fleet, render):
    team = {"team": "\x1b[2J|</td><script>\n@all"}
    shown = render(reviewed(a_program(), a_program(serve=(1, 4, team)), fleet(0)))
    assert "\x1b" not in shown
    assert render is not render_html or "<script>\n@all" not in shown
    assert not any(line.startswith("@all") for line in shown.splitlines())
    if render is render_markdown:
        (row,) = [line for line in shown.splitlines() if line.startswith("| team")]
        assert row.replace("\\|", "").count("|") == 5
