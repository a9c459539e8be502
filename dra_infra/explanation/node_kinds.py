"""Kinds of nodes on which a question, and every edit of it, has the same answer.

One node of each kind is enough to try.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

from dra_infra.explanation.question import Question
from dra_infra.kubernetes.api import Node, expressions_of
from dra_infra.kubernetes.cel import Dependencies, find_dependencies
from dra_infra.kubernetes.scheduler.allocator import (
    DeviceKinds,
    Pool,
    Published,
    attribute_values,
    device_matches_node,
    static_attribute,
)


@dataclass(frozen=True, slots=True)
class NodeKind:
    """Nodes that are alike: the first of them stands for all."""

    nodes: tuple[Node, ...]

    @property
    def first(self) -> Node:
        """The one that is looked at."""
        return self.nodes[0]


def sort_nodes(question: Question) -> list[NodeKind]:
    """The kinds of the nodes to which a pod may go, in order of their first nodes."""
    reads = _reads(question)
    kinds = DeviceKinds(question.cluster.variant)
    attributes = {
        name
        for claim in question.asked
        for each in claim.spec.devices.constraints or ()
        for name in (each.match_attribute, each.distinct_attribute)
        if name is not None
    }
    found: dict[Hashable, list[Node]] = {}
    for node in question.eligible:
        numbers: dict[tuple[str, Hashable], int] = {}
        reader = _Reader(question, kinds, reads, sorted(attributes), node, numbers)
        content = tuple(reader.pool(pool) for pool in question.cluster.pools(node))
        key = (content, question.declared_by(node), question.room.get(node.name, question.pods) > 0)
        found.setdefault(key, []).append(node)
    return [NodeKind(tuple(nodes)) for nodes in found.values()]


def _reads(question: Question) -> Dependencies:
    """Everything that selectors of these claims and of any class read; None where that is not known."""
    found: set[tuple[str, str, str]] = set()
    for expression in _expressions(question):
        reads = find_dependencies(expression)
        if reads is None:
            return None
        found |= reads
    return frozenset(found)


def _expressions(question: Question) -> Iterator[str]:
    for device_class in question.cluster.classes.values():
        yield from expressions_of(device_class.spec.selectors)
    for claim in question.asked:
        for request in claim.spec.devices.requests or ():
            for _, _, leaf in request.leaves:
                yield from expressions_of(leaf.selectors)
                yield from (each.expression for each in leaf.derived_attributes or ())


@dataclass(slots=True)
class _Reader:
    """Reads the devices of one node; `numbers` tells which values are equal there, which is all that matters of them."""

    question: Question
    kinds: DeviceKinds
    reads: Dependencies
    attributes: Sequence[str]
    node: Node
    numbers: dict[tuple[str, Hashable], int]

    def pool(self, pool: Pool) -> Hashable:
        is_shared = bool(pool.elsewhere) or any(not each.slice.spec.node_name for each in pool.devices)
        return (
            pool.id if is_shared else pool.id.driver,
            # In 1.35 pools of one name and several drivers share counters.
            self.numbers.setdefault(("pool", pool.id.pool), len(self.numbers)),
            pool.is_incomplete,
            pool.counts,
            bool(pool.invalid),
            tuple((name, *sorted(counters.items())) for name, counters in sorted(pool.counters.items())),
            tuple(map(self.device, pool.devices)),
        )

    def device(self, published: Published) -> Hashable:
        device = published.device
        spec = published.slice.spec
        state = self.question.cluster.state
        return (
            self.kinds.number(self.reads, published),
            published.shareable,
            # 1.34 looks at another device of the slice, by its position.
            published.index,
            tuple(self.shared(published, name) for name in self.attributes),
            tuple((each.key, each.value, each.effect) for each in device.taints or ()),
            repr(device.consumes_counters) if device.consumes_counters else None,
            tuple(
                (name, each.value, repr(each.request_policy) if each.request_policy else None)
                for name, each in sorted((device.capacity or {}).items())
            ),
            device.binding_conditions is None or len(device.binding_conditions),
            repr(spec.skip_node_operations) if spec.skip_node_operations else None,
            not spec.per_device_node_selection or device_matches_node(device, self.node),
            state.has_whole(published.id),
            state.has_share(published.id),
            tuple(sorted(state.consumed(published.id).items())),
        )

    def shared(self, published: Published, name: str) -> int:
        attribute = static_attribute(published, name)
        content = None if attribute is None else attribute_values(attribute)
        return -1 if content is None else self.numbers.setdefault((name, content), len(self.numbers))
