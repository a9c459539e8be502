"""Components on the real engine and API server: naming, order, replacement, and what users get wrong."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.lab import Lab
from tools.cluster import Api, ControlPlane
from tools.cluster.components import APISERVER, ETCD
from tools.pulumi_home import PulumiHome

pytestmark = pytest.mark.e2e

TEMPLATE = "resource.k8s.io/v1/ResourceClaimTemplate"
DEPLOYMENT = "apps/v1/Deployment"

IMPORT = "import dra_infra as dra\n"
COMPONENT = (
    IMPORT + 'gpus = dra.GpuClaimTemplate("gpus", device_class="gpu.example.com", count={count}, '
    "namespace=NAMESPACE{more})\n"
)
ATTACHED = """
app = k8s.apps.v1.Deployment("app", metadata={{"name": "app", "namespace": NAMESPACE}}, opts={opts}, spec={{
    "replicas": 1, "selector": {{"matchLabels": {{"app": "app"}}}},
    "template": gpus.attach({{"metadata": {{"labels": {{"app": "app"}}}}, "spec": {{
        "containers": [{{"name": "main", "image": "registry.example/main:1"}}]}}}})}})
"""


def component(count: int, more: str = "") -> str:
    return COMPONENT.format(count=count, more=more)


def with_deployment(count: int, more: str = "", opts: str = "None") -> str:
    return component(count, more) + ATTACHED.format(opts=opts)


def uid_of(api: Api, lab: Lab) -> str:
    return str(api.get(DEPLOYMENT, "app", namespace=lab.namespace)["metadata"]["uid"])


def templates(api: Api, lab: Lab) -> set[str]:
    return {each["metadata"]["name"] for each in api.list(TEMPLATE, namespace=lab.namespace)}


def test_the_name_is_known_in_the_preview_and_the_workload_depends_on_the_object(
    lab: Lab, cluster_api: Api
) -> None:
    lab.write(with_deployment(1))
    preview = lab.stack.preview().check()
    inputs = preview.step("app", "create").inputs
    previewed = inputs["spec"]["template"]["spec"]["resourceClaims"][0]["resourceClaimTemplateName"]

    lab.stack.up().check()

    assert templates(cluster_api, lab) == {previewed}
    (template,) = [each for each in lab.resources() if each["type"].endswith(":ResourceClaimTemplate")]
    assert template["urn"] in lab.resource("app")["dependencies"]


def test_a_change_rolls_the_deployment_over_and_the_old_object_goes_last(lab: Lab, cluster_api: Api) -> None:
    lab.up(with_deployment(1))
    before = templates(cluster_api, lab)
    uid = uid_of(cluster_api, lab)
    lab.write(with_deployment(2))

    result = lab.stack.up().check()

    order = [(step.name, step.operation) for step in result.steps if step.operation != "same"]
    assert order.index(("gpus", "create-replacement")) < order.index(("app", "update"))
    assert order.index(("app", "update")) < order.index(("gpus", "delete-replaced"))
    assert uid_of(cluster_api, lab) == uid
    assert templates(cluster_api, lab).isdisjoint(before)


def test_a_label_changes_in_place(lab: Lab, cluster_api: Api) -> None:
    lab.up(with_deployment(1))
    before = templates(cluster_api, lab)
    lab.write(with_deployment(1, ', labels={"team": "ml"}'))

    result = lab.stack.up().check()

    assert "update" in result.operations("gpus")
    assert templates(cluster_api, lab) == before


def test_a_change_under_an_explicit_name_is_refused(lab: Lab, cluster_api: Api) -> None:
    lab.up(with_deployment(1, ', object_name="fixed"'))
    lab.write(with_deployment(2, ', object_name="fixed"'))

    preview = lab.stack.preview()

    assert preview.exit_code == 1
    assert "field is immutable" in preview.text


def test_delete_first_replaces_the_object_and_leaves_the_deployment(lab: Lab, cluster_api: Api) -> None:
    more = ', object_name="fixed", replace="delete-first"'
    depends = "ResourceOptions(depends_on=list(gpus.resources.values()))"
    lab.up(with_deployment(1, more, depends))
    uid = uid_of(cluster_api, lab)
    lab.write(with_deployment(2, more, depends))

    result = lab.stack.up().check()

    done = [step.operation for step in result.steps if step.type.endswith(":ResourceClaimTemplate")]
    assert done == ["delete-replaced", "replace", "create-replacement"]
    assert uid_of(cluster_api, lab) == uid
    found = cluster_api.get(TEMPLATE, "fixed", namespace=lab.namespace)
    assert found["spec"]["spec"]["devices"]["requests"][0]["exactly"]["count"] == 2


def test_a_name_that_is_taken_is_refused_and_the_state_holds_only_what_was_made(
    lab: Lab, cluster_api: Api
) -> None:
    cluster_api.create(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaimTemplate",
            "metadata": {"name": "fixed", "namespace": lab.namespace},
            "spec": {"spec": {"devices": {}}},
        }
    )
    lab.write(component(1, ', object_name="fixed"') + 'config_map("made", name="made")\n')

    up = lab.stack.up()

    assert up.exit_code == 1
    assert "already exists" in up.text
    assert "gpus" not in lab.names()


BROKEN = (
    IMPORT
    + """
