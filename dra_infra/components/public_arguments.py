"""The arguments of each component as a TypedDict, for wrappers with `**arguments: Unpack[GpuClaimTemplateArgs]`.

`make golden` writes this module from the signatures and docstrings of the components. Do not edit it by hand.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Required, TypedDict

import pulumi
from pulumi.output import Output, T  # noqa: F401  (`Input` refers to them in a text, for `get_type_hints`)

from dra_infra.components.arguments import (
    DraDriverPart,
    ExampleDriverPart,
    GpuOperatorPart,
    NodeLabels,
    NodePluginPart,
    PodTolerations,
)
from dra_infra.components.component import Replace
from dra_infra.components.platform import PlatformName
from dra_infra.components.platform_drivers import GpuOperator
from dra_infra.components.roles import GpuRoles
from dra_infra.components.tenants import Template
from dra_infra.kubernetes.api.pod_security import Level
from dra_infra.selectors.selector import Selector
from dra_infra.specs.device_configs import DeviceConfig, Mps, TimeSlicing
from dra_infra.specs.mig_profiles import Profiles
from dra_infra.specs.pod_security import PodSecurity
from dra_infra.specs.queues import CapacitySource, CounterSource
from dra_infra.specs.requests import (
    Alternative,
    ClassArgument,
    Constraint,
    Count,
    DeviceRequest,
    NamedClass,
    Toleration,
)
from dra_infra.specs.shared_gpus import Across
from dra_infra.target import ClusterTarget


class DeviceTaintArgs(TypedDict, total=False):
    """Arguments of `DeviceTaint`, without its name."""

    key: Required[str]
    """Key of the taint, `"example.com/service"`, that claims tolerate."""
    value: str
    """Value of the taint."""
    effect: Literal["None", "NoSchedule", "NoExecute"]
    """`NoExecute` evicts pods and keeps others away, `NoSchedule` keeps others away, and `None`, since 1.35,
    does nothing: the status of the rule then says how many pods would be evicted."""
    driver: str | None
    """The driver of the devices."""
    pool: str | None
    """Their pool, which is the name of the node for devices of one."""
    device: str | None
    """Name of one device."""
    object_name: pulumi.Input[str] | None
    """Name of the DeviceTaintRule object; the component's name when left out."""
    labels: Mapping[str, pulumi.Input[str]] | None
    """Labels of the object."""
    annotations: Mapping[str, pulumi.Input[str]] | None
    """Annotations of the object."""
    target: ClusterTarget | None
    """The cluster to compile for; else the parent's, else the stack's. It has to name a minor."""
    opts: pulumi.ResourceOptions | None
    """Pulumi resource options."""


class DraDriverArgs(TypedDict, total=False):
    """Arguments of `DraDriver`, without its name."""

    operator: GpuOperator | None
    """The `GpuOperator` of the cluster: it is installed first, and both are checked together."""
    target: ClusterTarget | None
    """The cluster; else the parent's, else the stack's."""
    opts: pulumi.ResourceOptions | None
    """Pulumi resource options."""
    version: str
    """Version of the chart, `"0.5.0"` or `"25.8.1"`; else the newest one of the stack's
    `dra-infra:driver`."""
    chart: str
    """Chart in a folder, archive or registry instead of the published one."""
    repository: str
    """Repository or registry that holds the chart instead of the publisher's."""
    release_name: pulumi.Input[str]
    """Name of the helm release."""
    namespace: pulumi.Input[str]
    """Namespace of the release; else the one that the chart's documentation names. A change of it is a new
    release."""
    create_namespace: bool
    """Make the Namespace, with labels that let privileged pods in."""
    namespace_labels: Mapping[str, pulumi.Input[str]]
    """More labels of the Namespace."""
    crds: str | Sequence[str]
    """Folder, file or address of the CRDs: they are applied before the chart, and upgraded with it. Without
    it Helm installs those of the chart once, and never upgrades them."""
    keep_crds: bool
    """Leave the CRDs in the cluster on destroy, as Helm does; with them all their objects would go."""
    values: Mapping[str, Any]
    """Everything else, as in a values file; checked against that version of the chart."""
    timeout: int
    """Seconds that helm waits."""
    skip_await: bool
    """Do not wait until its pods are ready."""
    atomic: bool
    """Roll back what fails."""
    gpus: bool
    """Let the driver allocate GPUs; False installs it for ComputeDomains only."""
    compute_domains: bool
    """Serve ComputeDomains; they have the controller."""
    gpu_resources_enabled_override: bool
    """Says that no device plugin runs on the nodes, without which the chart fails; follows from an `operator`
    whose device plugin is off."""
    gates: Mapping[str, bool]
    """Feature gates of the driver: `{"TimeSlicingSettings": True, "MPSSupport": True}`."""
    nvidia_driver_root: pulumi.Input[str]
    """Where NVIDIA's kernel driver is on nodes; follows from an `operator` that installs it."""
    consumable_shares: pulumi.Input[str] | int
    """How claims share devices: `"memory"`, `"unlimited"`, or a number; from 0.5 on."""
    imex_mode: Literal["driverManaged", "hostManaged"]
    """Who runs the daemons of ComputeDomains; from 0.5 on."""
    gpu_clique_label: bool
    """Write the label of the NVLink clique without GPU feature discovery; from 0.5 on."""
    resource_api_version: str
    """Pinned version of resource.k8s.io; else the newest that is served."""
    log_verbosity: pulumi.Input[str] | int
    """Level of klog."""
    image_pull_secrets: Sequence[pulumi.Input[str]]
    """Names of Secrets."""
    priority_class_name: pulumi.Input[str]
    """Priority class of plugin and controller."""
    plugin_node_selector: NodeLabels
    """Labels of nodes that the plugin runs on, beside those that the chart asks for."""
    plugin_tolerations: PodTolerations
    """Tolerations of the plugin, instead of the chart's."""
    controller_node_selector: NodeLabels
    """Labels of nodes that the controller runs on, such as system nodes. Up to 25.12 it takes the place of
    the chart's affinity, which asks for control plane nodes."""
    controller_tolerations: PodTolerations
    """Tolerations of the controller, instead of the chart's."""
    controller_replicas: pulumi.Input[int]
    """Replicas of the controller; from 0.4 on."""
    network_policies: bool
    """Network policies for both; from 25.12 on."""
    webhook: bool
    """The webhook that checks configs of claims."""
    webhook_failure_policy: Literal["Fail", "Ignore"]
    """What the API server does with claims while the webhook does not answer: refuse them (`Fail`) or accept
    them (`Ignore`)."""
    webhook_tls_mode: Literal["cert-manager", "secret"]
    """Who makes the webhook's certificate: cert-manager, or you by a Secret."""
    webhook_issuer_type: Literal["selfsigned", "clusterissuer", "issuer"]
    """Kind of cert-manager's issuer."""
    webhook_issuer_name: pulumi.Input[str]
    """Name of the issuer."""
    webhook_secret_name: pulumi.Input[str]
    """Name of the Secret with the webhook's certificate."""
    webhook_ca_bundle: pulumi.Input[str]
    """Certificate of the authority, in base64."""
    name_override: str
    """The name in its objects; `"nvidia-dra-driver-gpu"` after an upgrade from 25.12 or older."""
    allow_default_namespace: bool
    """Allow the installation in the namespace `default`."""
    upgrade_from: str
    """The version that is installed now: the way from there is checked."""
    kernel_driver: str
    """Version of NVIDIA's kernel driver on the nodes, where no operator installs it: is checked."""


