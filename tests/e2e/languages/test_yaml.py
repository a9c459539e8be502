"""Components in YAML on the real engine and API server: the objects, URNs, state and problems of the same program in Python."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.languages.conftest import CLASS, TEMPLATE, Json, Yaml
from tests.support.lab import Lab
from tools.cluster import Api

pytestmark = pytest.mark.e2e


def platform(lab: Lab) -> tuple[Json, str]:
    """The same platform in YAML and in Python: a class, a claim template, MIG devices, and a tenant with its templates."""
    space = lab.namespace
    in_yaml = {
        f"{space}-h100": {
            "type": "dra-infra:GpuDeviceClass",
            "properties": {
                "match": {"product": "H100", "memoryAtLeast": "79Gi"},
                "labels": {"team": "platform"},
            },
        },
        "trainer": {
            "type": "dra-infra:GpuClaimTemplate",
            "properties": {
                "deviceClass": f"${{{space}-h100.objectName}}",
                "count": 4,
                "configs": [{"timeSlicing": {"interval": "Long"}}],
                "namespace": space,
            },
        },
        "ladder": {
            "type": "dra-infra:GpuClaimTemplate",
            "properties": {
                "firstAvailable": [
                    {"name": "h100", "deviceClass": f"${{{space}-h100.objectName}}", "count": 2},
                    {"name": "any", "deviceClass": "gpu.nvidia.com", "allDevices": True},
                ],
                "namespace": space,
            },
        },
        "notebook": {
            "type": "dra-infra:MigPartition",
            "properties": {"profile": "1g.10gb", "namespace": space},
        },
        f"{space}-vision": {
            "type": "dra-infra:GpuTenant",
            "properties": {
                "quota": {f"{space}-h100": 8, "mig.nvidia.com": 7},
                "hard": {"pods": "100"},
                "templates": {
                    "trainer": {"claim": {"deviceClass": f"${{{space}-h100.objectName}}", "count": 4}},
                    "notebook": {"mig": {"profile": "1g.10gb"}},
                },
            },
        },
    }
    in_python = f"""
from functools import partial
import dra_infra as dra

h100 = dra.GpuDeviceClass(
    "{space}-h100", select=dra.gpu.product.contains("H100") & (dra.gpu.memory >= "79Gi"), labels={{"team": "platform"}})
dra.GpuClaimTemplate("trainer", device_class=h100, count=4, namespace=NAMESPACE,
    configs=[dra.GpuConfig(sharing=dra.TimeSlicing(interval="Long"))])
dra.GpuClaimTemplate("ladder", namespace=NAMESPACE, first_available=[
    dra.Alternative("h100", device_class=h100, count=2),
    dra.Alternative("any", device_class="gpu.nvidia.com", count="all")])
dra.MigPartition("notebook", profile="1g.10gb", namespace=NAMESPACE)
dra.GpuTenant("{space}-vision", quota={{h100: 8, "mig.nvidia.com": 7}}, hard={{"pods": "100"}}, templates={{
    "trainer": partial(dra.GpuClaimTemplate, device_class=h100, count=4),
    "notebook": partial(dra.MigPartition, profile="1g.10gb")}})
