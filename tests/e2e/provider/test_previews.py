"""What a preview learns from the API server, and what it cannot learn."""

from __future__ import annotations

import pytest

from tests.support.lab import DRIVER, Lab
from tools.cluster import Api
from tools.kubernetes_provider.values import UNKNOWN_STRING

pytestmark = pytest.mark.e2e


def claim(requests: str) -> str:
    return (
        'k8s.resource.v1.ResourceClaim("claim", metadata={"namespace": NAMESPACE, "name": "claim"},\n'
        f'    spec={{"devices": {{"requests": [{requests}]}}}})\n'
    )


@pytest.mark.parametrize(
    ("requests", "path"),
    [
        pytest.param(
            f'{{"name": "gpu", "exactly": {{"deviceClassName": "{DRIVER}", "count": -1}}}}',
            "spec.devices.requests[0].exactly.count",
            id="count",
        ),
        pytest.param(
            f'{{"name": "", "exactly": {{"deviceClassName": "{DRIVER}"}}}}',
            "spec.devices.requests[0].name",
            id="request name",
        ),
        pytest.param(
            f'{{"name": "gpu", "exactly": {{"deviceClassName": "{DRIVER}", '
            '"selectors": [{"cel": {"expression": "device."}}]}}',
            "spec.devices.requests[0].exactly.selectors[0].cel.expression",
            id="CEL syntax",
        ),
        pytest.param(
            f'{{"name": "gpu", "exactly": {{"deviceClassName": "{DRIVER}", "count": "two"}}}}',
            "count",
            id="type",
        ),
    ],
)
def test_an_object_that_the_server_would_refuse_fails_with_its_path(
    lab: Lab, requests: str, path: str
) -> None:
    lab.write(claim(requests))

    preview = lab.stack.preview()

    assert preview.exit_code == 1
    assert path in "".join(preview.errors)


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(
            claim(f'{{"name": "gpu", "exactly": {{"deviceClassName": "{DRIVER}", "cuont": 2}}}}'),
            id="misspelt field",
        ),
        pytest.param('config_map("lost", namespace="no-such-namespace")\n', id="namespace that is missing"),
        pytest.param(
            claim('{"name": "gpu", "exactly": {"deviceClassName": "no-such-class"}}'),
            id="class that is missing",
        ),
        pytest.param(
            'k8s.apiextensions.CustomResource("odd", api_version="odd.example.com/v1", kind="Odd",\n'
            '    metadata={"namespace": NAMESPACE})\n',
            id="kind that is missing",
        ),
    ],
)
def test_what_the_server_cannot_judge_passes(lab: Lab, program: str) -> None:
    lab.write(program)

    lab.stack.preview().check()


def test_a_preview_leaves_no_object_behind(lab: Lab, cluster_api: Api) -> None:
    lab.write('config_map("object", name="object")\n')

    lab.stack.preview().check()

    assert cluster_api.find("v1/ConfigMap", "object", namespace=lab.namespace) is None


def test_fields_that_the_server_fills_are_known_but_made_up(lab: Lab, cluster_api: Api) -> None:
    program = 'pulumi.export("uid", config_map("object", name="object").metadata["uid"])\n'
    lab.write(program)

    seen = lab.stack.preview().check().step("object", "create").outputs["metadata"]["uid"]
    lab.stack.up().check()

    real = cluster_api.get("v1/ConfigMap", "object", namespace=lab.namespace)["metadata"]["uid"]
    assert seen
    assert seen != real


def test_a_value_of_an_object_yet_to_be_created_is_unknown_and_comes_with_up(
    lab: Lab, cluster_api: Api
) -> None:
    lab.write(
        'other = k8s.core.v1.Namespace("other", metadata={"name": f"{NAMESPACE}-other"})\n'
        'config_map("object", {"phase": other.status["phase"]}, name="object")\n'
    )

    preview = lab.stack.preview().check()
    lab.stack.up().check()

    # The engine cannot tell how much of a value is unknown, so the whole map is.
    assert UNKNOWN_STRING in str(preview.step("object", "create").inputs["data"])
    assert cluster_api.get("v1/ConfigMap", "object", namespace=lab.namespace)["data"] == {"phase": "Active"}


