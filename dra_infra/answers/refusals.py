"""Pods that need an object with an error, or one that is not there, are never made or never get devices, so no answer says that they fit.

A pod needs the object that makes it, the claims and claim templates that it names, the ComputeDomain whose controller makes such a
template, and the DeviceClasses that these name or that serve its extended resources.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dra_infra.catalog.train_jobs import with_runtime
from dra_infra.errors import Problem
from dra_infra.kubernetes.api import (
    CLAIM_KINDS,
    ObjectRef,
    PodTemplate,
    WorkloadKinds,
    is_placeholder,
    mapping,
    mappings,
    value_at,
)
from dra_infra.kubernetes.scheduler import CLASS_RESOURCE_PREFIX
from dra_infra.placement.placement import (
    REFUSED,
    Growth,
    JointVerdict,
    Placement,
    Reason,
    WorkloadPlacement,
    by_owner,
)
from dra_infra.specs.compute_domains import channel_template

Manifest = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Accepted:
    """The objects that can be placed, and the workloads that cannot.

    Args:
        manifests: All objects without an error, but for workloads that need one with an error.
        blocked: These workloads, each with the error. They do not fit.
        needs: Finds what pods and claims need; None where no object has an error.
    """

    manifests: tuple[Manifest, ...]
    blocked: tuple[WorkloadPlacement, ...] = ()
    needs: Needs | None = None

    def find_refusal(self, claim: ObjectRef) -> Reason | None:
        """Return why a claim or claim template is not placed: it has an error, or a DeviceClass that it names has one."""
        refused = self.needs.find_for_claim(claim) if self.needs is not None else None
        return _reason(claim, *refused) if refused is not None else None

    def complete(self, placement: Placement) -> Placement:
        """Return the placement of `manifests` with the blocked workloads added: all workloads together never fit then."""
        if not self.blocked:
            return placement
        first = self.blocked[0]
        has = "has an error" if first.reasons[0].code == REFUSED else "is not there"
        why = f"{first.owner} is never placed, because an object that it needs {has}"
        joint = JointVerdict(verdict="never", reasons=(why,))
        return replace(
            placement,
            workloads=tuple(sorted((*placement.workloads, *self.blocked), key=by_owner)),
            joint=joint,
            joint_at_most=joint if placement.joint_at_most is not None else None,
            growth=placement.growth and _without_room(placement.growth, joint),
        )


def split_accepted(
    manifests: Sequence[Manifest],
    errors: Iterable[tuple[int, Problem]],
    kinds: WorkloadKinds,
    is_absent: Callable[[ObjectRef], bool] | None = None,
) -> Accepted:
    """Separate objects that can be placed from those that have an error, and from the workloads that need one of those.

    Workloads whose claim or claim template is known to be missing are separated too.

    Args:
        manifests: The objects.
        errors: Errors, each with the position of its object.
        kinds: Kinds of objects that make pods.
        is_absent: Returns whether it is known that the cluster does not have an object; None if nothing is known of it.
    """
    wrong: dict[int, Problem] = {}
    for index, problem in errors:
        wrong.setdefault(index, problem)
    if not wrong and is_absent is None:
        return Accepted(manifests=tuple(manifests))
    needs = Needs(
        manifests, {ObjectRef.of(manifests[index]).stored: problem for index, problem in wrong.items()}
    )
    missing = Missing(manifests, is_absent) if is_absent is not None else None
    kept: list[Manifest] = []
    blocked: list[WorkloadPlacement] = []
    for index, manifest in enumerate(manifests):
        own = wrong.get(index)
        stuck = []
        for template in kinds.find_pod_templates(with_runtime(manifest, manifests)):
            if why := (template.owner.whole, own) if own is not None else needs.find(template):
                stuck.append(_block(template, _reason(template.owner.whole, *why)))
            elif missing is not None and (absent := missing.find(template)):
                stuck.append(_block(template, absent))
        if own is not None and not stuck and kinds.find(manifest) is not None:
            # Its pods cannot be read, and it makes none.
            owner = ObjectRef.of(manifest)
            reason = _reason(owner, owner, own)
            stuck = [WorkloadPlacement(owner=owner, replicas=0, verdict="does-not-fit", reasons=(reason,))]
        blocked += stuck
        if own is None and not stuck:
            kept.append(manifest)
    return Accepted(manifests=tuple(kept), blocked=tuple(sorted(blocked, key=by_owner)), needs=needs)


class Needs:
    """Finds a refused object that pods need.

    Args:
        manifests: All objects.
        refused: Those with an error.
    """

    def __init__(self, manifests: Sequence[Manifest], refused: Mapping[ObjectRef, Problem]) -> None:
        self._refused = dict(refused)
        self._classes_of: dict[ObjectRef, list[str]] = {}
        self._class_serving: dict[str, str] = {}
        for manifest in manifests:
            ref = ObjectRef.of(manifest).stored
            if ref.kind in CLAIM_KINDS:
                self._classes_of[ref] = sorted(set(_find_classes(manifest.get("spec"))))
            elif ref.kind == "DeviceClass":
                self._class_serving[f"{CLASS_RESOURCE_PREFIX}{ref.name}"] = ref.name
                if resource := value_at(manifest, "spec", "extendedResourceName"):
                    self._class_serving[str(resource)] = ref.name
            elif ref.kind == "ComputeDomain" and ref in refused and (made := channel_template(manifest)):
                template = ObjectRef("ResourceClaimTemplate", made["metadata"]["name"], ref.namespace)
                self._refused[template] = refused[ref]

    def find(self, template: PodTemplate) -> tuple[ObjectRef, Problem] | None:
        """Return the first refused object that the pods need, with its error."""
        return self._first(self._list(template))

    def find_for_claim(self, claim: ObjectRef) -> tuple[ObjectRef, Problem] | None:
        """Return the first refused object among a claim or claim template and the DeviceClasses that it names."""
        return self._first(self._list_for_claim(claim.stored))

    def _first(self, needed: Iterable[ObjectRef]) -> tuple[ObjectRef, Problem] | None:
        return next(((ref, self._refused[ref]) for ref in needed if ref in self._refused), None)

    def _list_for_claim(self, claim: ObjectRef) -> Iterator[ObjectRef]:
        yield claim
        yield from (ObjectRef("DeviceClass", name) for name in self._classes_of.get(claim, ()))

    def _list(self, template: PodTemplate) -> Iterator[ObjectRef]:
        for entry in template.claims:
            kind = "ResourceClaim" if entry.claim_name is not None else "ResourceClaimTemplate"
            name = str(entry.claim_name or entry.template_name)
            yield from self._list_for_claim(ObjectRef(kind, name, template.owner.stored.namespace))
        for resource in _find_resources(template.spec):
            if resource in self._class_serving:
                yield ObjectRef("DeviceClass", self._class_serving[resource])


class Missing:
    """Finds a claim or claim template that pods need, and that neither the objects nor the cluster have.

    Args:
        manifests: All objects.
        is_absent: Returns whether it is known that the cluster does not have an object.
    """

    def __init__(self, manifests: Sequence[Manifest], is_absent: Callable[[ObjectRef], bool]) -> None:
        self._is_absent = is_absent
        self._made: set[ObjectRef] = set()
        for manifest in manifests:
            ref = ObjectRef.of(manifest).stored
            if ref.kind == "ComputeDomain" and (made := channel_template(manifest)):
                ref = ObjectRef("ResourceClaimTemplate", made["metadata"]["name"], ref.namespace)
            if ref.kind in CLAIM_KINDS:
                self._made.add(ref)
        # One of these may have the name that is looked for.
        self._is_open = any(
            is_placeholder(each.name) or is_placeholder(each.namespace) for each in self._made
        )

    def find(self, template: PodTemplate) -> Reason | None:
        """Return why pods wait for ever; None if all that they name is there, or if that is not known."""
        # Claims of a PodGroup have the names of entries.
        if self._is_open or template.spec.get("schedulingGroup"):
            return None
        namespace = template.owner.stored.namespace
        for entry in template.claims:
            kind = "ResourceClaim" if entry.claim_name is not None else "ResourceClaimTemplate"
            ref = ObjectRef(kind, str(entry.claim_name or entry.template_name or ""), namespace)
            is_known = ref.name and not is_placeholder(entry.claim_name or entry.template_name)
            if is_known and not is_placeholder(namespace) and ref not in self._made and self._is_absent(ref):
                return Reason(code="claim-not-known", message=f"there is no {ref}, so its pods wait for ever")
        return None


def _block(template: PodTemplate, reason: Reason) -> WorkloadPlacement:
    return WorkloadPlacement(
        owner=template.owner,
        replicas=max(template.replicas or 0, 0),
        verdict="does-not-fit",
        reasons=(reason,),
        most=template.most,
    )


def _reason(owner: ObjectRef, needed: ObjectRef, problem: Problem) -> Reason:
    has = "has" if needed.stored == owner.stored else f"needs {needed}, which has"
    return Reason(code=REFUSED, message=f"{has} an error: {problem.message} [{problem.code}]")


def _without_room(growth: Growth, joint: JointVerdict) -> Growth:
    """Return the growth with the verdict that no size of the pools is enough: some pods are never made."""
    return replace(growth, verdict="never-within-limits", joint=joint, reasons=joint.reasons, outlooks=())


def _find_classes(value: object) -> Iterator[str]:
    if isinstance(value, Mapping):
        if isinstance(name := value.get("deviceClassName"), str):
            yield name
        for item in value.values():
            yield from _find_classes(item)
    elif isinstance(value, list):
        for item in value:
            yield from _find_classes(item)


def _find_resources(spec: Manifest) -> list[str]:
    """Return the names of the resources that containers request."""
    return sorted(
        {
            str(name)
            for field in ("initContainers", "containers")
            for container in mappings(spec.get(field))
            for amounts in ("limits", "requests")
            for name in mapping(value_at(container, "resources", amounts))
        }
    )
