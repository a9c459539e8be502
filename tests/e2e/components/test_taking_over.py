"""Objects that were written by hand, in the stack's state or in the cluster only, become components without a change."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.lab import DRIVER, Lab
from tools.cluster import Api
from tools.engine_cli import Result

pytestmark = pytest.mark.e2e

CLASS = "resource.k8s.io/v1/DeviceClass"
CLAIM = "resource.k8s.io/v1/ResourceClaim"
TEMPLATE = "resource.k8s.io/v1/ResourceClaimTemplate"
CLASS_TYPE, CLAIM_TYPE, TEMPLATE_TYPE = (
    f"kubernetes:resource.k8s.io/v1:{kind}"
    for kind in ("DeviceClass", "ResourceClaim", "ResourceClaimTemplate")
)

BY_HAND = """
k8s.resource.v1.DeviceClass("example", metadata={"name": NAMESPACE}, spec={"selectors": [
    {"cel": {"expression": 'device.driver == "gpu.example.com"'}}]})
k8s.resource.v1.ResourceClaim("cache", metadata={"name": "cache", "namespace": NAMESPACE}, spec=claims(1))
claim_template("trainer", 2, name="trainer")
"""
TAKEN_OVER = f"""
import dra_infra as dra
def by_hand(kind, name): return ResourceOptions(aliases=[pulumi.Alias(name=name, type_=kind)])
dra.GpuDeviceClass("gpus", driver="gpu.example.com", object_name=NAMESPACE, opts=by_hand("{CLASS_TYPE}", "example"))
dra.GpuClaim("cache", device_class="gpu.example.com", count=1, object_name="cache", namespace=NAMESPACE,
    opts=by_hand("{CLAIM_TYPE}", "cache"))
dra.GpuClaimTemplate("train", device_class="gpu.example.com", count=2, object_name="trainer", namespace=NAMESPACE,
    opts=by_hand("{TEMPLATE_TYPE}", "trainer"))
"""
WITHOUT_OPTIONS = """
import dra_infra as dra
dra.GpuDeviceClass("gpus", driver="gpu.example.com", object_name=NAMESPACE)
dra.GpuClaim("cache", device_class="gpu.example.com", count=1, object_name="cache", namespace=NAMESPACE)
dra.GpuClaimTemplate("train", device_class="gpu.example.com", count=2, object_name="trainer", namespace=NAMESPACE)
"""
TEMPLATE_ONLY = """
import dra_infra as dra
dra.GpuClaimTemplate("trainer", device_class="gpu.example.com", count={count}, namespace=NAMESPACE, {more}
    opts=ResourceOptions({options}))
