"""Which versions of Kubernetes, chart, DRA driver and kernel driver go together."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from dra_infra.catalog.driver_gates import driver_needs, gate_states, gates_of
from dra_infra.catalog.platforms import matrix
from dra_infra.errors import Problem
from dra_infra.model.gates import GATES, SUPPORTED_MINORS
from dra_infra.model.target import ClusterTarget
from dra_infra.specs.platform.releases import ChosenRelease, is_older, numbers

_RANGE: Final = re.compile(r">=(\d+\.\d+)\.\d+(-0)?|(\d+\.\d+)\.x")
_DNS_NAMES: Final = "IMEXDaemonsWithDNSNames"


def check_kubernetes(release: ChosenRelease, target: ClusterTarget) -> Iterator[Problem]:
    """Whether the chart and what it installs run on every Kubernetes of the target: `version-matrix` at `version`."""
    known = release.chart.versions.get(release.version)
    declared = known.kubernetes if known else ""
    reach = _RANGE.fullmatch(declared)
    for minor in target.minors:
        if reach and (is_older(minor, reach[1]) if reach[1] else minor != reach[3]):
            yield _mismatch(f"{_said(release)} is for Kubernetes {declared}, and the target is {minor}")
    needs = driver_needs().get(release.line) if release.product == "NVIDIA DRA driver" else None
    if needs and needs.resource_api not in target.serves and needs.resource_api.startswith("v1"):
        yield _mismatch(
            f"{_said(release)} reads resource.k8s.io/{needs.resource_api} only, which the target does not serve",
            f"take a version from 25.8 on, or target=dra.ClusterTarget(serves=frozenset({{'v1', '{needs.resource_api}'}})) "
            "where the API server serves it",
        )
    if needs and needs.kubernetes_documented:
        yield from _check_patch(needs.kubernetes_documented, target, _said(release))
    support = matrix().operators.get(release.line) if release.product == "GPU Operator" else None
    for minor in target.minors:
        if support and numbers(minor) > numbers(support.kubernetes_newest):
            yield _mismatch(
                f"{_said(release)} supports Kubernetes up to {support.kubernetes_newest}, not {minor}"
            )


def check_gpu_cluster(release: ChosenRelease, target: ClusterTarget) -> Iterator[Problem]:
    """Whether this operator has GPUCluster on that Kubernetes: `version-matrix` at `gpu_cluster`."""
    needs = matrix().gpu_cluster
    if is_older(release.version, needs.operator):
        yield _mismatch(
            f"GPUCluster came with GPU Operator {needs.operator}, and this is {release.version}",
            f'write version="{release.chart.newest}", or gpu_cluster=False and a DraDriver',
            path="gpu_cluster",
        )
    yield from _check_patch(needs.kubernetes, target, "GPUCluster")


def check_kernel_driver(
    release: ChosenRelease, kernel_driver: str, gates: Mapping[str, bool], *, compute_domains: bool, path: str
) -> Iterator[Problem]:
    """Whether NVIDIA's kernel driver is new enough for a release of the DRA driver: `version-matrix`.

    Args:
        release: Of the DRA driver.
        kernel_driver: Version, `580.95.05`.
        gates: Of the DRA driver, as far as they are known.
        compute_domains: Whether it serves ComputeDomains.
        path: Where the version of the kernel driver is written.
    """
    needs = driver_needs().get(release.line)
    if needs is None or not numbers(kernel_driver):
        return
    least = [(needs.kernel_driver, "")]
    if compute_domains and gate_states(release.line, gates).get(_DNS_NAMES):
        least.append((needs.kernel_driver_for_dns_names, f" with the gate {_DNS_NAMES}"))
    for version, why in least:
        if version and is_older(kernel_driver, version):
            yield _mismatch(
                f"driver {release.version}{why} needs NVIDIA's kernel driver {version} or newer, and this is {kernel_driver}",
                f"take a kernel driver from {version} on"
                + (f", or gates={{'{_DNS_NAMES}': False, 'ComputeDomainCliques': False}}" if why else ""),
                path=path,
            )


def check_gates_on_kubernetes(
    line: str, gates: Mapping[str, bool], target: ClusterTarget
) -> Iterator[tuple[str, Problem]]:
    """Gates of the driver that are on while the gate of Kubernetes that they lean on is off: `needs-newer-kubernetes`.

    An error where the target names its minor, else a warning that names the minors. Paths are left to the caller, who
    gets the name of the gate beside each problem.
    """
    from dra_infra.catalog.drivers import drivers

    order = list(drivers()["gpu.nvidia.com"].by_line)
    states = gate_states(line, gates)
    for name, gate in gates_of(line).items():
        # Some lean on it from a later line on.
        leans = gate.kubernetes and order.index(line) >= order.index(gate.kubernetes_since or line)
        if not states[name] or not leans:
            continue
        off = [release.minor for release in target.releases if not release.enabled(gate.kubernetes)]
        if not off:
            continue
        newer = [
            minor
            for minor in SUPPORTED_MINORS
            if (state := GATES[gate.kubernetes].get(minor)) and state.default
        ]
        here = f"target=dra.ClusterTarget(kubernetes=..., gates={{'{gate.kubernetes}': True}}) where the cluster has it on"
        yield (
            name,
            Problem(
                path="",
                code="needs-newer-kubernetes",
                message=f"{name} leans on the gate {gate.kubernetes}, which Kubernetes {' and '.join(off)} has off",
                hint=(f"it is on by default from {newer[0]} on; " if newer else "") + f"write {here}",
                severity="error" if target.kubernetes else "warning",
            ),
        )


def _check_patch(documented: str, target: ClusterTarget, what: str) -> Iterator[Problem]:
    minor = ".".join(documented.split(".")[:2])
    if target.kubernetes == minor and documented.count(".") > 1:
        yield _mismatch(
            f"{what} is documented from Kubernetes {documented} on, and of the target only {minor} is known",
            "see that the API server is no older patch release",
            warning=True,
        )


def _mismatch(message: str, hint: str = "", *, path: str = "version", warning: bool = False) -> Problem:
    severity = "warning" if warning else "error"
    hint = hint or "take another version, or another target"
    return Problem(path=path, code="version-matrix", message=message, hint=hint, severity=severity)  # type: ignore[arg-type]


def _said(release: ChosenRelease) -> str:
    return f"{release.name} {release.version}"
