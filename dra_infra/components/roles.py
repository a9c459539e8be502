"""GpuRoles: the least rights of the people and programs that have to do with devices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pulumi

from dra_infra.components.component import Component, present, reports_unknown_arguments
from dra_infra.components.kubernetes_object import KubernetesObject
from dra_infra.errors import Problem
from dra_infra.kubernetes.api import names
from dra_infra.specs.arguments import shorten, wrong_plain_type
from dra_infra.specs.object_names import check_object_name
from dra_infra.specs.roles import (
    OF_CLUSTER,
    binding,
    check_members,
    check_subjects,
    driver_key,
    role_name,
    role_of_driver,
    roles_of_personas,
)
from dra_infra.target import ClusterTarget


class GpuRoles(Component):
    """ClusterRoles for each persona: platform admin, on-call, reader, team lead and developer; and for drivers.

    Those of team leads and developers are bound in namespaces, by `GpuTenant(members=...)`; the others here.

    Args:
        name: Name of the component; roles are called `<name>-<persona>`.
        members: Who has which role in the whole cluster: `{"on-call": ["group:sre"], "reader": ["serviceaccount:ci/runner"]}`.
        drivers: Who publishes devices, by the name of the driver: `{"gpu.acme.example": ["serviceaccount:acme/plugin"]}`.
        labels: Labels of the objects.
        annotations: Annotations of the objects.
        target: The cluster to compile for; else the parent's, else the stack's.
        opts: Pulumi resource options.

    Attributes:
        roles: Names of the ClusterRoles, by persona, and by `driver-<name>` for drivers.

    Example:
        ```python
        roles = dra.GpuRoles("gpus", members={"on-call": ["group:sre"]})
        dra.GpuTenant("vision", roles=roles, members={"developer": ["group:vision"]})
        ```
    """

    roles: Mapping[str, str]

    @reports_unknown_arguments
    def __init__(
        self,
        name: str,
        *,
        members: Mapping[str, Sequence[str]] | None = None,
        drivers: Mapping[str, Sequence[str]] | None = None,
        labels: Mapping[str, pulumi.Input[str]] | None = None,
        annotations: Mapping[str, pulumi.Input[str]] | None = None,
        target: ClusterTarget | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__(name, inputs={}, target=target, opts=opts)
        self.roles = {}
        written = {"labels": labels, "annotations": annotations}
        given = self._judge_secrets(written, lambda judged: self._check_inputs(**judged))
        self._report(
            [
                *check_object_name(name, path="name"),
                *self._check_inputs(**given),
                *check_members(members, OF_CLUSTER),
                *_check_drivers(drivers),
            ]
        )
        if self._broken:
            self.register_outputs({})
            return
        metadata = present(given)
        # A rule for what an older server does not have gives nothing there.
        minor = int(self.target.minors[-1].partition(".")[2])
        members_of = {
            **(members or {}),
            **{driver_key(each): given for each, given in (drivers or {}).items()},
        }
        roles = roles_of_personas(name, metadata)
        roles |= {driver_key(each): role_of_driver(name, each, minor, metadata) for each in drivers or {}}
        made: dict[str, pulumi.Resource] = {}
        for key, manifest in roles.items():
            made[f"ClusterRole {key}"] = self._make(key, manifest)
        for key, subjects in members_of.items():
            bound = binding(role_name(name, key), role_name(name, key), subjects, metadata)
            made[f"ClusterRoleBinding {key}"] = self._make(key, bound, made[f"ClusterRole {key}"])
        self.resources = made
        self.roles = {key: role_name(name, key) for key in roles}
        self.register_outputs({"roles": dict(self.roles)})

    def _make(self, key: str, manifest: Mapping[str, Any], *after: pulumi.Resource) -> KubernetesObject:
        options = pulumi.ResourceOptions(parent=self, depends_on=list(after) or None)
        return KubernetesObject(f"{self._component_name}-{key}", manifest, options)


def _check_drivers(drivers: object) -> list[Problem]:
    """Problems of the argument `drivers`: `wrong-type`, `invalid-name`."""
    hint = 'write drivers={"gpu.acme.example": ["serviceaccount:acme/plugin"]}'
    if drivers is not None and not isinstance(drivers, Mapping):
        return [wrong_plain_type("drivers", drivers, "a mapping of drivers to subjects", hint)]
    problems: list[Problem] = []
    for driver, subjects in (drivers or {}).items():
        if not (isinstance(driver, str) and names.is_driver_name(driver)):
            message = f"{shorten(driver)} is not the name of a DRA driver"
            problems.append(Problem(path="drivers", code="invalid-name", message=message, hint=hint))
        problems += check_subjects(subjects, f"drivers[{shorten(driver)}]")
    return problems
