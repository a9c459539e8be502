"""Conflicts between the GPU Operator, the DRA driver and the nodes, though each is right by itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dra_infra.catalog.platforms import matrix
from dra_infra.errors import Problem
from dra_infra.specs.arguments import is_output
from dra_infra.specs.platform.driver_rules import COMPUTE_DOMAINS, GPUS, known_gates
from dra_infra.specs.platform.installations import Installation, kernel_driver_of
from dra_infra.specs.platform.values import Values

_CLUSTER = "gpuCluster.deployCR"
_LABEL = "kubeletPlugin.containers.computeDomains.gpuCliqueLabelEnabled"


def check_together(operator: Installation, driver: Installation) -> Iterator[Problem]:
    """Problems at `operator...` and `driver...`, after section "beside a ClusterPolicy" of NVIDIA's documentation.

    Codes: `platform-conflict`, `device-plugin-beside-dra`, `eviction-label`, `version-matrix`.
    """
    theirs, ours = operator.values, driver.values
    if theirs.get(_CLUSTER) is True:
        yield _conflict(
            _there(theirs, _CLUSTER),
            "a GPUCluster installs the DRA driver itself: two drivers of one name and the same classes",
            "leave the DRA driver out, or write gpu_cluster=False",
        )
        return
    if ours.get(GPUS) is True:
        yield from _check_gpus(theirs, ours)
    if ours.get(COMPUTE_DOMAINS) is True:
        yield from _check_cliques(theirs, ours)
    yield from _check_driver_root(theirs, ours)
    if theirs.get("driver.enabled") is True:
        known = operator.release.chart.versions.get(operator.release.version)
        written = theirs.get("driver.version") if theirs.is_written("driver.version") else None
        kernel = known.kernel_driver if known else ""
        if isinstance(written, str):
            kernel = written
        if kernel and not is_output(written):
            path = _there(theirs, "driver.version") if written else "operator.version"
            yield from kernel_driver_of(ours, kernel, path=path)


def check_labels(driver: Values, pools: Mapping[str, Mapping[str, Any]]) -> Iterator[Problem]:
    """Checks that GPU node pools carry the labels that the plugin selects nodes by: `node-labels-missing`, a warning."""
    selector = driver.get("kubeletPlugin.nodeSelector")
    for pool, labels in pools.items() if isinstance(selector, Mapping) else ():
        missing = {
            key: value for key, value in selector.items() if labels.get(key) != value and not is_output(value)
        }
        if missing:
            yield label_missing(
                pool, missing, "the DRA driver runs nowhere on it, and its GPUs are in no slice"
            )


def label_missing(pool: str, labels: Mapping[str, Any], then: str) -> Problem:
    """A node pool lacks labels."""
    written = ", ".join(f"{key}={value}" for key, value in labels.items())
    return Problem(
        path=f"gpu_pools.{pool}",
        code="node-labels-missing",
        message=f"its nodes lack {written}: {then}",
        hint="put the labels into the template of the pool, so that new nodes have them too",
        severity="warning",
    )


def follows_for_driver(operator: Installation) -> dict[str, Any]:
    """Arguments of a DRA driver that follow from the operator beside it, where the user does not write them."""
    values = operator.values
    # Consent means that no device plugin runs; whether that is so is seen from the operator, by `check_together`.
    follows: dict[str, Any] = {"gpu_resources_enabled_override": True}
    if values.get("driver.enabled") is True:
        follows["nvidia_driver_root"] = values.get("hostPaths.driverInstallDir")
    label = _eviction_label(values)
    if label and not is_output(label):
        follows["plugin_node_selector"] = {label: "true"}
    return follows


def _check_gpus(theirs: Values, ours: Values) -> Iterator[Problem]:
    if theirs.get("devicePlugin.enabled") is True:
        yield Problem(
            path=_there(theirs, "devicePlugin.enabled"),
            code="device-plugin-beside-dra",
            message="the device plugin and the DRA driver both give out the GPUs of a node, and neither sees the other",
            hint="write device_plugin=False for the operator, or gpus=False for the DRA driver",
        )
    if theirs.get("cdi.enabled") is False:
        yield _conflict(
            _there(theirs, "cdi.enabled"), "the DRA driver gives out devices by CDI alone", "write cdi=True"
        )
    dynamic = known_gates(ours).get("DynamicMIG") is True
    managed = (
        theirs.get("migManager.enabled") is True and theirs.get("migManager.config.default") != "all-disabled"
    )
    if dynamic and managed and not is_output(theirs.get("migManager.config.default")):
        yield _conflict(
            _there(theirs, "migManager.config.default"),
            "the MIG manager and the DRA driver with the gate DynamicMIG both partition the GPUs",
            'write mig_config="all-disabled" or mig_manager=False for the operator',
        )
    yield from _check_eviction(theirs, ours)


def _check_eviction(theirs: Values, ours: Values) -> Iterator[Problem]:
    """The driver manager finds the plugin by a label of the node that the plugin's selector asks for."""
    if theirs.get("driver.enabled") is not True:
        return
    usual = matrix().driver.eviction_label
    label = _eviction_label(theirs)
    selector = ours.get("kubeletPlugin.nodeSelector")
    if is_output(selector) or is_output(label):
        return
    selects = dict(selector) if isinstance(selector, Mapping) else {}
    if label and label not in selects:
        yield _eviction(
            f"driver.{ours.where('kubeletPlugin.nodeSelector')}",
            f"the operator evicts what the label {label} selects, and the DRA driver does not select nodes by it",
            f'write plugin_node_selector={{"{label}": "true"}} for the DRA driver',
        )
    elif usual in selects and not label:
        yield _eviction(
            _there(theirs, "driver.manager.env"),
            f"the DRA driver selects nodes by {usual}, and the operator does not take that label away before it unloads the kernel driver",
            f'write eviction_label="{usual}" for the operator',
        )
    elif not label:
        yield _eviction(
            _there(theirs, "driver.manager.env"),
            "nothing evicts the DRA driver before the operator unloads the kernel driver, so upgrades of it hang",
            f'write eviction_label="{usual}", plugin_node_selector={{"{usual}": "true"}}, and label the GPU nodes',
            warning=True,
        )


