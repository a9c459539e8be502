"""What the engine does for the options of resources, where inputs alone do not show it.

Source: `pkg/resource/deploy/step_generator.go` and `step.go` of the engine. docs/review.md has the table.
"""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from dra_infra.errors import Problem
from dra_infra.kubernetes.api import is_same_json
from dra_infra.output.wording import join_words
from dra_infra.program_objects import Program, ProgramObject
from dra_infra.resource_options import NO_OPTIONS, STACK_TYPE, ResourceOptions, match_by_alias
from dra_infra.review.changes import Action, Change, find_replacing, name_of, pair_objects
from dra_infra.review.diff import without_noise
from dra_infra.review.property_paths import differ_at, parse_path, reset

_STEPS: Final[dict[Action, tuple[str, ...]]] = {
    "created": ("create",),
    "changed": ("update",),
    "deleted": ("delete",),
    "replaced": ("create", "delete"),
    "retained": (),
}
"""Steps of the engine that a timeout may bound, by what happens to an object."""


def with_ignored_changes(base: Program, head: Program) -> Program:
    """Return the head as the engine sends it: what `ignore_changes` names stays as it is at the base.

    An object that is new, or that another change replaces, gets what the program says.
    """
    if not any(each.ignore_changes for each in head.options.values()):
        return head
    former = {after.urn: before for before, after in pair_objects(base, head) if before and after}
    return replace(
        head,
        objects=tuple(
            _with_ignored(former[each.urn], each, head.options.get(each.urn, NO_OPTIONS))
            if each.urn in former
            else each
            for each in head.objects
        ),
    )


def _with_ignored(before: ProgramObject, after: ProgramObject, options: ResourceOptions) -> ProgramObject:
    paths = [path for text in options.ignore_changes if (path := parse_path(text)) is not None]
    if not paths:
        return after
    former = copy.deepcopy(dict(before.manifest))
    manifest = copy.deepcopy(dict(after.manifest))
    for path in paths:
        reset(path, former, manifest)
    kept = replace(after, manifest=manifest)
    return after if find_replacing(before, kept, options) else kept


def find_staying(changes: Iterable[Change], base: Program) -> Iterator[ProgramObject]:
    """Yield the objects that leave the stack and stay in the cluster, those that a new one replaces among them."""
    for change in changes:
        if change.before is None:
            continue
        is_left = change.action == "replaced" and change.old_ref is not None
        if change.action == "retained" or (is_left and _of(base, change.before.urn).retain_on_delete):
            yield change.before


def find_option_problems(
    changes: Sequence[Change], base: Program, head: Program, *, is_whole: bool
) -> Iterator[Problem]:
    """Yield what the engine refuses: to delete or replace what is protected, an alias that is taken, a name that stays taken.

    Args:
        changes: What differs.
        base: The program before.
        head: The program after.
        is_whole: Whether the head makes all of its resources; else nobody knows what it deletes.
    """
    former = match_by_alias(base.resources, head.resources, head.options)
    yield from _find_taken_aliases(former, head)
    if is_whole:
        yield from _find_protected_deletions(changes, base, {*head.resources, *former.values()})
    for change in changes:
        if change.action == "replaced" and change.before is not None:
            yield from _find_refused_replacement(change, _of(base, change.before.urn), _of(head, change.urn))


def _find_protected_deletions(changes: Sequence[Change], base: Program, kept: set[str]) -> Iterator[Problem]:
    gone = {each.before.urn: each for each in changes if each.after is None and each.before is not None}
    objects = {each.urn for each in base.objects}
    # Objects whose type has another version now are no deletions.
    deleted = [
        urn
        for urn, options in base.options.items()
        if options.protect and (urn in gone or (urn not in objects and urn not in kept))
    ]
    types = [_types(urn) for urn in deleted]
    for urn in deleted:
        # A component shows by its children.
        if any(each.startswith(f"{_types(urn)}$") for each in types):
            continue
        change = gone.get(urn)
        yield Problem(
            path=str(change.component or change.ref) if change else f"{_last(_types(urn))} {name_of(urn)}",
            code="resource-protected",
            message=f"{f'{change.ref} ' if change and change.component else ''}is deleted, and it is protected: "
            "`pulumi up` refuses to",
            hint="keep it, or take `protect` away in a change of its own that is up before this one",
            place=change.place if change else None,
        )


def _find_refused_replacement(
    change: Change, old: ResourceOptions, new: ResourceOptions
) -> Iterator[Problem]:
    path = str(change.component or change.ref)
    if old.protect and new.protect:
        yield Problem(
            path=path,
            code="resource-protected",
            message=f"{f'{change.ref} ' if change.component else ''}is replaced for {join_words(change.replacing)}, "
            "and it is protected: `pulumi up` refuses to",
            hint="take `protect` away in this change; the new one may have it in the next",
            place=change.place,
        )
    is_same = change.old_ref is None and change.object.has_known_name
    if is_same and (change.order == "create-first" or old.retain_on_delete):
        option = "retain_on_delete" if old.retain_on_delete else "delete_before_replace"
        why = (
            "retain_on_delete keeps the old one"
            if old.retain_on_delete
            else "the new one is created before the old one is deleted"
        )
        yield Problem(
            path=path,
            code="name-taken",
            message=f"is replaced for {join_words(change.replacing)} under its name, and {why}: "
            "`pulumi up` is refused, it already exists",
            hint="give it another name, or "
            + (
                "take retain_on_delete away first" if option == "retain_on_delete" else f"write {option}=True"
            ),
            place=change.place,
        )


