"""`explain`, `simulate`, `review` and `dra.testing` give one answer: does a workload fit, and do all of them at once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dra_infra import testing
from dra_infra.answers.settings import read_program
from dra_infra.cli.app import app

DRIVER = "gpu.example.com"
API = "resource.k8s.io/v1"


def a_fleet(gpus: list[int]) -> list[dict[str, Any]]:
    """Nodes with so many GPUs, and the class of all of them."""
    expression = f'device.driver == "{DRIVER}"'
    made: list[dict[str, Any]] = [
        {
            "apiVersion": API,
            "kind": "DeviceClass",
            "metadata": {"name": "gpu"},
            "spec": {"selectors": [{"cel": {"expression": expression}}]},
        }
    ]
    for number, count in enumerate(gpus):
        name = f"n{number}"
        allocatable = {"cpu": "4", "memory": "8Gi", "pods": "10"}
        made.append(
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
                "status": {"allocatable": allocatable},
            }
        )
        pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
        devices = [{"name": f"gpu-{index}"} for index in range(count)]
        made.append(
            {
                "apiVersion": API,
                "kind": "ResourceSlice",
                "metadata": {"name": name},
                "spec": {"driver": DRIVER, "nodeName": name, "pool": pool, "devices": devices},
            }
        )
    return made


def a_program(kind: str, replicas: int, count: int, cpu: str, hard: dict[str, str]) -> list[dict[str, Any]]:
    """A workload in a namespace with a quota."""
    requests = [{"name": "gpu", "exactly": {"deviceClassName": "gpu", "count": count}}]
    pod = {
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpu"}],
        "containers": [{"name": "main", "image": "i", "resources": {"requests": {"cpu": cpu}}}],
    }
    numbered = {"parallelism": replicas} if kind == "Job" else {"replicas": replicas, "selector": {}}
    metadata = {"namespace": "ml"}
    return [
        {
            "apiVersion": API,
            "kind": "ResourceClaimTemplate",
            "metadata": {"name": "gpu", **metadata},
            "spec": {"spec": {"devices": {"requests": requests}}},
        },
        {
            "apiVersion": "batch/v1" if kind == "Job" else "apps/v1",
            "kind": kind,
            "metadata": {"name": "work", **metadata},
            "spec": {**numbered, "template": {"spec": pod}},
        },
        {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "team", **metadata},
            "spec": {"hard": hard},
        },
    ]


def a_web(replicas: int) -> list[dict[str, Any]]:
    """A Deployment without claims."""
    container = {"name": "main", "image": "i", "resources": {"requests": {"cpu": "2"}}}
    return [
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "web", "namespace": "ml"},
            "spec": {"replicas": replicas, "selector": {}, "template": {"spec": {"containers": [container]}}},
        }
    ]


HARD = st.dictionaries(
    st.sampled_from(
        [
            "pods",
            "requests.cpu",
            "count/resourceclaims.resource.k8s.io",
            "count/deployments.apps",
            "gpu.deviceclass.resource.k8s.io/devices",
        ]
    ),
    st.integers(0, 6).map(str),
    max_size=2,
)


@settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    gpus=st.lists(st.integers(0, 4), min_size=1, max_size=3),
    kind=st.sampled_from(["Deployment", "Job", "StatefulSet"]),
    replicas=st.integers(1, 4),
    count=st.integers(1, 3),
    cpu=st.sampled_from(["0", "1", "3"]),
    hard=HARD,
    holder=st.sampled_from(["fleet", "program", "neither"]),
)
def test_explain_and_simulate_say_the_same_of_a_workload(
    tmp_path_factory: pytest.TempPathFactory,
    gpus: list[int],
    kind: str,
    replicas: int,
    count: int,
    cpu: str,
    hard: dict[str, str],
    holder: str,
):
    folder = tmp_path_factory.mktemp("one-answer")
    device_class, *nodes = a_fleet(gpus)
    made = {"fleet": nodes, "program": a_program(kind, replicas, count, cpu, hard), "neither": []}
    made[holder].append(device_class)
    (folder / "fleet.yaml").write_text(yaml.safe_dump_all(made["fleet"]))
    (folder / "program.yaml").write_text(yaml.safe_dump_all(made["program"]))
    files = [str(folder / "program.yaml"), "--fleet", str(folder / "fleet.yaml"), "--json"]
    simulating = CliRunner().invoke(app, ["simulate", *files])
    explaining = CliRunner().invoke(app, ["explain", f"{kind.lower()}/work", *files])
    simulated, explained = json.loads(simulating.stdout), json.loads(explaining.stdout)
    (workload,) = simulated["workloads"]
    assert explaining.exit_code == simulating.exit_code, explained
    assert explained["verdict"] == workload["verdict"], (workload["reasons"], explained)
    assert explained["fits"] == (workload["verdict"] == "fits")
    if holder == "neither":
        reasons = [each["message"] for each in workload["reasons"]]
        assert (workload["verdict"], explained["undecided"]) == ("not-decided", reasons)
    quota = [each["message"] for each in workload["reasons"] if each["code"] == "quota-refuses"]
    assert [each["message"] for each in explained["causes"] if each["code"] == "quota-refuses"] == quota
    assert explained["joint"] == simulated["joint"]


@settings(
    max_examples=10,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    gpus=st.lists(st.integers(0, 4), min_size=1, max_size=3),
    replicas=st.integers(1, 4),
    count=st.integers(1, 3),
    cpu=st.sampled_from(["0", "1", "3"]),
    web=st.integers(0, 4),
)
def test_all_ways_to_ask_say_the_same_of_all_workloads_at_once(
    tmp_path_factory: pytest.TempPathFactory, gpus: list[int], replicas: int, count: int, cpu: str, web: int
):
    folder = tmp_path_factory.mktemp("one-answer")
    (folder / "before").mkdir()
    program = folder / "after"
    program.mkdir()
    fleet = str(folder / "fleet.yaml")
    (folder / "fleet.yaml").write_text(yaml.safe_dump_all(a_fleet(gpus)))
    made = [*a_program("Deployment", replicas, count, cpu, {}), *a_web(web)]
    (program / "program.yaml").write_text(yaml.safe_dump_all(made))

    def ask(*arguments: str) -> Any:
        return json.loads(CliRunner().invoke(app, [*arguments, "--fleet", fleet]).stdout)

    joint = ask("simulate", str(program), "--json")["joint"]
    assert ask("explain", "deployment/work", str(program), "--json")["joint"] == joint
    reviewed = ask("review", str(program), "--base-path", str(folder / "before"), "--format", "json")
    told = reviewed["fleet"]["joint"]
    assert told == {key: joint[key] for key in told}
    read = read_program(program, stack=None, config={})[1]
    fit = testing.SynthesizedProgram(read).fits_all(fleet)
    assert (fit.joint.to_data(), bool(fit)) == (joint, joint["verdict"] == "always")


PROGRAM = """
import dra_infra as dra, pulumi_kubernetes as k8s
made = dra.GpuClaimTemplate("gpu", namespace="ml", device_class=dra.class_ref("gpu"), count=2)
k8s.core.v1.Pod("work", metadata={"name": "work", "namespace": "ml"}, spec={
    "containers": [{"name": "main", "image": "i"}],
    "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": made.object_name}]})
