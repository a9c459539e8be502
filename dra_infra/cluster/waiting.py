"""What the objects of a cluster say about a pod or claim that waits, before anybody looks at devices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from dra_infra.cluster.objects import mapping, mappings, name_of, namespace_of, text, uid_of
from dra_infra.errors import Problem
from dra_infra.model.metadata import ObjectRef

Manifest = Mapping[str, Any]

DONE: Final = ("Failed", "Succeeded")
"""Phases of a pod that has ended."""

_MOST_USERS: Final = 256
"""Pods that one claim may be reserved for (ResourceClaimReservedForMaxSize)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Scene:
    """Objects of a cluster that a question is about.

    Args:
        pods, claims, templates, events: Those that could be seen; of events only warnings.
        saw_claims, saw_templates: Whether what is not in it does not exist.
    """

    pods: Sequence[Manifest] = field(default=(), repr=False)
    claims: Sequence[Manifest] = field(default=(), repr=False)
    templates: Sequence[Manifest] = field(default=(), repr=False)
    events: Sequence[Manifest] = field(default=(), repr=False)
    owners: Sequence[Manifest] = field(default=(), repr=False)
    saw_claims: bool = True
    saw_templates: bool = True

    @property
    def objects(self) -> tuple[Manifest, ...]:
        """Everything that `explain` can be asked about."""
        return (*self.pods, *self.owners, *self.claims, *self.templates)


def find_named(items: Sequence[Manifest], name: str, namespace: str) -> Manifest | None:
    """The object of a name and namespace."""
    return next((each for each in items if name_of(each) == name and namespace_of(each) == namespace), None)


def not_there(entry: str, name: str, template: str, ref: ObjectRef, scene: Scene) -> Iterator[Problem]:
    """Why a claim of a pod is not there: codes `claim-not-known`, `claim-not-made`."""
    path = f"{ref}: resourceClaims entry {entry}"
    if name:
        if scene.saw_claims:
            yield Problem(
                path=path,
                code="claim-not-known",
                message=f"there is no ResourceClaim {ref.namespace}/{name}",
                hint="create it; the scheduler looks again when it is there",
            )
        return
    if scene.saw_templates and find_named(scene.templates, template, ref.namespace) is None:
        yield Problem(
            path=path,
            code="claim-not-known",
            message=f"there is no ResourceClaimTemplate {ref.namespace}/{template}, so its claim cannot be made",
            hint="create it in the namespace of the pod, or correct the name",
        )
        return
    yield Problem(
        path=path,
        code="claim-not-made",
        message=f"the claim of template {template} is not made yet",
        hint="kube-controller-manager makes it: see whether it runs, and `kubectl describe pod` for its words",
    )


def claim_states(claim: Manifest, ref: ObjectRef, scene: Scene) -> Iterator[Problem]:
    """What keeps pods from a claim that is there: codes `claim-deleting`, `claim-reserved`."""
    metadata, status = mapping(claim.get("metadata")), mapping(claim.get("status"))
    reserved = mappings(status.get("reservedFor"))
    if metadata.get("deletionTimestamp"):
        held = ", ".join(map(str, metadata.get("finalizers") or ()))
        yield Problem(
            path=str(ref),
            code="claim-deleting",
            message=f"it is being deleted, and {held or 'nothing'} holds it: no pod gets it any more",
            hint="its pods must end first; then create it anew",
        )
    if len(reserved) >= _MOST_USERS:
        yield Problem(
            path=str(ref),
            code="claim-reserved",
            message=f"{len(reserved)} pods have it already, and no more than {_MOST_USERS} may",
            hint="take a second claim, or one for each pod by a template",
        )
    phases = {uid_of(each): text(mapping(each.get("status")).get("phase")) for each in scene.pods}
    for each in reserved:
        if (
            each.get("resource") == "pods"
            and scene.pods
            and phases.get(text(each.get("uid")), "gone") in ("gone", *DONE)
        ):
            yield Problem(
                path=str(ref),
                code="claim-reserved",
                message=f"it is still reserved for pod {text(each.get('name'))}, which has ended: its devices stay taken",
                hint="kube-controller-manager frees it: see whether that runs",
                severity="warning",
            )


def gated(pod: Manifest, ref: ObjectRef) -> Iterator[Problem]:
    """Scheduling gates: code `pod-gated`."""
    spec = mapping(pod.get("spec"))
    gates = [text(each.get("name")) for each in mappings(spec.get("schedulingGates"))]
    if gates:
        yield Problem(
            path=f"{ref}: spec.schedulingGates",
            code="pod-gated",
            message=f"the scheduler does not look at it while it has the gates {', '.join(gates)}",
            hint="who set them takes them away: a queue such as Kueue, mostly",
        )


def kubelet_words(pod: Manifest, ref: ObjectRef, node: str, scene: Scene) -> Iterator[Problem]:
    """What the kubelet of its node says about drivers: code `plugin-not-ready`."""
    for each in scene.events:
        message = text(each.get("message"))
        if (
            text(mapping(each.get("involvedObject")).get("uid")) == uid_of(pod)
            and "is not registered" in message
        ):
            yield Problem(
                path=str(ref),
                code="plugin-not-ready",
                message=f"the kubelet of {node} does not know the driver: {message[:300]}",
                hint=f"the driver's pod on {node} does not run, or its socket is not there: dra-infra doctor",
            )
            return
