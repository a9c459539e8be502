"""What `Check` says about the inputs of a resource, and the inputs that it makes of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from pulumi.runtime.proto import provider_pb2

from tools.kubernetes_provider.resource_types import (
    AUTONAMED,
    GroupVersionKind,
    annotation,
    is_named,
    metadata,
    random_name,
    with_name,
)
from tools.kubernetes_provider.values import Object, mark_secrets

REFUSED_ANNOTATIONS: Final = {
    "pulumi.com/patchFieldManager": "choosing a field manager",
    "pulumi.com/replaceUnready": "replacing what is not ready",
    "pulumi.com/waitFor": "waiting for conditions of one's own",
}

Autonaming = provider_pb2.CheckRequest.AutonamingOptions


@dataclass(frozen=True, order=True)
class Finding:
    """One input that is wrong."""

    path: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class NameSource:
    """Where a name comes from when the program gives none.

    Args:
        resource: Name of the Pulumi resource.
        seed: Of the engine; the same for a preview and its update when a plan is used.
        proposed: Name that the engine's own configuration asks for, if any.
        disabled: That configuration forbids automatic names.
    """

    resource: str
    seed: bytes
    proposed: str
    disabled: bool

    @classmethod
    def of(cls, request: provider_pb2.CheckRequest) -> NameSource:
        """Read it from a request."""
        return cls(
            resource=request.urn.rpartition("::")[2],
            seed=request.randomSeed,
            proposed=request.autonaming.proposed_name,
            disabled=request.autonaming.mode == Autonaming.DISABLE,
        )

    def choose(self) -> str:
        """Return a name."""
        return self.proposed or random_name(self.resource, self.seed)


def find_problems(kind: GroupVersionKind, inputs: Object, source: NameSource) -> tuple[Finding, ...]:
    """Return what is wrong with *inputs*, in the order of their paths."""
    problems = [
        Finding(name, f"is {inputs.get(name)!r}, but the type token says {expected!r}")
        for name, expected in (("apiVersion", kind.api_version), ("kind", kind.kind))
        if inputs.get(name) != expected
    ]
    problems += [
        Finding(f'metadata.annotations["{name}"]', f"{what} is not part of the stand-in provider")
        for name, what in REFUSED_ANNOTATIONS.items()
        if annotation(inputs, name)
    ]
    if metadata(inputs).get("generateName") and not is_named(inputs):
        problems.append(
            Finding("metadata.generateName", "is not supported with server-side apply; leave it out")
        )
    elif source.disabled and not is_named(inputs):
        problems.append(Finding("metadata.name", "is required: pulumi:autonaming is disabled"))
    return tuple(sorted(problems))


def complete(
    inputs: Object,
    old_inputs: Object,
    source: NameSource,
    *,
    find_default_namespace: Callable[[], str],
) -> Object:
    """Return *inputs* with a name and, where the cluster can be asked, a namespace.

    Args:
        inputs: As the program gives them.
        old_inputs: Of the last deployment; empty for a new object, also for one that replaces another.
        source: Of a name.
        find_default_namespace: Says which namespace an object goes to that names none, empty for none.
    """
    completed = inputs
    if not is_named(inputs):
        adopted = bool(old_inputs) and annotation(old_inputs, AUTONAMED) == "true"
        completed = with_name(inputs, metadata(old_inputs)["name"] if adopted else source.choose())
    found = completed.get("metadata")
    if isinstance(found, dict) and not found.get("namespace"):
        namespace = find_default_namespace()
        if namespace:
            completed = {**completed, "metadata": {**found, "namespace": namespace}}
    return mark_secrets(completed, inputs)
