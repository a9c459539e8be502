"""Rules for an installation of the NVIDIA DRA driver whose values are right one by one, and version matrices.

Versions of Kubernetes, chart, DRA driver and kernel driver must go together.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from dra_infra.catalog.charts import charts
from dra_infra.catalog.driver_gates import check_gates, driver_needs, gate_states, gates_of
from dra_infra.catalog.drivers import drivers
from dra_infra.catalog.platforms import matrix
from dra_infra.errors import Problem
from dra_infra.specs.arguments import is_list, is_output, shorten
from dra_infra.specs.claims import first_minor_with
from dra_infra.specs.platform.releases import ChosenRelease, choose_release, is_older, numbers
from dra_infra.specs.platform.values import Values, over
from dra_infra.target import ClusterTarget

_RANGE: Final = re.compile(r">=(\d+\.\d+)\.\d+(-0)?|(\d+\.\d+)\.x")
_RELEASE: Final = re.compile(r"\d+\.\d+\.\d+")
_DNS_NAMES: Final = "IMEXDaemonsWithDNSNames"


def check_kubernetes(release: ChosenRelease, target: ClusterTarget) -> Iterator[Problem]:
    """Checks that the chart and what it installs run on every Kubernetes of the target: `version-matrix` at `version`."""
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
    """Checks that this operator has GPUCluster on that Kubernetes: `version-matrix` at `gpu_cluster`."""
    needs = matrix().gpu_cluster
    if is_older(release.version, needs.operator):
        yield _mismatch(
            f"GPUCluster came with GPU Operator {needs.operator}, and this is {release.version}",
            f'write version="{release.chart.newest}", or gpu_cluster=False and a DraDriver',
            path="gpu_cluster",
        )
    yield from _check_patch(needs.kubernetes, target, "GPUCluster")


def name_claims(values: Values, asked: object, target: ClusterTarget) -> tuple[Values, list[Problem]]:
    """The values of an operator with what DCGM's exporter needs to name pods and claims, or `version-matrix` at `version`.

    Lists of the user are kept beside it. Nothing is added where the user's own environment tells the exporter of DRA, or
    where such a list is only known later.

    Args:
        values: Of the operator.
        asked: Whether they are to be named; else they are where no device plugin runs.
        target: The cluster.
    """
    needs = matrix().dcgm
    wanted = asked if isinstance(asked, bool) else values.get("devicePlugin.enabled") is False
    if not wanted or False in (values.get("dcgmExporter.enabled"), values.get("clusterPolicy.deployCR")):
        # A GPUCluster tells its exporter by itself.
        return values, []
    paths = ("dcgmExporter.env", "extraObjects")
    env, objects = (values.get(path) if values.is_written(path) else () for path in paths)
    if not is_list(env) or not is_list(objects):
        return values, []
    if any(isinstance(each, Mapping) and each.get("name") == needs.variable for each in env):
        return values, []
    if why_not := _why_not_named(values, target):
        return values, [replace(why_not, severity="error" if asked is True else "warning")]
    added = needs.values
    lists = {
        "dcgmExporter": {"env": [*added["dcgmExporter"]["env"], *env]},
        "extraObjects": [*added["extraObjects"], *objects],
    }
    return replace(values, tree=over(over(added, values.tree), lists)), []


def _why_not_named(values: Values, target: ClusterTarget) -> Problem | None:
    needs = matrix().dcgm
    release = values.release
    newer = f'write version="{release.chart.newest}"'
    known = "dcgm_claims=False says that they need not"
    if is_older(release.version, needs.operator):
        return _mismatch(
            f"DCGM's metrics name no pods and claims of DRA: no values of {_said(release)} are known that let its exporter read slices",
            f"{newer}; {known}",
        )
    image = values.get("dcgmExporter.version")
    is_told = isinstance(image, str) and bool(_RELEASE.match(image))
    is_old = (
        is_older(str(image), needs.exporter)
        if is_told
        else is_older(release.version, needs.exporter_comes_with)
    )
    if not is_old or "v1beta1" in target.serves:
        return None
    return _mismatch(
        "DCGM's metrics name no pods and claims of DRA: "
        f"the exporter of {_said(release)} reads resource.k8s.io/v1beta1 alone, which the target does not serve",
        f'{newer}, or values={{"dcgmExporter": {{"version": "{needs.image}"}}}}; {known}',
    )


def check_kernel_driver(
    release: ChosenRelease, kernel_driver: str, gates: Mapping[str, bool], *, compute_domains: bool, path: str
) -> Iterator[Problem]:
    """Checks that NVIDIA's kernel driver is new enough for a release of the DRA driver: `version-matrix`.

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
    driver = drivers()["gpu.nvidia.com"]
    states = gate_states(line, gates)
    for name, gate in gates_of(line).items():
        # Some lean on it from a later line on.
        leans = gate.kubernetes and driver.has(line, since=gate.kubernetes_since)
        if not states[name] or not leans:
            continue
        off = [release.minor for release in target.releases if not release.enabled(gate.kubernetes)]
        if not off:
            continue
        newer = first_minor_with(gate.kubernetes)
        here = f"target=dra.ClusterTarget(kubernetes=..., gates={{'{gate.kubernetes}': True}}) where the cluster has it on"
        yield (
            name,
            Problem(
                path="",
                code="needs-newer-kubernetes",
                message=f"{name} leans on the gate {gate.kubernetes}, which Kubernetes {' and '.join(off)} has off",
                hint=(f"it is on by default from {newer} on; " if newer else "") + f"write {here}",
                severity="error" if target.kubernetes else "warning",
            ),
        )


