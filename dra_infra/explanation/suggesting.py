"""The smallest edits that fit, each tried out with the allocator before it is suggested.

In a trial the allocator itself says whether the pods fit, within steps and time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Final

from dra_infra.explanation.edit_requests import edit_requests
from dra_infra.explanation.edit_selectors import edit_selectors
from dra_infra.explanation.edits import Edit, Ladder, add_nodes, allow_nodes, free_claims
from dra_infra.explanation.node_kinds import sort_nodes
from dra_infra.explanation.question import Holder, Leaf, Question
from dra_infra.explanation.records import Suggestion
from dra_infra.explanation.survey import Survey
from dra_infra.kubernetes.api.resource_claim import AllocationResult
from dra_infra.kubernetes.scheduler.allocator.identity import Allocated, Cannot, Failed, Outcome
from dra_infra.kubernetes.scheduler.fleet import Node

STEPS: Final = 50_000
"""Steps of one search; what takes more is not known."""


FULL: Final = "the pods before take its cpu, memory or slots for pods"


class LateError(Exception):
    """The time for all trials is over."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Placed:
    """Where pods fit.

    Args:
        nodes: The node of the pod; of an error, the node on which it came.
        results: What its claims get; empty where it fits nowhere.
        failed: The error that ended the attempt, where one did.
        is_known: Whether no search was stopped.
    """

    nodes: tuple[str, ...] = ()
    results: tuple[AllocationResult, ...] = ()
    failed: Failed | None = None
    is_known: bool = True


class Budget:
    """Time for everything together, and steps for each search.

    Args:
        is_late: Whether the time is over.
        steps: Most steps of one search.
    """

    def __init__(self, is_late: Callable[[], bool] = lambda: False, steps: int = STEPS) -> None:
        self.is_late = is_late
        self._steps = steps

    def attempt(self, question: Question, node: Node) -> tuple[Outcome, bool]:
        """Search a node; the outcome, and True when the search came to its end.

        Raises:
            LateError: When the time is over.
        """
        left = self._steps
        stopped = False

        def is_cancelled() -> bool:
            nonlocal left, stopped
            left -= 1
            if left < 0 or (left % 64 == 0 and self.is_late()):
                stopped = True
            return stopped

        if self.is_late():
            raise LateError
        outcome = question.cluster.allocator.allocate(
            node, question.asked, declared=question.declared_by(node), is_cancelled=is_cancelled
        )
        return outcome, not stopped


def try_nodes(question: Question, budget: Budget, nodes: Sequence[Node]) -> Placed:
    """Try one pod on each of the nodes; an error on one of them ends the attempt for the pod, as in the scheduler.

    Raises:
        LateError: When the time is over.
    """
    found = Placed()
    for node in nodes:
        outcome, ended = budget.attempt(question, node)
        if not ended:
            found = replace(found, is_known=False)
        elif isinstance(outcome, Failed) and not outcome.on_node:
            return Placed(failed=outcome, nodes=(node.name,))
        elif isinstance(outcome, Allocated) and not found.results:
            found = replace(found, nodes=(node.name,), results=outcome.results)
    return found


def place_pods(question: Question, budget: Budget) -> tuple[int, Question]:
    """Place the pods of a question one by one, each on the first node that takes it.

    Returns:
        How many were placed, and the question as it is once those have their devices.

    Raises:
        LateError: When the time is over.
    """
    taken: Counter[str] = Counter()
    number, start = 0, 0
    while number < question.pods:
        outcome: Outcome = Cannot()
        while start < len(question.eligible):
            node = question.eligible[start]
            if taken[node.name] < question.room.get(node.name, question.pods):
                outcome, _ = budget.attempt(question, node)
                if isinstance(outcome, Allocated):
                    break
            # What refuses a pod refuses all that are like it: a fleet only fills up.
            start += 1
        if not isinstance(outcome, Allocated):
            break
        number += 1
        taken[node.name] += 1
        if number < question.pods:
            pairs = zip(question.claims, outcome.results, strict=True)
            question = question.with_more(
                [
                    Holder(name=f"another pod's {asked.name}", result=result, is_own=True)
                    for asked, result in pairs
                ]
            )
    full = {
        node.name: FULL
        for node in question.eligible
        if taken[node.name] >= question.room.get(node.name, question.pods)
    }
    return number, replace(question, refusals={**question.refusals, **full}) if full else question


