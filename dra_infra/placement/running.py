"""Running pods of a snapshot: whose they are, which claims hold which devices, and which are the program's own."""

from __future__ import annotations

import contextlib
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from typing import Any, Final

from dra_infra.catalog.snapshots import Snapshot
from dra_infra.catalog.workload_kinds import workload_kinds
from dra_infra.fleet import Fleet
from dra_infra.kubernetes.api import (
    DeviceClass,
    ObjectRef,
    PodRecord,
    PodTemplate,
    Quantity,
    Release,
    by_namespace,
    find_controller,
    group_of,
    mapping,
    mappings,
    value_at,
)
from dra_infra.kubernetes.apiserver import (
    Charges,
    Use,
    count_claim,
    count_extended_claim,
    count_object,
    count_pod,
    counts_by_extended_resource,
)
from dra_infra.kubernetes.scheduler import (
    EXTENDED_CLAIM_ANNOTATION,
    NO_EXECUTE,
    NOTHING_TAKEN,
    PlacedDevice,
    PlacedShare,
    PodShape,
    Taken,
    find_tainted,
    pod_requests,
    read_shape,
    with_taint_rules,
)
from dra_infra.output.wording import count_of, join_words
from dra_infra.program_objects import NotSeen, Program, get_field

_DEPTH: Final = 8
"""Most owners above a pod that are followed: a CronJob's Job's pod has two."""
_QUEUES: Final = ("ClusterQueue", "LocalQueue")
_POLICIES: Final = ("DeviceTaintRule", "LimitRange", "Namespace", "ResourceQuota", "RuntimeClass", *_QUEUES)
"""Kinds of objects that add to pods, bound them, hold them back, taint devices or describe namespaces."""
_TEMPLATES: Final = ("ResourceClaimTemplate",)
_CLAIM_PLURALS: Final = {"ResourceClaim": "resourceclaims", "ResourceClaimTemplate": "resourceclaimtemplates"}
_PER_POD: Final = frozenset({"containers", "hostname", "initContainers", "nodeName", "volumes"})
"""Fields in which equal pods of one controller may differ; what their containers ask for is compared."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Remade:
    """A cluster without some of its pods, and these pods as their controllers make them anew.

    Args:
        taken: What is not free without them. Its `evicted` are pod templates, each for one pod.
        templates: The position of the template in `taken.evicted`, by pod. A pod that no controller made has one as if it made itself.
    """

    taken: Taken
    templates: Mapping[ObjectRef, int]


@dataclass(frozen=True, kw_only=True, slots=True)
class Running:
    """The objects of a snapshot by their stored reference, the owners of its pods and claims, and what is not free for some programs.

    Args:
        objects: Every object.
        pod_records: Every pod.
        pods: Pods that are not done, by each of their owners and by themselves.
        claims: Claims with an allocation.
        snapshot: Where it was read from; None where it was not, and nothing is known to run.
        programs: Whose own objects take nothing.
        taken: Devices and amounts that are not free for the programs.
        not_counted: What that does not take into account.
    """

    objects: Mapping[ObjectRef, Mapping[str, Any]] = field(repr=False)
    pod_records: Mapping[ObjectRef, PodRecord] = field(repr=False)
    pods: Mapping[ObjectRef, tuple[ObjectRef, ...]] = field(repr=False)
    claims: tuple[ObjectRef, ...] = field(repr=False)
    snapshot: Snapshot | None = field(default=None, repr=False)
    programs: tuple[Program, ...] = field(default=(), repr=False)
    taken: Taken = field(default=NOTHING_TAKEN, repr=False)
    not_counted: tuple[NotSeen, ...] = ()

    @classmethod
    def of(cls, snapshot: Snapshot | None, *programs: Program) -> Running:
        """Index a snapshot, in which nothing runs where there is none.

        Pods and claims of the programs themselves take nothing, for the placement starts them anew; so an object that is
        in a program and in the snapshot counts once.

        Args:
            snapshot: The cluster.
            programs: Both sides of a review, or the one program that is placed.
        """
        objects = {ObjectRef.of(each).stored: each for each in snapshot.objects} if snapshot else {}
        records = {
            ref: PodRecord.of(objects[ref])
            for ref in sorted((ref for ref in objects if ref.kind == "Pod"), key=by_namespace)
        }
        pods: defaultdict[ObjectRef, list[ObjectRef]] = defaultdict(list)
        for ref, pod in records.items():
            for owner in () if pod.is_done else owners_of(ref, objects):
                pods[owner].append(ref)
        claims = sorted(
            (
                ref
                for ref, each in objects.items()
                if ref.kind == "ResourceClaim"
                and group_of(each) == "resource.k8s.io"
                and isinstance(get_field(each, "status.allocation"), Mapping)
            ),
            key=by_namespace,
        )
        running = cls(
            objects=objects,
            pod_records=records,
            pods={owner: tuple(each) for owner, each in pods.items()},
            claims=tuple(claims),
            snapshot=snapshot,
            programs=programs,
        )
        if snapshot is None:
            return running
        taken, unreadable = _find_taken(running, _own_refs(programs))
        left_out = _find_left_out(snapshot, running, programs, unreadable=unreadable)
        return replace(running, taken=taken, not_counted=tuple(left_out))

    def without_evicted(
        self,
        manifests: Iterable[Mapping[str, Any]],
        fleet: Fleet,
        release: Release,
        drained: Set[str] = frozenset(),
    ) -> Taken:
        """Finds what others still take once some of their pods lost their node or devices, and those pods as controllers make them anew.

        The pod of a DaemonSet belongs to its node: it stays while that is drained, goes when it is removed, and is made anew there
        when its devices are tainted. A pod that no controller made is gone. Upstream: makeFilters in kubectl/pkg/drain/filters.go,
        gcOrphaned in pkg/controller/podgc/gc_controller.go, and `find_tainted`.

        Args:
            manifests: Objects of the program, of which DeviceTaintRules evict.
            fleet: The fleet of the snapshot as it is then, devices with their own taints.
            release: Whose eviction controller.
            drained: Nodes that `kubectl drain` empties; one that is only cordoned keeps its pods.
        """
        if self.snapshot is None:
            return self.taken
        own = _own_refs(self.programs)
        removed = {each.name for each in self.snapshot.fleet.nodes} - {each.name for each in fleet.nodes}
        tainted = self.find_evicted(manifests, fleet, release)
        going: set[ObjectRef] = set()
        bare: list[str] = []
        first: dict[ObjectRef, str] = {}
        made: dict[tuple[ObjectRef, str], PodTemplate] = {}
        for ref, pod in _foreign_pods(self, own) if tainted or removed or drained else ():
            makers = self.owners_of(ref)[1:]
            of_node = bool(makers) and makers[0].kind in ("DaemonSet", "Node")
            if ref not in tainted and pod.node not in removed and (pod.node not in drained or of_node):
                continue
            going.add(ref)
            if not makers:
                bare.append(f"{ref.namespace}/{ref.name}")
            elif (not of_node or (ref in tainted and pod.node not in removed)) and not pod.is_deleted:
                key, template = _make_anew(ref, pod, makers, first)
                known = made.get(key) or template
                made[key] = replace(known, replicas=(known.replicas or 0) + 1)
        if not going:
            return self.taken
        released = {claim for claim in self.claims if self._is_released(claim, going, going | own)}
        taken, _ = _find_taken(self, own | going, released)
        notes = []
        if made:
            number = sum(each.replicas or 0 for each in made.values())
            whose = join_words(dict.fromkeys(each.owner.whole for each in made.values()), most=8)
            notes.append(f"evicted, and placed anew with the others: {count_of(number, 'pod')} of {whose}")
        if bare:
            notes.append(f"evicted, and made anew by no controller: Pod {join_words(bare, most=8)}")
        return replace(taken, evicted=tuple(made.values()), gone=taken.gone | going, notes=tuple(notes))

    def without_pods(self, going: Set[ObjectRef]) -> Remade:
        """Return the cluster without some pods and the claims that only they use, and these pods as controllers make them anew.

        Args:
            going: Pods with a node.
        """
        own = _own_refs(self.programs)
        first: dict[ObjectRef, str] = {}
        made: dict[tuple[ObjectRef, str], PodTemplate] = {}
        keys: dict[ObjectRef, tuple[ObjectRef, str]] = {}
        for ref in sorted(going, key=by_namespace):
            makers = self.owners_of(ref)[1:] or (ref,)
            keys[ref], template = _make_anew(ref, self.pod_records[ref], makers, first)
            made.setdefault(keys[ref], replace(template, replicas=1))
        released = {claim for claim in self.claims if self._is_released(claim, going, going | own)}
        taken, _ = _find_taken(self, own | going, released)
        numbers = {key: number for number, key in enumerate(made)}
        return Remade(
            taken=replace(taken, evicted=tuple(made.values()), gone=taken.gone | going),
            templates={ref: numbers[key] for ref, key in keys.items()},
        )

    def find_evicted(
        self, manifests: Iterable[Mapping[str, Any]], fleet: Fleet, release: Release
    ) -> set[ObjectRef]:
        """Return the pods that a release evicts because of taints on their devices, which slices and DeviceTaintRules have.

        Args:
            manifests: Objects beside those of the snapshot, of which DeviceTaintRules count.
            fleet: The fleet with its slices.
            release: The release whose eviction controller decides.
        """
        if not release.enabled("DRADeviceTaints"):
            return set()
        slices, _ = with_taint_rules(fleet.slices, [*self.taken.policies, *manifests], release)
        taints = {
            (each.spec.driver, each.spec.pool.name, device.name): [
                taint for taint in device.taints if taint.effect == NO_EXECUTE
            ]
            for each in slices
            for device in each.spec.devices or ()
            if device.taints
        }
        found = find_tainted(
            lambda *device: taints.get(device, ()),
            pods=self.of_kind("Pod") if taints else (),
            claims=self.of_kind("ResourceClaim"),
            release=release,
        )
        return {ObjectRef.of(each.pod).stored for each in found if not each.stays}

    def _is_released(self, claim: ObjectRef, going: Set[ObjectRef], placed: Set[ObjectRef]) -> bool:
        """True where some of the pods that a claim is reserved for go, and the program places the others."""
        pods = [self._user(claim, each) for each in self.users_of(claim)]
        return not going.isdisjoint(pods) and not any(
            placed.isdisjoint(self.owners_of(each)) for each in pods
        )

    def users_of(self, claim: ObjectRef) -> list[Mapping[str, Any]]:
        """Return for whom a claim is reserved, without pods that are done: the claim controller takes these off the list.

        Source: `syncClaim` in pkg/controller/resourceclaim/controller.go, which also deallocates a claim whose last user was one.
        """
        users = mappings(get_field(self.objects.get(claim, {}), "status.reservedFor"))
        return [each for each in users if not self._is_done_user(claim, each)]

    def _is_done_user(self, claim: ObjectRef, user: Mapping[str, Any]) -> bool:
        pod = self.pod_records.get(self._user(claim, user))
        is_pod = user.get("resource") in (None, "pods") and not user.get("apiGroup")
        return is_pod and pod is not None and pod.is_done and user.get("uid") in (None, pod.uid)

    @staticmethod
    def _user(claim: ObjectRef, user: Mapping[str, Any]) -> ObjectRef:
        return ObjectRef("Pod", str(user.get("name")), claim.namespace)

    def devices_of(self, claim: ObjectRef) -> tuple[list[PlacedDevice], list[PlacedShare]]:
        """Return the devices of an allocated claim, without those for admin access: whole ones, and shares with what they take."""
        devices: list[PlacedDevice] = []
        shares: list[PlacedShare] = []
        for each in mappings(get_field(self.objects[claim], "status.allocation.devices.results")):
            if each.get("adminAccess"):
                continue
            if each.get("shareID"):
                shares.append((_device(each), _amounts(each.get("consumedCapacity"))))
            else:
                devices.append(_device(each))
        return devices, shares

    def is_absent(self, claim: ObjectRef) -> bool:
        """Return whether it is known that the cluster does not have a claim or claim template."""
        ref = claim.stored
        snapshot = self.snapshot
        is_known = snapshot is not None and snapshot.has_all(_CLAIM_PLURALS[ref.kind], ref.namespace)
        return is_known and ref not in self.objects

    def find_ended(self) -> set[ObjectRef]:
        """Find the claims that were reserved for pods which are all done, so that they have no devices any more."""
        return {
            claim
            for claim in self.claims
            if get_field(self.objects[claim], "status.reservedFor") and not self.users_of(claim)
        }

    def count_pods(self, ref: ObjectRef) -> int:
        """How many pods of a workload run, or of a claim how many use it."""
        if ref.kind == "ResourceClaim":
            return len(self.users_of(ref.stored))
        return len(self.pods.get(ref.whole.stored, ()))

    def is_done(self, ref: ObjectRef) -> bool:
        """True for a Job that has ended."""
        conditions = mappings(get_field(self.objects.get(ref.whole.stored, {}), "status.conditions"))
        return any(
            each.get("type") in ("Complete", "Failed") and each.get("status") == "True" for each in conditions
        )

    def find_charges(self) -> Charges:
        """Find what objects that are not the programs' own use of quotas; nothing where there is no quota."""
        return _find_charges(self, _own_refs(self.programs))

    def owners_of(self, ref: ObjectRef) -> tuple[ObjectRef, ...]:
        """The object itself, and what made it."""
        return tuple(owners_of(ref, self.objects))

    def pods_of(self, owners: Iterable[ObjectRef]) -> set[ObjectRef]:
        """The pods that are not done and that some objects made, or are."""
        return {pod for owner in owners for pod in self.pods.get(owner, ())}

    def refs_of_kind(self, kind: str) -> list[ObjectRef]:
        """The references to the objects of a kind, in order."""
        return sorted((ref for ref in self.objects if ref.kind == kind), key=by_namespace)

    def of_kind(self, kind: str) -> Iterator[Mapping[str, Any]]:
        """The objects of a kind, in order."""
        return (self.objects[ref] for ref in self.refs_of_kind(kind))

    def others_than(self, *programs: Program) -> tuple[Mapping[str, Any], ...]:
        """The objects that none of some programs has."""
        own = _own_refs(programs)
        return tuple(each for ref, each in self.objects.items() if ref not in own)