def _check_patch(documented: str, target: ClusterTarget, what: str) -> Iterator[Problem]:
    minor = ".".join(documented.split(".")[:2])
    if target.minor != minor or documented.count(".") <= 1:
        return
    if not target.patch:
        yield _mismatch(
            f"{what} is documented from Kubernetes {documented} on, and of the target only {minor} is known",
            "see that the API server is no older patch release",
            warning=True,
        )
    elif is_older(target.patch, documented):
        yield _mismatch(
            f"{what} is documented from Kubernetes {documented} on, and the target is {target.patch}",
            "upgrade to a newer patch release",
            warning=True,
        )


def _mismatch(message: str, hint: str = "", *, path: str = "version", warning: bool = False) -> Problem:
    severity = "warning" if warning else "error"
    hint = hint or "take another version, or another target"
    return Problem(path=path, code="version-matrix", message=message, hint=hint, severity=severity)  # type: ignore[arg-type]


def _said(release: ChosenRelease) -> str:
    return f"{release.name} {release.version}"


GPUS, CONSENT = "resources.gpus.enabled", "gpuResourcesEnabledOverride"
COMPUTE_DOMAINS = "resources.computeDomains.enabled"


def known_gates(values: Values, path: str = "featureGates") -> dict[str, Any]:
    """The gates that are written, without those that are only known later."""
    gates = values.get(path)
    if not isinstance(gates, Mapping):
        return {}
    return {str(name): value for name, value in gates.items() if not is_output(value)}


def check_driver_gates(
    values: Values, line: str, target: ClusterTarget, path: str = "featureGates"
) -> Iterator[Problem]:
    """The gates against each other, the release and Kubernetes, at `gates.<name>`."""
    if line not in drivers()["gpu.nvidia.com"].by_line:
        return
    gates = known_gates(values, path)
    for problem in check_gates(line, gates):
        yield replace(problem, path=values.where(f"{path}.{problem.path}"))
    sound = {name: value for name, value in gates.items() if isinstance(value, bool)}
    for name, problem in check_gates_on_kubernetes(line, sound, target):
        yield replace(problem, path=values.where(f"{path}.{name}"))


def check_consent(values: Values) -> Iterator[Problem]:
    """The chart fails with GPUs on and no word that the device plugin is off: `gpu-resources-consent`."""
    if values.get(GPUS) is True and values.get(CONSENT) is False:
        yield Problem(
            path=values.where(CONSENT),
            code="gpu-resources-consent",
            message="the chart fails while resources.gpus.enabled is true and nobody says that the device plugin is off",
            hint="write gpu_resources_enabled_override=True once no device plugin runs on these nodes, or gpus=False",
        )


def check_gated_values(values: Values, line: str) -> Iterator[Problem]:
    """Values that a gate must unlock: `driver-gate-off`; and what the plugin stops on: `unsupported-value`."""
    if line not in drivers()["gpu.nvidia.com"].by_line:
        return
    states = gate_states(
        line, {name: value for name, value in known_gates(values).items() if isinstance(value, bool)}
    )
    shares, mode = "consumableShares", "resources.computeDomains.imex.mode"
    asked = values.get(shares) if values.is_written(shares) else ""
    if values.release.knows(shares) and not is_output(asked) and asked not in (None, "", "disabled"):
        if not (
            asked in ("memory", "unlimited")
            or (str(asked).isascii() and str(asked).isdigit() and int(str(asked)) > 0)
        ):
            yield Problem(
                path=values.where(shares),
                code="unsupported-value",
                message=f"{shorten(asked)} is no way to share devices, and the plugin stops on it",
                hint='write "memory", "unlimited", "disabled", or how many shares a device has',
            )
        elif states.get("ConsumableShares") is False:
            yield _gate_off(values.where(shares), "consumableShares", "ConsumableShares", "the plugin stops")
    if values.get(mode) == "hostManaged" and states.get("HostManagedIMEXDaemon") is False:
        yield _gate_off(
            values.where(mode), "imex.mode hostManaged", "HostManagedIMEXDaemon", "the chart fails"
        )


