"""Property paths of the engine in options such as `ignore_changes`: `spec.replicas`, `spec.ports[0]`, `metadata.labels["a.b"]`.

Source: `sdk/go/common/resource/properties_path.go`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from dra_infra.kubernetes.api import is_same_json

Path = tuple[str | int, ...]
_STEP: Final = re.compile(r'\.?\["((?:[^"\\]|\\.)*)"\]|\.?\[(\d+|\*)\]|\.?([^.\[\]]+)')
_MISSING: Final = object()


def parse_path(text: str) -> Path | None:
    """Return the steps of a path; None where the engine cannot read it and ignores it."""
    steps: list[str | int] = []
    end = 0
    while end < len(text):
        match = _STEP.match(text, end)
        if match is None:
            return None
        quoted, index, name = match.groups()
        if index is not None and index != "*":
            steps.append(int(index))
        elif quoted is not None:
            steps.append(quoted.replace('\\"', '"'))
        else:
            steps.append(index or name)
        end = match.end()
    return tuple(steps) or None


def reset(path: Path, before: Any, after: Any) -> None:
    """Set what is at *path* in *after* to what it is in *before*; *after* is changed in place.

    As in the engine, an item that only one of two lists has stays as it is.
    """
    step, rest = path[0], path[1:]
    if step == "*":
        _reset_all(rest, before, after)
    elif isinstance(step, int):
        if isinstance(before, list) and isinstance(after, list) and step < min(len(before), len(after)):
            if rest:
                reset(rest, before[step], after[step])
            else:
                after[step] = before[step]
    elif isinstance(after, dict):
        _reset_field(step, rest, before, after)


def _reset_all(rest: Path, before: Any, after: Any) -> None:
    if isinstance(before, dict) and isinstance(after, dict):
        for key in {*before, *after}:
            if not rest or (key in before and key in after):
                _reset_field(key, rest, before, after)
    elif isinstance(before, list) and isinstance(after, list):
        for index in range(min(len(before), len(after))):
            if rest:
                reset(rest, before[index], after[index])
            else:
                after[index] = before[index]


def _reset_field(key: str, rest: Path, before: Any, after: dict[str, Any]) -> None:
    old = before.get(key, _MISSING) if isinstance(before, Mapping) else _MISSING
    if rest:
        if isinstance(before, Mapping) and key in after:
            reset(rest, None if old is _MISSING else old, after[key])
    elif old is _MISSING:
        after.pop(key, None)
    else:
        after[key] = old


def differ_at(path: Path, before: Any, after: Any) -> bool:
    """Return whether two values differ at or below *path*, of which `*` is every field and item."""
    if is_same_json(before, after):
        return False
    if not path:
        return True
    step, rest = path[0], path[1:]
    if step == "*":
        return any(differ_at((each, *rest), before, after) for each in {*_keys(before), *_keys(after)})
    return differ_at(rest, _get(before, step), _get(after, step))


def _keys(value: Any) -> Sequence[str | int]:
    if isinstance(value, Mapping):
        return list(value)
    return range(len(value)) if isinstance(value, list) else ()


def _get(value: Any, step: str | int) -> Any:
    if isinstance(value, Mapping):
        return value.get(step)
    in_list = isinstance(value, list) and isinstance(step, int) and step < len(value)
    return value[step] if in_list else None
