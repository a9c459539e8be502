"""Proofs that nothing fits, whatever is in use: by counting, or by a search that came to its end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dra_infra.model.fleet import Node
from dra_infra.simulation.allocation.outcomes import Allocated
from dra_infra.simulation.allocation.state import AllocatedState
from dra_infra.simulation.explaining.findings import find_shortages
from dra_infra.simulation.explaining.leaves import Leaf
from dra_infra.simulation.explaining.question import Question
from dra_infra.simulation.explaining.records import RequestTree
from dra_infra.simulation.explaining.sieve import Sieve
from dra_infra.simulation.explaining.trials import Budget

_TRIED: Final = (
    "every combination of devices was tried, also as if none were in use, and none serves all requests"
)


def find_proof(
    question: Question,
    requests: Sequence[tuple[Leaf, ...]],
    trees: Sequence[RequestTree],
    nodes: Sequence[Node],
    budget: Budget,
) -> str:
    """Why no node could serve the claims even with all devices free; empty where one could, or that is not known.

    Args:
        question: The question.
        requests: The requests of its claims.
        trees: What becomes of the devices.
        nodes: One node of each kind.
        budget: Time and steps.

    Raises:
        LateError: When the time is over.
    """
    free = question.with_cluster(question.cluster.with_state(AllocatedState()))
    hardest: tuple[int, str] | None = None
    for node in nodes:
        sieve = Sieve(free.cluster, node, question.declared_by(node))
        found = find_shortages(free.cluster, sieve, free.asked, requests, question.names, is_free=True)
        if not found:
            outcome, ended = budget.attempt(free, node)
            if not ended or isinstance(outcome, Allocated):
                return ""
            hardest = 0, _TRIED
            continue
        # Of a node the worst, of nodes the best.
        worst = min(found, key=lambda each: each.best - each.wanted)
        lack = worst.best - worst.wanted
        if hardest is None or lack > hardest[0]:
            verb = "is" if worst.wanted == 1 else "are"
            where = f"on the best node, {node.name}, " if len(question.nodes) > 1 else ""
            hardest = lack, f"{worst.asked} {verb} asked for; {where}{worst.there}"
    if hardest is None:
        return ""
    return _none_passes(trees) or hardest[1]


def _none_passes(trees: Sequence[RequestTree]) -> str:
    """The first test of a selector that no device is left behind, of a request without alternatives."""
    for tree in trees:
        for before, step in zip((None, *tree.steps), tree.steps, strict=False):
            left = tree.candidates if before is None else before.left
            if step.rule in ("class", "request") and left and step.left == 0 and "/" not in tree.request:
                return f"no device that can be had passes {step.where} of {tree.claim}: {step.text}"
    return ""
