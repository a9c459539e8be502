"""Pending pods and claims of a cluster: why they wait, as the cluster's own objects say it.

This is what can be said before anybody looks at devices, and the questions that are asked about them after that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from dra_infra.client.objects import (
    claims_of,
    full_name,
    made_claims,
    name_of,
    namespace_of,
    reasons_of,
    text,
    uid_of,
)
from dra_infra.cluster.bound_pods import find_end, find_failure, find_obstacles, find_old_kubelets
from dra_infra.errors import Problem
from dra_infra.explanation.asking import ClusterContext, SubjectQuestion, read_allocation, read_claim
from dra_infra.explanation.question import AskedClaim, Holder
from dra_infra.kubernetes.api import (
    BUILT_IN_KINDS,
    AllocationResult,
    Amounts,
    Namespaces,
    Node,
    ObjectRef,
    PodClaimEntry,
    PodRecord,
    Release,
    mapping,
    mappings,
)
from dra_infra.kubernetes.apiserver import PodAdmission
from dra_infra.kubernetes.scheduler import PlacedPods, find_unmodelled, pod_requests, read_shape
from dra_infra.output.wording import nearest

Manifest = Mapping[str, Any]

_MOST_USERS: Final = 256
"""Pods that one claim may be reserved for (ResourceClaimReservedForMaxSize)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SeenObjects:
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


def not_there(entry: str, name: str, template: str, ref: ObjectRef, seen: SeenObjects) -> Iterator[Problem]:
    """Why a claim of a pod is not there: codes `claim-not-known`, `claim-not-made`."""
    path = f"{ref}: resourceClaims entry {entry}"
    if name:
        if seen.saw_claims:
            yield Problem(
                path=path,
                code="claim-not-known",
                message=f"there is no ResourceClaim {ref.namespace}/{name}",
                hint=_did_you_mean(name, ref.namespace, seen.claims)
                or "create it; the scheduler looks again when it is there",
            )
        return
    if seen.saw_templates and find_named(seen.templates, template, ref.namespace) is None:
        yield Problem(
            path=path,
            code="claim-not-known",
            message=f"there is no ResourceClaimTemplate {ref.namespace}/{template}, so its claim cannot be made",
            hint=_did_you_mean(template, ref.namespace, seen.templates)
            or "create it in the namespace of the pod, or correct the name",
        )
        return
    yield Problem(
        path=path,
        code="claim-not-made",
        message=f"the claim of template {template} is not made yet",
        hint="kube-controller-manager makes it: see whether it runs, and `kubectl describe pod` for its words"
        if seen.saw_templates
        else f"kube-controller-manager makes it of ResourceClaimTemplate {ref.namespace}/{template}, which was not read: see "
        "whether both are there",
    )


def _did_you_mean(name: str, namespace: str, items: Sequence[Manifest]) -> str:
    """Asks for the object of the namespace that has nearly that name, or for one of that name elsewhere; empty where none is."""
    near = nearest(name, [name_of(each) for each in items if namespace_of(each) == namespace])
    if near:
        return f"did you mean {near}?"
    elsewhere = sorted(namespace_of(each) for each in items if name_of(each) == name)
    return f"there is one in namespace {elsewhere[0]}: a pod uses those of its own only" if elsewhere else ""


def claim_states(claim: Manifest, ref: ObjectRef, seen: SeenObjects) -> Iterator[Problem]:
    """Reasons why pods cannot have a claim that is there: codes `claim-deleting`, `claim-reserved`."""
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
    running = {pod.uid for pod in map(PodRecord.of, seen.pods) if not pod.is_done}
    for each in reserved:
        if each.get("resource") == "pods" and seen.pods and text(each.get("uid")) not in running:
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


_DEPTH: Final = 4


def find_holders(seen: SeenObjects) -> tuple[Holder, ...]:
    """The claims with devices, and the pods that use them."""
    found = []
    priorities = {uid_of(each): find_priority(each) for each in seen.pods}
    for claim in sorted(seen.claims, key=full_name):
        result = read_allocation(claim)
        if result is not None:
            users = [
                each
                for each in mappings(mapping(claim.get("status")).get("reservedFor"))
                if each.get("resource") == "pods"
            ]
            known = [priorities.get(text(each.get("uid"))) for each in users]
            found.append(
                Holder(
                    name=f"ResourceClaim {full_name(claim)}",
                    users=tuple(
                        ObjectRef("Pod", text(each.get("name")), namespace_of(claim)) for each in users
                    ),
                    ref=ObjectRef.of(claim),
                    result=result,
                    priority=max((each for each in known if each is not None), default=None),
                )
            )
    return tuple(found)


