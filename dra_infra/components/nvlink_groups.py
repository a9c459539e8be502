"""NvlinkGroup: n GPUs joined by NVLink."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, TypeVar, Unpack

import pulumi

from dra_infra.catalog.drivers import newest
from dra_infra.components import pod_specs
from dra_infra.components.arguments import ClaimArgs, takes
from dra_infra.components.component import depending_on, reports_unknown_arguments
from dra_infra.components.device_claims import DeviceClaimComponent
from dra_infra.components.known_outputs import output_of
from dra_infra.components.kubernetes_object import KubernetesObject
from dra_infra.components.report import failing_output, warn
from dra_infra.errors import InvalidSpecError, Problem
from dra_infra.kubernetes.api import names
from dra_infra.selectors.selector import Selector
from dra_infra.specs.arguments import wrong_type
from dra_infra.specs.attachments import choose_containers
from dra_infra.specs.claims import SHORTHAND_REQUEST, AskedDevices
from dra_infra.specs.compute_domains import (
    API_VERSION,
    CHANNEL_REQUEST,
    KIND,
    check_options,
    compile_compute_domain,
)
from dra_infra.specs.nvlink_groups import (
    GROUP_LABEL,
    NvlinkPlan,
    affinity_term,
    check_workload,
    plan_group,
)
from dra_infra.specs.object_names import check_component_name, name_by_content
from dra_infra.specs.requests import ClassArgument, DeviceRequest, Toleration

Workload = TypeVar("Workload")

_CHANNEL_SUFFIX: Final = "-channel"
_LONGEST_NAME: Final = names.LABEL_LENGTH - len("-01234567")
"""The name and a hash are the value of a label; the name and the suffix, which is shorter, the name of a pod's entry."""