NOTHING_RUNS: Final = Running.of(None)
"""Stands for what runs where no snapshot was read: nothing is known of it."""


def _find_taken(
    running: Running, own: Set[ObjectRef], released: Set[ObjectRef] = frozenset()
) -> tuple[Taken, int]:
    """Finds what others take, and counts those of their pods that cannot be read."""
    released = running.find_ended() | released
    devices, shares = _find_devices(running, own | released)
    amounts = defaultdict[str, Counter[str]](Counter)
    pods: list[tuple[str, PodShape]] = []
    grouped = Counter[tuple[str, str]]()
    unreadable = 0
    for ref, pod in _foreign_pods(running, own):
        if group := value_at(pod.spec, "schedulingGroup", "podGroupName"):
            grouped[ref.namespace, str(group)] += 1
        try:
            requests = pod_requests(pod.spec)
        except ValueError:
            unreadable += 1
            continue
        pods.append((pod.node, read_shape(pod.spec, ref.namespace, pod.labels, is_going=pod.is_deleted)))
        amounts[pod.node].update(requests)
    claims = (
        {**running.objects[claim], "status": {}} if claim in released else _without_users(running, claim, own)
        for claim in running.refs_of_kind("ResourceClaim")
        if running.owners_of(claim) == (claim,) and claim not in own
    )
    taken = Taken(
        devices=devices,
        shares=shares,
        amounts=amounts,
        pods=tuple(pods) if running.pod_records else None,
        policies=_find_others(running, own, _POLICIES),
        templates=(*_find_others(running, own, _TEMPLATES), *claims),
        made=_find_charges(running, own).by_namespace,
        grouped=grouped,
        gone=frozenset(released),
    )
    return taken, unreadable


