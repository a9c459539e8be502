"""The JSON of all commands is one family: each report has a schema in the package, and what several share looks the same."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from dra_infra.answers.draining import Drained, RuleCount
from dra_infra.catalog import load_fleet
from dra_infra.cli import drain
from dra_infra.cli.app import app
from dra_infra.cluster.draining import Part, Preview
from dra_infra.kubernetes.api import Release
from dra_infra.kubernetes.scheduler import Eviction
from tests.contract.test_provenance import folder, server
from tests.support.pages.documents import ROOT
from tests.support.review.json_schema import find_violations
from tests.support.running_clusters import a_request, a_running_pod, a_template, a_workload

__all__ = ["folder", "server"]

SCHEMAS: dict[str, dict[str, Any]] = {
    path.name.removesuffix("-v1.json"): json.loads(path.read_text(encoding="utf-8"))
    for package in ("dra_infra.cli", "dra_infra.review")
    for path in (files(package) / "schemas").iterdir()
    if path.name.endswith(".json")
}
LIVE = ("--kubeconfig", "kubeconfig")
FLEET = ("--fleet", "hgx-h100 x 2")
SECTIONS = ("gpus", "mig", "drivers", "fleets", "machines", "charts", "systems")
COMMANDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "simulate": ("simulate", ("objects.yaml", *FLEET, "--drain", "1")),
    "simulate what does not fit": ("simulate", ("objects.yaml", "--fleet", "a100-80gb")),
    "simulate with autoscalers and pools": ("simulate", ("scaled.yaml", "--fleet", "pools.yaml")),
    "simulate what has an error": ("simulate", ("broken.yaml", *FLEET)),
    "simulate what cannot be read": ("simulate", ("bad.yaml", *FLEET)),
    "upgrade": ("upgrade", ("objects.yaml", *FLEET, "--from", "1.34", "--to", "1.37")),
    "make-room": ("make-room", ("a rack of gb200", "--snapshot", "cluster.yaml")),
    "make-room with moves": ("make-room", ("8 x h100 on one node", "--snapshot", "running.yaml")),
    "make-room for what never fits": ("make-room", ("17 x h100", "--snapshot", "running.yaml")),
    "make-room for what has an error": (
        "make-room",
        ("job/train", "broken.yaml", "--snapshot", "running.yaml"),
    ),
    "explain": ("explain", ("job/train", "objects.yaml", *FLEET)),
    "explain with pools": ("explain", ("job/train", "objects.yaml", "--fleet", "pools.yaml")),
    "explain what does not fit": ("explain", ("job/train", "objects.yaml", "--fleet", "a100-80gb", "--deep")),
    "explain a cluster": ("explain", ("job/train", *LIVE)),
    "explain a code": ("code", ("count-below-one",)),
    "validate": ("validate", ("objects.yaml",)),
    "validate what has errors": ("validate", ("broken.yaml", "bad.yaml")),
    "migrate": ("migrate", ("plugin.yaml", "--whole-gpus")),
    "migrate with a plan": (
        "migrate",
        ("plugin.yaml", "bad.yaml", "--whole-gpus", "--plan", "--fleet", "t4 x 2"),
    ),
    "synth": ("synth", (str(ROOT / "examples/00-quickstart"),)),
    "review": ("review", ("objects.yaml", "--base", "v1.4", *FLEET)),
    "doctor": ("doctor", LIVE),
    "status": ("status", LIVE),
    "status by team": ("teams", (*LIVE, "--by-team")),
    "status with fragmentation": ("fragmentation", (*LIVE, "--fragmentation")),
    "comment": ("comment", ("objects.yaml",)),
    "init": ("init", ("new",)),
    "catalog": ("catalog", ()),
    **{f"catalog {each}": ("catalog", (each,)) for each in SECTIONS},
}
PLUGIN = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: serve, namespace: ml}
spec:
  selector: {matchLabels: {app: serve}}
  template:
    metadata: {labels: {app: serve}}
    spec:
      containers:
      - {name: serve, image: "registry.example/serve:1", resources: {limits: {nvidia.com/gpu: 1}}}
"""


