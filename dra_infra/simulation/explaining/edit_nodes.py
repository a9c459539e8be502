"""Edits of a pod, or of nodes, that let it go where it is refused for reasons outside of devices."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Final

from dra_infra.simulation.explaining.edits import Edit, Ladder
from dra_infra.simulation.explaining.question import Question

_TAINT: Final = re.compile(r"taint (?P<key>[^=:]+)(?:=(?P<value>[^:]*))?:(?P<effect>\w+) is not tolerated")
_SELECTOR: Final = re.compile(r"nodeSelector wants (?P<key>[^=]+)=")
_AMOUNT: Final = re.compile(r"the pod requests \S+ (?P<name>\S+), and")


def allow_nodes(question: Question) -> Iterator[Ladder]:
    """For each reason of nodes: without it."""
    names: dict[str, list[str]] = {}
    for node in question.nodes:
        if text := question.refusals.get(node.name):
            names.setdefault(text, []).append(node.name)
    for text, nodes in names.items():
        written = _write(text, nodes[0])
        if written is not None:
            number = "1 node" if len(nodes) == 1 else f"{len(nodes)} nodes"
            yield [
                Edit(
                    kind="allow-nodes",
                    text=f"let the pod go to {number}, which now refuse{'s' if len(nodes) == 1 else ''} it: {text}",
                    where=written[0],
                    line=written[1],
                    cost=20.0,
                    place="refusals",
                    apply=partial(_allowed, text=text),
                )
            ]


def _write(text: str, node: str) -> tuple[str, str] | None:
    """Field and line, by the reason that the node filters tell."""
    if taint := _TAINT.fullmatch(text):
        value = f', operator: Equal, value: "{taint["value"]}"' if taint["value"] else ", operator: Exists"
        return "the pod: spec.tolerations", f"- {{key: {taint['key']}{value}, effect: {taint['effect']}}}"
    if selector := _SELECTOR.match(text):
        return f"the pod: spec.nodeSelector.{selector['key']}", "(delete it, or label the nodes)"
    if text.startswith("required node affinity"):
        return "the pod: spec.affinity.nodeAffinity", "(add a term that matches the nodes)"
    if text == "the node is cordoned":
        return "the cluster", f"kubectl uncordon {node}"
    if amount := _AMOUNT.match(text):
        return f"the pod: resources.requests of {amount['name']}", "(ask for less, or free some on the node)"
    return None


def _allowed(question: Question, *, text: str) -> Question:
    kept = {name: reason for name, reason in question.refusals.items() if reason != text}
    return replace(question, refusals=kept)
