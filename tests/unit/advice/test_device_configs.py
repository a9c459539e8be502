from __future__ import annotations

import pytest

from tests.unit.advice import conftest as build

PATH = "spec.devices.config[0]"


def config(kind="GpuConfig", driver="gpu.nvidia.com", requests=(), **fields):
    parameters = {"apiVersion": "resource.nvidia.com/v1beta1", "kind": kind, **fields}
    return ({"requests": list(requests)} if requests else {}) | {
        "opaque": {"driver": driver, "parameters": parameters}
    }


def of_config(*configs, of="gpu.nvidia.com", driver="newest", classes=(), **rest):
    claim = build.a_claim(build.a_request(of=of), config=list(configs), **rest)
    return [
        (each.path, each.code, each.severity)
        for each in build.advice_on(claim, *classes, driver=driver)
        if each.code.startswith("config-")
    ]


def test_parameters_that_the_driver_takes_need_no_advice():
    sharing = {"strategy": "TimeSlicing", "timeSlicingConfig": {"interval": "Long"}}
    assert of_config(config(sharing=sharing)) == []


@pytest.mark.parametrize(
    ("fields", "place", "code"),
    [
        ({"kind": "GPUConfig"}, "kind", "config-kind-not-known"),
        ({"sharring": {}}, "sharring", "config-field-not-known"),
        ({"sharing": {"strategy": "Mps"}}, "sharing.strategy", "config-value"),
        ({"sharing": {"strategy": "MPS", "timeSlicingConfig": {"interval": "Long"}}}, "sharing.timeSlicingConfig", "config-conflict"),
    ],
)  # fmt: skip
def test_what_the_driver_would_refuse_is_a_warning_at_its_field(fields, place, code):
    assert of_config(config(**fields)) == [(f"{PATH}.opaque.parameters.{place}", code, "warning")]


def test_a_template_is_looked_at_too():
    found = of_config(config(foo=1), kind="ResourceClaimTemplate")
    assert [path for path, _, _ in found] == ["spec.spec.devices.config[0].opaque.parameters.foo"]


def test_the_pinned_release_decides():
    assert of_config(config("VfioDeviceConfig"), of="vfio.gpu.nvidia.com") == []
    found = of_config(config("VfioDeviceConfig"), driver="25.8")
    assert found == [(f"{PATH}.opaque.parameters.kind", "config-kind-not-known", "warning")]


def test_a_config_of_another_type_of_device_is_told():
    assert of_config(config("MigDeviceConfig")) == [(PATH, "config-device-type", "warning")]
    named = of_config(config("MigDeviceConfig", requests=["gpu"]))
    assert named == [(f"{PATH}.requests", "config-device-type", "warning")]
    assert of_config(config("MigDeviceConfig"), of="mig.nvidia.com") == []


def test_nothing_is_said_of_a_class_that_is_not_known():
    assert of_config(config("MigDeviceConfig"), of="someones-own") == []


def test_nothing_is_said_of_drivers_that_are_not_known():
    assert of_config(config("Whatever", driver="nic.example.net", foo=1), of="someones-own") == []


def test_a_class_is_looked_at_too():
    manifest = build.a_class("own", 'device.driver == "gpu.nvidia.com"')
    manifest["spec"]["config"] = [config(sharing={})]
    found = {(each.path, each.code) for each in build.advice_on(manifest) if each.code.startswith("config-")}
    assert found == {
        ("spec.config[0].opaque.parameters.sharing.strategy", "config-value"),
        ("spec.config[0]", "config-device-type"),
    }


def test_what_the_class_says_is_lost_when_the_claims_config_does_not_repeat_it():
    def mps(**limits):
        return config(sharing={"strategy": "MPS", "mpsConfig": limits})

    own = build.a_class(
        "own", 'device.driver == "gpu.nvidia.com" && device.attributes["gpu.nvidia.com"].type == "gpu"'
    )
    own["spec"]["config"] = [mps(defaultActiveThreadPercentage=50)]
    found = of_config(mps(defaultPinnedDeviceMemoryLimit="1Gi"), of="own", classes=[own])
    assert found == [(PATH, "config-overridden", "warning")]
