"""The rules for node selectors (ValidateNodeSelector, pkg/apis/core/validation/validation.go)."""

from __future__ import annotations

from collections.abc import Iterator

from dra_infra.model.go_json import go_json
from dra_infra.model.node_selector import NodeSelector, NodeSelectorRequirement
from dra_infra.model.target import Release
from dra_infra.validation import formats
from dra_infra.validation.field_errors import FieldError, Printed, forbidden, invalid, required
from dra_infra.validation.requests import label_wording


def check_node_selector(selector: NodeSelector, path: str, release: Release) -> Iterator[FieldError]:
    """Check the terms of a node selector; how many there may be is a rule of its holder."""
    terms = selector.node_selector_terms or ()
    if not terms:
        told = "must have at least one node selector term"
        yield required("node-selector.terms", f"{path}.nodeSelectorTerms", told)
    for index, term in enumerate(terms):
        at = f"{path}.nodeSelectorTerms[{index}]"
        for position, each in enumerate(term.match_expressions or ()):
            yield from _check_expression(each, f"{at}.matchExpressions[{position}]", release)
        for position, each in enumerate(term.match_fields or ()):
            yield from _check_field(each, f"{at}.matchFields[{position}]")


def _check_expression(
    requirement: NodeSelectorRequirement, path: str, release: Release
) -> Iterator[FieldError]:
    noun, unit = label_wording(release)
    values = requirement.values or ()
    if requirement.operator in ("In", "NotIn"):
        if not values:
            told = "must be specified when `operator` is 'In' or 'NotIn'"
            yield required("node-selector.values", f"{path}.values", told)
    elif requirement.operator in ("Exists", "DoesNotExist"):
        if values:
            told = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            yield forbidden("node-selector.no-values", f"{path}.values", told)
    elif requirement.operator in ("Gt", "Lt"):
        if len(values) != 1:
            told = "must be specified single value when `operator` is 'Lt' or 'Gt'"
            yield required("node-selector.values", f"{path}.values", told)
    else:
        yield _unknown_operator(requirement, path)
    for told in formats.label_key(requirement.key, noun=noun, unit=unit):
        yield invalid("node-selector.key", f"{path}.key", requirement.key, told)
    for index, value in enumerate(values):
        for told in formats.label_value(value, unit):
            yield invalid("node-selector.value", f"{path}.values[{index}]", value, told)


def _check_field(requirement: NodeSelectorRequirement, path: str) -> Iterator[FieldError]:
    values = requirement.values or ()
    if requirement.operator in ("In", "NotIn"):
        if len(values) != 1:
            told = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
            yield required("node-selector.values", f"{path}.values", told)
    else:
        yield _unknown_operator(requirement, path)
    if requirement.key != "metadata.name":
        yield invalid("node-selector.field", f"{path}.key", requirement.key, "not a valid field selector key")
        return
    for index, value in enumerate(values):
        for told in formats.dns_subdomain(value):
            yield invalid("node-selector.node-name", f"{path}.values[{index}]", value, told)


def _unknown_operator(requirement: NodeSelectorRequirement, path: str) -> FieldError:
    shown = Printed(go_json(requirement.operator))
    return invalid("node-selector.operator", f"{path}.operator", shown, "not a valid selector operator")
