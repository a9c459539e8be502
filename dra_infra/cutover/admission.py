"""Objects with pods as they run: with the tolerations that admission adds for their resources, as `migrate` takes them to have.

Kubernetes itself has ExtendedResourceToleration off, and GKE has it on
(plugin/pkg/admission/extendedresourcetoleration/admission.go).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from dra_infra.catalog.train_jobs import with_runtime
from dra_infra.kubernetes.api import FieldPath, WorkloadKinds, kind_of, mapping, value_at
from dra_infra.kubernetes.apiserver import is_extended_resource
from dra_infra.migration.needs import containers_of

_AMOUNTS: Final = ("limits", "requests")


def admit_all(objects: Sequence[Mapping[str, Any]], kinds: WorkloadKinds) -> list[Mapping[str, Any]]:
    """Return objects as `admit` does, each TrainJob with the pods of its runtime, which stay those whatever the runtime says."""
    return [
        admit(each, kinds)
        if (whole := with_runtime(each, objects)) is each
        else admit(_without_reference(whole), kinds)
        for each in objects
    ]


def _without_reference(train_job: Mapping[str, Any]) -> Mapping[str, Any]:
    spec = mapping(train_job.get("spec"))
    return {**train_job, "spec": {name: value for name, value in spec.items() if name != "runtimeRef"}}


def admit(manifest: Mapping[str, Any], kinds: WorkloadKinds) -> Mapping[str, Any]:
    """Return an object whose pods tolerate taints with the names of the resources that they request.

    A DaemonSet stays as it is: its controller makes no pod for a node with a taint that the template does not tolerate, so
    admission sees none.
    """
    kind = kinds.find(manifest)
    if kind is None or kind_of(manifest) == "DaemonSet":
        return manifest
    for part in kind.parts:
        for found, holder in part.find(manifest):
            spec, _ = part.read_spec(manifest, found, holder)
            path = part.find_field(manifest, found, "tolerations")
            held = mapping(spec).get("tolerations") or []
            if path is not None and isinstance(held, list):
                added = [each for each in _find_tolerations(mapping(spec)) if each not in held]
                manifest = _put(manifest, path, [*held, *added]) if added else manifest
    return manifest


def _find_tolerations(spec: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    amounts = (value_at(each, "resources", part) for _, each in containers_of(spec) for part in _AMOUNTS)
    names = sorted(
        {str(name) for part in amounts for name in mapping(part) if is_extended_resource(str(name))}
    )
    return [{"key": name, "operator": "Exists", "effect": "NoSchedule"} for name in names]


def _put(value: Any, path: FieldPath, new: Any) -> Any:
    """Return *value* with *new* at a path, whose last steps may be missing; what is not on the way is not copied."""
    if not path:
        return new
    step, rest = path[0], path[1:]
    if isinstance(step, int):
        return [_put(each, rest, new) if number == step else each for number, each in enumerate(value)]
    return {**mapping(value), step: _put(mapping(value).get(step), rest, new)}
