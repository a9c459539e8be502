"""Results of a run of a user's program, objects by URN, and of a preview of the real engine, as plain data.

These records are the joint between the engine, which makes them, and validation, placement and review, which read
them. They hold no Pulumi type, and a review takes the secrets out of them before it compares anything. Of a step of a
preview only what a reader needs is kept: no value of a resource is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from dra_infra.errors import Place, Problem
from dra_infra.kubernetes.api import (
    UNKNOWN,
    DeviceClass,
    ObjectRef,
    Release,
    is_placeholder,
    is_same_json,
    value_at,
)
from dra_infra.markers import AUTONAMED, SECRET, is_name_made_up
from dra_infra.resource_options import ResourceOptions, match_by_alias
from dra_infra.target import NEWEST_DRIVER, ClusterTarget

if TYPE_CHECKING:
    from dra_infra.output.secrets import SecretMask

__all__ = [
    "AUTONAMED",
    "DEFAULT_PROVIDER",
    "NOT_EXPANDED",
    "SECRET",
    "UNKNOWN",
    "UNKNOWN_RESULT",
    "EngineMessage",
    "EnginePreview",
    "EngineResource",
    "Level",
    "Locate",
    "NotSeen",
    "PolicyFinding",
    "Program",
    "ProgramObject",
    "ProgramRelease",
    "Replacement",
    "get_field",
    "is_name_made_up",
    "without_secrets",
]

DEFAULT_PROVIDER: Final = "default"
"""In place of the name of a provider, for what names none."""

UNKNOWN_RESULT: Final = "5a1f3c0e-unknown-result-of-a-function-9d27b846"
"""Stands in texts of a running program for a value that is not known: a field of a function's result, or the name of an object."""

NOT_EXPANDED: Final = "its provider makes the objects"
"""Why the objects of a resource are not known: the reason of `NotSeen`, or its beginning."""

_DEPLOYERS: Final = ("Application", "ApplicationSet", "HelmRelease", "Kustomization")
"""Kinds of Argo CD and Flux, in place of the type of a resource."""

Replacement = Literal["provider", "delete-first", "in-place"]
"""How a change of an object that cannot change in place goes: as the provider decides, the old one deleted first, or not
at all, for kubectl and Helm change objects in place or are refused."""


