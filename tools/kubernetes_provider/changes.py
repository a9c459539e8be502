"""The difference between the inputs of two deployments, path by path, and what of it needs a new object."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from tools.kubernetes_provider.replacement import Pattern
from tools.kubernetes_provider.values import UNKNOWN, Object, Value

Path = tuple[str | int, ...]

QUOTED: Final = re.compile(r'[."\[\]]')


class Effect(Enum):
    """What happens to the value at a path."""

    ADD = "add"
    DELETE = "delete"
    UPDATE = "update"


@dataclass(frozen=True, kw_only=True)
class Change:
    """One path that differs."""

    path: str
    effect: Effect
    replaces: bool


def find_changes(old: Object, new: Object, replacing: Sequence[Pattern]) -> tuple[Change, ...]:
    """Return what differs between *old* and *new* inputs, in the order of the paths.

    A field that is null counts as missing. A value that is not known yet counts as changed, and an object
    that is not known yet as having lost all its fields: so a workload is replaced together with the object
    whose name its spec takes, as with the vendor's provider.

    Args:
        old: Inputs of the last deployment, without secrets.
        new: Inputs of this one, without secrets.
        replacing: Fields whose change needs a new object.
    """
    return tuple(
        Change(path=format_path(path), effect=effect, replaces=_is_replacing(path, content, replacing))
        for path, effect, content in _walk((), old, new)
    )


def format_path(path: Path) -> str:
    """Write a path as the engine does: `spec.containers[0]`, `labels["app.kubernetes.io/name"]`."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif QUOTED.search(step):
            escaped = step.replace('"', '\\"')
            text += f'["{escaped}"]'
        else:
            text += f".{step}" if text else step
    return text


def _walk(path: Path, old: Value, new: Value) -> Iterator[tuple[Path, Effect, Value]]:
    """Yield each differing path, its effect, and the value below which replacing fields are looked for."""
    if new is UNKNOWN:
        yield path, Effect.ADD if old is None else Effect.UPDATE, old if isinstance(old, dict) else None
    elif old is None or new is None:
        if old is not None:
            yield path, Effect.DELETE, None
        elif new is not None:
            yield path, Effect.ADD, new
    elif isinstance(old, dict) and isinstance(new, dict):
        for name in sorted({*old, *new}):
            yield from _walk((*path, name), old.get(name), new.get(name))
    elif isinstance(old, list) and isinstance(new, list):
        for index in range(max(len(old), len(new))):
            before = old[index] if index < len(old) else None
            after = new[index] if index < len(new) else None
            yield from _walk((*path, index), before, after)
    elif old != new or isinstance(old, bool) != isinstance(new, bool):
        yield path, Effect.UPDATE, new


def _is_replacing(path: Path, content: Value, replacing: Sequence[Pattern]) -> bool:
    steps = tuple("*" if isinstance(step, int) else step for step in path)
    return any(
        steps[: len(pattern)] == pattern
        or (pattern[: len(steps)] == steps and _contains(content, pattern[len(steps) :]))
        for pattern in replacing
    )


def _contains(value: Value, pattern: Pattern) -> bool:
    if not pattern:
        return True
    if pattern[0] == "*":
        return isinstance(value, list) and any(_contains(item, pattern[1:]) for item in value)
    return isinstance(value, dict) and pattern[0] in value and _contains(value[pattern[0]], pattern[1:])


def follow_drift(inputs: Value, stored: Value, live: Value) -> Value:
    """Return *inputs* as the cluster has them now: what another manager changed, and nothing else.

    A value that the server only writes differently (`1024Mi` as `1Gi`) is the same in *stored* and *live*
    and keeps the spelling of the program. Fields that the server adds are no drift; fields that it never
    returns (`stringData`) are kept.

    Args:
        inputs: Of the last deployment.
        stored: The object after it; None when that is not known.
        live: The object now.
    """
    if stored is not None and stored == live:
        return inputs
    if isinstance(inputs, dict) and isinstance(live, dict):
        known = stored if isinstance(stored, dict) else {}
        return {
            name: follow_drift(value, known.get(name), live[name]) if name in live else value
            for name, value in inputs.items()
            if name in live or name not in known
        }
    if isinstance(inputs, list) and isinstance(live, list) and len(inputs) == len(live):
        items = stored if isinstance(stored, list) and len(stored) == len(live) else [None] * len(live)
        return [follow_drift(*three) for three in zip(inputs, items, live, strict=True)]
    return live
