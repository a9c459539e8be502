"""Deletions that take more with them than the object itself: namespaces and definitions of kinds."""

from __future__ import annotations

from collections.abc import Iterator

from dra_infra.model.metadata import ObjectRef
from dra_infra.planning.changes import Change
from dra_infra.planning.dangers.record import Danger
from dra_infra.planning.dangers.sides import Sides
from dra_infra.planning.replacement import get_field, group_of
from dra_infra.planning.wording import count_of, join_words

_HINT = "opts=pulumi.ResourceOptions(retain_on_delete=True) lets go of it without deleting it"


def find_removals(sides: Sides) -> Iterator[Danger]:
    """`namespace-deleted` and `definition-deleted`."""
    for change in sides.changes:
        if change.action not in ("deleted", "replaced") or sides.is_moved(change):
            continue
        if change.ref.kind == "Namespace":
            yield _describe_namespace(change, sides)
        elif change.ref.kind == "CustomResourceDefinition":
            yield _describe_definition(change, sides)


def _describe_namespace(change: Change, sides: Sides) -> Danger:
    name = change.before.ref.name if change.before else change.ref.name
    kept = sorted(ref for ref in sides.after.objects if ref.namespace == name)
    pods = sum(key[0] == "Pod" and key[1] == name for key in sides.running.objects)
    claims = sum(key[1] == name for key in sides.running.claims)
    parts = [f"{join_words(kept)} of this program"] if kept else []
    parts += [count_of(pods, "pod")] if pods else []
    parts += [count_of(claims, "allocated claim")] if claims else []
    within = f": {join_words(parts)}" if parts else ", also what this program does not have"
    return Danger(
        who=ObjectRef(kind="Namespace", name=name),
        code="namespace-deleted",
        message=f"is deleted with everything in it{within}",
        hint=_HINT,
    )


def _describe_definition(change: Change, sides: Sides) -> Danger:
    old = change.before or change.object
    kind = str(get_field(old.manifest, "spec.names.kind") or "")
    group = str(get_field(old.manifest, "spec.group") or "")
    kept = sorted(
        ref
        for ref, item in sides.after.objects.items()
        if ref.kind == kind and group_of(item.manifest) == group
    )
    there = sum(group_of(each) == group for each in sides.running.of_kind(kind))
    parts = [f"{join_words(kept)} of this program"] if kept else []
    parts += [f"{there:,} that {'exists' if there == 1 else 'exist'} now"] if there else []
    return Danger(
        who=old.ref,
        code="definition-deleted",
        message=f"is deleted, and every {kind or 'object of its kind'} with it"
        + (f": {join_words(parts)}" if parts else ""),
        hint=_HINT,
    )