@dataclass(frozen=True, order=True, slots=True)
class ComponentRef:
    """Names one of our components of a program: `GpuClaimTemplate("trainer")`."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f'{self.kind}("{self.name}")'


@dataclass(frozen=True, kw_only=True, slots=True)
class ProgramObject:
    """One Kubernetes object that a program asks for.

    Args:
        urn: Pulumi's identity of the resource, equal to the real engine's.
        manifest: Plain JSON data; markers stand for values that are secret or not known yet.
        component: The dra-infra component it comes from; None for the user's own.
        replacement: What the program asked the engine to do on a change that needs a new object.
        place: Where the user wrote it.
        target: The cluster that its component compiles for, where that is another than the stack's.
        chart: Where Helm makes it, the chart; Helm changes objects in place.
        provider: Name of the provider of Pulumi that deploys it.
    """

    urn: str
    manifest: Mapping[str, Any]
    component: ComponentRef | None = None
    replacement: Replacement = "provider"
    place: Place | None = None
    target: ClusterTarget | None = None
    chart: str = ""
    provider: str = DEFAULT_PROVIDER

    @property
    def ref(self) -> ObjectRef:
        """Kind, namespace and name of the object."""
        ref = ObjectRef.of(self.manifest)
        return ref if ref.name else replace(ref, name=UNKNOWN)

    @property
    def sort_key(self) -> tuple[str, str, str, str]:
        """What the objects of a program are sorted by, so that the order in which they were written changes no answer."""
        ref = self.ref
        return ref.namespace, ref.kind, ref.name, self.urn

    @property
    def has_known_name(self) -> bool:
        """False where the name only exists after `pulumi up`: Pulumi or the server makes it up (`train-*`), or it is an Output."""
        name = self.ref.name
        return not is_placeholder(name) and not name.endswith("*") and not is_name_made_up(self.manifest)


@dataclass(frozen=True, kw_only=True, slots=True)
class ProgramRelease:
    """A Helm release that a program asks for; its objects come from its chart.

    Args:
        urn: Pulumi's identity of the resource.
        name: Of the release.
        namespace: Where it goes.
        chart: A name, an address, or a path from the folder of the program.
        repository: Where a name is looked up; empty for an address or a path.
        version: Of the chart; empty for the newest, or what lies at a path.
        values: Plain JSON data as the chart gets it, nulls too; markers as in manifests.
        has_crds: Whether Helm installs the CRDs of the chart.
        component: The dra-infra component it comes from; None for the user's own.
        place: Where the user wrote it.
        target: The cluster that its component compiles for, where that is another than the stack's.
        provider: Name of the provider of Pulumi that deploys it.
    """

    urn: str
    name: str
    namespace: str
    chart: str
    repository: str = ""
    version: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)
    has_crds: bool = True
    component: ComponentRef | None = None
    place: Place | None = None
    target: ClusterTarget | None = None
    provider: str = DEFAULT_PROVIDER

    @property
    def ref(self) -> ObjectRef:
        """The release as dangers call it."""
        return ObjectRef("Release", self.name, self.namespace)


@dataclass(frozen=True, order=True, kw_only=True, slots=True)
class NotSeen:
    """Something in the program whose result is not known offline, and therefore not in the answer."""

    what: str
    name: str
    reason: str

    @property
    def hides_objects(self) -> bool:
        """True if objects of the program are missing here. Then no report may say that nothing changes."""
        # Of a Helm release, whose values may be secret, nothing but its objects is looked for.
        return (
            self.reason.startswith(NOT_EXPANDED)
            or self.what.startswith("kubernetes:helm.sh/")
            or self.is_not_rendered
        )

    @property
    def is_not_rendered(self) -> bool:
        """True for what Argo CD or Flux deploys and nobody looked at. Then no report may say that nothing needs devices."""
        return self.what in _DEPLOYERS

    def __str__(self) -> str:
        return f"{self.what} {self.name}: {self.reason}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Program:
    """All that a run gave; `objects` are sorted by namespace, kind and name."""

    project: str
    stack: str
    objects: tuple[ProgramObject, ...] = ()
    not_seen: tuple[NotSeen, ...] = ()
    problems: tuple[Problem, ...] = ()
    kubernetes: str | None = None
    """The Kubernetes minor that the stack is for (`dra-infra:kubernetes`), when it says."""
    gates: Mapping[str, bool] = field(default_factory=dict, hash=False)
    """Feature gates that the cluster sets otherwise than its minor does, as the stack (`dra-infra:gates`) or the user (`--gate`) says."""
    driver: str = NEWEST_DRIVER
    """The release of the drivers that the stack is for (`dra-infra:driver`)."""
    releases: tuple[ProgramRelease, ...] = ()
    """Helm releases, sorted by URN; their objects are not among `objects`."""
    resources: tuple[str, ...] = ()
    """URNs of every registered resource, components included, sorted."""
    options: Mapping[str, ResourceOptions] = field(default_factory=dict, hash=False)
    """The resource options of resources that have any, by URN."""
    pins: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Releases of packages that the project's lock and requirement files pin, by name, as far as they decide bytes."""
    elsewhere: tuple[str, ...] = ()
    """DeviceClasses that the program takes by `class_ref`, for another program makes them; sorted."""
    stand_in_classes: tuple[DeviceClass, ...] = field(default=(), hash=False)
    """DeviceClasses of the cluster, which files of the project stand in for; no objects of the program."""

    @property
    def target(self) -> ClusterTarget:
        """The cluster that the stack is for: its minor, or the oldest and the newest, with the gates that it sets."""
        return ClusterTarget(kubernetes=self.kubernetes, gates=self.gates)

    @property
    def release(self) -> Release:
        """The release of the server and scheduler that the stack is for: its minor, or the newest."""
        return self.target.releases[-1]


