"""Devices that pods ask for by an extended resource, `limits: {nvidia.com/gpu: 1}`: no claim is written, and none is placed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from dra_infra.model.device_class import DeviceClass
from dra_infra.model.pods import PodTemplate, find_pod_templates
from dra_infra.model.program import NotSeen, Program
from dra_infra.planning.replacement import get_field
from dra_infra.planning.wording import join_words

_OF_CLASS: Final = "deviceclass.resource.kubernetes.io/"
"""In front of a class's name in the extended resource that every class has."""


def find_unplaced_resources(program: Program, shipped: Sequence[DeviceClass] = ()) -> Iterator[NotSeen]:
    """One per workload without claims that asks for extended resources.

    Args:
        program: Its objects; classes among them count before *shipped*.
        shipped: Classes of the fleet.
    """
    served = {each.spec.extended_resource_name: each.metadata.name for each in shipped}
    for item in program.objects:
        if item.ref.kind == "DeviceClass":
            served[get_field(item.manifest, "spec.extendedResourceName")] = item.ref.name
    for item in program.objects:
        for template in find_pod_templates(item.manifest):
            names = [] if template.claims else sorted(_find_names(template))
            plain = [name for name in names if name not in served and not name.startswith(_OF_CLASS)]
            if plain:
                reason = f"it asks the device plugin for {join_words(plain)}, not DRA: not placed"
                yield NotSeen(what="placement of", name=str(template.owner), reason=reason)
            for name in names:
                if name not in plain:
                    owner = served.get(name) or name.removeprefix(_OF_CLASS)
                    reason = f"it asks for {name}, which DeviceClass {owner} serves: not placed, for no claim is written"
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
    return bool(slash) and (name.startswith(_OF_CLASS) or not f".{domain}".endswith(".kubernetes.io"))
