"""Running pods of a snapshot: whose they are, which claims hold which devices, and which are the program's own."""

from __future__ import annotations

import contextlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from dra_infra.catalog.snapshots import Snapshot
from dra_infra.catalog.workload_kinds import workload_kinds
from dra_infra.kubernetes.api.manifests import mappings
from dra_infra.kubernetes.api.metadata import ObjectRef, kind_of
from dra_infra.kubernetes.api.pod_containers import Amounts
from dra_infra.kubernetes.api.quantity import Quantity
from dra_infra.kubernetes.apiserver.admission import Use, count_claim, count_extended_claim, count_pod
from dra_infra.kubernetes.scheduler.extended_resources import CLAIM_ANNOTATION, GATE
from dra_infra.kubernetes.scheduler.placed_pods import NOTHING_TAKEN, Device, Share, Taken
from dra_infra.kubernetes.scheduler.pod_resources import pod_requests
from dra_infra.kubernetes.scheduler.pod_shapes import PodShape, read_shape
from dra_infra.output.wording import count_of
from dra_infra.program_objects import NotSeen, Program, get_field, group_of

Key = tuple[str, str, str]
"""Kind, namespace and name; an object without a namespace is in `default`, as clients have it."""

_DONE: Final = ("Failed", "Succeeded")
_DEPTH: Final = 8
"""Most owners above a pod that are followed: a CronJob's Job's pod has two."""
_POLICIES: Final = ("DeviceTaintRule", "LimitRange", "Namespace", "ResourceQuota", "RuntimeClass")
"""What adds to pods, bounds them, taints devices or describes namespaces."""
_TEMPLATES: Final = ("ResourceClaimTemplate",)


def key_of(ref: ObjectRef) -> Key:
    """The key of a program's object among running ones."""
    return ref.kind, ref.namespace or "default", ref.name


@dataclass(frozen=True, kw_only=True, slots=True)
class Running:
    """The objects of a snapshot by name, the owners of its pods and claims, and what is not free for some programs.

    Args:
        objects: Every object.
        pods: Pods that are not done, by each of their owners and by themselves.
        claims: Claims with an allocation.
        snapshot: Where it was read from; None where it was not, and nothing is known to run.
        taken: Devices and amounts that are not free for the programs.
        not_counted: What that does not take into account.
    """

    objects: Mapping[Key, Mapping[str, Any]] = field(repr=False)
    pods: Mapping[Key, tuple[Key, ...]] = field(repr=False)
    claims: tuple[Key, ...] = field(repr=False)
    snapshot: Snapshot | None = field(default=None, repr=False)
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
        objects = {_key(each): each for each in snapshot.objects} if snapshot else {}
        pods: defaultdict[Key, list[Key]] = defaultdict(list)
        for key, each in objects.items():
            if key[0] == "Pod" and get_field(each, "status.phase") not in _DONE:
                for owner in owners_of(key, objects):
                    pods[owner].append(key)
        claims = sorted(
            key
            for key, each in objects.items()
            if key[0] == "ResourceClaim"
            and group_of(each) == "resource.k8s.io"
            and isinstance(get_field(each, "status.allocation"), Mapping)
        )
        running = cls(
            objects=objects,
            pods={owner: tuple(sorted(each)) for owner, each in pods.items()},
            claims=tuple(claims),
            snapshot=snapshot,
        )
        return _with_taken(running, snapshot, programs) if snapshot else running

    def count_pods(self, ref: ObjectRef) -> int:
        """How many pods of a workload run, or of a claim how many use it."""
        if ref.kind == "ResourceClaim":
            return len(mappings(get_field(self.objects.get(key_of(ref), {}), "status.reservedFor")))
        return len(self.pods.get(key_of(ref), ()))

    def is_done(self, ref: ObjectRef) -> bool:
        """True for a Job that has ended."""
        conditions = mappings(get_field(self.objects.get(key_of(ref), {}), "status.conditions"))
        return any(
            each.get("type") in ("Complete", "Failed") and each.get("status") == "True" for each in conditions
        )

    def owners_of(self, key: Key) -> tuple[Key, ...]:
        """The object itself, and what made it."""
        return tuple(owners_of(key, self.objects))

    def of_kind(self, kind: str) -> Iterator[Mapping[str, Any]]:
        """The objects of a kind, in order."""
        return (self.objects[key] for key in sorted(self.objects) if key[0] == kind)

    def others_than(self, *programs: Program) -> tuple[Mapping[str, Any], ...]:
        """The objects that none of some programs has."""
        own = _own_keys(programs)
        return tuple(each for key, each in self.objects.items() if key not in own)


