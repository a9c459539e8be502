"""Where objects hold pod templates: the kinds of Kubernetes, and paths that a user names for custom resources."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

PodTemplatePaths = Mapping[tuple[str, str], tuple[str, ...]]
"""(apiVersion, kind) to the steps down to what has a pod's `metadata` and `spec`.

The step `*` stands for every item of a list or every value of a map: `("spec", "tasks", "*", "template")`.
"""

BUILT_IN: Final[PodTemplatePaths] = {
    ("v1", "Pod"): (),
    ("v1", "PodTemplate"): ("template",),
    ("v1", "ReplicationController"): ("spec", "template"),
    ("apps/v1", "Deployment"): ("spec", "template"),
    ("apps/v1", "ReplicaSet"): ("spec", "template"),
    ("apps/v1", "StatefulSet"): ("spec", "template"),
    ("apps/v1", "DaemonSet"): ("spec", "template"),
    ("batch/v1", "Job"): ("spec", "template"),
    ("batch/v1", "CronJob"): ("spec", "jobTemplate", "spec", "template"),
}


def find_holders(
    manifest: Mapping[str, Any], custom: PodTemplatePaths | None = None
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The pod templates of *manifest* with their paths; a pod's own path is empty.

    Args:
        manifest: Any object.
        custom: Paths of kinds that Kubernetes does not have itself.
    """
    kind = (str(manifest.get("apiVersion", "")), str(manifest.get("kind", "")))
    steps = BUILT_IN.get(kind)
    if steps is None:
        steps = (custom or {}).get(kind)
    if steps is not None:
        yield from _descend(manifest, steps, "")


def _descend(value: Any, steps: tuple[str, ...], path: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if not steps:
        if isinstance(value, Mapping):
            yield path, value
        return
    step, *rest = steps
    if step == "*" and isinstance(value, list):
        for index, item in enumerate(value):
            yield from _descend(item, tuple(rest), f"{path}[{index}]")
    elif isinstance(value, Mapping):
        for name in sorted(map(str, value)) if step == "*" else [step]:
            yield from _descend(value.get(name), tuple(rest), f"{path}.{name}" if path else name)