Locate = Callable[[int, str], Place | None]
"""The place of a field, by the position of its object in the program and its path."""


def get_field(manifest: Mapping[str, Any], path: str) -> Any:
    """The value at a dotted path, None where there is none."""
    return value_at(manifest, *path.split("."))


_Masked = tuple[Mapping[str, Any], Mapping[str, Any]]
"""An object as it was, with and without its secrets."""


def without_secrets(base: Program, head: Program, mask: SecretMask) -> tuple[Program, Program]:
    """The programs with a marker in place of each secret; what holds none is not copied."""
    first = _masked_program(base, {}, {}, mask)
    objects = {
        _versionless_key(each): (each.manifest, masked.manifest)
        for each, masked in zip(base.objects, first.objects, strict=True)
    }
    former = match_by_alias(base.resources, head.resources, head.options)
    by_urn = {each.urn: objects[_versionless_key(each)] for each in base.objects}
    for each in head.objects:
        known = by_urn.get(former.get(each.urn, ""))
        if known is not None:
            objects[_versionless_key(each)] = known
    return first, _masked_program(head, objects, {each.urn: each for each in base.releases}, mask)


def _versionless_key(each: ProgramObject) -> tuple[str, str, str]:
    """The key of an object on the other side, whatever the version of its API."""
    _, _, types, name = each.urn.split("::", 3)
    return types.rpartition("$")[0], each.ref.kind, name


def _masked_program(
    program: Program,
    objects: Mapping[tuple[str, str, str], _Masked],
    releases: Mapping[str, ProgramRelease],
    mask: SecretMask,
) -> Program:
    return replace(
        program,
        objects=tuple(
            _masked_object(each, objects.get(_versionless_key(each)), mask) for each in program.objects
        ),
        releases=tuple(_masked_release(each, releases.get(each.urn), mask) for each in program.releases),
        resources=_masked_urns(program.resources, mask),
        options={
            urn: _masked_options(each, mask)
            for urn, each in zip(
                _masked_urns(tuple(program.options), mask), program.options.values(), strict=True
            )
        },
        stand_in_classes=tuple(
            DeviceClass.from_manifest(mask.manifest(each.to_manifest())) for each in program.stand_in_classes
        ),
        problems=tuple(map(mask.problem, program.problems)),
        not_seen=tuple(
            replace(each, name=mask.text(each.name), reason=mask.text(each.reason))
            for each in program.not_seen
        ),
    )


def _masked_object(each: ProgramObject, former: _Masked | None, mask: SecretMask) -> ProgramObject:
    # Most objects of a change are as they were.
    same = former is not None and is_same_json(former[0], each.manifest)
    manifest = former[1] if former and same else mask.manifest(each.manifest, former[0] if former else None)
    urn = _masked_urn(each.urn, mask)
    component = each.component and replace(each.component, name=mask.text(each.component.name))
    provider = mask.text(each.provider)
    if manifest is each.manifest and (urn, component, provider) == (each.urn, each.component, each.provider):
        return each
    return replace(each, manifest=manifest, urn=urn, component=component, provider=provider)


def _masked_urn(urn: str, mask: SecretMask) -> str:
    # Part by part, for `Secret::name` is written like a secret and would be no URN without its parts.
    return "::".join(map(mask.text, urn.split("::")))


def _masked_urns(urns: tuple[str, ...], mask: SecretMask) -> tuple[str, ...]:
    # Hardly any name is a secret, and one text is faster than many.
    names = "\n".join(urn.rpartition("::")[2] for urn in urns)
    return urns if mask.text(names) == names else tuple(_masked_urn(urn, mask) for urn in urns)


