"""Reads what the engine sends of a program: inputs of resources as the objects of a `Program`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pulumi.runtime.proto import analyzer_pb2

from dra_infra.program.collection import complete_manifest
from dra_infra.program.monitor import is_object, is_of_kubernetes
from dra_infra.program.project import driver_of, gates_of, kubernetes_of
from dra_infra.program.surroundings import fields_to_plain
from dra_infra.program_objects import (
    DEFAULT_PROVIDER,
    NOT_EXPANDED,
    ComponentRef,
    NotSeen,
    Program,
    ProgramObject,
)

_OURS: Final = "dra-infra:index:"
_MADE_BY_ENGINE: Final = f"{DEFAULT_PROVIDER}_"
"""How the engine begins the name of a provider that the program does not make: `default_4_34_2`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Resource:
    """A resource of the program.

    Args:
        urn: Pulumi's identity.
        type: Type token, `kubernetes:core/v1:Pod`.
        name: Name in the program.
        parent: URN of the parent; empty for none.
        inputs: Plain data. Markers stand for values that are secret or not known yet.
        provider: Name of the provider.
    """

    urn: str
    type: str
    name: str
    parent: str
    inputs: Mapping[str, Any]
    provider: str = DEFAULT_PROVIDER

    @classmethod
    def read(cls, request: analyzer_pb2.AnalyzeRequest) -> Resource:
        """Return the resource of a request of the engine."""
        provider = str(request.provider.name)
        return cls(
            urn=request.urn,
            type=request.type,
            name=request.name,
            parent=request.options.parent,
            inputs=fields_to_plain(request.properties),
            provider=DEFAULT_PROVIDER if not provider or provider.startswith(_MADE_BY_ENGINE) else provider,
        )

    @property
    def is_object(self) -> bool:
        """True for one object of Kubernetes."""
        return is_object(self.type)

    @property
    def manifest(self) -> dict[str, Any]:
        """The object of Kubernetes. The provider's own annotations and fields are not the program's."""
        return complete_manifest(
            self.type, {name: value for name, value in self.inputs.items() if not name.startswith("__")}
        )


def read_program(
    known: Mapping[str, Resource], urns: Iterable[str], config: Mapping[str, str], *, project: str, stack: str
) -> Program:
    """Return the objects of a program as far as the engine has sent them.

    Args:
        known: Resources by URN.
        urns: The resources that the stack has after the run.
        config: Settings of the stack by full key, with those of the pack.
        project: Name of the project.
        stack: Name of the stack.
    """
    objects: list[ProgramObject] = []
    not_seen: list[NotSeen] = []
    for urn in urns:
        resource = known.get(urn)
        type_ = resource.type if resource else urn.split("::")[2].rpartition("$")[2]
        if not is_of_kubernetes(type_):
            continue
        if resource is None or not resource.is_object:
            why = f"{NOT_EXPANDED}, which policies do not see" if resource else "the run leaves it out"
            not_seen.append(NotSeen(what=type_, name=urn.rpartition("::")[2], reason=why))
            continue
        objects.append(
            ProgramObject(
                urn=urn,
                manifest=resource.manifest,
                component=_component_of(resource, known),
                provider=resource.provider,
            )
        )
    return Program(
        project=project,
        stack=stack,
        objects=tuple(sorted(objects, key=lambda each: each.sort_key)),
        not_seen=tuple(sorted(set(not_seen))),
        kubernetes=kubernetes_of(config),
        gates=gates_of(config),
        driver=driver_of(config),
        resources=tuple(sorted(known)),
    )


def _component_of(resource: Resource, known: Mapping[str, Resource]) -> ComponentRef | None:
    """Return the component of dra-infra that made a resource; None for the user's own."""
    parent = known.get(resource.parent)
    while parent is not None:
        if parent.type.startswith(_OURS):
            return ComponentRef(parent.type.removeprefix(_OURS), parent.name)
        parent = known.get(parent.parent)
    return None


def names_of_objects(program: Program) -> dict[str, str]:
    """Return the URN of each object by the name with which paths of its problems begin."""
    return {str(each.component or each.ref): each.urn for each in program.objects}
