"""Labels that controllers give the pods that they make."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dra_infra.model.metadata import ObjectRef

_REVISION: Final = {
    "DaemonSet": "controller-revision-hash",
    "Deployment": "pod-template-hash",
    "StatefulSet": "controller-revision-hash",
}
"""The label that tells one generation of an object's pods from another.

Source: DefaultDeploymentUniqueLabelKey and ControllerRevisionHashLabelKey of apps/v1.
"""


def labels_of_pods(owner: ObjectRef, written: Mapping[str, str]) -> dict[str, str]:
    """The labels of an object's pods: those of its template, and what its controller adds.

    Hashes are not known here; what matters is that one object's pods have one, and that it is nobody else's.
    """
    added: dict[str, str] = {}
    if owner.kind in _REVISION:
        added[_REVISION[owner.kind]] = f"of {owner}"
    if owner.kind == "Job":
        added = dict.fromkeys(("job-name", "batch.kubernetes.io/job-name"), owner.name)
    return {**added, **written}
