"""Programs that are tidied up: what happens to claims, and to the workloads that use them."""

from __future__ import annotations

from dataclasses import replace as with_fields

import pytest

from tests.support.lab import Lab
from tools.cluster import Api
from tools.engine_cli import Result, Stack

pytestmark = pytest.mark.e2e

TEMPLATE = "resource.k8s.io/v1/ResourceClaimTemplate"
DEPLOYMENT = "apps/v1/Deployment"

PROGRAM = """
import dra_infra as dra
team = pulumi.ComponentResource("acme:index:Team", "team")
gpus = dra.GpuClaimTemplate("{name}", device_class="gpu.example.com", namespace=NAMESPACE{more},
    opts=ResourceOptions({options}))
k8s.apps.v1.Deployment("app", metadata={{"name": "app", "namespace": NAMESPACE}}, spec={{
    "replicas": 1, "selector": {{"matchLabels": {{"app": "app"}}}},
    "template": {{"metadata": {{"labels": {{"app": "app"}}}}, "spec": gpus.attach({{
        "containers": [{{"name": "main", "image": "registry.example/main:1"}}]}})}}}})
"""
REPLACED = ("create-replacement", "replace", "delete-replaced")


def program(name: str = "gpus", options: str = "", more: str = "") -> str:
    return PROGRAM.format(name=name, options=options, more=more)


def templates(api: Api, lab: Lab) -> dict[str, str]:
    found = api.list(TEMPLATE, namespace=lab.namespace)
    return {each["metadata"]["name"]: each["metadata"]["uid"] for each in found}


def generation(api: Api, lab: Lab) -> tuple[str, int]:
    """Identity of the Deployment, and how often its spec has changed: pods are restarted when it does."""
    metadata = api.get(DEPLOYMENT, "app", namespace=lab.namespace)["metadata"]
    return metadata["uid"], metadata["generation"]


def of_object(result: Result) -> tuple[tuple[str, str], ...]:
    """What was done to templates, by name, in order."""
    return tuple(
        (step.name, step.operation) for step in result.steps if step.type.endswith(":ResourceClaimTemplate")
    )


def test_moved_below_a_parent_with_an_alias_nothing_is_touched(lab: Lab, cluster_api: Api) -> None:
    lab.up(program())
    before = templates(cluster_api, lab), generation(cluster_api, lab)
    lab.write(program(options="parent=team, aliases=[pulumi.Alias(parent=pulumi.ROOT_STACK_RESOURCE)]"))

    preview, up = lab.stack.preview("--expect-no-changes").check(), lab.stack.up().check()

    assert of_object(preview) == of_object(up) == (("gpus", "same"),)
    assert (templates(cluster_api, lab), generation(cluster_api, lab)) == before
    assert "acme:index:Team$dra-infra:index:GpuClaimTemplate$" in lab.resource("gpus")["urn"]


def test_moved_below_a_parent_without_an_alias_up_is_refused(lab: Lab, cluster_api: Api) -> None:
    lab.up(program())
    before = templates(cluster_api, lab), generation(cluster_api, lab)
    lab.write(program(options="parent=team"))

    preview = lab.stack.preview().check()
    up = lab.stack.up()

    assert sorted(of_object(preview)) == [("gpus", "create"), ("gpus", "delete")]
    assert up.exit_code == 1
    assert "already exists" in up.text
    assert (templates(cluster_api, lab), generation(cluster_api, lab)) == before


@pytest.mark.parametrize(
    "alias", ["", 'aliases=[pulumi.Alias(name="gpus")]'], ids=["without alias", "with alias"]
)
def test_renamed_the_workload_rolls_over(lab: Lab, cluster_api: Api, alias: str) -> None:
    lab.up(program())
    before = templates(cluster_api, lab)
    (uid, count) = generation(cluster_api, lab)
    lab.write(program("devices", alias))

    preview, up = lab.stack.preview().check(), lab.stack.up().check()

    operations = [operation for _, operation in of_object(up)]
    assert sorted(of_object(preview)) == sorted(of_object(up))
    assert operations == (list(REPLACED) if alias else ["create", "delete"])
    assert up.operations("app") == ("update",)
    assert generation(cluster_api, lab) == (uid, count + 1)
    (name,) = templates(cluster_api, lab)
    assert name.startswith("devices-")
    assert name not in before


def test_renamed_with_alias_and_the_old_name_the_object_stays_and_pods_restart(
    lab: Lab, cluster_api: Api
) -> None:
    lab.up(program())
    before = templates(cluster_api, lab)
    (uid, count) = generation(cluster_api, lab)
    (name,) = before
    lab.write(program("devices", 'aliases=[pulumi.Alias(name="gpus")]', f', object_name="{name}"'))

    up = lab.stack.up().check()

    assert of_object(up) == (("devices", "same"),)
    # The entry of the pod is called after the component.
    assert up.operations("app") == ("update",)
    assert (templates(cluster_api, lab), generation(cluster_api, lab)) == (before, (uid, count + 1))


ALONE = """
import dra_infra as dra
dra.GpuClaimTemplate("gpus", device_class="gpu.example.com", namespace=NAMESPACE, opts=ResourceOptions({options}){more})
"""


def other_stack(lab: Lab) -> Lab:
    """A second stack of the project."""
    stack = Stack(lab.stack.directory, home=lab.home, name="other", environment=lab.stack.environment)
    stack.init()
    return with_fields(lab, stack=stack)


def test_moved_to_another_stack_in_the_state_nothing_is_touched(lab: Lab, cluster_api: Api) -> None:
    lab.up(ALONE.format(options="", more=""))
    before = templates(cluster_api, lab)
    other = other_stack(lab)
    urn = next(
        each["urn"] for each in lab.stack.export()["resources"] if each["type"].startswith("dra-infra:")
    )

    lab.stack.run("state", "move", "--source", "dev", "--dest", "other", "--yes", urn).check()

    other.stack.preview("--expect-no-changes").check()
    lab.write("")
    lab.stack.up().check()
    assert (lab.names(), other.names()) == ([], ["gpus"])
    assert templates(cluster_api, lab) == before


def test_left_by_one_stack_and_imported_by_another_the_object_stays(lab: Lab, cluster_api: Api) -> None:
    lab.up(ALONE.format(options="retain_on_delete=True", more=""))
    before = templates(cluster_api, lab)
    (name,) = before
    other = other_stack(lab)
    lab.up("")

    other.up(ALONE.format(options=f'import_=f"{{NAMESPACE}}/{name}"', more=""))

    assert (lab.names(), other.names()) == ([], ["gpus"])
    assert templates(cluster_api, lab) == before


def test_without_either_the_other_stack_is_refused_while_the_first_has_it(lab: Lab) -> None:
    lab.up(ALONE.format(options="", more=""))

    up = other_stack(lab).stack.up()

    assert up.exit_code == 1
    assert "already exists" in up.text
