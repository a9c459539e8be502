"""The text, data and exit codes of `dra-infra make-room`, and the page that shows them."""

from __future__ import annotations

import json
import os
import re

import pytest
import yaml
from click.testing import CliRunner

from dra_infra.catalog import load_fleet
from dra_infra.cli.app import app
from tests.support.pages.documents import ROOT
from tests.support.running_clusters import a_request, a_running_pod, a_template, a_workload, small_claims

PAGE = ROOT / "docs" / "make-room.md"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    objects = [*load_fleet("hgx-h100 x 2").to_manifests(), *small_claims()]
    (tmp_path / "cluster.yaml").write_text(yaml.safe_dump_all(objects))
    (tmp_path / "manifests").mkdir()
    wanted = [a_template("eight", a_request(8)), a_workload("Job", "train", "eight")]
    (tmp_path / "manifests" / "train.yaml").write_text(yaml.safe_dump_all(wanted))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments):
    return CliRunner().invoke(app, ["make-room", *map(str, arguments)])


def test_the_page_shows_what_is_printed(folder):
    command = "dra-infra make-room job/train manifests/ --snapshot cluster.yaml"
    done = run(*command.split()[2:])
    assert done.exit_code == 0, done.output
    text = re.sub(r"dra-infra \d\S+", "dra-infra", done.stdout)
    block = f"$ dra-infra snapshot --output cluster.yaml\n$ {command}\n{text}"
    page = PAGE.read_text()
    if os.environ.get("DRA_INFRA_UPDATE_GOLDEN") == "1":
        shown = re.compile(r"(?<=```console\n)\$ dra-infra snapshot.*?(?=```)", re.DOTALL)
        PAGE.write_text(shown.sub(lambda _: block, page, count=1))
    assert f"```console\n{block}```" in PAGE.read_text()


def test_data_and_text_are_of_one_answer(folder):
    done = run("job/train", "manifests", "--snapshot", "cluster.yaml", "--json")
    found = json.loads(done.stdout)
    assert found["verdict"] == "moves"
    (move,) = found["plan"]["moves"]
    assert (move["pod"]["name"], move["from"], move["to"]) == ("notebook-1", "hgx-h100-1", "hgx-h100-0")
    assert [each["move"] for each in found["steps"]] == [None, 0, None]
    text = run("job/train", "manifests", "--snapshot", "cluster.yaml").stdout
    for command in (each for step in found["steps"] for each in step["commands"]):
        assert f"  {command}\n" in text


def test_reports_are_written_in_the_form_of_their_names(folder):
    arguments = ("job/train", "manifests", "--snapshot", "cluster.yaml")
    done = run(*arguments, "--output", "room.md", "--output", "room.json")
    assert done.exit_code == 0, done.output
    assert json.loads((folder / "room.json").read_text())["schema"] == "dra-infra.make-room/v1"
    assert "| 1 | Pod ml/notebook-1 of Deployment ml/notebook" in (folder / "room.md").read_text()
    done = run(*arguments, "--output", "room.html")
    assert done.exit_code == 0, done.output
    page = (folder / "room.html").read_text()
    assert "job/train fits after 1 move" in page
    assert '<td role="cell">hgx-h100-1 <small>1 → 0</small></td>' in page
    assert "kubectl delete pod -n ml notebook-1" in page
    assert run(*arguments, "--format", "markdown").stdout == (folder / "room.md").read_text()


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("job/train", "manifests"), "snapshot-missing"),
        (("8 x h1000 on one node", "--snapshot", "cluster.yaml"), "shape-not-known"),
        (("19 nodes of a rack of gb200", "--snapshot", "cluster.yaml"), "shape-not-known"),
        (("a rack of h100", "--snapshot", "cluster.yaml"), "shape-not-known"),
        (("33 x h100 on one node", "--snapshot", "cluster.yaml"), "shape-not-known"),
        (("0 x h100", "--snapshot", "cluster.yaml"), "shape-not-known"),
        (("job/tain", "manifests", "--snapshot", "cluster.yaml"), "subject-not-known"),
        (
            ("job/train", "manifests", "--snapshot", "cluster.yaml", "--run-times", "no.json"),
            "run-times-unreadable",
        ),
        (
            ("job/train", "manifests", "--snapshot", "cluster.yaml", "--run-times", "cluster.yaml"),
            "run-times-unreadable",
        ),
        (("job/train", "manifests", "--snapshot", "no.yaml"), "fleet-unreadable"),
    ],
)
def test_what_cannot_be_asked_is_an_error_with_its_code(folder, arguments, code):
    done = run(*arguments)
    assert done.exit_code != 0
    problems = getattr(done.exception, "problems", ())
    assert [each.code for each in problems] == [code]


@pytest.mark.parametrize(
    "hours", ['["ml/x"]', '{"ml/x": -1}', '{"ml/x": true}', '{"ml/x": "3"}', '{"ml/x": NaN}']
)
def test_run_times_are_numbers_of_hours(folder, hours):
    (folder / "hours.json").write_text(hours)
    done = run("job/train", "manifests", "--snapshot", "cluster.yaml", "--run-times", "hours.json")
    assert [each.code for each in done.exception.problems] == ["run-times-unreadable"]


def test_an_object_with_an_error_is_not_placed(folder):
    file = folder / "manifests" / "train.yaml"
    file.write_text(file.read_text().replace("count: 8", "count: -8"))
    done = run("job/train", "manifests", "--snapshot", "cluster.yaml")
    assert done.exit_code == 2
    assert "✗ job/train is not placed, because an object that it needs has an error" in done.stdout
    assert "count-below-one" in done.stderr


def test_a_rack_is_freed_for_the_job_of_an_example(folder):
    """An NVLink group: its pods need one domain, and channels of a ComputeDomain that is not there yet."""
    objects = [a_template("one", a_request()), a_workload("Deployment", "serve", "one", 2)]
    for number, node in enumerate(("gb200-nvl72-00", "gb200-nvl72-23")):
        objects += a_running_pod(f"serve-{number}", "one", node, ["gpu-0"], owner=("Deployment", "serve"))
    racks = [*load_fleet("gb200-nvl72 x 2").to_manifests(), *objects]
    (folder / "racks.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": racks}))
    program = ROOT / "examples" / "14-nvl72-training"
    done = run("job/pretrain", program, "--snapshot", "racks.json", "--json")
    assert done.exit_code == 0, done.output
    plan = json.loads(done.stdout)["plan"]
    assert [each["pod"]["name"] for each in plan["moves"]] == ["serve-0"]
    assert len(plan["arrivals"]) == 18
    assert all(each["devices"][-1].endswith("/channel-0") for each in plan["arrivals"])
    assert len(plan["keepOff"]) == 17
