"""Questions about pods and claims of a cluster: why they wait, as the cluster's own objects say it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from dra_infra.cluster.links import WAITING, claims_of, reasons_of
from dra_infra.cluster.objects import full_name, mapping, mappings, namespace_of, text, uid_of
from dra_infra.cluster.waiting import (
    DONE,
    Scene,
    claim_states,
    find_named,
    gated,
    kubelet_words,
    not_there,
)
from dra_infra.errors import Problem
from dra_infra.model.claim_status import AllocationResult
from dra_infra.model.fleet import Node
from dra_infra.model.metadata import ObjectRef
from dra_infra.model.pods import PodClaimEntry, find_pod_templates
from dra_infra.model.target import Release
from dra_infra.planning.asking import Asking, Surroundings, read_allocation, read_claim
from dra_infra.planning.subjects import ref_of
from dra_infra.simulation.explaining import AskedClaim, Holder
from dra_infra.simulation.namespaces import Namespaces
from dra_infra.simulation.placed_pods import PlacedPods
from dra_infra.simulation.pod_admission import PodAdmission
from dra_infra.simulation.pod_features import find_unmodelled
from dra_infra.simulation.pod_resources import Amounts, pod_requests
from dra_infra.simulation.pod_shapes import read_shape

Manifest = Mapping[str, Any]

_DEPTH: Final = 4


def find_holders(scene: Scene) -> tuple[Holder, ...]:
    """The claims with devices, and the pods that use them."""
    found = []
    for claim in sorted(scene.claims, key=full_name):
        result = read_allocation(claim)
        if result is not None:
            users = [
                f"Pod {namespace_of(claim)}/{text(each.get('name'))}"
                for each in mappings(mapping(claim.get("status")).get("reservedFor"))
                if each.get("resource") == "pods"
            ]
            found.append(Holder(name=f"ResourceClaim {full_name(claim)}", users=tuple(users), result=result))
    return tuple(found)


def find_amounts(scene: Scene) -> dict[str, Amounts]:
    """What running pods take of each node."""
    amounts: dict[str, Amounts] = {}
    for pod in scene.pods:
        node = text(mapping(pod.get("spec")).get("nodeName"))
        if not node or text(mapping(pod.get("status")).get("phase")) in DONE:
            continue
        try:
            requests = pod_requests(mapping(pod.get("spec")))
        except ValueError:
            continue
        onto = amounts.setdefault(node, {})
        for name, amount in requests.items():
            onto[name] = onto.get(name, 0) + amount
    return amounts


def find_placed(scene: Scene, nodes: Sequence[Node], namespaces: Sequence[Manifest] = ()) -> PlacedPods:
    """The running pods on their nodes, for affinity, spreading and ports."""
    placed = PlacedPods(nodes, Namespaces(namespaces))
    numbers = {node.name: number for number, node in enumerate(nodes)}
    for pod in scene.pods:
        spec, metadata = mapping(pod.get("spec")), mapping(pod.get("metadata"))
        number = numbers.get(text(spec.get("nodeName")))
        if number is None or text(mapping(pod.get("status")).get("phase")) in DONE:
            continue
        owners = mappings(metadata.get("ownerReferences"))
        shape = read_shape(
            spec,
            namespace_of(pod) or "default",
            {str(key): str(value) for key, value in mapping(metadata.get("labels")).items()},
            is_daemon=any(each.get("kind") == "DaemonSet" and each.get("controller") for each in owners),
            is_going=bool(metadata.get("deletionTimestamp")),
        )
        placed.add(shape, number)
    return placed


def ask_running(manifest: Manifest, around: Surroundings, scene: Scene) -> Asking:
    """The question about a pod, a claim, or the first pod of an object that waits."""
    ref = ref_of(manifest)
    if ref.kind == "ResourceClaim":
        return _ask_claim(manifest, ref, around, scene)
    if ref.kind == "ResourceClaimTemplate":
        claim, causes = read_claim(manifest, ref, around.release)
        return Asking(subject=str(ref), question=around.ask([claim]) if claim else None, causes=tuple(causes))
    if ref.kind != "Pod":
        pods = _pods_of(manifest, scene)
        waiting = [each for each in pods if _waits(each)]
        if not waiting:
            states = f"{len(pods)} pods of it are there, and none waits" if pods else "no pod of it is there"
            return Asking(subject=str(ref), settled=states)
        manifest = min(waiting, key=full_name)
        ref = ref_of(manifest)
    return _ask_pod(manifest, ref, around, scene)


def _waits(pod: Manifest) -> bool:
    return text(mapping(pod.get("status")).get("phase")) in WAITING


def _pods_of(owner: Manifest, scene: Scene) -> list[Manifest]:
    known = {uid_of(each): each for each in (*scene.owners, *scene.pods)}

    def is_below(item: Manifest) -> bool:
        for _ in range(_DEPTH):
            above = [
                each
                for each in mappings(mapping(item.get("metadata")).get("ownerReferences"))
                if each.get("controller")
            ]
            if not above:
                return False
            uid = text(above[0].get("uid"))
            if uid and uid == uid_of(owner):
                return True
            if uid not in known:
                return False
            item = known[uid]
        return False

    return [each for each in scene.pods if is_below(each)]


def _ask_claim(manifest: Manifest, ref: ObjectRef, around: Surroundings, scene: Scene) -> Asking:
    users = [
        each for each in scene.pods if ref.name in claims_of(each)[0] and namespace_of(each) == ref.namespace
    ]
    waiting = [each for each in users if _waits(each) and not text(mapping(each.get("spec")).get("nodeName"))]
    result = read_allocation(manifest)
    if result is not None:
        causes = tuple(claim_states(manifest, ref, scene))
        return Asking(subject=str(ref), causes=causes, settled=f"it has {_devices(result)}")
    if waiting:
        found = _ask_pod(min(waiting, key=full_name), ref_of(min(waiting, key=full_name)), around, scene)
        return Asking(
            subject=f"{ref} of {found.subject}",
            question=found.question,
            causes=found.causes,
            settled=found.settled,
            unmodelled=found.unmodelled,
        )
    claim, causes_ = read_claim(manifest, ref, around.release)
    idle = Problem(
        path=str(ref),
        code="claim-unused",
        message="no pod that waits uses it: a claim gets devices when the first pod with it is scheduled",
        hint="name it in the spec.resourceClaims of a pod",
        severity="warning",
    )
    return Asking(
        subject=str(ref),
        question=around.ask([claim]) if claim else None,
        causes=(*causes_, *claim_states(manifest, ref, scene), idle),
    )


def _ask_pod(pod: Manifest, ref: ObjectRef, around: Surroundings, scene: Scene) -> Asking:
    phase = text(mapping(pod.get("status")).get("phase")) or "Pending"
    node = text(mapping(pod.get("spec")).get("nodeName"))
    words = [
        Problem(path=str(ref), code="scheduler-says", message=each, severity="warning")
        for each in reasons_of([pod], scene.events)
    ]
    if phase not in WAITING:
        return Asking(subject=str(ref), settled=f"it is {phase}{f' on {node}' if node else ''}")
    if node:
        causes = (*words, *kubelet_words(pod, ref, node, scene))
        return Asking(
            subject=str(ref), causes=causes, settled=f"it has its place on {node}, and does not run there yet"
        )
    template = next(iter(find_pod_templates(pod)))
    own = _Claims(pod, ref, around.release, scene)
    for entry in template.claims:
        own.read(entry)
    causes = (*words, *gated(pod, ref), *own.causes)
    question = None
    try:
        question = around.ask(own.claims, template, elsewhere=own.elsewhere)
    except ValueError as error:
        causes = (*causes, Problem(path=str(ref), code="object-malformed", message=str(error)))
    if question is not None and not question.claims and not own.elsewhere:
        question = None
        if not template.claims:
            causes = (*causes, _asks_nothing(ref))
    # Beside one pod those that run are all that count.
    admission = None if around.placed is None else PodAdmission(())
    return Asking(
        subject=str(ref),
        question=question,
        causes=causes,
        unmodelled=find_unmodelled(template, pod, admission),
    )


class _Claims:
    """The claims of a pod: those to allocate, those that have devices, and what is wrong with them."""

    def __init__(self, pod: Manifest, ref: ObjectRef, release: Release, scene: Scene) -> None:
        self.claims: list[AskedClaim] = []
        self.elsewhere: list[tuple[str, AllocationResult]] = []
        self.causes: list[Problem] = []
        self._ref, self._release, self._scene = ref, release, scene
        self._made = {
            text(each.get("name")): text(each.get("resourceClaimName"))
            for each in mappings(mapping(pod.get("status")).get("resourceClaimStatuses"))
        }

    def read(self, entry: PodClaimEntry) -> None:
        """One entry of the pod; the template stands for a claim that is not made yet."""
        scene, ref = self._scene, self._ref
        name, template = (
            str(entry.claim_name or self._made.get(entry.name, "")),
            str(entry.template_name or ""),
        )
        manifest = find_named(scene.claims, name, ref.namespace) if name else None
        if manifest is None:
            self.causes += not_there(entry.name, name, template, ref, scene)
            manifest = find_named(scene.templates, template, ref.namespace)
            if manifest is None:
                return
        found = ref_of(manifest)
        self.causes += claim_states(manifest, found, scene)
        result = read_allocation(manifest)
        if result is not None:
            self.elsewhere.append((str(found), result))
            return
        claim, problems = read_claim(manifest, found, self._release)
        self.causes += problems
        if claim is not None:
            self.claims.append(claim)


def _asks_nothing(ref: ObjectRef) -> Problem:
    return Problem(
        path=str(ref),
        code="claim-not-known",
        message="it asks for no claim, so devices are not what it waits for",
        hint="see the scheduler's words on it: kubectl describe pod",
    )


def _devices(result: AllocationResult) -> str:
    names = [f"{each.driver}/{each.pool}/{each.device}" for each in result.devices.results or ()]
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
