"""The base of all claim components: makes the object from what is asked for, and places it in pods."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import pulumi

from dra_infra.catalog.drivers import Pins, newest
from dra_infra.components import pod_specs
from dra_infra.components.arguments import ClaimArgs
from dra_infra.components.component import Component, depending_on, has_outputs, present
from dra_infra.components.known_outputs import holds_unknown, output_of
from dra_infra.components.kubernetes_object import KubernetesObject
from dra_infra.components.later_counts import judge_counts
from dra_infra.components.report import classes_elsewhere_of_run, failing_output, warn
from dra_infra.errors import InvalidSpecError, Problem
from dra_infra.kubernetes.api import API_VERSION
from dra_infra.program_objects import UNKNOWN_RESULT
from dra_infra.specs.attachments import choose_containers
from dra_infra.specs.claims import SHORTHAND_REQUEST, AskedDevices, compile_claim, leaves_of
from dra_infra.specs.component_plans import metadata_of
from dra_infra.specs.device_classes import check_known_gates
from dra_infra.specs.device_configs import DeviceConfig
from dra_infra.specs.object_names import check_component_name, check_metadata, name_by_content
from dra_infra.specs.requests import ClassRef, DeviceRequest, NamedClass, class_name_of

PodSpec = TypeVar("PodSpec")


class DeviceClaimComponent(Component):
    """Base of all claims and claim templates; its function of `specs` says what devices are asked for."""

    _is_abstract = True
    _shared: bool = False
    """Whether pods share one ResourceClaim; else each pod gets a claim of its own from a template."""

    resources: Mapping[str, KubernetesObject]
    object_name: pulumi.Output[str]
    namespace: pulumi.Output[str]

    _object_name: str | pulumi.Output[str]
    """The name, plain while all that it is made of is known."""

    def _construct(
        self,
        name: str,
        arguments: Mapping[str, Any],
        plan: Callable[..., Any],
    ) -> None:
        """Register the claim for what *plan* makes of arguments, target and driver releases: `AskedDevices`."""
        self._begin(name, {key: arguments[key] for key in ClaimArgs.__annotations__})
        try:
            pins: Pins | None = self._driver_pins
        except InvalidSpecError:
            # `_make` reports it; the rest is still checked.
            pins = None
        self._make(plan(arguments, self.target, pins))

    def _begin(self, name: str, common: Mapping[str, Any]) -> None:
        """Register the component, with those of its arguments that all claims have."""
        Component.__init__(self, name, target=common["target"], opts=common["opts"])
        self._common = self._judge_secrets(common, check_metadata)

    def _make(self, asked: AskedDevices) -> None:
        """Compile what is asked for, and register the object; with problems, report them all and register none."""
        self._shared = asked.shared
        name, namespace, object_name = (
            self._component_name,
            self._common["namespace"],
            self._common["object_name"],
        )
        self._delete_first = self._common["replace"] == "delete-first"
        self._set_name(object_name if object_name is not None else name)
        self.namespace = output_of(namespace if namespace is not None else "")
        self._requests = asked.request_names or tuple(
            str(getattr(request, "name", "")) for request in asked.requests
        )
        warnings: list[Problem] = []
        manifest = self._compile(asked, warnings)
        if manifest is None or not self._is_accepted(manifest):
            self.register_outputs({})
            return
        if self._common["driver_release"] is not None:
            # Advice on the object is for the stack's release, and cannot tell what another one does.
            warn(self, self.label, [_in_terms_of(asked.arguments, problem) for problem in warnings])
        child = KubernetesObject(name, manifest, self._child_options(asked.requests))
        self.resources = {self._kind: child}
        if isinstance(self._object_name, pulumi.Output) and not self._delete_first:
            self._set_name(child.returned_name)
        if namespace is None:
            self.namespace = child.metadata.apply(lambda found: (found or {}).get("namespace") or "default")
        self.register_outputs({"objectName": self.object_name, "namespace": self.namespace})

    def _compile(self, asked: AskedDevices, warnings: list[Problem]) -> dict[str, Any] | None:
        """Return the object, whose name is set; None after reporting all problems."""
        name, common = self._component_name, self._common
        is_named_by_content = common["object_name"] is None
        problems: list[Problem] = [
            *(check_component_name(name) if is_named_by_content else ()),
            *check_metadata(common),
            *asked.problems,
            *self._object_options.check(self._kinds, named_by_content=is_named_by_content),
        ]
        try:
            pins = self._driver_pins
            problems += check_known_gates(pins, common["driver_gates"])
        except InvalidSpecError as error:
            problems += error.problems
            pins = newest()
        compile_requests = functools.partial(
            compile_claim,
            constraints=asked.constraints,
            configs=asked.configs,
            target=self.target,
            pins=pins,
            gates=common["driver_gates"],
            shorthand=asked.shorthand,
        )
        try:
            spec = compile_requests(asked.requests, warnings=warnings)
        except InvalidSpecError as error:
            problems += [_in_terms_of(asked.arguments, problem) for problem in error.problems]
        if problems or self._broken:
            self._report(list(dict.fromkeys(problems)))
            return None

        def check_requests(known: Sequence[DeviceRequest]) -> list[Problem]:
            try:
                compile_requests(known)
            except InvalidSpecError as error:
                return [_in_terms_of(asked.arguments, each) for each in error.problems]
            return []

        requests = judge_counts(asked.requests, check_requests, self.label)
        claim_spec = _put_inputs(spec.to_manifest(), requests, asked.configs)
        immutable = self._judge_secrets(
            claim_spec if asked.shared else {"spec": claim_spec},
            lambda judged: self._problems_of({"apiVersion": API_VERSION, "kind": self._kind, "spec": judged}),
        )
        if is_named_by_content:
            self._set_name(_named(name, immutable))
        if wrong := self._object_options.check_import(self._object_name, common["namespace"]):
            self._report(wrong)
            return None
        metadata = self._metadata(self._object_name)
        return {"apiVersion": API_VERSION, "kind": self._kind, "metadata": metadata, "spec": immutable}

    @functools.cached_property
    def _driver_pins(self) -> Pins:
        """Driver releases that the claim is made for.

        Raises:
            InvalidSpecError: `unknown-driver-release`.
        """
        return self._pins(self._common["driver_release"])

    def _set_name(self, name: str | pulumi.Output[str]) -> None:
        self._object_name = name
        self.object_name = output_of(name)

    def _metadata(self, object_name: pulumi.Input[str]) -> dict[str, Any]:
        """Metadata of an object of the claim, which may be several: all get the same labels and annotations."""
        return metadata_of("", {**self._common, "object_name": object_name})

    @property
    def _kind(self) -> str:
        return "ResourceClaim" if self._shared else "ResourceClaimTemplate"

    @property
    def _kinds(self) -> tuple[str, ...]:
        """The kinds of all objects that the component makes."""
        return (self._kind,)

    @property
    def _entry_field(self) -> str:
        """The field of a pod's entry that takes the object's name."""
        return "resource_claim_name" if self._shared else "resource_claim_template_name"

    def attach(
        self,
        pod_spec: PodSpec,
        containers: str | Sequence[str] | None = None,
        *,
        request: str | None = None,
        entry: str | None = None,
    ) -> PodSpec:
        """A copy of a pod spec, or of a workload, whose containers use this claim; the given one is left as it is.

        The pod's entry is named after the component, unless `entry` says otherwise. It carries a dependency on the object, so that the engine
        makes the object first, except under `replace="delete-first"`, where the dependency would have the engine
        delete the workload too: give the workload `depends_on` there.

        A Job's template and a bare pod are immutable: when the claim changes, the Job is replaced.

        Args:
            pod_spec: A pod spec, a pod template, a workload with one (Job, CronJob, Deployment, StatefulSet) or its spec: a
                dict in either spelling, or args objects (`PodSpecArgs`, `PodTemplateSpecArgs`, `JobSpecArgs`).
            containers: Names of the containers and init containers that use the devices. May be left out when the
                pod has one container.
            request: Give the containers only the devices of this request.
            entry: Name of the pod's entry, a DNS label, for pods that have one already and must not change.

        Problems are reported for the run, with codes `unknown-container`, `containers-not-named`,
        `unknown-request`, `claim-attached-twice`, `wrong-type`, `invalid-name`.
        """
        given = self._component_name if entry is None else entry
        if refused := list(check_component_name(given)):
            # Of a component without an object name the same was reported where it was made.
            self._report(
                [] if self._broken else [replace(problem, path="attach.entry") for problem in refused]
            )
        entry = str(self._component_name if refused else given)
        try:
            pod, fields = pod_specs.pod_spec_of(pod_spec)
            view = pod_specs.view_pod(pod)
        except InvalidSpecError as error:
            self._report([problem.below("attach") for problem in error.problems])
            return pod_spec
        try:
            names = choose_containers(
                view,
                entry=entry,
                requests=self._requests or (SHORTHAND_REQUEST,),
                containers=containers,
                request=request,
            )
        except InvalidSpecError as error:
            # From here on the component counts as broken: the entry fails, so that no pod without devices is made.
            self._report([problem.below("attach") for problem in error.problems])
            names = ()
        present_entry = pod_specs.find_entry(pod, entry)
        if present_entry is None:
            pod = pod_specs.add_entry(pod, self._pod_claim(entry))
        elif not self._is_own(present_entry):
            self._report([_entry_taken(entry)])
        pod = pod_specs.add_container_claims(pod, names, present({"name": entry, "request": request}))
        # `replaced` copies the type that it is given.
        return pod_specs.template_replaced(pod_spec, fields, pod)  # type: ignore[no-any-return]

    def _pod_claim(self, entry: str | None = None) -> dict[str, Any]:
        """Return the entry that `attach` adds to the claims of a pod, in Python's spelling.

        Args:
            entry: Its name; the component's when left out.
        """
        return {"name": entry or self._component_name, self._entry_field: self._name_for_pods()}

    def _is_own(self, entry: Any) -> bool:
        """True for a pod's entry that names our object: one of another kind or with another name is someone else's."""
        named = pod_specs.read(entry, self._entry_field)
        return named is not None and (not isinstance(named, str) or named == self._object_name)

    def _name_for_pods(self) -> str | pulumi.Output[str]:
        if self._broken:
            return failing_output()
        if self._delete_first:
            return self._object_name
        return depending_on(self._object_name, self.resources[self._kind])

    def _child_options(self, asked: Sequence[DeviceRequest]) -> pulumi.ResourceOptions:
        # Classes of the same program go first: the API server does not check that a class exists, but a pod
        # created in between would wait for it. An option rather than a property, so that nothing cascades.
        named: list[Any] = [leaf.device_class for _, leaf in leaves_of(asked)]
        elsewhere = classes_elsewhere_of_run()
        for name in (class_name_of(each) for each in named if isinstance(each, ClassRef)):
            if isinstance(name, pulumi.Output):
                name.apply(lambda known: None if holds_unknown(known) else elsewhere.add(known))
            elif isinstance(name, str):
                elsewhere.add(name)
        # A class of the program, or one that a platform of the program installs; a resource is taken once.
        children = {
            id(child): child
            for each in named
            if isinstance(each, NamedClass)
            for child in getattr(each, "resources", {}).values()
        }
        classes = list(children.values())
        options = pulumi.ResourceOptions(parent=self, depends_on=classes or None)
        if self._delete_first:
            # The provider's own list of immutable fields does not know these kinds.
            options.replace_on_changes = ["spec"]
            options.delete_before_replace = True
        return options


# What a claim hides from users, the package for other languages shows instead of `attach`.


def pod_claim_of(claim: DeviceClaimComponent) -> dict[str, Any]:
    """Return the entry that `attach` adds to the claims of a pod, in Python's spelling."""
    return claim._pod_claim()  # noqa: SLF001


