"""Machines that annotations of Cluster API describe: amounts, and devices of a DRA driver.

Source: kubernetes/autoscaler, tag cluster-autoscaler-1.36.1, cluster-autoscaler/cloudprovider/clusterapi: clusterapi_utils.go has
the annotations, clusterapi_unstructured.go the devices (`InstanceResourceSlices`), and README.md the default of `maxPods`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dra_infra.catalog.driver_settings import whole_number
from dra_infra.kubernetes.api import Device, DeviceAttribute, Quantity, ResourceSlice
from dra_infra.kubernetes.api.names import is_dns_subdomain

PREFIX: Final = "capacity.cluster-autoscaler.kubernetes.io/"
MAX_DEVICES: Final = 128
"""Most devices of a machine: what one ResourceSlice holds."""
_AMOUNTS: Final = {"cpu": "cpu", "memory": "memory", "ephemeral-disk": "ephemeral-storage", "maxPods": "pods"}


def read_amounts(annotations: Mapping[str, str]) -> dict[str, str]:
    """Return what a node has for pods, by resource; amounts that cannot be read are left out, and pods are 110 then."""
    amounts = {"pods": "110"}
    for name, resource in _AMOUNTS.items():
        try:
            amounts[resource] = Quantity.parse(annotations[PREFIX + name]).canonical()
        except (KeyError, ValueError):
            continue
    return amounts


def read_devices(annotations: Mapping[str, str]) -> tuple[str, int] | None:
    """Return the driver and the number of the devices of a machine; None where annotations do not name both."""
    driver = annotations.get(f"{PREFIX}dra-driver", "")
    count = whole_number(annotations.get(f"{PREFIX}gpu-count"))
    return (driver, count) if is_dns_subdomain(driver) and 0 < count <= MAX_DEVICES else None


def list_devices(count: int) -> list[Device]:
    """Return the devices of the template: their only attribute is `type`."""
    attributes = {"type": DeviceAttribute(string="gpu")}
    return [Device(name=f"gpu-{number}", attributes=attributes) for number in range(count)]


def make_slice(node: str, driver: str, count: int) -> ResourceSlice:
    """Return the slice of a machine as a complete pool."""
    manifest = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"{node}-{driver}"},
        "spec": {
            "driver": driver,
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": [each.to_manifest() for each in list_devices(count)],
        },
    }
    return ResourceSlice.model_validate(manifest)
