"""What else is in the input: what references may name."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, Self

from dra_infra.model.device_class import DeviceClass
from dra_infra.model.resource_claim import ResourceClaim, ResourceClaimTemplate

Checked = DeviceClass | ResourceClaim | ResourceClaimTemplate
Key = tuple[str, str]
"""Namespace, empty for the default one, and name."""


@dataclass(frozen=True, eq=False)
class Surroundings:
    """The classes, claims, templates and namespaces that exist, as far as the input tells.

    Args:
        classes: By name; those of the input and of a fleet, not what drivers ship.
        claims: Namespace and name of ResourceClaims.
        templates: Namespace and name of ResourceClaimTemplates, with those that ComputeDomains make.
        namespaces: Names of the Namespace objects; None when there are none, so that nothing can be said.
    """

    classes: Mapping[str, DeviceClass] = field(default_factory=dict)
    claims: frozenset[Key] = frozenset()
    templates: frozenset[Key] = frozenset()
    namespaces: frozenset[str] | None = None

    @classmethod
    def gather(cls, manifests: Iterable[Mapping[str, Any]], *, classes: Iterable[DeviceClass] = ()) -> Self:
        """Gather what an input holds.

        Args:
            manifests: All objects as plain data, of whatever kind; claims and templates count however wrong they are.
            classes: The DeviceClasses, those of the input and those that exist beside it, such as a fleet's; of two
                with one name the later one counts.
        """
        claims: set[Key] = set()
        templates: set[Key] = set()
        namespaces: set[str] = set()
        for manifest in manifests:
            kind = manifest.get("kind")
            if kind == "ResourceClaim":
                claims.add(_key(manifest))
            elif kind == "ResourceClaimTemplate":
                templates.add(_key(manifest))
            elif kind == "Namespace" and manifest.get("apiVersion") == "v1":
                namespaces.add(_text(manifest, "metadata", "name"))
            elif kind == "ComputeDomain":
                made = _text(manifest, "spec", "channel", "resourceClaimTemplate", "name")
                templates.add((_text(manifest, "metadata", "namespace"), made))
        return cls(
            {name: each for each in classes if (name := each.metadata.name)},
            frozenset(claims),
            frozenset(templates),
            frozenset(namespaces) or None,
        )

    @cached_property
    def extended_resources(self) -> Mapping[str, tuple[str, ...]]:
        """Names of classes by their extended resource name, sorted."""
        found: dict[str, list[str]] = defaultdict(list)
        for name in sorted(self.classes):
            resource = self.classes[name].spec.extended_resource_name
            if resource:
                found[resource].append(name)
        return {resource: tuple(names) for resource, names in found.items()}

    @cached_property
    def claim_index(self) -> Index:
        """The claims by name and by namespace."""
        return Index.of(self.claims)

    @cached_property
    def template_index(self) -> Index:
        """The templates by name and by namespace."""
        return Index.of(self.templates)


class Index(NamedTuple):
    """Objects that have a namespace.

    Args:
        spaces: Namespaces by name, sorted.
        names: Names by namespace, sorted.
    """

    spaces: Mapping[str, Sequence[str]]
    names: Mapping[str, Sequence[str]]

    @classmethod
    def of(cls, keys: Iterable[Key]) -> Self:
        """Sort *keys* both ways."""
        spaces: dict[str, list[str]] = defaultdict(list)
        names: dict[str, list[str]] = defaultdict(list)
        for namespace, name in sorted(keys):
            spaces[name].append(namespace)
            names[namespace].append(name)
        return cls(dict(spaces), dict(names))


def _key(manifest: Mapping[str, Any]) -> Key:
    return _text(manifest, "metadata", "namespace"), _text(manifest, "metadata", "name")


def _text(manifest: Any, *steps: str) -> str:
    value = manifest
    for step in steps:
        value = value.get(step) if isinstance(value, Mapping) else None
    return value if isinstance(value, str) else ""
