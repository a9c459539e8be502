from __future__ import annotations

from collections.abc import Callable

import pulumi_kubernetes as k8s
import pytest

import dra_infra as dra
from dra_infra.advice.program import check_program
from dra_infra.program.synth import synth_function
from dra_infra.program_objects import UNKNOWN, Program, ProgramObject, ProgramRelease

VFIO = dra.VfioDeviceConfig()


def errors(body: Callable[[], object]) -> dict[str, str]:
    program = synth_function(body, config={"dra-infra:kubernetes": "1.37"})
    return {each.path: each.code for each in check_program(program) if each.severity == "error"}


def install_driver(**arguments: object) -> dra.DraDriver:
    gates = {"PassthroughSupport": True, "DeviceMetadata": True}
    return dra.DraDriver("d", version="0.5.0", gpu_resources_enabled_override=True, gates=gates, **arguments)


def claim(resource: str = "vm") -> None:
    opaque = {
        "driver": "gpu.nvidia.com",
        "parameters": {"apiVersion": "resource.nvidia.com/v1beta1", "kind": "VfioDeviceConfig"},
    }
    request = {"name": "gpu", "exactly": {"deviceClassName": "vfio.gpu.nvidia.com"}}
    k8s.resource.v1.ResourceClaim(
        resource,
        metadata={"name": resource},
        spec={"devices": {"requests": [request], "config": [{"opaque": opaque}]}},
    )


def test_a_vfio_config_in_a_claim_is_refused_where_the_program_turns_the_webhook_on():
    def body() -> None:
        install_driver(webhook=True)
        claim()

    assert errors(body)["ResourceClaim vm.spec.devices.config[0].opaque.parameters.kind"] == (
        "config-refused-by-webhook"
    )


def test_without_the_webhook_the_same_claim_passes():
    def body() -> None:
        install_driver()
        claim()

    assert "config-refused-by-webhook" not in errors(body).values()


def test_a_class_may_have_what_the_webhook_refuses_in_claims():
    def body() -> None:
        install_driver(webhook=True)
        dra.GpuDeviceClass("vm", configs=[VFIO])

    assert "config-refused-by-webhook" not in errors(body).values()


def cluster() -> None:
    dra.GpuOperator("op", version="26.7.0", gpu_cluster=True, driver=False)


def deployment(resource: str) -> None:
    container = {"name": "c", "image": "i", "resources": {"limits": {resource: 1}}}
    k8s.apps.v1.Deployment(
        "server",
        metadata={"name": "server"},
        spec={
            "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container]}},
        },
    )


def test_the_resource_of_the_device_plugin_is_served_by_nobody_beside_a_gpu_cluster():
    def body() -> None:
        cluster()
        deployment("nvidia.com/gpu")

    path = "Deployment server.spec.template.spec.containers[0].resources.limits[nvidia.com/gpu]"
    assert errors(body) == {path: "extended-resource-not-served"}


@pytest.mark.parametrize("resource", ["deviceclass.resource.kubernetes.io/gpu.nvidia.com", "cpu"])
def test_other_resources_are_nobodys_business(resource: str):
    def body() -> None:
        cluster()
        deployment(resource)

    assert errors(body) == {}


def test_a_class_of_the_program_may_serve_it():
    def body() -> None:
        cluster()
        deployment("nvidia.com/gpu")
        spec = {"extendedResourceName": "nvidia.com/gpu", "selectors": []}
        k8s.resource.v1.DeviceClass("c", metadata={"name": "c"}, spec=spec)

    assert "extended-resource-not-served" not in errors(body).values()


def test_an_operator_with_a_cluster_policy_has_a_device_plugin():
    def body() -> None:
        dra.GpuOperator("op", version="26.7.0")
        deployment("nvidia.com/gpu")

    assert errors(body) == {}


@pytest.mark.parametrize(
    "values", [{}, {"webhook": UNKNOWN}, {"webhook": {"enabled": UNKNOWN}}, {"webhook": None}]
)
@pytest.mark.parametrize("config", [None, UNKNOWN, [UNKNOWN], [{"opaque": UNKNOWN}]])
def test_what_is_not_known_breaks_no_rule(values: dict[str, object], config: object):
    manifest = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "c"},
        "spec": {"devices": {"config": config}},
    }
    release = ProgramRelease(
        urn="urn:r", name="d", namespace="n", chart="./charts/dra-driver-nvidia-gpu-0.5.0.tgz", values=values
    )
    program = Program(
        project="p", stack="s", objects=(ProgramObject(urn="u", manifest=manifest),), releases=(release,)
    )
    assert "config-refused-by-webhook" not in {each.code for each in check_program(program)}
