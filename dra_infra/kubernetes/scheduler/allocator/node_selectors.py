"""Node selectors of slices that API servers store and the allocator cannot parse, which ends every attempt.

Servers check how many values `Gt` and `Lt` have, and the allocator that the value is a number.
Source: NewNodeSelector in k8s.io/component-helpers/scheduling/corev1/nodeaffinity, NewRequirement in
k8s.io/apimachinery/pkg/labels.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from dra_infra.kubernetes.api.go_text import quoted
from dra_infra.kubernetes.api.resource_slice import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm

_INTEGER: Final = re.compile(r"[+-]?[0-9]+", re.ASCII)
_LEAST: Final = -(2**63)
_MOST: Final = 2**63 - 1


def find_parse_error(selector: NodeSelector) -> str:
    """Return the allocator's error on a node selector that it cannot parse; empty if it can."""
    errors = list(dict.fromkeys(_list_errors(selector)))
    if not errors:
        return ""
    text = errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]"
    return f"failed to parse node selector {_show_selector(selector)}: {text}"


def _is_integer(text: str) -> bool:
    """Return whether Go's `strconv.ParseInt` reads a number of 64 bits."""
    return bool(_INTEGER.fullmatch(text)) and _LEAST <= int(text) <= _MOST


def _list_errors(selector: NodeSelector) -> Iterator[str]:
    for number, term in enumerate(selector.node_selector_terms or ()):
        for index, requirement in enumerate(term.match_expressions or ()):
            if requirement.operator not in ("Gt", "Lt"):
                continue
            path = f"nodeSelectorTerms[{number}].matchExpressions[{index}].values"
            for position, value in enumerate(requirement.values or ()):
                if not _is_integer(value):
                    why = "for 'Gt', 'Lt' operators, the value must be an integer"
                    yield f"{path}[{position}]: Invalid value: {quoted(value)}: {why}"


def _show_selector(selector: NodeSelector) -> str:
    """The text of `String()` of the Go type."""
    terms = "".join(f"{_show_term(term)}," for term in selector.node_selector_terms or ())
    return f"&NodeSelector{{NodeSelectorTerms:[]NodeSelectorTerm{{{terms}}},}}"


def _show_term(term: NodeSelectorTerm) -> str:
    expressions, fields = (_show_all(each) for each in (term.match_expressions, term.match_fields))
    return f"NodeSelectorTerm{{MatchExpressions:{expressions},MatchFields:{fields},}}"


def _show_all(requirements: Sequence[NodeSelectorRequirement] | None) -> str:
    shown = (
        f"NodeSelectorRequirement{{Key:{each.key},Operator:{each.operator},Values:[{' '.join(each.values or ())}],}},"
        for each in requirements or ()
    )
    return f"[]NodeSelectorRequirement{{{''.join(shown)}}}"
