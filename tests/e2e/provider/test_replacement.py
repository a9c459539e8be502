"""Which changes make a new object and which change the old one: the vendor's list, seen through the engine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from tests.support.lab import Lab
from tools.cluster import Api
from tools.engine_cli import Result

pytestmark = pytest.mark.e2e

OBJECTS = """
config_map("data", {{"key": "{new}"}})
config_map("labelled", {{"key": "same"}}, labels={{"revision": "{new}"}})
config_map("renamed", name="renamed-{new}")
config_map("moved", **({{"namespace": "default"}} if "{new}" == "b" else {{}}))
config_map("explicit", {{"key": "{new}"}}, name="explicit")

k8s.core.v1.Secret("secret", metadata={{"namespace": NAMESPACE}}, string_data={{"key": "{new}"}})

k8s.batch.v1.Job("job", metadata={{"namespace": NAMESPACE}}, spec={{"template": {{
    "metadata": {{"annotations": {{"revision": "{new}"}}}}, "spec": pod_spec(restartPolicy="Never")}}}})

deployment("selected", app="selected-{new}")

k8s.apps.v1.Deployment("rolled", metadata={{"namespace": NAMESPACE}}, spec={{
    "selector": {{"matchLabels": {{"app": "rolled"}}}},
    "template": {{"metadata": {{"labels": {{"app": "rolled"}}, "annotations": {{"revision": "{new}"}}}},
                 "spec": pod_spec()}}}})

def pod(resource, image="main", /, labels=None, **spec):
    return k8s.core.v1.Pod(resource, metadata={{"namespace": NAMESPACE, "labels": labels}}, spec={{
        "containers": [{{"name": "main", "image": f"registry.invalid/{{image}}:1"}}], **spec}})

pod("pod-image", "{new}")
pod("pod-priority", restartPolicy="Always" if "{new}" == "a" else "Never")
pod("pod-labels", labels={{"revision": "{new}"}})

k8s.resource.v1.DeviceClass("class", metadata={{"name": NAMESPACE}}, spec={{
    "selectors": [{{"cel": {{"expression": "device.driver == '{new}'"}}}}]}})
