"""Constructs components for programs in other languages: reads inputs, makes our component, and returns its URN and outputs.

The registered resource is the component that a Python program makes, with its type, its inputs and its children. So URNs and state
are the same, and a program can move from one language to another.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from importlib import resources
from typing import Any, Final

import pulumi
from pulumi.provider import ConstructResult, Provider
from pydantic.alias_generators import to_camel

from dra_infra.components.claims import GpuClaim, GpuClaimTemplate
from dra_infra.components.component import Component, label_of_kind
from dra_infra.components.device_classes import GpuDeviceClass
from dra_infra.components.device_taints import DeviceTaint
from dra_infra.components.guardrails import GpuGuardrails
from dra_infra.components.mig_partitions import MigPartition
from dra_infra.components.monitoring import GpuMonitoring
from dra_infra.components.node_plugin import NodePlugin
from dra_infra.components.nvlink_groups import NvlinkGroup
from dra_infra.components.platform import GpuPlatform
from dra_infra.components.platform_drivers import DraDriver, ExampleDriver, GpuOperator
from dra_infra.components.queues import KueueQueue
from dra_infra.components.report import begin_own_run, problems_of_run
from dra_infra.components.roles import GpuRoles
from dra_infra.components.shared_gpus import SharedGpu
from dra_infra.components.tenants import GpuTenant
from dra_infra.errors import Problem
from dra_infra.provider import declarations
from dra_infra.provider.outputs import outputs_of
from dra_infra.provider.property_words import in_properties
from dra_infra.provider.reading import Reading, read
from dra_infra.provider.settled_inputs import settle
from dra_infra.release import VERSION

PACKAGE: Final = "dra-infra"

COMPONENTS: Final[Mapping[str, type[Component]]] = {
    component.__name__: component
    for component in (
        *(DeviceTaint, DraDriver, ExampleDriver, GpuClaim, GpuClaimTemplate, GpuDeviceClass, GpuGuardrails),
        *(GpuMonitoring, GpuOperator, GpuPlatform, GpuRoles, GpuTenant, KueueQueue, MigPartition, NodePlugin),
        *(NvlinkGroup, SharedGpu),
    )
}
"""The components of the package by their name in the schema."""

_LABEL: Final = re.compile(r'^\w+\("(?P<name>[^"]*)"\)\.?(?P<rest>.*)$', re.DOTALL)


class ComponentPackage(Provider):
    """Serves the committed schema, and constructs its components.

    Pulumi's own host of components infers the schema anew at each start, and loses whole numbers and objects that are Outputs.
    """

    def __init__(self) -> None:
        super().__init__(VERSION, schema_text())

    def construct(
        self,
        name: str,
        resource_type: str,
        inputs: Mapping[str, Any],
        options: pulumi.ResourceOptions | None = None,
    ) -> ConstructResult:
        """Construct a component.

        Args:
            name: Name of the resource.
            resource_type: Type of the resource, `dra-infra:index:GpuClaim`.
            inputs: By their names in the schema.
            options: Of the resource.

        Raises:
            LookupError: The package has no such component.
        """
        kind = resource_type.rpartition(":")[2]
        if resource_type != f"{PACKAGE}:index:{kind}" or kind not in COMPONENTS:
            raise LookupError(f"{resource_type} is no component of {PACKAGE} {VERSION}")
        made = asyncio.ensure_future(_make(kind, name, inputs, options))

        async def urn() -> str:
            component, _ = await made
            return str(await component.urn.future())

        async def output(key: str) -> Any:
            _, outputs = await made
            return outputs.get(key)

        keys = map(to_camel, outputs_declared(kind))
        return ConstructResult(
            pulumi.Output.from_input(urn()), {key: pulumi.Output.from_input(output(key)) for key in keys}
        )


async def _make(
    kind: str, name: str, inputs: Mapping[str, Any], options: pulumi.ResourceOptions | None
) -> tuple[Component, dict[str, Any]]:
    """Make a component and its outputs.

    Raises:
        InputPropertiesError: It has problems.
    """
    # What is known only after this has returned fails through an Output, with the same error.
    declared = getattr(declarations, f"{kind}Args")
    reading = read(declared, await settle(inputs))

    def refusal(problems: Sequence[Problem]) -> Exception:
        return _refusal(kind, name, reading, problems)

    if not declared.__required_keys__ <= reading.arguments.keys():
        # Python refuses a call without them.
        raise refusal(())
    begin_own_run(refusal, lambda problem: _placed(kind, name, reading, problem))
    component = COMPONENTS[kind](name, **reading.arguments, opts=options)
    problems = [each for each in problems_of_run() if each.severity == "error"]
    if problems or reading.problems:
        raise refusal(problems)
    return component, outputs_of(component, outputs_declared(kind))


def _refusal(kind: str, name: str, reading: Reading, problems: Sequence[Problem]) -> Exception:
    """Return the error by which the engine shows problems of one component, each at its property."""
    named = [_placed(kind, name, reading, each) for each in problems]
    # The component misses what could not be read, and cannot know why.
    others = [each for each in named if not _is_below(each.path, reading.unread)]
    unique = list(dict.fromkeys([*reading.problems, *others]))
    count = "1 problem" if len(unique) == 1 else f"{len(unique)} problems"
    return pulumi.InputPropertiesError(
        count, [{"property_path": each.path, "reason": _reason(each)} for each in unique]
    )


def _placed(kind: str, name: str, reading: Reading, problem: Problem) -> Problem:
    """Return a problem with the path of its property."""
    return replace(problem, path=_property_of(problem.path, label_of_kind(kind, name), name, reading))


def _property_of(path: str, label: str, name: str, reading: Reading) -> str:
    """Return the property that a problem is about, whose path begins with a component: this one, or a template of a tenant."""
    if path.startswith(label):
        return reading.path_of(path.removeprefix(label).removeprefix("."))
    template = _LABEL.match(path)
    if template and template["name"].startswith(f"{name}-"):
        key = template["name"].removeprefix(f"{name}-")
        return reading.path_of(f"templates[{key!r}].{template['rest']}")
    return reading.path_of(path)


def _is_below(path: str, others: Iterable[str]) -> bool:
    return any(path == each or path.startswith((f"{each}.", f"{each}[")) for each in others)


def _reason(problem: Problem) -> str:
    text = f"{problem.message} [{problem.code}]"
    return f"{text}\n  hint: {in_properties(problem.hint)}" if problem.hint else text


def outputs_declared(kind: str) -> tuple[str, ...]:
    """Return the names of the outputs that the schema has for a component, as Python spells them."""
    return tuple(getattr(declarations, kind).__annotations__)


def schema_text() -> str:
    """Return the schema of the package, in JSON."""
    return resources.files(__package__).joinpath("schema.json").read_text(encoding="utf-8")
