"""Kubeflow's TrainJobs with the jobs of their runtimes, of which the controller makes a JobSet.

Source: github.com/kubeflow/trainer/v2 v2.3.0: pkg/runtime/core/trainingruntime.go, pkg/runtime/framework/plugins/jobset.
Releases up to 2.2 replace the resources of a runtime where 2.3 merges them.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from dra_infra.kubernetes.api import mapping, mappings, value_at

_CONTAINER: Final = "node"
"""The container of a runtime that trains."""
_STEP: Final = "trainer.kubeflow.org/trainjob-ancestor-step"
"""Label of a runtime's job: which part of a TrainJob it does."""


def with_runtime(manifest: Mapping[str, Any], manifests: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """A TrainJob with the jobs of its runtime, of which its controller makes a JobSet; any other object as it is.

    A TrainJob whose runtime is not among *manifests*, or runs MPI, whose pods are counted otherwise, stays as it is.
    """
    if manifest.get("kind") != "TrainJob":
        return manifest
    spec = mapping(manifest.get("spec"))
    runtime = _find_runtime(manifest, manifests)
    if runtime is None or value_at(runtime, "mlPolicy", "mpi") is not None:
        return manifest
    nodes = value_at(spec, "trainer", "numNodes") or value_at(runtime, "mlPolicy", "numNodes") or 1
    jobs = [
        _train(job, nodes, value_at(spec, "trainer", "resourcesPerNode"))
        if value_at(job, "template", "metadata", "labels", _STEP) == "trainer"
        else {**job, "replicas": 1}
        for job in mappings(value_at(runtime, "template", "spec", "replicatedJobs"))
    ]
    policy = runtime.get("podGroupPolicy")
    return {**manifest, "spec": {**spec, "replicatedJobs": jobs, "podGroupPolicy": policy}}


def _find_runtime(
    manifest: Mapping[str, Any], manifests: Sequence[Mapping[str, Any]]
) -> Mapping[str, Any] | None:
    """Return the spec of the runtime that a TrainJob names; None where it is not among *manifests*."""
    ref = mapping(value_at(manifest, "spec", "runtimeRef"))
    kind = ref.get("kind") or "ClusterTrainingRuntime"
    namespace = value_at(manifest, "metadata", "namespace") if kind == "TrainingRuntime" else None
    return next(
        (
            mapping(each.get("spec"))
            for each in manifests
            if each.get("kind") == kind
            and value_at(each, "metadata", "name") == ref.get("name")
            and value_at(each, "metadata", "namespace") == namespace
        ),
        None,
    )


def find_trained_resources(
    manifest: Mapping[str, Any], manifests: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Yield what a TrainJob asks for each node, and the resources of its runtime's container that this changes."""
    own = value_at(manifest, "spec", "trainer", "resourcesPerNode")
    runtime = _find_runtime(manifest, manifests) if isinstance(own, Mapping) else None
    for job in mappings(value_at(runtime, "template", "spec", "replicatedJobs")) if runtime else ():
        if value_at(job, "template", "metadata", "labels", _STEP) == "trainer":
            for container in mappings(value_at(job, "template", "spec", "template", "spec", "containers")):
                if container.get("name") == _CONTAINER:
                    yield own, mapping(container.get("resources"))


def _train(job: Mapping[str, Any], nodes: Any, resources: Any) -> dict[str, Any]:
    """The job that trains: one pod for each node, with what the TrainJob asks for in its container `node`."""
    made = copy.deepcopy(dict(job)) | {"replicas": 1}
    template = made.get("template")
    spec = template.get("spec") if isinstance(template, dict) else None
    if isinstance(spec, dict):
        spec |= {"parallelism": nodes, "completions": nodes}
        for container in mappings(value_at(spec, "template", "spec", "containers")):
            if resources is not None and isinstance(container, dict) and container.get("name") == _CONTAINER:
                container["resources"] = _merge(mapping(container.get("resources")), mapping(resources))
    return made


def _merge(base: Mapping[str, Any], override: Mapping[str, Any]) -> dict[str, Any]:
    """Return limits and requests of both, those of *override* first; claims are left out, as the controller does."""
    merged = {
        name: {**mapping(base.get(name)), **mapping(override.get(name))} for name in ("limits", "requests")
    }
    return {name: amounts for name, amounts in merged.items() if amounts}
