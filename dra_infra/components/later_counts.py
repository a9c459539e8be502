"""Counts that are known later: Pulumi Outputs and awaitables, judged by the rules for plain ones as soon as they are known."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import pulumi

from dra_infra.components.report import failing_output, find_user_place, report
from dra_infra.components.secret_arguments import hide_value
from dra_infra.errors import Problem
from dra_infra.specs.claims import leaves_of
from dra_infra.specs.request_records import is_later
from dra_infra.specs.requests import Alternative, DeviceRequest

_Leaf = TypeVar("_Leaf", DeviceRequest, Alternative)


def judge_counts(
    requests: Sequence[DeviceRequest],
    check: Callable[[Sequence[DeviceRequest]], Iterable[Problem]],
    label: str,
) -> Sequence[DeviceRequest]:
    """Return *requests* with an Output for each count that is known later; it fails the run where *check* refuses the counts.

    Counts that are not known in a preview are judged by `up`.

    Args:
        requests: Without problems, as far as their counts are known.
        check: The rules, asked once all counts are known: the sum counts too.
        label: How problems name the component.
    """
    later = [leaf.count for _, leaf in leaves_of(requests) if is_later(leaf.count)]
    if not later:
        return requests
    place = find_user_place()
    together = pulumi.Output.all(*later)

    async def judge(values: list[Any]) -> Any:
        counts = [_whole(value) for value in values]
        refused = [each for each in check(_with_counts(requests, counts)) if each.severity == "error"]
        if not refused:
            return counts
        is_secret = await together.is_secret()
        shown = [hide_value(each) if is_secret else each for each in refused]
        report(each.below(label).at(place) for each in shown)
        return failing_output()

    judged: pulumi.Output[Any] = together.apply(judge)

    def pick(number: int) -> pulumi.Output[Any]:
        # None where a test collects problems, which ends no run.
        return judged.apply(lambda counts: counts[number] if counts else None)

    return _with_counts(requests, [pick(number) for number in range(len(later))])


def _whole(value: Any) -> Any:
    """The number as it was written: the engine hands on every number as a float."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _with_counts(requests: Sequence[DeviceRequest], counts: Sequence[Any]) -> list[DeviceRequest]:
    """*requests* with *counts* in place of those that are known later, in their order."""
    rest = iter(counts)

    def put(leaf: _Leaf) -> _Leaf:
        return replace(leaf, count=next(rest)) if is_later(leaf.count) else leaf

    return [
        replace(each, first_available=[put(alternative) for alternative in each.first_available])
        if each.first_available
        else put(each)
        for each in requests
    ]
