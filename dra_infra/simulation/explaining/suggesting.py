"""The smallest edits that fit, each tried out with the allocator before it is told."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Final

from dra_infra.model.fleet import Node
from dra_infra.simulation.explaining.edit_cluster import add_nodes, free_claims
from dra_infra.simulation.explaining.edit_nodes import allow_nodes
from dra_infra.simulation.explaining.edit_requests import edit_requests
from dra_infra.simulation.explaining.edit_selectors import edit_selectors
from dra_infra.simulation.explaining.edits import Edit, Ladder
from dra_infra.simulation.explaining.leaves import Leaf
from dra_infra.simulation.explaining.node_kinds import sort_nodes
from dra_infra.simulation.explaining.question import Question
from dra_infra.simulation.explaining.records import Suggestion
from dra_infra.simulation.explaining.survey import Survey
from dra_infra.simulation.explaining.trials import Budget, LateError, place_pods, try_nodes

SHOWN: Final = 5
"""Edits that are told at most: more are no help."""
_OF_A_KIND: Final = 2
"""Of one kind of edit."""
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
