"""Programs as data: which components are made with which arguments, so that a program can be drawn, broken and run.

What only exists while a program runs stands as a marker: `Later` for an Output, `Made` for a component made before.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pulumi

import dra_infra as dra
from dra_infra.components.report import judged_at_end
from dra_infra.program.synth import synth_function
from dra_infra.program_objects import Program
from dra_infra.selectors.attributes import Attribute
from dra_infra.selectors.selector import Selector

Path = tuple[Any, ...]


@dataclass(frozen=True)
class Later:
    """An Output of *value*; not *known* until `pulumi up` when it is none of this program's."""

    value: Any
    known: bool = True


@dataclass(frozen=True)
class Made:
    """The component that the call at *index* of the program makes."""

    index: int


_WHOLE = (type, Later, Made, Selector, Attribute)
"""What nobody writes field by field."""


@dataclass(frozen=True)
class Call:
    """One component.

    Args:
        kind: Name of its class.
        name: Its name, or something that is none.
        arguments: What is given by keyword.
    """

    kind: str
    name: Any
    arguments: Mapping[str, Any]

    @property
    def label(self) -> str:
        """How problems name it."""
        return f'{self.kind}("{self.name}")'


@dataclass(frozen=True)
class Drawn:
    """A program with the settings of its stack."""

    calls: tuple[Call, ...]
    settings: Mapping[str, str] = field(default_factory=dict)


def run(drawn: Drawn, *, as_engine: bool = False) -> Program:
    """Run a program; *as_engine* has each component ask for the verdict itself, as under `pulumi up`."""

    def body() -> None:
        if as_engine:
            judged_at_end.set(False)
        made: list[Any] = []
        for call in drawn.calls:
            arguments = {name: resolved(value, made) for name, value in call.arguments.items()}
            made.append(getattr(dra, call.kind)(resolved(call.name, made), **arguments))

    return synth_function(body, config={f"dra-infra:{key}": value for key, value in drawn.settings.items()})


def resolved(value: Any, made: list[Any]) -> Any:
    """*value* with its markers replaced by what they stand for in a run."""
    if isinstance(value, Made):
        return made[value.index]
    if isinstance(value, Later):
        return pulumi.Output(_done(set()), _done(value.value), _done(value.known))
    return _rebuilt(value, lambda _key, each: resolved(each, made))


def _done(value: Any) -> asyncio.Future[Any]:
    """What is there already: coroutines would complain that nobody waits for them where a component is refused."""
    future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    future.set_result(value)
    return future


def places(value: Any, path: Path = ()) -> Iterator[Path]:
    """Where something else could be put: everything in the arguments of a call, however deep."""
    for key, each in _items(value):
        yield (*path, key)
        yield from places(each, (*path, key))


def put(value: Any, path: Path, new: Any) -> Any:
    """A copy of *value* that has *new* at *path*."""
    if not path:
        return new
    return _rebuilt(value, lambda key, each: put(each, path[1:], new) if key == path[0] else each)


def _items(value: Any) -> list[tuple[Any, Any]]:
    if dataclasses.is_dataclass(value) and not isinstance(value, _WHOLE):
        return [(each.name, getattr(value, each.name)) for each in _arguments(value)]
    if isinstance(value, dict):
        return list(value.items())
    return list(enumerate(value)) if isinstance(value, (list, tuple)) else []


def _rebuilt(value: Any, change: Any) -> Any:
    items = [(key, change(key, each)) for key, each in _items(value)]
    if isinstance(value, dict):
        return dict(items)
    if isinstance(value, (list, tuple)):
        return [each for _, each in items]
    return dataclasses.replace(value, **dict(items)) if items else value


def _arguments(value: Any) -> list[dataclasses.Field[Any]]:
    return [each for each in dataclasses.fields(value) if each.init and not each.name.startswith("_")]
