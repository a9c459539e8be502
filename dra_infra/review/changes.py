"""Changes between the objects of two programs: created, changed, replaced, deleted.

Some of them the API server refuses: the preview may be green, `pulumi up` is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from dra_infra.errors import Place, Problem
from dra_infra.kubernetes.api import ObjectRef, Release, group_of, is_same_json, is_same_value
from dra_infra.output.wording import join_words
from dra_infra.program_objects import (
    ComponentRef,
    Locate,
    NotSeen,
    Program,
    ProgramObject,
    get_field,
    is_name_made_up,
)
from dra_infra.resource_options import NO_OPTIONS, ResourceOptions, match_by_alias
from dra_infra.review.diff import Hunk, diff_manifests, without_noise
from dra_infra.review.property_paths import differ_at, parse_path
from dra_infra.review.replacement import find_immutable_fields, find_replacing_fields, is_claim_kind

Action = Literal["replaced", "deleted", "retained", "changed", "created"]
"""What happens to one object, the worst first. What is retained leaves the stack and stays in the cluster."""

Order = Literal["create-first", "delete-first"]
"""Whether the new object exists before the old one goes."""

ACTIONS: Final[tuple[Action, ...]] = ("replaced", "deleted", "retained", "changed", "created")
"""All actions in the order of reports."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """A change of one object.

    Args:
        action: What `pulumi up` would do.
        urn: Pulumi's identity, as head has it where head has the object.
        before: The object as the base asks for it.
        after: The object as the head asks for it.
        diff: What differs, without the parts that do not.
        replacing: Fields that make the change a replacement; empty for the other actions.
        order: How a replacement goes.
        refused: Fields whose change the API server refuses, so that the update would fail.
        steps: What the engine would do, in its own words; empty without its preview.
    """

    action: Action
    urn: str
    before: ProgramObject | None
    after: ProgramObject | None
    diff: tuple[Hunk, ...]
    replacing: tuple[str, ...] = ()
    order: Order | None = None
    refused: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()

    @property
    def object(self) -> ProgramObject:
        """The object as head has it, else as the base had it."""
        side = self.after or self.before
        assert side is not None  # noqa: S101  (a change has at least one side)
        return side

    @property
    def ref(self) -> ObjectRef:
        """Kind, namespace and name, as head has them where head has the object."""
        return self.object.ref

    @property
    def old_ref(self) -> ObjectRef | None:
        """The former kind, namespace and name, where they differ."""
        if self.before is None or self.before.ref == self.ref:
            return None
        return self.before.ref

    @property
    def component(self) -> ComponentRef | None:
        """The component that the object comes from; None for the user's own."""
        return self.object.component

    @property
    def added_lines(self) -> int:
        """How many lines of the diff are new."""
        return sum(line.startswith("+") for hunk in self.diff for line in hunk.lines)

    @property
    def removed_lines(self) -> int:
        """How many lines of the diff are gone."""
        return sum(line.startswith("-") for hunk in self.diff for line in hunk.lines)

    @property
    def place(self) -> Place | None:
        """Where the user wrote it."""
        return self.object.place


def compare_programs(base: Program, head: Program) -> tuple[Change, ...]:
    """Every object that differs, the worst first, then by namespace, kind and name.

    Objects are the same when their URNs are, or when an alias of the head names the one of the base. The provider gives a
    type an alias for each of its API versions, so that objects whose URNs differ only in the version are the same too.
    """
    releases = head.target.releases
    changes = (
        _compare(before, after, _options_of(base, before), _options_of(head, after), releases)
        for before, after in pair_objects(base, head)
    )
    return tuple(sorted((change for change in changes if change is not None), key=_rank))


def name_of(urn: str) -> str:
    """The resource's name: all behind the third `::`, for names may hold the sign too."""
    return urn.split("::", 3)[-1]


def is_named_later(change: Change) -> bool:
    """True when the name of the object only exists after `pulumi up`, on either side."""
    return any(side is not None and not side.has_known_name for side in (change.before, change.after))


def _rank(change: Change) -> tuple[int, str, str, str, str]:
    ref = change.ref
    return ACTIONS.index(change.action), ref.namespace, ref.kind, ref.name, change.urn


def pair_objects(base: Program, head: Program) -> Iterator[tuple[ProgramObject | None, ProgramObject | None]]:
    """Yield each object of either side with what it was and what it is, as the engine finds it."""
    former = match_by_alias(base.resources, head.resources, head.options)
    named = {item.urn: _versionless_urn(item) for item in base.objects}
    before = {_versionless_urn(item): item for item in base.objects}
    own = {_versionless_urn(item) for item in head.objects}
    after: dict[tuple[str, ...], ProgramObject] = {}
    for item in head.objects:
        identity = _versionless_urn(item)
        alias = named.get(former.get(item.urn, ""))
        # The engine refuses an alias that names what another resource is.
        if identity not in before and alias is not None and alias not in own and alias not in after:
            identity = alias
        after[identity] = item
    for identity in sorted({*before, *after}):
        yield before.get(identity), after.get(identity)


def _options_of(program: Program, item: ProgramObject | None) -> ResourceOptions:
    return program.options.get(item.urn, NO_OPTIONS) if item is not None else NO_OPTIONS


def _versionless_urn(item: ProgramObject) -> tuple[str, ...]:
    """The URN with the API version taken out of the object's type."""
    stack, project, types, name = item.urn.split("::", 3)
    return stack, project, types.rpartition("$")[0], f"{group_of(item.manifest)}/{item.ref.kind}", name


