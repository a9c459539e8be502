"""What a preview of the real engine said, in plain data: the joint between the engine, which makes it, and planning.

Only what a reader needs is kept of a step: no value of a resource is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from dra_infra.errors import Problem
from dra_infra.model.metadata import ObjectRef

Level = Literal["mandatory", "advisory", "remediate"]
"""What a policy does to a resource that breaks it: fails the run, only says so, or changes the resource's inputs."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EngineResource:
    """What the engine would do to one resource.

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
    """What a policy says of a resource.

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
    """What the engine, a provider or the program said: *severity* is `error` or `warning`; *urn* may be empty."""

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
