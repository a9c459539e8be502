"""GpuMonitoring: alerts on devices, the metrics of the node plugin, and a dashboard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import pulumi

from dra_infra.components.component import Component, present, reports_unknown_arguments
from dra_infra.components.kubernetes_object import KubernetesObject
from dra_infra.errors import Problem
from dra_infra.specs.arguments import check_merged
from dra_infra.specs.monitoring import Watching, check_name, check_watching, compile_monitoring
from dra_infra.specs.node_plugin.daemon_set import METRICS_PORT
from dra_infra.target import ClusterTarget

_SIDECAR: Final = {"grafana_dashboard": "1"}


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

    @reports_unknown_arguments
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
    ) -> None:
        super().__init__(name, inputs={}, target=target, opts=opts)
        shared = {"namespace": namespace, "labels": labels, "annotations": annotations}
        plain = Watching(
            thresholds={} if thresholds is None else thresholds,
            severities={} if severities is None else severities,
            without=without,
            jobs={} if jobs is None else jobs,
            runbooks=runbooks,
            plugin_port=plugin_port,
        )

        def watching_of(arguments: Mapping[str, Any]) -> Watching:
            return replace(plain, **{key: each for key, each in arguments.items() if key not in shared})

        def check(arguments: Mapping[str, Any]) -> list[Problem]:
            common = {key: arguments[key] for key in shared}
            return [
                *self._check_inputs(**common),
                *check_merged("labels", common["labels"]),
                *check_watching(watching_of(arguments)),
            ]

        written = {
            **shared,
            "plugin_namespaces": plugin_namespaces,
            "selected_by": {} if selected_by is None else selected_by,
            "dashboard": _SIDECAR if dashboard is None else dashboard,
        }
        given = self._judge_secrets(written, check)
        self._report([*check_name(name), *check(given)])
        if self._broken:
            self.register_outputs({})
            return
        made: dict[str, pulumi.Resource] = {}
        metadata = present({key: given[key] for key in shared})
        for manifest in compile_monitoring(name, watching_of(given), self.target.releases[-1], metadata):
            called = manifest["metadata"]["name"]
            child = KubernetesObject(called, manifest, pulumi.ResourceOptions(parent=self))
            made[f"{manifest['kind']} {called}"] = child
        self.resources = made
        self.register_outputs({})
