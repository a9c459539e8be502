"""What `pulumi up` would do to things that run: allowed, but to be known before merge."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from dra_infra.model.metadata import ObjectRef
from dra_infra.model.program import Program
from dra_infra.planning.changes import Change
from dra_infra.planning.claim_use import ClaimUse, count_claim_devices, find_named_objects
from dra_infra.planning.replacement import get_field
from dra_infra.planning.rollout import foresee_rollout
from dra_infra.planning.wording import count_of, join_words
from dra_infra.simulation.placement import Placement, WorkloadPlacement

_CLAIMS: Final = ("ResourceClaim", "ResourceClaimTemplate")
_ROLLING_KINDS: Final = ("Deployment", "StatefulSet", "DaemonSet")


@dataclass(frozen=True, order=True, kw_only=True, slots=True)
class Danger:
    """Something that works, and that a reviewer wants to know.

    Args:
        who: The object that it happens to.
        code: Stable slug from `dra_infra.errors.CODES`.
        message: What happens to it, as the rest of a sentence that starts with *who*.
        cause: The component or object whose change leads to it, where that is another one.
        hint: What to do about it.
    """

    who: ObjectRef
    code: str
    message: str
    cause: str = ""
    hint: str = ""

    def __str__(self) -> str:
        because = f"{self.cause} changes: " if self.cause else ""
        return f"{because}{self.who} {self.message}"


def find_dangers(
    changes: Iterable[Change],
    base: Program,
    head: Program,
    *,
    before: Placement | None = None,
    after: Placement | None = None,
) -> tuple[Danger, ...]:
    """Every danger of the changes, sorted by object."""
    known = tuple(changes)
    finder = _Finder(
        changes=known,
        renamed={
            change.old_ref: change
            for change in known
            if change.action == "replaced" and change.old_ref is not None and change.ref.kind in _CLAIMS
        },
        before=ClaimUse.of(base),
        after=ClaimUse.of(head),
        placed={workload.owner: workload for workload in after.workloads} if after else {},
        fleet=after.fleet.name if after else "",
    )
    return tuple(sorted([*finder.find(), *_find_crowded_out(before, after)]))


@dataclass(frozen=True, kw_only=True, slots=True)
class _Finder:
    changes: tuple[Change, ...]
    renamed: Mapping[ObjectRef, Change] = field(repr=False)
    before: ClaimUse
    after: ClaimUse
    placed: Mapping[ObjectRef, WorkloadPlacement] = field(repr=False)
    fleet: str

    def find(self) -> Iterator[Danger]:
        for change in self.changes:
            kind = change.ref.kind
            if kind in _CLAIMS:
                yield from self._find_claim_danger(change)
            elif kind == "DeviceClass":
                yield from self._find_class_danger(change)
            elif change.action == "replaced":
                yield from self._find_replaced_workload(change)
            elif change.action == "changed" and kind in _ROLLING_KINDS:
                yield from self._find_rollover(change)
            if change.action in ("deleted", "replaced"):
                yield from self._find_left_behind(change)
        yield from self._find_moved()

    def _find_replaced_workload(self, change: Change) -> Iterator[Danger]:
        fields = join_words(change.replacing)
        cause = self._cause(change)
        if change.ref.kind == "Job":
            yield Danger(
                who=change.ref,
                code="job-replaced",
                message=f"is replaced ({fields}), its running pods are killed",
                cause=cause,
                hint="Jobs do not roll over: wait until it is done, or give the new Job a name of its own",
            )
        elif change.ref.kind == "Pod":
            yield Danger(
                who=change.ref,
                code="pod-replaced",
                message=f"is replaced ({fields}): it is killed and scheduled anew",
                cause=cause,
                hint="nothing restarts a bare pod smoothly: a Deployment or a Job would",
            )
        elif change.ref.kind in _ROLLING_KINDS:
            yield Danger(
                who=change.ref,
                code="workload-replaced",
                message=f"is replaced ({fields}): all its pods are stopped"
                + (" before new ones start" if change.order == "delete-first" else ""),
                cause=cause,
                hint="keep the field as it was to have the pods rolled over",
            )

    def _find_rollover(self, change: Change) -> Iterator[Danger]:
        """Pods that change with the names of their claims, or that change with too little room for a surge."""
        pods = self.after.pods.get(change.ref)
        old = self.before.pods.get(change.ref)
        if pods is None or old is None or not pods.claims or old.spec == pods.spec:
            return
        cause = self._cause(change)
        placed = self.placed.get(change.ref)
        outlook = foresee_rollout(
            change.object.manifest,
            pods.replicas,
            each=self._count_devices(change.ref),
            room=placed.more_pods if placed is not None and placed.verdict == "fits" else None,
            fleet=self.fleet,
        )
        if cause or outlook.lacks_room:
            yield Danger(
                who=change.ref, code="workload-rolls", message=outlook.message, cause=cause, hint=outlook.hint
            )

    def _count_devices(self, owner: ObjectRef) -> int | None:
        count = self.after.count_devices(self.after.pods[owner])
        placed = self.placed.get(owner)
        if count is None and placed is not None and placed.nodes:
            return len(placed.nodes[0].devices)
        return count

    def _find_claim_danger(self, change: Change) -> Iterator[Danger]:
        if change.action != "replaced" or change.before is None:
            return
        users = self.before.users.get(change.before.ref, ())
        if change.order == "delete-first":
            yield Danger(
                who=change.ref,
                code="claim-replaced",
                message=_describe_gap(change.ref.kind, users),
                hint="drop object_name: the name then follows the content, and the new one exists before the old one goes",
            )
        elif change.ref.kind == "ResourceClaim" and users:
            devices = count_claim_devices(change.object.manifest)
            held = count_of(devices, "more device") if devices is not None else "its devices a second time"
            yield Danger(
                who=change.ref,
                code="claim-rolls",
                message=f"takes the place of {change.before.ref.name} and holds {held} until the last old pod is gone",
                cause=change.component,
            )

    def _find_class_danger(self, change: Change) -> Iterator[Danger]:
        if change.before is None or change.after is None:
            return
        if get_field(change.before.manifest, "spec") == get_field(change.after.manifest, "spec"):
            return
        users = self.after.users.get(change.ref, ())
        used = f" ({join_words(users)})" if users else ""
        yield Danger(
            who=change.ref,
            code="class-changed",
            message=f"changes under existing claims{used}: what is allocated stays, new pods get the new selection",
            hint="restart the pods to have them moved: kubectl rollout restart",
        )

    def _find_left_behind(self, change: Change) -> Iterator[Danger]:
        gone = change.before.ref if change.before else change.ref
        if gone in self.after.objects:
            return
        users = self.after.users.get(gone, ())
        if users:
            yield Danger(
                who=gone,
                code="used-object-deleted",
                message=f"is deleted, and {join_words(users)} still {'names' if len(users) == 1 else 'name'} it: "
                + (
                    "claims of it are no longer allocated"
                    if gone.kind == "DeviceClass"
                    else "new pods cannot start"
                ),
                hint="use attach() or .object_name, so that the name follows" if gone.kind in _CLAIMS else "",
            )

    def _find_moved(self) -> Iterator[Danger]:
        """The same object under another URN: one resource creates it, another deletes it."""
        created = {change.ref: change for change in self.changes if change.action == "created"}
        for change in self.changes:
            if change.action == "deleted" and change.ref in created:
                yield Danger(
                    who=change.ref,
                    code="object-moved",
                    message="belongs to another resource now: creating it fails while the old one exists",
                    hint=f"opts=pulumi.ResourceOptions(aliases=[pulumi.Alias(urn_of_old)]), which is {change.urn}",
                )

    def _cause(self, change: Change) -> str:
        """The claim or template whose new name is why the pods change."""
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
        return ""


def _find_crowded_out(before: Placement | None, after: Placement | None) -> Iterator[Danger]:
    """Workloads that fit alone, but not in the joint placement, and that were not left over before."""
    left_over = (
        {workload.owner for workload in before.workloads if _lacks_room(workload)} if before else set()
    )
    for workload in after.workloads if after else ():
        if _lacks_room(workload) and workload.owner not in left_over:
            placed = f"{len(workload.pods):,} of {count_of(workload.replicas, 'pod')}"
            yield Danger(
                who=workload.owner,
                code="crowded-out",
                message=f"fits alone, but beside the other workloads only {placed} found room",
                hint="pods were placed first fit: another order may do, more nodes will",
            )


def _lacks_room(workload: WorkloadPlacement) -> bool:
    return workload.verdict == "fits" and len(workload.pods) < workload.replicas


def _describe_gap(kind: str, users: tuple[ObjectRef, ...]) -> str:
    who = join_words(users) if users else "nobody in this program"
    if kind == "ResourceClaim":
        return f"is deleted before the new one exists, and the delete waits until the last pod is gone (used by {who})"
    return f"is deleted before the new one exists: running pods keep the old devices until restarted (used by {who})"