class ExampleDriverArgs(TypedDict, total=False):
    """Arguments of `ExampleDriver`, without its name."""

    target: ClusterTarget | None
    """The cluster; else the parent's, else the stack's."""
    opts: pulumi.ResourceOptions | None
    """Pulumi resource options."""
    version: str
    """Version of the chart; else the newest whose values are known."""
    chart: str
    """Chart in a folder, archive or registry instead of the published one."""
    repository: str
    """Repository or registry that holds the chart instead of the publisher's."""
    release_name: pulumi.Input[str]
    """Name of the helm release."""
    namespace: pulumi.Input[str]
    """Namespace of the release; else the one that the chart's documentation names. A change of it is a new
    release."""
    create_namespace: bool
    """Make the Namespace, with labels that let privileged pods in."""
    namespace_labels: Mapping[str, pulumi.Input[str]]
    """More labels of the Namespace."""
    crds: str | Sequence[str]
    """Folder, file or address of the CRDs: they are applied before the chart, and upgraded with it. Without
    it Helm installs those of the chart once, and never upgrades them."""
    keep_crds: bool
    """Leave the CRDs in the cluster on destroy, as Helm does; with them all their objects would go."""
    values: Mapping[str, Any]
    """Everything else, as in a values file; checked against that version of the chart."""
    timeout: int
    """Seconds that helm waits."""
    skip_await: bool
    """Do not wait until its pods are ready."""
    atomic: bool
    """Roll back what fails."""
    profile: Literal["gpu", "cpu", "net"]
    """Kind of devices that it pretends to have."""
    driver_name: pulumi.Input[str]
    """Name of the driver, else `gpu.example.com` and the like."""
    devices_per_node: pulumi.Input[int]
    """Number of devices of each node."""
    partitions_per_gpu: pulumi.Input[int]
    """Number of partitions that each GPU can be divided into."""
    multiple_allocations: bool
    """Let several claims have a device."""
    device_status: bool
    """Write the status of devices into claims."""
    binding_conditions: bool
    """Devices that have to be attached first."""
    extended_resource_name: pulumi.Input[str]
    """Extended resource name of its DeviceClass."""
    resource_quota: bool
    """A quota for pods of critical priority, which GKE asks for."""
    webhook: bool
    """The webhook that checks configs of claims."""
    image_pull_secrets: Sequence[pulumi.Input[str]]
    """Names of Secrets."""
    plugin_node_selector: NodeLabels
    """Labels of nodes that it runs on."""
    plugin_tolerations: PodTolerations
    """Its tolerations."""
    allow_default_namespace: bool
    """Allow the installation in the namespace `default`."""


