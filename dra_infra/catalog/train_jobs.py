"""Kubeflow's TrainJobs with the jobs of their runtimes, of which the controller makes a JobSet.

Source: github.com/kubeflow/trainer/v2 v2.2.0: pkg/runtime/core/trainingruntime.go, pkg/runtime/framework/plugins/jobset.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, Final

from dra_infra.kubernetes.api.manifests import mapping, mappings, value_at

_STEP: Final = "trainer.kubeflow.org/trainjob-ancestor-step"
"""Label of a runtime's job: which part of a TrainJob it does."""


def with_runtime(manifest: Mapping[str, Any], manifests: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """A TrainJob with the jobs of its runtime, of which its controller makes a JobSet; any other object as it is.

    A TrainJob whose runtime is not among *manifests*, or runs MPI, whose pods are counted otherwise, stays as it is.
    """
    if manifest.get("kind") != "TrainJob":
        return manifest
    spec = mapping(manifest.get("spec"))
    ref = mapping(spec.get("runtimeRef"))
    kind = ref.get("kind") or "ClusterTrainingRuntime"
    namespace = value_at(manifest, "metadata", "namespace") if kind == "TrainingRuntime" else None
    runtime = next(
        (
            mapping(each.get("spec"))
            for each in manifests
            if each.get("kind") == kind
            and value_at(each, "metadata", "name") == ref.get("name")
            and value_at(each, "metadata", "namespace") == namespace
        ),
        None,
    )
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


def _train(job: Mapping[str, Any], nodes: Any, resources: Any) -> dict[str, Any]:
    """The job that trains: one pod for each node, with what the TrainJob asks for in its container `node`."""
    made = copy.deepcopy(dict(job)) | {"replicas": 1}
    template = made.get("template")
    spec = template.get("spec") if isinstance(template, dict) else None
    if isinstance(spec, dict):
        spec |= {"parallelism": nodes, "completions": nodes}
        for container in mappings(value_at(spec, "template", "spec", "containers")):
            if resources is not None and isinstance(container, dict) and container.get("name") == "node":
                container["resources"] = resources
    return made
