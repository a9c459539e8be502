"""GpuTenant: a team's namespace, what it may take of the GPUs, and the claim templates that it is given."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import pulumi

from dra_infra.components.claims import GpuClaim
from dra_infra.components.component import Component, depending_on, present, reports_unknown_arguments
from dra_infra.components.device_claims import DeviceClaimComponent
from dra_infra.components.known_outputs import output_of
from dra_infra.components.kubernetes_object import KubernetesObject
from dra_infra.components.platform_charts import make_namespace
from dra_infra.components.roles import GpuRoles
from dra_infra.errors import Problem
from dra_infra.kubernetes.api.pod_security import Level
from dra_infra.specs.arguments import check_namespace, wrong_type
from dra_infra.specs.object_names import check_metadata, check_object_name
from dra_infra.specs.pod_security import PodSecurity
from dra_infra.specs.requests import ClassArgument, NamedClass, Toleration, class_name_of
from dra_infra.specs.roles import DEVICE_READER, OF_TENANTS, binding, check_members, role_name
from dra_infra.specs.tenants import (
    check_namespace_of_tenant,
    check_quota,
    check_tolerations,
    compile_quota,
    labels_of_namespace,
    makes_namespace,
    with_tolerations,
)
from dra_infra.target import ClusterTarget

Template = Callable[..., DeviceClaimComponent]
"""A component of claims that is not yet made: `partial(dra.GpuClaimTemplate, device_class=h100)`."""


class GpuTenant(Component):
    """A team on a cluster: its namespace, a quota of devices, and the claim templates that the platform hands out.

    Args:
        name: Name of the component, of the namespace unless `namespace` is given, and of the quota.
        quota: Devices that claims and pods of the namespace may have at once, by class: `{h100: 8, "mig.nvidia.com": 7}`;
            0 refuses a class. Every key under which the server counts devices of the class is set. `All` counts as 32, a
            share as 1, of a ladder the largest alternative of each class, and admin access like any other.
        hard: Other keys of the ResourceQuota: `{"requests.cpu": "64", "pods": "100"}`.
        templates: Claim templates of the namespace, by name: `{"trainer": partial(dra.GpuClaimTemplate, device_class=h100)}`.
            A change deletes the template and makes another of the same name; pods keep the claims that they have.
        tolerations: Tolerations of each of the templates that has none.
        members: Who may do what in the namespace: `{"team-lead": ["user:alice@example.com"], "developer": ["group:vision"]}`. All
            of them may see which classes and devices there are.
        roles: The `GpuRoles` that has the roles of members, or its name where another program makes it.
        admin_access: Let claims of the namespace look at devices that others use. Whoever may make claims there can.
        pod_security: Which pods the API server refuses in the namespace, by the Pod Security Standards: `"baseline"` by default,
            without which a privileged or hostPath pod takes every device of its node without a claim. `"restricted"` refuses
            more, `"privileged"` nothing. `dra.PodSecurity(...)` sets the levels of warnings and of the audit log, and versions.
        namespace: Name of the namespace.
        create_namespace: Make the Namespace. Off where somebody else makes it.
        namespace_labels: Other labels of the Namespace.
        labels: Labels of the ResourceQuota.
        annotations: Annotations of the ResourceQuota.
        target: The cluster to compile for; else the parent's, else the stack's.
        opts: Pulumi resource options.

    Attributes:
        namespace: Name of the namespace. What is placed there by it is made after the namespace and the quota.
        templates: The templates, by name, for `attach`.

    Example:
        ```python
        trainer = partial(dra.GpuClaimTemplate, device_class=h100, count=4)
        vision = dra.GpuTenant("vision", quota={h100: 8}, templates={"trainer": trainer})
        k8s.batch.v1.Job("train", metadata={"namespace": vision.namespace}, spec=vision.templates["trainer"].attach(job))
        ```
    """

    namespace: pulumi.Output[str]
    templates: Mapping[str, DeviceClaimComponent]

    @reports_unknown_arguments
    def __init__(
        self,
        name: str,
        *,
        quota: Mapping[ClassArgument, int] | None = None,
        hard: Mapping[str, pulumi.Input[str] | int] | None = None,
        templates: Mapping[str, Template] | None = None,
        tolerations: Sequence[Toleration] = (),
        members: Mapping[str, Sequence[str]] | None = None,
        roles: GpuRoles | str | None = None,
        admin_access: bool = False,
        pod_security: PodSecurity | Level | None = None,
        namespace: pulumi.Input[str] | None = None,
        create_namespace: bool = True,
        namespace_labels: Mapping[str, pulumi.Input[str]] | None = None,
        labels: Mapping[str, pulumi.Input[str]] | None = None,
        annotations: Mapping[str, pulumi.Input[str]] | None = None,
        target: ClusterTarget | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__(name, target=target, opts=opts)
        self.templates = {}

        def check(given: Mapping[str, Any]) -> list[Problem]:
            return [
                *check_metadata(given),
                *check_namespace_of_tenant(
                    given["namespace"],
                    given["namespace_labels"],
                    create=create_namespace,
                    admin_access=admin_access,
                    pod_security=pod_security,
                ),
                *check_quota(quota, given["hard"]),
            ]

        written = {
            "namespace": namespace,
            "namespace_labels": namespace_labels,
            "labels": labels,
            "annotations": annotations,
            "hard": hard,
        }
        given = self._judge_secrets(written, check)
        self._space: str | pulumi.Output[str] = name if namespace is None else given["namespace"]
        self.namespace = output_of(self._space)
        self._report(
            [
                *(check_object_name(name, path="name") if namespace is not None else _check_own_name(name)),
                *check({**given, "namespace": self._space}),
                *_check_templates(templates),
                *check_tolerations(tolerations),
                *check_members(members, OF_TENANTS),
                *_check_roles(roles, needed=isinstance(members, Mapping) and bool(members)),
            ]
        )
        if self._broken:
            self.register_outputs({})
            return
        made: dict[str, pulumi.Resource] = {}
        if makes_namespace(self._space, create=create_namespace):
            labels_of_space = labels_of_namespace(
                given["namespace_labels"], admin_access=admin_access, pod_security=pod_security
            )
            own = pulumi.ResourceOptions(parent=self)
            made["Namespace"] = make_namespace(name, self._space, labels_of_space, own)
        if quota or hard:
            made["ResourceQuota"] = self._make_quota(quota or {}, given, list(made.values()))
        self.resources = made | self._bind(members or {}, roles, list(made.values()))
        self._hand_out(templates or {}, tolerations, list(made.values()))

    def _hand_out(
        self,
        templates: Mapping[str, Template],
        tolerations: Sequence[Toleration],
        before: Sequence[pulumi.Resource],
    ) -> None:
        """Make the templates, and show the namespace, so that what is placed there comes after *before*."""
        # A pod that is made before the quota is not counted against it.
        for resource in before:
            self._space = depending_on(self._space, resource)
        self.namespace = output_of(self._space)
        self.templates = {
            key: self._make_template(key, template, tolerations) for key, template in templates.items()
        }
        self.register_outputs({"namespace": self.namespace, "templates": list(self.templates)})

    def _make_quota(
        self,
        quota: Mapping[ClassArgument, int],
        given: Mapping[str, Any],
        before: Sequence[pulumi.Resource],
    ) -> KubernetesObject:
        name = self._component_name
        metadata = {
            "name": name,
            "namespace": self._space,
            "labels": given["labels"],
            "annotations": given["annotations"],
        }
        manifest = {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": present(metadata),
            "spec": {"hard": _limits(quota, given["hard"])},
        }
        return KubernetesObject(
            name, manifest, pulumi.ResourceOptions(parent=self, depends_on=list(before) or None)
        )

    def _bind(
        self, members: Mapping[str, Sequence[str]], roles: Any, before: Sequence[pulumi.Resource]
    ) -> dict[str, pulumi.Resource]:
        """Children that give the members their roles in the namespace, and sight of classes and devices."""
        name = self._component_name

        def role_of(persona: str) -> str:
            # One with problems has no roles, and fails the run itself.
            return (
                roles.roles.get(persona, persona)
                if isinstance(roles, GpuRoles)
                else role_name(roles, persona)
            )

        first = [*before, *(roles.resources.values() if isinstance(roles, GpuRoles) else ())]
        bound = {
            f"RoleBinding {persona}": binding(
                f"{name}-{persona}", role_of(persona), subjects, {}, namespace=self._space
            )
            for persona, subjects in members.items()
        }
        everybody = list(dict.fromkeys(each for subjects in members.values() for each in subjects))
        if everybody:
            key = f"{name}-{DEVICE_READER}"
            bound["ClusterRoleBinding"] = binding(key, role_of(DEVICE_READER), everybody, {})
        return {
            kind: KubernetesObject(
                manifest["metadata"]["name"],
                manifest,
                pulumi.ResourceOptions(parent=self, depends_on=first or None),
            )
            for kind, manifest in bound.items()
        }

    def _make_template(
        self, key: str, template: Template, tolerations: Sequence[Toleration]
    ) -> DeviceClaimComponent:
        made, arguments = _taken_apart(template)
        parameters = inspect.signature(made.__init__).parameters
        if tolerations and "tolerations" in parameters:
            arguments = with_tolerations(
                arguments, tolerations, takes_alternatives="first_available" in parameters
            )
        # People write this name in their pods, so it stays; claims that were made of the template live without it.
        own = {"namespace": self._space, "object_name": key, "replace": "delete-first"}
        options = pulumi.ResourceOptions(parent=self)
        found: DeviceClaimComponent = made(
            f"{self._component_name}-{key}", **{**arguments, **own}, opts=options
        )
        return found


def _limits(quota: Mapping[ClassArgument, int], hard: Mapping[str, Any] | None) -> Any:
    """The `spec.hard`; an Output where the name of a class is one, for it is part of a key."""
    named = [class_name_of(each) for each in quota]
    extended = [each.extended_resource_name if isinstance(each, NamedClass) else None for each in quota]

    def compiled(known: Sequence[str]) -> dict[str, Any]:
        return compile_quota(list(zip(known, extended, quota.values(), strict=True)), hard)

    if any(isinstance(each, pulumi.Output) for each in named):
        return pulumi.Output.all(*named).apply(compiled)
    return compiled(named)


def _check_own_name(name: object) -> Iterator[Problem]:
    for problem in check_namespace(name):
        yield Problem(path="name", code=problem.code, message=problem.message, hint=problem.hint)


def _check_roles(roles: object, *, needed: bool) -> Iterator[Problem]:
    """Problems of the argument `roles`: `wrong-type`, `missing-argument`."""
    hint = 'write roles=dra.GpuRoles("gpus"), or its name'
    if roles is None:
        if needed:
            message = "members are given, and no roles for them"
            yield Problem(path="roles", code="missing-argument", message=message, hint=hint)
    elif not isinstance(roles, (GpuRoles, str)):
        yield wrong_type("roles", roles, "a GpuRoles or the name of one", hint)


def _check_templates(templates: object) -> Iterator[Problem]:
    """Problems of the argument `templates`: `wrong-type`, `invalid-name`, `field-not-allowed`."""
    hint = 'write templates={"trainer": partial(dra.GpuClaimTemplate, device_class=h100)}'
    if templates is not None and not isinstance(templates, Mapping):
        yield wrong_type("templates", templates, "a mapping of names to components of claims", hint)
    elif templates is not None:
        for key, template in templates.items():
            path = f"templates[{key!r:.80}]"
            yield from check_object_name(key, path=path)
            made, arguments = _taken_apart(template)
            if not (inspect.isclass(made) and issubclass(made, DeviceClaimComponent)):
                yield wrong_type(path, template, "a component of claims that is not yet made", hint)
                continue
            if issubclass(made, GpuClaim) or arguments.get("shared") is True:
                message = "a ResourceClaim cannot be replaced while a pod has it"
                yield Problem(path=path, code="field-not-allowed", message=message, hint=hint)
            for argument in ("namespace", "object_name", "replace", "opts"):
                if argument in arguments:
                    message = f"{argument} follows from the tenant"
                    yield Problem(
                        path=f"{path}.{argument}",
                        code="field-not-allowed",
                        message=message,
                        hint="leave it out",
                    )


def _taken_apart(template: Any) -> tuple[Any, Mapping[str, Any]]:
    """The component of a template, and its arguments so far."""
    if isinstance(template, partial) and not template.args:
        return template.func, template.keywords
    return template, {}