class GpuClaimArgs(TypedDict, total=False):
    """Arguments of `GpuClaim`, without its name."""

    device_class: ClassArgument | None
    """A `GpuDeviceClass`, `dra.class_ref(...)`, or the name of a class."""
    count: Count | None
    """Number of devices, at most 32 (1 when left out), or `"all"` for every matching device of a node. An
    Output is checked as soon as its value is known."""
    select: Selector | None
    """A selector that each device must match, in addition to the class."""
    first_available: Sequence[Alternative] | None
    """Alternatives instead of a class, the best first: `dra.Alternative("h100", device_class=...)`."""
    tolerations: Sequence[Toleration] | None
    """Device taints to tolerate: `[dra.Toleration(key="gpu.nvidia.com/xid", effect="NoSchedule")]`. Needs the
    gate DRADeviceTaints, on by default from Kubernetes 1.36."""
    capacity: Mapping[str, str] | None
    """What each device must have left, and what is taken of one that several claims share, as Kubernetes
    quantities: `{"memory": "20Gi"}`. Needs the gate DRAConsumableCapacity, on by default from Kubernetes
    1.36."""
    admin_access: bool | None
    """Look at devices that others use, for monitoring, in a namespace with the label
    `resource.kubernetes.io/admin-access: "true"`."""
    requests: Sequence[DeviceRequest] | None
    """Several `dra.DeviceRequest`, or one with a name of your own, at most 32."""
    constraints: Sequence[Constraint]
    """What the devices share or must not share: `[dra.MatchAttribute(dra.gpu.product)]`, `[dra.pair("gpu",
    "nic")]`."""
    configs: Sequence[DeviceConfig]
    """How drivers set the devices up: `dra.GpuConfig(sharing=dra.TimeSlicing(interval="Long"))`."""
    namespace: pulumi.Input[str] | None
    """Namespace of the object; the provider's default when left out."""
    object_name: pulumi.Input[str] | None
    """Name of the object. Left out, it is the component's name and a hash of the spec, so that a change makes
    a new object and workloads roll over to it. An explicit name is kept, and a change of the spec is then
    refused by the API server unless `replace="delete-first"`."""
    labels: Mapping[str, pulumi.Input[str]] | None
    """Labels of the object."""
    annotations: Mapping[str, pulumi.Input[str]] | None
    """Annotations of the object."""
    replace: Replace | None
    """`"delete-first"` deletes an object with an explicit name before it makes the new one."""
    driver_release: str | None
    """Release of the drivers, `"25.8"` or `"0.5"`; else the stack's `dra-infra:driver`, else the newest."""
    driver_gates: Mapping[str, bool] | None
    """Feature gates that the NVIDIA driver is given, as in its chart: `{"MPSSupport": True}`. What needs a
    gate is checked against them; left out, nothing is said of gates."""
    target: ClusterTarget | None
    """The cluster to compile for; else the parent's, else the stack's."""
    opts: pulumi.ResourceOptions | None
    """Pulumi resource options."""


class GpuClaimTemplateArgs(TypedDict, total=False):
    """Arguments of `GpuClaimTemplate`, without its name."""

    device_class: ClassArgument | None
    """A `GpuDeviceClass`, `dra.class_ref(...)`, or the name of a class."""
    count: Count | None
    """Number of devices, at most 32 (1 when left out), or `"all"` for every matching device of a node. An
    Output is checked as soon as its value is known."""
    select: Selector | None
    """A selector that each device must match, in addition to the class."""
    first_available: Sequence[Alternative] | None
    """Alternatives instead of a class, the best first: `dra.Alternative("h100", device_class=...)`."""
    tolerations: Sequence[Toleration] | None
    """Device taints to tolerate: `[dra.Toleration(key="gpu.nvidia.com/xid", effect="NoSchedule")]`. Needs the
    gate DRADeviceTaints, on by default from Kubernetes 1.36."""
    capacity: Mapping[str, str] | None
    """What each device must have left, and what is taken of one that several claims share, as Kubernetes
    quantities: `{"memory": "20Gi"}`. Needs the gate DRAConsumableCapacity, on by default from Kubernetes
    1.36."""
    admin_access: bool | None
    """Look at devices that others use, for monitoring, in a namespace with the label
    `resource.kubernetes.io/admin-access: "true"`."""
    requests: Sequence[DeviceRequest] | None
    """Several `dra.DeviceRequest`, or one with a name of your own, at most 32."""
    constraints: Sequence[Constraint]
    """What the devices share or must not share: `[dra.MatchAttribute(dra.gpu.product)]`, `[dra.pair("gpu",
    "nic")]`."""
    configs: Sequence[DeviceConfig]
    """How drivers set the devices up: `dra.GpuConfig(sharing=dra.TimeSlicing(interval="Long"))`."""
    namespace: pulumi.Input[str] | None
    """Namespace of the object; the provider's default when left out."""
    object_name: pulumi.Input[str] | None
    """Name of the object. Left out, it is the component's name and a hash of the spec, so that a change makes
    a new object and workloads roll over to it. An explicit name is kept, and a change of the spec is then
    refused by the API server unless `replace="delete-first"`."""
    labels: Mapping[str, pulumi.Input[str]] | None
    """Labels of the object."""
    annotations: Mapping[str, pulumi.Input[str]] | None
    """Annotations of the object."""
    replace: Replace | None
    """`"delete-first"` deletes an object with an explicit name before it makes the new one."""
    driver_release: str | None
    """Release of the drivers, `"25.8"` or `"0.5"`; else the stack's `dra-infra:driver`, else the newest."""
    driver_gates: Mapping[str, bool] | None
    """Feature gates that the NVIDIA driver is given, as in its chart: `{"MPSSupport": True}`. What needs a
    gate is checked against them; left out, nothing is said of gates."""
    target: ClusterTarget | None
    """The cluster to compile for; else the parent's, else the stack's."""
    opts: pulumi.ResourceOptions | None
    """Pulumi resource options."""