"""


@pytest.mark.parametrize(("gpus", "verdict"), [([2], "fits"), ([1, 1], "does-not-fit")])
def test_all_ways_to_ask_know_a_class_that_a_file_stands_in_for(
    tmp_path: Path, gpus: list[int], verdict: str
):
    device_class, *nodes = a_fleet(gpus)
    (tmp_path / "fleet.yaml").write_text(yaml.safe_dump_all(nodes))
    infra = tmp_path / "infra"
    infra.mkdir()
    (infra / "Pulumi.yaml").write_text("name: app\nruntime: python\n")
    (infra / "dra-infra.yaml").write_text("objects: [cluster.yaml]\n")
    (infra / "cluster.yaml").write_text(yaml.safe_dump(device_class))
    (infra / "__main__.py").write_text(PROGRAM)
    files = [str(infra), "--fleet", str(tmp_path / "fleet.yaml"), "--json"]
    simulated = CliRunner().invoke(app, ["simulate", *files])
    assert [each["verdict"] for each in json.loads(simulated.stdout)["workloads"]] == [verdict]
    assert "class-not-known" not in simulated.stderr
    assert json.loads(CliRunner().invoke(app, ["explain", "pod/work", *files]).stdout)["verdict"] == verdict
    made = testing.synth(infra)
    assert made.fits(str(tmp_path / "fleet.yaml"), "work").placement.verdict == verdict
    assert "DeviceClass" not in CliRunner().invoke(app, ["synth", str(infra)]).stdout


@pytest.mark.parametrize("shape", ["near", "daemon"])
def test_explain_and_simulate_say_that_a_workload_fits_in_another_order_or_has_no_pods(
    tmp_path: Path, shape: str
):
    fleet = a_fleet([1, 1, 1])
    nodes = [each for each in fleet if each["kind"] == "Node"]
    for node, zone in zip(nodes, "xyy", strict=True):
        node["metadata"]["labels"]["zone"] = zone
    program = a_program("Deployment", 2, 1, "1", {})[:2]
    template = program[1]["spec"]["template"]
    template["metadata"] = {"labels": {"app": "work"}}
    program[1]["spec"]["selector"] = {"matchLabels": {"app": "work"}}
    if shape == "daemon":
        program[1]["kind"] = "DaemonSet"
        del program[1]["spec"]["replicas"]
        template["spec"]["nodeSelector"] = {"zone": "z"}
    else:
        term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "work"}}}
        required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        template["spec"]["affinity"] = {"podAffinity": required}
    (tmp_path / "fleet.yaml").write_text(yaml.safe_dump_all(fleet))
    (tmp_path / "program.yaml").write_text(yaml.safe_dump_all(program))
    files = [str(tmp_path / "program.yaml"), "--fleet", str(tmp_path / "fleet.yaml"), "--json"]
    simulated = json.loads(CliRunner().invoke(app, ["simulate", *files]).stdout)
    assert (simulated["workloads"][0]["verdict"], bool(simulated["joint"]["works"])) == ("fits", True)
    ran = CliRunner().invoke(app, ["explain", f"{program[1]['kind'].lower()}/work", *files])
    explained = json.loads(ran.stdout)
    assert (explained["verdict"], explained["fits"], ran.exit_code) == ("fits", True, 0), explained


TWO_ALIKE = """\
kind: Node
apiVersion: v1
metadata: {name: n0}
status: {allocatable: {cpu: "8", memory: 8Gi, pods: "9"}}
---
kind: ResourceSlice
apiVersion: resource.k8s.io/v1
metadata: {name: n0}
spec:
  driver: example.com
  nodeName: n0
  pool: {name: n0, generation: 1, resourceSliceCount: 1}
  devices:
  - {name: d0, attributes: {root: {string: x}}}
  - {name: d1, attributes: {root: {string: x}}}
