"""Pod templates inside workloads as people write them in Pulumi: dicts in either spelling, or args objects.

Everything here reads and copies; nothing is changed in place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import pulumi

from dra_infra.components import pod_specs
from dra_infra.errors import InvalidSpecError, Problem
from dra_infra.specs.arguments import PLAIN_HINT, wrong_type
from dra_infra.specs.nvlink_workloads import WorkloadView

_TEMPLATES: Final = (
    ("spec", "template"),
    ("template",),
    ("spec", "job_template", "spec", "template"),
    ("job_template", "spec", "template"),
)
_AFFINITY: Final = ("spec", "affinity", "pod_affinity", "required_during_scheduling_ignored_during_execution")


def template_path(value: Any) -> tuple[str, ...] | None:
    """The fields that lead from a workload to its pod template; none from a pod template, None for a pod spec.

    Args:
        value: A workload (`{"spec": {"template": ...}}`), its spec, a pod template or a pod spec.
    """
    for path in _TEMPLATES:
        if read(value, path) is not None:
            return path
    return () if read(value, ("spec",)) is not None and read(value, ("containers",)) is None else None


def view_workload(value: Any, path: Sequence[str]) -> WorkloadView:
    """What the holder of the pod template at *path* says of the number of pods."""
    holder = path[:-1]
    return WorkloadView(
        replicas=read(value, (*holder, "replicas")),
        parallelism=read(value, (*holder, "parallelism")),
        completions=read(value, (*holder, "completions")),
        completion_mode=read(value, (*holder, "completion_mode")),
    )


def add_label(template: Any, key: str, label: str) -> Any:
    """A copy of a pod template with one more label.

    Raises:
        InvalidSpecError: `wrong-type` when labels are a Pulumi Output, `claim-attached-twice` when the label is there
            with another value.
    """
    labels = _plain(template, ("metadata", "labels"))
    there = (labels or {}).get(key)
    if there not in (None, label):
        raise InvalidSpecError(
            [
                Problem(
                    path="metadata.labels",
                    code="claim-attached-twice",
                    message=f"the pods are in the group {there!r} already, and a node belongs to one ComputeDomain at a time",
                    hint="attach one NvlinkGroup of several nodes to a workload",
                )
            ]
        )
    return replaced(template, ("metadata", "labels"), {**(labels or {}), key: label})


def add_pod_affinity(template: Any, term: Mapping[str, Any]) -> Any:
    """A copy of a pod template with one more required term of podAffinity, unless it is there.

    Raises:
        InvalidSpecError: `wrong-type` when the affinity, or a part of it, is a Pulumi Output.
    """
    terms = list(_plain(template, _AFFINITY) or ())
    return template if term in terms else replaced(template, _AFFINITY, [*terms, term])


def read(value: Any, path: Sequence[str]) -> Any:
    """The value at *path* (snake_case) in dicts in either spelling and args objects; None when unset or not known."""
    for field in path:
        if isinstance(value, pulumi.Output):
            return None
        value = pod_specs.read(value, field)
    return value


def replaced(value: Any, path: Sequence[str], new: Any) -> Any:
    """A copy of *value*, of the same type, with *new* at *path*; what is missing on the way is a dict."""
    if not path:
        return new
    field, rest = path[0], path[1:]
    inner = replaced(read(value, (field,)), rest, new) if rest else new
    return pod_specs.replaced({} if value is None else value, field, inner)


def _plain(template: Any, path: Sequence[str]) -> Any:
    """The value at *path*, of which no part may be a Pulumi Output."""
    for depth in range(len(path) + 1):
        if isinstance(part := read(template, path[:depth]), pulumi.Output):
            raise InvalidSpecError(
                [wrong_type(".".join(path[:depth]) or "template", part, "a plain value", PLAIN_HINT)]
            )
    return part
