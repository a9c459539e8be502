"""The input of the search for dangers: both sides of a change, what is placed, and what runs.

`Danger` is the record of one danger.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from dra_infra.catalog.snapshots import Snapshot
from dra_infra.errors import Place
from dra_infra.kubernetes.api.metadata import ObjectRef
from dra_infra.kubernetes.api.pods import PodTemplate
from dra_infra.kubernetes.scheduler.placed_pods import NOTHING_TAKEN
from dra_infra.placement.placement import Placement, WorkloadPlacement
from dra_infra.program_objects import Program, ProgramObject, get_field
from dra_infra.review.changes import Change
from dra_infra.review.claim_use import ClaimUse, find_named_objects
from dra_infra.review.rollout import count_surge, find_surge_room, find_through
from dra_infra.review.running import Running, find_taken, key_of

CLAIM_KINDS: Final = ("ResourceClaim", "ResourceClaimTemplate")
ROLLING_KINDS: Final = ("Deployment", "StatefulSet", "DaemonSet")


@dataclass(frozen=True, kw_only=True, slots=True)
class Sides:
    """Both sides of a change, side by side.

    Args:
        changes: Every object that differs.
        base: The program before.
        head: The program after.
        renamed: Claims and templates that get another name, by the old one.
        before: The objects of the base, and who names them.
        after: The same of the head.
        placed: Where the head's workloads go; empty without a fleet.
        placements: Of base and head.
        running: What runs; nothing without a snapshot.
        snapshot: The cluster, when it was read.
        others: Who names what, among objects that run and are in neither program.
        room: Surge pods that find room beside all that runs, by workload; only where that is known.
        through: New pods that find a place when all rollouts go as far as they can; only where that is known.
    """

    changes: tuple[Change, ...]
    base: Program = field(repr=False)
    head: Program = field(repr=False)
    renamed: Mapping[ObjectRef, Change] = field(repr=False)
    before: ClaimUse
    after: ClaimUse
    placed: Mapping[ObjectRef, WorkloadPlacement] = field(repr=False)
    placements: tuple[Placement | None, Placement | None] = field(repr=False)
    running: Running
    snapshot: Snapshot | None
    others: ClaimUse
    room: Mapping[ObjectRef, int]
    through: Mapping[ObjectRef, int]

    @classmethod
    def of(
        cls,
        changes: Iterable[Change],
        base: Program,
        head: Program,
        *,
        before: Placement | None,
        after: Placement | None,
        snapshot: Snapshot | None,
    ) -> Sides:
        """Index both programs, and what runs beside them."""
        known = tuple(changes)
        old, new = ClaimUse.of(base), ClaimUse.of(head)
        running = Running.of(snapshot)
        own = {key_of(ref) for ref in (*old.objects, *new.objects)}
        rolling = [change for change in known if _rolls(change, old, new)] if after else []
        room, through = _follow_rollouts(rolling, base, head, new, after, snapshot)
        return cls(
            changes=known,
            base=base,
            head=head,
            renamed={
                change.old_ref: change
                for change in known
                if change.action == "replaced" and change.old_ref and change.ref.kind in CLAIM_KINDS
            },
            before=old,
            after=new,
            placed={workload.owner: workload for workload in after.workloads} if after else {},
            placements=(before, after),
            running=running,
            snapshot=snapshot,
            others=_index_others(running, own),
            room=room,
            through=through,
        )

    @property
    def fleet(self) -> str:
        """The name of the fleet; empty without one."""
        placement = self.placements[1]
        return placement.fleet.name if placement else ""

    def object(self, ref: ObjectRef) -> ProgramObject | None:
        """An object of the head, else of the base."""
        return self.after.objects.get(ref) or self.before.objects.get(ref)

    def is_moved(self, change: Change) -> bool:
        """True for a deleted object that another resource creates."""
        return change.action == "deleted" and change.ref in self.after.objects

    def cause_of(self, change: Change) -> str:
        """The claim or template whose new name is why the pods change; empty where there is none."""
        if change.before is None:
            return ""
        old, new = self.before.pods.get(change.before.ref), self.after.pods.get(change.ref)
        if old is None or new is None:
            return ""
        named = set(find_named_objects(new))
        for ref in sorted(set(find_named_objects(old))):
            claim = self.renamed.get(ref)
            if claim is not None and claim.ref in named:
                return claim.component or str(claim.ref)
        return _find_renamed_by_hand(old, new)

    def users_of(self, ref: ObjectRef) -> tuple[ObjectRef, ...]:
        """Who names an object after the change: objects of the head, and what runs beside both programs."""
        other = ObjectRef(kind=ref.kind, name=ref.name, namespace=ref.namespace)
        return (*self.after.users.get(ref, ()), *self.others.users.get(other, ()))

    def rolls(self, change: Change) -> bool:
        """True for a change that exchanges pods with claims."""
        return _rolls(change, self.before, self.after)


def _find_renamed_by_hand(old: PodTemplate, new: PodTemplate) -> str:
    """The first entry of a pod that names another claim or template than before, as manifests have it."""
    before = {entry.name: entry for entry in old.claims}
    for entry in new.claims:
        former = before.get(entry.name)
        for kind, field_name in (("ResourceClaimTemplate", "template_name"), ("ResourceClaim", "claim_name")):
            now, was = getattr(entry, field_name), getattr(former, field_name, None)
            if isinstance(now, str) and isinstance(was, str) and now != was:
                ref = ObjectRef(kind=kind, name=was, namespace=new.owner.namespace)
                return f"{ref} (now {now})"
    return ""


def _rolls(change: Change, before: ClaimUse, after: ClaimUse) -> bool:
    if change.action != "changed" or change.ref.kind not in ROLLING_KINDS:
        return False
    old, new = before.pods.get(change.ref), after.pods.get(change.ref)
    return old is not None and new is not None and bool(new.claims) and old.spec != new.spec


def _follow_rollouts(
    rolling: Sequence[Change],
    base: Program,
    head: Program,
    after: ClaimUse,
    placement: Placement | None,
    snapshot: Snapshot | None,
) -> tuple[Mapping[ObjectRef, int], Mapping[ObjectRef, int]]:
    if placement is None or not rolling:
        return {}, {}
    surges = {
        change.ref: count_surge(change.object.manifest, after.pods[change.ref].replicas)
        for change in rolling
        if change.ref.kind == "Deployment"
    }
    wanted = {owner: surge for owner, surge in surges.items() if surge}
    taken = find_taken(snapshot, base, head)[0] if snapshot else NOTHING_TAKEN
    stepping = [change.ref for change in rolling if change.ref.kind != "DaemonSet"]
    return (
        find_surge_room(base, head, wanted, placement.fleet, taken),
        find_through(base, head, stepping, placement.fleet, taken),
    )


def _index_others(running: Running, own: set[tuple[str, str, str]]) -> ClaimUse:
    """The use of running objects that nothing else made and no program has: pods of a Deployment and claims of a pod say nothing new."""
    objects = [
        ProgramObject(urn="", manifest=manifest)
        for key, manifest in running.objects.items()
        if key not in own and not _is_made(manifest)
    ]
    return ClaimUse.of(Program(project="", stack="", objects=tuple(objects)))


def _is_made(manifest: Mapping[str, Any]) -> bool:
    references = get_field(manifest, "metadata.ownerReferences")
    return isinstance(references, list) and bool(references)


@dataclass(frozen=True, order=True, kw_only=True, slots=True)
class Danger:
    """Something that works, and that a reviewer wants to know.

    Args:
        who: The object that it happens to.
        code: Stable slug from `dra_infra.codes.CODES`.
        message: What happens to it, as the rest of a sentence that starts with *who*.
        cause: The component or object whose change leads to it, where that is another one.
        hint: What to do about it.
        place: Where the user wrote the object, where that is known.
    """

    who: ObjectRef
    code: str
    message: str
    cause: str = ""
    hint: str = ""
    place: Place | None = field(default=None, compare=False)

    def __str__(self) -> str:
        because = f"{self.cause} changes: " if self.cause else ""
        return f"{because}{self.who} {self.message}"
