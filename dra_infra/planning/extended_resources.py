"""Devices that pods ask of a device plugin by an extended resource, `limits: {nvidia.com/gpu: 1}`: these are not placed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dra_infra.model.device_class import DeviceClass
from dra_infra.model.pods import PodTemplate, find_pod_templates
from dra_infra.model.program import NotSeen, Program
from dra_infra.planning.replacement import get_field
from dra_infra.planning.wording import join_words
from dra_infra.simulation.extended_resources import GATE, OF_CLASS


def find_unplaced_resources(program: Program, shipped: Sequence[DeviceClass] = ()) -> Iterator[NotSeen]:
    """One per workload without claims that asks for extended resources which no class serves.

    Args:
        program: Its objects; classes among them count before *shipped*.
        shipped: Classes of the fleet.
    """
    served: set[str] = set()
    is_on = program.release.enabled(GATE)
    if is_on:
        served = {str(each.spec.extended_resource_name) for each in shipped}
        served |= {
            str(get_field(item.manifest, "spec.extendedResourceName"))
            for item in program.objects
            if item.ref.kind == "DeviceClass"
        }
    for item in program.objects:
        for template in find_pod_templates(item.manifest):
            names = [] if template.claims else sorted(_find_names(template))
            if names and not any(name in served or (is_on and name.startswith(OF_CLASS)) for name in names):
                reason = f"it asks the device plugin for {join_words(names)}, not DRA: not placed"
                yield NotSeen(what="placement of", name=str(template.owner), reason=reason)


def _find_names(template: PodTemplate) -> set[str]:
    found: set[str] = set()
    for field in ("initContainers", "containers"):
        containers = template.spec.get(field)
        for container in containers if isinstance(containers, list) else ():
            for amounts in ("limits", "requests"):
                asked: Any = (
                    get_field(container, f"resources.{amounts}") if isinstance(container, Mapping) else None
                )
                found |= {str(name) for name in (asked if isinstance(asked, Mapping) else {})}
    return {name for name in found if _is_extended(name)}


def _is_extended(name: str) -> bool:
    """Whether a resource has a domain that is not Kubernetes' own; IsExtendedResourceName of the API helpers."""
    domain, slash, _ = name.partition("/")
    return bool(slash) and (name.startswith(OF_CLASS) or not f".{domain}".endswith(".kubernetes.io"))
