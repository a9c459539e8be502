"""The smallest edits that fit, each tried out with the allocator before it is suggested.

In a trial the allocator itself says whether the pods fit, within steps and time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Final

from dra_infra.explanation.edit_requests import edit_requests
from dra_infra.explanation.edit_selectors import edit_selectors
from dra_infra.explanation.edits import Edit, Ladder, add_nodes, allow_nodes, free_claims
from dra_infra.explanation.node_kinds import sort_nodes
from dra_infra.explanation.question import Holder, Leaf, Question, read_requests
from dra_infra.explanation.records import Change, Suggestion
from dra_infra.explanation.survey import Survey
from dra_infra.kubernetes.api import AllocationResult, Node
from dra_infra.kubernetes.scheduler import NodeRefusal
from dra_infra.kubernetes.scheduler.allocator import Allocated, AllocationError, Cannot, Failed, Outcome

STEPS: Final = 50_000
"""Steps of one search; what takes more is not known."""


FULL: Final = "the pods before take its cpu, memory or slots for pods"


class LateError(Exception):
    """The time for all trials is over."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Placed:
    """Where pods fit.

    Args:
        node: The node of the pod; of an error, the node on which it came; empty where it fits nowhere.
        results: What its claims get.
        failed: The error that ended the attempt, where one did.
        is_known: Whether no search was stopped.
        late: A node with devices that the scheduler may not come to in its time; empty where none is.
        doubt: Why the answer of a node is not decided; empty where each is.
    """

    node: str = ""
    results: tuple[AllocationResult, ...] = ()
    failed: Failed | None = None
    is_known: bool = True
    late: str = ""
    doubt: str = ""

    @property
    def fits(self) -> bool:
        """True where the pod has a node."""
        return bool(self.node) and self.failed is None


class Budget:
    """Time for everything together, and steps for each search."""

    def __init__(self, is_late: Callable[[], bool] = lambda: False, steps: int = STEPS) -> None:
        self.is_late = is_late
        self._steps = steps

    def attempt(self, question: Question, node: Node) -> tuple[Outcome, bool]:
        """Search a node; the outcome, and True when the search came to its end, as the scheduler's will in its time.

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
        allocator = question.cluster
        declared = question.declared_by(node)
        outcome = allocator.allocate(node, question.asked, declared=declared, is_cancelled=is_cancelled)
        if isinstance(outcome, Allocated) and outcome.leaves_out:
            stopped = not allocator.answers_in_time(
                node, question.asked, declared=declared, is_cancelled=is_cancelled
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
        if not ended and isinstance(outcome, Allocated):
            found = replace(found, late=found.late or node.name)
        elif not ended:
            found = replace(found, is_known=False)
        elif isinstance(outcome, Failed) and not outcome.decided:
            found = replace(found, is_known=False, doubt=found.doubt or outcome.text)
            if not outcome.on_node:
                return Placed(is_known=False, doubt=outcome.text)
        elif isinstance(outcome, Failed) and not outcome.on_node:
            return Placed(failed=outcome, node=node.name)
        elif isinstance(outcome, Allocated) and not found.node:
            found = replace(found, node=node.name, results=outcome.results)
    return found


def place_pods(question: Question, budget: Budget) -> tuple[int, Question]:
    """How many pods go one by one on the first node that takes them, and the question once those have their devices.

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
                outcome, ended = budget.attempt(question, node)
                if isinstance(outcome, Allocated) and ended:
                    break
                outcome = Cannot()
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
        node.name: (NodeRefusal(FULL),)
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
_FIRST: Final = 24
"""Edits of which others are looked for that go with them, the smallest first."""


