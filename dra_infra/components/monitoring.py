"""GpuMonitoring: alerts on devices, the metrics of the node plugin, and a dashboard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pulumi

from dra_infra.components.component import Component, compiled_by
from dra_infra.specs.monitoring import plan_monitoring
from dra_infra.specs.node_plugin.daemon_set import METRICS_PORT
from dra_infra.target import ClusterTarget


class GpuMonitoring(Component):
    """Alerts on devices for Prometheus, monitors of the node plugin, and a dashboard for Grafana.

    The cluster has the Prometheus operator, which scrapes kube-controller-manager, kube-scheduler and kubelets already, as
    kube-prometheus-stack does. Metrics have the names of the target's minor.

    Args:
        name: Name of the component and of the PrometheusRule; the other objects' names begin with it.
        namespace: Namespace of its objects; else `default`.
        selected_by: Labels by which Prometheus selects rules and monitors: `{"release": "kube-prometheus-stack"}`.
        thresholds: Above which alerts fire, by alert, where it is not the usual number: `{"KubeDRAPrepareSlow": 30}`.
        severities: `"critical"`, `"warning"` or `"info"`, by alert, where it is not the usual one.
        without: Alerts that are left out.
        jobs: Names of the jobs of `kube-controller-manager`, `kube-scheduler` and `kubelet`, where they are called otherwise.
        runbooks: Address of your page of runbooks: alerts link to `<runbooks>#<alert in lower case>`. Left out, to nothing.
        plugin_namespaces: Namespaces of node plugins: `[plugin.namespace]`. Left out, alerts are on Kubernetes alone. Add
            another one at the end: their objects are numbered, for a namespace may not be known before `pulumi up`.
        plugin_port: Their `metrics_port`.
        dashboard: Labels by which Grafana's sidecar finds dashboards; `{}` makes none.
        labels: Labels of the objects.
        annotations: Annotations of the objects.
        target: The cluster to compile for; else the parent's, else the stack's.
        opts: Pulumi resource options.

    Example:
        ```python
        plugin = dra.NodePlugin("node-plugin", back_end="nvml", metrics_namespaces=["monitoring"])
        dra.GpuMonitoring(
            "gpus",
            namespace="monitoring",
            selected_by={"release": "kube-prometheus-stack"},
            plugin_namespaces=[plugin.namespace],
            opts=pulumi.ResourceOptions(depends_on=[plugin]),
        )
        ```
    """

    @compiled_by(plan_monitoring)
    def __init__(
        self,
        name: str,
        *,
        namespace: pulumi.Input[str] | None = None,
        selected_by: Mapping[str, pulumi.Input[str]] | None = None,
        thresholds: Mapping[str, float] | None = None,
        severities: Mapping[str, str] | None = None,
        without: Sequence[str] = (),
        jobs: Mapping[str, str] | None = None,
        runbooks: str | None = None,
        plugin_namespaces: Sequence[pulumi.Input[str]] = (),
        plugin_port: int = METRICS_PORT,
        dashboard: Mapping[str, pulumi.Input[str]] | None = None,
        labels: Mapping[str, pulumi.Input[str]] | None = None,
        annotations: Mapping[str, pulumi.Input[str]] | None = None,
        target: ClusterTarget | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None: ...
