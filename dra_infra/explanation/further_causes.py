"""Causes behind the first: what else keeps devices from a request, where without the first it still has too few.

A tree counts a device at the first thing that keeps it away. Who puts that right should not meet the next one only then.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from dra_infra.explanation.clauses import clauses_of
from dra_infra.explanation.device_checks import (
    CheckResult,
    DeviceChecks,
    Stage,
    UnusablePool,
    find_unusable_pools,
    list_selectors,
)
from dra_infra.explanation.node_kinds import sort_nodes
from dra_infra.explanation.question import Leaf, Question, name_claims
from dra_infra.explanation.records import CHECKED, FAILED, REFUSED, UNUSABLE_POOL, Progress
from dra_infra.explanation.shortages import Choice, Counting, Shortage
from dra_infra.kubernetes.api import DRIVER_TEST, Node, drivers_of
from dra_infra.kubernetes.scheduler import NodeRefusal
from dra_infra.kubernetes.scheduler.allocator import Pool, Published, RequestKey

_USED = CHECKED + Stage.USED


def find_places(
    checks: DeviceChecks, leaf: Leaf, published: Published, results: Sequence[CheckResult]
) -> Iterator[Progress]:
    """Where a device ends by each of some checks that it fails: of a selector by each test that is false."""
    for result in results:
        if result.stage is not Stage.SELECTOR:
            yield Progress(CHECKED + result.stage, text=result.detail)
        elif result.is_error:
            yield Progress(CHECKED, result.rank, FAILED, result.detail)
        else:
            clauses = clauses_of(list_selectors(leaf.wanted)[result.rank].expression)
            false = [
                number
                for number, clause in enumerate(clauses)
                if len(clauses) > 1 and checks.evaluate(clause.expression, published) is False
            ]
            for number in false or [len(clauses) - 1]:
                yield Progress(CHECKED, result.rank, number)


_Devices: TypeAlias = list[tuple[Pool, Published, tuple[Progress, ...]]]
"""Devices with everything that keeps them away, without those of other drivers."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _NodeGroup:
    """Nodes that are alike, and refuse the pod for the same reasons.

    Args:
        first: The node that is looked at.
        size: How many there are.
        checks: Its devices.
        devices: By request; also those of pools that give nothing out.
        is_partial: Whether there are such pools, of which more may be published.
    """

    first: Node
    size: int
    checks: DeviceChecks
    devices: Mapping[RequestKey, _Devices]
    is_partial: bool

    def free(self, leaf: Leaf, cause: Progress | None = None) -> _Devices:
        """The devices that nothing keeps from a request but *cause*."""
        return [each for each in self.devices[leaf.key] if set(each[2]) <= {cause}]

    def sole_cause(self, leaf: Leaf) -> Progress | None:
        """The one thing without which the request has enough devices; None where there is none."""
        sole = Counter(causes[0] for _, _, causes in self.devices[leaf.key] if len(causes) == 1)
        missing = self.checks.wanted_count(leaf) - len(self.free(leaf))
        return next((cause for cause, number in sole.most_common(1) if number >= missing), None)


