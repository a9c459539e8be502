"""Outputs of a component for programs in other languages: names and entries of pods in place of `attach` and of Python objects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import pulumi
from pydantic.alias_generators import to_camel

from dra_infra.components.component import Component, depending_on
from dra_infra.components.device_claims import DeviceClaimComponent, pod_claim_of
from dra_infra.components.nvlink_groups import channel_pod_claim_of, pod_affinity_term_of, pod_labels_of
from dra_infra.components.platform_charts import Installed, InstalledClass


def outputs_of(component: Component, names: Iterable[str]) -> dict[str, Any]:
    """Return the outputs *names* of a component without problems, by their names in the schema.

    What takes the name of an object depends on the object, so that the engine makes it later and deletes it earlier.
    """
    shown = {to_camel(name): _output(component, name) for name in names}
    return {name: value for name, value in shown.items() if value is not None}


def _output(component: Any, name: str) -> Any:
    make = _IN_PLACE_OF_ATTACH.get(name)
    if make is not None:
        return make(component)
    return _object_name(component) if name == "object_name" else _shown(getattr(component, name))


def _container_claim(entry: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return what containers name an entry of their pod by."""
    return None if entry is None else {"name": entry["name"]}


_IN_PLACE_OF_ATTACH: Final[Mapping[str, Callable[[Any], Any]]] = {
    "pod_claim": lambda claim: _camel(pod_claim_of(claim)),
    "container_claim": lambda claim: _container_claim(pod_claim_of(claim)),
    "channel_pod_claim": lambda group: _camel(channel_pod_claim_of(group)),
    "channel_container_claim": lambda group: _container_claim(channel_pod_claim_of(group)),
    "pod_labels": pod_labels_of,
    "pod_affinity_term": pod_affinity_term_of,
}


def _object_name(component: Any) -> Any:
    if isinstance(component, DeviceClaimComponent):
        # The name that pods take. Under `replace="delete-first"` it has no dependency, which would delete workloads too.
        claim = pod_claim_of(component)
        (field,) = claim.keys() - {"name"}
        return claim[field]
    name = component.object_name
    for child in component.resources.values():
        name = depending_on(name, child)
    return name


def _shown(value: Any) -> Any:
    """Return what stands for an attribute of a component in other languages."""
    match value:
        case InstalledClass():
            name: pulumi.Input[str] = value.object_name
            for resource in value.resources.values():
                name = depending_on(name, resource)
            return name
        case Installed():
            return {"releaseName": value.release_name, "namespace": value.namespace, "version": value.version}
        case DeviceClaimComponent():
            return outputs_of(value, ("object_name", "pod_claim", "container_claim"))
        case Mapping():
            return {key: _shown(item) for key, item in value.items()}
        case _:
            return value


def _camel(entry: Mapping[str, Any] | None) -> dict[str, Any] | None:
    return None if entry is None else {to_camel(key): value for key, value in entry.items()}
