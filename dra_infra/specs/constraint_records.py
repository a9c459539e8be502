"""The constraints of a claim, from what people ask for to their records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dra_infra.cel import Attribute
from dra_infra.errors import Problem
from dra_infra.model import names
from dra_infra.model.resource_claim import DeviceConstraint
from dra_infra.specs.arguments import is_list, shorten, too_many, wrong_type
from dra_infra.specs.requests import DistinctAttribute, MatchAttribute

MAX_REQUESTS: Final = 32
"""Most requests that a constraint names (DeviceRequestsMaxSize of resource/v1 types.go)."""


def compile_constraints(
    constraints: object, known: Sequence[str]
) -> tuple[list[Problem], list[DeviceConstraint]]:
    """The records of *constraints*, and what is wrong with them.

    Args:
        constraints: As the user gave them.
        known: Names of the claim's requests, alternatives as `request/alternative`.
    """
    if not isinstance(constraints, Sequence) or not is_list(constraints):
        hint = "constraints decide the structure: give a plain list"
        return [wrong_type("constraints", constraints, "a list of constraints", hint)], []
    problems: list[Problem] = []
    records = []
    for index, constraint in enumerate(constraints):
        path = f"constraints[{index}]"
        if not isinstance(constraint, (MatchAttribute, DistinctAttribute)):
            hint = "write dra.MatchAttribute(dra.gpu.product)"
            problems.append(wrong_type(path, constraint, "a constraint", hint))
            continue
        name = attribute_name(constraint.attribute)
        parts = names.split_qualified_name(name) if isinstance(name, str) else None
        # Up to 1.34 the server took capitals in the domain; no driver has any.
        if parts is None or not parts[0] or parts[0] != parts[0].lower():
            problems.append(
                Problem(
                    path=f"{path}.attribute",
                    code="invalid-attribute-name",
                    message=f"{shorten(name)} is not an attribute name with its domain",
                    hint='write "gpu.nvidia.com/productName", or dra.gpu.product',
                )
            )
        wanted = constraint.requests
        found = _check_requests(wanted, path, known)
        problems += found
        if found:
            continue
        records.append(
            DeviceConstraint(
                requests=list(wanted) or None,
                match_attribute=str(name) if isinstance(constraint, MatchAttribute) else None,
                distinct_attribute=str(name) if isinstance(constraint, DistinctAttribute) else None,
            )
        )
    return problems, records


def _check_requests(requests: object, path: str, known: Sequence[str]) -> list[Problem]:
    """What is wrong with the names of requests in a constraint."""
    if not isinstance(requests, Sequence) or not is_list(requests):
        hint = f"write requests={list(known[:2])!r}"
        return [wrong_type(f"{path}.requests", requests, "a list of names", hint)]
    problems = [
        _unknown_request(f"{path}.requests[{position}]", wanted, known)
        for position, wanted in enumerate(requests)
        if not isinstance(wanted, str) or wanted not in known
    ]
    if len(requests) > MAX_REQUESTS:
        problems.append(
            too_many(f"{path}.requests", len(requests), MAX_REQUESTS, "leave requests out for all of them")
        )
    seen: set[str] = set()
    for position, wanted in enumerate(each for each in requests if isinstance(each, str)):
        if wanted in seen:
            message = f"{shorten(wanted)} is named twice"
            problems.append(
                Problem(
                    path=f"{path}.requests[{position}]",
                    code="duplicate-item",
                    message=message,
                    hint="leave it out",
                )
            )
        seen.add(wanted)
    return problems


def attribute_name(attribute: object) -> object:
    """The name with its domain behind `attribute=`."""
    return attribute.qualified_name if isinstance(attribute, Attribute) else attribute


def _unknown_request(path: str, wanted: object, known: Sequence[str]) -> Problem:
    return Problem(
        path=path,
        code="unknown-request",
        message=f"{shorten(wanted)} is not a request of this claim",
        hint=f"its requests are {', '.join(map(repr, known))}",
    )
