"""Differences between two versions of one object, as a small YAML diff without noise and secrets.

Noise is what of an object nobody decided: fields that the server sets, and the order of things without order. Lists
that Kubernetes merges by a key (`+listType=map` and `+patchMergeKey` in k8s.io/api/core/v1/types.go) are brought into
one order, as are sets. Lists that it replaces whole, such as `args` or the requests of a claim, keep theirs.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import yaml as pyyaml

from dra_infra.documents import yaml
from dra_infra.kubernetes.api import is_same_json
from dra_infra.markers import as_shown
from dra_infra.output.secrets import is_secret, without_secret_data

_SERVER_SET: Final = frozenset(
    {
        "creationTimestamp",
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "generation",
        "managedFields",
        "resourceVersion",
        "selfLink",
        "uid",
    }
)
_SERVER_ANNOTATIONS: Final = frozenset(
    {
        "deployment.kubernetes.io/revision",
        "kubectl.kubernetes.io/last-applied-configuration",
        "pulumi.com/autonamed",
    }
)

_MERGE_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "conditions": ("type",),
    "containers": ("name",),
    "ephemeralContainers": ("name",),
    "hostAliases": ("ip",),
    "imagePullSecrets": ("name",),
    "ownerReferences": ("uid",),
    "resourceClaims": ("name",),
    "topologySpreadConstraints": ("topologyKey", "whenUnsatisfiable"),
    "volumeDevices": ("devicePath",),
    "volumeMounts": ("mountPath",),
    "volumes": ("name",),
}
_SETS: Final = frozenset({"finalizers"})


def without_noise(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The object as its author means it. What is shared with *manifest* is not copied, and nothing in it is changed."""
    plain = {key: value for key, value in manifest.items() if key != "status"}
    metadata = plain.get("metadata")
    if isinstance(metadata, Mapping):
        plain["metadata"] = _order(dict(_metadata(metadata)))
    for key in ("spec", "template", "secrets"):
        if key in plain:
            plain[key] = _order_service(plain[key]) if plain.get("kind") == "Service" else _order(plain[key])
    if plain.get("kind") == "ServiceAccount" and isinstance(plain.get("secrets"), list):
        plain["secrets"] = _sorted_by(plain["secrets"], ("name",))
    return plain


def mask_secrets(
    before: Mapping[str, Any] | None, after: Mapping[str, Any] | None
) -> tuple[Mapping[str, Any] | None, Mapping[str, Any] | None]:
    """Both sides of a Secret without its values; a value that changes shows as changed."""
    sides = [side for side in (before, after) if side is not None]
    if not any(is_secret(side) for side in sides):
        return before, after
    old = None if before is None else without_secret_data(before)
    return old, None if after is None else without_secret_data(after, before)


def _metadata(metadata: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in metadata.items():
        if key in _SERVER_SET:
            continue
        if key == "annotations" and isinstance(value, Mapping) and _SERVER_ANNOTATIONS & set(value):
            kept = {name: text for name, text in value.items() if name not in _SERVER_ANNOTATIONS}
            if kept:
                yield key, kept
            continue
        yield key, value


def _order_service(spec: Any) -> Any:
    ordered = _order(spec)
    if isinstance(ordered, Mapping) and isinstance(ordered.get("ports"), list):
        return {**ordered, "ports": _sorted_by(ordered["ports"], ("port", "protocol"))}
    return ordered


def _order(value: Any, key: str = "") -> Any:
    if isinstance(value, Mapping):
        return {name: _order(item, str(name)) for name, item in value.items()}
    if not isinstance(value, list):
        return value
    items = [_order(item) for item in value]
    if key in _SETS:
        return sorted(items, key=str)
    if key == "containers" or key == "initContainers":
        items = [_order_container(item) for item in items]
    return _sorted_by(items, _MERGE_KEYS[key]) if key in _MERGE_KEYS else items


def _order_container(container: Any) -> Any:
    if not isinstance(container, Mapping):
        return container
    ordered = dict(container)
    env, ports, resources = (container.get(name) for name in ("env", "ports", "resources"))
    # A value with $(NAME) reads variables that stand before it.
    if isinstance(env, list) and "$(" not in json.dumps(env, default=str):
        ordered["env"] = _sorted_by(env, ("name",))
    if isinstance(ports, list):
        ordered["ports"] = _sorted_by(ports, ("containerPort", "protocol"))
    if isinstance(resources, Mapping) and isinstance(resources.get("claims"), list):
        ordered["resources"] = {**resources, "claims": _sorted_by(resources["claims"], ("name",))}
    return ordered


def _sorted_by(items: list[Any], keys: tuple[str, ...]) -> list[Any]:
    if not all(isinstance(item, Mapping) for item in items):
        return items
    return sorted(items, key=lambda item: [str(item.get(key, "")) for key in keys])


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
    if is_same_json(before, after):
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
        return yaml.write_manifest(as_shown(manifest)).splitlines()
    except UnicodeEncodeError:
        # JSON can hold half of a character pair, YAML cannot.
        return yaml.write_manifest(_spell_halves(as_shown(manifest))).splitlines()


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
    i = len(old) - end
    j = len(new) - end
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
    paths = []
    current = ""
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
