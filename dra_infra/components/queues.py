"""KueueQueue: workloads wait in a queue until the devices that they ask for are free."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal

import pulumi

from dra_infra.catalog.workload_kinds import QUEUE_LABEL
from dra_infra.components.component import Component, has_outputs, reports_unknown_arguments
from dra_infra.components.report import mappings_of_run, warn
from dra_infra.specs.object_names import check_metadata, check_object_name
from dra_infra.specs.queues import (
    CapacitySource,
    CounterSource,
    check_queue,
    check_together,
    class_names,
    compile_cluster_queue,
    compile_mappings,
    compile_sources,
    keys_of,
    plan_queue_objects,
    warn_of_sources,
)
from dra_infra.specs.requests import ClassArgument
from dra_infra.target import ClusterTarget


class KueueQueue(Component):
    """A ClusterQueue of Kueue with devices by class, its ResourceFlavor, and a LocalQueue in each namespace.

    Kueue 0.18 or newer has to run on the cluster, with `device_class_mappings` in its configuration: it reads them when it starts,
    and does not admit workloads whose class no mapping has. Nor does it admit claims by name, alternatives and `count="all"`.
    Pods that ask for a class by its `extended_resource_name` count under the same name from 0.19 on.

    Args:
        name: Name of the component, of the ClusterQueue, and of the LocalQueues.
        quota: Devices that are admitted at once, by class: `{h100: 64, "mig.nvidia.com": 56}`. A class counts under the name that
            a ResourceQuota has for it, `h100.deviceclass.resource.k8s.io/devices`.
        resources: Other resources: `{"cpu": "960", "memory": "8Ti"}`. A pod that requests a resource that no queue has
            is not admitted.
        sources: What classes are charged in place of devices, by the name of one of *resources*:
            `{"example.com/mig-memory": dra.CounterSource("memory", device_classes=["mig.nvidia.com"])}`.
        namespaces: Namespaces whose workloads may use the queue: each gets a LocalQueue.
        flavor: Name of a ResourceFlavor that exists; left out, one is made with the name of the component.
        node_labels: Labels of the nodes that the ResourceFlavor stands for; workloads are held to them.
        cohort: Cohort of queues that lend each other what they do not use.
        strategy: `BestEffortFIFO`, where a workload that does not fit lets others pass, or `StrictFIFO`.
        labels: Labels of the objects.
        annotations: Annotations of the objects.
        target: The cluster to compile for; else the parent's, else the stack's.
        opts: Pulumi resource options.

    Attributes:
        device_class_mappings: What `resources.deviceClassMappings` of Kueue's configuration has to hold for this queue.
        workload_labels: Labels by which a workload goes to the queue.

    Example:
        ```python
        queue = dra.KueueQueue("gpus", quota={h100: 64}, resources={"cpu": "960"}, namespaces=["vision"])
        k8s.batch.v1.Job("train", metadata={"namespace": "vision", "labels": queue.workload_labels}, spec=...)
        ```
    """

    device_class_mappings: Sequence[Mapping[str, Any]] | pulumi.Output[list[dict[str, Any]]]
    workload_labels: Mapping[str, str]

    @reports_unknown_arguments
    def __init__(
        self,
        name: str,
        *,
        quota: Mapping[ClassArgument, int] | None = None,
        resources: Mapping[str, pulumi.Input[str] | int] | None = None,
        sources: Mapping[str, CounterSource | CapacitySource] | None = None,
        namespaces: Sequence[pulumi.Input[str]] = (),
        flavor: str | None = None,
        node_labels: Mapping[str, pulumi.Input[str]] | None = None,
        cohort: str | None = None,
        strategy: Literal["BestEffortFIFO", "StrictFIFO"] | None = None,
        labels: Mapping[str, pulumi.Input[str]] | None = None,
        annotations: Mapping[str, pulumi.Input[str]] | None = None,
        target: ClusterTarget | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__(name, target=target, opts=opts)
        counted = {} if quota is None else quota
        charged = {} if sources is None else sources
        plain = {
            "quota": counted,
            "sources": charged,
            "flavor": flavor,
            "cohort": cohort,
            "strategy": strategy,
        }

        def check(given: Mapping[str, Any]) -> list[Any]:
            return [
                *check_metadata(given),
                *check_queue({**plain, **given}, self.target),
            ]

        written = {
            "labels": labels,
            "annotations": annotations,
            "resources": {} if resources is None else resources,
            "namespaces": namespaces,
            "node_labels": node_labels,
        }
        given = self._judge_secrets(written, check)
        self.device_class_mappings = []
        self.workload_labels = {QUEUE_LABEL: name}
        self._report([*check_object_name(name, path="name"), *check(given)])
        if not self._broken:
            self._check_beside_others(counted, charged)
        if self._broken:
            self.register_outputs({})
            return
        warn(self, self.label, warn_of_sources(charged))
        named = class_names(counted)
        counts = list(counted.values())
        compiled = partial(
            _compile_queue, counts, given, flavor=flavor or name, cohort=cohort, strategy=strategy
        )
        if any(isinstance(each, pulumi.Output) for each in named):
            known = pulumi.Output.all(*named)
            mappings: Any = known.apply(compile_mappings)
            spec: Any = known.apply(compiled)
        else:
            mappings = compile_mappings(named)
            spec = compiled(named)
        parts = mappings, compile_sources(charged)
        if has_outputs(parts):
            self.device_class_mappings = pulumi.Output.all(*parts).apply(lambda both: [*both[0], *both[1]])
        else:
            self.device_class_mappings = [*parts[0], *parts[1]]
        self.resources = self._make_objects(plan_queue_objects(name, spec, given, flavor=flavor))
        self.register_outputs({"deviceClassMappings": self.device_class_mappings})

    def _check_beside_others(
        self, counted: Mapping[Any, int], charged: Mapping[str, CounterSource | CapacitySource]
    ) -> None:
        known = [each for each in class_names(counted) if isinstance(each, str)]
        mappings = [*compile_mappings(known), *compile_sources(charged)]
        provider = self.get_provider("kubernetes:core/v1:Namespace")
        others = mappings_of_run().setdefault(provider.pulumi_resource_name if provider else "", {})
        self._report([*check_together(mappings, others)])
        for each in mappings:
            for key in keys_of(each):
                there = others.setdefault(key, [])
                # What is counted in the same way is at odds with the same others.
                there += [(self.label, each)] if each not in (other for _, other in there) else []


def _compile_queue(
    counts: Sequence[int], given: Mapping[str, Any], known: Sequence[str], **more: Any
) -> dict[str, Any]:
    return compile_cluster_queue(
        list(zip(known, counts, strict=True)), given["resources"], namespaces=given["namespaces"], **more
    )
