"""Workloads of a program: its pods that use claims, what is asked for each, and the labels they get.

The labels are those that controllers give the pods that they make.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from dra_infra.catalog.train_jobs import with_runtime
from dra_infra.catalog.workload_kinds import QUEUE_LABEL
from dra_infra.kubernetes.api import (
    UNKNOWN,
    Amounts,
    Gang,
    ObjectRef,
    Placeholder,
    PodClaimEntry,
    PodTemplate,
    WorkloadKinds,
    mapping,
    mappings,
    value_at,
)
from dra_infra.kubernetes.apiserver import Use, count_extended_claim, count_pod
from dra_infra.kubernetes.scheduler import (
    CLASS_RESOURCE_PREFIX,
    EXTENDED_RESOURCES_GATE,
    NODE_FILTER_FIELDS,
    POD_SHAPE_FIELDS,
    NodeFilter,
    PodShape,
    Taken,
    find_unmodelled,
    pod_requests,
    read_shape,
)
from dra_infra.placement.demand import (
    ONLY_AFTER_UP,
    Entry,
    ExtendedClaim,
    PodPlan,
    Undecided,
    Workload,
    find_unknown,
)
from dra_infra.placement.objects import SCALERS, ProgramObjects, as_referenced, target_of
from dra_infra.placement.placement import Reason

_REVISION: Final = {
    "DaemonSet": "controller-revision-hash",
    "Deployment": "pod-template-hash",
    "StatefulSet": "controller-revision-hash",
}
"""The label that tells one generation of an object's pods from another.

