"""Kueue's Configuration in the input: under which names it counts the devices of classes.

Source: Resources.DeviceClassMappings in apis/config/v1beta2/configuration_types.go and pkg/dra/claims.go of sigs.k8s.io/kueue
0.19: a claim of a class that no mapping names is not admitted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from dra_infra.documents.yaml import iterate_manifests
from dra_infra.errors import ProblemsError
from dra_infra.kubernetes.api import is_placeholder, mapping, mappings, value_at

_GROUP: Final = "config.kueue.x-k8s.io/"


def read_class_mappings(objects: Iterable[Mapping[str, Any]]) -> Mapping[str, str] | None:
    """Return the resource that Kueue counts the devices of each class as; None where no Configuration is among the objects."""
    found: dict[str, str] = {}
    is_known = False
    for configuration in _configurations(objects):
        is_known = True
        for each in mappings(value_at(configuration, "resources", "deviceClassMappings")):
            for name in each.get("deviceClassNames") or ():
                found[str(name)] = str(each.get("name"))
    return found if is_known else None


def _configurations(objects: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Yield Kueue's configurations: objects of their own, or texts of a ConfigMap, as Kueue's chart has them."""
    for each in objects:
        if str(each.get("apiVersion")).startswith(_GROUP):
            yield each
        elif each.get("kind") == "ConfigMap":
            for text in mapping(each.get("data")).values():
                if isinstance(text, str) and not is_placeholder(text) and _GROUP in text:
                    yield from _read(text)


def _read(text: str) -> Iterator[Mapping[str, Any]]:
    try:
        yield from (
            each
            for each in iterate_manifests(text, file="")
            if str(each.get("apiVersion")).startswith(_GROUP)
        )
    except ProblemsError:
        return
