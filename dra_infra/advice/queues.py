"""Advice on workloads that wait in a queue of Kueue: what it does not admit, so that their pods would be suspended for good.

Upstream: pkg/dra/claims.go, pkg/dra/extended_resources.go, pkg/controller/core/workload_controller.go and
pkg/scheduler/flavorassigner/flavorassigner.go of sigs.k8s.io/kueue 0.19.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, TypeAlias

from dra_infra.advice.kueue_configuration import read_class_mappings
from dra_infra.catalog.workload_kinds import QUEUE_LABEL, find_pod_templates
from dra_infra.errors import Problem
from dra_infra.kubernetes.api import (
    ObjectRef,
    PodTemplate,
    is_placeholder,
    mapping,
    mappings,
    plain_text,
    value_at,
)
from dra_infra.kubernetes.api.names import is_label_key
from dra_infra.kubernetes.apiserver import QuotaKey, claim_devices, read_hard
from dra_infra.kubernetes.scheduler import CLASS_RESOURCE_PREFIX, node_amounts, pod_requests, show_amount

HELD: Final = frozenset({"kueue-refuses", "queue-not-known", "queue-lacks-resource", "queue-too-small"})
"""Codes of what is told of workloads that Kueue never admits."""

_Known: TypeAlias = Mapping[str, Mapping[str, Mapping[str, Mapping[str, Any]]]]
"""Objects by kind, namespace and name, as a cluster has them."""

_MAX_VARIANTS: Final = 16
"""ClusterQueues of one name that are tried, because each is an account of its own for every workload."""

_OF_PODS: Final = ("cpu", "memory", "ephemeral-storage", "pods", "hugepages-")
"""How names of resources begin that no mapping of classes has."""


def advise_queued(
    objects: Sequence[Mapping[str, Any]], beside: Iterable[Mapping[str, Any]] = ()
) -> Iterator[tuple[int, Problem]]:
    """Returns what `find_held` finds, with the position of the object whose line has to change; each line once."""
    told: set[tuple[int, str, str]] = set()
    for index, _, problem in find_held(objects, beside):
        key = index, problem.path, problem.hint
        if key not in told:
            told.add(key)
            yield index, problem


def find_held(
    objects: Sequence[Mapping[str, Any]], beside: Iterable[Mapping[str, Any]] = ()
) -> Iterator[tuple[int, ObjectRef, Problem]]:
    """Why Kueue never admits a workload: where to change it, which workload it is, and a warning with one of the codes of `HELD`.

    Args:
        objects: Manifests as plain data. Claim templates count by namespace and name.
        beside: Queues, quotas and claim templates that exist beside them.
    """
    queued = [
        (index, each)
        for index, each in enumerate(objects)
        if value_at(each, "metadata", "labels", QUEUE_LABEL)
    ]
    if not queued:
        return
    known: dict[str, dict[str, dict[str, Mapping[str, Any]]]] = {}
    for each in (*beside, *objects):
        ref = ObjectRef.of(each).stored
        known.setdefault(ref.kind, {}).setdefault(ref.namespace, {})[ref.name] = each
    variants = list(_list_variants(known, objects))
    templates = {ObjectRef.of(each).stored: index for index, each in enumerate(objects)}
    covered = {name for each in _find(known, "ClusterQueue").values() for name in _amounts_of(each)}
    mapped = read_class_mappings((*beside, *objects))
    classes = {
        str(value_at(each, "spec", "extendedResourceName")): (mapped or {}).get(name, QuotaKey.of_class(name))
        for name, each in _find(known, "DeviceClass", "").items()
    }
    for index, manifest in queued:
        parts = list(find_pod_templates(manifest))
        refusals = [
            each for pods in parts for each in _of_pods(pods, index, objects, templates, covered, mapped)
        ]
        # What is refused whatever the amounts is not counted.
        if parts and not refusals:
            shortages = [list(_of_account(manifest, parts, variant, classes, mapped)) for variant in variants]
            for code, message, hint in shortages[-1] if all(shortages) else ():
                refusals.append((index, _refusal(f"metadata.labels[{QUEUE_LABEL}]", message, hint, code)))
        yield from ((where, parts[0].owner.whole, problem) for where, problem in refusals)


def _list_variants(
    known: Mapping[str, dict[str, dict[str, Mapping[str, Any]]]], objects: Iterable[Mapping[str, Any]]
) -> Iterator[_Known]:
    """Yield what is known once for each way to write the queues.

    A folder of examples often has several ClusterQueues with one name, and a cluster gets one of them. A workload is reported only if none of
    them admits it. The queues of different names vary together: the first of each, then the second of each. With more than `_MAX_VARIANTS`
    of one name nothing is counted.
    """
    written: dict[str, list[Mapping[str, Any]]] = {}
    for each in objects:
        ref = ObjectRef.of(each).stored
        if ref.kind == "ClusterQueue":
            written.setdefault(ref.name, []).append(each)
    most = max((len(queues) for queues in written.values()), default=1)
    if most > _MAX_VARIANTS:
        yield {kind: items for kind, items in known.items() if kind != "ClusterQueue"}
        return
    for number in range(most):
        queues = {name: queues[min(number, len(queues) - 1)] for name, queues in written.items()}
        yield (
            {**known, "ClusterQueue": {"default": {**_find(known, "ClusterQueue"), **queues}}}
            if queues
            else known
        )


def _of_pods(
    pods: PodTemplate,
    index: int,
    objects: Sequence[Mapping[str, Any]],
    templates: Mapping[ObjectRef, int],
    covered: Collection[str],
    mapped: Mapping[str, str] | None,
) -> Iterator[tuple[int, Problem]]:
    yield from ((index, problem) for problem in _of_containers(pods, covered))
    for number, entry in enumerate(pods.claims):
        if entry.claim_name is not None:
            path = f"{pods.at(f'resourceClaims[{number}]')}.resourceClaimName"
            message = f"{pods.owner} goes to a queue of Kueue, which admits no claim by name"
            hint = "name a claim template, so that each pod has a claim of its own"
            yield index, _refusal(path, message, hint)
        named = ObjectRef("ResourceClaimTemplate", str(entry.template_name), pods.owner.namespace)
        where = templates.get(named.stored)
        if entry.template_name is not None and where is not None:
            yield from ((where, problem) for problem in _of_template(objects[where], pods.owner, mapped))


def _of_account(
    manifest: Mapping[str, Any],
    parts: Sequence[PodTemplate],
    known: _Known,
    classes: Mapping[str, str],
    mapped: Mapping[str, str] | None,
) -> Iterator[tuple[str, str, str]]:
    """Code, message and hint of what Kueue's account says, in numbers; nothing where no queues are known."""
    owner = parts[0].owner.whole
    namespace = ObjectRef.of(manifest).stored.namespace
    queue = str(value_at(manifest, "metadata", "labels", QUEUE_LABEL))
    queues = _find(known, "LocalQueue", namespace)
    local = queues.get(queue)
    name = str(value_at(local, "spec", "clusterQueue"))
    there = _find(known, "ClusterQueue").get(name)
    amounts = _amounts_of(there or {})
    others = "ClusterQueue" if local else "LocalQueue"
    if there is None and others in known and not any(map(is_placeholder, (namespace, queue, name))):
        missing = f"ClusterQueue {name}" if local else f"LocalQueue {namespace}/{queue}"
        hint = f"write {QUEUE_LABEL}: {min(queues)}" if queues and not local else f"add {missing}"
        yield "queue-not-known", f"{owner} goes to {missing}, which is not there", hint
    # Under any of these a mapping of Kueue's configuration may count another class, where it is not in the input.
    spare = [each for each in amounts if not each.startswith(_OF_PODS)]
    for resource, amount in (
        sorted(_count(manifest, parts, known, classes, amounts, mapped or {}).items()) if amounts else ()
    ):
        given = amounts.get(resource, [])
        shown = show_amount(resource, amount)
        # The pods of one part have all of it from one flavor.
        most = max(given, default=0) if len(parts) == 1 else sum(given)
        is_class = QuotaKey(resource).class_name is not None
        may_be_mapped = mapped is None and not all(
            is_class and QuotaKey(each).class_name is not None for each in spare
        )
        if amount <= most or (not given and "/" in resource and may_be_mapped):
            continue
        has = f"{show_amount(resource, int(most))} and no cohort to borrow from" if given else "no amount"
        yield (
            "queue-too-small" if given else "queue-lacks-resource",
            f"{owner} asks for {shown} of {resource} at once, of which ClusterQueue {name} has {has}, while "
            + _show_quota(namespace, resource, known),
            f"ask for less, or give ClusterQueue {name} a nominalQuota of {shown} {resource} or more",
        )


