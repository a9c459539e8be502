"""Labels of namespaces, as far as they are known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from dra_infra.simulation.pod_containers import mapping

_NAME_LABEL: Final = "kubernetes.io/metadata.name"


class Namespaces:
    """The namespaces of an input; every one has its name as a label (SetDefaults_Namespace).

    Args:
        manifests: Objects of any kind; those of kind Namespace count.
    """

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
        """Whether all of its labels are known."""
        return name in self._labels

    def labels_of(self, name: str) -> Mapping[str, str]:
        """Its labels; of one that is not known only its name."""
        return self._labels.get(name) or {_NAME_LABEL: name}
