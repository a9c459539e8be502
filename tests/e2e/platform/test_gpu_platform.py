"""GpuPlatform on the real engine, the real helm and a real API server: order, values that arrive, upgrades, removal."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml

from tests.support.charts import ChartFolder
from tests.support.lab import Lab
from tools.cluster import Api, ControlPlane

pytestmark = pytest.mark.e2e

Charts = Callable[[str, str], ChartFolder]

DEFINITION = "apiextensions.k8s.io/v1/CustomResourceDefinition"
DEFINITION_TOKEN = f"kubernetes:{DEFINITION.rpartition('/')[0]}:CustomResourceDefinition"
ENFORCE = "pod-security.kubernetes.io/enforce"
LABEL = "nvidia.com/dra-kubelet-plugin"

OLD_NAME, NEW_NAME = "nvidia-dra-driver-gpu", "dra-driver-nvidia-gpu"


@pytest.fixture
def lab(make_platform_lab: Callable[[ControlPlane], Lab], fresh_control_plane: ControlPlane) -> Lab:
    """A project on a cluster of its own: definitions stay when a platform goes."""
    return make_platform_lab(fresh_control_plane)


@pytest.fixture
def cluster(fresh_control_plane: ControlPlane) -> Iterator[Api]:
    """The administrator of that cluster."""
    with fresh_control_plane.api() as client:
        yield client


def platform(**parts: Any) -> str:
    """Return a program with a platform on machines of its owner, and a claim through it."""
    arguments = {"platform": "kubeadm", "operator": None, **parts}
    words = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
    return f"""
