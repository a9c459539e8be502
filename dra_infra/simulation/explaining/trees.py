"""The tree of a request: what keeps devices from it, in order and counted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from dra_infra.simulation.allocation.identity import DeviceID, Published
from dra_infra.simulation.explaining.clauses import clauses_of
from dra_infra.simulation.explaining.ends import FAILED, NOWHERE, PASSED, REFUSED, SIEVED, TROUBLED, End, Ends
from dra_infra.simulation.explaining.leaves import Leaf
from dra_infra.simulation.explaining.question import Question
from dra_infra.simulation.explaining.records import RequestTree, Rule, Step
from dra_infra.simulation.explaining.sieve import Stage, selector_lists
from dra_infra.simulation.explaining.values import describe_values, shorten

_HELD_BY: Final = 8
"""Claims that are named at most."""

_RULES: Final[dict[Stage, Rule]] = {
    Stage.PLACE: "place",
    Stage.CAPACITY: "capacity",
    Stage.FEATURE: "gate",
    Stage.TAINT: "taint",
    Stage.COUNTER: "counter",
    Stage.USED: "in-use",
}


def make_tree(
    question: Question, leaf: Leaf, found: Ends, devices: Mapping[DeviceID, Published]
) -> RequestTree:
    """The tree of one request or entry.

    Args:
        question: The question.
        leaf: The request.
        found: Where each device ends.
        devices: All devices, by name.
    """
    groups: dict[End, list[Published]] = defaultdict(list)
    for device, at in found.at.items():
        groups[at].append(devices[device])
    left = len(found.at)
    steps = []
    for rule, where, text, at, expression in _order(leaf, groups):
        removed = groups.get(at, [])
        left -= len(removed)
        values = describe_values(expression, removed) if removed and expression else ""
        holders = _holders(question, removed) if rule == "in-use" else ()
        steps.append(
            Step(
                rule=rule,
                where=where,
                text=text,
                removed=len(removed),
                left=left,
                values=values,
                holders=holders,
            )
        )
    node = max(found.left, key=lambda name: found.left[name], default="")
    return RequestTree(
        claim=leaf.claim_name,
        request=leaf.wanted.full_name,
        device_class=leaf.wanted.device_class.metadata.name or "",
        count=None if leaf.is_all else leaf.wanted.count,
        candidates=len(found.at),
        steps=tuple(steps),
        left=left,
        node=node,
        most=found.left[node] if node else 0,
    )


def _order(leaf: Leaf, groups: dict[End, list[Published]]) -> Iterator[tuple[Rule, str, str, End, str]]:
    """Everything that devices can fail at, in order; clauses also where none fails."""
    early: dict[int, Rule] = {NOWHERE: "no-node", REFUSED: "node", TROUBLED: "pool"}
    for at in sorted(each for each in groups if each.stage < SIEVED):
        yield early[at.stage], "", at.text, at, ""
    rank = 0
    for owner, selectors in selector_lists(leaf.wanted):
        rule: Rule = "request" if owner == "request" else "class"
        for number, selector in enumerate(selectors):
            whose = f"request {leaf.wanted.full_name}" if owner == "request" else owner
            where = f"{whose}, selector #{number}"
            expression = selector.cel.expression if selector.cel is not None else ""
            for position, clause in enumerate(clauses_of(expression)):
                yield rule, where, shorten(clause.text), End(SIEVED, rank, position), clause.expression
            for at in sorted(each for each in groups if each[:3] == (SIEVED, rank, FAILED)):
                yield "error", where, at.text, at, expression
            rank += 1
    for at in sorted(each for each in groups if SIEVED < each.stage < PASSED):
        yield _RULES[Stage(at.stage - SIEVED)], "", at.text, at, ""


def _holders(question: Question, devices: Sequence[Published]) -> tuple[str, ...]:
    wanted = {each.id for each in devices}
    pools = {each.pool for each in devices if each.device.consumes_counters}
    found = [
        holder
        for holder in question.holders
        if any(device in wanted or (device.driver, device.pool) in pools for device in holder.devices)
    ]
    own = sum(holder.is_own for holder in found)
    named = [str(holder) for holder in found if not holder.is_own]
    more = [f"{len(named) - _HELD_BY} more"] if len(named) > _HELD_BY else []
    before = [f"{own} claim{'' if own == 1 else 's'} of the pods before"] if own else []
    return (*named[:_HELD_BY], *more, *before)