def _amounts_of(queue: Mapping[str, Any]) -> dict[str, list[float]]:
    """Amounts that a ClusterQueue has of each resource, by flavor; infinite where it may borrow or they cannot be read."""
    spec = mapping(queue.get("spec"))
    found: dict[str, list[float]] = {}
    for group in mappings(spec.get("resourceGroups")):
        for flavor in mappings(group.get("flavors")):
            for each in mappings(flavor.get("resources")):
                # The name of a class that is known later is part of it, as in what workloads ask for.
                name = plain_text(str(each.get("name")))
                amount = math.inf
                with suppress(ValueError):
                    if not (spec.get("cohortName") or spec.get("cohort")):
                        amount = node_amounts({name: str(each.get("nominalQuota"))})[name]
                found.setdefault(name, []).append(amount)
    return found


def _count(
    manifest: Mapping[str, Any],
    parts: Sequence[PodTemplate],
    known: _Known,
    classes: Mapping[str, str],
    amounts: Collection[str],
    mapped: Mapping[str, str],
) -> Counter[str]:
    """Returns the amounts that Kueue counts for a workload before it admits any of it, by resource."""
    least = str(value_at(manifest, "metadata", "annotations", "kueue.x-k8s.io/job-min-parallelism"))
    total: Counter[str] = Counter()
    for pods in parts:
        # Each pod of a Deployment is a workload of its own to Kueue.
        number = 1 if pods.replicas is None or pods.owner.kind == "Deployment" else pods.replicas
        number = min(number, int(least)) if least.isdecimal() and len(least) < 10 else number
        with suppress(ValueError):
            for name, amount in pod_requests(pods.spec).items():
                counted = classes.get(name, name)
                total[counted if counted in amounts else name] += amount * number
        for entry in pods.claims:
            templates = _find(known, "ResourceClaimTemplate", pods.owner.stored.namespace)
            asked = value_at(templates.get(str(entry.template_name)), "spec", "spec")
            for class_name, devices in claim_devices(asked):
                total[mapped.get(class_name, QuotaKey.of_class(class_name))] += devices * number
    return Counter({name: amount for name, amount in total.items() if name != "pods" or name in amounts})


