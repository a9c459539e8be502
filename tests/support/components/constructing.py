"""Components as a program in another language gets them, and the same in Python, without an engine."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pulumi
from pulumi import runtime
from pulumi.provider.server import ProviderServicer
from pulumi.runtime import settings
from pulumi.runtime.stack import wait_for_rpcs

from dra_infra.components.report import collect_problems
from dra_infra.errors import Problem
from dra_infra.program.autonaming import MadeUpNames
from dra_infra.program.monitor import Engine, Monitor
from dra_infra.program.stand_ins import StandIns
from dra_infra.program.surroundings import close_loop, fields_to_plain, new_loop
from dra_infra.program.transforms import Transforms
from dra_infra.provider.construction import ComponentPackage

CONFIG = {"dra-infra:kubernetes": "1.37", "dra-infra:driver": "0.5"}


@dataclass
class Made:
    """What became of a component.

    Args:
        registered: Type, name and inputs of the component and its children, sorted.
        outputs: By name in the schema; empty when the component was refused.
        problems: Property and reason of each problem.
        dependencies: URNs that each resource depends on, by its type.
        logged: What the engine shows beside that.
    """

    registered: list[tuple[str, str, Any]] = field(default_factory=list)
    outputs: dict[str, Any] = field(default_factory=dict)
    problems: list[tuple[str, str]] = field(default_factory=list)
    dependencies: dict[str, list[str]] = field(default_factory=dict)
    logged: list[str] = field(default_factory=list)

    @property
    def codes(self) -> list[tuple[str, str]]:
        """Property and code of each problem."""
        return [
            (path, reason.partition("\n")[0].rpartition("[")[2].rstrip("]")) for path, reason in self.problems
        ]


def construct(kind: str, inputs: Any, *, name: str = "it") -> Made:
    """Construct a component of these inputs; a function makes them where they are Outputs, which need a loop."""
    (made,) = construct_all({name: (kind, inputs)}).values()
    return made


def construct_all(components: Mapping[str, tuple[str, Any]]) -> dict[str, Made]:
    """Construct components at the same time, in one process, as an engine may."""
    made = {name: Made() for name in components}
    package = ComponentPackage()
    servicer = ProviderServicer(package, [], engine_address="")

    async def one(name: str, kind: str, inputs: Any) -> None:
        given = _as_sent(inputs() if callable(inputs) else inputs)
        connect(made[name])
        try:
            result = package.construct(name, f"dra-infra:index:{kind}", given, pulumi.ResourceOptions())
            # The rest of what a server does before it answers.
            response = await servicer._construct_response(result)
            await wait_for_rpcs(await_all_outstanding_tasks=False)
        except pulumi.InputPropertiesError as error:
            made[name].problems = [(each["property_path"], each["reason"]) for each in error.errors or ()]
        else:
            made[name].outputs = fields_to_plain(response.state)

    async def all_at_once() -> None:
        await asyncio.gather(*(one(name, *row) for name, row in components.items()))

    _run(all_at_once)
    return made


def make_in_python(body: Callable[[], Any]) -> tuple[Made, list[Problem]]:
    """Return what a program in Python registers, and the problems that its components report."""
    made = Made()

    async def program() -> list[Problem]:
        connect(made)
        with collect_problems() as problems:
            body()
            await wait_for_rpcs()
        return problems

    return made, _run(program)


def connect(made: Made) -> None:
    """Connect the SDK, in the context of a task, to an engine that notes what is registered in *made*."""

    class Noting(Monitor):
        def RegisterResource(self, request: Any) -> Any:  # noqa: N802
            made.registered.append((request.type, request.name, fields_to_plain(request.object)))
            made.registered.sort(key=str)
            made.dependencies[request.type] = sorted(request.dependencies)
            return super().RegisterResource(request)

    class Logging(Engine):
        def Log(self, request: Any) -> Any:  # noqa: N802
            answer = super().Log(request)
            made.logged = [text for _, text in self.logged]
            return answer

    folder = Path.cwd()
    monitor = Noting(
        project="test",
        stack="test",
        root=folder,
        names=MadeUpNames(CONFIG),
        transforms=Transforms(),
        config=CONFIG,
        stand_ins=StandIns(),
        folder=folder,
    )
    settings.ROOT.set(None)
    runtime.configure(
        runtime.Settings(
            project="test",
            stack="test",
            monitor=monitor,
            engine=Logging(),
            dry_run=True,
            organization="organization",
        )
    )
    runtime.set_all_config(CONFIG, [])


def _run(body: Callable[[], Any]) -> Any:
    """Run a coroutine function to its end, in a context of its own."""

    def in_context() -> Any:
        loop = new_loop()
        loop.set_exception_handler(lambda _loop, _context: None)
        asyncio.set_event_loop(loop)
        try:
            return loop.run_until_complete(body())
        finally:
            close_loop(loop)

    return contextvars.copy_context().run(in_context)


def _as_sent(value: Any) -> Any:
    """Return inputs as they come over the wire, where all numbers are floats."""
    if isinstance(value, Mapping):
        return {key: _as_sent(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_as_sent(item) for item in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value
