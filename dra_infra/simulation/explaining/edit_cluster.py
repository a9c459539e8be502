"""Edits of what is around the claims: claims of others that are freed, and nodes that are added."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from dra_infra.model.fleet import Node
from dra_infra.simulation.explaining.edits import Edit, Ladder
from dra_infra.simulation.explaining.question import Holder, Question
from dra_infra.simulation.explaining.survey import Survey

_NODES: Final = 12
"""Nodes on which claims are freed, the nearest first."""
_MOST: Final = 32
"""Nodes that are added at most."""


def free_claims(question: Question, survey: Survey) -> Iterator[Ladder]:
    """Without claims of others: each alone, then all that have devices on a node, with fewer and fewer of them."""
    others = [each for each in question.holders if not each.is_own]
    seen: set[tuple[str, ...]] = set()
    nodes = {node.name: node for node in question.nodes}
    for name in survey.nearest()[:_NODES]:
        pools = {pool.id for pool in question.cluster.allocator.pools(nodes[name])}
        here = [
            each for each in others if any((device.driver, device.pool) in pools for device in each.devices)
        ]
        here.sort(key=lambda each: (len(each.users), len(each.devices), each.name))
        ladder = [_freed([each]) for each in here]
        ladder += [_freed(here[:number]) for number in range(2, len(here) + 1)]
        key = tuple(each.name for each in here)
        if ladder and key not in seen:
            seen.add(key)
            yield ladder


def _freed(holders: Sequence[Holder]) -> Edit:
    number = len(holders)
    names = ", ".join(str(each) for each in holders[:4]) + (f" and {number - 4} more" if number > 4 else "")
    return Edit(
        kind="free-claims",
        text=f"free {'the claim' if number == 1 else f'{number} claims'}: {names}",
        where="the cluster",
        line="; ".join(dict.fromkeys(line for each in holders[:4] for line in _deletion(each))),
        cost=40.0 + 6.0 * number + sum(len(each.users) for each in holders),
        place="holders",
        apply=partial(_without, names=frozenset(each.name for each in holders)),
    )


def _deletion(holder: Holder) -> Iterator[str]:
    """How its devices become free: its pods go, or the claim that none uses."""
    for each in holder.users or (holder.name,):
        kind, _, whole = each.partition(" ")
        namespace, slash, name = whole.partition("/")
        if slash and kind in ("Pod", "ResourceClaim"):
            yield f"kubectl delete {kind.lower()} -n {namespace} {name}"


def _without(question: Question, *, names: frozenset[str]) -> Question:
    return question.with_holders([each for each in question.holders if each.name not in names])


def add_nodes(question: Question, kinds: Sequence[Node], missing: int) -> Iterator[Ladder]:
    """With nodes like one that is there, with all their devices free."""
    for node in kinds:
        local = [each for each in question.slices if each.spec.node_name == node.name]
        if not local:
            continue
        numbers = sorted({1, *range(1, min(missing, 4) + 1), *([min(missing, _MOST)] if missing > 1 else [])})
        yield [
            Edit(
                kind="add-nodes",
                text=f"add {number} node{'' if number == 1 else 's'} like {node.name}",
                where="the fleet",
                line=f"{number} more of the kind of {node.name}",
                cost=60.0 + 4.0 * number,
                place="nodes",
                apply=partial(_added, like=node, number=number),
            )
            for number in numbers
        ]


def _added(question: Question, *, like: Node, number: int) -> Question:
    nodes, slices = [*question.nodes], [*question.slices]
    room = dict(question.room)
    for at in range(number):
        name = f"{like.name}-new-{at}"
        labels = {key: name if value == like.name else value for key, value in like.labels.items()}
        nodes.append(replace(like, name=name, labels=labels))
        for each in question.slices:
            if each.spec.node_name == like.name:
                pool = each.spec.pool.changed({"name": f"{each.spec.pool.name}-new-{at}"})
                spec = each.spec.changed({"node_name": name, "pool": pool})
                metadata = each.metadata.changed({"name": f"{each.metadata.name}-new-{at}"})
                slices.append(each.changed({"spec": spec, "metadata": metadata}))
        if like.name in room:
            room[name] = max(room[like.name], question.pods)
    return replace(
        question,
        nodes=tuple(nodes),
        slices=tuple(slices),
        room=room,
        cluster=question.cluster.with_slices(slices),
    )