class NvlinkGroup(DeviceClaimComponent):
    """GPUs that are all joined by NVLink, as far as the hardware can promise it; else a problem says what can.

    - Up to what a board or node joins: a ResourceClaimTemplate, for one pod. Every pod that it is attached to is a group
      of its own.
    - Where Fabric Manager partitions the board (driver 0.5 with its gate FabricManagerPartitioning): the same, with the
      constraint that the GPUs are one partition.
    - Up to a rack: a ComputeDomain and a ResourceClaimTemplate, for `pods` pods on as many nodes, which a podAffinity
      keeps on one NVLink domain. `attach` takes the workload and checks that it runs so many.

    Args:
        name: Name of the component, of the pods' entries, and the stem of the objects' names: a DNS label, of at most 54
            characters for groups of several nodes.
        gpus: GPUs of the group.
        on: The system, `"hgx-h100"` or `"gb200-nvl72"`; `dra-infra catalog systems` lists them.
        gpu: The product, `"B200"`: enough where every server that takes it joins it, else beside `on`.
        gpus_per_pod: GPUs of each pod; left out, one pod where a node has enough, else as many as divide the group.
        device_class: The class of the GPUs: a `GpuDeviceClass`, `dra.class_ref(...)`, or the name of a class.
        select: What each GPU must pass beyond being of the product.
        tolerations: Device taints to tolerate.
        allocation_mode: `"All"` gives the pods every IMEX channel of the ComputeDomain; `"Single"` is the default.
        imex_mode: The driver chart's `resources.computeDomains.imex.mode`, where it is not `"driverManaged"`.
        namespace: Namespace of the object; the provider's default when left out.
        object_name: Name of the objects. Left out, names end in a hash of what they are made of, as those of claims do.
        labels: Labels of the object.
        annotations: Annotations of the object.
        replace: `"delete-first"` deletes an object with an explicit name before it makes the new one.
        driver_release: Release of the drivers, `"25.8"` or `"0.5"`; else the stack's `dra-infra:driver`, else the newest.
        driver_gates: Feature gates that the NVIDIA driver is given, as in its chart: `{"MPSSupport": True}`. What needs a
            gate is checked against them; left out, nothing is said of gates.
        target: The cluster to compile for; else the parent's, else the stack's.
        opts: Pulumi resource options.

    Attributes:
        pods: How many pods the group has; 0 when the component has problems.
        object_name: Name of the ResourceClaimTemplate.
        channel_template: Name of the ResourceClaimTemplate that the driver's controller makes for the ComputeDomain;
            None for a group on one node.
        namespace: Namespace of the objects.

    Example:
        ```python
        pretrain = dra.NvlinkGroup("pretrain", gpus=72, on="gb200-nvl72", namespace="ml")
        job = {"parallelism": 18, "completions": 18, "completion_mode": "Indexed", "template": template}
        k8s.batch.v1.Job("pretrain", metadata={"namespace": "ml"}, spec=pretrain.attach(job))
        ```
    """

    _kind = "ResourceClaimTemplate"
    _kinds = ("ResourceClaimTemplate", KIND)
    _entry_field = "resource_claim_template_name"

    pods: int
    channel_template: pulumi.Output[str] | None
    _channel: str | pulumi.Output[str] | None

    @reports_unknown_arguments
    @takes(ClaimArgs)
    def __init__(
        self,
        name: str,
        *,
        gpus: int | None = None,
        on: str | None = None,
        gpu: str | None = None,
        gpus_per_pod: int | None = None,
        device_class: ClassArgument = "gpu.nvidia.com",
        select: Selector | None = None,
        tolerations: Sequence[Toleration] = (),
        allocation_mode: Literal["Single", "All"] | None = None,
        imex_mode: Literal["driverManaged", "hostManaged"] | None = None,
        **common: Unpack[ClaimArgs],
    ) -> None:
        self._begin(name, {key: common.get(key) for key in ClaimArgs.__annotations__})
        line = self._line()
        gates = common.get("driver_gates")
        plan, problems = _plan(gpus, on=on, gpu=gpu, gpus_per_pod=gpus_per_pod, line=line, gates=gates)
        problems += _check_for(plan, name, allocation_mode, imex_mode, line, gates)
        if plan is not None and (select is None or isinstance(select, Selector)):
            select = plan.select if select is None else plan.select & select
        asked = DeviceRequest(
            SHORTHAND_REQUEST,
            device_class=device_class,
            count=plan.gpus_per_pod if plan else 1,
            select=select,
            tolerations=tolerations,
        )
        self.pods = 0
        self.channel_template = self._channel = None
        self._group = ""
        constraints = plan.constraints if plan else ()
        # Pods of a group have an entry and a label that begin with the component's name, whatever its objects are called.
        named = [*problems, *check_component_name(name)]
        self._make(AskedDevices(requests=[asked], constraints=constraints, problems=named, shorthand=True))
        if plan is None or self._broken:
            return
        self.pods = plan.pods
        self._plan = plan
        warn(self, self.label, plan.warnings)
        if plan.promise == "compute-domain":
            self._make_compute_domain(line, allocation_mode)

    def attach(
        self,
        pod_spec: Workload,
        containers: str | Sequence[str] | None = None,
        *,
        request: str | None = None,
        entry: str | None = None,
    ) -> Workload:
        """A copy of a workload whose pods are the group; the given one is left as it is.

        For a group of several nodes the pods get the claim of the ComputeDomain's channel beside that of their GPUs, a
        label, and a podAffinity to each other on the label `nvidia.com/gpu.clique` of nodes.

        Args:
            pod_spec: A workload with a pod template (Job, Deployment, StatefulSet), its spec, or a pod template: dicts in
                either spelling, or args objects. For a group on one node also a pod spec. The number of pods is only
                checked where the workload or its spec is given.
            containers: Names of the containers and init containers that use the GPUs. May be left out when the pod has
                one container.
            request: Only `"gpu"`, the one request of the claim.
            entry: Name of the pod's entry for the GPUs, a DNS label; the component's when left out.

        Problems are reported for the run, with codes `nvlink-group-shape`, and those of `GpuClaimTemplate.attach`.
        """
        path = pod_specs.template_path(pod_spec)
        if path is None:
            return self._attach_to_pod(pod_spec, containers, request=request, entry=entry)
        template = pod_specs.read_template(pod_spec, path)
        if self._channel is not None:
            try:
                template = self._tied(template, pod_specs.read_pod_numbers(pod_spec, path) if path else None)
            except InvalidSpecError as error:
                self._report([problem.below("attach") for problem in error.problems])
        attached = super().attach(template, containers, request=request, entry=entry)
        if not self._broken and (channel := self._channel_pod_claim()):
            attached = self._with_channel(attached, containers, channel)
        # `replaced` copies the type that it is given.
        return pod_specs.template_replaced(pod_spec, path, attached)  # type: ignore[no-any-return]

    def _attach_to_pod(
        self,
        pod_spec: Workload,
        containers: str | Sequence[str] | None,
        *,
        request: str | None,
        entry: str | None,
    ) -> Workload:
        if self._channel is not None:
            hint = "give the spec of the Job, Deployment or StatefulSet, or the pod template: the pods get a label too"
            self._report([wrong_type("attach.pod_spec", pod_spec, "a workload or a pod template", hint)])
        return super().attach(pod_spec, containers, request=request, entry=entry)

    def _pod_labels(self) -> dict[str, str]:
        """Return the labels that `attach` gives to the pods of a group of several nodes."""
        return {GROUP_LABEL: self._group} if self._group else {}

    def _pod_affinity_term(self) -> dict[str, Any] | None:
        """Return the term of `podAffinity` that `attach` gives to the pods; None for a group on one node."""
        return affinity_term(self._group) if self._group else None

    def _channel_pod_claim(self) -> dict[str, Any] | None:
        """Return the entry that `attach` adds to the claims of a pod for the channel; None for a group on one node."""
        if self._channel is None:
            return None
        entry = f"{self._component_name}{_CHANNEL_SUFFIX}"
        return {"name": entry, self._entry_field: self._for_pods(self._channel, KIND)}

    def _tied(self, template: Any, written: Mapping[str, Any] | None) -> Any:
        """A pod template whose pods find each other on one NVLink domain."""
        if written is not None and (problems := check_workload(written, self._plan)):
            raise InvalidSpecError(problems)
        for label, value in self._pod_labels().items():
            template = pod_specs.add_label(template, label, value)
        return pod_specs.add_pod_affinity(template, affinity_term(self._group))

    def _with_channel(
        self, template: Any, containers: str | Sequence[str] | None, claim: dict[str, Any]
    ) -> Any:
        """A pod template whose containers have a channel of the ComputeDomain."""
        entry = claim["name"]
        pod, _ = pod_specs.pod_spec_of(template)
        view = pod_specs.view_pod(pod)
        chosen = choose_containers(view, entry=entry, requests=(CHANNEL_REQUEST,), containers=containers)
        if pod_specs.find_entry(pod, entry) is None:
            pod = pod_specs.add_entry(pod, claim)
        pod = pod_specs.add_container_claims(pod, chosen, {"name": entry})
        return pod_specs.template_replaced(template, ("spec",), pod)

    def _make_compute_domain(self, line: str, allocation_mode: str | None) -> None:
        name = self._component_name
        spec = compile_compute_domain(
            "",
            nodes=self._plan.pods,
            line=line,
            gates=self._common["driver_gates"],
            allocation_mode=allocation_mode,
        )
        # What the pods ask for counts too: pods of a group that has changed need not go where the old ones still are.
        claim = self._object_name if isinstance(self._object_name, str) else None
        self._group = name_by_content(name, {"spec": spec, "pods": self._plan.pods, "claim": claim})
        given = self._common["object_name"]
        object_name = self._group if given is None else given
        if isinstance(object_name, str):
            self._channel = f"{object_name}{_CHANNEL_SUFFIX}"
        else:
            self._channel = pulumi.Output.concat(object_name, _CHANNEL_SUFFIX)
        spec["channel"]["resourceClaimTemplate"] = {"name": self._channel}
        self.channel_template = output_of(self._channel)
        metadata = self._metadata(object_name)
        manifest = {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": spec}
        self.resources = {**self.resources, KIND: KubernetesObject(name, manifest, self._child_options([]))}

    def _name_for_pods(self) -> str | pulumi.Output[str]:
        return self._for_pods(self._object_name, self._kind)

    def _for_pods(self, named: str | pulumi.Output[str], kind: str) -> str | pulumi.Output[str]:
        """A name as pods carry it: with a dependency on the object, so that the engine makes that first."""
        if self._broken:
            return failing_output()
        return named if self._delete_first else depending_on(named, self.resources[kind])

    def _line(self) -> str:
        try:
            pins = self._driver_pins
        except InvalidSpecError:
            # `_make` says so; everything else is looked at all the same.
            pins = newest()
        return pins.releases["gpu.nvidia.com"].line


# What a group hides from users, the package for other languages shows instead of `attach`.


def channel_pod_claim_of(group: NvlinkGroup) -> dict[str, Any] | None:
    """Return the entry that `attach` adds to the claims of a pod for the channel; None for a group on one node."""
    return group._channel_pod_claim()  # noqa: SLF001


def pod_labels_of(group: NvlinkGroup) -> dict[str, str]:
    """Return the labels that `attach` gives to the pods of a group of several nodes."""
    return group._pod_labels()  # noqa: SLF001


def pod_affinity_term_of(group: NvlinkGroup) -> dict[str, Any] | None:
    """Return the term of `podAffinity` that `attach` gives to the pods; None for a group on one node."""
    return group._pod_affinity_term()  # noqa: SLF001


def _plan(gpus: Any, **arguments: Any) -> tuple[NvlinkPlan | None, list[Problem]]:
    if gpus is None:
        hint = 'write gpus=8, on="hgx-h100"'
        return None, [
            Problem(path="gpus", code="missing-argument", message="no number of GPUs is given", hint=hint)
        ]
    try:
        return plan_group(gpus, **arguments), []
    except InvalidSpecError as error:
        return None, list(error.problems)


def _check_for(
    plan: NvlinkPlan | None, name: object, allocation_mode: Any, imex_mode: Any, line: str, gates: Any
) -> list[Problem]:
    """Check the arguments that are for groups of several nodes, or must not be given for others."""
    if plan is None:
        return []
    if plan.promise == "compute-domain":
        problems = check_options(allocation_mode, imex_mode, line=line, gates=gates)
        if isinstance(name, str) and len(name) > _LONGEST_NAME:
            message = (
                f"{name!r} has {len(name)} characters, and labels of the pods hold {_LONGEST_NAME} of them"
            )
            problems.append(Problem(path="name", code="invalid-name", message=message, hint="shorten it"))
        return problems
    return [
        Problem(
            path=path,
            code="compute-domain-option",
            message=f"{plan.gpus_per_pod} GPUs of one node need no ComputeDomain",
            hint="leave it out",
        )
        for path, value in (("allocation_mode", allocation_mode), ("imex_mode", imex_mode))
        if value is not None
    ]