NOTHING_RUNS: Final = Running.of(None)
"""Stands for what runs where no snapshot was read: nothing is known of it."""


def _with_taken(running: Running, snapshot: Snapshot, programs: Sequence[Program]) -> Running:
    own = _own_keys(programs)
    devices, shares = _find_devices(running, own)
    amounts: dict[str, Amounts] = {}
    pods: list[tuple[str, PodShape]] = []
    unreadable = 0
    for pod, node in _foreign_pods(running, own):
        try:
            requests = pod_requests(pod["spec"])
        except ValueError:
            unreadable += 1
            continue
        pods.append((node, _read_shape(pod)))
        onto = amounts.setdefault(node, {})
        for name, amount in requests.items():
            onto[name] = onto.get(name, 0) + amount
    taken = Taken(
        devices=devices,
        shares=shares,
        amounts=amounts,
        pods=tuple(pods) if any(running.of_kind("Pod")) else None,
        policies=_find_others(running, own, _POLICIES),
        templates=_find_others(running, own, _TEMPLATES),
        made=_find_made(running, own, snapshot, programs),
    )
    left_out = _find_left_out(snapshot, running, programs, unreadable=unreadable)
    return replace(running, taken=taken, not_counted=tuple(left_out))


def _foreign_pods(running: Running, own: set[Key]) -> Iterator[tuple[Mapping[str, Any], str]]:
    """Pods with a node that are not done and not the programs' own, with the node's name."""
    for pod in running.of_kind("Pod"):
        node = get_field(pod, "spec.nodeName")
        if not isinstance(node, str) or get_field(pod, "status.phase") in _DONE:
            continue
        if own.isdisjoint(running.owners_of(_key(pod))):
            yield pod, node


def _read_shape(pod: Mapping[str, Any]) -> PodShape:
    labels = get_field(pod, "metadata.labels")
    return read_shape(
        pod["spec"],
        _key(pod)[1],
        {str(name): str(value) for name, value in labels.items()} if isinstance(labels, Mapping) else {},
        is_going=get_field(pod, "metadata.deletionTimestamp") is not None,
    )


def _find_others(running: Running, own: set[Key], kinds: Iterable[str]) -> tuple[Mapping[str, Any], ...]:
    """Running objects of some kinds that are not the programs' own."""
    return tuple(each for kind in kinds for each in running.of_kind(kind) if _key(each) not in own)


def _find_made(
    running: Running, own: set[Key], snapshot: Snapshot, programs: Sequence[Program]
) -> dict[str, Use]:
    """The use of quota by claims and pods that are not the programs' own, by namespace."""
    if not any(running.of_kind("ResourceQuota")) and not any(
        each.ref.kind == "ResourceQuota" for program in programs for each in program.objects
    ):
        return {}
    bridged = bool(programs) and programs[-1].release.enabled(GATE)
    names = {
        each.metadata.name: each.spec.extended_resource_name
        for each in snapshot.fleet.classes
        if each.spec.extended_resource_name
    }
    made: dict[str, Use] = {}
    by_pod: dict[Key, Use] = {}
    for pod in running.of_kind("Pod"):
        if get_field(pod, "status.phase") in _DONE or not own.isdisjoint(running.owners_of(_key(pod))):
            continue
        spec = pod.get("spec")
        with contextlib.suppress(ValueError):
            use = by_pod[_key(pod)] = count_pod(pod_requests(spec if isinstance(spec, Mapping) else {}))
            made.setdefault(_key(pod)[1], Counter()).update(use)
    for claim in running.of_kind("ResourceClaim"):
        owners = running.owners_of(_key(claim))
        if not own.isdisjoint(owners):
            continue
        holder = next((by_pod[each] for each in owners if each in by_pod), None)
        annotations = get_field(claim, "metadata.annotations")
        is_extended = isinstance(annotations, Mapping) and annotations.get(CLAIM_ANNOTATION) == "true"
        use = (
            count_extended_claim(claim.get("spec"), names, holder)
            if is_extended and holder is not None and bridged
            else count_claim(claim.get("spec"), names, bridged=bridged)
        )
        made.setdefault(_key(claim)[1], Counter()).update(use)
    return made


