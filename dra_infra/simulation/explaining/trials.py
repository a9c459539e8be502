"""Trying a question out: the allocator itself says whether the pods fit, within steps and time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from dra_infra.model.claim_status import AllocationResult
from dra_infra.model.fleet import Node
from dra_infra.simulation.allocation.outcomes import Allocated, Cannot, Failed, Outcome
from dra_infra.simulation.explaining.question import Holder, Question

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
        """What the allocator says about a node, and whether it came to an end.

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
