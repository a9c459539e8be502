"""What the API server adds to pods when they are made: defaults of LimitRanges, overhead and nodes of RuntimeClasses.

Source: SetDefaults_LimitRangeItem in pkg/apis/core/v1/defaults.go, plugin/pkg/admission/limitranger/admission.go,
plugin/pkg/admission/runtimeclass/admission.go. Bounds of LimitRanges, which only refuse pods, are not looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from dra_infra.simulation.pod_containers import mapping, objects


class PodAdmission:
    """The objects of an input that change pods.

    Args:
        manifests: Objects of any kind; LimitRanges and RuntimeClasses count, those that come later before others of
            the same name.
    """

    def __init__(self, manifests: Iterable[Mapping[str, Any]]) -> None:
        self._ranges: dict[str, dict[str, Mapping[str, Any]]] = {}
        self._runtimes: dict[str, Mapping[str, Any]] = {}
        for manifest in manifests:
            metadata = mapping(manifest.get("metadata"))
            name, namespace = str(metadata.get("name")), str(metadata.get("namespace") or "default")
            if manifest.get("kind") == "LimitRange":
                self._ranges.setdefault(namespace, {})[name] = manifest
            elif manifest.get("kind") == "RuntimeClass":
                self._runtimes[name] = manifest

    def knows_runtime(self, name: str) -> bool:
        """Whether the RuntimeClass is among the objects."""
        return name in self._runtimes

    def bounds(self, namespace: str) -> list[str]:
        """LimitRanges of a namespace with bounds, by name."""
        held = self._ranges.get(namespace or "default", {})
        return [name for name, each in sorted(held.items()) if any(_is_bound(item) for item in _items(each))]

    def admit(self, spec: Mapping[str, Any], namespace: str) -> Mapping[str, Any]:
        """The pod spec as it is stored; the same object when nothing is added."""
        spec = self._apply_runtime(spec)
        ranges = self._ranges.get(namespace or "default", {})
        for _, held in sorted(ranges.items()):
            requests, limits = _find_defaults(held)
            if requests or limits:
                spec = {**spec}
                for kind in ("containers", "initContainers"):
                    if spec.get(kind):
                        spec[kind] = [_complete(each, requests, limits) for each in objects(spec[kind])]
        return spec

    def _apply_runtime(self, spec: Mapping[str, Any]) -> Mapping[str, Any]:
        runtime = self._runtimes.get(str(spec.get("runtimeClassName")))
        if runtime is None:
            return spec
        added: dict[str, Any] = {}
        fixed = mapping(runtime.get("overhead")).get("podFixed")
        if fixed:
            added["overhead"] = fixed
        scheduling = mapping(runtime.get("scheduling"))
        if scheduling.get("nodeSelector"):
            added["nodeSelector"] = {**mapping(spec.get("nodeSelector")), **scheduling["nodeSelector"]}
        if scheduling.get("tolerations"):
            added["tolerations"] = [*objects(spec.get("tolerations")), *objects(scheduling["tolerations"])]
        return {**spec, **added}


def _items(held: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield from objects(mapping(held.get("spec")).get("limits"))


def _is_bound(item: Mapping[str, Any]) -> bool:
    return any(item.get(name) for name in ("max", "min", "maxLimitRequestRatio"))


def _find_defaults(held: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Requests and limits for containers that say nothing themselves."""
    requests: dict[str, Any] = {}
    limits: dict[str, Any] = {}
    for item in _items(held):
        if item.get("type") == "Container":
            default = {**mapping(item.get("max")), **mapping(item.get("default"))}
            limits |= default
            requests |= {**mapping(item.get("min")), **default, **mapping(item.get("defaultRequest"))}
    return requests, limits


def _complete(
    container: Mapping[str, Any], requests: Mapping[str, Any], limits: Mapping[str, Any]
) -> Mapping[str, Any]:
    resources = mapping(container.get("resources"))
    written = mapping(resources.get("limits"))
    # The limits that are written stand in for requests before the defaults have their turn.
    asked = {**requests, **written, **mapping(resources.get("requests"))}
    return {**container, "resources": {**resources, "limits": {**limits, **written}, "requests": asked}}
