"""Which argument writes which values of a chart."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from dra_infra.catalog.platforms import matrix
from dra_infra.specs.arguments import is_list

SHARED: Final = (
    "version",
    "chart",
    "repository",
    "release_name",
    "namespace",
    "create_namespace",
    "namespace_labels",
    "crds",
    "keep_crds",
    "values",
    "timeout",
    "skip_await",
    "atomic",
)
"""Arguments of every installation that are no values of its chart."""

PLAIN: Final = frozenset(
    {"version", "upgrade_from", "chart", "create_namespace", "crds", "keep_crds", "values", "gates"}
    | {"gpus", "compute_domains", "device_plugin", "driver", "gpu_cluster", "controller_node_selector"}
)
"""Arguments that decide what is made or checked: no Pulumi Outputs, though their leaves may be."""


class Setting(NamedTuple):
    """The paths of the values that an argument writes, and how it writes them."""

    paths: tuple[str, ...]
    write: Callable[[Any], Any] | None = None

    def written(self, value: Any) -> Any:
        """The value of the chart."""
        return self.write(value) if self.write else value


def _to(*paths: str, write: Callable[[Any], Any] | None = None) -> Setting:
    return Setting(paths, write)


def _secrets(names: Any) -> Any:
    """Names of Secrets as references to them."""
    return [{"name": each} if isinstance(each, str) else each for each in names] if is_list(names) else names


def _affinity(labels: Any) -> Any:
    """An affinity that takes the place of the chart's own: Helm replaces lists and merges mappings."""
    if not isinstance(labels, Mapping):
        return labels
    wanted = [{"key": key, "operator": "In", "values": [value]} for key, value in labels.items()]
    terms = {"nodeSelectorTerms": [{"matchExpressions": wanted}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def _eviction(label: Any) -> Any:
    return [{"name": matrix().driver.eviction_variable, "value": label}]


_DRIVER: Final[Mapping[str, Setting]] = {
    "gpus": _to("resources.gpus.enabled"),
    "compute_domains": _to("resources.computeDomains.enabled"),
    "gpu_resources_enabled_override": _to("gpuResourcesEnabledOverride"),
    "nvidia_driver_root": _to("nvidiaDriverRoot"),
    "gates": _to("featureGates"),
    "consumable_shares": _to("consumableShares"),
    "imex_mode": _to("resources.computeDomains.imex.mode"),
    "gpu_clique_label": _to("kubeletPlugin.containers.computeDomains.gpuCliqueLabelEnabled"),
    "resource_api_version": _to("resourceApiVersion"),
    "log_verbosity": _to("logVerbosity"),
    "image_pull_secrets": _to("imagePullSecrets", write=_secrets),
    "priority_class_name": _to("kubeletPlugin.priorityClassName", "controller.priorityClassName"),
    "plugin_node_selector": _to("kubeletPlugin.nodeSelector"),
    "plugin_tolerations": _to("kubeletPlugin.tolerations"),
    "controller_node_selector": _to("controller.nodeSelector"),
    "controller_tolerations": _to("controller.tolerations"),
    "controller_replicas": _to("controller.replicas"),
    "network_policies": _to("kubeletPlugin.networkPolicy.enabled", "controller.networkPolicy.enabled"),
    "webhook": _to("webhook.enabled"),
    "webhook_failure_policy": _to("webhook.failurePolicy"),
    "webhook_tls_mode": _to("webhook.tls.mode"),
    "webhook_issuer_type": _to("webhook.tls.certManager.issuerType"),
    "webhook_issuer_name": _to("webhook.tls.certManager.issuerName"),
    "webhook_secret_name": _to("webhook.tls.secret.name"),
    "webhook_ca_bundle": _to("webhook.tls.secret.caBundle"),
    "name_override": _to("nameOverride"),
    "allow_default_namespace": _to("allowDefaultNamespace"),
}

OPERATOR: Final[Mapping[str, Setting]] = {
    "device_plugin": _to("devicePlugin.enabled"),
    "driver": _to("driver.enabled"),
    "kernel_driver": _to("driver.version"),
    "kernel_module_type": _to("driver.kernelModuleType"),
    "nvidia_driver_crd": _to("driver.nvidiaDriverCRD.enabled"),
    "driver_install_dir": _to("hostPaths.driverInstallDir"),
    "eviction_label": _to("driver.manager.env", write=_eviction),
    "toolkit": _to("toolkit.enabled"),
    "toolkit_install_dir": _to("toolkit.installDir"),
    "toolkit_env": _to("toolkit.env"),
    "cdi": _to("cdi.enabled"),
    "mig_strategy": _to("mig.strategy"),
    "mig_manager": _to("migManager.enabled"),
    "mig_config": _to("migManager.config.default"),
    "gpu_feature_discovery": _to("gfd.enabled"),
    "node_feature_discovery": _to("nfd.enabled"),
    "dcgm_exporter": _to("dcgmExporter.enabled"),
    "service_monitor": _to("dcgmExporter.serviceMonitor.enabled"),
    "gpu_cluster": _to("gpuCluster.deployCR"),
    "gates": _to("draDriver.featureGates"),
    "compute_domains": _to("draDriver.computeDomains.enabled"),
    "daemonset_tolerations": _to("daemonsets.tolerations"),
    "operator_node_selector": _to("operator.nodeSelector"),
    "operator_tolerations": _to("operator.tolerations"),
    "upgrade_crds": _to("operator.upgradeCRD"),
}

EXAMPLE: Final[Mapping[str, Setting]] = {
    "profile": _to("deviceProfile"),
    "driver_name": _to("driverName"),
    "devices_per_node": _to("kubeletPlugin.numDevices"),
    "partitions_per_gpu": _to("kubeletPlugin.gpuPartitions"),
    "multiple_allocations": _to("gpuAllowMultipleAllocations"),
    "device_status": _to("gpuDeviceStatus"),
    "binding_conditions": _to("kubeletPlugin.bindingConditions"),
    "extended_resource_name": _to("deviceClass.extendedResourceName"),
    "resource_quota": _to("resourceQuota.enabled"),
    "webhook": _to("webhook.enabled"),
    "image_pull_secrets": _to("imagePullSecrets", write=_secrets),
    "plugin_node_selector": _to("kubeletPlugin.nodeSelector"),
    "plugin_tolerations": _to("kubeletPlugin.tolerations"),
    "allow_default_namespace": _to("allowDefaultNamespace"),
}

DRIVER_EXTRA: Final = ("upgrade_from", "kernel_driver")
"""Arguments of the DRA driver that are no values either."""


def driver_settings(*, on_control_plane: bool) -> Mapping[str, Setting]:
    """What the arguments of the DRA driver write.

    Args:
        on_control_plane: Whether the chart by default keeps the controller to control plane nodes: a node selector
            would have to hold beside that, so it is written as the affinity instead.
    """
    if not on_control_plane:
        return _DRIVER
    return {**_DRIVER, "controller_node_selector": _to("controller.affinity", write=_affinity)}