def _without_users(running: Running, claim: ObjectRef, own: Set[ObjectRef]) -> Mapping[str, Any]:
    """The claim without its users that are the programs' own pods, for these are placed anew."""
    manifest = running.objects[claim]
    status = mapping(manifest.get("status"))
    users = [
        each
        for each in running.users_of(claim)
        if own.isdisjoint(running.owners_of(ObjectRef("Pod", str(each.get("name")), claim.namespace)))
    ]
    return {**manifest, "status": {**status, "reservedFor": users}}


def _make_anew(
    ref: ObjectRef, pod: PodRecord, makers: tuple[ObjectRef, ...], first: dict[ObjectRef, str]
) -> tuple[tuple[ObjectRef, str], PodTemplate]:
    """Return the pod as its controller creates it again, under a key that equal pods of one controller share.

    Args:
        ref: The pod.
        pod: Its record.
        makers: Its controller, the controller of that...
        first: What the first pod of each controller looks like; added to here.
    """
    maker = makers[1] if makers[1:] and makers[1].kind == "Deployment" else makers[0]
    look = _look_of(pod.spec)
    # Pods of one controller that differ are told apart by the name of one of them.
    part = "" if first.setdefault(maker, look) == look else ref.name
    spec = {name: value for name, value in pod.spec.items() if name != "nodeName"}
    template = PodTemplate(
        owner=replace(maker, part=part), path="spec", replicas=0, spec=spec, labels=pod.labels
    )
    return (maker, look), template