Source: DefaultDeploymentUniqueLabelKey and ControllerRevisionHashLabelKey of apps/v1.
"""


def labels_of_pods(owner: ObjectRef, written: Mapping[str, str]) -> dict[str, str]:
    """The labels of an object's pods: those of its template, and what its controller adds.

    Hashes are not known here; what matters is that one object's pods have one, and that it is nobody else's.
    """
    added: dict[str, str] = {}
    if owner.kind in _REVISION:
        added[_REVISION[owner.kind]] = f"of {owner}"
    if owner.kind == "Job":
        added = dict.fromkeys(("job-name", "batch.kubernetes.io/job-name"), owner.name)
    return {**added, **written}


_KINDS: Final = {"resourceClaimName": "ResourceClaim", "resourceClaimTemplateName": "ResourceClaimTemplate"}
_CLAIM_FIELDS: Final = {"resourceClaimName", "resourceClaimTemplateName", "claimCreationSpec"}


def find_workloads(objects: ProgramObjects) -> tuple[list[Workload], list[str], list[str]]:
    """The workloads whose pods use claims, by namespace, kind and name; what could not be looked into; and the objects that use claims beside."""
    workloads: list[Workload] = []
    notes: list[str] = []
    unplaced: list[str] = []
    for manifest, templates in _find_templates(objects):
        kind = objects.kinds.find(manifest)
        if not templates and kind is not None and find_unknown(manifest.get("spec"), "spec"):
            notes.append(f"{as_referenced(manifest)} is not looked at: its pod spec {ONLY_AFTER_UP}")
        elif not templates and manifest.get("kind") == "TrainJob":
            unplaced.append(str(as_referenced(manifest)))
            notes.append(
                f"{as_referenced(manifest)} is not placed here: its runtime is not in the input, or runs MPI"
            )
        elif (
            not any(each.spec.get("resourceClaims") for each in templates)
            and (kind is None or kind.parts)
            and holds_claims(manifest.get("spec"))
        ):
            if kind is None:
                why = "its kind is not known to make pods (--kinds FILE names one)"
            elif not templates:
                why = "no pods are where its kind is known to have them (--kinds FILE says where)"
            else:
                why = "they are not where its kind is known to have those of its pods"
            unplaced.append(str(as_referenced(manifest)))
            notes.append(f"{as_referenced(manifest)} uses claims and is not placed here: {why}")
        elif not templates and kind is not None:
            notes += [
                f"{as_referenced(manifest)} is not placed here: {at} ({why})"
                for at, why in kind.find_set(manifest)
            ]
        workloads += [
            _read_workload(template, manifest, objects)
            for template in templates
            if _uses_devices(template, objects)
        ]
    workloads.sort(key=lambda each: (each.owner.namespace, each.owner.kind, each.owner.name, each.owner.part))
    return workloads, notes, unplaced


def holds_claims(value: Any) -> bool:
    """True where anything in a value names claims for pods, as custom resources of any kind do it.

    Pods take them as `resourceClaims`, NIM services as `draResources`, and Argo patches pod specs with a text.
    """
    if isinstance(value, Mapping):
        claims = [each for name in ("resourceClaims", "draResources") for each in mappings(value.get(name))]
        patch = value.get("podSpecPatch")
        if any(_CLAIM_FIELDS & each.keys() for each in claims):
            return True
        if isinstance(patch, str) and "resourceClaims" in patch:
            return True
        return any(map(holds_claims, value.values()))
    return isinstance(value, list) and any(map(holds_claims, value))


def find_bystanders(objects: ProgramObjects) -> list[Workload]:
    """The workloads of the program whose pods use no devices: they take CPU, memory and pod slots of nodes."""
    return [
        _read_workload(template, manifest, objects)
        for manifest, templates in _find_templates(objects)
        for template in templates
        if template.owner.kind != "PodTemplate" and not _uses_devices(template, objects)
    ]


def read_evicted(objects: ProgramObjects, taken: Taken) -> list[Workload]:
    """The pods of others that are evicted, as their controllers make them anew."""
    return [_read_workload(each, {}, objects) for each in taken.evicted]


def _find_templates(objects: ProgramObjects) -> Iterator[tuple[Mapping[str, Any], list[PodTemplate]]]:
    """Each object, a TrainJob with its runtime, and its pod templates with as many pods as autoscalers make."""
    autoscalers = _find_autoscalers(objects.manifests)
    for written in objects.manifests:
        manifest = with_runtime(written, objects.manifests)
        bounds = autoscalers.get(as_referenced(manifest))
        yield manifest, _find_scaled(objects.kinds, manifest, bounds)


def _find_autoscalers(manifests: Iterable[Mapping[str, Any]]) -> dict[ObjectRef, tuple[int, int]]:
    """The fewest and most replicas of each object that an autoscaler scales."""
    found: dict[ObjectRef, tuple[int, int]] = {}
    for manifest in manifests:
        if target := target_of(manifest):
            spec = mapping(manifest.get("spec"))
            (low, high, floor, otherwise) = SCALERS[manifest["kind"]]
            least, most = spec.get(low, 1), spec.get(high, otherwise)
            if isinstance(least, int) and isinstance(most, int):
                most = max(least, most)
                found[target] = min(max(least, floor), most), most
    return found


def _find_scaled(
    kinds: WorkloadKinds, manifest: Mapping[str, Any], bounds: tuple[int, int] | None
) -> list[PodTemplate]:
    """The pod templates of an object; of one that is autoscaled with the fewest pods, and the most."""
    if bounds is None:
        return list(kinds.find_pod_templates(manifest))
    # An autoscaler writes the field that the kind's `scale` names, which is this one for all that are known.
    spec = mapping(manifest.get("spec"))
    least, most = (
        kinds.find_pod_templates({**manifest, "spec": {**spec, "replicas": number}}) for number in bounds
    )
    return [replace(few, most=many.replicas) for few, many in zip(least, most, strict=True)]


def _uses_devices(template: PodTemplate, objects: ProgramObjects) -> bool:
    """True for a pod with claims, or with an extended resource that a class serves."""
    if template.spec.get("resourceClaims"):
        return True
    try:
        requests = pod_requests(template.spec)
    except ValueError:
        return False
    return any(objects.served.class_of(name) for name in requests) or bool(_find_unserved(requests, objects))


def plan_claim(objects: ProgramObjects, claim: ObjectRef) -> Workload:
    """One pod that uses nothing but the claim or template."""
    field_name = "resourceClaimName" if claim.kind == "ResourceClaim" else "resourceClaimTemplateName"
    template = PodTemplate(
        owner=claim,
        path="spec",
        replicas=1,
        spec={"resourceClaims": [{"name": "claim", field_name: claim.name}], "containers": []},
    )
    return _read_workload(template, {}, objects)


def at_allocations(
    template: PodTemplate, held: Mapping[ObjectRef, Mapping[str, Any]]
) -> tuple[PodTemplate, list[Mapping[str, Any]]]:
    """The pods without claims of others that are allocated already, and these claims.

    Args:
        template: The pods.
        held: The claims.
    """
    entries = mappings(template.spec.get("resourceClaims"))
    left = []
    used = []
    for entry in entries:
        name = str(entry.get("resourceClaimName"))
        claim = held.get(ObjectRef("ResourceClaim", name, template.owner.namespace).stored)
        used += [claim] if claim else []
        left += [] if claim else [entry]
    return replace(template, spec={**template.spec, "resourceClaims": left}) if used else template, used


def _read_workload(template: PodTemplate, manifest: Mapping[str, Any], objects: ProgramObjects) -> Workload:
    owner = template.owner
    template, used = at_allocations(template, objects.held)
    for claim in used:
        objects.joined.setdefault(as_referenced(claim), set()).add(owner)
    spec = objects.admission.admit(template.spec, owner.namespace)
    reasons = _find_unknown_fields(template, objects)
    entries: list[Entry] = []
    for each in () if reasons else template.claims:
        found = _read_entry(each, template, objects)
        if isinstance(found, Entry):
            entries.append(found)
        else:
            reasons.extend(found)
    reasons += _find_twice(entries, owner)
    requests: Amounts = {}
    try:
        requests = pod_requests(spec)
    except ValueError as error:
        if not reasons:
            reasons.append(Reason(code="object-malformed", message=f"{owner}: {template.path}: {error}"))
    # A pod that was read from a cluster has its node from the scheduler.
    is_bound = owner.kind == "Pod" and bool(manifest.get("status"))
    named = None if is_bound else spec.get("nodeName")
    extended = None if reasons else _read_extended(spec, requests, owner, objects, entries, named)
    if isinstance(extended, Undecided):
        reasons.extend(extended.reasons)
        extended = None
    daemon = owner.kind == "DaemonSet"
    gang = template.gang or _find_gang(template, objects)
    decisive = {name: spec[name] for name in NODE_FILTER_FIELDS if spec.get(name)}
    waits = bool(entries and named)
    plan = PodPlan(
        entries=tuple(entries),
        requests=requests,
        filter=NodeFilter(spec, daemon=daemon, waits=waits, claims=used),
        filter_key=json.dumps(
            [decisive, daemon, waits, named, [*map(str, map(ObjectRef.of, used))]],
            sort_keys=True,
            default=str,
        ),
        shape=_read_shape(template, spec),
        extended=extended,
        made=() if reasons else tuple(_find_made(entries, requests, extended, objects)),
        spec=spec,
    )
    return Workload(
        owner=owner,
        replicas=None if template.replicas is None else max(template.replicas, 0),
        plan=Undecided(tuple(reasons)) if reasons else plan,
        unmodelled=tuple(sorted(_find_unmodelled(template, manifest, objects))),
        most=template.most,
        gang=gang,
    )


_GANGS_SINCE: Final = 37
"""The minor in which the scheduler has gangs by the gate of PodGroups; before, that is another gate, which is not known here."""


def _find_group(template: PodTemplate, objects: ProgramObjects) -> Mapping[str, Any]:
    """The spec of the PodGroup that pods name, where the scheduler has gangs; else empty."""
    return objects.find_group(template) if objects.release.number >= _GANGS_SINCE else {}


def _find_gang(template: PodTemplate, objects: ProgramObjects) -> Gang | None:
    """The gang of the PodGroup that the pods name, less its pods that run, which Permit of GangScheduling counts too."""
    least = value_at(_find_group(template, objects), "schedulingPolicy", "gang", "minCount")
    name = value_at(template.spec, "schedulingGroup", "podGroupName")
    owner = ObjectRef("PodGroup", str(name), template.owner.namespace or "default")
    running = objects.grouped.get((owner.namespace, owner.name), 0)
    return Gang(owner, least).beside(running) if isinstance(least, int) else None


def _find_unmodelled(
    template: PodTemplate, manifest: Mapping[str, Any], objects: ProgramObjects
) -> Iterator[str]:
    known = "schedulingGroup (gang scheduling)" if _find_group(template, objects) else ()
    found = find_unmodelled(template, manifest, objects.admission)
    yield from (each for each in found if not each.endswith(known))
    if value_at(manifest, "metadata", "labels", QUEUE_LABEL):
        yield f"metadata.labels.{QUEUE_LABEL} (no pods until Kueue admits it; they are placed as if it had)"


def _read_shape(template: PodTemplate, spec: Mapping[str, Any]) -> PodShape:
    owner = template.owner
    labels = labels_of_pods(owner, template.labels)
    return read_shape(spec, owner.namespace or "default", labels, is_daemon=owner.kind == "DaemonSet")


def _read_extended(
    spec: Mapping[str, Any],
    requests: Amounts,
    owner: ObjectRef,
    objects: ProgramObjects,
    entries: Sequence[Entry],
    node_name: object,
) -> ExtendedClaim | Undecided | None:
    served = objects.served
    reasons = [
        Reason(
            code="not-modelled",
            message=f"{owner}: which of {', '.join(served.ambiguous[name])} serves {name} depends on which class the "
            "scheduler saw first, which is not modelled",
        )
        for name in requests
        if name in served.ambiguous
    ]
    reasons += [
        Reason(code="class-not-known", message=f"{owner}: resource {name} is that of a class not known here")
        for name in _find_unserved(requests, objects)
    ]
    demand = served.find(spec, requests)
    if reasons or demand is None:
        return Undecided(tuple(reasons)) if reasons else None
    asked = demand, owner.namespace, objects.classes
    claim = ExtendedClaim(*asked, has_claims=bool(entries), node_name=node_name)
    # With no device plugin anywhere it asks for all of them.
    entry = claim.entry_for({})
    return entry if isinstance(entry, Undecided) else claim


def _find_unserved(requests: Amounts, objects: ProgramObjects) -> list[str]:
    """Implicit extended resources of classes that are not known."""
    if not objects.release.enabled(EXTENDED_RESOURCES_GATE):
        return []
    return [
        name
        for name in requests
        if name.startswith(CLASS_RESOURCE_PREFIX) and objects.served.class_of(name) is None
    ]


def _find_made(
    entries: Sequence[Entry], requests: Amounts, extended: ExtendedClaim | None, objects: ProgramObjects
) -> Iterator[tuple[str, Use]]:
    """The objects that are made for one pod, in order, with what they count for in quotas."""
    pod = count_pod(requests)
    yield "a pod", pod
    for entry in entries:
        if not entry.shared:
            spec = {"devices": entry.demand.devices.to_manifest()}
            yield f"the claim of its entry {entry.name}", objects.count_claim(spec)
    asked = extended.spec_for({}) if extended else None
    if asked:
        yield "the claim for its extended resources", count_extended_claim(asked, objects.extended_names, pod)


def _without_known_claims(template: PodTemplate, objects: ProgramObjects) -> Any:
    """The entries of the pod, empty where the claim is an object of the program although its name is not known."""
    entries = template.spec.get("resourceClaims")
    if not isinstance(entries, list):
        return entries
    return [{} if _names_known_claim(each, template, objects) else each for each in entries]


def _names_known_claim(entry: Any, template: PodTemplate, objects: ProgramObjects) -> bool:
    for field_name, kind in _KINDS.items():
        name = mapping(entry).get(field_name)
        # The marker of all values that are not known names no object.
        if not isinstance(name, Placeholder) or name == UNKNOWN:
            continue
        if objects.find_claim(kind, name, template.owner.namespace) is not None:
            return True
    return False


def _find_unknown_fields(template: PodTemplate, objects: ProgramObjects) -> list[Reason]:
    spec = {**template.spec, "resourceClaims": _without_known_claims(template, objects)}
    looked_at = (
        "resourceClaims",
        *dict.fromkeys((*NODE_FILTER_FIELDS, *POD_SHAPE_FIELDS)),
        "resources",
        "overhead",
    )
    paths = [found for name in looked_at for found in find_unknown(spec.get(name), template.at(name))]
    if spec.get("affinity") or spec.get("topologySpreadConstraints"):
        # Terms may name the pod itself.
        paths += find_unknown(template.labels, f"{template.path.removesuffix('spec')}metadata.labels")
    for name in ("initContainers", "containers"):
        containers = spec.get(name)
        for index, container in enumerate(containers if isinstance(containers, list) else ()):
            resources = container.get("resources") if isinstance(container, Mapping) else container
            if isinstance(resources, Mapping):
                resources = {key: value for key, value in resources.items() if key != "claims"}
            paths += find_unknown(resources, template.at(f"{name}[{index}].resources"))
    paths += template.uncounted
    when = "is not known before its pods are made" if template.places else ONLY_AFTER_UP
    no_number = "is no whole number from 0 on, so the API server refuses it"
    return [
        Reason(code=code, message=f"{template.owner}: {found} {why}")
        for code, why, places in (
            ("value-not-known", when, paths),
            ("object-malformed", no_number, template.malformed),
        )
        for found in places
    ]


def _read_entry(claim: PodClaimEntry, template: PodTemplate, objects: ProgramObjects) -> Entry | list[Reason]:
    owner = template.owner
    shared = claim.claim_name is not None
    kind = "ResourceClaim" if shared else "ResourceClaimTemplate"
    name = claim.claim_name or claim.template_name
    group = mappings(objects.find_group(template).get("resourceClaims"))
    if not shared and claim.name in [each.get("name") for each in group]:
        message = f"{owner}: claim {claim.name} is one for all pods of its PodGroup, which is not modelled"
        return [Reason(code="not-modelled", message=message)]
    if not name and template.places:
        message = f"{owner}: an entry of {template.at('resourceClaims')} has a claim that its controller makes, which is not looked into"
        return [Reason(code="not-modelled", message=message)]
    if not name:
        message = f"{owner}: entry {claim.name} names neither a claim nor a template"
        return [Reason(code="object-malformed", message=message)]
    found = objects.find_claim(kind, str(name), owner.namespace)
    if found is None:
        ref = ObjectRef(kind=kind, name=str(name), namespace=owner.namespace)
        message = f"{ref}, which entry {claim.name} of {owner} names, is not found in this input"
        return [Reason(code="claim-not-known", message=message)]
    ref, demand = found
    if isinstance(demand, Undecided):
        return list(demand.reasons)
    if shared and ref in objects.held:
        message = f"{ref} is allocated, and whether {owner} is in its namespace is not known"
        return [Reason(code="not-modelled", message=message)]
    return Entry(name=claim.name, object=ref, demand=demand, shared=shared)


def _find_twice(entries: Sequence[Entry], owner: ObjectRef) -> list[Reason]:
    shared = [entry.object for entry in entries if entry.shared]
    return [
        Reason(code="not-modelled", message=f"{owner}: two entries name {ref}, which is not modelled yet")
        for ref in sorted(set(shared))
        if shared.count(ref) > 1
    ]
