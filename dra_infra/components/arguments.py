"""Arguments that constructors take as keywords of a TypedDict: those of all claims, and those of each part of a platform.

A part is an installation that `GpuPlatform(driver={...})` describes by a mapping. `public_arguments.py` has the TypedDicts for users,
with all arguments of each component. It imports the components, so they cannot use it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypedDict, TypeVar

import pulumi

from dra_infra.components.component import Replace
from dra_infra.target import ClusterTarget

_Init = TypeVar("_Init", bound=Callable[..., None])

NodeLabels = Mapping[str, pulumi.Input[str]]
PodTolerations = Sequence[Mapping[str, Any]]


class ClaimArgs(TypedDict, total=False):
    """Arguments that all claims have; `GpuClaimTemplate` says what each is."""

    namespace: pulumi.Input[str] | None
    object_name: pulumi.Input[str] | None
    labels: Mapping[str, pulumi.Input[str]] | None
    annotations: Mapping[str, pulumi.Input[str]] | None
    replace: Replace | None
    driver_release: str | None
    driver_gates: Mapping[str, bool] | None
    target: ClusterTarget | None
    opts: pulumi.ResourceOptions | None


class InstallationArgs(TypedDict, total=False):
    """Arguments of every installation; `DraDriver` says what each is."""

    version: str
    chart: str
    repository: str
    release_name: pulumi.Input[str]
    namespace: pulumi.Input[str]
    create_namespace: bool
    namespace_labels: Mapping[str, pulumi.Input[str]]
    crds: str | Sequence[str]
    keep_crds: bool
    values: Mapping[str, Any]
    timeout: int
    skip_await: bool
    atomic: bool


class DraDriverPart(InstallationArgs, total=False):
    """The arguments of `DraDriver` without `operator`, `target` and `opts`; its docstring describes them."""

    gpus: bool
    compute_domains: bool
    gpu_resources_enabled_override: bool
    gates: Mapping[str, bool]
    nvidia_driver_root: pulumi.Input[str]
    consumable_shares: pulumi.Input[str] | int
    imex_mode: Literal["driverManaged", "hostManaged"]
    gpu_clique_label: bool
    resource_api_version: str
    log_verbosity: pulumi.Input[str] | int
    image_pull_secrets: Sequence[pulumi.Input[str]]
    priority_class_name: pulumi.Input[str]
    plugin_node_selector: NodeLabels
    plugin_tolerations: PodTolerations
    controller_node_selector: NodeLabels
    controller_tolerations: PodTolerations
    controller_replicas: pulumi.Input[int]
    network_policies: bool
    webhook: bool
    webhook_failure_policy: Literal["Fail", "Ignore"]
    webhook_tls_mode: Literal["cert-manager", "secret"]
    webhook_issuer_type: Literal["selfsigned", "clusterissuer", "issuer"]
    webhook_issuer_name: pulumi.Input[str]
    webhook_secret_name: pulumi.Input[str]
    webhook_ca_bundle: pulumi.Input[str]
    name_override: str
    allow_default_namespace: bool
    upgrade_from: str
    kernel_driver: str


class GpuOperatorPart(InstallationArgs, total=False):
    """The arguments of `GpuOperator` without `target` and `opts`; its docstring describes them."""

    device_plugin: bool
    driver: bool
    kernel_driver: pulumi.Input[str]
    kernel_module_type: Literal["auto", "open", "proprietary"]
    nvidia_driver_crd: bool
    driver_install_dir: pulumi.Input[str]
    eviction_label: pulumi.Input[str]
    toolkit: bool
    toolkit_install_dir: pulumi.Input[str]
    toolkit_env: Sequence[Mapping[str, pulumi.Input[str]]]
    cdi: bool
    mig_strategy: Literal["none", "single", "mixed"]
    mig_manager: bool
    mig_config: pulumi.Input[str]
    gpu_feature_discovery: bool
    node_feature_discovery: bool
    dcgm_exporter: bool
    dcgm_claims: bool
    service_monitor: bool
    gpu_cluster: bool
    gates: Mapping[str, bool]
    compute_domains: bool
    daemonset_tolerations: PodTolerations
    operator_node_selector: NodeLabels
    operator_tolerations: PodTolerations
    upgrade_crds: bool


class ExampleDriverPart(InstallationArgs, total=False):
    """The arguments of `ExampleDriver` without `target` and `opts`; its docstring describes them."""

    profile: Literal["gpu", "cpu", "net"]
    driver_name: pulumi.Input[str]
    devices_per_node: pulumi.Input[int]
    partitions_per_gpu: pulumi.Input[int]
    multiple_allocations: bool
    device_status: bool
    binding_conditions: bool
    extended_resource_name: pulumi.Input[str]
    resource_quota: bool
    webhook: bool
    image_pull_secrets: Sequence[pulumi.Input[str]]
    plugin_node_selector: NodeLabels
    plugin_tolerations: PodTolerations
    allow_default_namespace: bool


class NodePluginPart(TypedDict, total=False):
    """The arguments of `NodePlugin` without `target` and `opts`; its docstring describes them."""

    back_end: Literal["sim", "nvml"]
    fleet: str
    driver: str
    image: pulumi.Input[str]
    image_pull_secrets: Sequence[pulumi.Input[str]]
    object_name: str
    namespace: pulumi.Input[str]
    create_namespace: bool
    namespace_labels: Mapping[str, pulumi.Input[str]]
    labels: Mapping[str, pulumi.Input[str]]
    annotations: Mapping[str, pulumi.Input[str]]
    node_selector: NodeLabels
    tolerations: PodTolerations
    priority_class_name: pulumi.Input[str]
    resources: Mapping[str, Any]
    host_network: bool
    log_level: Literal["error", "warning", "info", "debug"]
    metrics_port: int
    health_port: int
    metrics_namespaces: Sequence[pulumi.Input[str]]
    kubelet_root: str
    cdi_folder: str
    nvidia_driver_root: str
    settings: Mapping[str, pulumi.Input[str]]
    env: Mapping[str, pulumi.Input[str]]
    classes: bool
    binding_conditions: bool
    openshift: bool


def takes(arguments: type) -> Callable[[_Init], _Init]:
    """Show the keys of a TypedDict as keyword arguments of a method that takes them as `**arguments`."""

    def show(init: _Init) -> _Init:
        signature = inspect.signature(init)
        named = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=type_)
            for name, type_ in arguments.__annotations__.items()
        ]
        kept = [
            each for each in signature.parameters.values() if each.kind is not inspect.Parameter.VAR_KEYWORD
        ]
        init.__signature__ = signature.replace(parameters=[*kept, *named])  # type: ignore[attr-defined]
        return init

    return show