---
{kind: DeviceClass, apiVersion: resource.k8s.io/v1, metadata: {name: any}, spec: {}}
"""
OF_TWO_ROOTS = """\
kind: ResourceClaimTemplate
apiVersion: resource.k8s.io/v1
metadata: {name: two, namespace: ml}
spec:
  spec:
    devices:
      requests: [{name: r, exactly: {deviceClassName: any, count: 2}}]
      constraints: [{distinctAttribute: example.com/root}]
---
kind: Pod
apiVersion: v1
metadata: {name: work, namespace: ml}
spec:
  containers: [{name: c, image: "registry.example/c:1", resources: {claims: [{name: two}]}}]
  resourceClaims: [{name: two, resourceClaimTemplateName: two}]
"""


def test_every_command_says_that_pods_fit_only_because_of_a_bug(tmp_path: Path):
    (tmp_path / "before").mkdir()
    (tmp_path / "after").mkdir()
    (tmp_path / "fleet.yaml").write_text(TWO_ALIKE)
    (tmp_path / "after/program.yaml").write_text(OF_TWO_ROOTS)
    hardware = ["--fleet", str(tmp_path / "fleet.yaml"), "--gate", "DRAConsumableCapacity=true"]

    def ask(minor: str, command: str, *arguments: str) -> dict[str, Any]:
        ran = CliRunner().invoke(app, [command, *arguments, *hardware, "--kubernetes", minor, "--json"])
        data: dict[str, Any] = json.loads(ran.stdout)
        return data

    bug = "it fits only because of a bug of Kubernetes 1.34: distinctAttribute takes equal values of two devices for distinct"
    program, base = str(tmp_path / "after"), str(tmp_path / "before")
    (simulated,) = ask("1.34", "simulate", program)["workloads"]
    assert simulated["verdict"] == "fits"
    assert [(each["code"], each["message"]) for each in simulated["reasons"]] == [("fits-by-bug", bug)]
    assert [f"it fits only because of a bug of Kubernetes 1.34: {each}" for each in ask("1.34", "explain", "pod/work", program)["answer"]["quirks"]] == [bug]  # fmt: skip
    assert f"Pod ml/work: {bug}" in ask("1.34", "review", program, "--base-path", base)["notes"]
    text = CliRunner().invoke(app, ["simulate", program, *hardware, "--kubernetes", "1.34"]).stdout
    assert text.startswith("! Pod ml/work")
    assert bug in text
    # A later minor has another bug, which does not decide here.
    assert ask("1.37", "simulate", program)["workloads"][0]["verdict"] == "does-not-fit"