def _masked_options(asked: ResourceOptions, mask: SecretMask) -> ResourceOptions:
    return replace(
        asked,
        parent=_masked_urn(asked.parent, mask),
        aliases=tuple(
            replace(
                each,
                urn=_masked_urn(each.urn, mask),
                name=mask.text(each.name),
                parent=_masked_urn(each.parent, mask),
            )
            for each in asked.aliases
        ),
        ignore_changes=tuple(map(mask.text, asked.ignore_changes)),
        replace_on_changes=tuple(map(mask.text, asked.replace_on_changes)),
        depends_on=tuple(_masked_urn(each, mask) for each in asked.depends_on),
        deleted_with=_masked_urn(asked.deleted_with, mask),
        custom_timeouts=tuple((step, mask.text(limit)) for step, limit in asked.custom_timeouts),
    )


def _masked_release(
    release: ProgramRelease, former: ProgramRelease | None, mask: SecretMask
) -> ProgramRelease:
    old = former.values if former else None
    return replace(
        release,
        values=mask.values(release.values, old, by_name=True),
        chart=mask.values(release.chart),
        repository=mask.values(release.repository),
    )


Level = Literal["mandatory", "advisory", "remediate"]
"""What a policy does to a resource that breaks it: fails the run, only says so, or changes the resource's inputs."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EngineResource:
    """The engine's steps on one resource.

    Args:
        urn: Pulumi's identity.
        steps: The engine's own words, in its order: `create`, `update`, `delete-replaced`, `same`...
        custom: Whether it is a resource of a provider; components and the stack are not.
        ref: The Kubernetes object, where it is one.
        replacing: Paths that make the engine replace it.
        paths: Every path that differs, with how: `update`, `add-replace`; without what the server sets.
        answered: Whether an API server answered for it: None where nobody asked, or values are not known yet.
        failed: Whether the step went wrong.
    """

    urn: str
    steps: tuple[str, ...] = ()
    custom: bool = True
    ref: ObjectRef | None = None
    replacing: tuple[str, ...] = ()
    paths: tuple[tuple[str, str], ...] = ()
    answered: bool | None = None
    failed: bool = False

    @property
    def type(self) -> str:
        """Type token: `kubernetes:apps/v1:Deployment`."""
        parts = self.urn.split("::", 3)
        return parts[2].rpartition("$")[2] if len(parts) > 2 else ""

    @property
    def name(self) -> str:
        """Name of the resource in the program: all behind the third `::`."""
        return self.urn.split("::", 3)[-1]


@dataclass(frozen=True, order=True, kw_only=True, slots=True)
class PolicyFinding:
    """A policy's finding on a resource.

    Args:
        pack: Name of the policy pack, with its version: `team@v1.0.0`.
        policy: Name of the policy.
        level: What comes of it.
        urn: Of the resource; empty when it is about the stack.
        message: The policy's words; for a remediation, that it changes the resource.
        ref: The Kubernetes object, where it is one.
    """

    pack: str
    policy: str
    level: Level
    urn: str
    message: str
    ref: ObjectRef | None = field(default=None, compare=False)


@dataclass(frozen=True, order=True, kw_only=True, slots=True)
class EngineMessage:
    """A message of the engine, a provider or the program: *severity* is `error` or `warning`; *urn* may be empty."""

    severity: Literal["error", "warning"]
    urn: str
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class EnginePreview:
    """One preview of one stack.

    Args:
        resources: What happens to each resource, in the engine's order; those that stay the same too.
        policies: What policies found, sorted.
        messages: Errors and warnings, each once, in the engine's order.
        summary: How many resources each step happens to, as the engine counts.
        whole: Whether the engine got to the end; otherwise resources may be missing.
        failure: Why there is no preview at all: nothing of the change's author's making. The rest is empty then.
        left_out: What was too much to keep.
    """

    resources: tuple[EngineResource, ...] = ()
    policies: tuple[PolicyFinding, ...] = ()
    messages: tuple[EngineMessage, ...] = ()
    summary: Mapping[str, int] = field(default_factory=dict, hash=False)
    whole: bool = True
    failure: Problem | None = None
    left_out: tuple[str, ...] = ()
