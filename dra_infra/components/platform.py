"""GpuPlatform: everything that a cluster needs before it has GPUs to claim."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, Literal

import pulumi

from dra_infra.components.arguments import (
    DraDriverPart,
    ExampleDriverPart,
    GpuOperatorPart,
    NodePluginPart,
)
from dra_infra.components.component import reports_unknown_arguments
from dra_infra.components.node_plugin import classes_of, make_objects
from dra_infra.components.platform_charts import (
    ChartComponent,
    Definitions,
    Installed,
    InstalledClass,
    InstalledClasses,
    joined,
)
from dra_infra.components.secret_arguments import Arguments, refusals_of
from dra_infra.errors import InvalidSpecError, Problem
from dra_infra.specs.node_plugin.plan import NodePluginPlan, compile_node_plugin
from dra_infra.specs.platform.platform import (
    PARTS,
    PlatformPlan,
    compile_platform,
    read_node_plugin,
    read_part,
)
from dra_infra.target import ClusterTarget

PlatformName = Literal["aks", "gke", "eks", "kubeadm", "kind", "openshift"]

_MADE_FIRST: Final = "driver"
"""Whose CRDs count where the operator brings definitions of the same names."""


class GpuPlatform(ChartComponent):
    """The GPU Operator, DRA drivers and our node plugin on one cluster, in order and checked together.

    What you write nowhere follows from the platform (`dra_infra/catalog/data/platforms.yaml`), and for the DRA driver
    from the operator: where the kernel driver is, that the device plugin is off, the label for eviction.

    Args:
        name: Name of the component; its parts are called `<name>-operator`, `<name>-driver`, `<name>-example` and
            `<name>-node-plugin`.
        platform: Where the cluster runs.
        driver: Arguments of `DraDriver`, a version, True for the newest, None for none.
        operator: Arguments of `GpuOperator`, a version, True for the newest, None for none.
        example: Arguments of `ExampleDriver`, a version, True for the newest.
        node_plugin: Arguments of `NodePlugin`, or its back end: `"sim"` for simulated GPUs, `"nvml"` for those of nodes
            without NVIDIA's chart. Where a chart brings a driver of the same name, that is told.
        gpu_pools: Labels of the nodes of each GPU pool; what the installation needs and they lack is told.
        target: The cluster to install on; else the parent's, else the stack's.
        opts: Pulumi resource options.

    Attributes:
        platform: Where the cluster runs; None where that was not said.
        installed: What is installed, by `"operator"`, `"driver"`, `"example"`.
        device_classes: The DeviceClasses of all parts, by name, for `device_class=` of claims.
        node_labels: Labels that GPU nodes need.

    Example:
        ```python
        platform = dra.GpuPlatform("gpus", platform="aks", operator="26.7.0", driver={"compute_domains": False})
        notebook = dra.GpuClaim("notebook", device_class=platform.device_classes["gpu.nvidia.com"])
        ```
    """

    platform: pulumi.Output[PlatformName | None]
    installed: Mapping[str, Installed]
    device_classes: Mapping[str, InstalledClass]
    node_labels: Mapping[str, Any]

    @reports_unknown_arguments
    def __init__(
        self,
        name: str,
        *,
        platform: PlatformName | None = None,
        driver: DraDriverPart | str | bool | None = True,
        operator: GpuOperatorPart | str | bool | None = None,
        example: ExampleDriverPart | str | bool | None = None,
        node_plugin: NodePluginPart | Literal["sim", "nvml"] | None = None,
        gpu_pools: Mapping[str, Mapping[str, str]] | None = None,
        target: ClusterTarget | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__(name, target=target, opts=opts)
        self.platform = pulumi.Output.from_input(platform)
        self.installed, self.device_classes, self.node_labels = {}, InstalledClasses(), {}
        problems: list[Problem] = []
        parts: dict[str, dict[str, Any] | None] = {}
        crds: dict[str, Definitions] = {}

        def compile_parts(
            parts: Mapping[str, dict[str, Any] | None], plugin: NodePluginPlan | None
        ) -> PlatformPlan:
            line = self._pins(None).releases["gpu.nvidia.com"].line
            return compile_platform(
                platform, parts, target=self.target, line=line, gpu_pools=gpu_pools, node_plugin=plugin
            )

        def check(given: Arguments) -> list[Problem]:
            plugin, wrong = self._compile_plugin(given["node_plugin"], platform)
            parts = {part: read_part(part, given[part])[0] for part in PARTS}
            return [*wrong, *refusals_of(lambda judged: compile_parts(judged, plugin))(parts)]

        written = dict(zip((*PARTS, "node_plugin"), (operator, driver, example, node_plugin), strict=True))
        given = self._judge_secrets(written, check)
        for part in PARTS:
            parts[part], wrong = read_part(part, given[part])
            crds[part], unread = self._read_crds(parts[part] or {})
            problems += [*wrong, *(problem.below(part) for problem in unread)]
        plugin, wrong = self._compile_plugin(given["node_plugin"], platform)
        problems += wrong
        if plugin is None and wrong:
            # A plugin that is wrong is wanted all the same: that nothing is installed is no second problem.
            parts.setdefault("node_plugin", {})
        plan: PlatformPlan | None = None
        try:
            plan = compile_parts(parts, plugin)
        except InvalidSpecError as error:
            problems += error.problems
        self._tell([*problems, *(plan.warnings if plan else ())])
        if self._broken or plan is None:
            self.register_outputs({})
            return
        self._install(plan, parts, crds, plugin)

    def _compile_plugin(
        self, given: object, platform: PlatformName | None
    ) -> tuple[NodePluginPlan | None, list[Problem]]:
        arguments, problems = read_node_plugin(given, platform)
        if arguments is None:
            return None, problems
        try:
            plan = compile_node_plugin(self._plugin_name, arguments, join=joined)
            return plan, [problem.below("node_plugin") for problem in plan.warnings]
        except InvalidSpecError as error:
            return None, [problem.below("node_plugin") for problem in error.problems]

    @property
    def _plugin_name(self) -> str:
        return f"{self._component_name}-node-plugin"

    def _install(
        self,
        plan: PlatformPlan,
        parts: Mapping[str, Mapping[str, Any] | None],
        crds: Mapping[str, Definitions],
        plugin: NodePluginPlan | None,
    ) -> None:
        made = {part: self._make_crds(part, parts[part] or {}, crds) for part in plan.parts}
        # Before every release: one that brings a CRD of the same name would make it first.
        before: list[pulumi.Resource] = [each for part in made.values() for each in part]
        installed: dict[str, Installed] = {}
        for part, installation in plan.parts.items():
            installed[part] = self._install_chart(
                f"{self._component_name}-{part}",
                installation,
                parts[part] or {},
                before=before,
                skip_crds=bool(crds[part].objects or crds[part].addresses),
                needs_scc=part in plan.scc,
            )
            # A shared namespace is made by the first of them, and drivers follow the operator.
            before = [*before, *installed[part].resources.values()]
        self.installed = installed
        self.node_labels = plan.node_labels
        self.resources = {
            f"{part} {kind}": resource
            for part, each in installed.items()
            for kind, resource in each.resources.items()
        }
        classes = [each.device_classes for each in installed.values()]
        if plugin:
            if plugin.namespace in (each.namespace for each in installed.values()):
                plugin = replace(plugin, namespace_labels=None)
            made_last = make_objects(self, self._plugin_name, plugin, before=before)
            self.resources = {
                **self.resources,
                **{f"node_plugin {kind}": each for kind, each in made_last.items()},
            }
            classes.append(classes_of(plugin, made_last))
        self.device_classes = InstalledClasses(
            {name: found for each in classes for name, found in each.items()}
        )
        self.register_outputs(
            {
                "deviceClasses": list(self.device_classes),
                "namespaces": {
                    **{part: each.namespace for part, each in installed.items()},
                    **({"node_plugin": plugin.namespace} if plugin else {}),
                },
                "nodeLabels": dict(self.node_labels),
            }
        )

    def _make_crds(
        self, part: str, arguments: Mapping[str, Any], crds: Mapping[str, Definitions]
    ) -> list[pulumi.Resource]:
        taken = (
            {each["metadata"]["name"] for each in crds[_MADE_FIRST].objects} if part != _MADE_FIRST else set()
        )
        own = Definitions(
            tuple(each for each in crds[part].objects if each["metadata"]["name"] not in taken),
            crds[part].addresses,
        )
        return self._make_definitions(
            f"{self._component_name}-{part}", own, keep=arguments.get("keep_crds", True)
        )
