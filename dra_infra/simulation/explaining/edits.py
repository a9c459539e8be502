"""Small changes of a question, each as the line to write and as what it makes of the question."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from dra_infra.model.device_class import DeviceClass, DeviceSelector
from dra_infra.model.resource_claim import (
    DeviceConstraint,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaim,
)
from dra_infra.simulation.allocation.requests import Key
from dra_infra.simulation.explaining.leaves import Leaf
from dra_infra.simulation.explaining.question import Question


@dataclass(frozen=True, kw_only=True, slots=True)
class Edit:
    """One change.

    Args:
        kind: As in `Suggestion`.
        text: What changes, in words.
        where: Object and field.
        line: The line to write there.
        cost: How large the change is; 10 is about one device fewer.
        place: What it changes: two edits of one place do not go together.
        apply: What it makes of a question.
    """

    kind: str
    text: str
    where: str
    line: str
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


def change_leaf(question: Question, key: Key, **values: Any) -> Question:
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


def leaf_at(question: Question, key: Key) -> ExactDeviceRequest | DeviceSubRequest:
    """What one request asks for."""
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
