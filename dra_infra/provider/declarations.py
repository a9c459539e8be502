"""Types of the package for all languages, from which Pulumi infers its schema: components, objects and enums.

`make golden` writes this module from the signatures and docstrings of the components. Do not edit it by hand.
"""

from enum import Enum
from typing import Any, Required, TypedDict

import pulumi


class AllocationMode(Enum):
    """IMEX channels that a pod gets."""

    Single = "Single"
    All = "All"


class BackEnd(Enum):
    """Devices that the node plugin publishes."""

    Sim = "sim"
    Nvml = "nvml"


class WebhookTlsMode(Enum):
    """Who makes the webhook's certificate."""

    CertManager = "cert-manager"
    Given = "secret"


class DeviceTaintEffect(Enum):
    """What a taint does to pods."""

    NoEffect = "None"
    NoSchedule = "NoSchedule"
    NoExecute = "NoExecute"


class ExampleProfile(Enum):
    """Kind of devices that the example driver pretends to have."""

    Gpu = "gpu"
    Cpu = "cpu"
    Net = "net"


class FailurePolicy(Enum):
    """What the API server does while the webhook does not answer."""

    Fail = "Fail"
    Ignore = "Ignore"


class ImexMode(Enum):
    """Who runs the daemons of ComputeDomains."""

    DriverManaged = "driverManaged"
    HostManaged = "hostManaged"


class IssuerType(Enum):
    """Kind of cert-manager's issuer."""

    Selfsigned = "selfsigned"
    Clusterissuer = "clusterissuer"
    Issuer = "issuer"


class KernelModuleType(Enum):
    """Kernel modules to install."""

    Auto = "auto"
    Open = "open"
    Proprietary = "proprietary"


class LogLevel(Enum):
    """Least level of messages that are logged."""

    Error = "error"
    Warning = "warning"
    Info = "info"
    Debug = "debug"


class MigStrategy(Enum):
    """How the device plugin shows MIG devices."""

    NoDevices = "none"
    Single = "single"
    Mixed = "mixed"


class PlatformName(Enum):
    """Where the cluster runs."""

    Aks = "aks"
    Gke = "gke"
    Eks = "eks"
    Kubeadm = "kubeadm"
    Kind = "kind"
    Openshift = "openshift"


class PodSecurityLevel(Enum):
    """A level of the Pod Security Standards."""

    Privileged = "privileged"
    Baseline = "baseline"
    Restricted = "restricted"


class QueueStrategy(Enum):
    """Which workload of a queue is admitted next."""

    BestEffortFIFO = "BestEffortFIFO"
    StrictFIFO = "StrictFIFO"


class Replace(Enum):
    """How an object with an explicit name is changed."""

    DeleteFirst = "delete-first"


class SharedAcross(Enum):
    """Who shares a whole GPU."""

    Containers = "containers"
    Pods = "pods"


class TaintOperator(Enum):
    """How a toleration compares the value of a taint."""

    Exists = "Exists"
    Equal = "Equal"


class TimeSlice(Enum):
    """Length of a slice of time."""

    Default = "Default"
    Short = "Short"
    Medium = "Medium"
    Long = "Long"


class TolerationEffect(Enum):
    """Effect of the taints that are tolerated."""

    NoSchedule = "NoSchedule"
    NoExecute = "NoExecute"


class VfioBackend(Enum):
    """How a GPU is handed to a virtual machine."""

    LegacyOnly = "LegacyOnly"
    PreferIommuFD = "PreferIommuFD"


class Match(TypedDict, total=False):
    """What a device must be. All fields that are given must hold."""

    driver: str
    """Name of the driver of the device."""
    product: str
    """A part of the product's name: `H100`, `A100-SXM4-80GB`."""
    architecture: str
    """The architecture: `Ampere`, `Hopper`, `Blackwell`."""
    brand: str
    """The brand: `Nvidia`, `Tesla`."""
    type: str
    """Type of the device: `gpu`, `mig` or `vfio`."""
    profile: str
    """The MIG profile: `1g.10gb`."""
    uuid: str
    """UUID of the device."""
    memory_at_least: str
    """Least memory, as NVML reports it, a little below the nominal size: `79Gi` for a card of 80 GB."""
    compute_capability_at_least: str
    """Least CUDA compute capability: `9.0.0` for Hopper."""
    driver_version_at_least: str
    """Least version of the kernel driver: `580.126.20`."""
    cuda_version_at_least: str
    """Least CUDA version that the kernel driver runs: `13.0.0`."""
    numa_node: int
    """The NUMA node."""
    attributes: dict[str, Any]
    """Attributes of any driver by their full name, with the value that they have: `{gpu.example.com/index:
    0}`."""
    capacity_at_least: dict[str, str]
    """Capacities of any driver by their full name, with the least amount: `{gpu.example.com/memory:
    40Gi}`."""


class TimeSlicing(TypedDict, total=False):
    """Processes take turns on whole GPUs."""

    interval: TimeSlice
    """Length of a slice, as `nvidia-smi compute-policy --set-timeslice` knows it."""


class Mps(TypedDict, total=False):
    """Processes share GPUs or MIG devices at the same time, through NVIDIA's Multi-Process Service."""

    active_thread_percentage: int
    """Part of the threads that each process may use, 0 to 100; no limit when left out."""
    pinned_device_memory_limit: str
    """Device memory that each process may pin, `"10Gi"`, at least 1Mi; no limit when left out."""
    per_device_pinned_memory_limit: dict[str, str]
    """The same by device: by UUID, or by the index of the device in the alphabetical order of UUIDs."""
    multi_user: bool
    """Whether processes of different users may share; from driver 0.5 on, compute capability 7.0."""


class SpacePartitioning(TypedDict, total=False):
    """The example driver's pretence of equal parts of a GPU."""

    partition_count: int
    """Number of parts, from 0 on."""


class Sharing(TypedDict, total=False):
    """How processes share a device: one of the fields."""

    time_slicing: TimeSlicing
    """Processes take turns on whole GPUs."""
    mps: Mps
    """Processes share GPUs or MIG devices at the same time, through NVIDIA's Multi-Process Service."""
    space_partitioning: SpacePartitioning
    """The example driver's pretence of equal parts of a GPU."""


class ClusterTarget(TypedDict, total=False):
    """The cluster that objects are meant for."""

    kubernetes: str
    """Minor version, `1.37`. Left out, objects are checked for the oldest and the newest that are
    supported."""
    gates: dict[str, bool]
    """Feature gates that the cluster sets otherwise than its minor does: `{DRAAdminAccess: false}`."""


class Toleration(TypedDict, total=False):
    """Lets a request take devices with taints that match, such as those of a driver's health check."""

    key: str
    """Key of the taint, `"gpu.nvidia.com/xid"`; empty matches all keys, and needs `operator: Exists`."""
    operator: TaintOperator
    """`Exists` for any value, `Equal` for `value`."""
    value: str
    """Value of the taint under `Equal`."""
    effect: TolerationEffect
    """Left out, both for the scheduler; pods are then not kept from being evicted."""
    seconds: int
    """How long a taint `NoExecute` is tolerated; for ever when left out."""


class Alternative(TypedDict, total=False):
    """One way to meet a request, of those that `DeviceRequest(firstAvailable=[...])` lists."""

    name: Required[str]
    """Name of the alternative, a DNS label; configs and constraints refer to it as `request/alternative`."""
    device_class: Required[pulumi.Input[str]]
    """Name of a DeviceClass, such as `${h100.objectName}` in YAML."""
    count: pulumi.Input[int]
    """Number of devices, at most 32; 1 when left out. It is checked as soon as it is known."""
    all_devices: bool
    """`true` takes every device of a node that matches, in place of `count`."""
    select: str
    """A test in CEL that each device must pass."""
    match: Match
    """What each device must be, by fields. Beside `select`, devices must pass both."""
    tolerations: list[Toleration]
    """Device taints to tolerate. Needs the gate DRADeviceTaints, on by default from Kubernetes 1.36."""
    capacity: dict[str, str]
    """What each device must have left, and what is taken of one that several claims share: `{"memory":
    "20Gi"}`."""


class DeviceRequest(TypedDict, total=False):
    """One named request of a claim: devices of one class, or the first of several alternatives that can be had."""

    name: Required[str]
    """Name of the request, a DNS label, by which containers refer to it."""
    device_class: pulumi.Input[str]
    """Name of a DeviceClass, such as `${h100.objectName}` in YAML."""
    count: pulumi.Input[int]
    """Number of devices, at most 32; 1 when left out. It is checked as soon as it is known."""
    all_devices: bool
    """`true` takes every device of a node that matches, in place of `count`."""
    select: str
    """A test in CEL that each device must pass."""
    match: Match
    """What each device must be, by fields. Beside `select`, devices must pass both."""
    first_available: list[Alternative]
    """Alternatives in place of a class, the best first."""
    tolerations: list[Toleration]
    """Device taints to tolerate. Needs the gate DRADeviceTaints, on by default from Kubernetes 1.36."""
    capacity: dict[str, str]
    """What each device must have left, and what is taken of one that several claims share: `{"memory":
    "20Gi"}`. Needs the gate DRAConsumableCapacity, on by default from Kubernetes 1.36."""
    admin_access: bool
    """Look at devices that others use, for monitoring, in a namespace with the label
    `resource.kubernetes.io/admin-access: "true"`."""


class Constraint(TypedDict, total=False):
    """What devices share or must not share: one of the two attributes."""

    match_attribute: str
    """The attribute that has one value on all devices. By its full name, `gpu.nvidia.com/productName`."""
    distinct_attribute: str
    """The attribute whose value no two devices share. By its full name, `gpu.nvidia.com/productName`."""
    requests: list[str]
    """Names of the requests that it is for, alternatives as `request/alternative`; none for all."""


