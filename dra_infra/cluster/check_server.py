"""The API server: which versions it serves, and gates that something in the cluster needs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from dra_infra.cluster.evidence import Evidence
from dra_infra.cluster.kinds import CLASSES, DAEMON_SETS, RESOURCE_GROUP, SLICES
from dra_infra.cluster.nvidia import DRIVER_GATES, GPU_DRIVER, driver_gates, drivers_of
from dra_infra.cluster.objects import full_name, mapping, mappings, name_of
from dra_infra.errors import Problem

_BROKEN: Final = re.compile(r"v1\.34\.[01](?:\D|$)")
"""kubernetes/kubernetes#133920."""

_NEEDED_BY_DEVICES: Final = {
    "taints": "DRADeviceTaints",
    "consumesCounters": "DRAPartitionableDevices",
    "allowMultipleAllocations": "DRAConsumableCapacity",
    "bindingConditions": "DRADeviceBindingConditions",
}
"""Fields of devices that the scheduler passes over, or passes the devices over for, while the gate is off."""


def check_server(evidence: Evidence) -> Iterator[Problem]:
    """Codes `dra-not-served`, `version-not-served`, `version-matrix`, `gate-off`."""
    if evidence.served == ():
        yield Problem(
            path="API server",
            code="dra-not-served",
            message=f"{RESOURCE_GROUP} is not served, so there are no claims",
            hint="Kubernetes 1.34 and newer serve it; older ones with --runtime-config and the gate DynamicResourceAllocation",
        )
    elif evidence.served and "v1" not in evidence.served:
        yield Problem(
            path="API server",
            code="version-not-served",
            message=f"{RESOURCE_GROUP}/v1 is not served, only {', '.join(evidence.served)}",
            hint="upgrade to Kubernetes 1.34 or newer: the older versions end with 1.37 and 1.38",
            severity="warning",
        )
    if _BROKEN.match(evidence.kubernetes):
        yield Problem(
            path="API server",
            code="version-matrix",
            message=f"{evidence.kubernetes} has kubernetes/kubernetes#133920, and NVIDIA's driver asks for 1.34.2",
            hint="upgrade to the newest patch of 1.34, or to 1.35",
            severity="warning",
        )
    for each in evidence.of(SLICES):
        yield from _of_slice(evidence, each)
    for each in evidence.of(CLASSES):
        if mapping(each.get("spec")).get("extendedResourceName"):
            name = mapping(each["spec"])["extendedResourceName"]
            yield from _off(
                evidence,
                "DRAExtendedResource",
                f"DeviceClass {name_of(each)}",
                f"pods that ask for {name} get no device",
            )
    for each in evidence.of(DAEMON_SETS):
        if GPU_DRIVER in drivers_of(each):
            for gate in sorted(driver_gates(each) & set(DRIVER_GATES)):
                yield from _off(
                    evidence,
                    DRIVER_GATES[gate],
                    f"DaemonSet {full_name(each)}",
                    f"what the driver's gate {gate} publishes is dropped",
                )


def _of_slice(evidence: Evidence, item: Mapping[str, Any]) -> Iterator[Problem]:
    devices = mappings(mapping(item.get("spec")).get("devices"))
    for field, gate in _NEEDED_BY_DEVICES.items():
        if any(each.get(field) for each in devices):
            yield from _off(
                evidence, gate, f"ResourceSlice {name_of(item)}", f"{field} of its devices does not count"
            )


def _off(evidence: Evidence, gate: str, path: str, what: str) -> Iterator[Problem]:
    if evidence.gate(gate) is False:
        how = "is off" if gate in evidence.gates else f"is off by default in {evidence.minor}"
        yield Problem(
            path=path,
            code="gate-off",
            message=f"the gate {gate} {how}: {what}",
            hint=f"switch it on in API server, scheduler, controller manager and kubelets: --feature-gates={gate}=true",
            severity="warning",
        )
