"""Names by content (ADR 2), rule by rule; `docs/pulumi.md` lists the tests of each rule."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.lab import DRIVER, Lab
from tools.cluster import Api, ControlPlane, NodeStandIn, create_fleet, node
from tools.kubernetes_provider.values import UNKNOWN_STRING
from tools.pulumi_home import PulumiHome

pytestmark = pytest.mark.e2e

TEMPLATE = "resource.k8s.io/v1/ResourceClaimTemplate"
CLAIM = "resource.k8s.io/v1/ResourceClaim"

GPUS = (
    "import dra_infra as dra\n"
    'gpus = dra.GpuClaimTemplate("gpus", device_class="gpu.example.com", count={count}, namespace=NAMESPACE{more})\n'
    'POD = {{"containers": [{{"name": "main", "image": "registry.example/main:1"}}], "restartPolicy": "{restart}"}}\n'
)
DEPLOYMENT = """
k8s.apps.v1.Deployment("app", metadata={{"name": "app", "namespace": NAMESPACE{annotations}}}, spec={{
    "replicas": 1, "selector": {{"matchLabels": {{"app": "app"}}}}{strategy},
    "template": {{"metadata": {{"labels": {{"app": "app"}}}}, "spec": gpus.attach(POD)}}}})
"""
JOB = 'k8s.batch.v1.Job("job", metadata={"namespace": NAMESPACE}, spec={"template": {"spec": gpus.attach(POD)}})\n'
POD = 'k8s.core.v1.Pod("pod", metadata={{"namespace": NAMESPACE}}, spec=gpus.attach(POD), opts=ResourceOptions({}))\n'
LATER = (
    'other = k8s.core.v1.Namespace("other", metadata={"name": f"{NAMESPACE}-other"})\n'
    'later = other.status["phase"].apply(lambda _: "gpu.example.com")\n'
)


def gpus(count: int = 1, more: str = "", restart: str = "Always") -> str:
    return GPUS.format(count=count, more=more, restart=restart)


def deployment(annotations: str = "", strategy: str = "") -> str:
    return DEPLOYMENT.format(annotations=annotations, strategy=strategy)


def names(api: Api, lab: Lab) -> list[str]:
    return [each["metadata"]["name"] for each in api.list(TEMPLATE, namespace=lab.namespace)]


def test_a_the_name_is_this_one_for_ever_and_under_every_hash_seed(lab: Lab, cluster_api: Api) -> None:
    labels = ', labels={"b": "1", "a": "2"}, select=dra.cel("device.driver == \\"gpu.example.com\\"")'
    lab.stack.environment["PYTHONHASHSEED"] = "1"
    lab.up(gpus(more=labels))
    lab.stack.environment["PYTHONHASHSEED"] = "2"

    lab.stack.preview("--expect-no-changes").check()

    assert names(cluster_api, lab) == ["gpus-8a7d3e71"], (
        "every GPU workload of every user rolls over: a major change"
    )


def test_a_one_byte_of_a_selector_rolls_the_workload_over(lab: Lab, cluster_api: Api) -> None:
    selector = ", select=dra.cel({!r})"
    lab.up(gpus(more=selector.format("device.driver == 'gpu.example.com'")) + deployment())
    before = names(cluster_api, lab)
    lab.write(gpus(more=selector.format("device.driver  == 'gpu.example.com'")) + deployment())

    up = lab.stack.up().check()

    assert up.operations("app") == ("update",)
    assert set(before).isdisjoint(names(cluster_api, lab))


def test_b_a_name_of_what_is_not_known_is_known_after_up_in_claim_and_workload(
    lab: Lab, cluster_api: Api
) -> None:
    class_ = "device_class=dra.class_ref(later)"
    lab.write(LATER + gpus().replace('device_class="gpu.example.com"', class_) + deployment())

    preview = lab.stack.preview().check()
    lab.stack.up().check()

    # Beside it, one unknown part makes the spec of the Deployment one: the engine cannot tell which.
    (template,) = [step.inputs for step in preview.steps if step.type.endswith(":ResourceClaimTemplate")]
    assert UNKNOWN_STRING in str(template["metadata"])
    assert UNKNOWN_STRING in str(preview.step("app", "create").inputs["spec"])
    (name,) = names(cluster_api, lab)
    app = cluster_api.get("apps/v1/Deployment", "app", namespace=lab.namespace)
    assert app["spec"]["template"]["spec"]["resourceClaims"][0]["resourceClaimTemplateName"] == name
    lab.stack.preview("--expect-no-changes").check()


def test_b_the_name_is_the_same_whether_known_before_or_after_up(lab: Lab, cluster_api: Api) -> None:
    class_ = "device_class=dra.class_ref(later)"
    lab.up(LATER + gpus().replace('device_class="gpu.example.com"', class_))
    before = names(cluster_api, lab)

    lab.up(LATER + gpus())

    assert names(cluster_api, lab) == before


def test_c_a_job_does_not_roll_over_but_is_replaced(lab: Lab) -> None:
    lab.up(gpus(restart="Never") + JOB)
    before = lab.resource("job")["outputs"]["metadata"]["uid"]
    lab.write(gpus(2, restart="Never") + JOB)

    preview, up = lab.stack.preview().check(), lab.stack.up().check()

    assert preview.operations("job") == up.operations("job")
    assert up.operations("job") == ("create-replacement", "replace", "delete-replaced")
    assert lab.resource("job")["outputs"]["metadata"]["uid"] != before


def test_c_a_bare_pod_keeps_its_claims_so_the_change_is_refused(lab: Lab) -> None:
    lab.up(gpus() + POD.format(""))
    lab.write(gpus(2) + POD.format(""))

    preview = lab.stack.preview()

    assert preview.exit_code == 1
    assert "pod updates may not change fields" in preview.text


def test_c_a_bare_pod_is_replaced_where_it_says_so(lab: Lab) -> None:
    option = 'replace_on_changes=["spec.resourceClaims"]'
    lab.up(gpus() + POD.format(option))
    before = lab.resource("pod")["id"]
    lab.write(gpus(2) + POD.format(option))

    lab.stack.preview().check()
    up = lab.stack.up().check()

    assert up.operations("pod") == ("create-replacement", "replace", "delete-replaced")
    assert lab.resource("pod")["id"] != before


@pytest.fixture
def two_devices(
    binaries: Callable[[str], Path], home: PulumiHome, tmp_path: Path
) -> Iterator[tuple[Lab, Api]]:
    """A stack on a cluster whose one node has two devices."""
    devices = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": "node-a"},
        "spec": {
            "driver": DRIVER,
            "nodeName": "node-a",
            "pool": {"name": "node-a", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "device-0"}, {"name": "device-1"}],
        },
    }
    class_ = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": DRIVER},
        "spec": {"selectors": [{"cel": {"expression": f"device.driver == '{DRIVER}'"}}]},
    }
    with ControlPlane(binaries=binaries) as plane, NodeStandIn(plane.connection), plane.api() as api:
        create_fleet(api, [node("node-a"), devices, class_])
        api.wait_until("v1/ServiceAccount", "default", bool, namespace="default")
        environment = {"KUBECONFIG": str(plane.kubeconfig)}
        yield Lab.create(tmp_path, home=home, namespace="default", environment=environment), api


def pods_of(api: Api) -> dict[str, str]:
    """Where each pod of the Deployment is, by the name of its template; empty while it is nowhere."""
    return {
        each["spec"]["resourceClaims"][0]["resourceClaimTemplateName"]: each["spec"].get("nodeName", "")
        for each in api.list("v1/Pod", namespace="default")
    }


def is_unschedulable(pod: dict[str, Any]) -> bool:
    conditions = pod["status"].get("conditions", [])
    return any((each["type"], each.get("reason")) == ("PodScheduled", "Unschedulable") for each in conditions)


SKIP_AWAIT = ', "annotations": {"pulumi.com/skipAwait": "true"}'


def test_e_a_rollover_waits_for_devices_of_both_generations(two_devices: tuple[Lab, Api]) -> None:
    lab, api = two_devices
    change = ', tolerations=[dra.Toleration(key="example.com/x", operator="Exists")]'
    lab.up(gpus(2) + deployment())
    (old,) = pods_of(api)

    lab.up(gpus(2, change) + deployment(SKIP_AWAIT))
    (new,) = [name for name in names(api, lab) if name != old]
    # The claim of the new pod is made, and the scheduler has found no devices for it.
    api.wait_for("v1/Pod", lambda pods: any(map(is_unschedulable, pods)))

    assert pods_of(api) == {old: "node-a", new: ""}


def test_e_without_surge_a_rollover_needs_no_more_devices(two_devices: tuple[Lab, Api]) -> None:
    lab, api = two_devices
    change = ', tolerations=[dra.Toleration(key="example.com/x", operator="Exists")]'
    strategy = ', "strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}'
    lab.up(gpus(2) + deployment(strategy=strategy))

    lab.up(gpus(2, change) + deployment(strategy=strategy))

    (name,) = names(api, lab)
    assert pods_of(api).get(name) == "node-a"