class MigDeviceConfig(TypedDict, total=False):
    """How MIG devices of NVIDIA's driver are shared by the processes that use them."""

    sharing: Sharing
    """How the processes that use a device share it; left out, as the driver does by default."""


class VfioDeviceConfig(TypedDict, total=False):
    """How GPUs are handed to virtual machines, from driver 25.12 on with the feature gate PassthroughSupport."""

    backend_policy: VfioBackend
    """`LegacyOnly`, which the driver takes without one, or `PreferIommuFD`; from driver 0.4 on."""
    enable_api_device: bool
    """Whether containers get `/dev/vfio/vfio` or `/dev/iommu`; from driver 0.4 on."""


class ComputeDomainChannelConfig(TypedDict, total=False):
    """The ComputeDomain that a channel belongs to."""

    domain_id: Required[pulumi.Input[str]]
    """UID of the ComputeDomain, most often a Pulumi Output."""
    allocation_mode: AllocationMode
    """`Single` channel, or `All` of the domain; from driver 25.8 on."""


class ExampleGpuConfig(TypedDict, total=False):
    """The `GpuConfig` of the DRA example driver, which changes nothing but variables in the containers."""

    driver: str
    """Its name, which the chart value `driverName` may change."""
    sharing: Sharing
    """How the processes that use a device share it; left out, as the driver does by default."""


class OpaqueConfig(TypedDict, total=False):
    """Parameters as a driver reads them, for drivers and kinds that have no type here."""

    driver: Required[str]
    """Name of the DRA driver."""
    parameters: Required[Any]
    """A JSON object, by custom with `apiVersion` and `kind`."""


class DeviceConfig(TypedDict, total=False):
    """How a driver sets devices up: `requests`, and one of the other fields. Of the configs for one device only the last one counts."""

    time_slicing: TimeSlicing
    """Whole GPUs of NVIDIA's driver, whose processes take turns."""
    mps: Mps
    """Whole GPUs of NVIDIA's driver, which processes share through MPS."""
    mig: MigDeviceConfig
    """How MIG devices of NVIDIA's driver are shared by the processes that use them."""
    vfio: VfioDeviceConfig
    """How GPUs are handed to virtual machines, from driver 25.12 on with the feature gate
    PassthroughSupport."""
    channel: ComputeDomainChannelConfig
    """The ComputeDomain that a channel belongs to."""
    example: ExampleGpuConfig
    """The `GpuConfig` of the DRA example driver, which changes nothing but variables in the containers."""
    opaque: OpaqueConfig
    """Parameters as a driver reads them, for drivers and kinds that have no type here."""
    requests: list[str]
    """Names of the requests that it is for, alternatives as `request/alternative`; none for all. Those of a
    class have none."""


class PodSecurity(TypedDict, total=False):
    """Which pods the API server refuses in a namespace, and which it only reports."""

    enforce: PodSecurityLevel
    """Pods that break this level are refused: `"privileged"`, `"baseline"` or `"restricted"`."""
    audit: PodSecurityLevel
    """Pods and workloads that break this level are marked in the audit log; by default the level of
    `enforce`."""
    warn: PodSecurityLevel
    """Whoever creates a pod or a workload that breaks this level gets a warning; by default the level of
    `enforce`."""
    enforce_version: str
    """The Kubernetes minor whose rules `enforce` follows: `"v1.37"`, or `"latest"`. By default the setting of
    the cluster, which is `latest` unless its administrator changed it."""
    audit_version: str
    """The Kubernetes minor whose rules `audit` follows."""
    warn_version: str
    """The Kubernetes minor whose rules `warn` follows."""


class CounterSource(TypedDict, total=False):
    """Charges a queue what partitions consume of a counter, such as the memory of MIG devices, in place of their number."""

    name: Required[str]
    """Name of the counter: `"memory"`. It counts in all counter sets of the driver."""
    device_classes: Required[list[pulumi.Input[str]]]
    """Names of DeviceClasses, at most 8."""
    driver: str
    """The DRA driver whose partitions are looked at."""
    select: str
    """A test in CEL for the partitions; all when left out. The one that consumes most is charged."""
    match: Match
    """What each device must be, by fields. Beside `select`, devices must pass both."""


class CapacitySource(TypedDict, total=False):
    """Charges a queue the shares that claims take of a capacity, such as the memory of GPUs that several claims share."""

    name: Required[str]
    """Name of the capacity as the driver publishes it: `"memory"`."""
    device_classes: Required[list[pulumi.Input[str]]]
    """Names of DeviceClasses, at most 8."""
    driver: str
    """The DRA driver whose devices are looked at."""
    select: str
    """A test in CEL for the devices; all when left out."""
    match: Match
    """What each device must be, by fields. Beside `select`, devices must pass both."""


class QueueSource(TypedDict, total=False):
    """What a queue is charged in place of devices: one of the fields."""

    counter: CounterSource
    """Charges a queue what partitions consume of a counter, such as the memory of MIG devices, in place of
    their number."""
    capacity: CapacitySource
    """Charges a queue the shares that claims take of a capacity, such as the memory of GPUs that several
    claims share."""


class DraDriverPart(TypedDict, total=False):
    """`DraDriver`, as a part of a platform."""

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
    namespace_labels: dict[str, pulumi.Input[str]]
    """More labels of the Namespace."""
    crds: list[str]
    """Folders, files or addresses of the CRDs: they are applied before the chart, and upgraded with it.
    Without them Helm installs those of the chart once, and never upgrades them. The provider reads files from
    the folder of your project."""
    keep_crds: bool
    """Leave the CRDs in the cluster on destroy, as Helm does; with them all their objects would go."""
    values: dict[str, Any]
    """Everything else, as in a values file; checked against that version of the chart."""
    timeout: int
    """Seconds that helm waits."""
    skip_await: bool
    """Do not wait until its pods are ready."""
    atomic: bool
    """Roll back what fails."""
    gpus: bool
    """Let the driver allocate GPUs; `false` installs it for ComputeDomains only."""
    compute_domains: bool
    """Serve ComputeDomains; they have the controller."""
    gpu_resources_enabled_override: bool
    """Says that no device plugin runs on the nodes, without which the chart fails; follows from an `operator`
    whose device plugin is off."""
    gates: dict[str, bool]
    """Feature gates of the driver: `{"TimeSlicingSettings": true, "MPSSupport": true}`."""
    nvidia_driver_root: pulumi.Input[str]
    """Where NVIDIA's kernel driver is on nodes; follows from an `operator` that installs it."""
    consumable_shares: pulumi.Input[str]
    """How claims share devices: `"memory"`, `"unlimited"`, or a number; from 0.5 on."""
    imex_mode: ImexMode
    """Who runs the daemons of ComputeDomains; from 0.5 on."""
    gpu_clique_label: bool
    """Write the label of the NVLink clique without GPU feature discovery; from 0.5 on."""
    resource_api_version: str
    """Pinned version of resource.k8s.io; else the newest that is served."""
    log_verbosity: pulumi.Input[str]
    """Level of klog."""
    image_pull_secrets: list[pulumi.Input[str]]
    """Names of Secrets."""
    priority_class_name: pulumi.Input[str]
    """Priority class of plugin and controller."""
    plugin_node_selector: dict[str, pulumi.Input[str]]
    """Labels of nodes that the plugin runs on, beside those that the chart asks for."""
    plugin_tolerations: list[dict[str, Any]]
    """Tolerations of the plugin, instead of the chart's."""
    controller_node_selector: dict[str, pulumi.Input[str]]
    """Labels of nodes that the controller runs on, such as system nodes. Up to 25.12 it takes the place of
    the chart's affinity, which asks for control plane nodes."""
    controller_tolerations: list[dict[str, Any]]
    """Tolerations of the controller, instead of the chart's."""
    controller_replicas: pulumi.Input[int]
    """Replicas of the controller; from 0.4 on."""
    network_policies: bool
    """Network policies for both; from 25.12 on."""
    webhook: bool
    """The webhook that checks configs of claims."""
    webhook_failure_policy: FailurePolicy
    """What the API server does with claims while the webhook does not answer: refuse them (`Fail`) or accept
    them (`Ignore`)."""
    webhook_tls_mode: WebhookTlsMode
    """Who makes the webhook's certificate: cert-manager, or you by a Secret."""
    webhook_issuer_type: IssuerType
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


class GpuOperatorPart(TypedDict, total=False):
    """`GpuOperator`, as a part of a platform."""

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
    namespace_labels: dict[str, pulumi.Input[str]]
    """More labels of the Namespace."""
    crds: list[str]
    """Folder, file or address of the CRDs: they are applied before the chart, and upgraded with it. Without
    it Helm installs those of the chart once, and never upgrades them."""
    keep_crds: bool
    """Leave the CRDs in the cluster on destroy, as Helm does; with them all their objects would go."""
    values: dict[str, Any]
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
    """Install NVIDIA's kernel driver; `false` where the nodes bring it."""
    kernel_driver: pulumi.Input[str]
    """Version of the kernel driver."""
    kernel_module_type: KernelModuleType
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
    toolkit_env: list[dict[str, pulumi.Input[str]]]
    """Environment of the toolkit, as in a container."""
    cdi: bool
    """CDI, which DRA drivers need."""
    mig_strategy: MigStrategy
    """How the device plugin shows MIG devices."""
    mig_manager: bool
    """The manager of static MIG."""
    mig_config: pulumi.Input[str]
    """The configuration of nodes without a label for another one, `"all-disabled"`."""
    gpu_feature_discovery: bool
    """Labels of GPUs, `nvidia.com/gpu.clique` among them."""
    node_feature_discovery: bool
    """Labels of nodes; `false` where NFD runs already."""
    dcgm_exporter: bool
    """Metrics of GPUs."""
    dcgm_claims: bool
    """Pods and claims of DRA in these metrics; follows from a device plugin that is off."""
    service_monitor: bool
    """A ServiceMonitor for them; needs the CRDs of the Prometheus operator."""
    gpu_cluster: bool
    """A GPUCluster, which brings the DRA driver, instead of a ClusterPolicy; from 26.7 on."""
    gates: dict[str, bool]
    """Feature gates of the DRA driver of a GPUCluster."""
    compute_domains: bool
    """ComputeDomains of a GPUCluster."""
    daemonset_tolerations: list[dict[str, Any]]
    """Tolerations of all that runs on GPU nodes."""
    operator_node_selector: dict[str, pulumi.Input[str]]
    """Labels of nodes that the operator itself runs on."""
    operator_tolerations: list[dict[str, Any]]
    """Tolerations of the operator itself."""
    upgrade_crds: bool
    """Let a hook of the chart upgrade its CRDs; off where `crds` is given."""