def test_a_namespace_of_the_same_program_is_waited_for(lab: Lab) -> None:
    lab.write(
        'config_map("object", namespace=f"{NAMESPACE}-late", name="object")\n'
        'k8s.core.v1.Namespace("late", metadata={"name": f"{NAMESPACE}-late"})\n'
    )

    lab.stack.preview().check()
    lab.stack.up().check()

    assert lab.resource("object")["id"] == f"{lab.namespace}-late/object"


def test_a_definition_of_the_same_program_is_waited_for(lab: Lab) -> None:
    group = f"{lab.namespace}.example.com"
    lab.write(f"""
k8s.apiextensions.v1.CustomResourceDefinition("definition", metadata={{"name": "widgets.{group}"}}, spec={{
    "group": "{group}", "scope": "Namespaced",
    "names": {{"plural": "widgets", "singular": "widget", "kind": "Widget"}},
    "versions": [{{"name": "v1", "served": True, "storage": True,
                  "schema": {{"openAPIV3Schema": {{"type": "object"}}}}}}]}})
k8s.apiextensions.CustomResource("widget", api_version="{group}/v1", kind="Widget",
    metadata={{"namespace": NAMESPACE, "name": "widget"}})
""")

    lab.stack.preview().check()
    lab.stack.up().check()

    assert lab.resource("widget")["id"] == f"{lab.namespace}/widget"


def test_objects_of_cluster_scope_get_no_namespace_and_others_the_default_one(lab: Lab) -> None:
    lab.write(
        'k8s.resource.v1.DeviceClass("class", metadata={"name": NAMESPACE}, spec={})\n'
        'k8s.core.v1.ConfigMap("map", metadata={"name": NAMESPACE})\n'
    )

    preview = lab.stack.preview().check()

    assert "namespace" not in preview.step("class", "create").inputs["metadata"]
    assert preview.step("map", "create").inputs["metadata"]["namespace"] == "default"


@pytest.mark.parametrize(
    ("program", "said"),
    [
        pytest.param(
            'pulumi.CustomResource("kubernetes:core/v1:NamespacePatch", "patch", {},'
            ' ResourceOptions(version="4.34.2"))\n',
            "kubernetes:core/v1:NamespacePatch: patch resources are not part of the stand-in provider",
            id="patch",
        ),
        pytest.param(
            'k8s.core.v1.ConfigMapList("list", items=[])\n',
            "kubernetes:core/v1:ConfigMapList: list resources",
            id="list",
        ),
        pytest.param(
            'pulumi.CustomResource("kubernetes:helm.sh/v2:Release", "release", {},'
            ' ResourceOptions(version="4.34.2"))\n',
            "kubernetes:helm.sh/v2:Release: charts, manifests and kustomizations are not part",
            id="release",
        ),
        pytest.param(
            'k8s.yaml.v2.ConfigGroup("group", objs=[])\n',
            "kubernetes:yaml/v2:ConfigGroup: components are not part of the stand-in provider",
            id="component",
        ),
        pytest.param(
            'config_map("waits", annotations={"pulumi.com/waitFor": "condition=Ready"})\n',
            "waiting for conditions of one's own is not part of the stand-in provider",
            id="annotation",
        ),
    ],
)
def test_what_the_stand_in_does_not_know_is_refused_by_name(lab: Lab, program: str, said: str) -> None:
    if lab.home.provider is None:
        pytest.skip("the vendor's provider knows these; unset DRA_INFRA_PROVIDER to test the stand-in")
    lab.write(program)

    preview = lab.stack.preview()

    assert preview.exit_code == 1
    assert said in preview.text
