"""Candidate nodes with their devices, made when looked at: a large fleet has many more than anybody reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import overload

from dra_infra.simulation.cluster_state import choose
from dra_infra.simulation.free_answers import FreeAnswer
from dra_infra.simulation.free_fleet import FreeFleet
from dra_infra.simulation.outcomes import Chosen
from dra_infra.simulation.placement import NodePlacement
from dra_infra.simulation.pod_plans import PodPlan


class CandidateNodes(Sequence[NodePlacement]):
    """The nodes that can take one pod, in order of name; compares like a tuple."""

    def __init__(self, free: FreeFleet, plan: PodPlan, answer: FreeAnswer) -> None:
        self._free = free
        self._plan = plan
        self._answer = answer

    def __len__(self) -> int:
        return len(self._answer.candidates)

    @overload
    def __getitem__(self, index: int) -> NodePlacement: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[NodePlacement, ...]: ...

    def __getitem__(self, index: int | slice) -> NodePlacement | tuple[NodePlacement, ...]:
        if isinstance(index, slice):
            return tuple(self._build(node) for node in self._answer.candidates[index])
        return self._build(self._answer.candidates[index])

    def __iter__(self) -> Iterator[NodePlacement]:
        return map(self._build, self._answer.candidates)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return f"CandidateNodes({len(self)} nodes)"

    def _build(self, node: int) -> NodePlacement:
        plan = self._plan.at(self._free.cluster.offered[node])
        outcome = self._free.attempt(plan, node)
        picks = outcome.picks if isinstance(outcome, Chosen) else ()
        choices = []
        for number, entry in enumerate(plan.entries):
            own = [pick for pick in picks if pick.claim == number]
            choices.extend(choose(self._free.cluster, entry, node, own))
        return NodePlacement(node=self._free.cluster.nodes[node].name, devices=tuple(choices))