one = dra.GpuDeviceClass("one", driver="Not A Driver")
two = dra.GpuClaimTemplate("two", device_class="gpu.example.com", count=0, namespace=NAMESPACE)
three = dra.GpuClaim("three", device_class="gpu.example.com", cuont=1, namespace=NAMESPACE)
k8s.core.v1.Pod("pod", metadata={"name": "pod", "namespace": NAMESPACE}, spec=two.attach(
    {"containers": [{"name": "main", "image": "registry.example/main:1"}]}))
"""
)


@pytest.mark.parametrize("command", ["preview", "up"])
def test_three_broken_components_are_shown_in_one_run(lab: Lab, cluster_api: Api, command: str) -> None:
    lab.write(BROKEN)

    result = lab.stack.preview() if command == "preview" else lab.stack.up()

    assert result.exit_code == 1
    for said in (
        'GpuDeviceClass("one").driver',
        'GpuClaimTemplate("two").count: 0 is below 1',
        'GpuClaim("three").cuont',
    ):
        assert said in result.text
    assert "Traceback" not in result.text
    assert cluster_api.find("v1/Pod", "pod", namespace=lab.namespace) is None


def test_an_error_of_the_program_is_shown_without_our_frames(lab: Lab) -> None:
    lab.write(IMPORT + "dra.gpu.memory >= 40\n")

    result = lab.stack.preview()

    assert result.exit_code == 1
    assert 'write "40Gi"' in result.text
    assert "cel/" not in result.text


def test_a_secret_label_is_not_in_the_state_or_the_output(lab: Lab, cluster_api: Api) -> None:
    lab.write(component(1, ', labels={"owner": pulumi.Output.secret("planted-secret")}'))

    result = lab.stack.up().check()

    assert "planted-secret" not in result.text
    assert "planted-secret" not in str(lab.stack.export())
    (name,) = templates(cluster_api, lab)
    assert cluster_api.get(TEMPLATE, name, namespace=lab.namespace)["metadata"]["labels"] == {
        "owner": "planted-secret"
    }


def test_a_class_named_by_another_stack_is_known_after_up(
    make_lab: Callable[[], Lab], cluster_api: Api
) -> None:
    lab = make_lab()
    lab.write(
        IMPORT
        + 'found = config_map("found", {"class": "gpu.example.com"}, name="found")\n'
        + 'dra.GpuClaimTemplate("gpus", device_class=dra.class_ref(found.data["class"]), namespace=NAMESPACE)\n'
    )
    lab.stack.preview().check()

    lab.stack.up().check()

    (name,) = templates(cluster_api, lab)
    found = cluster_api.get(TEMPLATE, name, namespace=lab.namespace)
    assert found["spec"]["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"] == "gpu.example.com"
    assert name.startswith("gpus-")


def test_a_provider_of_the_component_is_that_of_its_objects(lab: Lab) -> None:
    lab.write(
        'other = k8s.Provider("other", namespace=NAMESPACE)\n'
        + component(1, ", opts=ResourceOptions(provider=other)")
    )

    lab.stack.up().check()

    (template,) = lab.resources()
    assert "::pulumi:providers:kubernetes::other::" in template["provider"]


def test_a_cluster_that_does_not_serve_dra_is_told(
    home: PulumiHome, binaries: Callable[[str], Path], tmp_path: Path
) -> None:
    with ControlPlane(binaries=binaries, components=(ETCD, APISERVER), serves_dra=False) as plane:
        lab = Lab.create(
            tmp_path, home=home, namespace="default", environment={"KUBECONFIG": str(plane.kubeconfig)}
        )
        lab.write(component(1))

        up = lab.stack.up()

    assert up.exit_code == 1
    assert "ResourceClaimTemplate" in up.text
    assert "resource.k8s.io/v1" in up.text
    assert lab.names() == []


def test_a_preview_gives_the_verdict_of_the_api_server_before_anything_is_sent(lab: Lab) -> None:
    lab.write(component(1, ', labels={"no key!": "x"}'))
    preview = lab.stack.preview()
    assert preview.exit_code == 1
    assert 'GpuClaimTemplate("gpus").labels' in preview.text
    assert "[invalid-label]" in preview.text


def test_advice_is_a_warning_of_the_preview(lab: Lab) -> None:
    lab.write(component(1, ', select=dra.cel(\'device.attributes["gpu.nvidia.com"].productNam == "x"\')'))
    preview = lab.stack.preview().check()
    assert "[attribute-not-known]" in preview.text


def test_gates_that_a_stack_names_by_the_engine_reach_its_components(lab: Lab) -> None:
    lab.write(component(1, ', tolerations=[dra.Toleration(key="a.example.com/b", effect="NoSchedule")]'))
    lab.stack.configure("dra-infra:kubernetes", "1.35")

    refused = lab.stack.preview()
    assert refused.exit_code == 1
    assert "[needs-newer-kubernetes]" in refused.text

    # The command of docs/pulumi.md: the engine writes a mapping, and hands it to the program as JSON.
    lab.stack.configure("dra-infra:gates.DRADeviceTaints", "true", "--path")
    lab.stack.preview().check()
