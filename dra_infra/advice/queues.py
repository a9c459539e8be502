"""Advice on workloads that wait in a queue of Kueue: what it does not admit, so that their pods would be suspended for good.

Upstream: pkg/dra/claims.go, pkg/dra/extended_resources.go and pkg/controller/core/workload_controller.go of
sigs.k8s.io/kueue 0.19.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any

from dra_infra.catalog.workload_kinds import QUEUE_LABEL, find_pod_templates
from dra_infra.errors import Problem
from dra_infra.kubernetes.api.manifests import mapping, mappings, value_at
from dra_infra.kubernetes.api.metadata import ObjectRef
from dra_infra.kubernetes.api.names import is_label_key
from dra_infra.kubernetes.api.workload_kinds import PodTemplate
from dra_infra.kubernetes.scheduler.extended_resources import OF_CLASS


def advise_queued(objects: Sequence[Mapping[str, Any]]) -> Iterator[tuple[int, Problem]]:
    """Code `kueue-refuses`, with the position of the object whose line has to change.

    Args:
        objects: Manifests as plain data. Claim templates count by namespace and name.
    """
    queued = [
        (index, each)
        for index, each in enumerate(objects)
        if value_at(each, "metadata", "labels", QUEUE_LABEL)
    ]
    if not queued:
        return
    templates = {
        _key(each): index for index, each in enumerate(objects) if each.get("kind") == "ResourceClaimTemplate"
    }
    covered = set(_covered(objects))
    told: set[tuple[int, str]] = set()
    for index, manifest in queued:
        for pods in find_pod_templates(manifest):
            yield from ((index, problem) for problem in _of_containers(pods, covered))
            for number, entry in enumerate(pods.claims):
                path = pods.at(f"resourceClaims[{number}]")
                if entry.claim_name is not None:
                    yield (
                        index,
                        _refusal(
                            f"{path}.resourceClaimName",
                            f"{pods.owner} goes to a queue of Kueue, which admits no claim by name",
                            "name a claim template, so that each pod has a claim of its own",
                        ),
                    )
                key = pods.owner.namespace or "default", str(entry.template_name)
                if entry.template_name is not None and key in templates:
                    for problem in _of_template(objects[templates[key]], pods.owner):
                        if (templates[key], problem.path) not in told:
                            told.add((templates[key], problem.path))
                            yield templates[key], problem


def _covered(objects: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Names of the resources of which some queue in the input has an amount."""
    for each in objects:
        if each.get("kind") == "ClusterQueue":
            for group in mappings(value_at(each, "spec", "resourceGroups")):
                named = group.get("coveredResources")
                yield from (str(name) for name in named) if isinstance(named, list) else ()


def _of_containers(pods: PodTemplate, covered: Set[str]) -> Iterator[Problem]:
    """Kueue looks classes up by their `extendedResourceName` alone, and takes the name that every class has for another resource."""
    for kind in ("initContainers", "containers"):
        for number, container in enumerate(mappings(pods.spec.get(kind))):
            # Of such a resource the server wants a limit, and takes it for the request.
            for name in map(str, mapping(value_at(container, "resources", "limits"))):
                if name.startswith(OF_CLASS) and name not in covered and is_label_key(name):
                    yield _refusal(
                        pods.at(f"{kind}[{number}].resources.limits[{name}]"),
                        f"{pods.owner} goes to a queue of Kueue, which takes {name} for a resource of its own and not for "
                        "devices of a class, and no queue in the input has an amount of it",
                        "ask by a claim template or by the extendedResourceName of the class, or give the queue an amount of it",
                    )


def _of_template(template: Mapping[str, Any], owner: ObjectRef) -> Iterator[Problem]:
    path = "spec.spec.devices.requests"
    requests = mappings(value_at(template, "spec", "spec", "devices", "requests"))
    for number, request in enumerate(requests):
        # Of v1beta1 the fields stand in the request itself.
        exactly, below = mapping(request.get("exactly")), ".exactly"
        if not exactly:
            exactly, below = request, ""
        if request.get("firstAvailable"):
            yield _refusal(
                f"{path}[{number}].firstAvailable",
                f"{owner} goes to a queue of Kueue, which admits no alternatives",
                "ask for one kind of device, or make a workload of each for queues of their own",
            )
        elif exactly.get("allocationMode") == "All":
            yield _refusal(
                f"{path}[{number}]{below}.allocationMode",
                f"{owner} goes to a queue of Kueue, which cannot count All",
                "write how many: count: 8",
            )
        elif exactly.get("adminAccess") is True:
            yield _refusal(
                f"{path}[{number}]{below}.adminAccess",
                f"{owner} goes to a queue of Kueue, which up to 0.19 admits no admin access",
                "leave the label of the queue out: what looks at devices takes none",
            )


def _refusal(path: str, message: str, hint: str) -> Problem:
    told = f"{message}: its pods would be suspended for good"
    return Problem(path=path, code="kueue-refuses", message=told, hint=hint, severity="warning")


def _key(manifest: Mapping[str, Any]) -> tuple[str, str]:
    metadata = mapping(manifest.get("metadata"))
    return str(metadata.get("namespace") or "default"), str(metadata.get("name"))
