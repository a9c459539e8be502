"""NodeSelector against nodes, as k8s.io/component-helpers/scheduling/corev1/nodeaffinity matches it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dra_infra.model.fleet import Node

_INT64 = re.compile(r"[+-]?[0-9]{1,19}", re.ASCII)
_NAME_FIELD = "metadata.name"


def matches_node_selector(selector: Mapping[str, Any], node: Node) -> bool:
    """Whether one of the selector's terms is true for the node; a selector without terms matches nothing."""
    terms = selector.get("nodeSelectorTerms")
    return any(_matches_term(term, node) for term in _objects(terms))


def _matches_term(term: Mapping[str, Any], node: Node) -> bool:
    expressions, fields = _objects(term.get("matchExpressions")), _objects(term.get("matchFields"))
    if not expressions and not fields:
        return False
    return all(matches_label(requirement, node.labels) for requirement in expressions) and all(
        _matches_field(requirement, node.name) for requirement in fields
    )


def matches_label(requirement: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Whether labels meet one requirement; an operator that is not known is met by none."""
    value = labels.get(str(requirement.get("key")))
    values = _values(requirement)
    match requirement.get("operator"):
        case "In":
            return value is not None and value in values
        case "NotIn":
            return value is None or value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt":
            return _compares(value, values, above=True)
        case "Lt":
            return _compares(value, values, above=False)
        case _:
            return False


def _matches_field(requirement: Mapping[str, Any], name: str) -> bool:
    values = _values(requirement)
    if requirement.get("key") != _NAME_FIELD or len(values) != 1:
        return False
    match requirement.get("operator"):
        case "In":
            return values[0] == name
        case "NotIn":
            return values[0] != name
        case _:
            return False


def _compares(value: str | None, values: Sequence[str], *, above: bool) -> bool:
    if value is None or len(values) != 1 or not (_INT64.fullmatch(value) and _INT64.fullmatch(values[0])):
        return False
    return int(value) > int(values[0]) if above else int(value) < int(values[0])


def _values(requirement: Mapping[str, Any]) -> list[str]:
    values = requirement.get("values")
    return [str(value) for value in values] if isinstance(values, list) else []


def _objects(value: Any) -> list[Mapping[str, Any]]:
    items: Iterable[Any] = value if isinstance(value, list) else ()
    return [item for item in items if isinstance(item, Mapping)]