"""


def uids(api: Api, lab: Lab) -> dict[str, str]:
    """Identity and version of the objects: a write of any kind changes the version."""
    found = [
        api.get(CLASS, lab.namespace),
        api.get(CLAIM, "cache", namespace=lab.namespace),
        api.get(TEMPLATE, "trainer", namespace=lab.namespace),
    ]
    return {each["metadata"]["uid"]: each["metadata"]["resourceVersion"] for each in found}


def changed(result: Result) -> dict[tuple[str, str], str]:
    """What was done, by kind and name, to whatever did not stay the same."""
    return {
        (step.type.rpartition(":")[2], step.name): step.operation
        for step in result.steps
        if step.operation != "same"
    }


def template_as_made_by(manager: str, lab: Lab, api: Api, *, applied: bool) -> str:
    """Make the template as a person with kubectl does, and return its uid."""
    metadata: dict[str, Any] = {"name": "trainer", "namespace": lab.namespace}
    requests = [{"name": "gpu", "exactly": {"deviceClassName": DRIVER}}]
    manifest = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": metadata,
        "spec": {"spec": {"devices": {"requests": requests}}},
    }
    if applied:
        annotation = "kubectl.kubernetes.io/last-applied-configuration"
        metadata["annotations"] = {annotation: json.dumps(manifest)}
    path = f"/apis/resource.k8s.io/v1/namespaces/{lab.namespace}/resourceclaimtemplates"
    made = api.request("POST", path, json=manifest, params={"fieldManager": manager})
    return str(made["metadata"]["uid"])


def test_objects_of_the_state_become_components_and_are_not_touched(lab: Lab, cluster_api: Api) -> None:
    lab.up(BY_HAND)
    before = uids(cluster_api, lab)
    lab.write(TAKEN_OVER)
    only_components = {
        ("GpuDeviceClass", "gpus"): "create",
        ("GpuClaim", "cache"): "create",
        ("GpuClaimTemplate", "train"): "create",
    }

    preview, up = lab.stack.preview().check(), lab.stack.up().check()

    assert changed(preview) == changed(up) == only_components
    objects = [step for step in up.steps if step.type.startswith("kubernetes:")]
    assert [step.operation for step in objects] == ["same"] * 3
    assert uids(cluster_api, lab) == before
    assert all("dra-infra:index:" in each["parent"] for each in lab.resources())


def test_the_aliases_may_go_once_the_objects_are_taken_over(lab: Lab, cluster_api: Api) -> None:
    lab.up(BY_HAND)
    lab.up(TAKEN_OVER)
    before = uids(cluster_api, lab)
    lab.write(WITHOUT_OPTIONS)

    lab.stack.preview("--expect-no-changes").check()
    lab.stack.up().check()

    assert uids(cluster_api, lab) == before


def test_what_the_hand_left_to_the_server_is_an_update_that_changes_nothing(
    lab: Lab, cluster_api: Api
) -> None:
    lab.up(
        'k8s.resource.v1.ResourceClaimTemplate("trainer", metadata={"name": "trainer", "namespace": NAMESPACE},\n'
        '    spec={"spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}]}}})\n'
    )
    before = cluster_api.get(TEMPLATE, "trainer", namespace=lab.namespace)
    options = f'aliases=[pulumi.Alias(type_="{TEMPLATE_TYPE}")]'
    lab.write(TEMPLATE_ONLY.format(count=1, more='object_name="trainer",', options=options))

    step = lab.stack.preview().check().step("trainer", "update")
    lab.stack.up().check()

    after = cluster_api.get(TEMPLATE, "trainer", namespace=lab.namespace)
    assert set(step.changes) == {"spec.spec.devices.requests[0].exactly.count"}
    assert (after["metadata"]["uid"], after["spec"]) == (before["metadata"]["uid"], before["spec"])
    lab.stack.preview("--expect-no-changes").check()


def test_another_spec_under_the_old_name_is_refused_in_the_preview(lab: Lab) -> None:
    lab.up('claim_template("trainer", 2, name="trainer")\n')
    options = f'aliases=[pulumi.Alias(type_="{TEMPLATE_TYPE}")]'
    lab.write(TEMPLATE_ONLY.format(count=3, more='object_name="trainer",', options=options))

    preview = lab.stack.preview()

    assert preview.exit_code == 1
    assert "field is immutable" in preview.text


def test_a_class_that_selects_something_else_is_taken_over_and_changed_in_place(
    lab: Lab, cluster_api: Api
) -> None:
    lab.up('k8s.resource.v1.DeviceClass("gpus", metadata={"name": NAMESPACE}, spec={})\n')
    uid = cluster_api.get(CLASS, lab.namespace)["metadata"]["uid"]
    lab.write(
        'import dra_infra as dra\ndra.GpuDeviceClass("gpus", driver="gpu.example.com", object_name=NAMESPACE,\n'
        f'    opts=ResourceOptions(aliases=[pulumi.Alias(type_="{CLASS_TYPE}")]))\n'
    )

    preview, up = lab.stack.preview().check(), lab.stack.up().check()

    assert (
        changed(preview)
        == changed(up)
        == {("GpuDeviceClass", "gpus"): "create", ("DeviceClass", "gpus"): "update"}
    )
    found = cluster_api.get(CLASS, lab.namespace)
    assert found["metadata"]["uid"] == uid
    assert DRIVER in found["spec"]["selectors"][0]["cel"]["expression"]


def test_without_a_name_the_old_object_is_replaced_by_one_named_by_content(
    lab: Lab, cluster_api: Api
) -> None:
    lab.up('claim_template("trainer", 2, name="trainer")\n')
    options = f'aliases=[pulumi.Alias(type_="{TEMPLATE_TYPE}")]'
    lab.write(TEMPLATE_ONLY.format(count=2, more="", options=options))

    up = lab.stack.up().check()

    steps = [step.operation for step in up.steps if step.type == TEMPLATE_TYPE]
    assert steps == ["create-replacement", "replace", "delete-replaced"]
    (left,) = cluster_api.list(TEMPLATE, namespace=lab.namespace)
    assert left["metadata"]["name"].startswith("trainer-")


def test_objects_of_a_yaml_file_are_taken_over_by_their_urn(lab: Lab, cluster_api: Api) -> None:
    # The vendor's ConfigFile itself; only its call of the provider that splits the text is made here, for the stand-in
    # has no functions.
    lab.up(
        "import yaml\n"
        "from pulumi_kubernetes.yaml import yaml as vendor\n"
        "async def decode(text, opts): return list(yaml.safe_load_all(text))\n"
        "vendor._invoke_yaml_decode_async = decode\n"
        "open('trainer.yaml', 'w').write(f'''\n"
        "apiVersion: resource.k8s.io/v1\n"
        "kind: ResourceClaimTemplate\n"
        "metadata: {{name: trainer, namespace: {NAMESPACE}}}\n"
        "spec: {{spec: {{devices: {{requests: [{{name: gpu, exactly: {{deviceClassName: gpu.example.com, count: 2}}}}]}}}}}}\n"
        "''')\n"
        'vendor.ConfigFile("file", "trainer.yaml")\n'
    )
    (old,) = lab.resources()[-1:]
    before = cluster_api.get(TEMPLATE, "trainer", namespace=lab.namespace)["metadata"]
    urn = f"urn:pulumi:dev::project::kubernetes:yaml:ConfigFile${TEMPLATE_TYPE}::{lab.namespace}/trainer"
    assert old["urn"] == urn
    lab.write(TEMPLATE_ONLY.format(count=2, more='object_name="trainer",', options=f'aliases=["{urn}"]'))

    preview, up = lab.stack.preview().check(), lab.stack.up().check()

    expected = {("GpuClaimTemplate", "trainer"): "create", ("ConfigFile", "file"): "delete"}
    assert changed(preview) == changed(up) == expected
    after = cluster_api.get(TEMPLATE, "trainer", namespace=lab.namespace)["metadata"]
    assert (after["uid"], after["resourceVersion"]) == (before["uid"], before["resourceVersion"])


@pytest.mark.parametrize(
    ("manager", "applied"),
    [
        pytest.param("kubectl-client-side-apply", True, id="kubectl apply"),
        pytest.param("kubectl-create", False, id="kubectl create"),
    ],
)
def test_an_object_of_no_stack_is_imported_by_one_option(
    lab: Lab, cluster_api: Api, manager: str, applied: bool
) -> None:
    uid = template_as_made_by(manager, lab, cluster_api, applied=applied)
    before = cluster_api.get(TEMPLATE, "trainer", namespace=lab.namespace)
    named = 'object_name="trainer",'
    lab.write(TEMPLATE_ONLY.format(count=1, more=named, options='import_=f"{NAMESPACE}/trainer"'))

    preview, up = lab.stack.preview().check(), lab.stack.up().check()
    imported = cluster_api.get(TEMPLATE, "trainer", namespace=lab.namespace)
    lab.write(TEMPLATE_ONLY.format(count=1, more=named, options=""))
    again = lab.stack.preview().check()
    lab.stack.up().check()

    assert preview.operations("trainer") == up.operations("trainer") == ("create", "import", "update")
    # What the server filled in is not in the program: the update gives it back to the server, which fills it in again.
    removed = {
        path for path, change in preview.step("trainer", "update").changes.items() if change == "delete"
    }
    assert removed - {'metadata.annotations["kubectl.kubernetes.io/last-applied-configuration"]'} == {
        "spec.metadata",
        "spec.spec.devices.requests[0].exactly.allocationMode",
    }
    assert (imported["metadata"]["uid"], imported["spec"]) == (uid, before["spec"])
    assert set(again.step("trainer", "update").changes) == {"metadata.annotations"}
    lab.stack.preview("--expect-no-changes").check()


def test_an_import_of_another_spec_is_refused_in_the_preview(lab: Lab, cluster_api: Api) -> None:
    template_as_made_by("kubectl-create", lab, cluster_api, applied=False)
    options = 'import_=f"{NAMESPACE}/trainer"'
    lab.write(TEMPLATE_ONLY.format(count=2, more='object_name="trainer",', options=options))

    preview = lab.stack.preview()

    assert preview.exit_code == 1
    assert "field is immutable" in preview.text


def test_an_import_without_the_name_is_told_with_the_line_to_write(lab: Lab, cluster_api: Api) -> None:
    template_as_made_by("kubectl-create", lab, cluster_api, applied=False)
    lab.write(TEMPLATE_ONLY.format(count=1, more="", options='import_=f"{NAMESPACE}/trainer"'))

    preview = lab.stack.preview()

    assert preview.exit_code == 1
    assert "[import-of-another-name]" in preview.text
    assert 'write object_name="trainer"' in preview.text


def test_an_import_of_what_is_not_there_says_so(lab: Lab) -> None:
    options = 'import_=f"{NAMESPACE}/trainer"'
    lab.write(TEMPLATE_ONLY.format(count=1, more='object_name="trainer",', options=options))

    preview = lab.stack.preview()

    assert preview.exit_code == 1
    assert f"{lab.namespace}/trainer" in preview.text
    assert "not exist" in preview.text
