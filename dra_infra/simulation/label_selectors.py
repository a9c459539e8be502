"""Label selectors of pods and namespaces (metav1.LabelSelector), as k8s.io/apimachinery/pkg/labels matches them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from dra_infra.simulation.node_selectors import matches_label
from dra_infra.simulation.pod_containers import mapping, objects


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """What labels must be.

    Args:
        requirements: (key, operator, values), all of which must hold.
        matches_nothing: Whether there is no selector at all; an empty one matches everything.
    """

    requirements: tuple[tuple[str, str, tuple[str, ...]], ...] = ()
    matches_nothing: bool = False

    @classmethod
    def read(cls, value: Any) -> LabelSelector:
        """What is written; None stands for a field that is left out."""
        if not isinstance(value, Mapping):
            return cls(matches_nothing=True)
        exact = (
            (str(key), "In", (str(wanted),)) for key, wanted in mapping(value.get("matchLabels")).items()
        )
        expressions = (
            (str(each.get("key")), str(each.get("operator")), _texts(each.get("values")))
            for each in objects(value.get("matchExpressions"))
        )
        return cls((*sorted(exact), *expressions))

    @property
    def matches_all(self) -> bool:
        """Whether it is written, and asks for nothing: `Empty()` upstream."""
        return not self.matches_nothing and not self.requirements

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether it selects what has these labels."""
        return not self.matches_nothing and all(
            matches_label({"key": key, "operator": operator, "values": list(values)}, labels)
            for key, operator, values in self.requirements
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


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(str(item) for item in value) if isinstance(value, list) else ()