class ExampleDriverPart(TypedDict, total=False):
    """`ExampleDriver`, as a part of a platform."""

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
    namespace_labels: dict[str, pulumi.Input[str]]
    """More labels of the Namespace."""
    crds: list[str]
    """Folder, file or address of the CRDs: they are applied before the chart, and upgraded with it. Without
    it Helm installs those of the chart once, and never upgrades them."""
    keep_crds: bool
    """Leave the CRDs in the cluster on destroy, as Helm does; with them all their objects would go."""
    values: dict[str, Any]
    """Everything else, as in a values file; checked against that version of the chart."""
    timeout: int
    """Seconds that helm waits."""
    skip_await: bool
    """Do not wait until its pods are ready."""
    atomic: bool
    """Roll back what fails."""
    profile: ExampleProfile
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
    image_pull_secrets: list[pulumi.Input[str]]
    """Names of Secrets."""
    plugin_node_selector: dict[str, pulumi.Input[str]]
    """Labels of nodes that it runs on."""
    plugin_tolerations: list[dict[str, Any]]
    """Its tolerations."""
    allow_default_namespace: bool
    """Allow the installation in the namespace `default`."""


class NodePluginPart(TypedDict, total=False):
    """`NodePlugin`, as a part of a platform."""

    back_end: BackEnd
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
    image_pull_secrets: list[pulumi.Input[str]]
    """Names of Secrets."""
    object_name: str
    """Name of the objects."""
    namespace: pulumi.Input[str]
    """Namespace of its objects, else `dra-infra-plugin`."""
    create_namespace: bool
    """Make the Namespace, with labels that let pods with host paths in."""
    namespace_labels: dict[str, pulumi.Input[str]]
    """More labels of the Namespace."""
    labels: dict[str, pulumi.Input[str]]
    """Labels of the objects and of the pods."""
    annotations: dict[str, pulumi.Input[str]]
    """Annotations of the objects and of the pods."""
    node_selector: dict[str, pulumi.Input[str]]
    """Labels of nodes that it runs on, else all."""
    tolerations: list[dict[str, Any]]
    """Device taints to tolerate. Needs the gate DRADeviceTaints, on by default from Kubernetes 1.36."""
    priority_class_name: pulumi.Input[str]
    """Priority class of its pods, else `system-node-critical`."""
    resources: dict[str, Any]
    """Requests and limits of its container."""
    host_network: bool
    """Use the network of the node, where pods cannot reach the API server otherwise. Ports of a node can be
    had once, so an update then stops the old pod before the new one starts."""
    log_level: LogLevel
    """Least level of messages that are logged."""
    metrics_port: int
    """Port of `/metrics`, else 8080."""
    health_port: int
    """Port of liveness and readiness over gRPC, else 51515. A NetworkPolicy keeps all pods from it."""
    metrics_namespaces: list[pulumi.Input[str]]
    """Names of the namespaces whose pods may read metrics, else all; `[]` is none."""
    kubelet_root: str
    """The kubelet's folder on nodes, else `/var/lib/kubelet`."""
    cdi_folder: str
    """Where the container runtime reads CDI specs, else `/var/run/cdi`."""
    nvidia_driver_root: str
    """Where NVIDIA's kernel driver is on nodes, else `/`. For `nvml` alone."""
    settings: dict[str, pulumi.Input[str]]
    """Other settings of the plugin, by name: `{"mig_delay": "2s"}`."""
    env: dict[str, pulumi.Input[str]]
    """Variables of the container that are no settings, such as `KUBERNETES_SERVICE_HOST` where the API server
    is not at the address of its service."""
    classes: bool
    """Make the DeviceClasses that the driver's own chart would bring. Off for a second plugin of one
    driver."""
    binding_conditions: bool
    """Let it find claims, and set conditions of its devices in them. For `sim` alone."""
    openshift: bool
    """Let its pods be privileged on OpenShift, where SecurityContextConstraints decide beside the labels of
    the Namespace. A platform `openshift` sets it."""


class TenantGpuClaimTemplate(TypedDict, total=False):
    """A `GpuClaimTemplate` that a tenant is given. Its namespace and name are the tenant's."""

    device_class: pulumi.Input[str]
    """Name of a DeviceClass, such as `${h100.objectName}` in YAML."""
    count: pulumi.Input[int]
    """Number of devices, at most 32; 1 when left out. It is checked as soon as it is known."""
    all_devices: bool
    """`true` takes every device of a node that matches, in place of `count`."""
    select: str
    """A test in CEL that each device must pass."""
    match: Match
    """What each device must be, by fields. Beside `select`, devices must pass both."""
    first_available: list[Alternative]
    """Alternatives in place of a class, the best first."""
    tolerations: list[Toleration]
    """Device taints to tolerate. Needs the gate DRADeviceTaints, on by default from Kubernetes 1.36."""
    capacity: dict[str, str]
    """What each device must have left, and what is taken of one that several claims share, as Kubernetes
    quantities: `{"memory": "20Gi"}`. Needs the gate DRAConsumableCapacity, on by default from Kubernetes
    1.36."""
    admin_access: bool
    """Look at devices that others use, for monitoring, in a namespace with the label
    `resource.kubernetes.io/admin-access: "true"`."""
    requests: list[DeviceRequest]
    """Several requests, or one with a name of your own, at most 32."""
    constraints: list[Constraint]
    """What the devices share or must not share."""
    configs: list[DeviceConfig]
    """How drivers set the devices up."""
    labels: dict[str, pulumi.Input[str]]
    """Labels of the object."""
    annotations: dict[str, pulumi.Input[str]]
    """Annotations of the object."""
    driver_release: str
    """Release of the drivers, `"25.8"` or `"0.5"`; else the stack's `dra-infra:driver`, else the newest."""
    driver_gates: dict[str, bool]
    """Feature gates that the NVIDIA driver is given, as in its chart: `{"MPSSupport": true}`. What needs a
    gate is checked against them; left out, nothing is said of gates."""
    target: ClusterTarget
    """The cluster to compile for; else the parent's, else the stack's."""


class TenantMigPartition(TypedDict, total=False):
    """A `MigPartition` that a tenant is given. Its namespace and name are the tenant's."""

    profile: str
    """A MIG profile, `"1g.10gb"`. Its request is named `mig`."""
    profiles: list[str]
    """Several MIG profiles, one request each: `[3g.40gb, 1g.10gb]` are requests `mig-0` and `mig-1`."""
    profile_counts: dict[str, int]
    """In place of `profiles`: number of devices by profile, `{"1g.10gb": 7}`."""
    named_profiles: dict[str, str]
    """In place of `profiles`: profiles by the name of their request, `{"train": "3g.40gb", "infer":
    "1g.10gb"}`."""
    memory: str
    """Instead of profiles: at least so much memory, `"20Gi"`, as NVML reports it. The smallest profile of
    each GPU that has it is taken, as an ordered list of alternatives."""
    compute: int
    """Instead of profiles: at least so many compute slices, of the 7 or 4 of a GPU."""
    count: int
    """How many devices of `profile`, or of that size; 1 when left out."""
    gpu: str
    """The GPU, by its product name or a short one: `"H100"`, `"A100-80GB"`. Any that has the profile when
    left out."""
    same_gpu: bool
    """All devices are on one GPU; refused where they do not fit one."""
    dynamic: bool
    """`true` checks that driver and cluster have DynamicMIG, and that `select` reads nothing that only static
    devices have. What `driverGates` say when left out."""
    device_class: pulumi.Input[str]
    """Name of a DeviceClass, such as `${h100.objectName}` in YAML."""
    select: str
    """A test in CEL that each device must pass."""
    match: Match
    """What each device must be, by fields. Beside `select`, devices must pass both."""
    tolerations: list[Toleration]
    """Device taints to tolerate. Needs the gate DRADeviceTaints, on by default from Kubernetes 1.36."""
    configs: list[DeviceConfig]
    """How drivers set the devices up."""
    shared: bool
    """Make a ResourceClaim: all pods that refer to it use the same devices, on one node."""
    labels: dict[str, pulumi.Input[str]]
    """Labels of the object."""
    annotations: dict[str, pulumi.Input[str]]
    """Annotations of the object."""
    driver_release: str
    """Release of the drivers, `"25.8"` or `"0.5"`; else the stack's `dra-infra:driver`, else the newest."""
    driver_gates: dict[str, bool]
    """Feature gates that the NVIDIA driver is given, as in its chart: `{"MPSSupport": true}`. What needs a
    gate is checked against them; left out, nothing is said of gates."""
    target: ClusterTarget
    """The cluster to compile for; else the parent's, else the stack's."""


