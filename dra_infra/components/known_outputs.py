"""Outputs of components whose text is known while the program runs: Outputs for users, plain text for what we compile.

A name decides what is compiled: a claim's class is part of its content. So names stay plain inside of this package, and one that a
program hands from one component to another, as in `device_class=h100.object_name`, is the same as the text.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final, TypeVar

import pulumi

from dra_infra.program_objects import UNKNOWN_RESULT
from dra_infra.specs.arguments import known_text

_Value = TypeVar("_Value")

_STATE: Final = frozenset({"_data", "_future", "_is_known", "_is_secret", "_resources"})
"""Attributes that releases of the SDK keep an Output's value in."""


class KnownOutput(pulumi.Output[str]):
    """An Output of a text that is known while the program runs.

    Args:
        text: The text.
    """

    def __init__(self, text: str) -> None:
        self.known_text = text

    def __getattr__(self, item: str) -> Any:
        # The SDK's own state is three futures and two tasks. A program of a thousand claims reads few of their names.
        if item in _STATE and _STATE.isdisjoint(vars(self)):
            super().__init__(set(), _resolved(self.known_text), _resolved(value=True), _resolved(value=False))
            return getattr(self, item)
        return super().__getattr__(item)

    def _untrack(self) -> None:
        # The SDK reads the state under the lock that making it takes.
        getattr(self, "_data", None)
        super()._untrack()


def output_of(value: pulumi.Input[str]) -> pulumi.Output[str]:
    """Return *value* as components show it; what is no text is a problem of its own, and shows as an empty one."""
    if isinstance(value, pulumi.Output):
        return value
    return KnownOutput(value if isinstance(value, str) else "")


def text_of(output: object) -> str | None:
    """Return the text of a component's output; None where it is known later."""
    text = known_text(output)
    return text if isinstance(text, str) else None


def holds_unknown(value: Any) -> bool:
    """Check whether a text in *value* stands for what a run without providers does not know."""
    if isinstance(value, str):
        return UNKNOWN_RESULT in value
    if isinstance(value, Mapping):
        return any(map(holds_unknown, value.values()))
    return isinstance(value, (list, tuple)) and any(map(holds_unknown, value))


def with_known_texts(value: Any, depth: int = 3) -> Any:
    """Return an argument with plain texts in place of Outputs that know theirs, in lists and mappings too.

    Args:
        value: The argument.
        depth: How deep lists and mappings are looked through; no argument has names deeper in it.
    """
    if not depth:
        return value
    if isinstance(value, Mapping):
        changed = {known_text(key): with_known_texts(item, depth - 1) for key, item in value.items()}
        is_same = all(key in value and value[key] is item for key, item in changed.items())
        return value if is_same else changed
    if isinstance(value, (list, tuple)):
        items = [with_known_texts(item, depth - 1) for item in value]
        return value if all(new is old for new, old in zip(items, value, strict=True)) else items
    return known_text(value)


def _resolved(value: _Value) -> asyncio.Future[_Value]:
    future: asyncio.Future[_Value] = asyncio.Future()
    future.set_result(value)
    return future
