"""The base of every component: its type token, its target, and how it reports problems."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar, Literal, TypeVar

import pulumi
from pydantic.alias_generators import to_camel

from dra_infra.advice.objects import check_object
from dra_infra.advice.python_hints import in_python
from dra_infra.catalog.drivers import Pins
from dra_infra.components.by_hand import note_run_by_hand
from dra_infra.components.known_outputs import output_of, with_known_texts
from dra_infra.components.kubernetes_object import KubernetesObject, take_object_options
from dra_infra.components.registered_inputs import inputs_of
from dra_infra.components.report import judged_at_end, log_warning, report, targets_of_run, warn
from dra_infra.components.secret_arguments import Arguments, Check, judge_secrets, refusals_of
from dra_infra.errors import InvalidSpecError, Problem
from dra_infra.program_objects import UNKNOWN
from dra_infra.specs.arguments import (
    check_driver,
    check_resource_name,
    unknown_argument,
    wrong_type,
)
from dra_infra.specs.component_plans import ComponentPlan, PlannedObject
from dra_infra.specs.device_classes import read_driver_release
from dra_infra.target import ClusterTarget, check_target, read_gates

Replace = Literal["delete-first"]
"""How an object with an explicit name is changed: the old one is deleted before the new one is made."""

_JUDGED_GROUP = "resource.k8s.io/"

_SHOWN = 253
"""Most characters of a name in problems; no object has a longer one."""

_OWN_MODULES = f"{__package__}."

_Init = TypeVar("_Init", bound=Callable[..., None])


def reports_unknown_arguments(init: _Init) -> _Init:
    """Make a misspelt argument a problem with the nearest name, so that it is shown together with all others."""
    parameters = inspect.signature(init).parameters
    known = [
        name for name, parameter in parameters.items() if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    ]

    @functools.wraps(init)
    def checked(self: Any, *args: Any, **kwargs: Any) -> None:
        given = [*args, *([kwargs.pop("name")] if "name" in kwargs else [])]
        unknown = [argument for argument in kwargs if argument not in parameters]
        label = label_of(self, given[0]) if given else type(self).__name__
        problems = [unknown_argument(argument, known).below(label) for argument in unknown]
        if len(given) != 1:
            problems.append(
                Problem(
                    path=label,
                    code="unknown-argument" if given else "missing-argument",
                    message=f"takes one positional argument, its name, and got {len(given)}",
                    hint=f'write {type(self).__name__}("name", ...) and give everything else by keyword',
                )
            )
        wrong: list[Problem] = []
        if "driver_release" in parameters:
            wrong += check_driver(kwargs.get("driver_release"), kwargs.get("driver_gates"))
        left_out = {problem.path.partition("[")[0] for problem in wrong}
        problems += [problem.below(label) for problem in wrong]
        if problems:
            report(problems)
            self._misspelt = problems
        # The rest of the arguments is still checked: one look fixes all.
        kept = {
            key: with_known_texts(kwargs[key]) for key in kwargs if key in parameters and key not in left_out
        }
        self._given = kept
        init(self, *(given[:1] or ("unnamed",)), **kept)

    return checked  # type: ignore[return-value]  # functools.wraps keeps the signature, which no type can say


def compiled_by(plan: Callable[..., Any]) -> Callable[[_Init], _Init]:
    """Make a constructor of its signature alone: the base compiles the arguments by *plan*, a function of `specs`."""

    def make(signature: _Init) -> _Init:
        parameters = inspect.signature(signature).parameters
        defaults = {name: each.default for name, each in parameters.items() if each.kind is each.KEYWORD_ONLY}
        inputs = [name for name, each in parameters.items() if "Input[" in str(each.annotation)]

        @functools.wraps(signature)
        def construct(self: Component, name: Any, **given: Any) -> None:
            # Python's own words for an argument that is missing.
            signature(self, name, **given)
            self._input_arguments = inputs
            self._construct(name, {**defaults, **given}, plan)

        return reports_unknown_arguments(construct)  # type: ignore[return-value]  # as above

    return make


class Component(pulumi.ComponentResource):
    """Base of all components of this package.

    Attributes:
        resources: The children by kind, for Python programs; empty when the component has problems.
    """

    resources: Mapping[str, pulumi.Resource]
    _given: Mapping[str, Any] = MappingProxyType({})
    """The arguments of the call, without those that no component of the class takes."""

    _misspelt: Sequence[Problem] = ()
    """Problems of the call itself, reported before the arguments are looked at."""

    _input_arguments: Sequence[str]
    """Names of the arguments that are Pulumi inputs, or hold some."""

    _is_abstract: ClassVar[bool] = True
    """Whether the class is none that users make objects of; each class says so of itself."""

    _registered_outputs: ClassVar[tuple[str, ...]] = ()

    def __init__(self, name: str, *, target: object, opts: pulumi.ResourceOptions | None) -> None:
        note_run_by_hand()
        self._component_name = name
        refused = check_resource_name(name)
        registered = "unnamed" if refused else name
        opts, self._object_options = take_object_options(self, opts)
        inputs = inputs_of(self._given)
        own = {key: value for key, value in vars(self).items() if key in inputs}
        super().__init__(f"dra-infra:index:{_type_name(self)}", registered, inputs, opts)
        # The SDK makes an attribute of each input. Those of a component are what it documents.
        for key in inputs:
            vars(self).pop(key, None)
        vars(self).update(own)
        self.resources = {}
        self._problems: list[Problem] = [*self._misspelt]
        self._report(refused)
        self._target = self._resolve_target(target, opts)

    def _construct(
        self,
        name: str,
        arguments: Mapping[str, Any],
        plan: Callable[..., Any],
    ) -> None:
        """Register the component and its objects; with problems, report them all and make no object.

        Args:
            name: Name of the component.
            arguments: All of them, by name.
            plan: Compiles name, arguments and target to a `ComponentPlan`.
        """
        Component.__init__(self, name, target=arguments["target"], opts=arguments["opts"])
        given = {**arguments}
        if "driver_release" in given:
            given["driver_release"] = given["driver_release"] or self._stack_setting("driver")
        given |= self._judge_secrets(
            {key: arguments[key] for key in self._input_arguments},
            refusals_of(lambda judged: plan(name, {**given, **judged}, self.target)),
        )
        self._show(name, given)
        self._report(self._check_options())
        compiled: ComponentPlan | None = None
        try:
            compiled = plan(name, given, self.target)
        except InvalidSpecError as error:
            self._report(error.problems)
        if compiled is None or self._broken:
            self.register_outputs({})
            return
        for attribute, value in compiled.attributes.items():
            setattr(self, attribute, value)
        if not all(
            self._is_accepted(each.manifest) for each in compiled.objects if _is_judged(each.manifest)
        ):
            self.register_outputs({})
            return
        if arguments.get("driver_release", "") is not None:
            # Advice on the object is for the stack's release, and cannot tell what another one does.
            warn(self, self.label, compiled.warnings)
        self.resources = self._make_objects(compiled.objects)
        self.register_outputs({to_camel(key): getattr(self, key) for key in self._registered_outputs})

    def register_outputs(self, outputs: Mapping[str, Any]) -> None:
        """Register *outputs*, those that are known as texts: the SDK makes tasks of each Output."""
        super().register_outputs(with_known_texts(outputs))

    def _show(self, name: str, arguments: Mapping[str, Any]) -> None:
        """Set the attributes that a component with problems has too."""

    def _check_options(self) -> list[Problem]:
        """Check the resource options that mean the component's objects."""
        return []

    def _make_objects(self, objects: Sequence[PlannedObject]) -> dict[str, KubernetesObject]:
        """Make children for *objects*, by key."""
        made: dict[str, KubernetesObject] = {}
        for each in objects:
            after = [made[key] for key in each.after]
            options = pulumi.ResourceOptions(parent=self, depends_on=after or None)
            made[each.key] = KubernetesObject(each.name, each.manifest, options)
        return made

    @property
    def label(self) -> str:
        """How problems name the component: `GpuClaimTemplate("trainer")`."""
        return label_of(self, self._component_name)

    @property
    def _broken(self) -> bool:
        """The component has reported problems and therefore has no children."""
        return bool(self._problems)

    @property
    def target(self) -> ClusterTarget:
        """The cluster that this component compiles for."""
        return self._target

    def _report(self, problems: Sequence[Problem]) -> None:
        """Report *problems*, whose paths are arguments of this component."""
        named = [problem.below(self.label) for problem in problems]
        self._problems += named
        report(named)

    def _pins(self, driver_release: str | None) -> Pins:
        """The driver releases that are meant: the argument, else the stack's `dra-infra:driver`, else the newest.

        Raises:
            InvalidSpecError: `unknown-driver-release`.
        """
        return read_driver_release(driver_release or self._stack_setting("driver"))

    def _stack_setting(self, name: str) -> str | None:
        """The stack's `dra-infra:<name>`."""
        return pulumi.Config("dra-infra").get(name)

    def _is_accepted(self, manifest: Mapping[str, Any]) -> bool:
        """Ask an API server of the target about *manifest*: errors are reported, advice is logged; True without errors.

        Outputs count as not known. Runs that judge all objects at their end, `synth` for one, are not asked twice.
        """
        if judged_at_end.get():
            return True
        problems = self._problems_of(manifest)
        for problem in problems:
            if problem.severity == "warning":
                log_warning(self, problem.below(self.label))
        errors = [problem for problem in problems if problem.severity == "error"]
        self._report(errors)
        return not errors

    def _problems_of(self, manifest: Mapping[str, Any]) -> list[Problem]:
        """Returns what an API server of the target refuses about *manifest*, and advice on it; Outputs count as not known."""
        return [in_python(each) for each in check_object(_without_outputs(manifest), self.target)]

    def _judge_secrets(self, arguments: Mapping[str, Any], check: Check) -> Arguments:
        """Returns *arguments*, whose secrets fail the run where *check* refuses what they hold."""
        return judge_secrets(arguments, check, self.label)

    def _resolve_target(self, target: object, opts: pulumi.ResourceOptions | None) -> ClusterTarget:
        of_stack = ClusterTarget(
            kubernetes=self._stack_setting("kubernetes"), gates=self._find_gates_of_stack()
        )
        found = self._find_target(target, opts, of_stack)
        if found != of_stack:
            targets_of_run()[self.label] = found
        return found

    def _find_gates_of_stack(self) -> Mapping[str, bool]:
        """The stack's `dra-infra:gates`, which `--gate` of a command adds to."""
        try:
            return read_gates(self._stack_setting("gates") or "")
        except InvalidSpecError as error:
            self._report(error.problems)
            return {}

    def _find_target(
        self, target: object, opts: pulumi.ResourceOptions | None, of_stack: ClusterTarget
    ) -> ClusterTarget:
        if isinstance(target, ClusterTarget):
            found = target
        elif target is not None:
            self._report([wrong_type("target", target, "a ClusterTarget")])
            return ClusterTarget()
        else:
            parent = opts.parent if opts else None
            if isinstance(parent, Component):
                return parent.target
            found = of_stack
        problems = check_target(found)
        if problems:
            self._report([problem.below("target") for problem in problems])
            return ClusterTarget()
        return found