class GpuDeviceClassArgs(TypedDict, total=False):
    """Arguments of `GpuDeviceClass`, without its name."""

    select: Selector | None
    """What each GPU must pass, such as `dra.gpu.product.contains("H100")`. None takes all of the driver's."""
    driver: str
    """The DRA driver. For `gpu.nvidia.com` the class takes whole GPUs, as the driver's own class does."""
    configs: Sequence[DeviceConfig]
    """How the driver sets the GPUs up, unless a claim says otherwise:
    `[dra.GpuConfig(sharing=dra.TimeSlicing(interval="Long"))]`."""
    extended_resource_name: str | None
    """What pods may ask for in place of a claim, such as `example.com/h100`. Needs the gate
    DRAExtendedResource, on by default from Kubernetes 1.36."""
    driver_release: str | None
    """Release of the drivers, `"25.8"` or `"0.5"`; else the stack's `dra-infra:driver`, else the newest."""
    driver_gates: Mapping[str, bool] | None
    """Feature gates that the NVIDIA driver is given, as in its chart: `{"MPSSupport": True}`. What needs a
    gate is checked against them; left out, nothing is said of gates."""
    object_name: pulumi.Input[str] | None
    """Name of the DeviceClass object; the component's name when left out."""
    labels: Mapping[str, pulumi.Input[str]] | None
    """Labels of the object."""
    annotations: Mapping[str, pulumi.Input[str]] | None
    """Annotations of the object."""
    target: ClusterTarget | None
    """The cluster to compile for; else the parent's, else the stack's."""
    opts: pulumi.ResourceOptions | None
    """Pulumi resource options."""


class GpuGuardrailsArgs(TypedDict, total=False):
    """Arguments of `GpuGuardrails`, without its name."""

    classes: Mapping[str, Sequence[NamedClass | str]] | None
    """Device classes that a namespace may use: `{"vision": [h100, "mig.nvidia.com"]}`. Pods that ask for a
    class as a resource, `deviceclass.resource.kubernetes.io/h100`, are held to it too. A namespace that is
    not named may use all."""
    most_devices: int | None
    """Devices that all requests of one claim may ask for, of alternatives the largest; All counts as 32."""
    all_devices: bool
    """False refuses requests for every device of a node."""
    admin_access: Sequence[str] | None
    """Namespaces in which claims may have admin access: `[]` is none. Left out, the label of the namespace
    decides alone."""
    admin_label: Sequence[str] | None
    """Who may set or take that label: `["group:platform", "user:alice@example.com"]`. Left out, whoever may
    change the Namespace."""
    config_drivers: Sequence[str] | None
    """Drivers for which claims may bring a config of their own, which goes before that of the class: `[]` is
    none."""
    without_device_plugin: Sequence[str]
    """Namespaces in which pods may not ask for `nvidia.com/gpu` and whatever else begins so."""
    extended_resources: Mapping[str, NamedClass | str] | None
    """Extended resource names by which pods ask for classes that are not made here: `{"example.com/a100":
    "a100"}`. Those of a `GpuDeviceClass` in *classes* or here are known."""
    host_paths: Mapping[str, Sequence[str]] | None
    """Paths of nodes that pods of a namespace may mount by hostPath, as they are written: `{"vision":
    ["/mnt/datasets"]}`. Namespaces that are named here, in *classes* or in *without_device_plugin* may mount
    no other path, such as `/dev/nvidia0`, and their pods may not set `nodeName`."""
    node_access: Sequence[str]
    """Namespaces whose pods may mount any path of their node and set `nodeName`, although *classes* or
    *without_device_plugin* names them: `["monitoring"]`."""
    labels: Mapping[str, pulumi.Input[str]] | None
    """Labels of the objects."""
    annotations: Mapping[str, pulumi.Input[str]] | None
    """Annotations of the objects."""
    target: ClusterTarget | None
    """The cluster to compile for; else the parent's, else the stack's."""
    opts: pulumi.ResourceOptions | None
    """Pulumi resource options."""


class GpuMonitoringArgs(TypedDict, total=False):
    """Arguments of `GpuMonitoring`, without its name."""

    namespace: pulumi.Input[str] | None
    """Namespace of its objects; else `default`."""
    selected_by: Mapping[str, pulumi.Input[str]] | None
    """Labels by which Prometheus selects rules and monitors: `{"release": "kube-prometheus-stack"}`."""
    thresholds: Mapping[str, float] | None
    """Above which alerts fire, by alert, where it is not the usual number: `{"KubeDRAPrepareSlow": 30}`."""
    severities: Mapping[str, str] | None
    """`"critical"`, `"warning"` or `"info"`, by alert, where it is not the usual one."""
    without: Sequence[str]
    """Alerts that are left out."""
    jobs: Mapping[str, str] | None
    """Names of the jobs of `kube-controller-manager`, `kube-scheduler` and `kubelet`, where they are called
    otherwise."""
    runbooks: str | None
    """Address of your page of runbooks: alerts link to `<runbooks>#<alert in lower case>`. Left out, to
    nothing."""
    plugin_namespaces: Sequence[pulumi.Input[str]]
    """Namespaces of node plugins: `[plugin.namespace]`. Left out, alerts are on Kubernetes alone. Add another
    one at the end: their objects are numbered, for a namespace may not be known before `pulumi up`."""
    plugin_port: int
    """Their `metrics_port`."""
    dashboard: Mapping[str, pulumi.Input[str]] | None
    """Labels by which Grafana's sidecar finds dashboards; `{}` makes none."""
    labels: Mapping[str, pulumi.Input[str]] | None
    """Labels of the objects."""
    annotations: Mapping[str, pulumi.Input[str]] | None
    """Annotations of the objects."""
    target: ClusterTarget | None
    """The cluster to compile for; else the parent's, else the stack's."""
    opts: pulumi.ResourceOptions | None
    """Pulumi resource options."""


