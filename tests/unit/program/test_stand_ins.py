"""Stand-ins for outputs of other stacks and objects of the cluster."""

from __future__ import annotations

import json
import os
import textwrap
from pathlib import Path

import pytest

from dra_infra.catalog import load_fleet
from dra_infra.errors import ProgramError
from dra_infra.kubernetes.api import DeviceClass
from dra_infra.output.secrets import SecretMask
from dra_infra.program.isolated import RunningSynth
from dra_infra.program.program_json import program_from_json, program_to_json, write_json
from dra_infra.program.stand_ins import read_stand_ins
from dra_infra.program.synth import synth
from dra_infra.program_objects import SECRET, UNKNOWN, without_secrets
from dra_infra.testing import SynthesizedProgram

HEAD = """
import pulumi, pulumi_kubernetes as k8s
def config(**data):
    k8s.apiextensions.CustomResource("m", api_version="a.io/v1", kind="M", metadata={"name": "m"}, spec=data)
"""
OUTPUTS = {
    "class": "h100",
    "nested": {"zones": ["a", "b"]},
    "count": 3,
    "token": "[secret]",
    "deep": {"a": ["[secret]"]},
}


@pytest.fixture
def project(tmp_path: Path):
    def write(program: str = "", **files: str) -> Path:
        top = tmp_path / "infra"
        top.mkdir(exist_ok=True)
        (top / "Pulumi.yaml").write_text("name: app\nruntime: python\n")
        (top / "__main__.py").write_text(HEAD + textwrap.dedent(program))
        for name, text in files.items():
            (top / name.replace("__", ".").replace("_", "-")).write_text(text)
        return top

    return write


PROGRAM = """
platform = pulumi.StackReference("prod", stack_name="acme/platform/prod")
config(**{name: platform.get_output(name) for name in ("class", "nested", "count", "token", "deep", "none")},
       inside=platform.require_output("token").apply(lambda token: f"Bearer {token}"))
"""


@pytest.mark.parametrize(
    "run", [synth, lambda folder: RunningSynth(folder).result()], ids=["here", "confined"]
)
def test_outputs_of_another_stack_are_those_of_its_file_and_secret_ones_stay_so(project, run):
    folder = project(
        PROGRAM,
        dra_infra__yaml="outputs: {acme/platform/prod: platform.json}\n",
        platform__json=json.dumps(OUTPUTS),
    )
    program = run(folder)
    assert program.objects[0].manifest["spec"] == {
        "class": "h100",
        "nested": {"zones": ["a", "b"]},
        "count": 3,
        "token": SECRET,
        "deep": SECRET,
        "inside": SECRET,
    }
    assert [str(each) for each in program.not_seen] == [
        "pulumi:pulumi:StackReference prod: platform.json stands in for the outputs of acme/platform/prod"
    ]


def test_a_stack_without_a_stand_in_stays_unknown(project):
    folder = project(PROGRAM, dra_infra__yaml="outputs: {acme/platform/dev: p.json}\n", p__json="{}")
    program = synth(folder)
    assert program.objects[0].manifest["spec"]["class"] == UNKNOWN
    assert "stands in" not in str(program.not_seen[0])


CLUSTER = """
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: found, namespace: ml, labels: {team: a}}
  data: {key: value}
"""


def test_an_object_is_that_of_its_file(project):
    folder = project(
        """
        found = k8s.core.v1.ConfigMap.get("found", "ml/found")
        other = k8s.core.v1.ConfigMap.get("other", "shop/found")
        config(key=found.data["key"], team=found.metadata.labels["team"], other=other.data["key"])
        """,
        dra_infra__yaml="objects: [cluster.yaml]\n",
        cluster__yaml=CLUSTER,
    )
    program = synth(folder)
    assert program.objects[0].manifest["spec"] == {"key": "value", "team": "a", "other": UNKNOWN}
    assert [each.reason for each in program.not_seen] == [
        "cluster.yaml stands in for the object",
        "it is read from a cluster: nothing but its name is known",
    ]


def refused(folder: Path) -> tuple[str, str]:
    with pytest.raises(ProgramError) as error:
        synth(folder)
    (problem,) = error.value.problems
    return problem.path, problem.code


@pytest.mark.parametrize(
    ("settings", "path"),
    [
        ("output: {}\n", "dra-infra.yaml"),
        ("outputs: [a]\n", "dra-infra.yaml"),
        ("objects: {a: b}\n", "dra-infra.yaml"),
        ("outputs: {a: 3}\n", "dra-infra.yaml"),
        ("outputs: {a: missing.json}\n", "missing.json"),
        ("outputs: {a: ../secret.json}\n", "../secret.json"),
        ("outputs: {a: .git/config}\n", ".git/config"),
        ("objects: [.]\n", "."),
        ("outputs: {a: list.json}\n", "list.json"),
        ("outputs: {a: broken.json}\n", "broken.json"),
        (f"objects: {['a.yaml'] * 101}\n", "dra-infra.yaml"),
    ],
)
def test_what_is_no_stand_in_is_refused(project, settings: str, path: str):
    folder = project("config()", dra_infra__yaml=settings, list__json="[]", broken__json="{")
    (folder.parent / "secret.json").write_text("{}")
    (folder / ".git").mkdir()
    (folder / ".git/config").write_text("{}")
    assert refused(folder) == (path, "stand-in-unreadable")


