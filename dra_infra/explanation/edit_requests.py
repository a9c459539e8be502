"""Edits of device requests: fewer devices, a toleration, less capacity, another class, no constraint."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

from dra_infra.explanation.device_checks import Stage
from dra_infra.explanation.edits import Edit, Ladder, change_leaf, drop_constraint, field_of, leaf_at
from dra_infra.explanation.question import Leaf, Question
from dra_infra.explanation.shares import largest_share
from dra_infra.explanation.survey import Survey
from dra_infra.kubernetes.api import CapacityRequirements, DeviceToleration, drivers_of, nanos
from dra_infra.kubernetes.scheduler.allocator import RequestKey, list_untolerated

_CLASSES: Final = 6
"""Other classes that are tried."""
_SHARES: Final = 8
"""Smaller shares that are tried."""


def edit_requests(question: Question, leaves_: Sequence[Leaf], survey: Survey) -> Iterator[Ladder]:
    """Edits of the requests as they are."""
    for leaf in leaves_:
        yield _fewer(question, leaf, survey)
        if question.claims[leaf.key.claim].is_generated:
            continue
        yield from _tolerate(question, leaf, survey)
        yield from _less_capacity(question, leaf, survey)
    yield from edit_constraints(question)
    for leaf in leaves_:
        if not question.claims[leaf.key.claim].is_generated:
            yield from other_classes(question, leaf.key.claim, leaf.key.request, leaf.key.sub)


def _fewer(question: Question, leaf: Leaf, survey: Survey) -> Ladder:
    if leaf.is_all:
        most = max((survey.left(name, leaf) for name in survey.checks_of), default=0)
        numbers = range(min(most, 32), 0, -1)
        wanted = most + 1
    else:
        wanted = leaf.wanted.count
        checks_of = {id(checks): checks for checks in survey.checks_of.values()}.values()
        most = max((len(checks.can_have(leaf, Stage.USED)) for checks in checks_of), default=0)
        numbers = range(min(wanted - 1, most), 0, -1)
    found = []
    for number in numbers:
        was = "all" if leaf.is_all else f"{wanted}"
        line = f"allocationMode: ExactCount, count: {number}" if leaf.is_all else f"count: {number}"
        if question.claims[leaf.key.claim].is_generated:
            line = f"{number} in the limits of the container"
        found.append(
            Edit(
                kind="fewer-devices",
                text=f"ask for {number} instead of {was} in request {leaf.wanted.full_name}",
                where=field_of(question, leaf, "count"),
                lines=(line,),
                cost=10.0 * (wanted - number),
                place=f"{leaf.key}.count",
                apply=partial(change_leaf, key=leaf.key, count=number, allocation_mode="ExactCount"),
            )
        )
    return found


def _tolerate(question: Question, leaf: Leaf, survey: Survey) -> Iterator[Ladder]:
    known = leaf.wanted.leaf.tolerations or []
    for shown, devices in sorted(survey.stopped_at(leaf, Stage.TAINT).items()):
        untolerated = list_untolerated(devices[0].device, known, question.cluster.variant)
        taints = {(each.key, each.value, each.effect) for each in untolerated}
        added = [
            DeviceToleration(key=key, operator="Equal" if value else "Exists", value=value, effect=effect)
            for key, value, effect in sorted(taints)
        ]
        yield [
            Edit(
                kind="tolerate",
                text=f"tolerate the taint {shown} of {len(devices)} device{'' if len(devices) == 1 else 's'}",
                where=field_of(question, leaf, "tolerations"),
                lines=tuple(map(_write_toleration, added)),
                cost=15.0 * len(added),
                place=f"{leaf.key}.tolerations {shown}",
                apply=partial(change_leaf, key=leaf.key, tolerations=[*known, *added]),
            )
        ]


def _write_toleration(toleration: DeviceToleration) -> str:
    parts = [f"key: {toleration.key}", f"operator: {toleration.operator}"]
    if toleration.value:
        parts.append(f'value: "{toleration.value}"')
    return f"- {{{', '.join(parts)}, effect: {toleration.effect}}}"


def _less_capacity(question: Question, leaf: Leaf, survey: Survey) -> Iterator[Ladder]:
    state = question.cluster.state
    for name, amount in sorted(leaf.wanted.capacity.items()):
        devices = [
            each
            for stage in (Stage.CAPACITY, Stage.USED)
            for found in survey.stopped_at(leaf, stage).values()
            for each in found
        ]
        values = {
            largest_share(amount, capacity, used)
            for each in devices
            if (capacity := (each.device.capacity or {}).get(name)) is not None
            for used in (0, state.consumed(each.id).get(name, 0))
        } - {None}
        lower = sorted(
            (each for each in values if each and nanos(each) < nanos(amount)), key=nanos, reverse=True
        )
        yield [
            Edit(
                kind="lower-capacity",
                text=f"ask for {value} instead of {amount} of {name} in request {leaf.wanted.full_name}",
                where=field_of(question, leaf, f"capacity.requests.{name}"),
                lines=(f"{name}: {value}",),
                cost=10.0 + 20.0 * (1 - nanos(value) / max(nanos(amount), 1)),
                place=f"{leaf.key}.capacity.{name}",
                apply=partial(_with_capacity, leaf=leaf, name=name, value=value),
            )
            for value in lower[:_SHARES]
        ]


def _with_capacity(question: Question, *, leaf: Leaf, name: str, value: str) -> Question:
    known = leaf_at(question, leaf.key).capacity
    requests = {**((known.requests or {}) if known is not None else {}), name: value}
    return change_leaf(question, leaf.key, capacity=CapacityRequirements(requests=requests))


def edit_constraints(question: Question) -> Iterator[Ladder]:
    """Without one of the constraints."""
    for number, asked in enumerate(question.claims):
        for index, constraint in enumerate(asked.claim.spec.devices.constraints or ()):
            kind = "matchAttribute" if constraint.match_attribute is not None else "distinctAttribute"
            attribute = constraint.match_attribute or constraint.distinct_attribute
            yield [
                Edit(
                    kind="drop-constraint",
                    text=f"drop the constraint {kind}: {attribute}",
                    where=f"{asked.name}: {asked.path}.devices.constraints[{index}]",
                    lines=("(delete this entry)",),
                    cost=25.0,
                    place=f"{number}.constraints[{index}]",
                    apply=partial(drop_constraint, claim=number, constraint=constraint),
                )
            ]


def other_classes(
    question: Question, claim: int, request: int, sub: int = 0, *, cost: float = 45.0
) -> Iterator[Ladder]:
    """With another class of the cluster, those with the most similar names first."""
    asked = question.claims[claim]
    chosen = (asked.claim.spec.devices.requests or ())[request]
    wanted = [leaf for _, _, leaf in chosen.leaves][sub].device_class_name
    classes = question.cluster.classes
    # The devices of another driver are another thing.
    drivers = drivers_of(classes[wanted]) if wanted in classes else set()
    names = [
        name
        for name, each in classes.items()
        if name != wanted and (not drivers or drivers & drivers_of(each))
    ]
    names.sort(key=lambda name: (-difflib.SequenceMatcher(None, name, wanted).ratio(), name))
    below = f"firstAvailable[{sub}]" if chosen.first_available else "exactly"
    key = RequestKey(claim, request, sub)
    yield [
        Edit(
            kind="other-class",
            text=f"take class {name} instead of {wanted} in request {chosen.name}",
            where=f"{asked.name}: {asked.path}.devices.requests[{request}].{below}.deviceClassName",
            lines=(f"deviceClassName: {name}",),
            cost=cost + 5.0 * at,
            place=f"{key}.class",
            apply=partial(change_leaf, key=key, device_class_name=name),
        )
        for at, name in enumerate(names[:_CLASSES])
    ]