"""

REPLACED_WITH_NEW_NAME = ("create-replacement", "replace", "delete-replaced")
REPLACED_UNDER_THE_SAME_NAME = ("delete-replaced", "replace", "create-replacement")


@dataclass(frozen=True, kw_only=True)
class Changed:
    lab: Lab
    preview: Result
    up: Result


@pytest.fixture(scope="module")
def changed(make_lab: Callable[[], Lab]) -> Changed:
    """All objects, deployed and then changed, each in one respect."""
    lab = make_lab()
    lab.up(OBJECTS.format(new="a"))
    lab.write(OBJECTS.format(new="b"))
    return Changed(lab=lab, preview=lab.stack.preview().check(), up=lab.stack.up().check())


@pytest.mark.parametrize(
    ("name", "operations", "path"),
    [
        pytest.param("data", REPLACED_WITH_NEW_NAME, "data.key", id="data of an autonamed ConfigMap"),
        pytest.param("explicit", REPLACED_UNDER_THE_SAME_NAME, "data.key", id="data of a named ConfigMap"),
        pytest.param("labelled", ("update",), "metadata.labels.revision", id="labels"),
        pytest.param("renamed", REPLACED_WITH_NEW_NAME, "metadata.name", id="name"),
        pytest.param("moved", REPLACED_WITH_NEW_NAME, "metadata.namespace", id="namespace"),
        pytest.param("secret", REPLACED_WITH_NEW_NAME, "data", id="data of a Secret"),
        pytest.param(
            "job",
            REPLACED_WITH_NEW_NAME,
            "spec.template.metadata.annotations.revision",
            id="template of a Job",
        ),
        pytest.param(
            "selected",
            REPLACED_UNDER_THE_SAME_NAME,
            "spec.selector.matchLabels.app",
            id="selector of a Deployment",
        ),
        pytest.param(
            "rolled",
            ("update",),
            "spec.template.metadata.annotations.revision",
            id="template of a Deployment",
        ),
        pytest.param("pod-image", REPLACED_WITH_NEW_NAME, "spec.containers[0].image", id="image of a Pod"),
        pytest.param(
            "pod-priority", REPLACED_WITH_NEW_NAME, "spec.restartPolicy", id="restart policy of a Pod"
        ),
        pytest.param("pod-labels", ("update",), "metadata.labels.revision", id="labels of a Pod"),
        pytest.param(
            "class", ("update",), "spec.selectors[0].cel.expression", id="selectors of a DeviceClass"
        ),
    ],
)
def test_change_of(changed: Changed, name: str, operations: tuple[str, ...], path: str) -> None:
    preview = next(step for step in changed.preview.steps if step.name == name and step.changes)

    assert changed.preview.operations(name) == operations
    assert changed.up.operations(name) == operations
    assert any(found.startswith(path) for found in preview.changes)


def test_everything_is_settled_after_the_changes(changed: Changed) -> None:
    changed.lab.stack.preview("--expect-no-changes").check()


def test_refresh_after_the_changes_finds_no_drift(changed: Changed) -> None:
    changed.lab.stack.refresh("--expect-no-changes").check()


def test_claims_of_a_pod_are_not_on_the_list_so_the_server_refuses_the_change(lab: Lab) -> None:
    program = (
        'k8s.core.v1.Pod("pod", metadata={{"namespace": NAMESPACE, "name": "pod"}},\n'
        '    spec=pod_spec("{template}"), opts=ResourceOptions())\n'
        'claim_template("one", 1, name="one")\nclaim_template("two", 1, name="two")\n'
    )
    lab.up(program.format(template="one"))
    lab.write(program.format(template="two"))

    preview = lab.stack.preview()

    assert preview.exit_code == 1
    assert "pod updates may not change fields" in preview.text


@pytest.mark.parametrize(
    ("option", "maker"),
    [
        pytest.param("enable_config_map_mutable", 'config_map("object", {{"key": "{new}"}}, opts=on)'),
        pytest.param(
            "enable_secret_mutable",
            'k8s.core.v1.Secret("object", opts=on, metadata={{"namespace": NAMESPACE}},'
            ' string_data={{"key": "{new}"}})',
        ),
    ],
)
def test_data_is_updated_in_place_where_the_provider_is_told_so(lab: Lab, option: str, maker: str) -> None:
    program = f'on = ResourceOptions(provider=k8s.Provider("provider", {option}=True))\n' + maker
    lab.up(program.format(new="a"))
    lab.write(program.format(new="b"))

    assert lab.stack.up().check().operations("object") == ("update",)


def test_an_autonamed_object_keeps_its_name_across_updates(lab: Lab, cluster_api: Api) -> None:
    program = 'config_map("kept", labels={{"revision": "{new}"}})\n'
    lab.up(program.format(new="a"))
    first = lab.resource("kept")
    lab.up(program.format(new="b"))

    second = lab.resource("kept")
    name = second["inputs"]["metadata"]["name"]
    assert (second["id"], name) == (first["id"], first["inputs"]["metadata"]["name"])
    assert name.startswith("kept-")
    found = cluster_api.get("v1/ConfigMap", name, namespace=lab.namespace)["metadata"]
    assert found["labels"] == {"revision": "b"}
    assert found["annotations"] == {"pulumi.com/autonamed": "true"}


def test_verbatim_autonaming_takes_the_name_of_the_resource(lab: Lab) -> None:
    lab.stack.configure("pulumi:autonaming.mode", "verbatim", "--path")

    lab.up('config_map("verbatim")\n')

    assert lab.resource("verbatim")["id"] == f"{lab.namespace}/verbatim"


def test_a_field_that_leaves_the_program_leaves_the_object(lab: Lab, cluster_api: Api) -> None:
    lab.up('config_map("object", name="object", labels={"stays": "1", "goes": "1"})\n')
    lab.up('config_map("object", name="object", labels={"stays": "1"})\n')

    found = cluster_api.get("v1/ConfigMap", "object", namespace=lab.namespace)
    assert found["metadata"]["labels"] == {"stays": "1"}
