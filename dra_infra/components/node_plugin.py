"""NodePlugin: the dra-infra node plugin on the nodes of a cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Unpack

import pulumi

from dra_infra.components.arguments import NodePluginPart, takes
from dra_infra.components.component import Component, reports_unknown_arguments
from dra_infra.components.kubernetes_object import KubernetesObject
from dra_infra.components.platform_charts import InstalledClass, InstalledClasses, joined, make_namespace
from dra_infra.components.report import warn
from dra_infra.components.secret_arguments import refusals_of
from dra_infra.errors import InvalidSpecError
from dra_infra.specs.node_plugin.plan import NodePluginPlan, compile_node_plugin
from dra_infra.target import ClusterTarget


class NodePlugin(Component):
    """dra-infra's own driver, as a DaemonSet: simulated GPUs on any cluster, or the GPUs of nodes without NVIDIA's chart.

    Its service account may read single claims and nodes, and write the slices of its own node: a policy refuses others.

    Args:
        name: Name of the component, and of its objects unless `object_name` is given.
        back_end: Devices that it publishes: `"sim"` makes up those of `fleet`, `"nvml"` has the GPUs of the node.
        fleet: What each node has, as for `simulate`: `"hgx-h100"`, `"a100-80gb mig=1g.10gb*7"`; else `"example"`, eight
            simulated GPUs of `gpu.example.com`. For `sim` alone.
        driver: Name of the driver; else the fleet's, and `gpu.nvidia.com` for `nvml`.
        image: The image, else the one that `make image` builds, `localhost/dra-infra-plugin:<version>`, which has to be
            imported on each node: there is none in any registry. One of a registry is named by its digest,
            `registry.example.com/dra-infra-plugin@sha256:...`: a tag alone is a warning.
        image_pull_secrets: Names of Secrets.
        object_name: Name of the objects.
        namespace: Namespace of its objects, else `dra-infra-plugin`.
        create_namespace: Make the Namespace, with labels that let pods with host paths in.
        namespace_labels: More labels of the Namespace.
        labels: Labels of the objects and of the pods.
        annotations: Annotations of the objects and of the pods.
        node_selector: Labels of nodes that it runs on, else all.
        tolerations: Its tolerations, else that of the taint `nvidia.com/gpu`.
        priority_class_name: Priority class of its pods, else `system-node-critical`.
        resources: Requests and limits of its container.
        host_network: Use the network of the node, where pods cannot reach the API server otherwise. Ports of a node can
            be had once, so an update then stops the old pod before the new one starts.
        log_level: Least level of messages that are logged.
        metrics_port: Port of `/metrics`, else 8080.
        health_port: Port of liveness and readiness over gRPC, else 51515. A NetworkPolicy keeps all pods from it.
        metrics_namespaces: Names of the namespaces whose pods may read metrics, else all; `[]` is none.
        kubelet_root: The kubelet's folder on nodes, else `/var/lib/kubelet`.
        cdi_folder: Where the container runtime reads CDI specs, else `/var/run/cdi`.
        nvidia_driver_root: Where NVIDIA's kernel driver is on nodes, else `/`. For `nvml` alone.
        settings: Other settings of the plugin, by name: `{"mig_delay": "2s"}`.
        env: Variables of the container that are no settings, such as `KUBERNETES_SERVICE_HOST` where the API server is
            not at the address of its service.
        classes: Make the DeviceClasses that the driver's own chart would bring. Off for a second plugin of one driver.
        binding_conditions: Let it find claims, and set conditions of its devices in them. For `sim` alone.
        openshift: Let its pods be privileged on OpenShift, where SecurityContextConstraints decide beside the labels of the Namespace.
            `GpuPlatform(platform="openshift")` says so.
        target: The cluster; else the parent's, else the stack's.
        opts: Pulumi resource options.

    Attributes:
        driver_name: Name of the driver, as slices have it.
        namespace: Namespace of its objects.
        device_classes: The DeviceClasses that it brings, by name, for `device_class=` of claims.

    Example:
        ```python
        plugin = dra.NodePlugin("node-plugin", back_end="sim", fleet="hgx-h100")
        trainer = dra.GpuClaimTemplate("trainer", device_class=plugin.device_classes["gpu.nvidia.com"])
        ```
    """

    driver_name: str
    namespace: str | pulumi.Output[str]
    device_classes: Mapping[str, InstalledClass]

    @reports_unknown_arguments
    @takes(NodePluginPart)
    def __init__(
        self,
        name: str,
        *,
        target: ClusterTarget | None = None,
        opts: pulumi.ResourceOptions | None = None,
        **arguments: Unpack[NodePluginPart],
    ) -> None:
        super().__init__(name, target=target, opts=opts)
        self.driver_name, self.namespace, self.device_classes = "", "", InstalledClasses()
        check = refusals_of(lambda given: compile_node_plugin(name, given, join=joined))
        try:
            plan = compile_node_plugin(name, self._judge_secrets(arguments, check), join=joined)
        except InvalidSpecError as error:
            self._report(error.problems)
            plan = None
        if plan is None or self._broken or not all(map(self._is_accepted, plan.classes)):
            self.register_outputs({})
            return
        warn(self, self.label, plan.warnings)
        self.resources = make_objects(self, name, plan)
        self.driver_name = plan.hardware.driver
        self.namespace = plan.namespace
        self.device_classes = classes_of(plan, self.resources)
        self.register_outputs(
            {
                "driverName": self.driver_name,
                "namespace": self.namespace,
                "deviceClasses": list(self.device_classes),
            }
        )


def make_objects(
    parent: Component, name: str, plan: NodePluginPlan, *, before: Sequence[pulumi.Resource] = ()
) -> dict[str, pulumi.Resource]:
    """The children of *parent* for a plugin, by kind; classes by kind and name.

    The pods come last and go first: without rights they could do nothing, and without the policy too much.
    """

    def options(after: Sequence[pulumi.Resource]) -> pulumi.ResourceOptions:
        return pulumi.ResourceOptions(parent=parent, depends_on=list(after) or None)

    made: dict[str, pulumi.Resource] = {}
    if plan.namespace_labels is not None:
        made["Namespace"] = make_namespace(name, plan.namespace, plan.namespace_labels, options(()))
    first = [*before, *made.values()]
    for manifest in plan.guards:
        made[manifest["kind"]] = KubernetesObject(name, manifest, options(first))
    for manifest in plan.classes:
        named = manifest["metadata"]["name"]
        made[f"DeviceClass {named}"] = KubernetesObject(f"{name}-{named}", manifest, options(before))
    guards = [*before, *(made[manifest["kind"]] for manifest in plan.guards)]
    made["DaemonSet"] = KubernetesObject(name, plan.daemon_set, options(guards))
    return made


def classes_of(plan: NodePluginPlan, made: Mapping[str, pulumi.Resource]) -> InstalledClasses:
    """The classes of a plugin, for claims: these are made after the pods of the plugin and go before them.

    Without a driver the kubelet cannot release a claim, and a pod that has one never ends.
    """
    return InstalledClasses(
        {
            shipped.name: InstalledClass(
                shipped.name,
                (plan.hardware.driver, shipped.selects),
                {"DeviceClass": made[f"DeviceClass {shipped.name}"], "DaemonSet": made["DaemonSet"]},
            )
            for shipped in (plan.hardware.classes if plan.classes else ())
        }
    )