def _compare(
    before: ProgramObject | None,
    after: ProgramObject | None,
    old: ResourceOptions,
    new: ResourceOptions,
    releases: Sequence[Release],
) -> Change | None:
    diff = diff_manifests(before.manifest if before else None, after.manifest if after else None)
    if before is None or after is None:
        side = before or after
        assert side is not None  # noqa: S101  (pairs are made from at least one side)
        gone: Action = "retained" if old.retain_on_delete else "deleted"
        return Change(
            action="created" if before is None else gone,
            urn=side.urn,
            before=before,
            after=after,
            diff=diff,
        )
    if not diff:
        return None
    by_provider = _find_replaced_by_provider(before, after)
    replacing = by_provider or find_replacing(before, after, new)
    refused = () if replacing else _find_refused_fields(before, after, releases)
    return Change(
        action="replaced" if replacing else "changed",
        urn=after.urn,
        before=before,
        after=after,
        diff=diff,
        replacing=replacing,
        order=_order(before, after, new, is_by_provider=bool(by_provider)) if replacing else None,
        refused=refused,
    )


def find_replacing(before: ProgramObject, after: ProgramObject, asked: ResourceOptions) -> tuple[str, ...]:
    """Return the fields whose change replaces an object, for the provider or for `replace_on_changes`."""
    if after.chart or after.replacement == "in-place":
        return ()
    if fields := _find_replaced_by_provider(before, after):
        return fields
    old, new = without_noise(before.manifest), without_noise(after.manifest)
    paths = ((text, parse_path(text)) for text in asked.replace_on_changes)
    if fields := tuple(text for text, path in paths if path and differ_at(path, old, new)):
        return fields
    if after.replacement != "delete-first":
        return ()
    # The engine was told to replace the object when the text of this field changes, whatever the server makes of it.
    replaced = "spec" if is_claim_kind(after.manifest) else "spec.resourceClaims"
    return () if is_same_json(*_sides(before, after, replaced)) else (replaced,)


def _find_replaced_by_provider(before: ProgramObject, after: ProgramObject) -> tuple[str, ...]:
    if after.chart or after.replacement == "in-place":
        return ()
    fields = find_replacing_fields(without_noise(before.manifest), without_noise(after.manifest))
    if is_name_made_up(before.manifest) and is_name_made_up(after.manifest):
        # The provider keeps the name that it made up.
        fields = tuple(field for field in fields if field != "metadata.name")
    return fields


def _find_refused_fields(
    before: ProgramObject, after: ProgramObject, releases: Sequence[Release]
) -> tuple[str, ...]:
    if after.chart or after.replacement == "in-place" or group_of(after.manifest) == "resource.k8s.io":
        old, new = without_noise(before.manifest), without_noise(after.manifest)
        return find_immutable_fields(old, new, after.target.releases if after.target else releases)
    field = "spec.resourceClaims"
    if after.ref.kind != "Pod" or is_same_value(*_sides(before, after, field)):
        return ()
    return (field,)


def _sides(before: ProgramObject, after: ProgramObject, field: str) -> tuple[Any, Any]:
    return get_field(before.manifest, field), get_field(after.manifest, field)


def _order(
    before: ProgramObject, after: ProgramObject, asked: ResourceOptions, *, is_by_provider: bool
) -> Order:
    if asked.delete_before_replace is not None:
        return "delete-first" if asked.delete_before_replace else "create-first"
    if after.replacement == "delete-first":
        return "delete-first"
    # The provider deletes first when the new object would bear the name of the old one, else last. What only the program
    # has replaced, the engine creates first.
    same_name = before.ref == after.ref and after.has_known_name
    return "delete-first" if same_name and is_by_provider else "create-first"


_OWN_HINT = 'opts=pulumi.ResourceOptions(replace_on_changes=["{field}"], delete_before_replace=True)'


def find_refused(
    changes: Iterable[Change], head: Program, locate: Locate | None = None
) -> tuple[Problem, ...]:
    """A problem for each change of a field that cannot change, under a name that stays.

    Args:
        changes: What differs.
        head: The program after.
        locate: Where fields of its objects are written; None takes the places of the objects.
    """
    positions = {each.urn: position for position, each in enumerate(head.objects)} if locate else {}

    def place_of(change: Change, path: str) -> Place | None:
        """Where the first line that differs is written, below the field that cannot change."""
        if locate is None or change.urn not in positions:
            return change.place
        below = (
            hunk.path
            for hunk in change.diff
            if hunk.path == path or hunk.path.startswith((f"{path}.", f"{path}["))
        )
        return locate(positions[change.urn], next(below, path)) or change.place

    refused = (change for change in changes if change.refused and not is_named_later(change))
    return tuple(sorted(_describe(each, place_of(each, each.refused[0])) for each in refused))


def find_undecided(changes: Iterable[Change]) -> Iterator[NotSeen]:
    """Changes of immutable specs of objects that Pulumi names: they work only when the program replaces them."""
    for change in changes:
        if change.refused and is_named_later(change):
            yield NotSeen(
                what=change.ref.kind,
                name=name_of(change.urn),
                reason=f'its spec changes, which works only with replace_on_changes=["{change.refused[0]}"]',
            )


def _describe(change: Change, place: Place | None) -> Problem:
    field = change.refused[0]
    if change.object.chart or change.object.replacement == "in-place":
        return _describe_in_place(change, place)
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
        path=str(change.component or change.ref),
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


def _describe_in_place(change: Change, place: Place | None) -> Problem:
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
        place=place,
    )
