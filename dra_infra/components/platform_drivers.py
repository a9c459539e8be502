"""GpuOperator, DraDriver and ExampleDriver: one chart each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Unpack

import pulumi

from dra_infra.components.arguments import DraDriverPart, ExampleDriverPart, GpuOperatorPart, takes
from dra_infra.components.component import present, reports_unknown_arguments
from dra_infra.components.platform_charts import ChartComponent, InstalledClass, InstalledClasses
from dra_infra.components.secret_arguments import refusals_of
from dra_infra.errors import InvalidSpecError, Problem
from dra_infra.specs.arguments import wrong_type
from dra_infra.specs.platform.compatibility import check_together, follows_for_driver
from dra_infra.specs.platform.installations import (
    Installation,
    compile_driver,
    compile_example_driver,
    compile_operator,
)
from dra_infra.target import ClusterTarget


class ChartInstallation(ChartComponent):
    """Base of the components that install one chart.

    Attributes:
        release_name: Name of the helm release.
        namespace: Namespace that it is installed into.
        version: Version of the chart, without a leading v.
        device_classes: The DeviceClasses that it brings, by name, for `device_class=` of claims.
    """

    release_name: str | pulumi.Output[str]
    namespace: str | pulumi.Output[str]
    version: str
    device_classes: Mapping[str, InstalledClass]
    _installation: Installation | None = None

    def _make(
        self,
        arguments: Mapping[str, Any],
        compile_: Callable[[Mapping[str, Any]], Installation],
        *,
        after: Sequence[pulumi.Resource] = (),
        check: Callable[[Installation], Sequence[Problem]] = lambda _installation: (),
    ) -> None:
        self.release_name = self._component_name
        self.namespace = ""
        self.version = ""
        self.device_classes = InstalledClasses()
        given = self._judge_secrets(present(arguments), refusals_of(compile_))
        crds, problems = self._read_crds(given)
        found: Installation | None = None
        try:
            found = compile_(given)
        except InvalidSpecError as error:
            problems += error.problems
        if found:
            problems += [*found.warnings, *check(found)]
        self._tell(problems)
        if self._broken or found is None:
            self.register_outputs({})
            return
        self._installation = found
        made = self._make_definitions(self._component_name, crds, keep=given.get("keep_crds", True))
        installed = self._install_chart(
            self._component_name, found, given, before=[*made, *after], skip_crds=bool(made)
        )
        self.resources = installed.resources
        self.release_name, self.namespace = installed.release_name, installed.namespace
        self.version, self.device_classes = installed.version, installed.device_classes
        self.register_outputs(
            {
                "releaseName": self.release_name,
                "namespace": self.namespace,
                "deviceClasses": list(self.device_classes),
            }
        )


class GpuOperator(ChartInstallation):
    """NVIDIA's GPU Operator: kernel driver, container toolkit, labels, metrics; with a GPUCluster the DRA driver too.

    Takes also the arguments of every installation, which `DraDriver` lists from `chart` on.

    Args:
        name: Name of the component, and of the helm release unless `release_name` is given.
        version: Version of the chart, `"26.7.0"`; else the newest whose values are known.
        device_plugin: The device plugin. Off, where a DRA driver gives out the GPUs.
        driver: Install NVIDIA's kernel driver; False where the nodes bring it.
        kernel_driver: Version of the kernel driver.
        kernel_module_type: Kernel modules to install.
        nvidia_driver_crd: Install the kernel driver by an NVIDIADriver object; a GPUCluster needs it.
        driver_install_dir: Where the kernel driver is on nodes.
        eviction_label: Label of nodes that is taken away before the kernel driver is unloaded.
        toolkit: Install the container toolkit.
        toolkit_install_dir: Folder of the container toolkit on nodes.
        toolkit_env: Environment of the toolkit, as in a container.
        cdi: CDI, which DRA drivers need.
        mig_strategy: How the device plugin shows MIG devices.
        mig_manager: The manager of static MIG.
        mig_config: The configuration of nodes without a label for another one, `"all-disabled"`.
        gpu_feature_discovery: Labels of GPUs, `nvidia.com/gpu.clique` among them.
        node_feature_discovery: Labels of nodes; False where NFD runs already.
        dcgm_exporter: Metrics of GPUs.
        dcgm_claims: Pods and claims of DRA in these metrics; follows from a device plugin that is off.
        service_monitor: A ServiceMonitor for them; needs the CRDs of the Prometheus operator.
        gpu_cluster: A GPUCluster, which brings the DRA driver, instead of a ClusterPolicy; from 26.7 on.
        gates: Feature gates of the DRA driver of a GPUCluster.
        compute_domains: ComputeDomains of a GPUCluster.
        daemonset_tolerations: Tolerations of all that runs on GPU nodes.
        operator_node_selector: Labels of nodes that the operator itself runs on.
        operator_tolerations: Tolerations of the operator itself.
        upgrade_crds: Let a hook of the chart upgrade its CRDs; off where `crds` is given.
        target: The cluster; else the parent's, else the stack's.
        opts: Pulumi resource options.

    Example:
        ```python
        operator = dra.GpuOperator("gpu-operator", device_plugin=False)
        ```
    """

    @reports_unknown_arguments
    @takes(GpuOperatorPart)
    def __init__(
        self,
        name: str,
        *,
        target: ClusterTarget | None = None,
        opts: pulumi.ResourceOptions | None = None,
        **arguments: Unpack[GpuOperatorPart],
    ) -> None:
        super().__init__(name, target=target, opts=opts)
        self._make(arguments, lambda given: compile_operator(given, target=self.target))


class DraDriver(ChartInstallation):
    """The NVIDIA DRA driver for GPUs, by its own chart.

    Args:
        name: Name of the component, and of the helm release unless `release_name` is given.
        version: Version of the chart, `"0.5.0"` or `"25.8.1"`; else the newest one of the stack's `dra-infra:driver`.
        operator: The `GpuOperator` of the cluster: it is installed first, and both are checked together.
        gpus: Let the driver allocate GPUs; False installs it for ComputeDomains only.
        compute_domains: Serve ComputeDomains; they have the controller.
        gpu_resources_enabled_override: Says that no device plugin runs on the nodes, without which the chart fails;
            follows from an `operator` whose device plugin is off.
        gates: Feature gates of the driver: `{"TimeSlicingSettings": True, "MPSSupport": True}`.
        nvidia_driver_root: Where NVIDIA's kernel driver is on nodes; follows from an `operator` that installs it.
        consumable_shares: How claims share devices: `"memory"`, `"unlimited"`, or a number; from 0.5 on.
        imex_mode: Who runs the daemons of ComputeDomains; from 0.5 on.
        gpu_clique_label: Write the label of the NVLink clique without GPU feature discovery; from 0.5 on.
        resource_api_version: Pinned version of resource.k8s.io; else the newest that is served.
        log_verbosity: Level of klog.
        image_pull_secrets: Names of Secrets.
        priority_class_name: Priority class of plugin and controller.
        plugin_node_selector: Labels of nodes that the plugin runs on, beside those that the chart asks for.
        plugin_tolerations: Tolerations of the plugin, instead of the chart's.
        controller_node_selector: Labels of nodes that the controller runs on, such as system nodes. Up to 25.12 it
            takes the place of the chart's affinity, which asks for control plane nodes.
        controller_tolerations: Tolerations of the controller, instead of the chart's.
        controller_replicas: Replicas of the controller; from 0.4 on.
        network_policies: Network policies for both; from 25.12 on.
        webhook: The webhook that checks configs of claims.
        webhook_failure_policy: What the API server does with claims while the webhook does not answer: refuse them (`Fail`) or accept them (`Ignore`).
        webhook_tls_mode: Who makes the webhook's certificate: cert-manager, or you by a Secret.
        webhook_issuer_type: Kind of cert-manager's issuer.
        webhook_issuer_name: Name of the issuer.
        webhook_secret_name: Name of the Secret with the webhook's certificate.
        webhook_ca_bundle: Certificate of the authority, in base64.
        name_override: The name in its objects; `"nvidia-dra-driver-gpu"` after an upgrade from 25.12 or older.
        allow_default_namespace: Allow the installation in the namespace `default`.
        upgrade_from: The version that is installed now: the way from there is checked.
        kernel_driver: Version of NVIDIA's kernel driver on the nodes, where no operator installs it: is checked.
        chart: Chart in a folder, archive or registry instead of the published one.
        repository: Repository or registry that holds the chart instead of the publisher's.
        release_name: Name of the helm release.
        namespace: Namespace of the release; else the one that the chart's documentation names. A change of it is a new release.
        create_namespace: Make the Namespace, with labels that let privileged pods in.
        namespace_labels: More labels of the Namespace.
        crds: Folder, file or address of the CRDs: they are applied before the chart, and upgraded with it. Without
            it Helm installs those of the chart once, and never upgrades them.
        keep_crds: Leave the CRDs in the cluster on destroy, as Helm does; with them all their objects would go.
        values: Everything else, as in a values file; checked against that version of the chart.
        timeout: Seconds that helm waits.
        skip_await: Do not wait until its pods are ready.
        atomic: Roll back what fails.
        target: The cluster; else the parent's, else the stack's.
        opts: Pulumi resource options.

    Example:
        ```python
        driver = dra.DraDriver("dra-driver", version="0.5.0", gpu_resources_enabled_override=True)
        trainer = dra.GpuClaimTemplate("trainer", device_class=driver.device_classes["gpu.nvidia.com"])
        ```
    """

    @reports_unknown_arguments
    @takes(DraDriverPart)
    def __init__(
        self,
        name: str,
        *,
        operator: GpuOperator | None = None,
        target: ClusterTarget | None = None,
        opts: pulumi.ResourceOptions | None = None,
        **arguments: Unpack[DraDriverPart],
    ) -> None:
        super().__init__(name, target=target, opts=opts)
        # Hidden from users, not from the driver that is checked together with it.
        theirs = operator._installation if isinstance(operator, GpuOperator) else None  # noqa: SLF001
        follows: Mapping[str, Any] = {}
        if theirs:
            follows = follows_for_driver(theirs)
        elif isinstance(operator, GpuOperator):
            # The operator has told its own problems; what would follow from it is none of the driver's.
            follows = {"gpu_resources_enabled_override": True}
        elif operator is not None:
            self._report([wrong_type("operator", operator, "a GpuOperator")])

        def check(found: Installation) -> Sequence[Problem]:
            return [
                replace(problem, path=problem.path.removeprefix("driver."))
                for problem in (check_together(theirs, found) if theirs else ())
            ]

        self._make(
            arguments,
            lambda given: compile_driver(
                given,
                target=self.target,
                line=self._pins(None).releases["gpu.nvidia.com"].line,
                otherwise=follows,
            ),
            after=list(operator.resources.values()) if isinstance(operator, GpuOperator) else (),
            check=check,
        )


class ExampleDriver(ChartInstallation):
    """Kubernetes' example driver: simulated devices, for trying claims where there are no GPUs.

    Takes also the arguments of every installation, which `DraDriver` lists from `chart` on.

    Args:
        name: Name of the component, and of the helm release unless `release_name` is given.
        version: Version of the chart; else the newest whose values are known.
        profile: Kind of devices that it pretends to have.
        driver_name: Name of the driver, else `gpu.example.com` and the like.
        devices_per_node: Number of devices of each node.
        partitions_per_gpu: Number of partitions that each GPU can be divided into.
        multiple_allocations: Let several claims have a device.
        device_status: Write the status of devices into claims.
        binding_conditions: Devices that have to be attached first.
        extended_resource_name: Extended resource name of its DeviceClass.
        resource_quota: A quota for pods of critical priority, which GKE asks for.
        webhook: The webhook that checks configs of claims.
        image_pull_secrets: Names of Secrets.
        plugin_node_selector: Labels of nodes that it runs on.
        plugin_tolerations: Its tolerations.
        allow_default_namespace: Allow the installation in the namespace `default`.
        target: The cluster; else the parent's, else the stack's.
        opts: Pulumi resource options.

    Example:
        ```python
        example = dra.ExampleDriver("example", devices_per_node=4)
        ```
    """

    @reports_unknown_arguments
    @takes(ExampleDriverPart)
    def __init__(
        self,
        name: str,
        *,
        target: ClusterTarget | None = None,
        opts: pulumi.ResourceOptions | None = None,
        **arguments: Unpack[ExampleDriverPart],
    ) -> None:
        super().__init__(name, target=target, opts=opts)
        self._make(arguments, lambda given: compile_example_driver(given, target=self.target))