class TenantSharedGpu(TypedDict, total=False):
    """A `SharedGpu` that a tenant is given. Its namespace and name are the tenant's."""

    device_class: pulumi.Input[str]
    """Name of a DeviceClass, such as `${h100.objectName}` in YAML."""
    select: str
    """A test in CEL that each device must pass."""
    match: Match
    """What each device must be, by fields. Beside `select`, devices must pass both."""
    across: SharedAcross
    """Who shares a whole GPU: the `"containers"` of each pod, or `"pods"` on one node."""
    consumers: int
    """How many pods will use it, at most 256, to be checked; under `across: pods`."""
    sharing: Sharing
    """How the driver divides a whole GPU; left out, processes take turns as the GPU does by default."""
    memory: str
    """Memory of the GPU that each claim takes, a Kubernetes quantity: `"20Gi"`."""
    shares: int
    """Shares of the GPU that each claim takes, of those that the driver is set to make
    (`consumableShares`)."""
    labels: dict[str, pulumi.Input[str]]
    """Labels of the object."""
    annotations: dict[str, pulumi.Input[str]]
    """Annotations of the object."""
    driver_release: str
    """Release of the drivers, `"25.8"` or `"0.5"`; else the stack's `dra-infra:driver`, else the newest."""
    driver_gates: dict[str, bool]
    """Feature gates that the NVIDIA driver is given, as in its chart: `{"MPSSupport": true}`. What needs a
    gate is checked against them; left out, nothing is said of gates."""
    target: ClusterTarget
    """The cluster to compile for; else the parent's, else the stack's."""


class TenantNvlinkGroup(TypedDict, total=False):
    """A `NvlinkGroup` that a tenant is given. Its namespace and name are the tenant's."""

    gpus: int
    """GPUs of the group."""
    on: str
    """The system, `"hgx-h100"` or `"gb200-nvl72"`; `dra-infra catalog systems` lists them."""
    gpu: str
    """The product, `"B200"`: enough where every server that takes it joins it, else beside `on`."""
    gpus_per_pod: int
    """GPUs of each pod; left out, one pod where a node has enough, else as many as divide the group."""
    device_class: pulumi.Input[str]
    """Name of a DeviceClass, such as `${h100.objectName}` in YAML."""
    select: str
    """A test in CEL that each device must pass."""
    match: Match
    """What each device must be, by fields. Beside `select`, devices must pass both."""
    tolerations: list[Toleration]
    """Device taints to tolerate. Needs the gate DRADeviceTaints, on by default from Kubernetes 1.36."""
    allocation_mode: AllocationMode
    """`"All"` gives the pods every IMEX channel of the ComputeDomain; `"Single"` is the default."""
    imex_mode: ImexMode
    """The driver chart's `resources.computeDomains.imex.mode`, where it is not `"driverManaged"`."""
    labels: dict[str, pulumi.Input[str]]
    """Labels of the object."""
    annotations: dict[str, pulumi.Input[str]]
    """Annotations of the object."""
    driver_release: str
    """Release of the drivers, `"25.8"` or `"0.5"`; else the stack's `dra-infra:driver`, else the newest."""
    driver_gates: dict[str, bool]
    """Feature gates that the NVIDIA driver is given, as in its chart: `{"MPSSupport": true}`. What needs a
    gate is checked against them; left out, nothing is said of gates."""
    target: ClusterTarget
    """The cluster to compile for; else the parent's, else the stack's."""


class TenantTemplate(TypedDict, total=False):
    """A claim template of a tenant: one of the fields."""

    claim: TenantGpuClaimTemplate
    """A `GpuClaimTemplate`."""
    mig: TenantMigPartition
    """A `MigPartition`."""
    shared: TenantSharedGpu
    """A `SharedGpu`."""
    nvlink: TenantNvlinkGroup
    """A `NvlinkGroup`."""


class PodClaim:
    """An entry of a pod's `spec.resourceClaims`."""

    name: str
    """Name by which containers refer to the claim."""
    resource_claim_name: str | None
    """Name of the ResourceClaim that pods share."""
    resource_claim_template_name: str | None
    """Name of the ResourceClaimTemplate that each pod gets a claim from."""


class ContainerClaim:
    """An entry of a container's `resources.claims`."""

    name: str
    """Name of the pod's entry."""


class TenantClaim:
    """A claim template that a tenant was given."""

    object_name: str
    """Name of the object."""
    pod_claim: PodClaim
    """The entry for `spec.resourceClaims` of a pod that uses the claim."""
    container_claim: ContainerClaim
    """The entry for `resources.claims` of each container that uses the devices."""


class InstalledChart:
    """A chart that is installed."""

    release_name: str
    """Name of the helm release."""
    namespace: str
    """Where it is."""
    version: str
    """Version of the chart, without a leading v."""


class DeviceTaintArgs(TypedDict, total=False):
    """Arguments of `DeviceTaint`."""

    key: Required[str]
    """Key of the taint, `"example.com/service"`, that claims tolerate."""
    value: str
    """Value of the taint."""
    effect: DeviceTaintEffect
    """`NoExecute` evicts pods and keeps others away, `NoSchedule` keeps others away, and `None`, since 1.35,
    does nothing: the status of the rule then says how many pods would be evicted."""
    driver: str
    """The driver of the devices."""
    pool: str
    """Their pool, which is the name of the node for devices of one."""
    device: str
    """Name of one device."""
    object_name: pulumi.Input[str]
    """Name of the DeviceTaintRule object; the component's name when left out."""
    labels: dict[str, pulumi.Input[str]]
    """Labels of the object."""
    annotations: dict[str, pulumi.Input[str]]
    """Annotations of the object."""
    target: ClusterTarget
    """The cluster to compile for; else the parent's, else the stack's. It has to name a minor."""


