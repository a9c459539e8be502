"""Dangers of workloads: pods that are killed, stopped, rolled over, crowded out, or evicted by a taint of a device."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from pydantic import ValidationError

from dra_infra.kubernetes.api import CLAIM_KINDS, DeviceTaintRule, ObjectRef, PodTemplate
from dra_infra.kubernetes.scheduler import NO_EXECUTE, TAINT_RULES_GATE, Eviction, find_evictions
from dra_infra.output.wording import count_of, join_words
from dra_infra.placement.placement import Placement, WorkloadPlacement
from dra_infra.program_objects import get_field
from dra_infra.review.changes import Change
from dra_infra.review.comparison import ROLLING_KINDS, Comparison, ProgramIndex
from dra_infra.review.dangers import Danger
from dra_infra.review.rollout import Outlook, Room, find_room, foresee_groups, foresee_rollout


def find_workload_dangers(compared: Comparison) -> Iterator[Danger]:
    """`job-replaced` and the like, `workload-deleted`, `workload-rolls`, `pods-changed`, `crowded-out`."""
    namespaces = {
        change.ref.name
        for change in compared.changes
        if change.ref.kind == "Namespace" and change.action == "deleted" and change.urn not in compared.moved
    }
    renamed = {
        change.before.ref: change
        for change in compared.changes
        if change.action == "replaced" and change.before and change.ref.kind in CLAIM_KINDS
    }
    room = find_room(compared)
    before = compared.base_index.by_object()
    for change in compared.changes:
        if change.action == "replaced":
            yield from _find_replaced(change, compared, _cause_of(change, compared, renamed))
        elif change.action == "deleted" and change.ref.namespace not in namespaces:
            yield from _find_deleted(change, compared, before[change.ref])
        elif change.urn in compared.rolling:
            yield from _find_rollover(change, compared, _cause_of(change, compared, renamed), room)
        elif change.urn in compared.exchanged:
            yield _tell_changed_pods(change, compared, room)
    yield from _find_crowded_out(compared.base_placement, compared.head_placement)


CHANGED_PODS: Final = "changes its pods; what its controller does with those that run is not known here"


def _tell_changed_pods(change: Change, compared: Comparison, room: Room) -> Danger:
    """`pods-changed`: what the controller of another project does when the pods of its object change."""
    kind = compared.kinds.find(change.object.manifest)
    assert kind is not None  # noqa: S101  (only objects of kinds that are known are compared)
    hint = "" if kind.keeps_pods else "make the change while it runs nothing, or under another name"
    outlook = foresee_groups(
        Outlook(message=kind.on_change or kind.keeps_pods or CHANGED_PODS, hint=hint),
        room.progress.get(change.ref),
        compared.head_placement.fleet.name if compared.head_placement else "",
        change.ref.kind,
    )
    return Danger(
        who=change.ref,
        code="pods-changed",
        message=outlook.message,
        hint=outlook.hint,
        level="danger" if kind.on_change and not outlook.ends else "note",
    )


def _cause_of(change: Change, compared: Comparison, renamed: Mapping[ObjectRef, Change]) -> str:
    """The claim or template, of those that are *renamed*, whose new name is why the pods change; empty where there is none."""
    if change.before is None:
        return ""
    old = compared.base_index.pods.get(change.before.ref)
    new = compared.head_index.pods.get(change.ref)
    if old is None or new is None:
        return ""
    needs = compared.head_index.needs[change.ref]
    for ref in sorted(compared.base_index.needs[change.before.ref]):
        claim = renamed.get(ref)
        if claim is not None and claim.ref != ref and claim.ref in needs:
            return str(claim.component or claim.ref)
    return _find_renamed_by_hand(old, new)


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


def _find_crowded_out(before: Placement | None, after: Placement | None) -> Iterator[Danger]:
    """Workloads whose pods some order of arrival leaves pending, or every one where that was so before: `crowded-out`.

    Where pods were left pending before, only workloads that are new or have more pods: who waits then is no news of the others.
    """
    if after is None:
        return
    joint = after.joint
    was_short = before is not None and before.joint.verdict in ("depends-on-order", "never")
    known = {each.owner: _most(each) for each in before.workloads} if before is not None and was_short else {}
    more = {
        each.owner
        for each in after.workloads
        if each.verdict == "fits" and _most(each) > known.get(each.owner, 0)
    }
    if joint.verdict == "depends-on-order" and joint.fails is not None:
        for owner, number in joint.fails.pending:
            pods = f"{number:,} of its pods {'is' if number == 1 else 'are'}"
            if owner in more or not was_short:
                yield Danger(
                    who=owner,
                    code="crowded-out",
                    message=f"fits alone, and {pods} left pending if others come first",
                    hint=f"an order of arrival that does it: {joint.fails}",
                )
    elif joint.verdict == "never" and before is not None and before.joint.verdict == "never":
        for owner in sorted(more, key=str):
            # Where somebody else's pods fit nowhere, nobody is crowded out by it.
            short = [str(each) for each in joint.shortages if str(owner) in (*dict(each.by), *each.beside)]
            if short:
                yield Danger(
                    who=owner,
                    code="crowded-out",
                    message="fits alone, and adds to what all workloads at once had too little of",
                    hint=", ".join(short),
                )


def _most(workload: WorkloadPlacement) -> int:
    return workload.most or workload.replicas


def _find_replaced(change: Change, compared: Comparison, cause: str) -> Iterator[Danger]:
    fields = join_words(change.replacing)
    old = change.before.ref if change.before else change.ref
    if change.ref.kind == "Job":
        done = compared.running.is_done(old)
        yield Danger(
            who=change.ref,
            code="job-replaced",
            message=f"is replaced ({fields}) and runs again: the old one is done"
            if done
            else f"is replaced ({fields}), {_pods_of(old, compared)} killed",
            cause=cause,
            hint="give the new Job a name of its own"
            if done
            else "Jobs do not roll over: wait until it is done, or give the new Job a name of its own",
        )
    elif change.ref.kind == "Pod":
        yield Danger(
            who=change.ref,
            code="pod-replaced",
            message=f"is replaced ({fields}): it is killed and scheduled anew",
            cause=cause,
            hint="nothing restarts a bare pod smoothly: a Deployment or a Job would",
        )
    elif change.ref.kind in ROLLING_KINDS:
        yield Danger(
            who=change.ref,
            code="workload-replaced",
            message=f"is replaced ({fields}): all its pods are stopped"
            + (" before new ones start" if change.order == "delete-first" else ""),
            cause=cause,
            hint="keep the field as it was to have the pods rolled over",
        )


def _find_deleted(change: Change, compared: Comparison, pods: list[PodTemplate]) -> Iterator[Danger]:
    if not pods or change.urn in compared.moved or compared.running.is_done(change.ref):
        return
    if compared.running.count_pods(change.ref) or any(each.claims for each in pods):
        killed = "it is killed" if change.ref.kind == "Pod" else f"{_pods_of(change.ref, compared)} killed"
        yield Danger(
            who=change.ref,
            code="workload-deleted",
            message=f"is deleted, {killed}",
            hint="under another name or URN it is another object: a Pulumi alias keeps it",
        )


def _pods_of(ref: ObjectRef, compared: Comparison) -> str:
    """`its running pods are`, with their number where a snapshot has them."""
    number = compared.running.count_pods(ref)
    if not number:
        return "its running pods are"
    return "its running pod is" if number == 1 else f"its {number:,} running pods are"


def _find_rollover(change: Change, compared: Comparison, cause: str, room: Room) -> Iterator[Danger]:
    """Pods that change with the names of their claims, or that change with too little room for a surge."""
    placement = compared.head_placement
    workloads = placement.workloads if placement else ()
    placed = next((each for each in workloads if each.owner == change.ref), None)
    fits = placed is not None and placed.verdict == "fits"
    outlook = foresee_rollout(
        change.object.manifest,
        compared.head_index.pods[change.ref].replicas,
        each=_count_devices(change.ref, placed, compared.head_index),
        # Without an answer for both generations together, that of the new one alone.
        room=room.surge.get(change.ref, placed.more_pods if placed and fits else None),
        fleet=placement.fleet.name if placement else "",
        # What does not fit is a problem already.
        progress=room.progress.get(change.ref) if fits else None,
        in_yaml=change.object.replacement == "in-place",
    )
    if cause or outlook.lacks_room:
        yield Danger(
            who=change.ref,
            code="workload-rolls",
            message=outlook.message,
            cause=cause,
            hint=outlook.hint,
            level="note" if outlook.ends else "danger",
        )


def _count_devices(owner: ObjectRef, placed: WorkloadPlacement | None, head: ProgramIndex) -> int | None:
    count = head.count_devices(head.pods[owner])
    if count is None and placed is not None and placed.nodes:
        return len(placed.nodes[0].devices)
    return count


def find_rules_that_evict(compared: Comparison) -> Iterator[Danger]:
    """`rule-evicts`, once for each rule that is new or changed and whose taint evicts pods of the snapshot."""
    if not compared.head.release.enabled(TAINT_RULES_GATE):
        return
    pods, claims = (tuple(compared.running.of_kind(kind)) for kind in ("Pod", "ResourceClaim"))
    for ref, item in compared.head_index.objects.items():
        before = compared.base_index.objects.get(ref)
        if ref.kind != "DeviceTaintRule" or (
            before and before.manifest.get("spec") == item.manifest.get("spec")
        ):
            continue
        rule = _read_rule(item.manifest)
        if rule is None or rule.spec.device_selector is None or rule.spec.taint.effect != NO_EXECUTE:
            continue
        evictions = tuple(
            find_evictions(
                rule.spec.taint,
                [rule.spec.device_selector],
                pods=pods,
                claims=claims,
                release=compared.head.release,
            )
        )
        if any(not each.stays for each in evictions):
            yield Danger(
                who=ref,
                code="rule-evicts",
                message=_describe_evictions(evictions),
                hint=_advise_on_evictions(evictions),
            )


def _read_rule(manifest: Mapping[str, Any]) -> DeviceTaintRule | None:
    try:
        return DeviceTaintRule.from_manifest({**manifest, "apiVersion": "resource.k8s.io/v1"})
    except ValidationError:
        # The problem of the object says so.
        return None


def _describe_evictions(found: tuple[Eviction, ...]) -> str:
    going = sorted({_pod_name(each) for each in found if not each.stays})
    devices = sorted({device for each in found if not each.stays for device in each.devices})
    return f"evicts {count_of(len(going), 'pod')} from {join_words(devices)}: {join_words(going)}"


def _advise_on_evictions(found: tuple[Eviction, ...]) -> str:
    advice = "PodDisruptionBudgets do not count; effect None first says in the status of the rule how many it would be"
    if back := sorted({_pod_name(each) for each in found if each.comes_back and not each.stays}):
        advice += f"; {join_words(back)} may be placed there again and evicted again: write effect: NoExecute into the toleration"
    if staying := sorted({_pod_name(each) for each in found if each.stays}):
        advice += (
            f"; {join_words(staying)} {'stays' if len(staying) == 1 else 'stay'}, by an extended resource"
        )
    return advice


def _pod_name(eviction: Eviction) -> str:
    return f"{get_field(eviction.pod, 'metadata.namespace')}/{get_field(eviction.pod, 'metadata.name')}"
