"""What becomes of every device of a cluster for each request, counted by the first thing that keeps it away.

A device that several nodes can use counts as on the node where it comes furthest.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from dra_infra.model.fleet import Node
from dra_infra.simulation.allocation.identity import DeviceID, Published
from dra_infra.simulation.allocation.requests import Key
from dra_infra.simulation.allocation.slices import pool_of
from dra_infra.simulation.explaining.clauses import clauses_of
from dra_infra.simulation.explaining.leaves import Leaf
from dra_infra.simulation.explaining.node_kinds import NodeKind
from dra_infra.simulation.explaining.question import Question
from dra_infra.simulation.explaining.records import RequestTree, Rule, Step
from dra_infra.simulation.explaining.sieve import (
    Fate,
    Sieve,
    Stage,
    find_troubles,
    selector_lists,
    tried_devices,
)
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
_PASSED: Final = 99
FAILED: Final = 98
"""In place of the number of a clause, where the selector has no value on a device."""


class _At(NamedTuple):
    """A place in the order of things; the higher the further a device comes."""

    stage: int
    rank: int = 0
    clause: int = 0
    text: str = ""


_NOWHERE, _REFUSED, _TROUBLED, _SIEVED = -3, -2, -1, 0
_NONE: Final = _At(-9)


@dataclass(slots=True)
class _Found:
    """Where each device ends, for one request."""

    at: dict[DeviceID, _At] = field(default_factory=dict)
    left: Counter[str] = field(default_factory=Counter)


class Survey:
    """Looks at every node of a question.

    Args:
        question: The question.
        requests: The requests of its claims, each with its entries.
        kinds: The kinds of its nodes: one node of each is looked at.
    """

    def __init__(
        self, question: Question, requests: Sequence[tuple[Leaf, ...]], kinds: Sequence[NodeKind]
    ) -> None:
        self._question = question
        self._requests = requests
        self._leaves = [leaf for entries in requests for leaf in entries]
        self._found = {leaf.key: _Found() for leaf in self._leaves}
        self.devices: dict[DeviceID, Published] = {}
        self.sieves: dict[str, Sieve] = {}
        """By name of each node; nodes of one kind have that of the first."""
        self._start()
        index = question.cluster.index
        for node in question.nodes:
            if refusal := question.refusals.get(node.name):
                for slice_ in index.relevant(node):
                    for each in index.devices(slice_):
                        self._reach(each.id, _At(_REFUSED, text=refusal))
        for kind in kinds:
            sieve = Sieve(question.cluster, kind.first, question.declared_by(kind.first))
            ends = {leaf.key: self._ends(sieve, leaf) for leaf in self._leaves}
            for node in kind.nodes:
                self.sieves[node.name] = sieve
                self._look(node, ends)

    def _start(self) -> None:
        index = self._question.cluster.index
        newest: dict[tuple[str, str], int] = defaultdict(int)
        for slice_ in self._question.slices:
            pool = pool_of(slice_)
            newest[pool] = max(newest[pool], slice_.spec.pool.generation)
        for slice_ in self._question.slices:
            if slice_.spec.pool.generation == newest[pool_of(slice_)]:
                where = (
                    f"slices are for node {slice_.spec.node_name}"
                    if slice_.spec.node_name
                    else "slices are for other nodes"
                )
                for each in index.devices(slice_):
                    self.devices[each.id] = each
                    self._reach(
                        each.id,
                        _At(
                            _NOWHERE, text=f"{where}, which is not there" if slice_.spec.node_name else where
                        ),
                    )

    def _reach(self, device: DeviceID, at: _At) -> None:
        for found in self._found.values():
            if at > found.at.get(device, _NONE):
                found.at[device] = at

    def _ends(self, sieve: Sieve, leaf: Leaf) -> list[_At]:
        """Where each device of a node ends for a request."""
        return [
            _At(_PASSED) if fate.stage is Stage.PASSED else self._place(sieve, leaf, published, fate)
            for (_, published), fate in zip(sieve.devices, sieve.fates(leaf), strict=True)
        ]

    def _look(self, node: Node, ends: Mapping[Key, Sequence[_At]]) -> None:
        cluster = self._question.cluster
        for trouble in find_troubles(cluster, node):
            for slice_ in cluster.index.relevant(node):
                if pool_of(slice_) == trouble.pool:
                    for each in cluster.index.devices(slice_):
                        self.devices.setdefault(each.id, each)
                        self._reach(each.id, _At(_TROUBLED, text=str(trouble)))
        devices = tried_devices(cluster.allocator.pools(node), cluster.variant)
        for key, found in self._found.items():
            left = 0
            for (_, published), at in zip(devices, ends[key], strict=True):
                self.devices.setdefault(published.id, published)
                left += at.stage == _PASSED
                if at > found.at.get(published.id, _NONE):
                    found.at[published.id] = at
            found.left[node.name] = left

    def _place(self, sieve: Sieve, leaf: Leaf, published: Published, fate: Fate) -> _At:
        if fate.stage is not Stage.SELECTOR:
            return _At(_SIEVED + fate.stage, text=fate.detail)
        if fate.is_error:
            return _At(_SIEVED, fate.rank, FAILED, fate.detail)
        return _At(_SIEVED, fate.rank, self._clause(sieve, leaf, published, fate))

    def _clause(self, sieve: Sieve, leaf: Leaf, published: Published, fate: Fate) -> int:
        """The first test of the selector that is false."""
        selectors = dict(selector_lists(leaf.wanted))[fate.owner]
        selector = selectors[fate.number]
        clauses = clauses_of(selector.cel.expression if selector.cel is not None else "")
        for number, clause in enumerate(clauses[:-1] if len(clauses) > 1 else ()):
            if sieve.evaluate(clause.expression, published) is False:
                return number
        return len(clauses) - 1

    def nearest(self) -> list[str]:
        """Names of nodes to which a pod may go, the one first that comes nearest."""
        known: dict[int, tuple[int, tuple[int, ...]]] = {}

        def lack(name: str) -> tuple[int, tuple[int, ...]]:
            sieve = self.sieves[name]
            if id(sieve) not in known:
                known[id(sieve)] = self._lack(sieve, name)
            return known[id(sieve)]

        return sorted(self.sieves, key=lambda name: (lack(name), name))

    def _lack(self, sieve: Sieve, name: str) -> tuple[int, tuple[int, ...]]:
        alone, short, progress = 0, 0, list[int]()
        for entries in self._requests:
            lacks = [max(sieve.wanted_count(leaf) - self._found[leaf.key].left[name], 0) for leaf in entries]
            short += min(lacks)
            alone += min(lacks) > 0
            reached = ((fate.stage, fate.rank) for leaf in entries for fate in sieve.fates(leaf))
            far = max(reached, default=(-1, 0))
            progress += [-far[0], -far[1]]
        return alone, (*progress, short)

    def left(self, node: str, leaf: Leaf) -> int:
        """How many devices a request can have on a node."""
        return self._found[leaf.key].left[node]

    def trees(self) -> tuple[RequestTree, ...]:
        """One tree for each request and entry."""
        return tuple(self._tree(leaf) for leaf in self._leaves)

    def removed_by(self, leaf: Leaf) -> dict[tuple[int, int], list[Published]]:
        """By rank of a selector and number of its clause: the devices that fail there."""
        found: dict[tuple[int, int], list[Published]] = defaultdict(list)
        for device, at in self._found[leaf.key].at.items():
            if at.stage == _SIEVED:
                found[at.rank, at.clause].append(self.devices[device])
        return found

    def stopped_at(self, leaf: Leaf, stage: Stage) -> dict[str, list[Published]]:
        """By what is said of it: the devices that fail at a stage."""
        found: dict[str, list[Published]] = defaultdict(list)
        for device, at in self._found[leaf.key].at.items():
            if stage is not Stage.SELECTOR and at.stage == _SIEVED + stage:
                found[at.text].append(self.devices[device])
        return found

    def _tree(self, leaf: Leaf) -> RequestTree:
        found = self._found[leaf.key]
        groups: dict[_At, list[Published]] = defaultdict(list)
        for device, at in found.at.items():
            groups[at].append(self.devices[device])
        left = len(found.at)
        steps = []
        for rule, where, text, at, expression in self._order(leaf, groups):
            removed = groups.get(at, [])
            left -= len(removed)
            values = describe_values(expression, removed) if removed and expression else ""
            holders = self._holders(removed) if rule == "in-use" else ()
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

    def _order(
        self, leaf: Leaf, groups: dict[_At, list[Published]]
    ) -> Iterator[tuple[Rule, str, str, _At, str]]:
        """Everything that devices can fail at, in order; clauses also where none fails."""
        early: dict[int, Rule] = {_NOWHERE: "no-node", _REFUSED: "node", _TROUBLED: "pool"}
        for at in sorted(each for each in groups if each.stage < _SIEVED):
            yield early[at.stage], "", at.text, at, ""
        rank = 0
        for owner, selectors in selector_lists(leaf.wanted):
            rule: Rule = "request" if owner == "request" else "class"
            for number, selector in enumerate(selectors):
                whose = f"request {leaf.wanted.full_name}" if owner == "request" else owner
                where = f"{whose}, selector #{number}"
                expression = selector.cel.expression if selector.cel is not None else ""
                for position, clause in enumerate(clauses_of(expression)):
                    yield rule, where, shorten(clause.text), _At(_SIEVED, rank, position), clause.expression
                for at in sorted(each for each in groups if each[:3] == (_SIEVED, rank, FAILED)):
                    yield "error", where, at.text, at, expression
                rank += 1
        for at in sorted(each for each in groups if _SIEVED < each.stage < _PASSED):
            yield _RULES[Stage(at.stage - _SIEVED)], "", at.text, at, ""

    def _holders(self, devices: Sequence[Published]) -> tuple[str, ...]:
        wanted = {each.id for each in devices}
        pools = {each.pool for each in devices if each.device.consumes_counters}
        found = [
            holder
            for holder in self._question.holders
            if any(device in wanted or (device.driver, device.pool) in pools for device in holder.devices)
        ]
        own = sum(holder.is_own for holder in found)
        named = [str(holder) for holder in found if not holder.is_own]
        more = [f"{len(named) - _HELD_BY} more"] if len(named) > _HELD_BY else []
        before = [f"{own} claim{'' if own == 1 else 's'} of the pods before"] if own else []
        return (*named[:_HELD_BY], *more, *before)