class ObjectComponent(Component):
    """Base of components that make one object, called like the component unless `object_name` is given."""

    _is_abstract = True
    resources: Mapping[str, KubernetesObject]
    object_name: pulumi.Output[str]
    _registered_outputs = ("object_name",)

    def _show(self, name: str, arguments: Mapping[str, Any]) -> None:
        self.object_name = output_of(name if arguments["object_name"] is None else arguments["object_name"])


def label_of(component: object, name: object) -> str:
    """How problems name a component, in text that can be printed whatever the name is."""
    return label_of_kind(_type_name(component), name)


def label_of_kind(kind: str, name: object) -> str:
    """Return how problems name a component of the class *kind*."""
    if not isinstance(name, str):
        return f"{kind}({type(name).__name__})"
    written = name if len(name) <= _SHOWN else f"{name[:_SHOWN]}..."
    return f'{kind}("{written.encode(errors="backslashreplace").decode()}")'


def _type_name(component: object) -> str:
    """The name of the component's class; of a user's subclass, that of our component, so that renaming it replaces nothing."""
    own = next((each for each in type(component).__mro__ if each.__module__.startswith(_OWN_MODULES)), None)
    return type(component).__name__ if own is None or vars(own).get("_is_abstract") else own.__name__


def depending_on(value: Any, resource: pulumi.Resource) -> pulumi.Output[Any]:
    """*value* with a dependency on *resource*: known in previews as soon as the value is.

    A URN is always known, so taking it along adds the dependency without making the value unknown.
    """
    return pulumi.Output.all(value, resource.urn).apply(lambda pair: pair[0])


def present(mapping: Mapping[str, Any]) -> dict[str, Any]:
    """The entries of *mapping* that are set."""
    return {key: value for key, value in mapping.items() if value is not None}


def has_outputs(value: Any) -> bool:
    """True for a value with a Pulumi Output in it."""
    if isinstance(value, pulumi.Output):
        return True
    if isinstance(value, Mapping):
        return any(map(has_outputs, value.values()))
    return isinstance(value, (list, tuple)) and any(map(has_outputs, value))


def _is_judged(manifest: Mapping[str, Any]) -> bool:
    """Tell whether API servers have rules of their own for an object: it is of the group of devices."""
    return str(manifest["apiVersion"]).startswith(_JUDGED_GROUP)


def _without_outputs(value: Any) -> Any:
    if isinstance(value, pulumi.Output):
        return UNKNOWN
    if isinstance(value, Mapping):
        return {key: _without_outputs(item) for key, item in value.items()}
    return [_without_outputs(item) for item in value] if isinstance(value, (list, tuple)) else value