"""
    return in_yaml, in_python


def urns(lab: Lab) -> set[str]:
    entries = lab.stack.export().get("resources") or []
    return {each["urn"] for each in entries if not each["type"].startswith("pulumi:providers:")}


def test_objects_are_those_of_the_same_program_in_python_byte_for_byte(
    project: Yaml, lab: Lab, made: Callable[[], Json], cluster_api: Api
) -> None:
    in_yaml, in_python = platform(lab)
    project.write(in_yaml)
    lab.stack.up().check()
    objects, names = made(), urns(lab)
    assert len(objects) == 8
    lab.stack.destroy().check()
    assert cluster_api.find(CLASS, f"{lab.namespace}-h100") is None
    assert cluster_api.list(TEMPLATE, namespace=lab.namespace) == []

    lab.write(in_python)
    lab.stack.up().check()

    assert json.dumps(made(), sort_keys=True) == json.dumps(objects, sort_keys=True)
    assert urns(lab) == names


def test_a_program_moves_from_python_to_yaml_and_back_without_a_change(project: Yaml, lab: Lab) -> None:
    in_yaml, in_python = platform(lab)
    lab.write(in_python)
    lab.stack.up().check()

    project.write(in_yaml)
    lab.stack.preview("--expect-no-changes").check()
    lab.stack.up("--expect-no-changes").check()
    lab.write(in_python)
    lab.stack.preview("--expect-no-changes").check()


def test_a_change_makes_a_new_template_and_takes_the_old_one_away(
    project: Yaml, lab: Lab, cluster_api: Api
) -> None:
    def claim(count: int) -> Json:
        properties = {"deviceClass": "gpu.example.com", "count": count, "namespace": lab.namespace}
        return {"gpus": {"type": "dra-infra:GpuClaimTemplate", "properties": properties}}

    def templates() -> set[str]:
        return {each["metadata"]["name"] for each in cluster_api.list(TEMPLATE, namespace=lab.namespace)}

    project.write(claim(1))
    lab.stack.up().check()
    before = templates()

    project.write(claim(2))
    lab.stack.up().check()

    assert len(templates()) == 1
    assert templates().isdisjoint(before)


def test_a_preview_knows_the_entries_of_pods_before_anything_is_made(project: Yaml, lab: Lab) -> None:
    properties = {"deviceClass": "gpu.example.com", "namespace": lab.namespace}
    resources = {"gpus": {"type": "dra-infra:GpuClaimTemplate", "properties": properties}}
    project.write(resources, {"pod": "${gpus.podClaim}", "container": "${gpus.containerClaim}"})

    preview = lab.stack.preview().check()
    lab.stack.up().check()

    outputs = json.loads(lab.stack.run("stack", "output", "--json", "--stack", "dev").check().stdout)
    name = outputs["pod"]["resourceClaimTemplateName"]
    assert outputs == {
        "pod": {"name": "gpus", "resourceClaimTemplateName": name},
        "container": {"name": "gpus"},
    }
    assert name in preview.text


@pytest.mark.parametrize("command", ["preview", "up"])
def test_a_wrong_argument_is_shown_at_its_property_with_code_and_hint(
    project: Yaml, lab: Lab, cluster_api: Api, command: str
) -> None:
    properties: Any = {
        "firstAvailable": [{"name": "a", "deviceClass": "gpu.example.com", "count": 0}],
        "match": {"memoryAtLeast": "fourty"},
        "namespace": lab.namespace,
    }
    project.write({"gpus": {"type": "dra-infra:GpuClaimTemplate", "properties": properties}})

    result = lab.stack.preview() if command == "preview" else lab.stack.up()

    assert result.exit_code == 1
    for line in (
        "dra-infra:index:GpuClaimTemplate resource 'gpus' has a problem: 2 problems",
        "property firstAvailable[0].count with value 0 has a problem: 0 is below 1 [count-below-one]",
        'property match.memoryAtLeast with value "fourty" has a problem: ',
        "hint: ask for 1 or more devices",
    ):
        assert line in result.text
    assert "Traceback" not in result.text
    assert cluster_api.list(TEMPLATE, namespace=lab.namespace) == []


def test_a_misspelt_property_is_refused_by_the_schema(project: Yaml, lab: Lab) -> None:
    properties = {"deviceClass": "gpu.example.com", "cuont": 1}
    project.write({"gpus": {"type": "dra-infra:GpuClaimTemplate", "properties": properties}})

    result = lab.stack.preview()

    assert result.exit_code == 1
    assert "Existing properties are" in result.text


def test_a_secret_stays_one(project: Yaml, lab: Lab, cluster_api: Api) -> None:
    properties = {
        "deviceClass": "gpu.example.com",
        "namespace": lab.namespace,
        "labels": {"owner": {"fn::secret": "planted-secret"}},
    }
    project.write({"gpus": {"type": "dra-infra:GpuClaimTemplate", "properties": properties}})

    result = lab.stack.up().check()

    assert "planted-secret" not in result.text
    assert "planted-secret" not in str(lab.stack.export())
    (template,) = cluster_api.list(TEMPLATE, namespace=lab.namespace)
    assert template["metadata"]["labels"] == {"owner": "planted-secret"}


def test_a_setting_of_the_stack_names_the_cluster(project: Yaml, lab: Lab) -> None:
    properties = {"key": "example.com/service", "pool": "node-7"}
    project.write({"taint": {"type": "dra-infra:DeviceTaint", "properties": properties}})

    for minor, version in (("1.34", "v1alpha3"), ("1.37", "v1")):
        lab.stack.configure("dra-infra:kubernetes", minor)
        steps = [each for each in lab.stack.preview().check().steps if each.type.startswith("kubernetes:")]
        assert [each.type for each in steps] == [f"kubernetes:resource.k8s.io/{version}:DeviceTaintRule"]


def test_pods_take_the_claim_and_run(project: Yaml, lab: Lab, cluster_api: Api) -> None:
    container = {
        "name": "train",
        "image": "registry.example/train:1",
        "resources": {"claims": ["${gpus.containerClaim}"]},
    }
    pod = {"restartPolicy": "Never", "containers": [container], "resourceClaims": ["${gpus.podClaim}"]}
    project.write(
        {
            "gpus": {
                "type": "dra-infra:GpuClaimTemplate",
                "properties": {"deviceClass": "gpu.example.com", "count": 2, "namespace": lab.namespace},
            },
            "train": {
                "type": "kubernetes:batch/v1:Job",
                "properties": {
                    "metadata": {"name": "train", "namespace": lab.namespace},
                    "spec": {"template": {"spec": pod}},
                },
            },
        }
    )

    lab.stack.up().check()

    assert cluster_api.get("batch/v1/Job", "train", namespace=lab.namespace)["status"]["succeeded"] == 1
    (template,) = cluster_api.list(TEMPLATE, namespace=lab.namespace)
    written = lab.resource("train")["inputs"]["spec"]["template"]["spec"]["resourceClaims"]
    assert written == [{"name": "gpus", "resourceClaimTemplateName": template["metadata"]["name"]}]


def test_package_add_takes_the_folder(project: Yaml, lab: Lab, package: Path) -> None:
    file = lab.stack.directory / "Pulumi.yaml"
    file.write_text(yaml.safe_dump({"name": "project", "runtime": "yaml", "plugins": lab.home.plugins}))

    lab.stack.run("package", "add", str(package)).check()

    added = yaml.safe_load(file.read_text())
    assert added["packages"] == {"dra-infra": str(package)}
    properties = {"deviceClass": "gpu.example.com", "namespace": lab.namespace}
    added["resources"] = {"gpus": {"type": "dra-infra:GpuClaimTemplate", "properties": properties}}
    file.write_text(yaml.safe_dump(added))
    lab.stack.preview().check()
