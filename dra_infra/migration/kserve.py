"""How KServe serves an InferenceService: by a Deployment, whose pods may have claims, or by Knative, which refuses them.

Source: GetDeploymentMode in pkg/controller/v1beta1/inferenceservice/utils/utils.go, pkg/constants/constants.go,
config/configmap/inferenceservice.yaml and charts/kserve-resources of kserve/kserve 0.16.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, Final

from dra_infra.kubernetes.api import mapping, value_at
from dra_infra.migration.chart_releases import find_installations, merge_values
from dra_infra.migration.outcomes import Remark

MODE: Final = "serving.kserve.io/deploymentMode"
_CONFIG: Final = "inferenceservice-config"
_CHARTS: Final = ("kserve", "kserve-resources")
_OF_DEPLOYMENTS: Final = ("Standard", "RawDeployment")
"""Modes in which KServe makes a Deployment; the second is the name of the first up to 0.15."""

_HINT: Final = f"annotate {MODE}: Standard, with which KServe makes a Deployment"


def find_default_mode(objects: Iterable[Mapping[str, Any]]) -> str:
    """Return the mode that KServe's configuration or chart among objects sets; empty where none of them says it."""
    for manifest in objects:
        if manifest.get("kind") == "ConfigMap" and value_at(manifest, "metadata", "name") == _CONFIG:
            with suppress(ValueError):
                deployment = json.loads(str(value_at(manifest, "data", "deploy")))
                if mode := mapping(deployment).get("defaultDeploymentMode"):
                    return str(mode)
        for installed in find_installations(manifest):
            values = merge_values(installed.values) if installed.release.chart in _CHARTS else {}
            if mode := value_at(values, "kserve", "controller", "deploymentMode"):
                return str(mode)
    return ""


def refuse_mode(manifest: Mapping[str, Any], path: str, default: str) -> Remark | None:
    """Remark on an InferenceService to which no claim would come, or of which nobody says how it is served.

    Args:
        manifest: The InferenceService.
        path: Where it asks for devices.
        default: The mode that KServe's configuration sets; empty where it is not known.
    """
    # What is there keeps the mode that it has.
    stated = value_at(manifest, "status", "deploymentMode") or value_at(
        manifest, "metadata", "annotations", MODE
    )
    mode = str(stated or default)
    if mode in _OF_DEPLOYMENTS:
        return None
    if mode:
        message = f"in the mode {mode[:40]} no claim comes to its pods: Knative refuses them, and ModelMesh has pods of its runtime"
    else:
        message = "nothing says how KServe serves it, and its default is Knative, which refuses claims"
    hint = (
        _HINT if mode else f"{_HINT}, or give KServe's ConfigMap {_CONFIG} too, if that has another default"
    )
    return Remark(path, "decide", "kind-not-rewritten", message, hint)
