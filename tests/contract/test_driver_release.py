"""One default release of the drivers: objects are checked for what the devices of a fleet by name are published by."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from click.testing import CliRunner

from dra_infra import testing
from dra_infra.advice.objects import check_objects
from dra_infra.answers import read_scene, simulate
from dra_infra.answers.migrating import making_of
from dra_infra.answers.scene import Scene
from dra_infra.catalog import load_fleet, load_snapshot
from dra_infra.catalog.drivers import drivers, newest, read_pins
from dra_infra.catalog.fleet_terms import read_group, read_terms
from dra_infra.catalog.machines import node_kinds
from dra_infra.cli.app import app
from dra_infra.program_objects import Program
from dra_infra.target import NEWEST_DRIVER

NEWEST = "NVIDIA DRA driver 0.5"
OLD = "NVIDIA DRA driver 25.12"
SELECTOR = 'device.attributes["resource.kubernetes.io"].?numaNode.orValue(-1) == 0'
"""It matches devices of 0.5 alone: no older release publishes the attribute of a whole GPU."""
FLEET = ("--fleet", "hgx-h100")

COMMANDS = {
    "simulate": ("simulate", ".", "--json", *FLEET),
    "explain": ("explain", "job/train", ".", "--json", *FLEET),
    "review": ("review", ".", "--base-path", "before", "--fail-on", "undecided", "--format", "json", *FLEET),
    "migrate": ("migrate", "objects.yaml", "--format", "json", *FLEET),
}
"""Every command that places on a fleet by name."""

PROGRAM = """
from pathlib import Path
import pulumi_kubernetes as k8s, yaml
for each in yaml.safe_load_all((Path(__file__).parent / "objects.yaml").read_text()):
    k8s.apiextensions.CustomResource(
        each["kind"], api_version=each["apiVersion"], kind=each["kind"], metadata=each["metadata"],
        spec=each.get("spec", {}))
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of objects, and what was there before."""
    folder = tmp_path / "app"
    (folder / "before").mkdir(parents=True)
    (folder / "objects.yaml").write_text(yaml.safe_dump_all(the_objects()))
    (folder / "before" / "namespace.yaml").write_text(yaml.safe_dump(the_objects()[0]))
    monkeypatch.chdir(folder)
    return folder


def the_objects() -> list[dict[str, Any]]:
    """A Job whose pod needs a GPU with a NUMA node."""
    request = {
        "name": "gpu",
        "exactly": {
            "deviceClassName": "gpu.nvidia.com",
            "selectors": [{"cel": {"expression": SELECTOR}}],
        },
    }
    pod = {
        "restartPolicy": "Never",
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpu"}],
        "containers": [{"name": "main", "image": "i", "resources": {"claims": [{"name": "gpu"}]}}],
    }
    metadata = {"namespace": "ml"}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ml"}},
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaimTemplate",
            "metadata": {"name": "gpu", **metadata},
            "spec": {"spec": {"devices": {"requests": [request]}}},
        },
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "train", **metadata},
            "spec": {"template": {"spec": pod}},
        },
    ]


def ask(*arguments: str) -> tuple[int, dict[str, Any]]:
    """What a command ends with, and its provenance."""
    result = CliRunner().invoke(app, list(arguments))
    assert result.stdout, result.output
    return result.exit_code, json.loads(result.stdout)["provenance"]


@pytest.mark.parametrize("name", COMMANDS)
def test_the_newest_release_counts_for_check_and_fleet_where_none_is_named(name: str, folder: Path) -> None:
    exit_code, provenance = ask(*COMMANDS[name])
    assert (exit_code, provenance["drivers"], provenance["fleetDrivers"]) == (0, [NEWEST], [NEWEST])
    assert "fleet with" not in provenance["text"]


@pytest.mark.parametrize("name", COMMANDS)
def test_a_release_that_is_named_counts_for_check_and_fleet(name: str, folder: Path) -> None:
    exit_code, provenance = ask(*COMMANDS[name], "--driver", "25.12")
    assert (exit_code, provenance["drivers"], provenance["fleetDrivers"]) == (1, [OLD], [OLD])


@pytest.mark.parametrize("name", COMMANDS)
def test_a_release_counts_for_groups_and_pools_of_a_file(name: str, folder: Path) -> None:
    (folder.parent / "fleet.yaml").write_text(
        "nodeGroups: [{kind: hgx-h100}]\npools: [{name: more, nodes: hgx-h100, max: 2}]\n"
    )
    _, provenance = ask(*COMMANDS[name], "--driver", "25.12", "--fleet", "../fleet.yaml")
    assert (provenance["drivers"], provenance["fleetDrivers"]) == ([OLD], [OLD])


@pytest.mark.parametrize("name", COMMANDS)
def test_a_release_of_another_driver_leaves_nvidias_the_newest(name: str, folder: Path) -> None:
    options = ("--driver", "gpu.example.com=0.2", "--fleet", "hgx-h100, example")
    exit_code, provenance = ask(*COMMANDS[name], *options)
    both = ["DRA example driver 0.2", NEWEST]
    assert (exit_code, provenance["drivers"], provenance["fleetDrivers"]) == (0, both, both)


@pytest.mark.parametrize(("options", "verdict"), [((), "fits"), (("--driver", "25.12"), "does-not-fit")])
def test_hardware_that_is_added_has_the_release_of_the_fleet(
    options: tuple[str, ...], verdict: str, folder: Path
) -> None:
    arguments = ["simulate", ".", "--json", "--fleet", "l4 devices=1", "--remove", "l4-0", *options]
    result = CliRunner().invoke(app, [*arguments, "--add", "hgx-h100"])
    assert [each["verdict"] for each in json.loads(result.stdout)["workloads"]] == [verdict]


@pytest.mark.parametrize(("setting", "line"), [({}, NEWEST), ({"dra-infra:driver": "25.12"}, OLD)])
def test_the_setting_of_a_project_counts_in_every_answer(
    setting: dict[str, str], line: str, folder: Path
) -> None:
    program = folder / "program"
    program.mkdir()
    (program / "Pulumi.yaml").write_text("name: app\nruntime: python\n")
    (program / "Pulumi.dev.yaml").write_text(yaml.safe_dump({"config": setting}))
    (program / "objects.yaml").write_text((folder / "objects.yaml").read_text())
    (program / "__main__.py").write_text(PROGRAM)
    fits = line == NEWEST
    for name in ("simulate", "explain"):
        command = [str(program) if each == "." else each for each in COMMANDS[name]]
        exit_code, provenance = ask(*command)
        assert (exit_code == 0, provenance["drivers"], provenance["fleetDrivers"]) == (fits, [line], [line])
    answer = simulate(read_scene(program, fleet="hgx-h100"))
    assert (answer.exit_code == 0, answer.provenance.fleet_drivers) == (fits, (line,))
    assert bool(testing.synth(program).fits("hgx-h100", "train")) is fits


def test_a_program_that_is_migrated_runs_for_the_release_that_is_named() -> None:
    assert making_of({"driver": "25.12"}).config == {"dra-infra:driver": "25.12"}


def test_no_command_has_a_default_of_its_own() -> None:
    context = click.Context(app)
    found = {
        (name, option.to_info_dict()["default"])
        for name in app.list_commands(context)
        for command in [app.get_command(context, name)]
        if command is not None
        for option in command.get_params(context)
        if option.name == "driver" and option.metavar == "RELEASE"
    }
    assert found == {
        (name, None)
        for name in ("explain", "make-room", "migrate", "review", "simulate", "upgrade", "validate")
    }


@pytest.mark.parametrize(
    "function",
    [load_fleet, load_snapshot, read_terms, read_group, check_objects, Scene.of_manifests, Program],
)
def test_functions_of_python_share_the_default(function: Callable[..., Any]) -> None:
    assert inspect.signature(function).parameters["driver"].default == NEWEST_DRIVER
    assert read_pins(NEWEST_DRIVER) is newest()


def test_only_devices_that_are_listed_one_by_one_have_a_release_of_their_own() -> None:
    for kind in node_kinds().values():
        if kind.driver not in kind.published:
            assert kind.line == drivers()[kind.driver].newest.line, kind.title