class GpuOperatorArgs(TypedDict, total=False):
    """Arguments of `GpuOperator`, without its name."""

    target: ClusterTarget | None
    """The cluster; else the parent's, else the stack's."""
    opts: pulumi.ResourceOptions | None
    """Pulumi resource options."""
    version: str
    """Version of the chart, `"26.7.0"`; else the newest whose values are known."""
    chart: str
    """Chart in a folder, archive or registry instead of the published one."""
    repository: str
    """Repository or registry that holds the chart instead of the publisher's."""
    release_name: pulumi.Input[str]
    """Name of the helm release."""
    namespace: pulumi.Input[str]
    """Namespace of the release; else the one that the chart's documentation names. A change of it is a new
    release."""
    create_namespace: bool
    """Make the Namespace, with labels that let privileged pods in."""
    namespace_labels: Mapping[str, pulumi.Input[str]]
    """More labels of the Namespace."""
    crds: str | Sequence[str]
    """Folder, file or address of the CRDs: they are applied before the chart, and upgraded with it. Without
    it Helm installs those of the chart once, and never upgrades them."""
    keep_crds: bool
    """Leave the CRDs in the cluster on destroy, as Helm does; with them all their objects would go."""
    values: Mapping[str, Any]
    """Everything else, as in a values file; checked against that version of the chart."""
    timeout: int
    """Seconds that helm waits."""
    skip_await: bool
    """Do not wait until its pods are ready."""
    atomic: bool
    """Roll back what fails."""
    device_plugin: bool
    """The device plugin. Off, where a DRA driver gives out the GPUs."""
    driver: bool
    """Install NVIDIA's kernel driver; False where the nodes bring it."""
    kernel_driver: pulumi.Input[str]
    """Version of the kernel driver."""
    kernel_module_type: Literal["auto", "open", "proprietary"]
    """Kernel modules to install."""
    nvidia_driver_crd: bool
    """Install the kernel driver by an NVIDIADriver object; a GPUCluster needs it."""
    driver_install_dir: pulumi.Input[str]
    """Where the kernel driver is on nodes."""
    eviction_label: pulumi.Input[str]
    """Label of nodes that is taken away before the kernel driver is unloaded."""
    toolkit: bool
    """Install the container toolkit."""
    toolkit_install_dir: pulumi.Input[str]
    """Folder of the container toolkit on nodes."""
    toolkit_env: Sequence[Mapping[str, pulumi.Input[str]]]
    """Environment of the toolkit, as in a container."""
    cdi: bool
    """CDI, which DRA drivers need."""
    mig_strategy: Literal["none", "single", "mixed"]
    """How the device plugin shows MIG devices."""
    mig_manager: bool
    """The manager of static MIG."""
    mig_config: pulumi.Input[str]
    """The configuration of nodes without a label for another one, `"all-disabled"`."""
    gpu_feature_discovery: bool
    """Labels of GPUs, `nvidia.com/gpu.clique` among them."""
    node_feature_discovery: bool
    """Labels of nodes; False where NFD runs already."""
    dcgm_exporter: bool
    """Metrics of GPUs."""
    dcgm_claims: bool
    """Pods and claims of DRA in these metrics; follows from a device plugin that is off."""
    service_monitor: bool
    """A ServiceMonitor for them; needs the CRDs of the Prometheus operator."""
    gpu_cluster: bool
    """A GPUCluster, which brings the DRA driver, instead of a ClusterPolicy; from 26.7 on."""
    gates: Mapping[str, bool]
    """Feature gates of the DRA driver of a GPUCluster."""
    compute_domains: bool
    """ComputeDomains of a GPUCluster."""
    daemonset_tolerations: PodTolerations
    """Tolerations of all that runs on GPU nodes."""
    operator_node_selector: NodeLabels
    """Labels of nodes that the operator itself runs on."""
    operator_tolerations: PodTolerations
    """Tolerations of the operator itself."""
    upgrade_crds: bool
    """Let a hook of the chart upgrade its CRDs; off where `crds` is given."""


class GpuPlatformArgs(TypedDict, total=False):
    """Arguments of `GpuPlatform`, without its name."""

    platform: PlatformName | None
    """Where the cluster runs."""
    driver: DraDriverPart | str | bool | None
    """Arguments of `DraDriver`, a version, True for the newest, None for none."""
    operator: GpuOperatorPart | str | bool | None
    """Arguments of `GpuOperator`, a version, True for the newest, None for none."""
    example: ExampleDriverPart | str | bool | None
    """Arguments of `ExampleDriver`, a version, True for the newest."""
    node_plugin: NodePluginPart | Literal["sim", "nvml"] | None
    """Arguments of `NodePlugin`, or its back end: `"sim"` for simulated GPUs, `"nvml"` for those of nodes
    without NVIDIA's chart. Where a chart brings a driver of the same name, that is told."""
    gpu_pools: Mapping[str, Mapping[str, str]] | None
    """Labels of the nodes of each GPU pool; what the installation needs and they lack is told."""
    target: ClusterTarget | None
    """The cluster to install on; else the parent's, else the stack's."""
    opts: pulumi.ResourceOptions | None
    """Pulumi resource options."""