SHOWN: Final = 5
"""Edits that are told at most: more are no help."""
_OF_A_KIND: Final = 2
"""Edits of one kind that are told at most."""
_PAIRS: Final = 400
"""Pairs that are tried at most."""


@dataclass(slots=True)
class Suggesting:
    """Tries edits.

    Args:
        question: The question.
        kinds: One node of each kind, to try a single pod on.
        budget: Time and steps.
        unfinished: Whether the time was over before all were tried.
    """

    question: Question
    kinds: Sequence[Node]
    budget: Budget
    unfinished: bool = False
    found: list[tuple[float, Suggestion]] = field(default_factory=list)

    def run(
        self, leaves: Sequence[Leaf], survey: Survey, *, missing: int, is_deep: bool
    ) -> tuple[Suggestion, ...]:
        """The smallest edits, of single ones and, when asked, of pairs."""
        return self.try_ladders(self._ladders(leaves, survey, missing), is_deep=is_deep)

    def try_ladders(self, ladders: Iterable[Ladder], *, is_deep: bool = False) -> tuple[Suggestion, ...]:
        """The smallest of some edits."""
        failed: list[Edit] = []
        try:
            for ladder in ladders:
                for edit in ladder:
                    if self._try(edit):
                        break
                else:
                    # The largest step of those that do not fit alone may do so with another edit.
                    failed += [ladder[0], ladder[-1]] if len(ladder) > 1 else ladder
            if is_deep:
                self._try_pairs(failed)
        except LateError:
            self.unfinished = True
        return self._ranked()

    def _ladders(self, leaves: Sequence[Leaf], survey: Survey, missing: int) -> Iterator[Ladder]:
        yield from edit_requests(self.question, leaves, survey)
        yield from edit_selectors(self.question, leaves, survey)
        yield from allow_nodes(self.question)
        yield from free_claims(self.question, survey)
        yield from add_nodes(self.question, self.kinds, missing)

    def _try(self, *edits: Edit) -> bool:
        question = self.question
        for edit in edits:
            question = edit.apply(question)
        node = self._fits(question)
        if node:
            self.found.append((sum(edit.cost for edit in edits) + 20 * (len(edits) - 1), _tell(edits, node)))
        return bool(node)

    def _fits(self, question: Question) -> str:
        """The node of the first pod, when all pods fit; empty when they do not, or that is not known."""
        known = {node.name for node in self.question.nodes}
        new = [node for node in question.eligible if node.name not in known]
        nodes: Sequence[Node] = [*self.kinds, *new]
        if question.holders != self.question.holders:
            nodes = question.eligible
        elif question.refusals != self.question.refusals:
            nodes = [kind.first for kind in sort_nodes(question)]
        tried = try_nodes(question, self.budget, nodes)
        if not tried.results:
            return ""
        if question.pods > 1 and place_pods(question, self.budget)[0] < question.pods:
            return ""
        return tried.nodes[0]

    def _try_pairs(self, failed: Sequence[Edit]) -> None:
        pairs = [
            pair
            for pair in combinations(sorted(failed, key=lambda edit: edit.cost), 2)
            if pair[0].place != pair[1].place
        ]
        number = 0
        for pair in sorted(pairs, key=lambda pair: pair[0].cost + pair[1].cost)[:_PAIRS]:
            number += self._try(*pair)
            if number == SHOWN:
                return

    def _ranked(self) -> tuple[Suggestion, ...]:
        shown: list[Suggestion] = []
        for _, suggestion in sorted(self.found, key=lambda each: (each[0], each[1].text)):
            alike = sum(each.kind == suggestion.kind for each in shown)
            if alike < _OF_A_KIND and len(shown) < SHOWN:
                shown.append(suggestion)
        return tuple(shown)


def _tell(edits: Sequence[Edit], node: str) -> Suggestion:
    return Suggestion(
        kind=" + ".join(edit.kind for edit in edits),
        text=", and ".join(edit.text for edit in edits),
        where="; ".join(edit.where for edit in edits),
        line="; ".join(edit.line for edit in edits),
        node=node,
    )
