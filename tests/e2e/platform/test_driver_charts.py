"""The charts of drivers and operator: closed values, definitions before charts, and the upgrade across 0.4."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from dra_infra.catalog.charts import charts
from dra_infra.catalog.drivers import drivers
from tests.e2e.platform.wording import check_words
from tests.support.charts import DRIVER_CHARTS, ChartFolder, device_class
from tests.support.lab import Lab
from tools.cluster import Api, ControlPlane

pytestmark = pytest.mark.e2e

Charts = Callable[[str, str], ChartFolder]

CONSENT = {"gpuResourcesEnabledOverride": True}

VERSIONS = [
    (name, version)
    for name, chart in charts().items()
    for version, each in chart.versions.items()
    if each.keys == version
]

DEFINITION = "apiextensions.k8s.io/v1/CustomResourceDefinition"


def driver(chart: ChartFolder, /, *, name: str = "dra-driver", after: str = "[]", **arguments: Any) -> str:
    """Return a program that installs a chart into the namespace `gpu`."""
    given = {
        "chart": str(chart.path),
        "name": name,
        "namespace": "gpu",
        "create_namespace": True,
        **arguments,
    }
    words = ", ".join(f"{key}={value!r}" for key, value in given.items())
    return f'k8s.helm.v3.Release("{name}", {words}, opts=ResourceOptions(depends_on={after}))\n'


def definitions(chart: ChartFolder) -> str:
    """Return a program that applies the definitions of a chart and calls them `crds`."""
    return f"""
import json
crds = [
    k8s.apiextensions.CustomResource(
        crd["metadata"]["name"], api_version=crd["apiVersion"], kind=crd["kind"],
        metadata=crd["metadata"], spec=crd["spec"])
    for crd in json.loads({json.dumps(list(chart.crds))!r})
]
"""


def schemas(definition: dict[str, Any]) -> dict[str, Any]:
    """Return what a definition says about its fields, by version."""
    return {version["name"]: version["schema"] for version in definition["spec"]["versions"]}


@pytest.mark.parametrize(("name", "version"), VERSIONS)
def test_every_known_chart_renders_the_classes_that_the_catalogue_lists(
    chart: Charts, binaries: Callable[[str], Path], tmp_path: Path, name: str, version: str
) -> None:
    """With stand-ins this shows that they can be used; with real charts, that the catalogue is right."""
    found = chart(name, version)
    values = ("--set", "gpuResourcesEnabledOverride=true") if name in DRIVER_CHARTS else ()

    rendered = template(binaries, tmp_path, found.path, *values)

    line = charts()[name].versions[version].line
    product = charts()[name].product
    expected = [
        device_class(shipped)
        for each in drivers().values()
        if each.product == product and line in each.by_line
        for shipped in each.by_line[line].classes
    ]
    classes = [each for each in rendered if each["kind"] == "DeviceClass"]
    assert sorted(each["metadata"]["name"] for each in classes) == sorted(
        each["metadata"]["name"] for each in expected
    )


@pytest.mark.parametrize(("name", "version"), VERSIONS)
def test_every_stand_in_refuses_a_key_that_its_version_does_not_have(
    chart: Charts, binaries: Callable[[str], Path], tmp_path: Path, name: str, version: str
) -> None:
    found = stand_in(chart(name, version))

    with pytest.raises(subprocess.CalledProcessError) as failure:
        template(binaries, tmp_path, found.path, "--set", "resources-computeDomains.enabled=false")

    assert "additional properties 'resources-computeDomains' not allowed" in failure.value.stderr


def test_a_key_that_only_a_newer_version_has_fails_the_install(lab: Lab, chart: Charts) -> None:
    old, new = (
        stand_in(chart("nvidia-dra-driver-gpu", "25.12.0")),
        stand_in(chart("dra-driver-nvidia-gpu", "0.4.1")),
    )
    values = {**CONSENT, "controller": {"replicas": 2}}
    lab.write(driver(old, values=values))

    refused = lab.stack.up()
    lab.up(driver(new, values=values))

    assert refused.exit_code == 1
    failure = "".join(refused.errors)
    check_words(lab, failure, "of chart", "nvidia-dra-driver-gpu")
    assert "at '/controller': additional properties 'replicas' not allowed" in failure


def test_the_consent_of_the_chart_is_asked_for(lab: Lab, chart: Charts) -> None:
    lab.write(driver(chart("dra-driver-nvidia-gpu", "0.4.1")))

    up = lab.stack.up()

    assert up.exit_code == 1
    assert "gpuResourcesEnabledOverride" in "".join(up.errors)


DRIVER = """
import dra_infra as dra

def as_it_was(args):
    return pulumi.ResourceTransformResult({{**args.props, "allowNullValues": True}}, args.opts)

