"""NodeSelector: which nodes devices can be used from (k8s.io/api/core/v1)."""

from typing import Annotated

from dra_infra.model.record import CoreRecord, GoType, Text


class NodeSelectorRequirement(CoreRecord):
    """A test of one label or field of a node."""

    TAGGED_INSIDE = False
    WRITTEN_EMPTY = ("key", "operator")

    key: Text = ""
    operator: Annotated[Text, GoType("v1.NodeSelectorOperator")] = ""
    values: list[Text] | None = None


class NodeSelectorTerm(CoreRecord):
    """Tests that must all be true."""

    TAGGED_INSIDE = False

    match_expressions: list[NodeSelectorRequirement] | None = None
    match_fields: list[NodeSelectorRequirement] | None = None


class NodeSelector(CoreRecord):
    """Terms of which one must be true."""

    TAGGED_INSIDE = False
    WRITTEN_EMPTY = ("node_selector_terms",)

    node_selector_terms: list[NodeSelectorTerm] | None = None
