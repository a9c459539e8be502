"""What a report shows in full and what it folds: first what fails or changes, and the rest as one line per namespace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from dra_infra.kubernetes.api import ObjectRef
from dra_infra.output.wording import count_of
from dra_infra.placement.placement import Reason
from dra_infra.review.placements import WorkloadReview
from dra_infra.review.reviews import Review

MAX_NAMESPACES: Final = 40
"""Namespaces that have a line of their own; the others are counted in one."""

_MAX_NAMED: Final = 3
"""Workloads with equal answers that a row of text names."""

_MAX_HEADS: Final = 3
"""Kinds of reasons for nodes that one line tells."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Folded:
    """The workloads of one namespace, at least one, of which a report has no more to say than that they fit."""

    namespace: str
    owners: tuple[ObjectRef, ...]

    def __str__(self) -> str:
        if len(self.owners) == 1:
            return f"{self.owners[0]} fits"
        number = count_of(len(self.owners), "workload")
        return f"{self.namespace}: {number} fit" if self.namespace else f"{number} without a namespace fit"


def fold(owners: Iterable[ObjectRef]) -> tuple[Folded, ...]:
    """The workloads by namespace."""
    by_namespace: dict[str, list[ObjectRef]] = {}
    for owner in owners:
        by_namespace.setdefault(owner.namespace, []).append(owner)
    return tuple(Folded(namespace=name, owners=tuple(found)) for name, found in sorted(by_namespace.items()))


def tell(folded: Sequence[Folded], ending: str = "") -> Iterator[str]:
    """A line per namespace, each with *ending*, and one for those that are too many."""
    yield from (f"{each}{ending}" for each in folded[:MAX_NAMESPACES])
    if rest := folded[MAX_NAMESPACES:]:
        number = count_of(sum(len(each.owners) for each in rest), "workload")
        yield f"{number} of {count_of(len(rest), 'more namespace')} fit{ending}"


def fold_unchanged(review: Review) -> tuple[tuple[WorkloadReview, ...], tuple[Folded, ...]]:
    """The workloads that fail, go elsewhere or are touched by the change; and by namespace those that fit as before."""
    touched = {*(change.ref for change in review.changes), *(danger.who for danger in review.dangers)}
    shown = tuple(each for each in review.workloads if each.trend != "same" or each.owner in touched)
    names = {each.owner for each in shown}
    return shown, fold(each.owner for each in review.workloads if each.owner not in names)


@dataclass(frozen=True, kw_only=True, slots=True)
class EqualWorkloads:
    """Workloads of one namespace with the same answer before and after; at least one."""

    workloads: tuple[WorkloadReview, ...]

    @property
    def first(self) -> WorkloadReview:
        """The one whose answer stands for all."""
        return self.workloads[0]

    @property
    def named(self) -> tuple[ObjectRef, ...]:
        """The workloads that a row of text names."""
        return tuple(workload.owner for workload in self.workloads[:_MAX_NAMED])

    @property
    def rest(self) -> int:
        """How many workloads a row of text only counts."""
        return max(len(self.workloads) - _MAX_NAMED, 0)

    def __str__(self) -> str:
        number = count_of(len(self.workloads), "workload")
        namespace = self.first.owner.namespace
        return f"{number} of {namespace}" if namespace else f"{number} without a namespace"


def group_equal(workloads: Iterable[WorkloadReview]) -> tuple[EqualWorkloads, ...]:
    """Group workloads whose rows differ only in the name; each group stands where its first workload stood."""
    groups: dict[tuple[object, ...], list[WorkloadReview]] = {}
    for workload in workloads:
        answer = (
            workload.trend,
            workload.fits,
            workload.summary,
            workload.previous,
            tuple(map(str, workload.reasons)),
        )
        groups.setdefault((workload.owner.namespace, *answer), []).append(workload)
    return tuple(EqualWorkloads(workloads=tuple(group)) for group in groups.values())


def tell_other_reasons(reasons: Sequence[Reason]) -> str:
    """All reasons but the first in one line, without their details; empty where there are none.

    `100 nodes: selector #0 of class h100 matches none of 8 devices; 2 nodes: the node is cordoned`.
    """
    heads: Counter[str] = Counter()
    for reason in reasons[1:]:
        heads[reason.message.partition(": ")[0] if reason.nodes else reason.message] += reason.nodes
    told = [
        f"{count_of(nodes, 'node')}: {head}" if nodes else head
        for head, nodes in heads.most_common(_MAX_HEADS)
    ]
    if len(heads) > _MAX_HEADS:
        told.append(count_of(len(heads) - _MAX_HEADS, "more reason"))
    return "; ".join(told)
