"""Objects of a program that its pods need: claims, templates and classes by name, and policies that add to pods or bound them."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from dra_infra.fleet import Fleet
from dra_infra.kubernetes.api import (
    CLAIM_KINDS,
    UNKNOWN,
    DeviceClass,
    Namespaces,
    ObjectRef,
    PodTemplate,
    by_namespace,
    find_all,
    is_placeholder,
    kind_of,
    mapping,
    mappings,
    plain_text,
    value_at,
)
from dra_infra.kubernetes.api.limits import MAX_RESERVED
from dra_infra.kubernetes.apiserver import (
    PodAdmission,
    QuotaKey,
    Quotas,
    Use,
    count_claim,
    counts_by_extended_resource,
    read_hard,
)
from dra_infra.kubernetes.scheduler import ServedResources
from dra_infra.output.wording import count_of
from dra_infra.placement.demand import Demand, Undecided, Workload, find_classes, read_demand
from dra_infra.placement.question import PlacementQuestion
from dra_infra.specs.compute_domains import channel_template


class ProgramObjects:
    """The claims, templates and classes of a program by name, those of a fleet behind them.

    Args:
        question: The program, the fleet, and namespaces, LimitRanges, quotas, RuntimeClasses, claims and claim templates of others.
    """

    def __init__(self, question: PlacementQuestion) -> None:
        taken = question.taken
        shipped = question.fleet.classes
        self.kinds = question.kinds
        self.manifests = list(question.manifests)
        self.release = question.release
        self.grouped = taken.grouped
        self.made = taken.made
        """What others use of quotas, by namespace."""
        self.policies = [*taken.policies, *self.manifests]
        """Objects among which those are that add to pods, bound them, or say what namespaces are."""
        self.admission = PodAdmission(self.policies)
        self.namespaces = Namespaces(self.policies)
        self.classes: dict[str, Mapping[str, Any]] = {
            class_.metadata.name: class_.to_manifest() for class_ in shipped if class_.metadata.name
        }
        self._claims: dict[tuple[str, str], list[tuple[ObjectRef, Mapping[str, Any]]]] = {}
        self._groups: dict[tuple[str, str], Mapping[str, Any]] = {}
        self._demands: dict[ObjectRef, Demand | Undecided] = {}
        # The program's own come first, for of two with one name the first is found.
        for manifest in (*self.manifests, *taken.templates):
            kind = str(manifest.get("kind"))
            ref = as_referenced(manifest)
            if kind == "DeviceClass":
                self.classes[ref.name] = manifest
            elif kind in CLAIM_KINDS:
                self._claims.setdefault((kind, ref.name), []).append((ref, manifest))
            elif kind == "PodGroup" and str(manifest.get("apiVersion")).startswith("scheduling.k8s.io/"):
                self._groups[ref.namespace, ref.name] = mapping(manifest.get("spec"))
            elif kind == "ComputeDomain" and (made := channel_template(manifest)):
                # The driver's controller makes it; without it the pods of a rack would not be decided.
                template = ObjectRef("ResourceClaimTemplate", made["metadata"]["name"], ref.namespace)
                self._claims.setdefault((template.kind, template.name), []).append((template, made))
        self.held = {
            as_referenced(each): each
            for each in taken.templates
            if value_at(each, "status", "allocation")
            or (kind_of(each) == "ResourceClaim" and value_at(each, "metadata", "deletionTimestamp"))
        }
        """Claims of others that are allocated and stay so, or are being deleted."""
        self.joined: dict[ObjectRef, set[ObjectRef]] = {}
        """Claims of others that pods of the program use too, with the objects of these pods."""
        self.served = self._find_served(shipped)

    @property
    def extended_names(self) -> dict[str, str]:
        """The extended resource name of each class that has one."""
        found = (
            (name, mapping(each.get("spec")).get("extendedResourceName"))
            for name, each in self.classes.items()
        )
        return {name: resource for name, resource in found if isinstance(resource, str)}

    def count_claim(self, spec: Any) -> Use:
        """Count what one claim uses of quotas."""
        return count_claim(spec, self.extended_names, bridged=counts_by_extended_resource(self.release))

    @property
    def readable_classes(self) -> dict[str, DeviceClass]:
        """The classes that can be read, by name."""
        return find_classes(self.classes)

    def _find_served(self, shipped: Sequence[DeviceClass]) -> ServedResources:
        known = {each.metadata.name: each.metadata.creation_timestamp for each in shipped}
        named = self.extended_names
        classes = [
            DeviceClass.from_manifest(
                {
                    "apiVersion": "resource.k8s.io/v1",
                    "kind": "DeviceClass",
                    "metadata": {"name": name, "creationTimestamp": known.get(name)},
                    "spec": {"extendedResourceName": named.get(name)},
                }
            )
            for name in self.classes
        ]
        return ServedResources(classes, self.release, frozenset(self.classes) - frozenset(known))

    def find_group(self, template: PodTemplate) -> Mapping[str, Any]:
        """The spec of the PodGroup that pods name; empty where it is not there, or the server drops the name."""
        name = value_at(template.spec, "schedulingGroup", "podGroupName")
        found = self._groups.get((template.owner.namespace or "default", str(name)), {})
        return found if self.release.enabled("GenericWorkload") else {}

    def count_seats(self, owner: ObjectRef) -> int:
        """How many pods may use the claims of others that those of an object use, beside the users that these have."""
        used = (self.held[claim] for claim, owners in self.joined.items() if owner in owners)
        return min(map(count_seats, used), default=sys.maxsize)

    def find_crowded(self, numbers: Sequence[tuple[ObjectRef, int]]) -> dict[ObjectRef, str]:
        """Why so many pods of objects never run at once: more use a claim of others than may. It is told of one of them."""
        found: dict[ObjectRef, str] = {}
        for claim in sorted(self.joined, key=by_namespace):
            owners = self.joined[claim]
            seats = count_seats(self.held[claim])
            using = [each for each in numbers if each[0] in owners]
            number = sum(each for _, each in using)
            if number > seats:
                found[using[0][0]] = f"{ObjectRef.of(self.held[claim])} {show_crowd(seats, number)}"
        return found

    def find_claim(self, kind: str, name: str, namespace: str) -> tuple[ObjectRef, Demand | Undecided] | None:
        """A claim or template and what it asks for; a namespace that is not known yet counts as the one asked for."""
        namespace = namespace or "default"
        found = self._claims.get((kind, name), [])
        exact = [each for each in found if each[0].namespace == namespace]
        loose = [each for each in found if is_placeholder(each[0].namespace) or is_placeholder(namespace)]
        chosen = exact or (loose if len(loose) == 1 else [])
        if not chosen:
            return None
        ref, manifest = chosen[0]
        if ref not in self._demands:
            self._demands[ref] = read_demand(manifest, ref, self.classes, self.release)
        return ref, self._demands[ref]


def count_seats(claim: Mapping[str, Any]) -> int:
    """How many more pods may use a claim."""
    return max(MAX_RESERVED - len(mappings(value_at(claim, "status", "reservedFor"))), 0)


def show_crowd(seats: int, number: int) -> str:
    """`has room for 1 more pod of the 256 that may use it, and 2 ask for it`."""
    room = count_of(seats, "more pod")
    return f"has room for {room} of the {MAX_RESERVED} that may use it, and {number:,} ask for it"


_EXCLUSIVE: Final = {
    "JobSet": ("alpha.jobset.sigs.k8s.io/exclusive-topology", ("spec", "replicatedJobs", "*", "replicas")),
    "LeaderWorkerSet": ("leaderworkerset.sigs.k8s.io/exclusive-topology", ("spec", "replicas")),
}
"""By kind, annotations by which each Job or group has a domain of nodes of its own, and how many there are: setExclusiveAffinities in
pkg/webhooks/pod_webhook.go of JobSet, and SetExclusiveAffinities there in LeaderWorkerSet."""


def find_lacking(objects: ProgramObjects, wanted: Sequence[Workload], fleet: Fleet) -> dict[ObjectRef, str]:
    """Why workloads never run whole that need more domains of nodes of their own than there are; nothing of those that scale."""
    found: dict[ObjectRef, str] = {}
    for manifest in objects.manifests:
        annotation, path = _EXCLUSIVE.get(kind_of(manifest), ("", ()))
        key = str(value_at(manifest, "metadata", "annotations", annotation) or "") if annotation else ""
        if not key:
            continue
        groups = sum(number if isinstance(number, int) else 1 for _, number in find_all(manifest, path))
        domains = len({node.labels[key] for node in fleet.nodes if key in node.labels})
        if groups > domains:
            text = f"needs {groups:,} domains of {key} of its own, and there are {domains:,}"
            ref = as_referenced(manifest)
            owners = (each.owner for each in wanted if each.most is None)
            found |= {each: f"{each.whole} {text}" for each in owners if each.whole.stored == ref}
    return found


def name_policies(objects: ProgramObjects, workloads: Sequence[Workload]) -> list[str]:
    """Notes on LimitRanges and quotas that are not taken into account."""
    found: list[str] = []
    namespaces = sorted({each.owner.namespace for each in workloads})
    for namespace in namespaces:
        bounds = objects.admission.bounds(namespace)
        found += [f"bounds of LimitRange {namespace or 'default'}/{name}" for name in bounds]
    found += [each for each in Quotas(objects.policies).unread if _is_about(each, namespaces)]
    return [
        *(f"{each} are not taken into account" for each in found),
        *_name_quotas_of_unknown_classes(objects, namespaces),
        *_name_unknown_namespaces(objects, workloads),
    ]


def _name_unknown_namespaces(objects: ProgramObjects, workloads: Sequence[Workload]) -> Iterator[str]:
    """Yield a note for each workload that quotas and LimitRanges may be about, because its namespace is known later."""
    if any(each.get("kind") in ("LimitRange", "ResourceQuota") for each in objects.policies):
        for each in workloads:
            if is_placeholder(each.owner.namespace):
                yield f"{each.owner}: its namespace is only known after `pulumi up`, so no quota and no LimitRange is counted for it"


def _name_quotas_of_unknown_classes(objects: ProgramObjects, namespaces: Sequence[str]) -> Iterator[str]:
    """Yield a note for each quota of a class that is not in the input, where one of the program has a name that is known later."""
    if not any(map(is_placeholder, objects.classes)):
        return
    known = {key for name in objects.classes for key in QuotaKey.list_of_class(plain_text(name))}
    for manifest in objects.policies:
        ref = ObjectRef.of(manifest).stored
        if ref.kind != "ResourceQuota" or ref.namespace not in {each or "default" for each in namespaces}:
            continue
        for key in read_hard(manifest):
            if QuotaKey(key).counts_class and key not in known:
                yield f"{key} of {ref} may limit a class whose name is only known after `pulumi up`, and is not counted for it"


def _is_about(unread: str, namespaces: Sequence[str]) -> bool:
    namespace = unread.rpartition(" ")[2].partition("/")[0]
    return namespace in {each or "default" for each in namespaces}


def as_referenced(manifest: Mapping[str, Any]) -> ObjectRef:
    """Return the stored object as others of the program reference it: by an unknown name where the server makes it up."""
    metadata = mapping(manifest.get("metadata"))
    name = str(metadata.get("name") or UNKNOWN)
    return ObjectRef(kind_of(manifest), name, str(metadata.get("namespace") or "")).stored


SCALERS: Final = {
    "HorizontalPodAutoscaler": ("minReplicas", "maxReplicas", 0, None),
    # Once anything triggers it: GetHPAMinReplicas in apis/keda/v1alpha1/scaledobject_types.go of kedacore/keda v2.20.2.
    "ScaledObject": ("minReplicaCount", "maxReplicaCount", 1, 100),
}
"""The fields with the fewest and most replicas by kind of autoscaler, the least of the first, and the second if absent."""


def target_of(manifest: Mapping[str, Any]) -> ObjectRef | None:
    """Return what an autoscaler scales; None for another object."""
    if str(manifest.get("kind")) not in SCALERS:
        return None
    scaled = mapping(value_at(manifest, "spec", "scaleTargetRef"))
    namespace = as_referenced(manifest).namespace
    return ObjectRef(kind_of(scaled) or "Deployment", str(scaled.get("name")), namespace)