def _look_of(spec: Mapping[str, Any]) -> str:
    """Return a text that is the same for the specs of pods that are placed alike."""
    asked = [
        each.get("resources")
        for name in ("initContainers", "containers")
        for each in mappings(spec.get(name))
    ]
    rest = {name: value for name, value in spec.items() if name not in _PER_POD}
    return json.dumps([rest, asked], default=str)


def _foreign_pods(running: Running, own: Set[ObjectRef]) -> Iterator[tuple[ObjectRef, PodRecord]]:
    """Yield the pods with a node that are not done and not the programs' own."""
    ours = running.pods_of(own)
    for ref, pod in running.pod_records.items():
        if ref not in ours and pod.node and not pod.is_done:
            yield ref, pod


def _find_others(
    running: Running, own: Set[ObjectRef], kinds: Iterable[str]
) -> tuple[Mapping[str, Any], ...]:
    """Running objects of some kinds that are not the programs' own."""
    return tuple(
        running.objects[ref] for kind in kinds for ref in running.refs_of_kind(kind) if ref not in own
    )


def name_extended(program: Program | None, shipped: Iterable[DeviceClass]) -> dict[str, str]:
    """Return the extended resource name of each class that has one: of a program, and of what its cluster ships."""
    stand_ins = program.stand_in_classes if program else ()
    names: dict[str, Any] = {
        each.metadata.name: each.spec.extended_resource_name for each in (*stand_ins, *shipped)
    }
    for each in program.objects if program else ():
        if each.ref.kind == "DeviceClass":
            names[each.ref.name] = get_field(each.manifest, "spec.extendedResourceName")
    return {name: resource for name, resource in names.items() if isinstance(resource, str)}