class DeviceTaint(pulumi.ComponentResource):
    """A DeviceTaintRule: devices that are kept from pods, or whose pods are evicted, for as long as the rule is there.

    It needs the gate DRADeviceTaintRules, which is on by default from Kubernetes 1.37. A pod that the effect
    `NoExecute` evicts is deleted, and PodDisruptionBudgets do not count. `dra-infra drain` writes such rules by
    hand, and shows first whose pods go.
    """

    object_name: pulumi.Output[str]
    """Name of the object."""

    def __init__(
        self, name: str, args: DeviceTaintArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None: ...


class DraDriverArgs(TypedDict, total=False):
    """Arguments of `DraDriver`."""

    target: ClusterTarget
    """The cluster; else the parent's, else the stack's."""
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
    namespace_labels: dict[str, pulumi.Input[str]]
    """More labels of the Namespace."""
    crds: list[str]
    """Folders, files or addresses of the CRDs: they are applied before the chart, and upgraded with it.
    Without them Helm installs those of the chart once, and never upgrades them. The provider reads files from
    the folder of your project."""
    keep_crds: bool
    """Leave the CRDs in the cluster on destroy, as Helm does; with them all their objects would go."""
    values: dict[str, Any]
    """Everything else, as in a values file; checked against that version of the chart."""
    timeout: int
    """Seconds that helm waits."""
    skip_await: bool
    """Do not wait until its pods are ready."""
    atomic: bool
    """Roll back what fails."""
    gpus: bool
    """Let the driver allocate GPUs; `false` installs it for ComputeDomains only."""
    compute_domains: bool
    """Serve ComputeDomains; they have the controller."""
    gpu_resources_enabled_override: bool
    """Says that no device plugin runs on the nodes, without which the chart fails; follows from an `operator`
    whose device plugin is off."""
    gates: dict[str, bool]
    """Feature gates of the driver: `{"TimeSlicingSettings": true, "MPSSupport": true}`."""
    nvidia_driver_root: pulumi.Input[str]
    """Where NVIDIA's kernel driver is on nodes; follows from an `operator` that installs it."""
    consumable_shares: pulumi.Input[str]
    """How claims share devices: `"memory"`, `"unlimited"`, or a number; from 0.5 on."""
    imex_mode: ImexMode
    """Who runs the daemons of ComputeDomains; from 0.5 on."""
    gpu_clique_label: bool
    """Write the label of the NVLink clique without GPU feature discovery; from 0.5 on."""
    resource_api_version: str
    """Pinned version of resource.k8s.io; else the newest that is served."""
    log_verbosity: pulumi.Input[str]
    """Level of klog."""
    image_pull_secrets: list[pulumi.Input[str]]
    """Names of Secrets."""
    priority_class_name: pulumi.Input[str]
    """Priority class of plugin and controller."""
    plugin_node_selector: dict[str, pulumi.Input[str]]
    """Labels of nodes that the plugin runs on, beside those that the chart asks for."""
    plugin_tolerations: list[dict[str, Any]]
    """Tolerations of the plugin, instead of the chart's."""
    controller_node_selector: dict[str, pulumi.Input[str]]
    """Labels of nodes that the controller runs on, such as system nodes. Up to 25.12 it takes the place of
    the chart's affinity, which asks for control plane nodes."""
    controller_tolerations: list[dict[str, Any]]
    """Tolerations of the controller, instead of the chart's."""
    controller_replicas: pulumi.Input[int]
    """Replicas of the controller; from 0.4 on."""
    network_policies: bool
    """Network policies for both; from 25.12 on."""
    webhook: bool
    """The webhook that checks configs of claims."""
    webhook_failure_policy: FailurePolicy
    """What the API server does with claims while the webhook does not answer: refuse them (`Fail`) or accept
    them (`Ignore`)."""
    webhook_tls_mode: WebhookTlsMode
    """Who makes the webhook's certificate: cert-manager, or you by a Secret."""
    webhook_issuer_type: IssuerType
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


class DraDriver(pulumi.ComponentResource):
    """The NVIDIA DRA driver for GPUs, by its own chart."""

    release_name: pulumi.Output[str]
    """Name of the helm release."""
    namespace: pulumi.Output[str]
    """Namespace that it is installed into."""
    version: pulumi.Output[str]
    """Version of the chart, without a leading v."""
    device_classes: pulumi.Output[dict[str, str]]
    """Names of the DeviceClasses that it brings, by name. What takes one is made after the driver."""

    def __init__(
        self, name: str, args: DraDriverArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None: ...


class ExampleDriverArgs(TypedDict, total=False):
    """Arguments of `ExampleDriver`."""

    target: ClusterTarget
    """The cluster; else the parent's, else the stack's."""
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
    namespace_labels: dict[str, pulumi.Input[str]]
    """More labels of the Namespace."""
    crds: list[str]
    """Folder, file or address of the CRDs: they are applied before the chart, and upgraded with it. Without
    it Helm installs those of the chart once, and never upgrades them."""
    keep_crds: bool
    """Leave the CRDs in the cluster on destroy, as Helm does; with them all their objects would go."""
    values: dict[str, Any]
    """Everything else, as in a values file; checked against that version of the chart."""
    timeout: int
    """Seconds that helm waits."""
    skip_await: bool
    """Do not wait until its pods are ready."""
    atomic: bool
    """Roll back what fails."""
    profile: ExampleProfile
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
    image_pull_secrets: list[pulumi.Input[str]]
    """Names of Secrets."""
    plugin_node_selector: dict[str, pulumi.Input[str]]
    """Labels of nodes that it runs on."""
    plugin_tolerations: list[dict[str, Any]]
    """Its tolerations."""
    allow_default_namespace: bool
    """Allow the installation in the namespace `default`."""


class ExampleDriver(pulumi.ComponentResource):
    """Kubernetes' example driver: simulated devices, for trying claims where there are no GPUs."""

    release_name: pulumi.Output[str]
    """Name of the helm release."""
    namespace: pulumi.Output[str]
    """Namespace that it is installed into."""
    version: pulumi.Output[str]
    """Version of the chart, without a leading v."""
    device_classes: pulumi.Output[dict[str, str]]
    """Names of the DeviceClasses that it brings, by name. What takes one is made after the driver."""

    def __init__(
        self, name: str, args: ExampleDriverArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None: ...


class GpuClaimArgs(TypedDict, total=False):
    """Arguments of `GpuClaim`."""

    device_class: pulumi.Input[str]
    """Name of a DeviceClass, such as `${h100.objectName}` in YAML."""
    count: pulumi.Input[int]
    """Number of devices, at most 32; 1 when left out. It is checked as soon as it is known."""
    all_devices: bool
    """`true` takes every device of a node that matches, in place of `count`."""
    select: str
    """A test in CEL that each device must pass."""
    match: Match
    """What each device must be, by fields. Beside `select`, devices must pass both."""
    first_available: list[Alternative]
    """Alternatives in place of a class, the best first."""
    tolerations: list[Toleration]
    """Device taints to tolerate. Needs the gate DRADeviceTaints, on by default from Kubernetes 1.36."""
    capacity: dict[str, str]
    """What each device must have left, and what is taken of one that several claims share, as Kubernetes
    quantities: `{"memory": "20Gi"}`. Needs the gate DRAConsumableCapacity, on by default from Kubernetes
    1.36."""
    admin_access: bool
    """Look at devices that others use, for monitoring, in a namespace with the label
    `resource.kubernetes.io/admin-access: "true"`."""
    requests: list[DeviceRequest]
    """Several requests, or one with a name of your own, at most 32."""
    constraints: list[Constraint]
    """What the devices share or must not share."""
    configs: list[DeviceConfig]
    """How drivers set the devices up."""
    namespace: pulumi.Input[str]
    """Namespace of the object; the provider's default when left out."""
    object_name: pulumi.Input[str]
    """Name of the object. Left out, it is the component's name and a hash of the spec, so that a change makes
    a new object and workloads roll over to it. An explicit name is kept, and a change of the spec is then
    refused by the API server unless `replace: delete-first`."""
    labels: dict[str, pulumi.Input[str]]
    """Labels of the object."""
    annotations: dict[str, pulumi.Input[str]]
    """Annotations of the object."""
    replace: Replace
    """`"delete-first"` deletes an object with an explicit name before it makes the new one."""
    driver_release: str
    """Release of the drivers, `"25.8"` or `"0.5"`; else the stack's `dra-infra:driver`, else the newest."""
    driver_gates: dict[str, bool]
    """Feature gates that the NVIDIA driver is given, as in its chart: `{"MPSSupport": true}`. What needs a
    gate is checked against them; left out, nothing is said of gates."""
    target: ClusterTarget
    """The cluster to compile for; else the parent's, else the stack's."""


class GpuClaim(pulumi.ComponentResource):
    """A ResourceClaim: devices that live independently of pods; pods that refer to it share them, on one node."""

    object_name: pulumi.Output[str]
    """Name of the object."""
    namespace: pulumi.Output[str]
    """Namespace of the object."""
    pod_claim: pulumi.Output[PodClaim]
    """The entry for `spec.resourceClaims` of a pod that uses the claim."""
    container_claim: pulumi.Output[ContainerClaim]
    """The entry for `resources.claims` of each container that uses the devices."""

    def __init__(self, name: str, args: GpuClaimArgs, opts: pulumi.ResourceOptions | None = None) -> None: ...


class GpuClaimTemplateArgs(TypedDict, total=False):
    """Arguments of `GpuClaimTemplate`."""

    device_class: pulumi.Input[str]
    """Name of a DeviceClass, such as `${h100.objectName}` in YAML."""
    count: pulumi.Input[int]
    """Number of devices, at most 32; 1 when left out. It is checked as soon as it is known."""
    all_devices: bool
    """`true` takes every device of a node that matches, in place of `count`."""
    select: str
    """A test in CEL that each device must pass."""
    match: Match
    """What each device must be, by fields. Beside `select`, devices must pass both."""
    first_available: list[Alternative]
    """Alternatives in place of a class, the best first."""
    tolerations: list[Toleration]
    """Device taints to tolerate. Needs the gate DRADeviceTaints, on by default from Kubernetes 1.36."""
    capacity: dict[str, str]
    """What each device must have left, and what is taken of one that several claims share, as Kubernetes
    quantities: `{"memory": "20Gi"}`. Needs the gate DRAConsumableCapacity, on by default from Kubernetes
    1.36."""
    admin_access: bool
    """Look at devices that others use, for monitoring, in a namespace with the label
    `resource.kubernetes.io/admin-access: "true"`."""
    requests: list[DeviceRequest]
    """Several requests, or one with a name of your own, at most 32."""
    constraints: list[Constraint]
    """What the devices share or must not share."""
    configs: list[DeviceConfig]
    """How drivers set the devices up."""
    namespace: pulumi.Input[str]
    """Namespace of the object; the provider's default when left out."""
    object_name: pulumi.Input[str]
    """Name of the object. Left out, it is the component's name and a hash of the spec, so that a change makes
    a new object and workloads roll over to it. An explicit name is kept, and a change of the spec is then
    refused by the API server unless `replace: delete-first`."""
    labels: dict[str, pulumi.Input[str]]
    """Labels of the object."""
    annotations: dict[str, pulumi.Input[str]]
    """Annotations of the object."""
    replace: Replace
    """`"delete-first"` deletes an object with an explicit name before it makes the new one."""
    driver_release: str
    """Release of the drivers, `"25.8"` or `"0.5"`; else the stack's `dra-infra:driver`, else the newest."""
    driver_gates: dict[str, bool]
    """Feature gates that the NVIDIA driver is given, as in its chart: `{"MPSSupport": true}`. What needs a
    gate is checked against them; left out, nothing is said of gates."""
    target: ClusterTarget
    """The cluster to compile for; else the parent's, else the stack's."""


class GpuClaimTemplate(pulumi.ComponentResource):
    """A ResourceClaimTemplate: every pod that refers to it gets devices of its own.

    Most need no list: `deviceClass`, `count` and `match` make one request, named `gpu`. `requests` is for the
    rest and excludes them. Pods take `podClaim` among their claims, and containers `containerClaim`.
    """

    object_name: pulumi.Output[str]
    """Name of the object."""
    namespace: pulumi.Output[str]
    """Namespace of the object."""
    pod_claim: pulumi.Output[PodClaim]
    """The entry for `spec.resourceClaims` of a pod that uses the claim."""
    container_claim: pulumi.Output[ContainerClaim]
    """The entry for `resources.claims` of each container that uses the devices."""

    def __init__(
        self, name: str, args: GpuClaimTemplateArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None: ...


class GpuDeviceClassArgs(TypedDict, total=False):
    """Arguments of `GpuDeviceClass`."""

    select: str
    """A test in CEL that each GPU must pass. Without it and `match`, all of the driver's."""
    match: Match
    """What each device must be, by fields. Beside `select`, devices must pass both."""
    driver: str
    """The DRA driver. For `gpu.nvidia.com` the class takes whole GPUs, as the driver's own class does."""
    configs: list[DeviceConfig]
    """How the driver sets the GPUs up, unless a claim brings a config of its own."""
    extended_resource_name: str
    """What pods may ask for in place of a claim, such as `example.com/h100`. Needs the gate
    DRAExtendedResource, on by default from Kubernetes 1.36."""
    driver_release: str
    """Release of the drivers, `"25.8"` or `"0.5"`; else the stack's `dra-infra:driver`, else the newest."""
    driver_gates: dict[str, bool]
    """Feature gates that the NVIDIA driver is given, as in its chart: `{"MPSSupport": true}`. What needs a
    gate is checked against them; left out, nothing is said of gates."""
    object_name: pulumi.Input[str]
    """Name of the DeviceClass object; the component's name when left out."""
    labels: dict[str, pulumi.Input[str]]
    """Labels of the object."""
    annotations: dict[str, pulumi.Input[str]]
    """Annotations of the object."""
    target: ClusterTarget
    """The cluster to compile for; else the parent's, else the stack's."""


class GpuDeviceClass(pulumi.ComponentResource):
    """A DeviceClass: the GPUs of one driver that pass a selector, under a name that claims refer to.

    A class is cluster-scoped and its spec can change in place; claims that are already allocated keep their
    devices.
    """

    driver: pulumi.Output[str]
    """Name of the driver of the devices."""
    object_name: pulumi.Output[str]
    """Name of the object."""

    def __init__(
        self, name: str, args: GpuDeviceClassArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None: ...


class GpuGuardrailsArgs(TypedDict, total=False):
    """Arguments of `GpuGuardrails`."""

    classes: dict[str, list[pulumi.Input[str]]]
    """Device classes that a namespace may use: `{"vision": [h100, "mig.nvidia.com"]}`. Pods that ask for a
    class as a resource, `deviceclass.resource.kubernetes.io/h100`, are held to it too. A namespace that is
    not named may use all."""
    most_devices: int
    """Devices that all requests of one claim may ask for, of alternatives the largest; All counts as 32."""
    all_devices: bool
    """`false` refuses requests for every device of a node."""
    admin_access: list[str]
    """Namespaces in which claims may have admin access: `[]` is none. Left out, the label of the namespace
    decides alone."""
    admin_label: list[str]
    """Who may set or take that label: `["group:platform", "user:alice@example.com"]`. Left out, whoever may
    change the Namespace."""
    config_drivers: list[str]
    """Drivers for which claims may bring a config of their own, which goes before that of the class: `[]` is
    none."""
    without_device_plugin: list[str]
    """Namespaces in which pods may not ask for `nvidia.com/gpu` and whatever else begins so."""
    extended_resources: dict[str, pulumi.Input[str]]
    """Extended resource names by which pods ask for classes that are not made here: `{"example.com/a100":
    "a100"}`. Those of a `GpuDeviceClass` in `classes` or here are known."""
    host_paths: dict[str, list[str]]
    """Paths of nodes that pods of a namespace may mount by hostPath, as they are written: `{"vision":
    ["/mnt/datasets"]}`. Namespaces that are named here, in `classes` or in `withoutDevicePlugin` may mount no
    other path, such as `/dev/nvidia0`, and their pods may not set `nodeName`."""
    node_access: list[str]
    """Namespaces whose pods may mount any path of their node and set `nodeName`, although `classes` or
    `withoutDevicePlugin` names them: `["monitoring"]`."""
    labels: dict[str, pulumi.Input[str]]
    """Labels of the objects."""
    annotations: dict[str, pulumi.Input[str]]
    """Annotations of the objects."""
    target: ClusterTarget
    """The cluster to compile for; else the parent's, else the stack's."""


class GpuGuardrails(pulumi.ComponentResource):
    """ValidatingAdmissionPolicies for the whole cluster: what the API server refuses, whoever asks.

    They hold for claims and claim templates of every version of the API, for requests and their alternatives, and
    for claims that are made for pods. What is there already stays.
    """

    def __init__(
        self, name: str, args: GpuGuardrailsArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None: ...


class GpuMonitoringArgs(TypedDict, total=False):
    """Arguments of `GpuMonitoring`."""

    namespace: pulumi.Input[str]
    """Namespace of its objects; else `default`."""
    selected_by: dict[str, pulumi.Input[str]]
    """Labels by which Prometheus selects rules and monitors: `{"release": "kube-prometheus-stack"}`."""
    thresholds: dict[str, float]
    """Above which alerts fire, by alert, where it is not the usual number: `{"KubeDRAPrepareSlow": 30}`."""
    severities: dict[str, str]
    """`"critical"`, `"warning"` or `"info"`, by alert, where it is not the usual one."""
    without: list[str]
    """Alerts that are left out."""
    jobs: dict[str, str]
    """Names of the jobs of `kube-controller-manager`, `kube-scheduler` and `kubelet`, where they are called
    otherwise."""
    runbooks: str
    """Address of your page of runbooks: alerts link to `<runbooks>#<alert in lower case>`. Left out, to
    nothing."""
    plugin_namespaces: list[pulumi.Input[str]]
    """Namespaces of node plugins: `[plugin.namespace]`. Left out, alerts are on Kubernetes alone. Add another
    one at the end: their objects are numbered, for a namespace may not be known before `pulumi up`."""
    plugin_port: int
    """Their `metricsPort`."""
    dashboard: dict[str, pulumi.Input[str]]
    """Labels by which Grafana's sidecar finds dashboards; `{}` makes none."""
    labels: dict[str, pulumi.Input[str]]
    """Labels of the objects."""
    annotations: dict[str, pulumi.Input[str]]
    """Annotations of the objects."""
    target: ClusterTarget
    """The cluster to compile for; else the parent's, else the stack's."""


class GpuMonitoring(pulumi.ComponentResource):
    """Alerts on devices for Prometheus, monitors of the node plugin, and a dashboard for Grafana.

    The cluster has the Prometheus operator, which scrapes kube-controller-manager, kube-scheduler and kubelets
    already, as kube-prometheus-stack does. Metrics have the names of the target's minor.
    """

    def __init__(
        self, name: str, args: GpuMonitoringArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None: ...


class GpuOperatorArgs(TypedDict, total=False):
    """Arguments of `GpuOperator`."""

    target: ClusterTarget
    """The cluster; else the parent's, else the stack's."""
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
    namespace_labels: dict[str, pulumi.Input[str]]
    """More labels of the Namespace."""
    crds: list[str]
    """Folder, file or address of the CRDs: they are applied before the chart, and upgraded with it. Without
    it Helm installs those of the chart once, and never upgrades them."""
    keep_crds: bool
    """Leave the CRDs in the cluster on destroy, as Helm does; with them all their objects would go."""
    values: dict[str, Any]
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
    """Install NVIDIA's kernel driver; `false` where the nodes bring it."""
    kernel_driver: pulumi.Input[str]
    """Version of the kernel driver."""
    kernel_module_type: KernelModuleType
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
    toolkit_env: list[dict[str, pulumi.Input[str]]]
    """Environment of the toolkit, as in a container."""
    cdi: bool
    """CDI, which DRA drivers need."""
    mig_strategy: MigStrategy
    """How the device plugin shows MIG devices."""
    mig_manager: bool
    """The manager of static MIG."""
    mig_config: pulumi.Input[str]
    """The configuration of nodes without a label for another one, `"all-disabled"`."""
    gpu_feature_discovery: bool
    """Labels of GPUs, `nvidia.com/gpu.clique` among them."""
    node_feature_discovery: bool
    """Labels of nodes; `false` where NFD runs already."""
    dcgm_exporter: bool
    """Metrics of GPUs."""
    dcgm_claims: bool
    """Pods and claims of DRA in these metrics; follows from a device plugin that is off."""
    service_monitor: bool
    """A ServiceMonitor for them; needs the CRDs of the Prometheus operator."""
    gpu_cluster: bool
    """A GPUCluster, which brings the DRA driver, instead of a ClusterPolicy; from 26.7 on."""
    gates: dict[str, bool]
    """Feature gates of the DRA driver of a GPUCluster."""
    compute_domains: bool
    """ComputeDomains of a GPUCluster."""
    daemonset_tolerations: list[dict[str, Any]]
    """Tolerations of all that runs on GPU nodes."""
    operator_node_selector: dict[str, pulumi.Input[str]]
    """Labels of nodes that the operator itself runs on."""
    operator_tolerations: list[dict[str, Any]]
    """Tolerations of the operator itself."""
    upgrade_crds: bool
    """Let a hook of the chart upgrade its CRDs; off where `crds` is given."""


class GpuOperator(pulumi.ComponentResource):
    """NVIDIA's GPU Operator: kernel driver, container toolkit, labels, metrics; with a GPUCluster the DRA driver too."""

    release_name: pulumi.Output[str]
    """Name of the helm release."""
    namespace: pulumi.Output[str]
    """Namespace that it is installed into."""
    version: pulumi.Output[str]
    """Version of the chart, without a leading v."""
    device_classes: pulumi.Output[dict[str, str]]
    """Names of the DeviceClasses that it brings, by name. What takes one is made after the driver."""

    def __init__(
        self, name: str, args: GpuOperatorArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None: ...


class GpuPlatformArgs(TypedDict, total=False):
    """Arguments of `GpuPlatform`."""

    platform: PlatformName
    """Where the cluster runs."""
    driver: DraDriverPart
    """NVIDIA's DRA driver: what is different from its defaults. It is installed unless `withoutDriver` is
    `true`."""
    without_driver: bool
    """`true` installs no NVIDIA DRA driver, which is installed otherwise."""
    operator: GpuOperatorPart
    """NVIDIA's GPU Operator: what is different from its defaults; `{}` installs the newest. Left out,
    none."""
    example: ExampleDriverPart
    """Kubernetes' example driver: what is different from its defaults; `{}` installs the newest. Left out,
    none."""
    node_plugin: NodePluginPart
    """The dra-infra node plugin: what is different from its defaults. Left out, none."""
    gpu_pools: dict[str, dict[str, str]]
    """Labels of the nodes of each GPU pool; what the installation needs and they lack is told."""
    target: ClusterTarget
    """The cluster to install on; else the parent's, else the stack's."""


class GpuPlatform(pulumi.ComponentResource):
    """The GPU Operator, DRA drivers and our node plugin on one cluster, in order and checked together.

    What you write nowhere follows from the platform, and for the DRA driver from the operator: where the kernel
    driver is, that the device plugin is off, the label for eviction.
    """

    platform: pulumi.Output[str] | None
    """Where the cluster runs; nothing where that was not given."""
    installed: pulumi.Output[dict[str, InstalledChart]]
    """What is installed, by `"operator"`, `"driver"`, `"example"`."""
    device_classes: pulumi.Output[dict[str, str]]
    """Names of the DeviceClasses that it brings, by name. What takes one is made after the driver."""
    node_labels: pulumi.Output[dict[str, Any]]
    """Labels that GPU nodes need."""

    def __init__(
        self, name: str, args: GpuPlatformArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None: ...


class GpuRolesArgs(TypedDict, total=False):
    """Arguments of `GpuRoles`."""

    members: dict[str, list[str]]
    """Who has which role in the whole cluster: `{"on-call": ["group:sre"], "reader":
    ["serviceaccount:ci/runner"]}`."""
    drivers: dict[str, list[str]]
    """Who publishes devices, by the name of the driver: `{"gpu.acme.example":
    ["serviceaccount:acme/plugin"]}`."""
    labels: dict[str, pulumi.Input[str]]
    """Labels of the objects."""
    annotations: dict[str, pulumi.Input[str]]
    """Annotations of the objects."""
    target: ClusterTarget
    """The cluster to compile for; else the parent's, else the stack's."""


class GpuRoles(pulumi.ComponentResource):
    """ClusterRoles for each persona: platform admin, on-call, reader, team lead and developer; and for drivers.

    Those of team leads and developers are bound in namespaces, by `members` of a `GpuTenant`; the others here.
    """

    roles: pulumi.Output[dict[str, str]]
    """Names of the ClusterRoles, by persona, and by `driver-<name>` for drivers."""

    def __init__(self, name: str, args: GpuRolesArgs, opts: pulumi.ResourceOptions | None = None) -> None: ...


class GpuTenantArgs(TypedDict, total=False):
    """Arguments of `GpuTenant`."""

    quota: dict[str, int]
    """Devices that claims and pods of the namespace may have at once, by the name of their class: `{h100: 8,
    mig.nvidia.com: 7}`; 0 refuses a class. All devices of a node count as 32, a share as 1, and of
    alternatives the largest of each class. Limits of extended resource names stand in `hard`."""
    hard: dict[str, pulumi.Input[str]]
    """Other keys of the ResourceQuota: `{"requests.cpu": "64", "pods": "100"}`."""
    templates: dict[str, TenantTemplate]
    """Claim templates of the namespace, by name. A change deletes the template and makes another of the same
    name; pods keep the claims that they have."""
    tolerations: list[Toleration]
    """Tolerations of each of the templates that has none."""
    members: dict[str, list[str]]
    """Who may do what in the namespace: `{"team-lead": ["user:alice@example.com"], "developer":
    ["group:vision"]}`. All of them may see which classes and devices there are."""
    roles: str
    """Name of the `GpuRoles` that has the roles of members. Let the tenant depend on it where it is in the
    same program."""
    admin_access: bool
    """Let claims of the namespace look at devices that others use. Whoever may make claims there can."""
    pod_security: PodSecurity
    """Which pods the API server refuses in the namespace, by the Pod Security Standards: level `baseline`
    when left out, without which a privileged or hostPath pod takes every device of its node without a
    claim."""
    namespace: pulumi.Input[str]
    """Name of the namespace."""
    create_namespace: bool
    """Make the Namespace. Off where somebody else makes it."""
    namespace_labels: dict[str, pulumi.Input[str]]
    """Other labels of the Namespace."""
    labels: dict[str, pulumi.Input[str]]
    """Labels of the ResourceQuota."""
    annotations: dict[str, pulumi.Input[str]]
    """Annotations of the ResourceQuota."""
    target: ClusterTarget
    """The cluster to compile for; else the parent's, else the stack's."""


class GpuTenant(pulumi.ComponentResource):
    """A team on a cluster: its namespace, a quota of devices, and the claim templates that the platform hands out."""

    namespace: pulumi.Output[str]
    """Name of the namespace. What is placed there by it is made after the namespace and the quota."""
    templates: pulumi.Output[dict[str, TenantClaim]]
    """The templates, by name, with what pods need to use them."""

    def __init__(
        self, name: str, args: GpuTenantArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None: ...


class KueueQueueArgs(TypedDict, total=False):
    """Arguments of `KueueQueue`."""

    quota: dict[str, int]
    """Devices that are admitted at once, by the name of their class: `{h100: 64, mig.nvidia.com: 56}`."""
    resources: dict[str, pulumi.Input[str]]
    """Other resources: `{"cpu": "960", "memory": "8Ti"}`. A pod that requests a resource that no queue has is
    not admitted."""
    sources: pulumi.Input[dict[str, QueueSource]]
    """What classes are charged in place of devices, by the name of one of `resources`."""
    namespaces: list[pulumi.Input[str]]
    """Namespaces whose workloads may use the queue: each gets a LocalQueue."""
    flavor: str
    """Name of a ResourceFlavor that exists; left out, one is made with the name of the component."""
    node_labels: dict[str, pulumi.Input[str]]
    """Labels of the nodes that the ResourceFlavor stands for; workloads are held to them."""
    cohort: str
    """Cohort of queues that lend each other what they do not use."""
    strategy: QueueStrategy
    """`BestEffortFIFO`, where a workload that does not fit lets others pass, or `StrictFIFO`."""
    labels: dict[str, pulumi.Input[str]]
    """Labels of the objects."""
    annotations: dict[str, pulumi.Input[str]]
    """Annotations of the objects."""
    target: ClusterTarget
    """The cluster to compile for; else the parent's, else the stack's."""


class KueueQueue(pulumi.ComponentResource):
    """A ClusterQueue of Kueue with devices by class, its ResourceFlavor, and a LocalQueue in each namespace.

    Kueue 0.18 or newer has to run on the cluster, with the output `deviceClassMappings` in its configuration: it
    reads them when it starts, and does not admit workloads whose class no mapping has. Nor does it admit claims
    by name, alternatives and requests for all devices.
    """

    device_class_mappings: pulumi.Output[list[Any]]
    """What `resources.deviceClassMappings` of Kueue's configuration has to hold for this queue."""
    workload_labels: pulumi.Output[dict[str, str]]
    """Labels by which a workload goes to the queue."""

    def __init__(
        self, name: str, args: KueueQueueArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None: ...


class MigPartitionArgs(TypedDict, total=False):
    """Arguments of `MigPartition`."""

    profile: str
    """A MIG profile, `"1g.10gb"`. Its request is named `mig`."""
    profiles: list[str]
    """Several MIG profiles, one request each: `[3g.40gb, 1g.10gb]` are requests `mig-0` and `mig-1`."""
    profile_counts: dict[str, int]
    """In place of `profiles`: number of devices by profile, `{"1g.10gb": 7}`."""
    named_profiles: dict[str, str]
    """In place of `profiles`: profiles by the name of their request, `{"train": "3g.40gb", "infer":
    "1g.10gb"}`."""
    memory: str
    """Instead of profiles: at least so much memory, `"20Gi"`, as NVML reports it. The smallest profile of
    each GPU that has it is taken, as an ordered list of alternatives."""
    compute: int
    """Instead of profiles: at least so many compute slices, of the 7 or 4 of a GPU."""
    count: int
    """How many devices of `profile`, or of that size; 1 when left out."""
    gpu: str
    """The GPU, by its product name or a short one: `"H100"`, `"A100-80GB"`. Any that has the profile when
    left out."""
    same_gpu: bool
    """All devices are on one GPU; refused where they do not fit one."""
    dynamic: bool
    """`true` checks that driver and cluster have DynamicMIG, and that `select` reads nothing that only static
    devices have. What `driverGates` say when left out."""
    device_class: pulumi.Input[str]
    """Name of a DeviceClass, such as `${h100.objectName}` in YAML."""
    select: str
    """A test in CEL that each device must pass."""
    match: Match
    """What each device must be, by fields. Beside `select`, devices must pass both."""
    tolerations: list[Toleration]
    """Device taints to tolerate. Needs the gate DRADeviceTaints, on by default from Kubernetes 1.36."""
    configs: list[DeviceConfig]
    """How drivers set the devices up."""
    shared: bool
    """Make a ResourceClaim: all pods that refer to it use the same devices, on one node."""
    namespace: pulumi.Input[str]
    """Namespace of the object; the provider's default when left out."""
    object_name: pulumi.Input[str]
    """Name of the object. Left out, it is the component's name and a hash of the spec, so that a change makes
    a new object and workloads roll over to it. An explicit name is kept, and a change of the spec is then
    refused by the API server unless `replace: delete-first`."""
    labels: dict[str, pulumi.Input[str]]
    """Labels of the object."""
    annotations: dict[str, pulumi.Input[str]]
    """Annotations of the object."""
    replace: Replace
    """`"delete-first"` deletes an object with an explicit name before it makes the new one."""
    driver_release: str
    """Release of the drivers, `"25.8"` or `"0.5"`; else the stack's `dra-infra:driver`, else the newest."""
    driver_gates: dict[str, bool]
    """Feature gates that the NVIDIA driver is given, as in its chart: `{"MPSSupport": true}`. What needs a
    gate is checked against them; left out, nothing is said of gates."""
    target: ClusterTarget
    """The cluster to compile for; else the parent's, else the stack's."""


class MigPartition(pulumi.ComponentResource):
    """MIG devices: parts of GPUs with memory and compute of their own.

    A ResourceClaimTemplate, so that every pod has its own devices, or with `shared` a ResourceClaim. It is met by
    static MIG devices as well as by those of DynamicMIG.
    """

    object_name: pulumi.Output[str]
    """Name of the object."""
    namespace: pulumi.Output[str]
    """Namespace of the object."""
    pod_claim: pulumi.Output[PodClaim]
    """The entry for `spec.resourceClaims` of a pod that uses the claim."""
    container_claim: pulumi.Output[ContainerClaim]
    """The entry for `resources.claims` of each container that uses the devices."""

    def __init__(
        self, name: str, args: MigPartitionArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None: ...


class NodePluginArgs(TypedDict, total=False):
    """Arguments of `NodePlugin`."""

    target: ClusterTarget
    """The cluster; else the parent's, else the stack's."""
    back_end: BackEnd
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
    image_pull_secrets: list[pulumi.Input[str]]
    """Names of Secrets."""
    object_name: str
    """Name of the objects."""
    namespace: pulumi.Input[str]
    """Namespace of its objects, else `dra-infra-plugin`."""
    create_namespace: bool
    """Make the Namespace, with labels that let pods with host paths in."""
    namespace_labels: dict[str, pulumi.Input[str]]
    """More labels of the Namespace."""
    labels: dict[str, pulumi.Input[str]]
    """Labels of the objects and of the pods."""
    annotations: dict[str, pulumi.Input[str]]
    """Annotations of the objects and of the pods."""
    node_selector: dict[str, pulumi.Input[str]]
    """Labels of nodes that it runs on, else all."""
    tolerations: list[dict[str, Any]]
    """Device taints to tolerate. Needs the gate DRADeviceTaints, on by default from Kubernetes 1.36."""
    priority_class_name: pulumi.Input[str]
    """Priority class of its pods, else `system-node-critical`."""
    resources: dict[str, Any]
    """Requests and limits of its container."""
    host_network: bool
    """Use the network of the node, where pods cannot reach the API server otherwise. Ports of a node can be
    had once, so an update then stops the old pod before the new one starts."""
    log_level: LogLevel
    """Least level of messages that are logged."""
    metrics_port: int
    """Port of `/metrics`, else 8080."""
    health_port: int
    """Port of liveness and readiness over gRPC, else 51515. A NetworkPolicy keeps all pods from it."""
    metrics_namespaces: list[pulumi.Input[str]]
    """Names of the namespaces whose pods may read metrics, else all; `[]` is none."""
    kubelet_root: str
    """The kubelet's folder on nodes, else `/var/lib/kubelet`."""
    cdi_folder: str
    """Where the container runtime reads CDI specs, else `/var/run/cdi`."""
    nvidia_driver_root: str
    """Where NVIDIA's kernel driver is on nodes, else `/`. For `nvml` alone."""
    settings: dict[str, pulumi.Input[str]]
    """Other settings of the plugin, by name: `{"mig_delay": "2s"}`."""
    env: dict[str, pulumi.Input[str]]
    """Variables of the container that are no settings, such as `KUBERNETES_SERVICE_HOST` where the API server
    is not at the address of its service."""
    classes: bool
    """Make the DeviceClasses that the driver's own chart would bring. Off for a second plugin of one
    driver."""
    binding_conditions: bool
    """Let it find claims, and set conditions of its devices in them. For `sim` alone."""
    openshift: bool
    """Let its pods be privileged on OpenShift, where SecurityContextConstraints decide beside the labels of
    the Namespace. A platform `openshift` sets it."""


class NodePlugin(pulumi.ComponentResource):
    """dra-infra's own driver, as a DaemonSet: simulated GPUs on any cluster, or the GPUs of nodes without NVIDIA's chart.

    Its service account may read single claims and nodes, and write the slices of its own node: a policy refuses
    others.
    """

    driver_name: pulumi.Output[str]
    """Name of the driver, as slices have it."""
    namespace: pulumi.Output[str]
    """Namespace of its objects."""
    device_classes: pulumi.Output[dict[str, str]]
    """Names of the DeviceClasses that it brings, by name. What takes one is made after the driver."""

    def __init__(
        self, name: str, args: NodePluginArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None: ...


class NvlinkGroupArgs(TypedDict, total=False):
    """Arguments of `NvlinkGroup`."""

    gpus: int
    """GPUs of the group."""
    on: str
    """The system, `"hgx-h100"` or `"gb200-nvl72"`; `dra-infra catalog systems` lists them."""
    gpu: str
    """The product, `"B200"`: enough where every server that takes it joins it, else beside `on`."""
    gpus_per_pod: int
    """GPUs of each pod; left out, one pod where a node has enough, else as many as divide the group."""
    device_class: pulumi.Input[str]
    """Name of a DeviceClass, such as `${h100.objectName}` in YAML."""
    select: str
    """A test in CEL that each device must pass."""
    match: Match
    """What each device must be, by fields. Beside `select`, devices must pass both."""
    tolerations: list[Toleration]
    """Device taints to tolerate. Needs the gate DRADeviceTaints, on by default from Kubernetes 1.36."""
    allocation_mode: AllocationMode
    """`"All"` gives the pods every IMEX channel of the ComputeDomain; `"Single"` is the default."""
    imex_mode: ImexMode
    """The driver chart's `resources.computeDomains.imex.mode`, where it is not `"driverManaged"`."""
    namespace: pulumi.Input[str]
    """Namespace of the object; the provider's default when left out."""
    object_name: pulumi.Input[str]
    """Name of the objects. Left out, names end in a hash of what they are made of, as those of claims do."""
    labels: dict[str, pulumi.Input[str]]
    """Labels of the object."""
    annotations: dict[str, pulumi.Input[str]]
    """Annotations of the object."""
    replace: Replace
    """`"delete-first"` deletes an object with an explicit name before it makes the new one."""
    driver_release: str
    """Release of the drivers, `"25.8"` or `"0.5"`; else the stack's `dra-infra:driver`, else the newest."""
    driver_gates: dict[str, bool]
    """Feature gates that the NVIDIA driver is given, as in its chart: `{"MPSSupport": true}`. What needs a
    gate is checked against them; left out, nothing is said of gates."""
    target: ClusterTarget
    """The cluster to compile for; else the parent's, else the stack's."""


class NvlinkGroup(pulumi.ComponentResource):
    """GPUs that are all joined by NVLink, as far as the hardware can promise it; else a problem says what can.

    Up to what a node joins it is a ResourceClaimTemplate for one pod. Up to a rack it is a ComputeDomain too, for
    `pods` pods on as many nodes: these need `channelPodClaim`, `channelContainerClaim`, `podLabels` and
    `podAffinityTerm` beside the claim.
    """

    pods: pulumi.Output[int]
    """How many pods the group has."""
    object_name: pulumi.Output[str]
    """Name of the object."""
    channel_template: pulumi.Output[str] | None
    """Name of the ResourceClaimTemplate that the driver's controller makes for the ComputeDomain; nothing for
    a group on one node."""
    namespace: pulumi.Output[str]
    """Namespace of the objects."""
    pod_claim: pulumi.Output[PodClaim]
    """The entry for `spec.resourceClaims` of a pod that uses the claim."""
    container_claim: pulumi.Output[ContainerClaim]
    """The entry for `resources.claims` of each container that uses the devices."""
    channel_pod_claim: pulumi.Output[PodClaim] | None
    """A second entry for `spec.resourceClaims`, for a group of several nodes: the channel of its
    ComputeDomain."""
    channel_container_claim: pulumi.Output[ContainerClaim] | None
    """A second entry for `resources.claims` of the containers, for a group of several nodes."""
    pod_labels: pulumi.Output[dict[str, str]]
    """Labels that the pods of a group of several nodes need."""
    pod_affinity_term: pulumi.Output[Any] | None
    """For a group of several nodes: a required term of the pods' `podAffinity`, which keeps them on one
    NVLink domain."""

    def __init__(
        self, name: str, args: NvlinkGroupArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None: ...


class SharedGpuArgs(TypedDict, total=False):
    """Arguments of `SharedGpu`."""

    device_class: pulumi.Input[str]
    """Name of a DeviceClass, such as `${h100.objectName}` in YAML."""
    select: str
    """A test in CEL that each device must pass."""
    match: Match
    """What each device must be, by fields. Beside `select`, devices must pass both."""
    across: SharedAcross
    """Who shares a whole GPU: the `"containers"` of each pod, or `"pods"` on one node."""
    consumers: int
    """How many pods will use it, at most 256, to be checked; under `across: pods`."""
    sharing: Sharing
    """How the driver divides a whole GPU; left out, processes take turns as the GPU does by default."""
    memory: str
    """Memory of the GPU that each claim takes, a Kubernetes quantity: `"20Gi"`."""
    shares: int
    """Shares of the GPU that each claim takes, of those that the driver is set to make
    (`consumableShares`)."""
    namespace: pulumi.Input[str]
    """Namespace of the object; the provider's default when left out."""
    object_name: pulumi.Input[str]
    """Name of the object. Left out, it is the component's name and a hash of the spec, so that a change makes
    a new object and workloads roll over to it. An explicit name is kept, and a change of the spec is then
    refused by the API server unless `replace: delete-first`."""
    labels: dict[str, pulumi.Input[str]]
    """Labels of the object."""
    annotations: dict[str, pulumi.Input[str]]
    """Annotations of the object."""
    replace: Replace
    """`"delete-first"` deletes an object with an explicit name before it makes the new one."""
    driver_release: str
    """Release of the drivers, `"25.8"` or `"0.5"`; else the stack's `dra-infra:driver`, else the newest."""
    driver_gates: dict[str, bool]
    """Feature gates that the NVIDIA driver is given, as in its chart: `{"MPSSupport": true}`. What needs a
    gate is checked against them; left out, nothing is said of gates."""
    target: ClusterTarget
    """The cluster to compile for; else the parent's, else the stack's."""


class SharedGpu(pulumi.ComponentResource):
    """One GPU for several.

    `across` says whether containers of a pod or pods of a node share a whole GPU. With `memory` or `shares` each
    pod gets a claim of its own, which takes a part of a GPU; from driver 0.5 and Kubernetes 1.36 on. Nothing
    limits what a process uses.
    """

    object_name: pulumi.Output[str]
    """Name of the object."""
    namespace: pulumi.Output[str]
    """Namespace of the object."""
    pod_claim: pulumi.Output[PodClaim]
    """The entry for `spec.resourceClaims` of a pod that uses the claim."""
    container_claim: pulumi.Output[ContainerClaim]
    """The entry for `resources.claims` of each container that uses the devices."""

    def __init__(
        self, name: str, args: SharedGpuArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None: ...
