"""Changes that the API server refuses: the preview may be green, `pulumi up` is not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from dra_infra.errors import Place, Problem
from dra_infra.output.wording import join_words
from dra_infra.program_objects import NotSeen
from dra_infra.review.changes import Change, is_name_made_up, name_of
from dra_infra.review.replacement import is_claim_kind

LocateField = Callable[[str, str], Place | None]
"""The place of a field, by the URN of its object and its path."""

_OWN_HINT = 'opts=pulumi.ResourceOptions(replace_on_changes=["{field}"], delete_before_replace=True)'


def find_refused(changes: Iterable[Change], locate: LocateField | None = None) -> tuple[Problem, ...]:
    """A problem for each change of a field that cannot change, under a name that stays.

    Args:
        changes: What differs.
        locate: Where a field of an object of the head is written; None takes the place of the object.
    """
    refused = (change for change in changes if change.refused and not is_name_made_up(change))
    return tuple(sorted(_describe(change, locate) for change in refused))


def find_undecided(changes: Iterable[Change]) -> Iterator[NotSeen]:
    """Changes of immutable specs of objects that Pulumi names: they work only when the program replaces them."""
    for change in changes:
        if change.refused and is_name_made_up(change):
            yield NotSeen(
                what=change.ref.kind,
                name=name_of(change.urn),
                reason=f'its spec changes, which works only with replace_on_changes=["{change.refused[0]}"]',
            )


def _describe(change: Change, locate: LocateField | None) -> Problem:
    field = change.refused[0]
    if change.object.chart or change.object.replacement == "in-place":
        return _describe_in_place(change, locate)
    if change.ref.kind == "Pod":
        return Problem(
            path=f"{change.component or change.ref}.{field}",
            code="pod-claims-immutable",
            message="the claims of a pod cannot change, the API server refuses the update",
            hint=f"run it in a Deployment or Job, or write {_OWN_HINT.format(field=field)}",
            place=change.place,
        )
    own_hint = _OWN_HINT.format(field=field)
    if not is_claim_kind(change.object.manifest):
        return Problem(
            path=str(change.ref),
            code="field-immutable",
            message=f"{join_words(change.refused)} changes while its name stays, which the API server refuses",
            hint=f"give it another name, or write {own_hint}",
            place=change.place,
        )
    return Problem(
        path=change.component or str(change.ref),
        code="claim-spec-immutable",
        # A component has another name than the object that it makes.
        message=f"the spec{f' of {change.ref}' if change.component else ''} changes while its name stays, "
        "which the API server refuses",
        hint=(
            'drop object_name, so that the name follows the content, or write replace="delete-first"'
            if change.component
            else f"write {own_hint}"
        ),
        place=change.place,
    )


def _place_of(change: Change, path: str, locate: LocateField | None) -> Place | None:
    """Where the first line that differs is written, below the field that cannot change."""
    if locate is None:
        return change.place
    below = (
        hunk.path
        for hunk in change.diff
        if hunk.path == path or hunk.path.startswith((f"{path}.", f"{path}["))
    )
    return locate(change.urn, next(below, path)) or change.place


def _describe_in_place(change: Change, locate: LocateField | None) -> Problem:
    is_claim = is_claim_kind(change.object.manifest)
    field = "the spec" if is_claim else join_words(change.refused)
    # Pods that run keep the claims that were made for them; only a claim itself is waited for.
    after = {
        "ResourceClaimTemplate": "running pods keep their claims",
        "ResourceClaim": "the delete waits for the pods that use it",
    }
    return Problem(
        path=str(change.ref),
        code="claim-spec-immutable" if is_claim else "field-immutable",
        message=f"{field} changes while its name stays, which the API server refuses",
        hint="give it another name, or delete the old one first; "
        + after.get(change.ref.kind, "what uses it stops then"),
        place=_place_of(change, change.refused[0], locate),
    )
