"""Questions that `explain` is asked, made from plain objects: about the pods or the claim of one object.

`explain NAME` means `pod/x`, `deployment/x`, `claim/x`, or `x` of any kind that has pods or is a claim.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from pydantic import ValidationError

from dra_infra.errors import Problem, ProgramError
from dra_infra.explanation.question import AskedClaim, Holder, Question
from dra_infra.fleet import Fleet
from dra_infra.kubernetes.api import (
    AllocationResult,
    Amounts,
    DeviceClass,
    Dropped,
    Node,
    ObjectRef,
    PodTemplate,
    Release,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
    convert,
    drop_from_claim,
    drop_from_slice,
    matches_node_selector,
    value_at,
    with_defaults,
)
from dra_infra.kubernetes.scheduler import (
    ExtendedDemand,
    NodeFilter,
    NodeRefusal,
    PlacedPods,
    ServedResources,
    find_shortages,
    goes_round,
    node_amounts,
    pod_requests,
    read_shape,
    show_amount,
)
from dra_infra.kubernetes.scheduler.allocator import Allocator
from dra_infra.markers import is_name_made_up

Manifest = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class SubjectQuestion:
    """A question, with the answers that need no search.

    Args:
        subject: The object: `Pod ml/train`.
        question: What the allocator is asked; None where there is nothing to ask.
        causes: What is wrong, or worth knowing, before devices are looked at.
        settled: What has happened already: the pod runs, or its claims have devices.
        unmodelled: Fields of the pod that the answer leaves out.
    """

    subject: str
    question: Question | None = None
    causes: tuple[Problem, ...] = ()
    settled: str = ""
    unmodelled: tuple[str, ...] = ()


@dataclass(kw_only=True, slots=True)
class ClusterContext:
    """The cluster that a question is about: fleet, classes, claims with devices, running pods.

    Args:
        fleet: Nodes, slices and classes.
        release: Whose rules.
        classes: Classes that come before those of the fleet.
        holders: Claims with devices.
        taken: What running pods take of each node.
        placed: The pods that run, by their nodes in the order of the fleet; None where they are not looked at.
        is_blind: Whether nodes could not be seen, so that nothing but their devices is looked at.
        served: Versions of resource.k8s.io that the API server serves; empty where they are not known.
    """

    fleet: Fleet
    release: Release
    classes: Sequence[DeviceClass] = ()
    holders: tuple[Holder, ...] = ()
    taken: Mapping[str, Amounts] = field(default_factory=dict)
    placed: PlacedPods | None = None
    is_blind: bool = False
    served: tuple[str, ...] = ()

    def ask(
        self,
        claims: Sequence[AskedClaim],
        template: PodTemplate | None = None,
        *,
        elsewhere: Sequence[tuple[str, AllocationResult]] = (),
        waits: bool = True,
    ) -> Question:
        """The question about pods with these claims.

        Args:
            claims: Those that are not allocated yet.
            template: The pod; None asks about the claims alone.
            elsewhere: Claims of the pod that have devices already, by name: it must go where those are.
            waits: Whether the scheduler has not given the pod its node yet.
        """
        known = {each.metadata.name: each for each in (*self.fleet.classes, *self.classes)}
        room: dict[str, int] = {}
        pods = 1
        claims = list(claims)
        chosen = None
        if template is not None and not self.is_blind:
            is_daemon = template.owner.kind == "DaemonSet"
            chosen = NodeFilter(template.spec, daemon=is_daemon, waits=waits and bool(claims))

        def refuse(node: Node) -> Iterator[NodeRefusal]:
            yield from chosen.refusals(node) if chosen is not None else ()
            for name, result in elsewhere:
                selector = result.node_selector
                if selector is not None and not matches_node_selector(
                    selector.to_manifest(), node.labels, node.name
                ):
                    yield NodeRefusal(f"{name} is allocated, and not for this node")

        refusals = {node.name: [*refuse(node)] for node in self.fleet.nodes}
        if template is not None:
            extended = self._extended(template, known.values())
            if not self.is_blind:
                room = self._places(template, extended, refusals, waits=waits)
            claims += self._made_for(template, extended, has_claims=bool(claims))
            pods = max(template.replicas or 1, 1)
        slices = [_stored(each, self.release) for each in self.fleet.slices]
        question = Question(
            cluster=Allocator(self.release, slices, known.values()),
            slices=slices,
            nodes=self.fleet.nodes,
            claims=tuple(claims),
            refusals={name: tuple(reasons) for name, reasons in refusals.items() if reasons},
            refuse=refuse,
            room=room,
            kept=frozenset(name for name, _ in elsewhere),
            pods=1 if any(each.is_shared for each in claims) else pods,
            drivers_to_come=frozenset(
                slice_.spec.driver
                for pool in self.fleet.pools
                for more in pool.spare[:1]
                for slice_ in more.slices
            ),
        )
        return question.with_more(self.holders)

    def _extended(self, template: PodTemplate, classes: Iterable[DeviceClass]) -> ExtendedDemand | None:
        served = ServedResources(classes, self.release)
        return served.find(template.spec, pod_requests(template.spec))

    def _made_for(
        self, template: PodTemplate, extended: ExtendedDemand | None, *, has_claims: bool
    ) -> list[AskedClaim]:
        """The claim that the scheduler makes of extended resources, where no device plugin serves them."""
        if extended is None:
            return []
        owner = template.owner
        made = extended.claim_for({}, owner.name, owner.namespace, has_claims=has_claims)
        if made is None:
            return []
        claim = made.changed({"metadata": made.metadata.changed({"name": owner.name})})
        return [AskedClaim(claim=claim, name=f"extended resources of {owner}", is_generated=True)]

    def _places(
        self,
        template: PodTemplate,
        extended: ExtendedDemand | None,
        refusals: Mapping[str, list[NodeRefusal]],
        *,
        waits: bool,
    ) -> dict[str, int]:
        """For how many such pods each node has room; the reasons of those that have none are added to *refusals*."""
        asked = pod_requests(template.spec)
        room = {}
        shape = read_shape(
            template.spec,
            template.owner.namespace or "default",
            template.labels,
            is_daemon=template.owner.kind == "DaemonSet",
        )
        for number, node in enumerate(self.fleet.nodes):
            reasons = refusals[node.name]
            if self.placed is not None and (kept_off := self.placed.refusal(shape, number)):
                reasons.append(NodeRefusal(kept_off))
            taken = self.taken.get(node.name, {})
            left = {
                name: max(amount - taken.get(name, 0), 0)
                for name, amount in node_amounts(node.allocatable).items()
            }
            by_devices = extended.by_devices(left) if extended is not None else ()
            served = [
                name for name in (extended.names if extended is not None else ()) if name not in by_devices
            ]
            named = template.spec.get("nodeName") if waits else None
            if named == node.name and by_devices:
                text = f"{goes_round(named)} makes the claim for its extended resources"
                reasons.append(NodeRefusal(text, "nodeName"))
            if served:
                text = f"a device plugin serves {', '.join(served)} there, which is not looked at"
                reasons.append(NodeRefusal(text))
            wanted = {name: amount for name, amount in asked.items() if name not in by_devices}
            reasons += [_too_little(name, wanted, left) for name in find_shortages(wanted, left)]
            if not reasons:
                room[node.name] = min(
                    left.get(name, 0) // amount for name, amount in wanted.items() if amount
                )
        return room


def _too_little(name: str, wanted: Amounts, left: Amounts) -> NodeRefusal:
    """Return what the pod requests of a resource, and what is left of it."""
    if name == "pods":
        return NodeRefusal("the node has no slot for a pod left")
    has = show_amount(name, left[name]) if left.get(name) else "none"
    text = f"the pod requests {show_amount(name, wanted[name])} {name}, and {has} is left"
    return NodeRefusal(text, "resources", key=name)


def _stored(slice_: ResourceSlice, release: Release) -> ResourceSlice:
    """A slice as the server has it, without what its gates clear."""
    spec, dropped = drop_from_slice(slice_.spec, release)
    return with_defaults(slice_.changed({"spec": spec}) if dropped else slice_)


def read_claim(
    manifest: Manifest, ref: ObjectRef, release: Release
) -> tuple[AskedClaim | None, list[Problem]]:
    """A claim, or what a template makes, as a server of *release* has it; and what it lost on the way.

    Codes `object-malformed`, `field-dropped`, `field-ignored`.
    """
    try:
        whole = convert(manifest, "v1")
        if ref.kind == "ResourceClaimTemplate":
            spec = with_defaults(ResourceClaimTemplate.from_manifest(whole)).spec.spec
            path = "spec.spec"
        else:
            spec = with_defaults(ResourceClaim.from_manifest(whole)).spec
            path = "spec"
    except (ValidationError, ValueError) as error:
        return None, [_malformed(ref, error)]
    devices, dropped = drop_from_claim(spec.devices, f"{path}.devices", release)
    claim = ResourceClaim.from_manifest(
        {
            "metadata": {"name": ref.name, "namespace": ref.namespace},
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
        }
    ).changed({"spec": spec.changed({"devices": devices})})
    problems = [_dropped(each, ref, release) for each in dropped]
    return AskedClaim(claim=claim, name=str(ref), path=path), problems


def read_classes(manifests: Iterable[Manifest]) -> tuple[list[DeviceClass], list[Problem]]:
    """The classes among some objects; `object-malformed` for one that is none."""
    found = []
    problems = []
    for manifest in manifests:
        if manifest.get("kind") == "DeviceClass":
            try:
                found.append(DeviceClass.from_manifest(convert(manifest, "v1")))
            except (ValidationError, ValueError) as error:
                name = (manifest.get("metadata") or {}).get("name")
                problems.append(_malformed(ObjectRef("DeviceClass", str(name)), error))
    return found, problems


def read_allocation(manifest: Manifest) -> AllocationResult | None:
    """`status.allocation` of a claim; None where it has none that can be read."""
    allocation = value_at(manifest, "status", "allocation")
    if not isinstance(allocation, Mapping):
        return None
    try:
        return AllocationResult.from_manifest(allocation)
    except ValidationError:
        return None


def _malformed(ref: ObjectRef, error: Exception) -> Problem:
    text = str(error)
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        text = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    return Problem(
        path=str(ref),
        code="object-malformed",
        message=f"it cannot be read: {text[:200]}",
        hint="dra-infra validate tells everything that is wrong with it",
    )


def _dropped(dropped: Dropped, ref: ObjectRef, release: Release) -> Problem:
    does = "stores it, and its scheduler ignores it" if dropped.kept else "clears it without a word"
    return Problem(
        path=f"{ref}: {dropped.path}",
        code="field-ignored" if dropped.kept else "field-dropped",
        message=f"Kubernetes {release.minor} {does}: the gate {dropped.gate} is off",
        hint=f"switch the gate on in API server and scheduler, or name it here: --gate {dropped.gate}=true",
        severity="warning",
    )


_KINDS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("claim", "claims", "resourceclaim", "resourceclaims"), "ResourceClaim"),
    **dict.fromkeys(("template", "resourceclaimtemplate", "resourceclaimtemplates"), "ResourceClaimTemplate"),
    **dict.fromkeys(("pod", "pods", "po"), "Pod"),
    **dict.fromkeys(("deployment", "deployments", "deploy"), "Deployment"),
    **dict.fromkeys(("statefulset", "statefulsets", "sts"), "StatefulSet"),
    **dict.fromkeys(("daemonset", "daemonsets", "ds"), "DaemonSet"),
    **dict.fromkeys(("replicaset", "replicasets", "rs"), "ReplicaSet"),
    **dict.fromkeys(("job", "jobs"), "Job"),
    **dict.fromkeys(("cronjob", "cronjobs", "cj"), "CronJob"),
    **dict.fromkeys(("replicationcontroller", "rc"), "ReplicationController"),
}
_ORDER: Final = tuple(dict.fromkeys(_KINDS.values()))


def find_subject(
    name: str,
    namespace: str | None,
    manifests: Iterable[Mapping[str, Any]],
    workload_kinds: Iterable[str] = (),
    *,
    home: str = "",
) -> tuple[ObjectRef, Mapping[str, Any]]:
    """Return the object of a name.

    Args:
        name: `kind/name`, or a name alone; `kind/name/part` for one part of an object whose pods differ. Of an object that
            Pulumi names also the name of its resource.
        namespace: Its namespace; None for any, when only one has such an object.
        manifests: Where to look.
        workload_kinds: Kinds that make pods beside those of Kubernetes.
        home: The namespace that is meant if no namespace is named and several have such an object; empty for none.

    Raises:
        ProgramError: `subject-not-known`: of no kind, not there, or there several times.
    """
    kinds = {each.lower(): each for each in workload_kinds} | dict(_KINDS)
    known = tuple(dict.fromkeys((*_ORDER, *kinds.values())))
    kind, slash, rest = name.rpartition("/")
    kind, _, above = kind.partition("/")
    rest, part = (above, rest) if above else (rest, "")
    wanted = kinds.get(kind.lower()) if slash else None
    if slash and wanted is None:
        raise _of_no_kind(name, kind, rest, manifests, known if workload_kinds else ())
    matches: dict[ObjectRef, Mapping[str, Any]] = {}
    near: list[str] = []
    namesakes: list[str] = []
    for manifest in manifests:
        ref = ObjectRef.of(manifest)
        if ref.kind not in known:
            continue
        if (
            (ref.name == rest or (is_name_made_up(manifest) and ref.name.partition("-*")[0] == rest))
            and wanted in (None, ref.kind)
            and namespace in (None, ref.namespace or "default")
        ):
            matches[ref] = manifest
        elif wanted in (None, ref.kind) or ref.name == rest:
            called = f"{ref.kind.lower()}/{ref.name}" + (f" -n {ref.namespace}" if ref.namespace else "")
            (near if wanted in (None, ref.kind) else namesakes).append(called)
    if not matches:
        where = f" in namespace {namespace}" if namespace else ""
        existing = near or namesakes
        raise _unknown(
            name,
            f"there is no {name}{where}",
            f"there are: {_listed(existing)}" if existing else "nothing of these kinds is there",
        )
    matches = {ref: manifest for ref, manifest in matches.items() if ref.name == rest} or matches
    if home and namespace is None:
        matches = {ref: each for ref, each in matches.items() if ref.stored.namespace == home} or matches
    order = sorted(matches, key=lambda ref: (known.index(ref.kind), ref.namespace))
    if len({(ref.namespace, ref.name) for ref in matches}) > 1 or (wanted is None and len(matches) > 1):
        questions = [f"{ref.kind.lower()}/{ref.name} -n {ref.namespace or 'default'}" for ref in order]
        raise _unknown(name, f"{name} is there several times", f"write one of: {_listed(questions)}")
    return replace(order[0], part=part), matches[order[0]]


def _of_no_kind(
    name: str, kind: str, rest: str, manifests: Iterable[Mapping[str, Any]], known: Sequence[str]
) -> ProgramError:
    """The error for a kind that nothing is known of; *known* are all that can be asked for, where a file may name more."""
    if any(
        ref.kind.lower() == kind.lower() and ref.name == rest for ref in map(ObjectRef.of, manifests) if known
    ):
        return _unknown(
            name,
            f"{kind} is not known to make pods",
            "say in a file of kinds where its pods are, and name it: --kinds kinds.yaml",
        )
    others = [each for each in known if each not in _ORDER]
    also = f"; of other projects: {_listed(others, most=12)}; --kinds FILE names more" if others else ""
    return _unknown(
        name,
        f"{kind} is no kind of pods or claims",
        f"write pod/{rest}, or one of: {', '.join(_ORDER)}{also}",
    )


def _listed(names: list[str], *, most: int = 6) -> str:
    names = sorted(dict.fromkeys(names))
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def _unknown(name: str, message: str, hint: str) -> ProgramError:
    return ProgramError.of(path=name[:80], code="subject-not-known", message=message, hint=hint)
