"""The answer to a question, as records that never change, and where devices end on their way to a request."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

from dra_infra.kubernetes.scheduler.allocator import DeviceID

FitVerdict = Literal["fits", "does-not-fit", "not-decided"]

Rule = Literal[
    "no-node",
    "node",
    "pool",
    "class",
    "request",
    "place",
    "gate",
    "taint",
    "capacity",
    "counter",
    "error",
    "in-use",
]
"""What keeps devices from a request: their slice is for no node that is known, the pod may not go to their node, their pool
gives nothing away, a selector of the class or of the request, ..."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """One thing that keeps devices from a request.

    Args:
        rule: What kind of thing.
        where: Whose it is: `class h100, selector #1`.
        text: What it says: the clause, the taint, the reason of a node.
        removed: How many devices it keeps away, of those that pass everything before.
        left: How many pass it.
        values: What the devices that are kept away have there: `memory is 40Gi`.
        holders: With `in-use`, claims that have them.
        also: What else keeps these devices away, where without this step alone the request still has too few.
    """

    rule: Rule
    where: str
    text: str
    removed: int
    left: int
    values: str = ""
    holders: tuple[str, ...] = ()
    also: tuple[Step, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class RequestTree:
    """All devices for one request, or one entry of a prioritized list, counted by what keeps them from it.

    Args:
        claim: `ResourceClaimTemplate ml/trainer`.
        request: Its name, with the entry's behind a slash.
        device_class: The class.
        count: How many devices; None for all that match.
        candidates: How many devices there are; with a class that is not there, each counts as one that it takes.
        steps: What keeps them away, in order; a device counts at the first thing on its best node.
        left: How many can be had.
        node: The node with most of those.
        most: How many it has.
    """

    claim: str
    request: str
    device_class: str
    count: int | None
    candidates: int
    steps: tuple[Step, ...]
    left: int
    node: str
    most: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Refusal:
    """Why pods may not go to nodes, whatever devices are there."""

    text: str
    nodes: int
    example: str


@dataclass(frozen=True, kw_only=True, slots=True)
class AttemptError:
    """The error that ends the scheduler's attempt for the pod.

    Args:
        text: As the scheduler words it.
        claim: The claim, where the error is about one.
        where: The selector: `class h100, selector #1`.
        expression: What it says.
        device: The device on which it has no value.
    """

    text: str
    claim: str = ""
    where: str = ""
    expression: str = ""
    device: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """One line of an edit, or one argument in Python.

    Args:
        where: The object and field, or `the cluster` for a command.
        line: The line to write there, or the command; a long argument is of several lines.
    """

    where: str
    line: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Suggestion:
    """An edit that the allocator itself says fits.

    Args:
        kind: `fewer-devices`, `lower-bound`, `other-value`, `other-domain`, `other-comparison`, `drop-clause`, `tolerate`,
            `drop-constraint`, `lower-capacity`, `other-class`, `guard`, `allow-nodes`, `free-claims`, `add-nodes`; of two
            edits both, joined by ` + `.
        text: What changes, in words.
        where: The objects and fields, joined by `; `.
        line: The lines to write there, joined by `; `.
        node: Where the pod then goes.
        changes: The same one by one, each with its object and field.
        refused: What a quota says of it; told only where quotas refuse everything that fits.
    """

    kind: str
    text: str
    where: str
    line: str
    node: str
    changes: tuple[Change, ...] = ()
    refused: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Explanation:
    """Why the pods of one object fit, or do not.

    Args:
        verdict: The answer.
        kubernetes: The minor whose allocator answered.
        nodes: How many nodes there are.
        pods: How many pods are asked for.
        placed: How many of them fit.
        node: With `fits`, the node of the first pod; else the node that came nearest, empty where none is in question.
        nearest: What is in the way there.
        devices: With `fits`, the devices of the first pod.
        refusals: Nodes to which pods may not go, most first.
        requests: What becomes of the devices, by request.
        proof: Why nothing can be allocated even if all devices were free; empty where that is not so, or not known.
        beyond: What there would be too little of even if devices failed nothing of the trees; empty where that is enough. Where a class
            is not there, also what a quota says.
        outranked: Holders of devices whose pods have a lower priority, and keep them.
        error: What ends the attempt for the pod.
        suggestions: The smallest edits that fit, the smallest first.
        quirks: Bugs of the minor that decide.
        unknown: What was not found out, and why.
    """

    verdict: FitVerdict
    kubernetes: str
    nodes: int
    pods: int = 1
    placed: int = 0
    node: str = ""
    nearest: str = ""
    devices: tuple[str, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    requests: tuple[RequestTree, ...] = ()
    proof: str = ""
    beyond: str = ""
    outranked: tuple[str, ...] = ()
    error: AttemptError | None = None
    suggestions: tuple[Suggestion, ...] = ()
    quirks: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


OUTDATED = -4
NOWHERE = -3
REFUSED = -2
UNUSABLE_POOL = -1
CHECKED = 0
"""Stages before a node's checks: an older generation of the pool, no node, nodes that refuse the pod, pools that give nothing. Those of the checks follow."""

PASSED: Final = 99
"""Behind all stages: the request can have the device."""

FAILED: Final = 98
"""In place of the number of a clause, where the selector has no value on a device."""


class Progress(NamedTuple):
    """How far a device comes on its way to a request; the higher the further.

    Args:
        stage: One of the above, or `CHECKED` and the stage of a check.
        rank: Number of selectors that it passes.
        clause: Number of the clause that it fails.
        text: What is said of it.
    """

    stage: int
    rank: int = 0
    clause: int = 0
    text: str = ""


NONE: Final = Progress(-9)
"""Before everything."""


@dataclass(slots=True)
class DeviceProgress:
    """How far each device comes for one request, and how many can be had by node."""

    at: dict[DeviceID, Progress] = field(default_factory=dict)
    left: Counter[str] = field(default_factory=Counter)