class GpuRolesArgs(TypedDict, total=False):
    """Arguments of `GpuRoles`, without its name."""

    members: Mapping[str, Sequence[str]] | None
    """Who has which role in the whole cluster: `{"on-call": ["group:sre"], "reader":
    ["serviceaccount:ci/runner"]}`."""
    drivers: Mapping[str, Sequence[str]] | None
    """Who publishes devices, by the name of the driver: `{"gpu.acme.example":
    ["serviceaccount:acme/plugin"]}`."""
    labels: Mapping[str, pulumi.Input[str]] | None
    """Labels of the objects."""
    annotations: Mapping[str, pulumi.Input[str]] | None
    """Annotations of the objects."""
    target: ClusterTarget | None
    """The cluster to compile for; else the parent's, else the stack's."""
    opts: pulumi.ResourceOptions | None
    """Pulumi resource options."""


class GpuTenantArgs(TypedDict, total=False):
    """Arguments of `GpuTenant`, without its name."""

    quota: Mapping[ClassArgument, int] | None
    """Devices that claims and pods of the namespace may have at once, by class: `{h100: 8, "mig.nvidia.com":
    7}`; 0 refuses a class. Every key under which the server counts devices of the class is set. `All` counts
    as 32, a share as 1, of a ladder the largest alternative of each class, and admin access like any
    other."""
    hard: Mapping[str, pulumi.Input[str] | int] | None
    """Other keys of the ResourceQuota: `{"requests.cpu": "64", "pods": "100"}`."""
    templates: Mapping[str, Template] | None
    """Claim templates of the namespace, by name: `{"trainer": partial(dra.GpuClaimTemplate,
    device_class=h100)}`. A change deletes the template and makes another of the same name; pods keep the
    claims that they have."""
    tolerations: Sequence[Toleration]
    """Tolerations of each of the templates that has none."""
    members: Mapping[str, Sequence[str]] | None
    """Who may do what in the namespace: `{"team-lead": ["user:alice@example.com"], "developer":
    ["group:vision"]}`. All of them may see which classes and devices there are."""
    roles: GpuRoles | str | None
    """The `GpuRoles` that has the roles of members, or its name where another program makes it."""
    admin_access: bool
    """Let claims of the namespace look at devices that others use. Whoever may make claims there can."""
    pod_security: PodSecurity | Level | None
    """Which pods the API server refuses in the namespace, by the Pod Security Standards: `"baseline"` by
    default, without which a privileged or hostPath pod takes every device of its node without a claim.
    `"restricted"` refuses more, `"privileged"` nothing. `dra.PodSecurity(...)` sets the levels of warnings
    and of the audit log, and versions."""
    namespace: pulumi.Input[str] | None
    """Name of the namespace."""
    create_namespace: bool
    """Make the Namespace. Off where somebody else makes it."""
    namespace_labels: Mapping[str, pulumi.Input[str]] | None
    """Other labels of the Namespace."""
    labels: Mapping[str, pulumi.Input[str]] | None
    """Labels of the ResourceQuota."""
    annotations: Mapping[str, pulumi.Input[str]] | None
    """Annotations of the ResourceQuota."""
    target: ClusterTarget | None
    """The cluster to compile for; else the parent's, else the stack's."""
    opts: pulumi.ResourceOptions | None
    """Pulumi resource options."""


class KueueQueueArgs(TypedDict, total=False):
    """Arguments of `KueueQueue`, without its name."""

    quota: Mapping[ClassArgument, int] | None
    """Devices that are admitted at once, by class: `{h100: 64, "mig.nvidia.com": 56}`. A class counts under
    the name that a ResourceQuota has for it, `h100.deviceclass.resource.k8s.io/devices`."""
    resources: Mapping[str, pulumi.Input[str] | int] | None
    """Other resources: `{"cpu": "960", "memory": "8Ti"}`. A pod that requests a resource that no queue has is
    not admitted."""
    sources: Mapping[str, CounterSource | CapacitySource] | None
    """What classes are charged in place of devices, by the name of one of *resources*:
    `{"example.com/mig-memory": dra.CounterSource("memory", device_classes=["mig.nvidia.com"])}`."""
    namespaces: Sequence[pulumi.Input[str]]
    """Namespaces whose workloads may use the queue: each gets a LocalQueue."""
    flavor: str | None
    """Name of a ResourceFlavor that exists; left out, one is made with the name of the component."""
    node_labels: Mapping[str, pulumi.Input[str]] | None
    """Labels of the nodes that the ResourceFlavor stands for; workloads are held to them."""
    cohort: str | None
    """Cohort of queues that lend each other what they do not use."""
    strategy: Literal["BestEffortFIFO", "StrictFIFO"] | None
    """`BestEffortFIFO`, where a workload that does not fit lets others pass, or `StrictFIFO`."""
    labels: Mapping[str, pulumi.Input[str]] | None
    """Labels of the objects."""
    annotations: Mapping[str, pulumi.Input[str]] | None
    """Annotations of the objects."""
    target: ClusterTarget | None
    """The cluster to compile for; else the parent's, else the stack's."""
    opts: pulumi.ResourceOptions | None
    """Pulumi resource options."""