@dataclass(slots=True)
class Suggesting:
    """Tries edits.

    Args:
        question: The question.
        kinds: One node of each kind, to try a single pod on.
        budget: Time and steps.
        missing: How many of the pods find no place.
        refusal: What quotas say where the pods and claims are those of a question; empty where they let them be made.
        unfinished: Whether the time was over before all were tried.
    """

    question: Question
    kinds: Sequence[Node]
    budget: Budget
    missing: int = 1
    refusal: Callable[[Question], str] = lambda _: ""
    unfinished: bool = False
    found: list[tuple[float, Suggestion]] = field(default_factory=list)

    def run(self, leaves: Sequence[Leaf], survey: Survey, *, is_deep: bool) -> tuple[Suggestion, ...]:
        """The smallest edits, of single ones and, when asked, of pairs."""
        return self.try_ladders(self._ladders(self.question, leaves, survey, self.kinds), is_deep=is_deep)

    def try_ladders(self, ladders: Iterable[Ladder], *, is_deep: bool = False) -> tuple[Suggestion, ...]:
        """The smallest of some edits."""
        failed: list[Edit] = []
        alone: set[tuple[str, tuple[str, ...]]] = set()
        try:
            for ladder in ladders:
                for edit in ladder:
                    if self._try(edit):
                        alone.add((edit.place, edit.lines))
                        break
                else:
                    # The largest step of those that do not fit alone may do so with another edit.
                    failed += [ladder[0], ladder[-1]] if len(ladder) > 1 else ladder
            if is_deep:
                self._try_pairs(failed, alone)
        except LateError:
            self.unfinished = True
        return self._ranked()

    def _ladders(
        self, question: Question, leaves: Sequence[Leaf], survey: Survey, kinds: Sequence[Node]
    ) -> Iterator[Ladder]:
        yield from edit_requests(question, leaves, survey)
        yield from edit_selectors(question, leaves, survey)
        yield from allow_nodes(question)
        yield from free_claims(question, survey)
        yield from add_nodes(question, kinds, self.missing)

    def _try(self, *edits: Edit) -> bool:
        question = self.question
        for edit in edits:
            question = edit.apply(question)
        node = self._fits(question)
        if not node:
            return False
        refused = self.refusal(question)
        self.found.append((_cost(edits), replace(_tell(edits, node), refused=refused)))
        return not refused

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
        if not tried.fits:
            return ""
        if question.pods > 1 and place_pods(question, self.budget)[0] < question.pods:
            return ""
        return tried.node

    def _try_pairs(self, failed: Sequence[Edit], alone: Set[tuple[str, tuple[str, ...]]]) -> None:
        """After each edit that does not fit alone, those of what is in the way then, up to what fits alone."""
        pairs: list[tuple[float, int, tuple[Edit, Edit]]] = []
        ladders = 0
        for first in sorted(failed, key=lambda edit: edit.cost)[:_FIRST]:
            for ladder in self._ladders_after(first):
                ladders += 1
                pairs += [(_cost((first, edit)), ladders, (first, edit)) for edit in ladder]
        done = 0
        fitting = set[int]()
        seen = set[frozenset[tuple[str, str]]]()
        for _, ladder_number, pair in sorted(pairs, key=lambda each: each[0])[:_PAIRS]:
            content = frozenset((edit.place, edit.text) for edit in pair)
            if any((edit.place, edit.lines) in alone for edit in pair):
                fitting.add(ladder_number)
            if ladder_number in fitting or content in seen:
                continue
            seen.add(content)
            if self._try(*pair):
                fitting.add(ladder_number)
                done += 1
            if done == SHOWN:
                return

    def _ladders_after(self, first: Edit) -> Iterator[Ladder]:
        question = first.apply(self.question)
        try:
            requests = read_requests(question.cluster, question.asked, question.names)
        except AllocationError:
            return
        if self.budget.is_late():
            raise LateError
        kinds = sort_nodes(question)
        survey = Survey(question, requests, kinds)
        leaves = [leaf for entries in requests for leaf in entries]
        yield from self._ladders(question, leaves, survey, [kind.first for kind in kinds])

    def _ranked(self) -> tuple[Suggestion, ...]:
        shown: list[Suggestion] = []
        made = [each for each in self.found if not each[1].refused]
        for _, suggestion in sorted(made or self.found, key=lambda each: (each[0], each[1].text)):
            alike = sum(each.kind == suggestion.kind for each in shown)
            if alike < _OF_A_KIND and len(shown) < SHOWN and suggestion not in shown:
                shown.append(suggestion)
        return tuple(shown)


def _cost(edits: Sequence[Edit]) -> float:
    return sum(edit.cost for edit in edits) + 20 * (len(edits) - 1)


def _tell(edits: Sequence[Edit], node: str) -> Suggestion:
    # What is written to the place of an edit before stands there in its stead.
    last = {edit.place: edit for edit in edits}
    changes = tuple(
        Change(where=edit.where, line=line)
        for edit in edits
        if last[edit.place] is edit
        for line in edit.lines
    )
    return Suggestion(
        kind=" + ".join(edit.kind for edit in edits),
        text=", and ".join(edit.text for edit in edits),
        where="; ".join(dict.fromkeys(each.where for each in changes)),
        line="; ".join(each.line for each in changes),
        changes=changes,
        node=node,
    )
