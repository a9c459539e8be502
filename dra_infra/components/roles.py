"""GpuRoles: the least rights of the people and programs that have to do with devices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import pulumi

from dra_infra.components.component import Component, compiled_by
from dra_infra.specs.roles import plan_roles
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

    roles: Mapping[str, str] = MappingProxyType({})

    _registered_outputs = ("roles",)

    @compiled_by(plan_roles)
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
    ) -> None: ...