@pytest.fixture
def inputs(folder: Path) -> Path:
    """The files of all commands beside those of the provenance tests."""
    text = (folder / "objects.yaml").read_text()
    scaler = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "inference", "namespace": "ml"},
        "spec": {
            "minReplicas": 2,
            "maxReplicas": 3,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "inference"},
        },
    }
    pool = {"name": "a3", "nodes": "hgx-h100", "min": 1, "max": 2, "price": "98.32"}
    (folder / "scaled.yaml").write_text(f"{text}---\n{yaml.safe_dump(scaler)}")
    (folder / "pools.yaml").write_text(yaml.safe_dump({"pools": [pool], "currency": "USD"}))
    (folder / "broken.yaml").write_text(text.replace("count: ", "count: -"))
    (folder / "bad.yaml").write_text("a: [")
    (folder / "plugin.yaml").write_text(PLUGIN)
    pods = [
        each
        for number in range(2)
        for each in a_running_pod(
            f"serve-{number}", "serve", f"hgx-h100-{number}", ["gpu-0"], owner=("Deployment", "serve")
        )
    ]
    serve = [a_template("serve", a_request()), a_workload("Deployment", "serve", "serve", 2), *pods]
    (folder / "running.yaml").write_text(
        yaml.safe_dump_all([*load_fleet("hgx-h100 x 2").to_manifests(), *serve])
    )
    (folder / "cluster.yaml").write_text(yaml.safe_dump_all(load_fleet("gb200-nvl72").to_manifests()))
    return folder


@pytest.mark.parametrize("name", COMMANDS)
def test_the_json_of_every_command_is_what_its_schema_says_and_no_key_is_undescribed(
    name: str, inputs: Path
) -> None:
    schema, arguments = COMMANDS[name]
    command = {"teams": "status", "fragmentation": "status", "code": "explain"}.get(schema, schema)
    result = CliRunner().invoke(app, [command, *arguments, "--json"], standalone_mode=False)
    assert result.stdout, (result.exception, result.output)
    data = json.loads(result.stdout)
    assert data["schema"] == f"dra-infra.{schema}/v1"
    assert list(find_violations(data, SCHEMAS[schema], closed=True)) == []


def test_each_schema_has_a_command_that_is_held_to_it() -> None:
    # Two need a controller that evicts, and one is that of commands without an answer.
    assert set(SCHEMAS) - {schema for schema, _ in COMMANDS.values()} == {"drain", "drain-undo", "problems"}


def test_a_drain_is_what_its_schema_says(monkeypatch: pytest.MonkeyPatch) -> None:
    pod = {"metadata": {"name": "a", "namespace": "ml", "uid": "a"}}
    preview = Preview(
        target="n1/gpu-0",
        parts=(Part(driver="gpu.nvidia.com", pool="n1", device="gpu-0"),),
        evictions=(Eviction(pod=pod, claim="a-gpu", devices=("n1/gpu-0",), seconds=30),),
        release=Release(minor="1.37", gates=frozenset()),
        version="v1",
        counts={},
    )
    count = RuleCount(rule="rule", message="1 pod", pods=1, expected=1)
    done = Drained(preview=preview, counts=(count,), left=("ml/a",))
    written: list[Any] = []
    monkeypatch.setattr(drain, "write_json", written.append)
    drain._print_undone(drain.Undone(target="n1", deleted=("rule",)), as_json=True)
    for data in (drain.to_json(preview), drain._drained_to_json(done)):
        assert list(find_violations(data, SCHEMAS["drain"], closed=True)) == []
    assert list(find_violations(written[0], SCHEMAS["drain-undo"], closed=True)) == []


def test_what_several_reports_have_is_described_once() -> None:
    known: dict[str, tuple[str, Any]] = {}
    for name, schema in SCHEMAS.items():
        for part, definition in schema.get("$defs", {}).items():
            first, expected = known.setdefault(part, (name, definition))
            assert definition == expected, f"{part} in {name} and in {first}"
    assert {"problem", "place", "object", "provenance"} <= set(known)


