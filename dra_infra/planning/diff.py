"""What differs between two versions of one object, as a small YAML diff."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import yaml as pyyaml

from dra_infra.model import yaml
from dra_infra.planning.noise import mask_secrets, without_noise

CONTEXT: Final = 3
"""Unchanged lines that are shown around a change."""

MAX_LINE: Final = 400
"""Characters after which a line is cut: a value of a megabyte is not read by anyone."""

_MAX_PAIRS: Final = 4_000_000
"""Lines before times lines after, above which no smallest diff is searched: that takes quadratic time."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Hunk:
    """Lines that belong together.

    Args:
        path: Field path of the first line that differs, such as `spec.devices.requests[0].exactly.count`.
        lines: Each starts with ` `, `-` or `+`.
    """

    path: str
    lines: tuple[str, ...]


def diff_manifests(
    before: Mapping[str, Any] | None, after: Mapping[str, Any] | None, *, context: int = CONTEXT
) -> tuple[Hunk, ...]:
    """The hunks that lead from *before* to *after*; None stands for an object that is not there.

    Both sides are written in the canonical order of keys and without noise, so that only a difference of meaning shows.
    Values of Secrets never show, only that they change.
    """
    if before == after:
        return ()
    before, after = mask_secrets(before, after)
    old, new = (_lines(None if side is None else without_noise(side)) for side in (before, after))
    if old == new:
        return ()
    groups = _group(_opcodes(old, new), context)
    old_paths, new_paths = _find_paths(old), _find_paths(new)
    return tuple(
        Hunk(path=_first_path(group, old_paths, new_paths), lines=tuple(_write(group, old, new)))
        for group in groups
    )


_Opcode = tuple[str, int, int, int, int]


def _lines(manifest: Mapping[str, Any] | None) -> list[str]:
    if manifest is None:
        return []
    try:
        return yaml.write_manifest(manifest).splitlines()
    except UnicodeEncodeError:
        # JSON can hold half of a character pair, YAML cannot.
        return yaml.write_manifest(_spell_halves(manifest)).splitlines()


def _spell_halves(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, Mapping):
        return {_spell_halves(key): _spell_halves(item) for key, item in value.items()}
    return [_spell_halves(item) for item in value] if isinstance(value, list) else value


def _opcodes(old: list[str], new: list[str]) -> Sequence[_Opcode]:
    if len(old) * len(new) <= _MAX_PAIRS:
        return difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    start = 0
    while start < min(len(old), len(new)) and old[start] == new[start]:
        start += 1
    end = 0
    while end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
        end += 1
    i, j = len(old) - end, len(new) - end
    return [
        ("equal", 0, start, 0, start),
        ("replace", start, i, start, j),
        ("equal", i, len(old), j, len(new)),
    ]


def _group(opcodes: Sequence[_Opcode], context: int) -> list[list[_Opcode]]:
    """Cut long unchanged stretches; `difflib.get_grouped_opcodes` does the same only for its own matcher."""
    groups: list[list[_Opcode]] = [[]]
    changes = [position for position, opcode in enumerate(opcodes) if opcode[0] != "equal"]
    first, last = changes[0], changes[-1]
    for position, (tag, i1, i2, j1, j2) in enumerate(opcodes):
        if tag != "equal":
            groups[-1].append((tag, i1, i2, j1, j2))
            continue
        ahead = min(context, i2 - i1) if position > first else 0
        behind = min(context, i2 - i1) if position < last else 0
        if position > first and position < last and i2 - i1 <= 2 * context:
            groups[-1].append((tag, i1, i2, j1, j2))
            continue
        if ahead:
            groups[-1].append((tag, i1, i1 + ahead, j1, j1 + ahead))
        if first < position < last:
            groups.append([])
        if behind:
            groups[-1].append((tag, i2 - behind, i2, j2 - behind, j2))
    return groups


def _write(group: list[_Opcode], old: list[str], new: list[str]) -> Iterator[str]:
    for tag, i1, i2, j1, j2 in group:
        if tag == "equal":
            yield from (f" {_cut(line)}" for line in new[j1:j2])
        else:
            yield from (f"-{_cut(line)}" for line in old[i1:i2])
            yield from (f"+{_cut(line)}" for line in new[j1:j2])


def _cut(line: str) -> str:
    left_out = len(line) - MAX_LINE
    return line if left_out <= 0 else f"{line[:MAX_LINE]}… ({left_out:,} more characters)"


def _first_path(group: list[_Opcode], old: list[str], new: list[str]) -> str:
    return next(
        (new[j1] if j1 < j2 else old[i1] for tag, i1, _, j1, j2 in group if tag != "equal"),
        "",
    )


def _find_paths(lines: list[str]) -> list[str]:
    """The field path that each line belongs to."""
    if not lines:
        return []
    root = pyyaml.compose("\n".join(lines) + "\n", Loader=pyyaml.CSafeLoader)
    starts = dict(_walk(root, "")) if root is not None else {}
    paths, current = [], ""
    for number in range(len(lines)):
        current = starts.get(number, current)
        paths.append(current)
    return paths


def _walk(node: pyyaml.Node, path: str) -> Iterator[tuple[int, str]]:
    if isinstance(node, pyyaml.MappingNode):
        for key, value in node.value:
            below = f"{path}.{key.value}" if path else str(key.value)
            yield key.start_mark.line, below
            yield from _walk(value, below)
    elif isinstance(node, pyyaml.SequenceNode):
        for index, item in enumerate(node.value):
            yield item.start_mark.line, f"{path}[{index}]"
            yield from _walk(item, f"{path}[{index}]")
