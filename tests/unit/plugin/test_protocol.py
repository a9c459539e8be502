from __future__ import annotations

import subprocess
import sys
from types import ModuleType
from typing import Any

import pytest

from dra_infra.plugin.protocol import dra_v1_pb2, health_v1_pb2, registration_pb2
from tests.support.plugin.protocol import device_plugin_v1beta1_pb2, dra_v1beta1_pb2, health_v1alpha1_pb2
from tools import protos

CLAIM = {"namespace": 1, "uid": 2, "name": 3}
DEVICE = {"request_names": 1, "pool_name": 2, "device_name": 3, "cdi_device_ids": 4}
# The field tables of the kubelet's protocol: k8s.io/kubelet v0.37.1, pkg/apis.
DRA = {
    "Claim": CLAIM,
    "NodePrepareResourcesRequest": {"claims": 1},
    "NodePrepareResourcesResponse": {"claims": 1},
    "NodePrepareResourceResponse": {"devices": 1, "error": 2},
    "Device": {**DEVICE, "share_id": 5},
    "NodeUnprepareResourcesRequest": {"claims": 1},
    "NodeUnprepareResourcesResponse": {"claims": 1},
    "NodeUnprepareResourceResponse": {"error": 1},
}
DRA_CALLS = {
    "NodePrepareResources": ("NodePrepareResourcesRequest", "NodePrepareResourcesResponse"),
    "NodeUnprepareResources": ("NodeUnprepareResourcesRequest", "NodeUnprepareResourcesResponse"),
}
HEALTH = {
    "NodeWatchResourcesRequest": {},
    "NodeWatchResourcesResponse": {"devices": 1},
    "DeviceHealth": {
        "device": 1,
        "health": 2,
        "last_updated_time": 3,
        "health_check_timeout_seconds": 4,
        "message": 5,
    },
    "DeviceIdentifier": {"pool_name": 1, "device_name": 2},
}
HEALTH_CALLS = {"NodeWatchResources": ("NodeWatchResourcesRequest", "NodeWatchResourcesResponse")}
REGISTRATION = {
    "InfoRequest": {},
    "PluginInfo": {"type": 1, "name": 2, "endpoint": 3, "supported_versions": 4},
    "RegistrationStatus": {"plugin_registered": 1, "error": 2},
    "RegistrationStatusResponse": {},
}
REGISTRATION_CALLS = {
    "GetInfo": ("InfoRequest", "PluginInfo"),
    "NotifyRegistrationStatus": ("RegistrationStatus", "RegistrationStatusResponse"),
}
# Of a device plugin, as far as the stand-in of the node tests speaks it.
DEVICE_PLUGIN = {
    "DevicePluginOptions": {"pre_start_required": 1, "get_preferred_allocation_available": 2},
    "RegisterRequest": {"version": 1, "endpoint": 2, "resource_name": 3, "options": 4},
    "Empty": {},
    "ListAndWatchResponse": {"devices": 1},
    "Device": {"ID": 1, "health": 2},
    "AllocateRequest": {"container_requests": 1},
    "ContainerAllocateRequest": {"devices_ids": 1},
    "AllocateResponse": {"container_responses": 1},
    "ContainerAllocateResponse": {"envs": 1, "mounts": 2},
    "Mount": {"container_path": 1, "host_path": 2, "read_only": 3},
}
DEVICE_PLUGIN_CALLS = {
    "v1beta1.Registration": {"Register": ("RegisterRequest", "Empty")},
    "v1beta1.DevicePlugin": {
        "GetDevicePluginOptions": ("Empty", "DevicePluginOptions"),
        "ListAndWatch": ("Empty", "ListAndWatchResponse"),
        "Allocate": ("AllocateRequest", "AllocateResponse"),
    },
}


@pytest.mark.parametrize(
    ("module", "service", "messages", "calls"),
    [
        (dra_v1_pb2, "k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin", DRA, DRA_CALLS),
        (
            dra_v1beta1_pb2,
            "k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin",
            DRA | {"Device": DEVICE},
            DRA_CALLS,
        ),
        (health_v1_pb2, "v1.DRAResourceHealth", HEALTH, HEALTH_CALLS),
        (health_v1alpha1_pb2, "v1alpha1.DRAResourceHealth", HEALTH, HEALTH_CALLS),
        (registration_pb2, "pluginregistration.Registration", REGISTRATION, REGISTRATION_CALLS),
    ],
)
def test_services_and_fields_have_the_names_and_numbers_of_the_kubelets(
    module: ModuleType, service: str, messages: dict, calls: dict
):
    file = module.DESCRIPTOR
    assert calls_of(file) == {service: calls}
    assert fields_of(file) == messages


def test_device_plugins_have_two_services_with_the_names_and_numbers_of_the_kubelets():
    assert calls_of(device_plugin_v1beta1_pb2.DESCRIPTOR) == DEVICE_PLUGIN_CALLS
    assert fields_of(device_plugin_v1beta1_pb2.DESCRIPTOR) == DEVICE_PLUGIN


def calls_of(file: Any) -> dict:
    return {
        service.full_name: {
            method.name: (method.input_type.name, method.output_type.name) for method in service.methods
        }
        for service in file.services_by_name.values()
    }


def fields_of(file: Any) -> dict:
    return {
        name: {field.name: field.number for field in message.fields}
        for name, message in file.message_types_by_name.items()
    }


def test_a_share_may_be_left_out_and_health_has_three_values():
    device = dra_v1_pb2.Device(pool_name="node-1", device_name="gpu-0")
    assert not device.HasField("share_id")
    device.share_id = ""
    assert device.HasField("share_id")
    assert dict(health_v1_pb2.HealthStatus.items()) == {"UNKNOWN": 0, "HEALTHY": 1, "UNHEALTHY": 2}


def test_both_versions_of_a_message_are_the_same_bytes_where_no_share_is():
    old, new = (
        module.NodePrepareResourcesResponse(
            claims={
                "uid": module.NodePrepareResourceResponse(
                    devices=[module.Device(request_names=["gpu"], pool_name="n", cdi_device_ids=["a=b"])]
                )
            }
        )
        for module in (dra_v1beta1_pb2, dra_v1_pb2)
    )
    assert old.SerializeToString() == new.SerializeToString()


def test_what_is_committed_is_what_make_protos_writes():
    for name, text in protos.generate().items():
        assert (protos.ROOT / name).read_text() == text, f"run: make protos ({name})"


def test_messages_live_beside_those_of_pulumi_and_beside_others_of_the_same_names():
    program = """
import google.protobuf.descriptor_pb2 as descriptor_pb2
from google.protobuf import descriptor_pool
other = descriptor_pb2.FileDescriptorProto(name="other.proto", package="v1")
other.message_type.add(name="DeviceHealth")
descriptor_pool.Default().Add(other)
import dra_infra.plugin.protocol.health_v1_pb2 as ours
import dra_infra.plugin.protocol.dra_v1_pb2
import pulumi.runtime.proto.provider_pb2
assert descriptor_pool.Default().FindMessageTypeByName("v1.DeviceHealth").fields_by_name.keys() == []
assert ours.DeviceHealth(message="x").message == "x"
"""
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True)
