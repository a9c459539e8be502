"""Drivers: whether they run, publish devices, and have classes and definitions that fit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from dra_infra.cluster.evidence import Evidence, drivers_of_class
from dra_infra.cluster.kinds import CLASSES, DAEMON_SETS, DEFINITIONS, SLICES
from dra_infra.cluster.nvidia import DOMAIN_DRIVER, GPU_DRIVER, drivers_of, version_of
from dra_infra.cluster.objects import full_name, mapping, name_of, namespace_of, text
from dra_infra.errors import Problem
from dra_infra.planning.wording import count_of

_DOMAINS: Final = "computedomains.resource.nvidia.com"
_CLIQUES: Final = "computedomaincliques.resource.nvidia.com"
_WITHOUT_CLIQUES: Final = ("25.3", "25.8")
"""Releases before ComputeDomainCliques, which is on by default from 25.12 on."""


def check_drivers(evidence: Evidence, drivers: set[str], *, asked: str = "") -> Iterator[Problem]:
    """Codes `driver-missing`, `class-missing`, `class-without-devices`, `plugin-not-ready`, `namespace-refused`, `stale-definition`."""
    specs = [mapping(each.get("spec")) for each in evidence.of(SLICES)]
    published = {text(each.get("driver")) for each in specs if each.get("devices")}
    # A driver that finds no device shows by a slice without any that it runs (k8s.io/dynamic-resource-allocation asks for that).
    running = {text(each.get("driver")) for each in specs}
    installed = {name for each in evidence.of(DAEMON_SETS) for name in drivers_of(each)}
    with_class = {name for each in evidence.of(CLASSES) for name in drivers_of_class(each)}
    for driver in sorted(drivers):
        needed = driver in {asked, GPU_DRIVER, *installed}
        if evidence.saw(SLICES) and driver not in published and needed:
            yield _missing(
                driver,
                is_running=driver in running,
                is_installed=driver in installed,
                was_looked=evidence.saw(DAEMON_SETS),
            )
        if evidence.saw(CLASSES) and driver in published and driver not in with_class:
            yield Problem(
                path=f"driver {driver}",
                code="class-missing",
                message="it publishes devices, and no DeviceClass names it in a selector",
                hint=f'add a DeviceClass with the selector: device.driver == "{driver}"',
                severity="warning",
            )
    for each in evidence.of(CLASSES) if evidence.saw(SLICES) else ():
        named = drivers_of_class(each)
        if named and named <= drivers and not named & published:
            yield Problem(
                path=f"DeviceClass {name_of(each)}",
                code="class-without-devices",
                message=f"it is for {', '.join(sorted(named))}, which publishes no device: claims of it wait",
                hint="install the driver, or remove the class",
                severity="warning",
            )
    for each in evidence.of(DAEMON_SETS):
        if drivers_of(each) & drivers:
            yield from _daemon_set(each)
    yield from _definitions(evidence)


def _missing(driver: str, *, is_running: bool, is_installed: bool, was_looked: bool) -> Problem:
    if is_running:
        message = "it runs, and none of its ResourceSlices has a device"
        hint = "see the log of its pods: they say where they look for devices, and what they find"
    elif is_installed:
        message = "its DaemonSet is there, and no node publishes devices"
        hint = "see the log of its pods: the init container says what it does not find under the driver root"
    else:
        message = "no node publishes devices of it" + (", and no DaemonSet runs it" if was_looked else "")
        hint = "install the driver's chart, with the GPUs switched on"
    return Problem(path=f"driver {driver}", code="driver-missing", message=message, hint=hint)


def _daemon_set(item: Mapping[str, Any]) -> Iterator[Problem]:
    path, status = f"DaemonSet {full_name(item)}", mapping(item.get("status"))
    wanted, ready = (status.get(name) or 0 for name in ("desiredNumberScheduled", "numberReady"))
    if wanted == 0:
        yield Problem(
            path=path,
            code="plugin-not-ready",
            message="it wants to run on no node",
            hint="its node selector and affinity match none: label the GPU nodes, as nvidia.com/gpu.present=true",
        )
    elif ready < wanted:
        yield Problem(
            path=path,
            code="plugin-not-ready",
            message=f"{ready} of {count_of(wanted, 'pod')} are ready",
            hint=f"kubectl describe pods -n {namespace_of(item)}; the init container's log says what it waits for",
        )
    if namespace_of(item) == "default" and GPU_DRIVER in drivers_of(item):
        yield Problem(
            path=path,
            code="namespace-refused",
            message="NVIDIA's driver is in the namespace default, where its chart refuses to be",
            hint="install it in a namespace of its own, labelled pod-security.kubernetes.io/enforce=privileged",
            severity="warning",
        )


def _definitions(evidence: Evidence) -> Iterator[Problem]:
    if not evidence.saw(DEFINITIONS, DAEMON_SETS):
        return
    there = {name_of(each) for each in evidence.of(DEFINITIONS)}
    plugins = [each for each in evidence.of(DAEMON_SETS) if DOMAIN_DRIVER in drivers_of(each)]
    if _DOMAINS in there and not plugins:
        yield Problem(
            path=f"CustomResourceDefinition {_DOMAINS}",
            code="stale-definition",
            message="no DaemonSet runs compute-domain.nvidia.com, so nobody acts on ComputeDomains",
            hint="install the driver with computeDomains, or delete the definition and with it every ComputeDomain",
            severity="warning",
        )
    for each in plugins:
        version = version_of(each)
        line = ".".join(version.split(".")[:2])
        if version and line not in _WITHOUT_CLIQUES and _CLIQUES not in there:
            yield Problem(
                path=f"DaemonSet {full_name(each)}",
                code="stale-definition",
                message=f"release {version} needs {_CLIQUES}, which is not there: Helm never upgrades CRDs",
                hint="kubectl apply --server-side -f with the folder crds/ of the chart of that release",
            )
