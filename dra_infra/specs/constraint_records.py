"""The constraints of a claim, from what people ask for to their records."""

from __future__ import annotations

from collections.abc import Sequence

from dra_infra.cel import Attribute
from dra_infra.errors import Problem
from dra_infra.model import names
from dra_infra.model.resource_claim import DeviceConstraint
from dra_infra.specs.arguments import is_list, wrong_type
from dra_infra.specs.requests import DistinctAttribute, MatchAttribute


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
        if parts is None or not parts[0]:
            problems.append(
                Problem(
                    path=f"{path}.attribute",
                    code="invalid-attribute-name",
                    message=f"{name!r} is not an attribute name with its domain",
                    hint='write "gpu.nvidia.com/productName", or dra.gpu.product',
                )
            )
        problems += [
            _unknown_request(f"{path}.requests[{position}]", wanted, known)
            for position, wanted in enumerate(constraint.requests)
            if wanted not in known
        ]
        records.append(
            DeviceConstraint(
                requests=list(constraint.requests) or None,
                match_attribute=str(name) if isinstance(constraint, MatchAttribute) else None,
                distinct_attribute=str(name) if isinstance(constraint, DistinctAttribute) else None,
            )
        )
    return problems, records


def attribute_name(attribute: object) -> object:
    """The name with its domain behind `attribute=`."""
    return attribute.qualified_name if isinstance(attribute, Attribute) else attribute


def _unknown_request(path: str, wanted: object, known: Sequence[str]) -> Problem:
    return Problem(
        path=path,
        code="unknown-request",
        message=f"{wanted!r} is not a request of this claim",
        hint=f"its requests are {', '.join(map(repr, known))}",
    )
