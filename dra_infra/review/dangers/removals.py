"""Dangers of removals and drops: deletions with dependents, dropped fields, and changed package pins.

- Deletions that take more with them than the object itself: namespaces and definitions of kinds.
- Fields that servers of the target clear or ignore: the checks report them as warnings, and this reports them by
  object.
- Packages of the program whose release decides bytes, and that the change pins otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from dra_infra.errors import Problem
from dra_infra.kubernetes.api import ObjectRef, group_of
from dra_infra.output.wording import count_of, join_words
from dra_infra.program_objects import Program, get_field
from dra_infra.review.changes import Change
from dra_infra.review.comparison import Comparison
from dra_infra.review.dangers import Danger

_HINT = "opts=pulumi.ResourceOptions(retain_on_delete=True) lets go of it without deleting it"


def find_removals(compared: Comparison) -> Iterator[Danger]:
    """`namespace-deleted`, `definition-deleted`, `field-dropped`, `field-ignored` and `package-changed`."""
    yield from _find_dropped_fields(compared.head)
    yield from _find_package_changes(compared.base.pins, compared.head.pins)
    for change in compared.changes:
        if change.action not in ("deleted", "replaced") or change.urn in compared.moved:
            continue
        if change.ref.kind == "Namespace":
            yield _describe_namespace(change, compared)
        elif change.ref.kind == "CustomResourceDefinition":
            yield _describe_definition(change, compared)


def _describe_namespace(change: Change, compared: Comparison) -> Danger:
    name = change.before.ref.name if change.before else change.ref.name
    kept = sorted(ref for ref in compared.head_index.objects if ref.namespace == name)
    pods = sum(ref.kind == "Pod" and ref.namespace == name for ref in compared.running.objects)
    claims = sum(ref.namespace == name for ref in compared.running.claims)
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


def _describe_definition(change: Change, compared: Comparison) -> Danger:
    old = change.before or change.object
    kind = str(get_field(old.manifest, "spec.names.kind") or "")
    group = str(get_field(old.manifest, "spec.group") or "")
    kept = sorted(
        ref
        for ref, item in compared.head_index.objects.items()
        if ref.kind == kind and group_of(item.manifest) == group
    )
    there = sum(group_of(each) == group for each in compared.running.of_kind(kind))
    parts = [f"{join_words(kept)} of this program"] if kept else []
    parts += [f"{there:,} that {'exists' if there == 1 else 'exist'} now"] if there else []
    return Danger(
        who=old.ref,
        code="definition-deleted",
        message=f"is deleted, and every {kind or 'object of its kind'} with it"
        + (f": {join_words(parts)}" if parts else ""),
        hint=_HINT,
    )


_CODES = ("field-dropped", "field-ignored")


def is_told_as_danger(problem: Problem) -> bool:
    """True for a problem that a review tells among its dangers, and then not among its problems."""
    return problem.severity == "warning" and problem.code in _CODES


def _find_dropped_fields(head: Program) -> Iterator[Danger]:
    """`field-dropped` and `field-ignored`, once for each field whatever the number of minors."""
    owners = {str(each.component or each.ref): each.ref for each in reversed(head.objects)}
    told: dict[tuple[ObjectRef, str, str], list[Problem]] = {}
    for problem in filter(is_told_as_danger, head.problems):
        owner, path = _split(problem.path, owners)
        told.setdefault((owner, path, problem.code), []).append(problem)
    for (owner, path, code), problems in told.items():
        first = problems[0]
        verb = "loses" if code == "field-dropped" else "has no use of"
        yield Danger(
            who=owner,
            code=code,
            message=f"{verb} {path}: {'; '.join(dict.fromkeys(each.message for each in problems))}",
            hint=first.hint,
            place=first.place,
        )


def _split(path: str, owners: Mapping[str, ObjectRef]) -> tuple[ObjectRef, str]:
    """The object that a path belongs to, and the rest of the path."""
    best = max((name for name in owners if path.startswith(f"{name}.")), key=len, default="")
    if best:
        return owners[best], path[len(best) + 1 :]
    kind, _, rest = path.partition(" ")
    return ObjectRef(kind=kind, name=rest), "a field"


_EFFECTS: Final = {
    "dra-infra": "names of claims and templates follow from their content, so new bytes roll over every pod that uses them",
    "pulumi": "the engine's SDK decides what is registered",
    "pulumi-kubernetes": "the provider comes with it, and decides what is replaced and what is sent",
}


def _find_package_changes(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[Danger]:
    """`package-changed`: both sides were compiled with what is installed here, so its effect does not show."""
    for name, effect in _EFFECTS.items():
        was, now = before.get(name), after.get(name)
        if was is not None and now is not None and was != now:
            yield Danger(
                who=ObjectRef(kind="package", name=name),
                code="package-changed",
                message=f"goes from {was} to {now}: {effect}. Both sides were compiled with what is installed here, so what it changes does not show",
                hint=f"merge it alone, and look at `pulumi preview` with {name} {now} installed",
            )