def _find_taken_aliases(former: dict[str, str], head: Program) -> Iterator[Problem]:
    """Yield a problem for each resource whose alias is another resource of the program, or names what another one was."""
    places = {each.urn: each for each in head.objects}
    owners: dict[str, str] = {urn: urn for urn in head.resources}
    for urn, alias in former.items():
        owner = owners.setdefault(alias, urn)
        if owner != urn:
            item = places.get(urn)
            yield Problem(
                path=str(item.ref) if item else f"{_last(_types(urn))} {name_of(urn)}",
                code="alias-taken",
                message=f"its alias {alias} is taken by {owner}: `pulumi up` refuses two resources that were one",
                hint="one resource of the base goes on as one resource of the head",
                place=item.place if item else None,
            )


def describe_options(
    changes: Sequence[Change], base: Program, head: Program, meant: Program
) -> Iterator[str]:
    """Yield what the engine does otherwise than the inputs say, in a sentence for all objects of which it is true.

    Args:
        changes: What differs.
        base: The program before.
        head: The program after, as the engine sends it.
        meant: The program after, as it is written.
    """
    said: defaultdict[str, list[str]] = defaultdict(list)
    for sentence, name in (
        *_describe_ignored(head, meant),
        *_describe_aliases(base, head),
        *_describe_steps(changes, base, head),
        *_describe_new_options(base, head),
    ):
        said[sentence].append(name)
    for sentence, names in said.items():
        yield sentence.format(join_words(dict.fromkeys(names)))


def _describe_ignored(head: Program, meant: Program) -> Iterator[tuple[str, str]]:
    for sent, written in zip(head.objects, meant.objects, strict=True) if head is not meant else ():
        if not is_same_json(sent.manifest, written.manifest):
            old, new = without_noise(sent.manifest), without_noise(written.manifest)
            texts = head.options[sent.urn].ignore_changes
            paths = ((text, parse_path(text)) for text in texts)
            changed = [text for text, path in paths if path and differ_at(path, old, new)]
            if changed:
                yield (
                    f"ignore_changes: {_plain(join_words(changed))} of {{}} stays as at the base.",
                    str(sent.ref),
                )


def _describe_aliases(base: Program, head: Program) -> Iterator[tuple[str, str]]:
    former = match_by_alias(base.resources, head.resources, head.options)
    for item in head.objects:
        if item.urn in former:
            yield (
                "aliases: {} keeps the object of the base; only its URN changes.",
                str(item.ref),
            )


def _describe_steps(changes: Sequence[Change], base: Program, head: Program) -> Iterator[tuple[str, str]]:
    moving = {change.urn: change for change in changes}
    deleted = {each.before.urn for each in changes if each.action == "deleted" and each.before}
    for change in changes:
        options = _of(head if change.after else base, change.urn)
        ref = str(change.ref)
        if change.before is not None and _of(base, change.before.urn).retain_on_delete:
            if change.action == "retained":
                yield "retain_on_delete: {} leaves the stack and stays in the cluster.", ref
            elif change.action == "replaced" and change.old_ref is not None:
                yield "retain_on_delete: the old {} stays in the cluster.", str(change.old_ref)
        if change.action == "deleted" and options.deleted_with in deleted:
            taker = _plain(str(moving[options.deleted_with].ref))
            yield f"deleted_with: {{}} is not deleted by itself, it goes with {taker}.", ref
        for urn in options.depends_on:
            if urn in moving and (change.after is None) == (moving[urn].after is None):
                other = _plain(str(moving[urn].ref))
                order = "goes before" if change.after is None else "waits for"
                yield f"depends_on: {{}} {order} {other}.", ref
        for step, limit in options.custom_timeouts:
            if step in _STEPS[change.action]:
                yield f"custom_timeouts: `pulumi up` waits up to {_plain(limit)} for the {step} of {{}}.", ref


def _describe_new_options(base: Program, head: Program) -> Iterator[tuple[str, str]]:
    """Yield where protection and retention change: they count from the next `pulumi up` on."""
    all_options = (*base.options.values(), *head.options.values())
    if not any(each.protect or each.retain_on_delete for each in all_options):
        return
    for before, after in pair_objects(base, head):
        if before is None or after is None:
            continue
        old, new = _of(base, before.urn), _of(head, after.urn)
        for name, was, now in (
            ("protect", old.protect, new.protect),
            ("retain_on_delete", old.retain_on_delete, new.retain_on_delete),
        ):
            if was != now:
                verb = "is set for" if now else "is taken away from"
                yield f"{name} {verb} {{}}; it counts once this change is up.", str(after.ref)


def _of(program: Program, urn: str) -> ResourceOptions:
    return program.options.get(urn, NO_OPTIONS)


def _types(urn: str) -> str:
    return urn.split("::", 3)[2].removeprefix(f"{STACK_TYPE}$")


def _last(types: str) -> str:
    return types.rpartition("$")[2]


def _plain(text: str) -> str:
    """Return a text of the program as part of a format string."""
    return text.replace("{", "{{").replace("}", "}}")