def _eviction_label(values: Values) -> Any:
    """The label by which the driver manager of the operator finds what it must evict; empty for none."""
    env = values.get("driver.manager.env")
    if not isinstance(env, (list, tuple)):
        return env if is_output(env) else ""
    variable = matrix().driver.eviction_variable
    found = (each.get("value") for each in env if isinstance(each, Mapping) and each.get("name") == variable)
    return next(found, "") or ""


def _check_cliques(theirs: Values, ours: Values) -> Iterator[Problem]:
    own = ours.get(_LABEL) is True
    theirs_on = theirs.get("gfd.enabled")
    if own and theirs_on is True:
        yield _conflict(
            f"driver.{ours.where(_LABEL)}",
            "the DRA driver and GPU feature discovery both write the label nvidia.com/gpu.clique",
            "leave gpu_clique_label out, or write gpu_feature_discovery=False for the operator",
        )
    if theirs_on is False and ours.get(_LABEL) in (False, None):
        hint = "write gpu_feature_discovery=True for the operator"
        hint += ", or gpu_clique_label=True for the DRA driver" if ours.release.knows(_LABEL) else ""
        yield _conflict(
            _there(theirs, "gfd.enabled"),
            "ComputeDomains need the label nvidia.com/gpu.clique on nodes, which nothing writes",
            hint,
        )


def _check_driver_root(theirs: Values, ours: Values) -> Iterator[Problem]:
    """The DRA driver looks for libraries where the operator puts them: elsewhere its init container waits for ever."""
    root, managed = ours.get("nvidiaDriverRoot"), theirs.get("driver.enabled")
    installed = theirs.get("hostPaths.driverInstallDir")
    if is_output(root) or is_output(installed) or managed is not True or root == installed:
        return
    yield _conflict(
        f"driver.{ours.where('nvidiaDriverRoot')}",
        f"the operator installs the kernel driver in {installed}, and the DRA driver looks for it in {root}",
        f'write nvidia_driver_root="{installed}", or driver=False for the operator where the nodes bring it',
    )


def _there(values: Values, path: str) -> str:
    return f"operator.{values.where(path)}"


def _conflict(path: str, message: str, hint: str) -> Problem:
    return Problem(path=path, code="platform-conflict", message=message, hint=hint)


def _eviction(path: str, message: str, hint: str, *, warning: bool = False) -> Problem:
    severity = "warning" if warning else "error"
    return Problem(path=path, code="eviction-label", message=message, hint=hint, severity=severity)  # type: ignore[arg-type]
