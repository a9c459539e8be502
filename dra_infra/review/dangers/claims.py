"""Dangers of claims: replaced claims and templates, classes that change under them, names that lead nowhere."""

from __future__ import annotations

from collections.abc import Iterator

from dra_infra.kubernetes.api import CLAIM_KINDS, ObjectRef
from dra_infra.output.wording import count_of, join_words
from dra_infra.program_objects import get_field
from dra_infra.review.changes import Change
from dra_infra.review.comparison import Comparison, count_claim_devices, find_class_names
from dra_infra.review.dangers import Danger


def find_claim_dangers(compared: Comparison) -> Iterator[Danger]:
    """`claim-replaced`, `claim-rolls`, `name-only-changed`, `class-changed`, `used-object-deleted`, `object-moved`."""
    for change in compared.changes:
        if change.ref.kind in CLAIM_KINDS:
            yield from _find_exchanged(change, compared)
        elif change.ref.kind == "DeviceClass":
            yield from _find_class_changed(change, compared)
        if change.action in ("deleted", "replaced"):
            yield from _find_left_behind(change, compared)
    yield from _find_moved(compared)


def _find_exchanged(change: Change, compared: Comparison) -> Iterator[Danger]:
    if change.action != "replaced" or change.before is None:
        return
    users = compared.base_index.users.get(change.before.ref, ())
    if change.order == "delete-first":
        yield Danger(
            who=change.ref,
            code="claim-replaced",
            message=_describe_gap(change.before.ref, users, compared),
            hint="drop object_name: the name then follows the content, and the new one exists before the old one goes",
        )
    elif change.ref.kind == "ResourceClaim" and users:
        devices = count_claim_devices(change.object.manifest)
        held = count_of(devices, "more device") if devices is not None else "its devices a second time"
        yield Danger(
            who=change.ref,
            code="claim-rolls",
            message=f"takes the place of {change.before.ref.name} and holds {held} until the last old pod is gone",
            cause=str(change.component or ""),
        )
    if change.component and _is_name_only(change):
        yield Danger(
            who=change.ref,
            code="name-only-changed",
            message=f"has another name than {change.before.ref.name} and the same content: pods are exchanged for nothing",
            hint="another release of dra-infra or another object_name does that: change it where nothing runs, or keep it",
        )


def _is_name_only(change: Change) -> bool:
    if change.before is None or change.after is None or change.before.ref.name == change.after.ref.name:
        return False
    old, new = (dict(side.manifest) for side in (change.before, change.after))
    return all(old.get(key) == new.get(key) for key in {*old, *new} - {"metadata"})


def _find_class_changed(change: Change, compared: Comparison) -> Iterator[Danger]:
    if change.before is None or change.after is None:
        return
    if get_field(change.before.manifest, "spec") == get_field(change.after.manifest, "spec"):
        return
    allocated = [
        claim
        for claim in compared.running.claims
        if change.ref.name in find_class_names(compared.running.objects[claim])
    ]
    if allocated:
        message = f"changes under {count_of(len(allocated), 'allocated claim')} ({join_words(allocated)})"
    else:
        users = compared.users.get(change.ref, ())
        used = f" ({join_words(users)})" if users else ""
        message = f"changes under existing claims{used}"
        if compared.running.snapshot is not None:
            message = f"changes, and no claim of it is allocated now{used}"
    yield Danger(
        who=change.ref,
        code="class-changed",
        message=f"{message}: what is allocated stays, new pods get the new selection",
        hint="restart the pods to have them moved: kubectl rollout restart",
    )


def _find_left_behind(change: Change, compared: Comparison) -> Iterator[Danger]:
    gone = change.before.ref if change.before else change.ref
    if gone in compared.head_index.objects:
        return
    users = compared.users.get(gone, ())
    if users:
        is_class = gone.kind == "DeviceClass"
        yield Danger(
            who=gone,
            code="used-object-deleted",
            message=f"is deleted, and {join_words(users)} still {'names' if len(users) == 1 else 'name'} it: "
            + ("claims of it are no longer allocated" if is_class else "new pods cannot start"),
            hint="use attach() or .object_name, so that the name follows" if gone.kind in CLAIM_KINDS else "",
        )


def _find_moved(compared: Comparison) -> Iterator[Danger]:
    """The same object under another URN: one resource creates it, another deletes it."""
    created = {change.ref: change for change in compared.changes if change.action == "created"}
    for change in compared.changes:
        if change.action == "deleted" and change.ref in created:
            yield Danger(
                who=change.ref,
                code="object-moved",
                message="belongs to another resource now: creating it fails while the old one exists",
                hint=f"opts=pulumi.ResourceOptions(aliases=[pulumi.Alias(urn_of_old)]), which is {change.urn}",
            )


def _describe_gap(ref: ObjectRef, users: tuple[ObjectRef, ...], compared: Comparison) -> str:
    who = join_words(users) if users else "nobody in this program"
    if ref.kind == "ResourceClaim":
        pods = compared.running.count_pods(ref)
        running = f", {count_of(pods, 'pod')} now" if pods else ""
        return f"is deleted before the new one exists, and the delete waits until the last pod is gone (used by {who}{running})"
    return f"is deleted before the new one exists: running pods keep the old devices until restarted (used by {who})"