def find_priority(pod: Manifest) -> int | None:
    """`spec.priority` of a pod, which the server fills in for its class; None where it has none."""
    priority = mapping(pod.get("spec")).get("priority")
    return priority if isinstance(priority, int) else None


def find_amounts(seen: SeenObjects) -> dict[str, Amounts]:
    """Resources that running pods take of each node."""
    amounts: dict[str, Amounts] = {}
    for pod in map(PodRecord.of, seen.pods):
        if not pod.node or pod.is_done:
            continue
        try:
            requests = pod_requests(pod.spec)
        except ValueError:
            continue
        onto = amounts.setdefault(pod.node, {})
        for name, amount in requests.items():
            onto[name] = onto.get(name, 0) + amount
    return amounts


def find_placed(seen: SeenObjects, nodes: Sequence[Node], namespaces: Sequence[Manifest] = ()) -> PlacedPods:
    """The running pods on their nodes, for affinity, spreading and ports."""
    placed = PlacedPods(nodes, Namespaces(namespaces))
    numbers = {node.name: number for number, node in enumerate(nodes)}
    for pod in map(PodRecord.of, seen.pods):
        number = numbers.get(pod.node)
        if number is None or pod.is_done:
            continue
        shape = read_shape(
            pod.spec,
            pod.ref.stored.namespace,
            pod.labels,
            is_daemon=pod.controller is not None and pod.controller.kind.partition(".")[0] == "DaemonSet",
            is_going=pod.is_deleted,
        )
        placed.add(shape, number)
    return placed


def ask_running(manifest: Manifest, around: ClusterContext, seen: SeenObjects) -> SubjectQuestion:
    """The question about a pod, a claim, or the first pod of an object that waits."""
    ref = ObjectRef.of(manifest)
    if ref.kind == "ResourceClaim":
        return _ask_claim(manifest, ref, around, seen)
    if ref.kind == "ResourceClaimTemplate":
        claim, causes = read_claim(manifest, ref, around.release)
        return SubjectQuestion(
            subject=str(ref), question=around.ask([claim]) if claim else None, causes=tuple(causes)
        )
    if ref.kind != "Pod":
        pods = _pods_of(manifest, seen)
        waiting = [each for each in pods if PodRecord.of(each).waits]
        if not waiting:
            states = f"{len(pods)} pods of it are there, and none waits" if pods else "no pod of it is there"
            return SubjectQuestion(subject=str(ref), settled=states)
        manifest = min(waiting, key=full_name)
        ref = ObjectRef.of(manifest)
    return _ask_pod(manifest, ref, around, seen)


def _pods_of(owner: Manifest, seen: SeenObjects) -> list[Manifest]:
    known = {uid_of(each): each for each in (*seen.owners, *seen.pods)}

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

    return [each for each in seen.pods if is_below(each)]


def _ask_claim(
    manifest: Manifest, ref: ObjectRef, around: ClusterContext, seen: SeenObjects
) -> SubjectQuestion:
    users = [
        each for each in seen.pods if ref.name in claims_of(each)[0] and namespace_of(each) == ref.namespace
    ]
    waiting = [pod for pod in map(PodRecord.of, users) if pod.waits and not pod.node]
    result = read_allocation(manifest)
    if result is not None:
        causes = tuple(claim_states(manifest, ref, seen))
        return SubjectQuestion(subject=str(ref), causes=causes, settled=f"it has {_devices(result)}")
    if waiting:
        first = min(waiting, key=lambda pod: full_name(pod.manifest))
        question = _ask_pod(first.manifest, first.ref, around, seen)
        return replace(question, subject=f"{ref} of {question.subject}")
    claim, causes_ = read_claim(manifest, ref, around.release)
    idle = Problem(
        path=str(ref),
        code="claim-unused",
        message="no pod that waits uses it: a claim gets devices when the first pod with it is scheduled",
        hint="name it in the spec.resourceClaims of a pod",
        severity="warning",
    )
    return SubjectQuestion(
        subject=str(ref),
        question=around.ask([claim]) if claim else None,
        causes=(*causes_, *claim_states(manifest, ref, seen), idle),
    )


