"""Small changes of a question, each as the line to write and as what it makes of the question.

Besides edits of the claims, there are edits of what is around them (claims of others that are freed, nodes that are
added), and edits of a pod, or of nodes, that let it go where it is refused for reasons outside of devices.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, TypeAlias

from dra_infra.explanation.question import Holder, Leaf, Question
from dra_infra.explanation.survey import Survey
from dra_infra.kubernetes.api import (
    DeviceClass,
    DeviceConstraint,
    DeviceSelector,
    DeviceSubRequest,
    ExactDeviceRequest,
    Node,
    ResourceClaim,
)
from dra_infra.kubernetes.scheduler import NodeRefusal
from dra_infra.kubernetes.scheduler.allocator import RequestKey


@dataclass(frozen=True, kw_only=True, slots=True)
class Edit:
    """One change.

    Args:
        kind: As in `Suggestion`.
        text: What changes, in words.
        where: Object and field.
        lines: The lines to write there, or the commands.
        cost: How large the change is; 10 is about one device fewer.
        place: What it changes: of two edits of one place the later stands.
        apply: What it makes of a question.
    """

    kind: str
    text: str
    where: str
    lines: tuple[str, ...]
    cost: float
    place: str
    apply: Callable[[Question], Question] = field(compare=False, repr=False)


Ladder: TypeAlias = Sequence[Edit]
"""Edits of which only the first that fits is told, the smallest first."""


def field_of(question: Question, leaf: Leaf, below: str) -> str:
    """Object and field as a person finds it: `ResourceClaimTemplate ml/a: spec.spec.devices.requests[0].exactly.count`."""
    asked = question.claims[leaf.key.claim]
    if asked.is_generated:
        return f"{asked.name}, {leaf.wanted.name}"
    return f"{asked.name}: {asked.path}.{leaf.path}.{below}"


def change_leaf(question: Question, key: RequestKey, **values: Any) -> Question:
    """The question with other values in one request, or in one entry of a prioritized list."""
    claim = question.asked[key.claim]
    requests = list(claim.spec.devices.requests or ())
    request = requests[key.request]
    if request.first_available:
        entries = list(request.first_available)
        entries[key.sub] = entries[key.sub].changed(values)
        requests[key.request] = request.changed({"first_available": entries})
    elif request.exactly is not None:
        requests[key.request] = request.changed({"exactly": request.exactly.changed(values)})
    return question.with_claim(key.claim, _with_devices(claim, requests=requests))


def leaf_at(question: Question, key: RequestKey) -> ExactDeviceRequest | DeviceSubRequest:
    """The request, or alternative, with this key."""
    request = (question.asked[key.claim].spec.devices.requests or ())[key.request]
    if request.first_available:
        return request.first_available[key.sub]
    return request.exactly or ExactDeviceRequest()


def change_selector(
    selectors: Sequence[DeviceSelector], number: int, expression: str
) -> list[DeviceSelector]:
    """Selectors with another expression in one of them. `true` stays in place of one that goes, for others have numbers."""
    found = list(selectors)
    if (cel := found[number].cel) is not None:
        found[number] = found[number].changed({"cel": cel.changed({"expression": expression})})
    return found


def change_class(question: Question, name: str, number: int, expression: str) -> Question:
    """The question with another expression in one selector of a class."""
    device_class: DeviceClass = question.cluster.classes[name]
    selectors = change_selector(device_class.spec.selectors or (), number, expression)
    changed = device_class.changed({"spec": device_class.spec.changed({"selectors": selectors})})
    return question.with_cluster(question.cluster.with_class(changed))


def drop_constraint(question: Question, claim: int, constraint: DeviceConstraint) -> Question:
    """The question without one constraint of a claim."""
    kept = [each for each in question.asked[claim].spec.devices.constraints or () if each is not constraint]
    return question.with_claim(claim, _with_devices(question.asked[claim], constraints=kept or None))


def _with_devices(claim: ResourceClaim, **values: Any) -> ResourceClaim:
    devices = claim.spec.devices.changed(values)
    return claim.changed({"spec": claim.spec.changed({"devices": devices})})


_NODES: Final = 12
"""Nodes on which claims are freed, the nearest first."""
_FREED: Final = 64
"""Claims that are freed together at most."""
_MOST: Final = 32
"""Nodes that are added at most."""


def free_claims(question: Question, survey: Survey) -> Iterator[Ladder]:
    """Without claims of others: each alone, then all that have devices on a node, with fewer and fewer of them."""
    others = [each for each in question.holders if not each.is_own and each.name not in question.kept]
    seen: set[tuple[str, ...]] = set()
    nodes = {node.name: node for node in question.nodes}
    for name in survey.nearest()[:_NODES]:
        pools = {pool.id for pool in question.cluster.pools(nodes[name])}
        here = [
            each for each in others if any((device.driver, device.pool) in pools for device in each.devices)
        ]
        here.sort(key=lambda each: (len(each.users), len(each.devices), each.name))
        ladder = [_freed([each]) for each in here]
        ladder += [_freed(here[:number]) for number in range(2, min(len(here), _FREED) + 1)]
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
        lines=tuple(dict.fromkeys(line for each in holders for line in _deletion(each))),
        cost=40.0 + 6.0 * number + sum(len(each.users) for each in holders),
        place="holders",
        apply=partial(_without, names=frozenset(each.name for each in holders)),
    )


def _deletion(holder: Holder) -> Iterator[str]:
    """How its devices become free: its pods go, or the claim that none uses."""
    for each in holder.users or ((holder.ref,) if holder.ref else ()):
        if each.namespace:
            # A server that lies about names gets no shell to say more.
            yield shlex.join(["kubectl", "delete", each.kind.lower(), "-n", each.namespace, each.name])


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
                lines=(f"{number} more of the kind of {node.name}",),
                cost=60.0 + 4.0 * number,
                place="nodes",
                apply=partial(_added, like=node, number=number),
            )
            for number in numbers
        ]


def _added(question: Question, *, like: Node, number: int) -> Question:
    nodes = [*question.nodes]
    slices = [*question.slices]
    room = dict(question.room)
    refusals = dict(question.refusals)
    like_it = {*question.refuse(like)}
    for at in range(number):
        name = f"{like.name}-new-{at}"
        labels = {key: name if value == like.name else value for key, value in like.labels.items()}
        nodes.append(replace(like, name=name, labels=labels))
        # What the node that is there refused too, another edit has allowed.
        if refused := tuple(each for each in question.refuse(nodes[-1]) if each not in like_it):
            refusals[name] = refused
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
        refusals=refusals,
        room=room,
        cluster=question.cluster.with_slices(slices),
    )


def allow_nodes(question: Question) -> Iterator[Ladder]:
    """For each reason of nodes: without it."""
    names: dict[NodeRefusal, list[str]] = {}
    for node in question.nodes:
        for refusal in question.refusals.get(node.name, ()):
            names.setdefault(refusal, []).append(node.name)
    for refusal, refusing in names.items():
        # Those that have other reasons too go on refusing it.
        nodes = [name for name in refusing if len(question.refusals[name]) == 1] or refusing
        written = _write(refusal, nodes)
        if written is not None:
            number = "1 node" if len(nodes) == 1 else f"{len(nodes)} nodes"
            yield [
                Edit(
                    kind="allow-nodes",
                    text=f"let the pod go to {number}, which now refuse{'s' if len(nodes) == 1 else ''} it: {refusal}",
                    where=written[0],
                    lines=written[1],
                    cost=20.0,
                    place=f"refusals {refusal}",
                    apply=partial(_allowed, refusal=refusal),
                )
            ]


def _write(refusal: NodeRefusal, nodes: Sequence[str]) -> tuple[str, tuple[str, ...]] | None:
    """Return the field and the lines with which the nodes let the pod in; None where nothing can be written."""
    if (taint := refusal.taint) is not None:
        value = f', operator: Equal, value: "{taint.value}"' if taint.value else ", operator: Exists"
        line = f"- {{key: {taint.key}{value}, effect: {taint.effect}}}"
        return "the pod: spec.tolerations", (line,)
    if refusal.field == "nodeSelector":
        return f"the pod: spec.nodeSelector.{refusal.key}", ("(delete it, or label the nodes)",)
    if refusal.field == "affinity":
        at = "the pod: spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
        term = f"- {{matchFields: [{{key: metadata.name, operator: In, values: [{nodes[0]}]}}]}}"
        return at, (f"{term}  # or whatever labels the {len(nodes)} nodes have" if len(nodes) > 1 else term,)
    if refusal.field == "nodeName":
        return "the pod: spec.nodeName", ("(delete it: the scheduler then chooses among these nodes)",)
    if refusal.field == "unschedulable":
        return "the cluster", tuple(f"kubectl uncordon {node}" for node in nodes)
    if refusal.field == "resources":
        line = "(ask for less, or free some on the node)"
        return f"the pod: resources.requests of {refusal.key}", (line,)
    return None


def _allowed(question: Question, *, refusal: NodeRefusal) -> Question:
    kept = {
        name: left
        for name, reasons in question.refusals.items()
        if (left := tuple(reason for reason in reasons if reason != refusal))
    }
    return replace(question, refusals=kept)