def _find_charges(running: Running, own: Set[ObjectRef]) -> Charges:
    """Find what objects that are not the programs' own use of quotas."""
    programs = running.programs
    if not any(running.of_kind("ResourceQuota")) and not any(
        each.ref.kind == "ResourceQuota" for program in programs for each in program.objects
    ):
        return Charges()
    head = programs[-1] if programs else None
    bridged = head is not None and counts_by_extended_resource(head.release)
    names = name_extended(head, running.snapshot.fleet.classes if running.snapshot else ())
    pods: dict[ObjectRef, Use] = {}
    for ref, pod in running.pod_records.items():
        if not pod.is_done:
            with contextlib.suppress(ValueError):
                pods[ref] = count_pod(pod_requests(pod.spec))
    charges: dict[ObjectRef, Use] = {}
    for ref, manifest in running.objects.items():
        owners = running.owners_of(ref)
        if not own.isdisjoint(owners):
            continue
        if ref.kind == "Pod":
            use = pods.get(ref, Counter())
        elif ref.kind == "ResourceClaim":
            user = next((pods[each] for each in owners if each in pods), None)
            is_extended = value_at(manifest, "metadata", "annotations", EXTENDED_CLAIM_ANNOTATION) == "true"
            use = (
                count_extended_claim(manifest.get("spec"), names, user)
                if is_extended and user is not None and bridged
                else count_claim(manifest.get("spec"), names, bridged=bridged)
            )
        else:
            use = count_object(manifest)
        charges.setdefault(owners[-1], Counter()).update(use)
    return Charges(charges)