class FurtherCauses:
    """Looks at every node of a question once more, those that refuse the pod too."""

    def __init__(self, question: Question, requests: Sequence[tuple[Leaf, ...]]) -> None:
        self._question = question
        self._requests = requests
        self._groups = list(self._find_groups())

    def _find_groups(self) -> Iterator[_NodeGroup]:
        question = self._question
        leaves = [leaf for entries in self._requests for leaf in entries]
        drivers = [drivers_of(leaf.wanted.device_class) for leaf in leaves]
        for kind in sort_nodes(replace(question, refusals={})):
            groups: dict[tuple[tuple[NodeRefusal, ...], tuple[UnusablePool, ...]], list[Node]] = {}
            for node in kind.nodes:
                # Nodes are of one kind whatever is in pools that give nothing out.
                unusable = tuple(
                    each
                    for each in find_unusable_pools(question.cluster, node)
                    if each.state != "obsolete" and any(not of or each.pool.driver in of for of in drivers)
                )
                groups.setdefault((question.refusals.get(node.name, ()), unusable), []).append(node)
            for (reasons, unusable), nodes in groups.items():
                refused = [Progress(REFUSED, text=str(reason)) for reason in reasons]
                checks = DeviceChecks(question.cluster, nodes[0], question.declared_by(nodes[0]))
                devices = {leaf.key: list(_causes(checks, leaf, refused, unusable)) for leaf in leaves}
                yield _NodeGroup(
                    first=nodes[0],
                    size=len(nodes),
                    checks=checks,
                    devices=devices,
                    is_partial=bool(unusable),
                )

    def behind(self, leaf: Leaf) -> dict[Progress, Counter[Progress]]:
        """By the first thing that keeps devices away: what else does, and how many; empty where one thing is all."""
        found: dict[Progress, Counter[Progress]] = {}
        for group in self._groups:
            if len(group.free(leaf)) >= group.checks.wanted_count(leaf) or group.sole_cause(leaf):
                return {}
            for _, published, (first, *others) in (each for each in group.devices[leaf.key] if each[2]):
                times = group.size if published.slice.spec.node_name else 1
                for other in others:
                    found.setdefault(first, Counter())[other] += times
        return found

    def find_beyond(self) -> str:
        """Tells what there is too little of, even without what keeps single devices away; empty where there is enough."""
        nearest: tuple[int, str] | None = None
        for group in self._groups:
            shortages = list(self._find_shortages(group))
            if not shortages:
                return ""
            worst = min(shortages, key=lambda each: each.best - each.wanted)
            lack = worst.best - worst.wanted
            if nearest is None or lack > nearest[0]:
                verb = "is" if worst.wanted == 1 else "are"
                where = f"on the best node, {group.first.name}, " if len(self._question.nodes) > 1 else ""
                nearest = lack, f"{worst.asked} {verb} asked for; {where}{worst.there}"
        partial = any(group.is_partial for group in self._groups)
        return nearest[1] + ", as far as pools are published" * partial if nearest else ""

    def _find_shortages(self, group: _NodeGroup) -> Iterator[Shortage]:
        question = self._question
        choices = []
        for entries in self._requests:
            devices = {}
            for leaf in entries:
                cause = group.sole_cause(leaf)
                allowed = (
                    {cause} if cause else {each for found in group.devices[leaf.key] for each in found[2]}
                )
                for pool, published, causes in group.devices[leaf.key]:
                    if all(each in allowed or each.stage == _USED for each in causes):
                        devices[published.id] = pool, published
            choices.append(Choice(entries, min(map(group.checks.wanted_count, entries)), devices))
        counting = Counting(question.cluster, group.checks, question.asked, choices)
        yield from counting.find(name_claims(question.asked, question.names))


def _causes(
    checks: DeviceChecks, leaf: Leaf, refused: Sequence[Progress], unusable: Sequence[UnusablePool]
) -> Iterator[tuple[Pool, Published, tuple[Progress, ...]]]:
    others = set(_driver_tests(leaf))
    # What counters such a pool has is not known.
    more = [(Pool(each.pool), device, each) for each in unusable for device in each.devices]
    for pool, published, trouble in (*((*each, None) for each in checks.devices), *more):
        places = tuple(find_places(checks, leaf, published, checks.failures(leaf, pool, published)))
        if not others.intersection(places):
            unused = [Progress(UNUSABLE_POOL, text=str(trouble))] if trouble else []
            yield pool, published, (*refused, *unused, *places)


def _driver_tests(leaf: Leaf) -> Iterator[Progress]:
    """Where devices of other drivers end, of which nothing more is asked."""
    for rank, selector in enumerate(list_selectors(leaf.wanted)):
        for number, clause in enumerate(clauses_of(selector.expression)):
            if DRIVER_TEST.fullmatch(clause.text):
                yield Progress(CHECKED, rank, number)
