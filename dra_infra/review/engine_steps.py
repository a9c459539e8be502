"""The engine's preview joined to our own answer: its steps at each change, and what only it knows.

Where both know an object and disagree, the engine is right: it sees the deployed state, and the program's options.
The review then says that we differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from dra_infra.errors import Problem
from dra_infra.kubernetes.api import ObjectRef, is_placeholder
from dra_infra.output.wording import count_of, join_words
from dra_infra.program_objects import (
    EngineMessage,
    EnginePreview,
    EngineResource,
    NotSeen,
    PolicyFinding,
    Program,
    ProgramObject,
)
from dra_infra.review.changes import ACTIONS, Action, Change, Order, name_of

Why = Literal["drift", "missing", "gone", "provider", "component", "other"]
"""Why only the engine knows of a step: the deployed object differs from the base, or is not deployed; the program lacks
it on both sides; it is a provider, a component, or of a kind that is not Kubernetes'."""

WHYS: Final[tuple[Why, ...]] = ("drift", "missing", "gone", "other", "provider", "component")
"""In the order of reports."""

WORDS: Final[Mapping[Why, str]] = {
    "drift": "what is deployed differs from the base",
    "missing": "in the base, but not deployed",
    "gone": "deployed, but not in the program",
    "other": "not an object of Kubernetes",
    "provider": "provider",
    "component": "component",
}

_STILL: Final = frozenset({"same", "read", "refresh"})
_REPLACED: Final = frozenset(
    {
        "replace",
        "create-replacement",
        "delete-replaced",
        "import-replacement",
        "read-replacement",
        "discard-replaced",
    }
)
_DONE: Final[Mapping[Action | Literal["still", "absent"], str]] = {
    "replaced": "replaces it",
    "deleted": "deletes it",
    "retained": "lets go of it",
    "changed": "changes it in place",
    "created": "creates it",
    "still": "leaves it as it is",
    "absent": "does not know it",
}
_STACK: Final = "pulumi:pulumi:Stack"
_MOST_NOTES: Final = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class EngineOnly:
    """Steps of the engine on a resource that is not among our changes."""

    why: Why
    urn: str
    type: str
    name: str
    ref: ObjectRef | None
    steps: tuple[str, ...]
    replacing: tuple[str, ...] = ()
    paths: tuple[tuple[str, str], ...] = ()

    @property
    def title(self) -> str:
        """`ConfigMap ml/settings`, or type and name for what is no object of Kubernetes."""
        if self.ref is None:
            return f"{self.type} {self.name}"
        return f"{self.ref} ({self.name})" if is_placeholder(self.ref.name) else str(self.ref)


@dataclass(frozen=True, kw_only=True, slots=True)
class EngineSide:
    """The engine's part of a review.

    Args:
        whole: Whether the preview went through all resources.
        summary: How many resources each step happens to.
        others: Steps beside our changes; providers and components last.
        warnings: What the engine, a provider or the program warned of.
        failure: Why there is no preview; everything else is then empty.
    """

    whole: bool = True
    summary: Mapping[str, int] = field(default_factory=dict, hash=False)
    others: tuple[EngineOnly, ...] = ()
    warnings: tuple[EngineMessage, ...] = ()
    failure: Problem | None = None

    @property
    def counts(self) -> str:
        """`1 create, 2 replace`."""
        moving = [
            f"{number:,} {step}" for step, number in self.summary.items() if step not in _STILL and number
        ]
        return ", ".join(moving) or "nothing to do"


@dataclass(frozen=True, kw_only=True, slots=True)
class Joined:
    """Changes with the engine's steps, and what else the review gets from its preview."""

    changes: tuple[Change, ...]
    side: EngineSide | None = None
    policies: tuple[PolicyFinding, ...] = ()
    problems: tuple[Problem, ...] = ()
    not_known: tuple[NotSeen, ...] = ()
    notes: tuple[str, ...] = ()


def join_engine(changes: tuple[Change, ...], base: Program, head: Program, preview: EnginePreview) -> Joined:
    """Join the engine's *preview* to *changes*; a preview that failed leaves them as they are."""
    if preview.failure is not None:
        missing = NotSeen(what="the engine's", name="preview", reason=_say_failure(preview.failure))
        return Joined(
            changes=changes, side=EngineSide(whole=False, failure=preview.failure), not_known=(missing,)
        )
    by_urn = {each.urn: each for each in preview.resources}
    joined = [_join(change, by_urn.get(change.urn), whole=preview.whole) for change in changes]
    known = {change.urn for change in changes}
    return Joined(
        changes=tuple(sorted((change for change, _ in joined), key=lambda each: ACTIONS.index(each.action))),
        side=EngineSide(
            whole=preview.whole,
            summary=preview.summary,
            others=tuple(
                sorted(
                    _find_others(preview, known, base, head),
                    key=lambda each: (WHYS.index(each.why), each.title, each.urn),
                )
            ),
            warnings=tuple(each for each in preview.messages if each.severity == "warning"),
        ),
        policies=preview.policies,
        problems=tuple(_find_problems(preview, head)),
        not_known=tuple(_find_not_known(preview)),
        notes=_bounded([note for _, note in joined if note]),
    )


