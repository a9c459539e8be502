"""Runs every check of a cluster, with those of the API server.

A finding is a Problem whose path names the object, `Node gpu-1`. Checks of the API server are which versions it
serves, and gates that something in the cluster needs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from dra_infra.client.kinds import CLASSES, DAEMON_SETS, NODES, RESOURCE_GROUP, SLICES
from dra_infra.client.objects import full_name, name_of, text
from dra_infra.cluster.check_claims import check_claims, check_pools
from dra_infra.cluster.check_hardware import check_drivers, check_nodes
from dra_infra.cluster.evidence import Evidence, drivers_of_class
from dra_infra.cluster.nvidia import DRIVER_GATES, GPU_DRIVER, driver_gates, drivers_of, has_gpus
from dra_infra.errors import Problem
from dra_infra.kubernetes.api import GATES, SUPPORTED_MINORS, Release, mapping, mappings
from dra_infra.output.wording import count_of, join_words
from dra_infra.provenance import Provenance

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


@dataclass(frozen=True, kw_only=True, slots=True)
class Diagnosis:
    """Findings of `dra-infra doctor`, errors first, with the facts that were looked at and what could not be seen."""

    facts: tuple[str, ...]
    findings: tuple[Problem, ...]
    not_seen: tuple[Problem, ...]
    provenance: Provenance

    @property
    def is_healthy(self) -> bool:
        """True where nothing is broken; warnings are no breakage."""
        return all(each.severity != "error" for each in self.findings)

    @property
    def exit_code(self) -> int:
        """0 where nothing is broken, else 1."""
        return 0 if self.is_healthy else 1


def diagnose(evidence: Evidence, *, driver: str = "") -> Diagnosis:
    """Run every check.

    Args:
        evidence: The cluster.
        driver: The only driver that is asked for; else all that the cluster knows of.
    """
    drivers = {driver} if driver else _drivers(evidence)
    found = [
        *check_server(evidence),
        *check_drivers(evidence, drivers, asked=driver),
        *check_pools(evidence, drivers),
        *check_nodes(evidence, drivers),
        *check_claims(evidence, drivers),
    ]
    return Diagnosis(
        facts=tuple(_facts(evidence)),
        findings=tuple(sorted(dict.fromkeys(found), key=lambda each: (each.severity, each.path, each))),
        not_seen=evidence.problems,
        provenance=_provenance_of(evidence),
    )


def _provenance_of(evidence: Evidence) -> Provenance:
    known = {name: evidence.gate(name) for name in GATES}
    gates = frozenset(name for name, is_on in known.items() if is_on)
    releases = (
        [Release(minor=evidence.minor, gates=gates, patch=evidence.patch)]
        if evidence.minor in SUPPORTED_MINORS
        else []
    )
    return Provenance.of(releases, server=evidence.kubernetes)


def _drivers(evidence: Evidence) -> set[str]:
    found = {text(mapping(each.get("spec")).get("driver")) for each in evidence.of(SLICES)}
    for each in evidence.of(CLASSES):
        found |= drivers_of_class(each)
    if any(has_gpus(each) for each in evidence.of(NODES)):
        found.add(GPU_DRIVER)
    return found - {""}


def _facts(evidence: Evidence) -> Iterator[str]:
    yield f"Kubernetes {evidence.kubernetes or '(version not told)'}"
    if evidence.served:
        yield f"resource.k8s.io {join_words(evidence.served)}"
    if evidence.gates:
        off = sorted(name for name, is_on in evidence.gates.items() if name.startswith("DRA") and not is_on)
        yield f"gates of the API server that are off: {join_words(off, most=12) or 'none of DRA'}"
    else:
        yield "gates are not visible (that needs the right to get /metrics); defaults of the version are taken"
    if NODES in evidence.objects:
        gpus = sum(has_gpus(each) for each in evidence.of(NODES))
        yield f"{count_of(len(evidence.of(NODES)), 'node')}, {gpus} of them with labels of NVIDIA GPUs"
    devices: Counter[str] = Counter()
    for each in evidence.of(SLICES):
        spec = mapping(each.get("spec"))
        devices[text(spec.get("driver"))] += len(mappings(spec.get("devices")))
    for name, number in sorted(devices.items()):
        yield f"{name} publishes {count_of(number, 'device')}"
