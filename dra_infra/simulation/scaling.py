"""The objects of a program with other numbers of pods: `deployment/x=40`."""

from __future__ import annotations

import copy
import difflib
from collections.abc import Mapping, Sequence
from typing import Any, Final

from dra_infra.errors import InvalidSpecError, Problem

_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "CronJob": ("spec", "jobTemplate", "spec", "parallelism"),
    "Deployment": ("spec", "replicas"),
    "Job": ("spec", "parallelism"),
    "ReplicaSet": ("spec", "replicas"),
    "ReplicationController": ("spec", "replicas"),
    "StatefulSet": ("spec", "replicas"),
}
MOST: Final = 100_000
"""Most pods of a workload that are placed."""


def scale(
    manifests: Sequence[Mapping[str, Any]], wanted: Mapping[str, int]
) -> tuple[list[Mapping[str, Any]], tuple[str, ...]]:
    """The manifests with the numbers of pods that are asked for, and a note for each that changed.

    Args:
        manifests: The objects; they are not changed themselves.
        wanted: Number of pods by `kind/name` or `namespace/kind/name`, the kind in any case.

    Raises:
        InvalidSpecError: `scale-unknown`, `scale-number`; all at once.
    """
    scaled = list(manifests)
    known = {_call(manifest): index for index, manifest in enumerate(manifests) if _kind(manifest) in _FIELDS}
    problems: list[Problem] = []
    notes: list[str] = []
    for target, number in wanted.items():
        if not 0 <= number <= MOST:
            problems.append(
                Problem(
                    path="--scale",
                    code="scale-number",
                    message=f"{target}={number}: a number of pods from 0 to {MOST:,} is needed",
                    hint=f"write --scale {target}=40",
                )
            )
            continue
        found = [index for name, index in known.items() if _is_called(name, target)]
        if not found:
            problems.append(_unknown(target, number, sorted(known)))
        for index in found:
            before = _set(scaled, index, number)
            notes.append(f"what if: {target} has {number} pods instead of {before}")
    if problems:
        raise InvalidSpecError(problems)
    return scaled, tuple(notes)


def _set(manifests: list[Mapping[str, Any]], index: int, number: int) -> Any:
    manifest = copy.deepcopy(dict(manifests[index]))
    *steps, last = _FIELDS[_kind(manifest)]
    holder: Any = manifest
    for step in steps:
        if not isinstance(holder.get(step), dict):
            holder[step] = {}
        holder = holder[step]
    before = holder.get(last, 1)
    holder[last] = number
    manifests[index] = manifest
    return before


def _unknown(target: str, number: int, known: Sequence[str]) -> Problem:
    shown = [name.split("/", 1)[1] for name in known]
    near = difflib.get_close_matches(target.lower()[:120], shown, n=1, cutoff=0.4)
    some = near[0] if near else (shown[0] if shown else "")
    return Problem(
        path="--scale",
        code="scale-unknown",
        message=f"{target[:120]}: no workload with a number of pods is called so",
        hint=f"write --scale {some}={number}"
        if some
        else "the input has no Deployment, StatefulSet, ReplicaSet or Job",
    )


def _call(manifest: Mapping[str, Any]) -> str:
    metadata = manifest.get("metadata")
    holder: Mapping[str, Any] = metadata if isinstance(metadata, Mapping) else {}
    return f"{holder.get('namespace') or 'default'}/{_kind(manifest).lower()}/{holder.get('name')}"


def _is_called(name: str, target: str) -> bool:
    kind, _, rest = target.rpartition("/")
    return f"{kind.lower()}/{rest}" in (name, name.split("/", 1)[1]) or (
        "/" in kind and f"{kind.rpartition('/')[0]}/{kind.rpartition('/')[2].lower()}/{rest}" == name
    )


def _kind(manifest: Mapping[str, Any]) -> str:
    return str(manifest.get("kind"))