class MigPartitionArgs(TypedDict, total=False):
    """Arguments of `MigPartition`, without its name."""

    profile: str | None
    """A MIG profile, `"1g.10gb"`. Its request is named `mig`."""
    profiles: Profiles | None
    """Several: `["3g.40gb", "1g.10gb"]` are requests `mig-0` and `mig-1`; `{"1g.10gb": 7}` has counts;
    `{"train": "3g.40gb", "infer": "1g.10gb"}` names the requests, for `attach(..., request="train")`."""
    memory: str | None
    """Instead of profiles: at least so much memory, `"20Gi"`, as NVML reports it. The smallest profile of
    each GPU that has it is taken, as an ordered list of alternatives."""
    compute: int | None
    """Instead of profiles: at least so many compute slices, of the 7 or 4 of a GPU."""
    count: int | None
    """How many devices of `profile`, or of that size; 1 when left out."""
    gpu: str | None
    """The GPU, by its product name or a short one: `"H100"`, `"A100-80GB"`. Any that has the profile when
    left out."""
    same_gpu: bool
    """All devices are on one GPU; refused where they do not fit one."""
    dynamic: bool | None
    """True checks that driver and cluster have DynamicMIG, and that `select` reads nothing that only static
    devices have. What `driver_gates` say when left out."""
    device_class: ClassArgument | None
    """A class of MIG devices; the driver's own, `mig.nvidia.com`, when left out."""
    select: Selector | None
    """A selector that each device must match, in addition to that."""
    tolerations: Sequence[Toleration]
    """Device taints to tolerate."""
    configs: Sequence[DeviceConfig]
    """How the driver sets the devices up: `dra.MigDeviceConfig(sharing=dra.Mps())`."""
    shared: bool
    """Make a ResourceClaim: all pods that refer to it use the same devices, on one node."""
    namespace: pulumi.Input[str] | None
    """Namespace of the object; the provider's default when left out."""
    object_name: pulumi.Input[str] | None
    """Name of the object. Left out, it is the component's name and a hash of the spec, so that a change makes
    a new object and workloads roll over to it. An explicit name is kept, and a change of the spec is then
    refused by the API server unless `replace="delete-first"`."""
    labels: Mapping[str, pulumi.Input[str]] | None
    """Labels of the object."""
    annotations: Mapping[str, pulumi.Input[str]] | None
    """Annotations of the object."""
    replace: Replace | None
    """`"delete-first"` deletes an object with an explicit name before it makes the new one."""
    driver_release: str | None
    """Release of the drivers, `"25.8"` or `"0.5"`; else the stack's `dra-infra:driver`, else the newest."""
    driver_gates: Mapping[str, bool] | None
    """Feature gates that the NVIDIA driver is given, as in its chart: `{"MPSSupport": True}`. What needs a
    gate is checked against them; left out, nothing is said of gates."""
    target: ClusterTarget | None
    """The cluster to compile for; else the parent's, else the stack's."""
    opts: pulumi.ResourceOptions | None
    """Pulumi resource options."""


class NodePluginArgs(TypedDict, total=False):
    """Arguments of `NodePlugin`, without its name."""

    target: ClusterTarget | None
    """The cluster; else the parent's, else the stack's."""
    opts: pulumi.ResourceOptions | None
    """Pulumi resource options."""
    back_end: Literal["sim", "nvml"]
    """Devices that it publishes: `"sim"` makes up those of `fleet`, `"nvml"` has the GPUs of the node."""
    fleet: str
    """What each node has, as for `simulate`: `"hgx-h100"`, `"a100-80gb mig=1g.10gb*7"`; else `"example"`,
    eight simulated GPUs of `gpu.example.com`. For `sim` alone."""
    driver: str
    """Name of the driver; else the fleet's, and `gpu.nvidia.com` for `nvml`."""
    image: pulumi.Input[str]
    """The image, else the one that `make image` builds, `localhost/dra-infra-plugin:<version>`, which has to
    be imported on each node: there is none in any registry. One of a registry is named by its digest,
    `registry.example.com/dra-infra-plugin@sha256:...`: a tag alone is a warning."""
    image_pull_secrets: Sequence[pulumi.Input[str]]
    """Names of Secrets."""
    object_name: str
    """Name of the objects."""
    namespace: pulumi.Input[str]
    """Namespace of its objects, else `dra-infra-plugin`."""
    create_namespace: bool
    """Make the Namespace, with labels that let pods with host paths in."""
    namespace_labels: Mapping[str, pulumi.Input[str]]
    """More labels of the Namespace."""
    labels: Mapping[str, pulumi.Input[str]]
    """Labels of the objects and of the pods."""
    annotations: Mapping[str, pulumi.Input[str]]
    """Annotations of the objects and of the pods."""
    node_selector: NodeLabels
    """Labels of nodes that it runs on, else all."""
    tolerations: PodTolerations
    """Its tolerations, else that of the taint `nvidia.com/gpu`."""
    priority_class_name: pulumi.Input[str]
    """Priority class of its pods, else `system-node-critical`."""
    resources: Mapping[str, Any]
    """Requests and limits of its container."""
    host_network: bool
    """Use the network of the node, where pods cannot reach the API server otherwise. Ports of a node can be
    had once, so an update then stops the old pod before the new one starts."""
    log_level: Literal["error", "warning", "info", "debug"]
    """Least level of messages that are logged."""
    metrics_port: int
    """Port of `/metrics`, else 8080."""
    health_port: int
    """Port of liveness and readiness over gRPC, else 51515. A NetworkPolicy keeps all pods from it."""
    metrics_namespaces: Sequence[pulumi.Input[str]]
    """Names of the namespaces whose pods may read metrics, else all; `[]` is none."""
    kubelet_root: str
    """The kubelet's folder on nodes, else `/var/lib/kubelet`."""
    cdi_folder: str
    """Where the container runtime reads CDI specs, else `/var/run/cdi`."""
    nvidia_driver_root: str
    """Where NVIDIA's kernel driver is on nodes, else `/`. For `nvml` alone."""
    settings: Mapping[str, pulumi.Input[str]]
    """Other settings of the plugin, by name: `{"mig_delay": "2s"}`."""
    env: Mapping[str, pulumi.Input[str]]
    """Variables of the container that are no settings, such as `KUBERNETES_SERVICE_HOST` where the API server
    is not at the address of its service."""
    classes: bool
    """Make the DeviceClasses that the driver's own chart would bring. Off for a second plugin of one
    driver."""
    binding_conditions: bool
    """Let it find claims, and set conditions of its devices in them. For `sim` alone."""
    openshift: bool
    """Let its pods be privileged on OpenShift, where SecurityContextConstraints decide beside the labels of
    the Namespace. `GpuPlatform(platform="openshift")` says so."""


