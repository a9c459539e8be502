"""Label selectors and NodeSelectors, matched as Kubernetes does, and labels of namespaces.

LabelSelector is for pods and namespaces (metav1.LabelSelector), as k8s.io/apimachinery/pkg/labels matches it.
NodeSelector is for nodes, as k8s.io/component-helpers/scheduling/corev1/nodeaffinity matches it. Labels of namespaces
are there as far as they are known.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dra_infra.kubernetes.api.manifests import mapping, mappings

_INTEGER = re.compile(r"[+-]?[0-9]{1,63}", re.ASCII)
_INT64 = range(-(2**63), 2**63)
_NAME_FIELD = "metadata.name"
OPERATORS: Final = frozenset({"In", "NotIn", "Exists", "DoesNotExist"})
"""Of LabelSelectors (metav1.LabelSelectorOperator)."""


def matches_node_selector(selector: Mapping[str, Any], labels: Mapping[str, str], name: str) -> bool:
    """Checks that one of the selector's terms is true for a node; a selector without terms matches nothing."""
    terms = selector.get("nodeSelectorTerms")
    return any(_matches_term(term, labels, name) for term in mappings(terms))


def _matches_term(term: Mapping[str, Any], labels: Mapping[str, str], name: str) -> bool:
    expressions, fields = mappings(term.get("matchExpressions")), mappings(term.get("matchFields"))
    if not expressions and not fields:
        return False
    return all(meets_node_requirement(requirement, labels) for requirement in expressions) and all(
        _matches_field(requirement, name) for requirement in fields
    )


def meets_node_requirement(requirement: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Checks that labels meet a NodeSelectorRequirement."""
    value = labels.get(str(requirement.get("key")))
    operator = requirement.get("operator")
    values = read_texts(requirement.get("values"))
    match operator:
        case "Gt":
            return _compares(value, values, above=True)
        case "Lt":
            return _compares(value, values, above=False)
        case _:
            return meets(value, operator, values)


def meets(value: str | None, operator: Any, values: Sequence[str]) -> bool:
    """Checks that the value of a label, None without that label, meets a requirement of a LabelSelector.

    An operator that is none of `OPERATORS` is met by no value.
    """
    match operator:
        case "In":
            return value is not None and value in values
        case "NotIn":
            return value is None or value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case _:
            return False


def _matches_field(requirement: Mapping[str, Any], name: str) -> bool:
    values = read_texts(requirement.get("values"))
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
    # strconv.ParseInt of base 10 reads what is in range, and zeros in front of it; values of labels have 63 characters.
    numbers = [int(each) for each in (value or "", *values) if _INTEGER.fullmatch(each)]
    if len(values) != 1 or len(numbers) != 2 or not all(each in _INT64 for each in numbers):
        return False
    return numbers[0] > numbers[1] if above else numbers[0] < numbers[1]


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """Requirements on labels.

    Args:
        requirements: (key, operator, values), all of which must hold.
        matches_nothing: Whether there is no selector at all; an empty one matches everything.
    """

    requirements: tuple[tuple[str, str, tuple[str, ...]], ...] = ()
    matches_nothing: bool = False

    @classmethod
    def read(cls, value: Any) -> LabelSelector:
        """Reads a selector of a manifest; None stands for a field that is left out."""
        if not isinstance(value, Mapping):
            return cls(matches_nothing=True)
        exact = (
            (str(key), "In", (str(wanted),)) for key, wanted in mapping(value.get("matchLabels")).items()
        )
        expressions = (
            (str(each.get("key")), str(each.get("operator")), read_texts(each.get("values")))
            for each in mappings(value.get("matchExpressions"))
        )
        return cls((*sorted(exact), *expressions))

    @property
    def matches_all(self) -> bool:
        """It is written, and asks for nothing: `Empty()` upstream."""
        return not self.matches_nothing and not self.requirements

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Checks that it selects objects with these labels."""
        return not self.matches_nothing and all(
            meets(labels.get(key), operator, values) for key, operator, values in self.requirements
        )

    def narrowed(
        self, labels: Mapping[str, str], *, like: Iterable[str] = (), unlike: Iterable[str] = ()
    ) -> LabelSelector:
        """With `matchLabelKeys` and `mismatchLabelKeys` of a pod with *labels*; labels that it lacks are passed over.

        Upstream: applyLabelKeysToLabelSelector in pkg/registry/core/pod/strategy.go, mergeLabelSetWithSelector in the
        scheduler's podtopologyspread plugin.
        """
        if self.matches_nothing:
            return self
        extra = [
            *((key, "In", (labels[key],)) for key in like if key in labels),
            *((key, "NotIn", (labels[key],)) for key in unlike if key in labels),
        ]
        return LabelSelector((*self.requirements, *extra))


def read_texts(value: Any) -> tuple[str, ...]:
    """The items of a list of a manifest as texts; none of what is no list."""
    return tuple(str(item) for item in value) if isinstance(value, list) else ()


_NAME_LABEL: Final = "kubernetes.io/metadata.name"


class Namespaces:
    """The namespaces of an input; every one has its name as a label (SetDefaults_Namespace)."""

    def __init__(self, manifests: Iterable[Mapping[str, Any]] = ()) -> None:
        self._labels: dict[str, dict[str, str]] = {}
        for manifest in manifests:
            metadata = mapping(manifest.get("metadata"))
            if manifest.get("kind") == "Namespace" and metadata.get("name"):
                name = str(metadata["name"])
                written = mapping(metadata.get("labels"))
                self._labels[name] = {str(key): str(value) for key, value in written.items()} | {
                    _NAME_LABEL: name
                }

    def __contains__(self, name: str) -> bool:
        """The namespace is one of the input, so that its labels are known."""
        return name in self._labels

    def labels_of(self, name: str) -> Mapping[str, str]:
        """Labels of a namespace; of one that is not known only its name."""
        return self._labels.get(name) or {_NAME_LABEL: name}