def _join(change: Change, found: EngineResource | None, *, whole: bool) -> tuple[Change, str]:
    """The change as the engine sees it, and where we differ."""
    if found is None:
        # Objects of charts are made by a provider, out of the engine's sight.
        is_out_of_sight = not whole or bool(change.object.chart)
        return change, "" if is_out_of_sight else _differ(change, "absent")
    theirs = _action(found)
    if change.action == "retained" and theirs == "deleted":
        # The engine's word for it: it asks no provider to delete.
        theirs = "retained"
    seen = replace(change, steps=found.steps)
    order = _order(found)
    if theirs == change.action:
        if order is None or order == change.order:
            return seen, ""
        return replace(seen, order=order), f"{_differ_in_order(change, order)}."
    if theirs not in {"replaced", "changed"} or change.before is None or change.after is None:
        return seen, _differ(change, theirs)
    if theirs == "changed":
        return replace(seen, action="changed", replacing=(), order=None), _differ(change, theirs)
    told = found.replacing or tuple(path for path, how in found.paths if how.endswith("-replace"))
    return (
        replace(seen, action="replaced", replacing=told, order=order, refused=()),
        f"{_differ(change, theirs)[:-1]}{f', for {join_words(told)}' if told else ''}.",
    )


def _action(found: EngineResource) -> Action | Literal["still"]:
    steps = set(found.steps)
    if steps & _REPLACED:
        return "replaced"
    if steps & {"create", "import"}:
        return "created"
    if "update" in steps:
        return "changed"
    return "deleted" if steps & {"delete", "discard"} else "still"


def _order(found: EngineResource) -> Order | None:
    steps = found.steps
    if "create-replacement" not in steps or "delete-replaced" not in steps:
        return None
    is_first = steps.index("create-replacement") < steps.index("delete-replaced")
    return "create-first" if is_first else "delete-first"


def _differ(change: Change, theirs: Action | Literal["still", "absent"]) -> str:
    return (
        f"We differ on {_called(change)}: it is {change.action} against the base, the engine {_DONE[theirs]}."
    )


def _differ_in_order(change: Change, order: Order) -> str:
    told = "makes the new one first" if order == "create-first" else "deletes the old one first"
    return f"We differ on {_called(change)}: the engine {told}"


def _called(change: Change) -> str:
    return f"{change.ref} ({name_of(change.urn)})" if is_placeholder(change.ref.name) else str(change.ref)


def _find_others(
    preview: EnginePreview, known: set[str], base: Program, head: Program
) -> Iterator[EngineOnly]:
    registered = {*head.resources, *base.resources}
    for each in preview.resources:
        drifted = "refresh" in each.steps and bool(each.paths)
        if each.urn in known or each.type == _STACK or (set(each.steps) <= _STILL and not drifted):
            continue
        yield EngineOnly(
            why=_why(each, registered),
            urn=each.urn,
            type=each.type,
            name=each.name,
            ref=each.ref,
            steps=each.steps,
            replacing=each.replacing,
            paths=each.paths,
        )


def _why(each: EngineResource, registered: set[str]) -> Why:
    if each.type.startswith("pulumi:providers:"):
        return "provider"
    if not each.custom:
        return "component"
    if each.urn not in registered and "delete" in each.steps:
        return "gone"
    if each.ref is None:
        return "other"
    return "missing" if _action(each) == "created" else "drift"


def _find_problems(preview: EnginePreview, head: Program) -> Iterator[Problem]:
    known = {item.urn: item for item in head.objects}
    for found in preview.policies:
        yield Problem(
            path=_subject(found.urn, known, found.ref),
            code="policy-violated",
            message=f"{found.pack} {found.policy}: {found.message}",
            hint=_POLICY_HINTS[found.level],
            severity="error" if found.level == "mandatory" else "warning",
            place=known[found.urn].place if found.urn in known else None,
        )
    refs = {each.urn: each.ref for each in preview.resources}
    for message in preview.messages:
        if message.severity != "error" or _is_told(message, head):
            continue
        is_of_resource = bool(message.urn) and f"::{_STACK}::" not in message.urn
        yield Problem(
            path=_subject(message.urn, known, refs.get(message.urn)) if is_of_resource else "program",
            code="engine-refused" if is_of_resource else "engine-error",
            message=message.text,
            hint="`pulumi up` would fail here too" if is_of_resource else "`pulumi preview` shows it too",
            place=known[message.urn].place if message.urn in known else None,
        )


_POLICY_HINTS: Final = {
    "mandatory": "the policy is mandatory: `pulumi up` would fail",
    "advisory": "the policy is advisory: `pulumi up` only says so",
    "remediate": "the policy changes the resource itself",
}


def _is_told(message: EngineMessage, head: Program) -> bool:
    """True for a message of our own components: a program that has problems fails in the engine with the same words."""
    return any(each.path in message.text and f"[{each.code}]" in message.text for each in head.problems)


def _find_not_known(preview: EnginePreview) -> Iterator[NotSeen]:
    if not preview.whole:
        reason = "it ended before it had gone through all resources: steps may be missing"
        yield NotSeen(what="the engine's", name="preview", reason=reason)
    for text in preview.left_out:
        yield NotSeen(what="the engine's", name="preview", reason=f"was too long to be kept: {text}")
    asked = [each for each in preview.resources if each.answered is not None]
    if asked and not any(each.answered for each in asked):
        yield NotSeen(
            what="the engine's",
            name="steps",
            reason=f"come from its state alone: no API server answered for {count_of(len(asked), 'object')}, "
            "so what a server refuses does not show",
        )


def _say_failure(failure: Problem) -> str:
    hint = f"; {failure.hint}" if failure.hint else ""
    return f"{failure.message} [{failure.code}]{hint}"


def _subject(urn: str, known: Mapping[str, ProgramObject], ref: ObjectRef | None) -> str:
    # As changes and problems of ours call it, so that reports can link them.
    if urn in known:
        return str(known[urn].ref)
    if ref is not None:
        return str(ref)
    return urn.split("::", 3)[-1] if urn else "stack"


def _bounded(notes: list[str]) -> tuple[str, ...]:
    if len(notes) <= _MOST_NOTES:
        return tuple(notes)
    return (*notes[:_MOST_NOTES], f"We differ on {len(notes) - _MOST_NOTES:,} more objects.")