def _in_terms_of(arguments: Mapping[str, str], problem: Problem) -> Problem:
    for place, argument in arguments.items():
        if problem.path == place or problem.path.startswith((f"{place}.", f"{place}[")):
            return replace(problem, path=argument + problem.path.removeprefix(place))
    return problem


def _entry_taken(entry: str) -> Problem:
    return Problem(
        path="attach",
        code="duplicate-claim",
        message=f"the pod has an entry {entry!r} for another claim",
        hint="pods know a claim by its component's name: give one of the two components another name",
    )


def _named(name: str, immutable: Mapping[str, Any]) -> str | pulumi.Output[str]:
    """The name by content; an Output only while something in it is one."""
    if not has_outputs(immutable):
        return name_by_content(name, immutable)

    def named(known: Mapping[str, Any]) -> str:
        return UNKNOWN_RESULT if holds_unknown(known) else name_by_content(name, known)

    return pulumi.Output.from_input(immutable).apply(named)


def _put_inputs(
    spec: dict[str, Any], asked: Sequence[DeviceRequest], configs: Sequence[DeviceConfig]
) -> dict[str, Any]:
    """*spec* with classes, counts and configs as they were given: Outputs in place of the compiler's markers."""
    devices = spec["devices"]
    leaves = [
        leaf
        for request in devices["requests"]
        for leaf in request.get("firstAvailable") or [request["exactly"]]
    ]
    for record, (_, leaf) in zip(leaves, leaves_of(asked), strict=True):
        record["deviceClassName"] = class_name_of(leaf.device_class)
        if isinstance(leaf.count, pulumi.Output):
            record["count"] = leaf.count
    for record, config in zip(devices.get("config", ()), configs, strict=True):
        parameters = config.to_parameters()
        if has_outputs(parameters):
            record["opaque"]["parameters"] = parameters
    return spec