def _find_devices(
    running: Running, own: Set[ObjectRef]
) -> tuple[frozenset[PlacedDevice], tuple[PlacedShare, ...]]:
    """Devices of claims that are not the programs' own: whole ones, and shares with what they take."""
    devices: set[PlacedDevice] = set()
    shares: list[PlacedShare] = []
    for claim in running.claims:
        if own.isdisjoint(running.owners_of(claim)):
            whole, parts = running.devices_of(claim)
            devices.update(whole)
            shares += parts
    return frozenset(devices), tuple(shares)


def _find_left_out(
    snapshot: Snapshot, running: Running, programs: Iterable[Program], *, unreadable: int
) -> Iterator[NotSeen]:
    def left_out(name: str, reason: str) -> NotSeen:
        return NotSeen(what="snapshot", name=name, reason=reason)

    if not snapshot.fleet.nodes:
        yield left_out("nodes", "it holds none, so nothing is placed on it")
    # What a snapshot was read for and does not hold is not in the cluster.
    if "pods" not in snapshot.read and not running.pod_records:
        yield left_out(
            "pods", "it holds none: CPU and memory of nodes count as free, and claims of pods as others'"
        )
    has_claims = any(ref.kind == "ResourceClaim" for ref in running.objects)
    if "resourceclaims" not in snapshot.read and not has_claims:
        yield left_out("claims", "it holds none: every device counts as free")
    if unreadable:
        yield left_out("pods", f"{count_of(unreadable, 'pod')} with malformed quantities take nothing")
    objects = (each for program in programs for each in program.objects)
    if any(not each.has_known_name and workload_kinds().find(each.manifest) for each in objects):
        yield left_out(
            "pods of the program", "Pulumi makes names, so those that run already count beside the new ones"
        )


def _own_refs(programs: Iterable[Program]) -> set[ObjectRef]:
    return {each.ref.stored for program in programs for each in program.objects if each.has_known_name}


def owners_of(ref: ObjectRef, objects: Mapping[ObjectRef, Mapping[str, Any]]) -> Iterator[ObjectRef]:
    """The object, its controller, the controller of that..."""
    for _ in range(_DEPTH):
        yield ref
        manifest = objects.get(ref, {})
        controller = find_controller(manifest)
        if controller is None:
            return
        above = replace(controller, namespace=ref.namespace).stored
        if above.kind == "ReplicaSet" and above not in objects:
            # A Deployment names its ReplicaSets after itself, with the hash that their pods carry as a label.
            yield above
            labels = get_field(manifest, "metadata.labels")
            suffix = f"-{labels.get('pod-template-hash')}" if isinstance(labels, Mapping) else ""
            if len(suffix) < 2 or not above.name.endswith(suffix):
                return
            above = ObjectRef("Deployment", above.name.removesuffix(suffix), ref.namespace)
        ref = above


def _device(result: Mapping[str, Any]) -> tuple[str, str, str]:
    return str(result.get("driver")), str(result.get("pool")), str(result.get("device"))


def _amounts(value: Any) -> Mapping[str, str] | None:
    """The amounts that a share takes, without those that are none."""
    if not isinstance(value, Mapping):
        return None
    found: dict[str, str] = {}
    for name, amount in value.items():
        with contextlib.suppress(ValueError):
            found[str(name)] = Quantity.parse(str(amount)).text
    return found