class NvlinkGroupArgs(TypedDict, total=False):
    """Arguments of `NvlinkGroup`, without its name."""

    gpus: int | None
    """GPUs of the group."""
    on: str | None
    """The system, `"hgx-h100"` or `"gb200-nvl72"`; `dra-infra catalog systems` lists them."""
    gpu: str | None
    """The product, `"B200"`: enough where every server that takes it joins it, else beside `on`."""
    gpus_per_pod: int | None
    """GPUs of each pod; left out, one pod where a node has enough, else as many as divide the group."""
    device_class: ClassArgument
    """The class of the GPUs: a `GpuDeviceClass`, `dra.class_ref(...)`, or the name of a class."""
    select: Selector | None
    """What each GPU must pass beyond being of the product."""
    tolerations: Sequence[Toleration]
    """Device taints to tolerate."""
    allocation_mode: Literal["Single", "All"] | None
    """`"All"` gives the pods every IMEX channel of the ComputeDomain; `"Single"` is the default."""
    imex_mode: Literal["driverManaged", "hostManaged"] | None
    """The driver chart's `resources.computeDomains.imex.mode`, where it is not `"driverManaged"`."""
    namespace: pulumi.Input[str] | None
    """Namespace of the object; the provider's default when left out."""
    object_name: pulumi.Input[str] | None
    """Name of the objects. Left out, names end in a hash of what they are made of, as those of claims do."""
    labels: Mapping[str, pulumi.Input[str]] | None
    """Labels of the object."""
    annotations: Mapping[str, pulumi.Input[str]] | None
    """Annotations of the object."""
    replace: Replace | None
    """`"delete-first"` deletes an object with an explicit name before it makes the new one."""
    driver_release: str | None
    """Release of the drivers, `"25.8"` or `"0.5"`; else the stack's `dra-infra:driver`, else the newest."""
    driver_gates: Mapping[str, bool] | None
    """Feature gates that the NVIDIA driver is given, as in its chart: `{"MPSSupport": True}`. What needs a
    gate is checked against them; left out, nothing is said of gates."""
    target: ClusterTarget | None
    """The cluster to compile for; else the parent's, else the stack's."""
    opts: pulumi.ResourceOptions | None
    """Pulumi resource options."""


class SharedGpuArgs(TypedDict, total=False):
    """Arguments of `SharedGpu`, without its name."""

    device_class: ClassArgument
    """A `GpuDeviceClass`, `dra.class_ref(...)`, or the name of a class."""
    select: Selector | None
    """What the GPU must pass beyond the class."""
    across: Across
    """Who shares a whole GPU: the `"containers"` of each pod, or `"pods"` on one node."""
    consumers: int | None
    """How many pods will use it, at most 256, to be checked; under `across="pods"`."""
    sharing: TimeSlicing | Mps | None
    """How the driver divides a whole GPU: `dra.TimeSlicing(interval="Long")` or
    `dra.Mps(active_thread_percentage=25)`; left out, processes take turns as the GPU does by default."""
    memory: str | None
    """Memory of the GPU that each claim takes, a Kubernetes quantity: `"20Gi"`."""
    shares: int | None
    """Shares of the GPU that each claim takes, of those that the driver is set to make
    (`consumableShares`)."""
    namespace: pulumi.Input[str] | None
    """Namespace of the object; the provider's default when left out."""
    object_name: pulumi.Input[str] | None
    """Name of the object. Left out, it is the component's name and a hash of the spec, so that a change makes
    a new object and workloads roll over to it. An explicit name is kept, and a change of the spec is then
    refused by the API server unless `replace="delete-first"`."""
    labels: Mapping[str, pulumi.Input[str]] | None
    """Labels of the object."""
    annotations: Mapping[str, pulumi.Input[str]] | None
    """Annotations of the object."""
    replace: Replace | None
    """`"delete-first"` deletes an object with an explicit name before it makes the new one."""
    driver_release: str | None
    """Release of the drivers, `"25.8"` or `"0.5"`; else the stack's `dra-infra:driver`, else the newest."""
    driver_gates: Mapping[str, bool] | None
    """Feature gates that the NVIDIA driver is given, as in its chart: `{"MPSSupport": True}`. What needs a
    gate is checked against them; left out, nothing is said of gates."""
    target: ClusterTarget | None
    """The cluster to compile for; else the parent's, else the stack's."""
    opts: pulumi.ResourceOptions | None
    """Pulumi resource options."""