def _ask_pod(pod: Manifest, ref: ObjectRef, around: ClusterContext, seen: SeenObjects) -> SubjectQuestion:
    record = PodRecord.of(pod)
    words = [
        Problem(path=str(ref), code="scheduler-says", message=each, severity="warning")
        for each in reasons_of([pod], seen.events)
    ]
    state, node = record.state, record.node
    if record.is_deleted:
        causes = (*words, *find_end(pod, ref, seen.claims, seen.events, around))
        return SubjectQuestion(
            subject=str(ref), causes=causes, settled=f"it is {state}, and is being deleted"
        )
    if not record.waits:
        return SubjectQuestion(
            subject=str(ref), causes=tuple(find_failure(pod, ref)), settled=f"it is {state}"
        )
    if node:
        causes = (*words, *_find_on_node(pod, ref, around, seen))
        return SubjectQuestion(
            subject=str(ref), causes=causes, settled=f"it has its place on {node}, and does not run there yet"
        )
    template = next(BUILT_IN_KINDS.find_pod_templates(pod), None)
    if template is None:
        malformed = Problem(path=str(ref), code="object-malformed", message="it has no spec")
        return SubjectQuestion(subject=str(ref), causes=(*words, malformed))
    own = _Claims(pod, ref, around.release, seen)
    for entry in template.claims:
        own.read(entry)
    causes = (*words, *gated(pod, ref), *own.causes)
    question = None
    try:
        question = around.ask(own.claims, template, elsewhere=own.elsewhere)
        question = replace(question, priority=find_priority(pod))
    except ValueError as error:
        causes = (*causes, Problem(path=str(ref), code="object-malformed", message=str(error)))
    if question is not None and template.claims:
        nodes = [each for each in around.fleet.nodes if each.name not in question.refusals]
        causes = (
            *causes,
            *(replace(each, severity="warning") for each in find_old_kubelets(ref, nodes, around)),
        )
    if question is not None and not question.claims and not own.elsewhere:
        # Nodes that refuse the pod do so whatever the claim is that is not there.
        question = None if question.eligible or not template.claims else question
        if not template.claims:
            causes = (*causes, _asks_nothing(ref))
    # Beside one pod those that run are all that count.
    admission = None if around.placed is None else PodAdmission(())
    return SubjectQuestion(
        subject=str(ref),
        question=question,
        causes=causes,
        unmodelled=find_unmodelled(template, pod, admission),
    )


def _find_on_node(
    pod: Manifest, ref: ObjectRef, around: ClusterContext, seen: SeenObjects
) -> Iterator[Problem]:
    """Yield what keeps a pod that has its node from running there."""
    own = _Claims(pod, ref, around.release, seen)
    template = next(BUILT_IN_KINDS.find_pod_templates(pod), None)
    for entry in template.claims if template is not None else ():
        own.read(entry)
    yield from own.causes
    yield from find_obstacles(pod, ref, seen.claims, seen.events, around)


class _Claims:
    """The claims of a pod: those to allocate, those that have devices, and what is wrong with them."""

    def __init__(self, pod: Manifest, ref: ObjectRef, release: Release, seen: SeenObjects) -> None:
        self.claims: list[AskedClaim] = []
        self.elsewhere: list[tuple[str, AllocationResult]] = []
        self.causes: list[Problem] = []
        self._ref = ref
        self._release = release
        self._scene = seen
        self._made = made_claims(pod)

    def read(self, entry: PodClaimEntry) -> None:
        """One entry of the pod; the template stands for a claim that is not made yet."""
        seen, ref = self._scene, self._ref
        name, template = (
            str(entry.claim_name or self._made.get(entry.name, "")),
            str(entry.template_name or ""),
        )
        manifest = find_named(seen.claims, name, ref.namespace) if name else None
        if manifest is None:
            self.causes += not_there(entry.name, name, template, ref, seen)
            manifest = find_named(seen.templates, template, ref.namespace)
            if manifest is None:
                return
        found = ObjectRef.of(manifest)
        self.causes += claim_states(manifest, found, seen)
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