dra.DraDriver("dra", chart={chart!r}, version="0.4.1", namespace={namespace!r}, skip_await=True,
    gpu_resources_enabled_override=True, values={{{values}}},
    opts=ResourceOptions(transforms=[{transforms}]))
"""


def release_of(lab: Lab) -> dict[str, Any]:
    """Return the one release of the state."""
    (found,) = [each for each in lab.resources() if each["type"].endswith(":Release")]
    return found


def test_a_release_that_was_made_with_a_deprecated_input_is_not_upgraded_for_it(
    lab: Lab, chart: Charts
) -> None:
    path = str(chart("dra-driver-nvidia-gpu", "0.4.1").path)
    earlier = "lambda args: as_it_was(args) if args.type_.endswith(':Release') else None"
    # Transforms lose nulls, so that the values have none here.
    lab.up(
        DRIVER.format(chart=path, namespace="with-input", values='"logVerbosity": "4"', transforms=earlier)
    )
    assert release_of(lab)["inputs"]["allowNullValues"] is True

    lab.write(DRIVER.format(chart=path, namespace="with-input", values='"logVerbosity": "4"', transforms=""))
    lab.stack.preview("--expect-no-changes").check()
    lab.up(DRIVER.format(chart=path, namespace="with-input", values='"logVerbosity": "5"', transforms=""))

    assert release_of(lab)["outputs"]["status"]["revision"] == 2


def test_a_new_release_with_nulls_is_warned_of_nothing(lab: Lab, chart: Charts) -> None:
    path = str(chart("dra-driver-nvidia-gpu", "0.4.1").path)
    lab.write(
        DRIVER.format(
            chart=path, namespace="without-input", values='"controller": {"affinity": None}', transforms=""
        )
    )

    up = lab.stack.up().check()

    assert "deprecated" not in up.text
    assert "cannot ignore changes" not in up.text
    assert "allowNullValues" not in release_of(lab)["inputs"]
    lab.stack.preview("--expect-no-changes").check()


def test_classes_come_and_go_with_the_values_and_with_the_release(
    lab: Lab, chart: Charts, plane_api: Api
) -> None:
    found = chart("dra-driver-nvidia-gpu", "0.4.1")
    whole = driver(found, values=CONSENT, skip_await=True)
    part = driver(found, values={"resources": {"gpus": {"enabled": False}}}, skip_await=True)

    lab.up(whole)
    all_of_them = class_names(plane_api)
    lab.up(part)
    some = class_names(plane_api)
    lab.stack.destroy().check()

    assert {"gpu.nvidia.com", "mig.nvidia.com", "compute-domain-default-channel.nvidia.com"} <= all_of_them
    assert some == {name for name in all_of_them if name.startswith("compute-domain")}
    assert class_names(plane_api) == set()


def test_helm_alone_never_upgrades_definitions_and_leaves_them_behind(
    fresh_lab: Lab, chart: Charts, fresh_api: Api
) -> None:
    old, new = chart("nvidia-dra-driver-gpu", "25.8.1"), chart("nvidia-dra-driver-gpu", "25.12.0")

    fresh_lab.up(driver(old, values=CONSENT, skip_await=True))
    fresh_lab.up(driver(new, values=CONSENT, skip_await=True))
    after_upgrade = definition_names(fresh_api)
    fresh_lab.stack.destroy().check()

    assert after_upgrade == {crd["metadata"]["name"] for crd in old.crds}
    assert after_upgrade < {crd["metadata"]["name"] for crd in new.crds}
    assert definition_names(fresh_api) == after_upgrade


def test_definitions_of_the_program_come_before_the_chart_and_are_upgraded_with_it(
    fresh_lab: Lab, chart: Charts, fresh_api: Api
) -> None:
    old, new = chart("nvidia-dra-driver-gpu", "25.8.1"), chart("nvidia-dra-driver-gpu", "25.12.0")

    def program(found: ChartFolder) -> str:
        return definitions(found) + driver(
            found, values=CONSENT, skip_crds=True, skip_await=True, after="crds"
        )

    fresh_lab.write(program(old))
    install = fresh_lab.stack.up().check()
    fresh_lab.write(program(new))
    upgrade = fresh_lab.stack.up().check()

    for up, found in ((install, old), (upgrade, new)):
        names = [step.name for step in up.steps if step.operation in {"create", "update"}]
        changed = {crd["metadata"]["name"] for crd in found.crds} & set(names)
        assert changed
        assert max(names.index(name) for name in changed) < names.index("dra-driver")
    for crd in new.crds:
        assert schemas(fresh_api.get(DEFINITION, crd["metadata"]["name"])).keys() == schemas(crd).keys()
    assert definition_names(fresh_api) == {crd["metadata"]["name"] for crd in new.crds}
    fresh_lab.stack.preview("--expect-no-changes").check()


def test_across_0_4_the_name_override_keeps_the_objects(lab: Lab, chart: Charts, plane_api: Api) -> None:
    old, new = chart("nvidia-dra-driver-gpu", "25.12.0"), chart("dra-driver-nvidia-gpu", "0.4.1")
    override = {**CONSENT, "nameOverride": "nvidia-dra-driver-gpu"}
    release = "nvidia-dra-driver-gpu"

    lab.up(driver(old, name=release, values=CONSENT, skip_await=True))
    before = deployments(plane_api)
    lab.write(driver(new, name=release, values=override, skip_await=True))
    preview = lab.stack.preview().check()
    lab.stack.up().check()

    assert preview.step(release, "update").changes.keys() == {"chart", "values.nameOverride", "version"}
    assert deployments(plane_api) == before
    assert (
        lab.resource(release)["outputs"]["status"] | {"revision": 2, "version": new.version}
        == (lab.resource(release)["outputs"]["status"])
    )


def test_across_0_4_without_the_name_override_the_objects_are_others(
    lab: Lab, chart: Charts, plane_api: Api
) -> None:
    old, new = chart("nvidia-dra-driver-gpu", "25.12.0"), chart("dra-driver-nvidia-gpu", "0.4.1")

    lab.up(driver(old, values=CONSENT, skip_await=True))
    before = deployments(plane_api)
    lab.up(driver(new, values=CONSENT, skip_await=True))

    assert before.keys().isdisjoint(deployments(plane_api))


def test_the_operator_installs_its_custom_resource_with_its_definitions(
    fresh_lab: Lab, chart: Charts, fresh_api: Api
) -> None:
    operator = stand_in(chart("gpu-operator", "26.7.0"))
    values = {"devicePlugin": {"enabled": False}}
    program = driver(operator, name="gpu-operator", values=values)
    fresh_lab.write(program)

    preview = fresh_lab.stack.preview().check()
    fresh_lab.stack.up().check()
    policy = fresh_api.get("nvidia.com/v1/ClusterPolicy", "cluster-policy")
    fresh_lab.stack.destroy().check()

    # On an empty cluster nobody knows the kind yet; the chart can be rendered all the same.
    check_words(fresh_lab, preview.text, "+ ClusterPolicy.nvidia.com/nvidia.com/v1 cluster-policy")
    assert policy["spec"]["devicePlugin"] == {"enabled": False}
    assert fresh_api.find("nvidia.com/v1/ClusterPolicy", "cluster-policy") is None


def stand_in(chart: ChartFolder) -> ChartFolder:
    """Return a chart if it is a stand-in; the schemas and templates of real ones are others."""
    if chart.real:
        pytest.skip(f"{chart.path} is a real chart: this is about the stand-in")
    return chart


def template(
    binaries: Callable[[str], Path], folder: Path, chart: Path, *options: str
) -> list[dict[str, Any]]:
    """Return what helm renders of a chart for Kubernetes 1.37."""
    target = (
        "--kube-version",
        "1.37.1",
        "--api-versions",
        "resource.k8s.io/v1,resource.k8s.io/v1/DeviceClass",
    )
    done = subprocess.run(
        [str(binaries("helm")), "template", "rendered", str(chart), "--namespace", "gpu", *target, *options],
        env={"HOME": str(folder)},
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return [document for document in yaml.load_all(done.stdout, yaml.CSafeLoader) if document]


def class_names(api: Api) -> set[str]:
    """Return the names of all classes."""
    return {each["metadata"]["name"] for each in api.list("resource.k8s.io/v1/DeviceClass")}


def definition_names(api: Api) -> set[str]:
    """Return the names of all definitions."""
    return {each["metadata"]["name"] for each in api.list(DEFINITION)}


def deployments(api: Api) -> dict[str, str]:
    """Return the UIDs of the Deployments of the release by their names."""
    return {
        each["metadata"]["name"]: each["metadata"]["uid"]
        for each in api.list("apps/v1/Deployment", namespace="gpu")
    }


@pytest.fixture
def lab(platform_lab: Lab, plane_api: Api) -> Lab:
    """A project; definitions that other tests left do no harm to it."""
    return platform_lab


@pytest.fixture
def fresh_lab(make_platform_lab: Callable[[ControlPlane], Lab], fresh_control_plane: ControlPlane) -> Lab:
    """A project on a cluster without any definitions."""
    return make_platform_lab(fresh_control_plane)


@pytest.fixture
def fresh_api(fresh_control_plane: ControlPlane) -> Iterator[Api]:
    """The administrator of that cluster."""
    with fresh_control_plane.api() as client:
        yield client
