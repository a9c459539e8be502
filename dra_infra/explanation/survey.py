"""Every device of a cluster for each request, counted by the first thing that keeps it away.

A device that several nodes can use counts as on the node where it comes furthest. The tree of a request shows what
keeps devices from it, in order and counted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from typing import Final

from dra_infra.explanation.clauses import clauses_of, describe_values, join_values, shorten
from dra_infra.explanation.device_checks import (
    DeviceChecks,
    Stage,
    find_unusable_pools,
    list_selectors,
    tried_devices,
)
from dra_infra.explanation.further_causes import FurtherCauses, find_places
from dra_infra.explanation.node_kinds import NodeKind
from dra_infra.explanation.question import Holder, Leaf, Question
from dra_infra.explanation.records import (
    CHECKED,
    FAILED,
    NONE,
    NOWHERE,
    OUTDATED,
    PASSED,
    REFUSED,
    UNUSABLE_POOL,
    DeviceProgress,
    Progress,
    RequestTree,
    Rule,
    Step,
)
from dra_infra.explanation.shares import describe_left
from dra_infra.kubernetes.api import Node, ResourceSlice
from dra_infra.kubernetes.scheduler.allocator import DeviceID, PoolID, Published, RequestKey

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


def make_tree(
    question: Question,
    leaf: Leaf,
    found: DeviceProgress,
    devices: Mapping[DeviceID, Published],
    behind: Mapping[Progress, Mapping[Progress, int]],
) -> RequestTree:
    """The tree of one request or entry.

    Args:
        question: The question.
        leaf: The request.
        found: Where each device ends.
        devices: All devices, by name.
        behind: By where devices end: what else keeps them away, and how many of them.
    """
    groups: dict[Progress, list[Published]] = defaultdict(list)
    for device, at in found.at.items():
        groups[at].append(devices[device])
    others = {at for each in behind.values() for at in each}
    left = len(found.at)
    steps: dict[Progress, Step] = {}
    for rule, where, text, at, expression in _order(leaf, {*groups, *others}):
        removed = groups.get(at, [])
        left -= len(removed)
        values = describe_values(expression, removed) if removed and expression else ""
        if rule == "in-use" and text == "capacity":
            values = _describe_left(question, leaf, removed)
        holders = tuple(_name_holders(question, removed)) if rule == "in-use" else ()
        steps[at] = Step(
            rule=rule,
            where=where,
            text=text,
            removed=len(removed),
            left=left,
            values=values,
            holders=holders,
        )
    told = []
    for at, step in steps.items():
        also = tuple(
            _step_behind(question, leaf, steps[other], other, number, groups[at])
            for other, number in behind.get(at, {}).items()
        )
        if step.removed or step.rule in ("class", "request"):
            told.append(replace(step, also=also) if also else step)
    node = max(found.left, key=lambda name: found.left[name], default="")
    return RequestTree(
        claim=leaf.claim_name,
        request=leaf.wanted.full_name,
        device_class=leaf.wanted.device_class.metadata.name or "",
        count=None if leaf.is_all else leaf.wanted.count,
        candidates=len(found.at),
        steps=tuple(told),
        left=left,
        node=node,
        most=found.left[node] if node else 0,
    )


def _step_behind(
    question: Question, leaf: Leaf, step: Step, at: Progress, number: int, devices: Sequence[Published]
) -> Step:
    """A step as what also keeps a *number* of some devices away."""
    values = ""
    holders = tuple[str, ...]()
    if step.rule == "in-use":
        values = _describe_left(question, leaf, devices) if at.text == "capacity" else ""
        holders = tuple(_name_holders(question, devices))
    elif step.rule in ("class", "request"):
        clause = clauses_of(list_selectors(leaf.wanted)[at.rank].expression)[at.clause]
        values = describe_values(clause.expression, devices)
    left = max(len(devices) - number, 0)
    return replace(step, removed=number, left=left, values=values, holders=holders)


def _describe_left(question: Question, leaf: Leaf, devices: Sequence[Published]) -> str:
    """Tells what is left of the capacities of devices that have too little left."""
    cluster = question.cluster
    found = {
        describe_left(leaf.wanted.capacity, each, cluster.state, cluster.variant) for each in devices
    } - {""}
    return join_values(sorted(found))


def _order(leaf: Leaf, groups: Set[Progress]) -> Iterator[tuple[Rule, str, str, Progress, str]]:
    """Everything that devices can fail at, in order; clauses also where none fails."""
    early: dict[int, Rule] = {OUTDATED: "pool", NOWHERE: "no-node", REFUSED: "node", UNUSABLE_POOL: "pool"}
    for at in sorted(each for each in groups if each.stage < CHECKED):
        yield early[at.stage], "", at.text, at, ""
    for rank, selector in enumerate(list_selectors(leaf.wanted)):
        rule: Rule = "request" if selector.owner == "request" else "class"
        where = selector.where(leaf.wanted)
        for position, clause in enumerate(clauses_of(selector.expression)):
            yield rule, where, shorten(clause.text), Progress(CHECKED, rank, position), clause.expression
        for at in sorted(each for each in groups if each[:3] == (CHECKED, rank, FAILED)):
            yield "error", where, at.text, at, selector.expression
    for at in sorted(each for each in groups if CHECKED < each.stage < PASSED):
        yield _RULES[Stage(at.stage - CHECKED)], "", at.text, at, ""


def find_holders(question: Question, devices: Sequence[Published]) -> list[Holder]:
    """The claims that have some devices, or draw on the counters of their pools."""
    wanted = {each.id for each in devices}
    pools = {each.pool for each in devices if each.device.consumes_counters}
    return [
        holder
        for holder in question.holders
        if any(device in wanted or (device.driver, device.pool) in pools for device in holder.devices)
    ]


def _name_holders(question: Question, devices: Sequence[Published]) -> Iterator[str]:
    found = find_holders(question, devices)
    own = sum(holder.is_own for holder in found)
    named = [str(holder) for holder in found if not holder.is_own]
    yield from named[:_HELD_BY]
    if len(named) > _HELD_BY:
        yield f"{len(named) - _HELD_BY} more"
    if own:
        yield f"{own} claim{'' if own == 1 else 's'} of the pods before"


class Survey:
    """Looks at every node of a question: at one of each of *kinds*."""

    def __init__(
        self, question: Question, requests: Sequence[tuple[Leaf, ...]], kinds: Sequence[NodeKind]
    ) -> None:
        self._question = question
        self._requests = requests
        self._leaves = [leaf for entries in requests for leaf in entries]
        self._found = {leaf.key: DeviceProgress() for leaf in self._leaves}
        self._nodes = {node.name for node in question.nodes}
        self.devices: dict[DeviceID, Published] = {}
        self.checks_of: dict[str, DeviceChecks] = {}
        """By name of each node; nodes of one kind have that of the first."""
        self._start()
        cluster = question.cluster
        for node in question.nodes:
            if reasons := question.refusals.get(node.name):
                seen = [each.devices for each in cluster.pools(node)]
                seen += [each.devices for each in find_unusable_pools(cluster, node)]
                for device in (each.id for devices in seen for each in devices):
                    self._reach(device, Progress(REFUSED, text="; ".join(map(str, reasons))))
        for kind in kinds:
            checks = DeviceChecks(question.cluster, kind.first, question.declared_by(kind.first))
            ends = {leaf.key: self._ends(checks, leaf) for leaf in self._leaves}
            for node in kind.nodes:
                self.checks_of[node.name] = checks
                self._look(node, ends)

    def _start(self) -> None:
        index = self._question.cluster.index
        newest: dict[tuple[str, str], int] = defaultdict(int)
        for slice_ in self._question.slices:
            pool = PoolID.of(slice_)
            newest[pool] = max(newest[pool], slice_.spec.pool.generation)
        for slice_ in self._question.slices:
            pool = PoolID.of(slice_)
            generation = slice_.spec.pool.generation
            progress = Progress(NOWHERE, text=self._find_place(slice_))
            if generation != newest[pool]:
                text = f"of generation {generation} of resource pool {pool}, which has generation {newest[pool]} by now"
                progress = Progress(OUTDATED, text=text)
            for each in index.devices(slice_):
                if progress.stage == NOWHERE or each.id not in self.devices:
                    self.devices[each.id] = each
                self._reach(each.id, progress)

    def _find_place(self, slice_: ResourceSlice) -> str:
        """Describe why no node of the question sees a slice."""
        gate = self._question.cluster.index.ignored_for(slice_)
        if gate:
            return f"the scheduler ignores their slice, because the gate {gate} is off"
        node = slice_.spec.node_name
        if node and node not in self._nodes:
            return f"slices are for node {node}, which is not there"
        return "slices are for other nodes"

    def _reach(self, device: DeviceID, at: Progress) -> None:
        for found in self._found.values():
            if at > found.at.get(device, NONE):
                found.at[device] = at

    def _ends(self, checks: DeviceChecks, leaf: Leaf) -> list[Progress]:
        """Where each device of a node ends for a request."""
        return [
            Progress(PASSED)
            if result.stage is Stage.PASSED
            else next(find_places(checks, leaf, published, [result]))
            for (_, published), result in zip(checks.devices, checks.check_all(leaf), strict=True)
        ]

    def _look(self, node: Node, ends: Mapping[RequestKey, Sequence[Progress]]) -> None:
        cluster = self._question.cluster
        for trouble in find_unusable_pools(cluster, node):
            for each in trouble.devices:
                self.devices.setdefault(each.id, each)
                self._reach(each.id, Progress(UNUSABLE_POOL, text=str(trouble)))
        devices = tried_devices(cluster.pools(node), cluster.variant)
        for key, found in self._found.items():
            left = 0
            for (_, published), at in zip(devices, ends[key], strict=True):
                self.devices.setdefault(published.id, published)
                left += at.stage == PASSED
                if at > found.at.get(published.id, NONE):
                    found.at[published.id] = at
            found.left[node.name] = left

    def nearest(self) -> list[str]:
        """Names of nodes to which a pod may go, the one first that comes nearest."""
        known: dict[int, tuple[int, tuple[int, ...]]] = {}

        def lack(name: str) -> tuple[int, tuple[int, ...]]:
            checks = self.checks_of[name]
            if id(checks) not in known:
                known[id(checks)] = self._lack(checks, name)
            return known[id(checks)]

        return sorted(self.checks_of, key=lambda name: (lack(name), name))

    def _lack(self, checks: DeviceChecks, name: str) -> tuple[int, tuple[int, ...]]:
        alone = 0
        short = 0
        progress = list[int]()
        for entries in self._requests:
            lacks = [max(checks.wanted_count(leaf) - self._found[leaf.key].left[name], 0) for leaf in entries]
            short += min(lacks)
            alone += min(lacks) > 0
            reached = ((result.stage, result.rank) for leaf in entries for result in checks.check_all(leaf))
            far = max(reached, default=(-1, 0))
            progress += [-far[0], -far[1]]
        return alone, (*progress, short)

    def left(self, node: str, leaf: Leaf) -> int:
        """How many devices a request can have on a node."""
        return self._found[leaf.key].left[node]

    def trees(self, further: FurtherCauses) -> tuple[RequestTree, ...]:
        """One tree for each request and entry."""
        return tuple(
            make_tree(self._question, leaf, self._found[leaf.key], self.devices, further.behind(leaf))
            for leaf in self._leaves
        )

    def holders(self) -> list[Holder]:
        """The claims that have devices which nothing else keeps from a request."""
        devices = {
            device
            for found in self._found.values()
            for device, at in found.at.items()
            if at.stage == CHECKED + Stage.USED
        }
        return find_holders(self._question, [self.devices[each] for each in devices])

    def removed_by(self, leaf: Leaf) -> dict[tuple[int, int], list[Published]]:
        """By rank of a selector and number of its clause: the devices that fail there."""
        found: dict[tuple[int, int], list[Published]] = defaultdict(list)
        for device, at in self._found[leaf.key].at.items():
            if at.stage == CHECKED:
                found[at.rank, at.clause].append(self.devices[device])
        return found

    def stopped_at(self, leaf: Leaf, stage: Stage) -> dict[str, list[Published]]:
        """By what is said of it: the devices that fail at a stage."""
        found: dict[str, list[Published]] = defaultdict(list)
        for device, at in self._found[leaf.key].at.items():
            if stage is not Stage.SELECTOR and at.stage == CHECKED + stage:
                found[at.text].append(self.devices[device])
        return found
