"""Advice on TrainJobs: claims that Kubeflow's Trainer erases, and amounts that its releases read in different ways.

Source: pkg/runtime/core/trainingruntime.go of github.com/kubeflow/trainer/v2: 2.2.0 replaces the resources of the container
`node` by `resourcesPerNode`, 2.3.0 merges both. Both then set limits and requests alone, without claims.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dra_infra.catalog.train_jobs import find_trained_resources
from dra_infra.errors import Problem
from dra_infra.kubernetes.api import mapping, mappings
from dra_infra.output.wording import join_words

_PATH = "spec.trainer.resourcesPerNode"


def advise_train_jobs(objects: Sequence[Mapping[str, Any]]) -> Iterator[tuple[int, Problem]]:
    """Yield what `resourcesPerNode` of a TrainJob does to its runtime: codes `trainer-erases-claims`, `trainer-release`."""
    for index, manifest in enumerate(objects):
        if manifest.get("kind") == "TrainJob":
            for own, of_runtime in find_trained_resources(manifest, objects):
                yield from ((index, problem) for problem in _compare(own, of_runtime))


def _compare(own: Mapping[str, Any], of_runtime: Mapping[str, Any]) -> Iterator[Problem]:
    claims = [str(each.get("name")) for each in mappings(of_runtime.get("claims"))]
    if claims:
        yield Problem(
            path=_PATH,
            code="trainer-erases-claims",
            message=f"Trainer 2.2 and 2.3 replace the resources of the container called node, and drop the runtime's claims "
            f"{join_words(claims)}: the pods hold the devices, and the container starts without them",
            hint="leave resourcesPerNode out, and write the amounts into the runtime",
            severity="warning",
        )
    kept = sorted(
        f"{field}.{name}"
        for field in ("limits", "requests")
        for name in set(mapping(of_runtime.get(field))) - set(mapping(own.get(field)))
    )
    if kept:
        yield Problem(
            path=_PATH,
            code="trainer-release",
            message=f"Trainer 2.3 keeps {join_words(kept)} of the runtime beside it, and up to 2.2 drops them; answers are those "
            "of 2.3",
            hint=f"write {kept[0]} here too, so that all releases do the same",
            severity="warning",
        )