@pytest.mark.parametrize("name", ["dra-infra.yaml", "platform.json", "cluster.yaml"])
def test_a_link_out_of_the_project_shows_nothing(project, tmp_path: Path, name: str):
    outside = tmp_path / "outside"
    outside.write_text('{"class": "planted"}')
    folder = project(
        "config()",
        dra_infra__yaml="outputs: {acme: platform.json}\nobjects: [cluster.yaml]\n",
        platform__json="{}",
    )
    (folder / "cluster.yaml").write_text("")
    (folder / name).unlink()
    (folder / name).symlink_to(outside)
    with pytest.raises(ProgramError) as error:
        synth(folder)
    assert error.value.problems[0].code == "stand-in-unreadable"
    assert "planted" not in str(error.value)


def test_a_file_that_never_ends_is_refused(project):
    folder = project("config()", dra_infra__yaml="outputs: {a: pipe}\n")
    os.mkfifo(folder / "pipe")
    assert refused(folder) == ("pipe", "stand-in-unreadable")


@pytest.mark.parametrize("content", ["[" * 100_000, '"' + "x" * (4 * 2**20) + '"'], ids=["deep", "large"])
def test_a_file_of_too_much_is_refused(project, content: str):
    assert refused(project("", dra_infra__yaml="outputs: {a: a.json}\n", a__json=content)) == (
        "a.json",
        "stand-in-unreadable",
    )


def test_a_project_without_the_file_has_none(tmp_path: Path):
    assert not read_stand_ins(tmp_path).outputs


CLASS = """
apiVersion: resource.k8s.io/{version}
kind: DeviceClass
metadata: {{name: h100, uid: a-1, creationTimestamp: "2026-01-01T00:00:00Z"}}
spec: {spec}
"""
SELECTS = "{selectors: [{cel: {expression: device.driver == 'gpu.nvidia.com'}}]}"
TRAINER = """
import dra_infra as dra
found = k8s.resource.v1.DeviceClass.get("h100", "h100")
dra.GpuClaimTemplate("trainer", namespace="ml", device_class=dra.class_ref(found.metadata.name), count=8)
"""
FLEET = "hgx-h100 x 2"


@pytest.fixture
def trainer(project):
    def write(program: str = TRAINER, *, version: str = "v1", spec: str = SELECTS) -> Path:
        cluster = CLASS.format(version=version, spec=spec)
        return project(program, dra_infra__yaml="objects: [cluster.yaml]\n", cluster__yaml=cluster)

    return write


@pytest.mark.parametrize("version", ["v1", "v1beta2", "v1beta1"])
@pytest.mark.parametrize(
    "run", [synth, lambda folder: RunningSynth(folder).result()], ids=["here", "confined"]
)
def test_pods_of_a_class_in_a_file_are_placed_and_it_is_no_object_of_the_program(trainer, run, version: str):
    program = run(trainer(version=version))
    assert [each.ref.kind for each in program.objects] == ["ResourceClaimTemplate"]
    assert [each.metadata.name for each in program.stand_in_classes] == ["h100"]
    made = SynthesizedProgram(program)
    assert made.problems == ()
    assert made.claim("trainer").fits(FLEET)
    assert program_from_json(write_json(program_to_json(program))) == program


def test_a_class_in_a_file_counts_whether_the_program_reads_it_or_names_it(trainer):
    named = 'import dra_infra as dra\ndra.GpuClaimTemplate("trainer", namespace="ml", device_class="h100")\n'
    program = SynthesizedProgram(synth(trainer(named)))
    assert program.problems == ()
    assert program.claim("trainer").fits(FLEET)


def test_a_class_that_the_fleet_has_under_the_same_name_comes_first(trainer):
    program = SynthesizedProgram(synth(trainer(spec=SELECTS.replace("gpu.nvidia.com", "other.example.com"))))
    fit = program.claim("trainer").fits(FLEET)
    assert fit.placement.verdict == "does-not-fit"
    own = DeviceClass.from_manifest(
        {"metadata": {"name": "h100"}, "spec": {"selectors": [{"cel": {"expression": "true"}}]}}
    )
    assert program.claim("trainer").fits(load_fleet(FLEET).with_classes([own]))


def test_a_class_without_a_spec_is_there_for_its_name_alone(trainer):
    program = SynthesizedProgram(synth(trainer(spec="null")))
    assert program.program.stand_in_classes == ()
    fit = program.claim("trainer").fits(FLEET)
    assert (fit.placement.verdict, fit.placement.reasons[0].code) == ("not-decided", "class-not-known")


@pytest.mark.parametrize("spec", ["{selectors: 3}", "{selektors: []}"])
def test_a_class_that_cannot_be_read_is_refused(trainer, spec: str):
    assert refused(trainer(spec=spec)) == ("cluster.yaml", "stand-in-unreadable")


def test_secrets_of_a_class_are_hidden_as_those_of_objects_are(trainer):
    parameters = "{password: hunter2-planted}"
    opaque = f"{{driver: gpu.nvidia.com, parameters: {parameters}}}"
    program = synth(trainer(spec=f"{{config: [{{opaque: {opaque}}}]}}"))
    masked, _ = without_secrets(program, program, SecretMask())
    assert "planted" in str(program.stand_in_classes)
    assert "planted" not in str(masked.stand_in_classes)