def _find_devices(running: Running, own: set[Key]) -> tuple[frozenset[Device], tuple[Share, ...]]:
    """Devices of claims that are not the programs' own: whole ones, and shares with what they take."""
    devices: set[Device] = set()
    shares: list[Share] = []
    for key in running.claims:
        if not own.isdisjoint(running.owners_of(key)):
            continue
        for each in mappings(get_field(running.objects[key], "status.allocation.devices.results")):
            if each.get("adminAccess"):
                continue
            if each.get("shareID"):
                shares.append((_device(each), _amounts(each.get("consumedCapacity"))))
            else:
                devices.add(_device(each))
    return frozenset(devices), tuple(shares)


def _find_left_out(
    snapshot: Snapshot, running: Running, programs: Iterable[Program], *, unreadable: int
) -> Iterator[NotSeen]:
    def left_out(name: str, reason: str) -> NotSeen:
        return NotSeen(what="snapshot", name=name, reason=reason)

    if not snapshot.fleet.nodes:
        yield left_out("nodes", "it holds none, so nothing is placed on it")
    if not any(key[0] == "Pod" for key in running.objects):
        yield left_out(
            "pods", "it holds none: CPU and memory of nodes count as free, and claims of pods as others'"
        )
    if not any(key[0] == "ResourceClaim" for key in running.objects):
        yield left_out("claims", "it holds none: every device counts as free")
    if unreadable:
        yield left_out("pods", f"{count_of(unreadable, 'pod')} with malformed quantities take nothing")
    objects = (each for program in programs for each in program.objects)
    if any(not each.has_known_name and workload_kinds().find(each.manifest) for each in objects):
        yield left_out(
            "pods of the program", "Pulumi makes names, so those that run already count beside the new ones"
        )


def _own_keys(programs: Iterable[Program]) -> set[Key]:
    return {key_of(each.ref) for program in programs for each in program.objects if each.has_known_name}


def owners_of(key: Key, objects: Mapping[Key, Mapping[str, Any]]) -> Iterator[Key]:
    """The object, its controller, the controller of that..."""
    for _ in range(_DEPTH):
        yield key
        manifest = objects.get(key, {})
        references = mappings(get_field(manifest, "metadata.ownerReferences"))
        controller = next((each for each in references if each.get("controller")), None)
        if controller is None:
            return
        above = (kind_of(controller), key[1], str(controller.get("name")))
        if above[0] == "ReplicaSet" and above not in objects:
            # A Deployment names its ReplicaSets after itself, with the hash that their pods carry as a label.
            yield above
            labels = get_field(manifest, "metadata.labels")
            suffix = f"-{labels.get('pod-template-hash')}" if isinstance(labels, Mapping) else ""
            if len(suffix) < 2 or not above[2].endswith(suffix):
                return
            above = ("Deployment", key[1], above[2].removesuffix(suffix))
        key = above


def _key(manifest: Mapping[str, Any]) -> Key:
    metadata = manifest.get("metadata")
    metadata = metadata if isinstance(metadata, Mapping) else {}
    return (
        kind_of(manifest),
        str(metadata.get("namespace") or "default"),
        str(metadata.get("name")),
    )


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
