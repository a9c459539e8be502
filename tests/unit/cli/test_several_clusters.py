"""One program for several clusters: each is asked about by the name of its provider."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path

import pytest
from click.testing import CliRunner

from dra_infra.advice.clusters import find_several_clusters, of_provider
from dra_infra.cli.app import app
from dra_infra.errors import ProblemsError
from dra_infra.program.synth import synth

PROGRAM = """
import pulumi, pulumi_kubernetes as k8s
import dra_infra as dra

for cluster, gpus in {"eu": 4, "us": 8}.items():
    there = pulumi.ResourceOptions(provider=k8s.Provider(cluster, context=cluster))
    h100 = dra.GpuDeviceClass(f"{cluster}-h100", object_name="h100", select=dra.gpu.memory >= "79Gi", opts=there)
    claims = dra.GpuClaimTemplate(f"{cluster}-gpus", namespace="ml", device_class=h100, count=gpus, opts=there)
    pod = {"containers": [{"name": "main", "image": "registry.example.com/train:1"}], "restartPolicy": "Never"}
    k8s.batch.v1.Job(
        f"{cluster}-train",
        metadata={"name": "train", "namespace": "ml"},
        spec={"template": {"spec": claims.attach(pod)}},
        opts=there,
    )
k8s.core.v1.Namespace("ml", metadata={"name": "ml"})
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "Pulumi.yaml").write_text("name: app\nruntime: python\n")
    (tmp_path / "__main__.py").write_text(textwrap.dedent(PROGRAM))
    return tmp_path


def run(*arguments: object):
    return CliRunner().invoke(app, [*map(str, arguments)], standalone_mode=False)


def test_objects_know_the_provider_that_their_components_were_given(folder: Path):
    program = synth(folder)
    assert {(each.ref.kind, each.provider) for each in program.objects} == {
        *((kind, each) for kind in ("DeviceClass", "ResourceClaimTemplate", "Job") for each in ("eu", "us")),
        ("Namespace", "default"),
    }
    assert [each.ref.kind for each in of_provider(program, "default").objects] == ["Namespace"]


def test_pods_of_two_providers_are_told_and_those_of_one_are_not(folder: Path):
    program = synth(folder)
    (told,) = find_several_clusters(program)
    assert told.name == "eu and us"
    assert list(find_several_clusters(of_provider(program, "eu"))) == []


def test_a_simulation_takes_one_cluster(folder: Path):
    # Together they need twelve GPUs of a node with eight.
    assert run("simulate", folder, "--fleet", "hgx-h100").return_value == 1
    for provider, gpus in (("eu", 4), ("us", 8)):
        result = run("simulate", folder, "--fleet", "hgx-h100", "--provider", provider, "--json")
        assert result.return_value == 0
        ((pod,),) = [each["pods"] for each in json.loads(result.stdout)["workloads"]]
        assert len(pod["devices"]) == gpus


def test_a_review_takes_one_cluster_and_the_base_may_lack_it(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
):
    base = tmp_path_factory.mktemp("base")
    (base / "Pulumi.yaml").write_text("name: app\nruntime: python\n")
    (base / "__main__.py").write_text(PROGRAM.replace(', "us": 8', ""))
    both = ("review", folder, "--base-path", base, "--fleet", "hgx-h100", "--format", "json")
    eu, us = (json.loads(run(*both, "--provider", each).stdout) for each in ("eu", "us"))
    assert eu["changes"] == []
    assert {each["action"] for each in us["changes"]} == {"created"}
    assert {each["object"]["kind"] for each in us["changes"]} == {
        "DeviceClass",
        "Job",
        "ResourceClaimTemplate",
    }


def test_a_provider_that_the_program_lacks_is_a_mistake(folder: Path):
    for command in ("simulate", "review"):
        beside = ("--base-path", folder) if command == "review" else ()
        result = run(command, folder, "--fleet", "hgx-h100", "--provider", "uss", *beside)
        assert isinstance(result.exception, ProblemsError)
        (problem,) = result.exception.problems
        assert (problem.path, problem.code) == ("--provider", "provider-not-known")
        assert problem.hint == "did you mean us?"