import dra_infra as dra
platform = dra.GpuPlatform("gpus", {words})
dra.GpuClaimTemplate("notebook", device_class=platform.device_classes["gpu.nvidia.com"], namespace="default")
"""


def part(chart: ChartFolder, **arguments: Any) -> dict[str, Any]:
    """Return the arguments of a part that is installed from a chart on this machine; nobody runs its pods."""
    return {
        "version": chart.version.removeprefix("v"),
        "chart": str(chart.path),
        "skip_await": True,
        **arguments,
    }


def write_crds(lab: Lab, chart: ChartFolder) -> str:
    """Unpack the definitions of a chart beside the program, and return the folder as `crds=` takes it."""
    folder = f"crds/{chart.name}-{chart.version}"
    target = lab.stack.directory / folder
    target.mkdir(parents=True, exist_ok=True)
    for each in chart.crds:
        (target / f"{each['metadata']['name']}.yaml").write_text(yaml.safe_dump(each))
    return folder


def both(lab: Lab, chart: Charts, **driver: Any) -> str:
    """Return a program with operator 26.7.0 and driver 0.4.1, which bring their definitions."""
    operator, ours = chart("gpu-operator", "26.7.0"), chart(NEW_NAME, "0.4.1")
    return platform(
        operator=part(operator, crds=write_crds(lab, operator), eviction_label=LABEL),
        driver=part(ours, crds=write_crds(lab, ours), **driver),
    )


def arrived(cluster: Api, release: str, namespace: str) -> dict[str, Any]:
    """Return the values that a stand-in chart was rendered with."""
    found = cluster.get("v1/ConfigMap", f"{release}-values", namespace=namespace)
    values: dict[str, Any] = json.loads(found["data"]["values"])
    return values


def definition_names(cluster: Api) -> set[str]:
    """Return the names of all definitions."""
    return {each["metadata"]["name"] for each in cluster.list(DEFINITION)}


def of_charts(*charts: ChartFolder) -> set[str]:
    """Return the names of the definitions that charts bring."""
    return {each["metadata"]["name"] for chart in charts for each in chart.crds}


def controllers(cluster: Api, namespace: str) -> dict[str, str]:
    """Return the UIDs of the Deployments of a namespace by their names."""
    return {
        each["metadata"]["name"]: each["metadata"]["uid"]
        for each in cluster.list("apps/v1/Deployment", namespace=namespace)
    }


def test_operator_and_driver_arrive_with_what_follows_from_each_other(
    lab: Lab, chart: Charts, cluster: Api
) -> None:
    lab.write(both(lab, chart, gates={"TimeSlicingSettings": True}))

    lab.stack.preview().check()
    lab.stack.up().check()

    theirs = arrived(cluster, "gpus-operator", "gpu-operator")
    ours = arrived(cluster, "gpus-driver", NEW_NAME)
    assert theirs["devicePlugin"]["enabled"] is False
    assert theirs["operator"]["upgradeCRD"] is False
    assert {"name": "NODE_LABEL_FOR_GPU_POD_EVICTION", "value": LABEL} in theirs["driver"]["manager"]["env"]
    assert {"name": "KUBERNETES_ENABLE_DRA", "value": "true"} in theirs["dcgmExporter"]["env"]
    binding = "rbac.authorization.k8s.io/v1/ClusterRoleBinding", "gpus-operator-dcgm-exporter-slices"
    (account,) = cluster.get(*binding)["subjects"]
    assert (account["namespace"], account["name"]) == ("gpu-operator", "nvidia-dcgm-exporter")
    assert ours["gpuResourcesEnabledOverride"] is True
    assert ours["nvidiaDriverRoot"] == theirs["hostPaths"]["driverInstallDir"] == "/run/nvidia/driver"
    assert ours["kubeletPlugin"]["nodeSelector"] == {LABEL: "true"}
    assert ours["featureGates"] == {"TimeSlicingSettings": True}
    for namespace in ("gpu-operator", NEW_NAME):
        assert cluster.get("v1/Namespace", namespace)["metadata"]["labels"][ENFORCE] == "privileged"
    classes = {each["metadata"]["name"] for each in cluster.list("resource.k8s.io/v1/DeviceClass")}
    assert {"gpu.nvidia.com", "mig.nvidia.com"} <= classes
    (template,) = cluster.list("resource.k8s.io/v1/ResourceClaimTemplate", namespace="default")
    (request,) = template["spec"]["spec"]["devices"]["requests"]
    assert request["exactly"]["deviceClassName"] == "gpu.nvidia.com"


def test_a_second_look_at_an_installed_platform_changes_nothing(lab: Lab, chart: Charts) -> None:
    lab.up(both(lab, chart))

    lab.stack.preview("--expect-no-changes").check()
    lab.stack.refresh("--expect-no-changes").check()


def test_definitions_come_before_every_release_and_the_operator_before_the_driver(
    lab: Lab, chart: Charts
) -> None:
    lab.write(both(lab, chart))

    up = lab.stack.up().check()
    destroy = lab.stack.destroy().check()

    made = [(step.type.rpartition(":")[2], step.name) for step in up.steps if step.operation == "create"]
    definitions = [index for index, (kind, _) in enumerate(made) if kind == "CustomResourceDefinition"]
    releases = {name: index for index, (kind, name) in enumerate(made) if kind == "Release"}
    namespaces = {name: index for index, (kind, name) in enumerate(made) if kind == "Namespace"}
    template = next(index for index, (kind, _) in enumerate(made) if kind == "ResourceClaimTemplate")
    assert len(definitions) == len(of_charts(chart("gpu-operator", "26.7.0"), chart(NEW_NAME, "0.4.1")))
    assert max(definitions) < releases["gpus-operator"] < releases["gpus-driver"] < template
    assert namespaces["gpus-operator"] < releases["gpus-operator"]
    assert namespaces["gpus-driver"] < releases["gpus-driver"]
    gone = [step.name for step in destroy.steps if step.type.endswith(":Release")]
    assert gone == ["gpus-driver", "gpus-operator"]


def test_a_changed_argument_upgrades_that_release_alone(lab: Lab, chart: Charts, cluster: Api) -> None:
    lab.up(both(lab, chart, log_verbosity=4))
    lab.write(both(lab, chart, log_verbosity=6))

    preview = lab.stack.preview().check()
    lab.stack.up().check()

    assert preview.step("gpus-driver", "update").changes == {"values.logVerbosity": "update"}
    assert [step.name for step in preview.steps if step.operation not in {"same", "update"}] == []
    # Of the platform itself it is the registered argument that changes.
    assert {step.name for step in preview.steps if step.operation == "update"} == {"gpus", "gpus-driver"}
    assert str(arrived(cluster, "gpus-driver", NEW_NAME)["logVerbosity"]) == "6"


def test_the_way_across_0_4_keeps_the_objects_and_upgrades_the_definitions(
    lab: Lab, chart: Charts, cluster: Api
) -> None:
    old, new = chart(OLD_NAME, "25.8.1"), chart(NEW_NAME, "0.4.1")
    consent = {"gpu_resources_enabled_override": True}
    lab.up(platform(driver=part(old, crds=write_crds(lab, old), **consent)))
    before = controllers(cluster, OLD_NAME)
    lab.write(
        platform(
            driver=part(
                new,
                crds=write_crds(lab, new),
                name_override=OLD_NAME,
                upgrade_from="25.8.1",
                **consent,
            )
        )
    )

    preview = lab.stack.preview().check()
    up = lab.stack.up().check()

    assert before
    assert controllers(cluster, OLD_NAME) == before
    assert preview.step("gpus-driver", "update").changes.keys() == {
        "chart",
        "version",
        "values.nameOverride",
    }
    order = [step.name for step in up.steps if step.operation in {"create", "update"}]
    assert order[-1] == "gpus-driver"
    assert of_charts(old) < of_charts(new) == definition_names(cluster)


def test_the_way_across_0_4_without_the_old_name_is_refused_before_anything_is_sent(
    lab: Lab, chart: Charts, cluster: Api
) -> None:
    new = chart(NEW_NAME, "0.4.1")
    lab.write(platform(driver=part(new, upgrade_from="25.12.0", gpu_resources_enabled_override=True)))

    up = lab.stack.up()

    assert up.exit_code == 1
    said = " ".join(up.text.split())
    assert 'GpuPlatform("gpus").driver.name_override: the chart is called' in said
    assert 'GpuPlatform("gpus").driver.crds: Helm does not upgrade' in said
    assert "[chart-upgrade]" in said
    assert lab.resources() == []
    assert definition_names(cluster) == set()


def test_a_wrong_key_is_refused_by_us_before_the_chart_would_refuse_it(
    lab: Lab, chart: Charts, cluster: Api
) -> None:
    found = chart(NEW_NAME, "0.4.1")
    wrong = {"resources-computeDomains": {"enabled": False}}
    arguments = part(found, gpu_resources_enabled_override=True, values=wrong)
    lab.write(platform(driver=arguments))

    ours = lab.stack.up()

    assert ours.exit_code == 1
    assert "[unknown-chart-value]" in ours.text
    assert "did you mean resources.computeDomains?" in ours.text
    assert lab.resources() == []
    assert cluster.find("v1/Namespace", NEW_NAME) is None
    if found.real:
        return
    # The schema of the stand-in knows no other keys: the same values by hand fail in helm.
    values = {**wrong, "gpuResourcesEnabledOverride": True}
    lab.write(
        f"k8s.helm.v3.Release('by-hand', chart={str(found.path)!r}, namespace='gpu', create_namespace=True, "
        f"values={values!r})\n"
    )

    theirs = lab.stack.up()

    assert theirs.exit_code == 1
    assert "additional properties 'resources-computeDomains' not allowed" in "".join(theirs.errors)


def test_a_destroy_uninstalls_and_leaves_the_definitions_as_helm_does(
    lab: Lab, chart: Charts, cluster: Api
) -> None:
    lab.up(both(lab, chart))
    installed = definition_names(cluster)

    lab.stack.destroy().check()

    assert lab.resources() == []
    assert {each["metadata"]["name"] for each in cluster.list("resource.k8s.io/v1/DeviceClass")} == set()
    for namespace in ("gpu-operator", NEW_NAME):
        assert cluster.find("v1/Namespace", namespace) is None
    assert installed
    assert definition_names(cluster) == installed


def test_definitions_that_are_not_kept_go_with_the_platform(lab: Lab, chart: Charts, cluster: Api) -> None:
    lab.up(both(lab, chart, keep_crds=False))
    ours = of_charts(chart(NEW_NAME, "0.4.1"))

    lab.stack.destroy().check()

    assert definition_names(cluster) == of_charts(chart("gpu-operator", "26.7.0")) - ours


def test_definitions_that_helm_made_are_imported_once_and_upgraded_from_then_on(
    lab: Lab, chart: Charts, cluster: Api
) -> None:
    old, new = chart(OLD_NAME, "25.8.1"), chart(NEW_NAME, "0.4.1")
    consent = {"gpu_resources_enabled_override": True}
    lab.up(platform(driver=part(old, **consent)))
    assert definition_names(cluster) == of_charts(old)
    kept = {"name_override": OLD_NAME, "crds": write_crds(lab, new), "upgrade_from": "25.8.1"}
    lab.write(platform(driver=part(new, **consent, **kept)))

    refused = lab.stack.up()
    imported = import_definitions(lab, of_charts(old))
    lab.stack.up().check()

    assert refused.exit_code == 1
    assert "already exists" in "".join(refused.errors)
    assert imported == of_charts(old)
    assert definition_names(cluster) == of_charts(new)
    lab.stack.preview("--expect-no-changes").check()


def test_a_platform_that_was_destroyed_comes_back_with_an_import_of_its_definitions(
    lab: Lab, chart: Charts, cluster: Api
) -> None:
    found = chart(NEW_NAME, "0.4.1")
    lab.up(platform(driver=part(found, crds=write_crds(lab, found), gpu_resources_enabled_override=True)))
    lab.stack.destroy().check()

    refused = lab.stack.up()
    import_definitions(lab, of_charts(found))
    lab.stack.up().check()

    assert "already exists" in "".join(refused.errors)
    assert arrived(cluster, "gpus-driver", NEW_NAME)["gpuResourcesEnabledOverride"] is True


def import_definitions(lab: Lab, names: set[str]) -> set[str]:
    """Import definitions that are there, as docs/platform.md says, and return which."""
    missing = lab.stack.directory / "missing.json"
    lab.stack.run("preview", "--import-file", str(missing), "--stack", lab.stack.name).check()
    asked = json.loads(missing.read_text())
    asked["resources"] = [
        {**each, "id": each["name"].removeprefix("gpus-driver-")}
        for each in asked["resources"]
        if each["type"] == DEFINITION_TOKEN and each["name"].removeprefix("gpus-driver-") in names
    ]
    missing.write_text(json.dumps(asked))
    options = ("--yes", "--generate-code=false", "--protect=false", "--stack", lab.stack.name)
    lab.stack.run("import", "--file", str(missing), *options).check()
    return {each["id"] for each in asked["resources"]}