def _show_quota(namespace: str, resource: str, known: _Known) -> str:
    """Tells what the ResourceQuotas of a namespace allow of a resource."""
    for name, each in sorted(_find(known, "ResourceQuota", namespace).items()):
        hard = read_hard(each)
        limit = hard.get(f"requests.{resource}", hard.get(resource))
        if limit is not None:
            return f"ResourceQuota {namespace}/{name} allows {show_amount(resource, limit)}"
    return "no ResourceQuota limits it"


def _of_containers(pods: PodTemplate, covered: Collection[str]) -> Iterator[Problem]:
    """Kueue looks classes up by their `extendedResourceName` alone, and takes the name that every class has for another resource."""
    for kind in ("initContainers", "containers"):
        for number, container in enumerate(mappings(pods.spec.get(kind))):
            # Of such a resource the server wants a limit, and takes it for the request.
            for name in map(str, mapping(value_at(container, "resources", "limits"))):
                if name.startswith(CLASS_RESOURCE_PREFIX) and name not in covered and is_label_key(name):
                    yield _refusal(
                        pods.at(f"{kind}[{number}].resources.limits[{name}]"),
                        f"{pods.owner} goes to a queue of Kueue, which takes {name} for a resource of its own and not for "
                        "devices of a class, and no queue in the input has an amount of it",
                        "ask by a claim template or by the extendedResourceName of the class, or give the queue an amount of it",
                    )


def _of_template(
    template: Mapping[str, Any], owner: ObjectRef, mapped: Mapping[str, str] | None
) -> Iterator[Problem]:
    path = "spec.spec.devices.requests"
    requests = mappings(value_at(template, "spec", "spec", "devices", "requests"))
    for number, request in enumerate(requests):
        # Of v1beta1 the fields stand in the request itself.
        exactly = mapping(request.get("exactly"))
        below = ".exactly"
        if not exactly:
            exactly = request
            below = ""
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
        elif (
            mapped is not None
            and not is_placeholder(name := str(exactly.get("deviceClassName")))
            and name not in mapped
        ):
            yield _refusal(
                f"{path}[{number}]{below}.deviceClassName",
                f"{owner} goes to a queue of Kueue, whose Configuration maps no resource to class {name}",
                f"add to its resources.deviceClassMappings: {{name: ..., deviceClassNames: [{name}]}}",
            )


def _refusal(path: str, message: str, hint: str, code: str = "kueue-refuses") -> Problem:
    told = f"{message}: its pods would be suspended for good"
    return Problem(path=path, code=code, message=told, hint=hint, severity="warning")


def _find(known: _Known, kind: str, namespace: str = "default") -> Mapping[str, Mapping[str, Any]]:
    return known.get(kind, {}).get(namespace, {})