def keys_of(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        yield from schema.get("properties", {})
        yield from (key for part in schema.values() for key in keys_of(part))
    elif isinstance(schema, list):
        yield from (key for part in schema for key in keys_of(part))


@pytest.mark.parametrize("name", SCHEMAS)
def test_keys_are_in_camel_case(name: str) -> None:
    assert [key for key in keys_of(SCHEMAS[name]) if not re.fullmatch("[a-z]+([A-Z][a-z]+)*", key)] == []


def test_the_schemas_are_in_the_package_as_the_page_says() -> None:
    page = (ROOT / "docs/json-reports.md").read_text(encoding="utf-8")
    assert {each for each in SCHEMAS if f"`dra-infra.{each}/v1`" in page} == set(SCHEMAS)


FAILURES: dict[str, tuple[str, ...]] = {
    "simulate": ("nowhere", *FLEET),
    "simulate on what is no fleet": ("simulate", "objects.yaml", "--fleet", "none-such"),
    "explain": ("job/other", "objects.yaml", *FLEET),
    "explain a fleet that is none": ("explain", "job/train", "objects.yaml", "--fleet", "none-such"),
    "review": ("objects.yaml", "--base", "none-such", *FLEET),
    "validate": ("--kubernetes", "1.1", "objects.yaml"),
    "migrate": ("plugin.yaml", "--whole-gpus", "--kinds", "bad.yaml"),
    "synth": ("nowhere",),
    "status": ("--kubeconfig", "bad.yaml"),
    "doctor": ("--kubeconfig", "bad.yaml"),
    "drain": ("n1", "--kubeconfig", "bad.yaml"),
    "init": ("new", "--name", "No Name"),
    "catalog": ("gpus", "none-such"),
    "simulate with a wrong option": ("simulate", "--no-such-option"),
    "explain without a name": ("explain",),
    "review with options that do not go together": ("review", "--refresh"),
    "migrate without input": ("migrate",),
}
"""What has no answer: the arguments behind the command, or with it where the name says more."""


def fail(name: str, *more: str) -> tuple[int, str, str]:
    """Run what has no answer, and return exit code and streams."""
    arguments = FAILURES[name]
    command = () if " " in name else (name,)
    result = CliRunner().invoke(app, [*command, *arguments, *more])
    code = result.exit_code if result.exception is None or isinstance(result.exception, SystemExit) else 2
    return code, result.stdout, result.stderr


@pytest.mark.parametrize("ask", [("--json",), ("-o", "json")], ids=" ".join)
@pytest.mark.parametrize("name", FAILURES)
def test_a_command_without_an_answer_prints_its_problems(
    name: str, ask: tuple[str, ...], inputs: Path
) -> None:
    code, printed, _ = fail(name, *ask)
    data = json.loads(printed)
    assert (code, data["schema"]) == (2, "dra-infra.problems/v1")
    assert list(find_violations(data, SCHEMAS["problems"], closed=True)) == []


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("simulate with a wrong option", "--no-such-option"),
        ("explain without a name", "NAME"),
        ("review with options that do not go together", "--refresh"),
    ],
)
def test_wrong_usage_is_a_problem_of_the_option(name: str, path: str, inputs: Path) -> None:
    (problem,) = json.loads(fail(name, "--json")[1])["problems"]
    assert (problem["path"], problem["code"]) == (path, "wrong-usage")
    assert problem["message"]


@pytest.mark.parametrize("name", FAILURES)
def test_without_json_standard_output_stays_empty(name: str, inputs: Path) -> None:
    assert fail(name)[:2] == (2, "")


@pytest.mark.parametrize(
    "name", ["simulate", "explain", "review", "review with options that do not go together"]
)
def test_a_file_for_a_report_in_json_gets_the_problems(name: str, inputs: Path) -> None:
    (inputs / "report.json").write_text('{"schema": "dra-infra.review/v1"}\n')
    code, printed, _ = fail(name, "--output", "report.json", "--output", "report.txt")
    assert (code, printed) == (2, "")
    if "options" in name:
        # Wrong usage ends the command before it looks at files.
        return
    data = json.loads((inputs / "report.json").read_text())
    assert data["schema"] == "dra-infra.problems/v1"
    assert list(find_violations(data, SCHEMAS["problems"], closed=True)) == []
    assert not (inputs / "report.txt").exists()


def test_a_file_that_must_not_be_replaced_is_not(inputs: Path) -> None:
    before = (inputs / "objects.yaml").read_bytes()
    (inputs / "kept.json").write_text("{}")
    result = CliRunner().invoke(
        app, ["simulate", "kept.json", *FLEET, "--output", "kept.json", "--json"], standalone_mode=False
    )
    (problem,) = json.loads(result.stdout)["problems"]
    assert problem["code"] == "report-not-written"
    assert (inputs / "kept.json").read_text() == "{}"
    assert (inputs / "objects.yaml").read_bytes() == before


def test_a_report_is_the_only_document_on_standard_output(inputs: Path) -> None:
    # The program cannot be written, and the report of the migration is printed before.
    (inputs / "program").write_text("a file, and no folder")
    arguments = ["plugin.yaml", "--whole-gpus", "--to", "components", "--output", "program", "--json"]
    result = CliRunner().invoke(app, ["migrate", *arguments], standalone_mode=False)
    assert result.exception
    assert json.loads(result.stdout)["schema"] == "dra-infra.migrate/v1"