def check_api_version(values: Values, target: ClusterTarget) -> Iterator[Problem]:
    """A pinned version of resource.k8s.io that the target does not serve: `version-not-served`."""
    pinned = values.get("resourceApiVersion") if values.is_written("resourceApiVersion") else None
    group, _, version = str(pinned).partition("/")
    if (
        group == "resource.k8s.io"
        and version in ("v1", "v1beta2", "v1beta1")
        and version not in target.serves
    ):
        yield Problem(
            path=values.where("resourceApiVersion"),
            code="version-not-served",
            message=f"the target does not serve {pinned}",
            hint='leave it out: the driver takes the newest that is served, or write "resource.k8s.io/v1"',
        )


def check_image(values: Values) -> Iterator[Problem]:
    """An image that is not of this chart and version: `version-matrix`."""
    release = values.release
    images = matrix().driver.images
    tag = values.get("image.tag")
    two = numbers(tag)[:2] if isinstance(tag, str) and tag else ()
    if two and release.line and two != numbers(release.line):
        yield _foreign_image(values.where("image.tag"), f"the tag {shorten(tag)}", release)
    repository = values.get("image.repository")
    last = repository.rpartition("/")[2] if isinstance(repository, str) else ""
    if last in images.values() and last != images[release.name]:
        yield _foreign_image(values.where("image.repository"), f"the image {shorten(repository)}", release)


def check_upgrade(values: Values, installed: object, *, with_crds: bool) -> Iterator[Problem]:
    """From a version that is installed to this one: `chart-upgrade`.

    Source: the upgrade guide of the driver 0.4: its checkpoint cannot be read by older lines, and selectors of the
    objects contain the name of the chart, which changed.
    """
    if installed is None:
        return
    before = choose_release("NVIDIA DRA driver", installed)
    if isinstance(before, Problem):
        yield replace(before, path="upgrade_from")
        return
    release = values.release
    old = before.name
    if before.line == release.line:
        return
    if release.name != old and list(charts()).index(old) > list(charts()).index(release.name):
        message = f"there is no way back from {before.version} to {release.version}: it cannot read the checkpoint of the newer one"
        hint = f"stay with a version from {matrix().driver.renamed} on"
        yield Problem(path="version", code="chart-upgrade", message=message, hint=hint)
        return
    if (
        release.name != old
        and values.get("nameOverride") != old
        and not is_output(values.get("nameOverride"))
    ):
        yield Problem(
            path=values.where("nameOverride"),
            code="chart-upgrade",
            message=f"the chart is called {release.name} from {matrix().driver.renamed} on, and the selectors of objects of {before.version} cannot change with it",
            hint=f'write name_override="{old}", and keep it',
        )
    if not with_crds:
        yield Problem(
            path="crds",
            code="chart-upgrade",
            message=f"Helm does not upgrade the CRDs of {before.version} to those of {release.version}",
            hint='write crds="crds/", a folder with the CRDs of the new version: they are applied before the chart',
            severity="error" if release.name != old else "warning",
        )


def namespace_of(values: Values) -> str:
    """Where the driver is installed by default: an installation that keeps its older name stays where it was."""
    name = values.get("nameOverride")
    known = charts().get(name) if isinstance(name, str) else None
    return (known if known and known.product == values.release.product else values.release.chart).namespace


def keeps_to_control_plane(release: ChosenRelease) -> bool:
    """True where the chart by default requires control plane nodes for the controller."""
    driver = drivers()["gpu.nvidia.com"]
    last = matrix().driver.controller_on_control_plane_until
    return release.line in driver.by_line and driver.has(release.line, until=last)


def _gate_off(path: str, what: str, gate: str, then: str) -> Problem:
    message = f"{what} needs the driver's gate {gate}, else {then}"
    return Problem(path=path, code="driver-gate-off", message=message, hint=f"write gates={{'{gate}': True}}")


def _foreign_image(path: str, what: str, release: ChosenRelease) -> Problem:
    message = f"{what} is not of {release.name} {release.version}"
    return _mismatch(message, "leave it out: the chart names its own image", path=path)
