"""Advice on names of other objects: classes, claims, claim templates, namespaces, extended resources.

`KnownObjects` holds what else is in the input: what references may name.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from dra_infra.advice.findings import Finding, show
from dra_infra.catalog.drivers import Pins, drivers, newest
from dra_infra.errors import Problem
from dra_infra.kubernetes.api import (
    DeviceClass,
    ResourceClaim,
    ResourceClaimTemplate,
    is_placeholder,
    mapping,
    mappings,
    plain_text,
    value_at,
)
from dra_infra.output.wording import nearest, nearest_in_domain

if TYPE_CHECKING:
    from dra_infra.kubernetes.api import PodTemplate

Checked = DeviceClass | ResourceClaim | ResourceClaimTemplate
NamespacedName = tuple[str, str]
"""Namespace as it is written, so empty for the default one, and name."""
Requests = Mapping[str, tuple[str, ...]]
"""The classes of each request of a claim, by the name of the request."""


@dataclass(frozen=True, eq=False)
class KnownObjects:
    """The classes, claims, templates and namespaces that exist, as far as the input tells.

    Args:
        classes: By name; those of the input and of a fleet, not what drivers ship.
        claims: Namespace and name of ResourceClaims.
        templates: Namespace and name of ResourceClaimTemplates, with those that ComputeDomains make.
        namespaces: Names of the Namespace objects; None when there are none, so that nothing can be said.
        claim_manifests: Claims and templates of the input by kind, namespace and name; of two with one name the later one.
    """

    classes: Mapping[str, DeviceClass] = field(default_factory=dict)
    claims: frozenset[NamespacedName] = frozenset()
    templates: frozenset[NamespacedName] = frozenset()
    namespaces: frozenset[str] | None = None
    claim_manifests: Mapping[tuple[str, str, str], Mapping[str, Any]] = field(default_factory=dict)

    @classmethod
    def gather(cls, manifests: Iterable[Mapping[str, Any]], *, classes: Iterable[DeviceClass] = ()) -> Self:
        """Gather what an input holds.

        Args:
            manifests: All objects as plain data, of whatever kind; claims and templates count however wrong they are.
            classes: The DeviceClasses, those of the input and those that exist beside it, such as a fleet's; of two
                with one name the later one counts.
        """
        claims: set[NamespacedName] = set()
        templates: set[NamespacedName] = set()
        namespaces: set[str] = set()
        claim_manifests: dict[tuple[str, str, str], Mapping[str, Any]] = {}
        for manifest in manifests:
            kind = manifest.get("kind")
            if kind in ("ResourceClaim", "ResourceClaimTemplate"):
                key = _namespaced_name(manifest)
                (claims if kind == "ResourceClaim" else templates).add(key)
                claim_manifests[kind, *key] = manifest
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
            claim_manifests,
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

    def find_requests(self, kind: str, namespace: str, name: str) -> Requests | None:
        """Return the requests of a claim or template; None where there is none, or it has none that can be read."""
        manifest = self.claim_manifests.get((kind, namespace, name))
        return None if manifest is None else _read_requests(manifest) or None

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
    def of(cls, keys: Iterable[NamespacedName]) -> Self:
        """Sort *keys* both ways."""
        spaces: dict[str, list[str]] = defaultdict(list)
        names: dict[str, list[str]] = defaultdict(list)
        for namespace, name in sorted(keys):
            spaces[name].append(namespace)
            names[namespace].append(name)
        return cls(dict(spaces), dict(names))


def _read_requests(manifest: Mapping[str, Any]) -> Requests:
    """Return the requests of a claim or template with their classes; none where a name is not known yet."""
    steps = ("spec", "spec") if manifest.get("kind") == "ResourceClaimTemplate" else ("spec",)
    found: dict[str, tuple[str, ...]] = {}
    for request in mappings(value_at(manifest, *steps, "devices", "requests")):
        name = request.get("name")
        if not isinstance(name, str) or is_placeholder(name):
            return {}
        leaves = (request, mapping(request.get("exactly")), *mappings(request.get("firstAvailable")))
        classes = (each.get("deviceClassName") for each in leaves)
        found[name] = tuple(each for each in classes if isinstance(each, str))
    return found


def _namespaced_name(manifest: Mapping[str, Any]) -> NamespacedName:
    metadata = mapping(manifest.get("metadata"))
    return _text(metadata, "namespace"), _text(metadata, "name")


def _text(manifest: Any, *steps: str) -> str:
    value = value_at(manifest, *steps)
    return value if isinstance(value, str) else ""


REFERENCES: Final = frozenset({"class-not-known", "claim-not-known", "namespace-not-known"})
"""Codes of advice on what an object refers to, about which nothing can be said where the object is seen alone."""

ELSEWHERE: Final = "it is in namespace "
"""With this the hint begins where only another namespace has what is named."""

_ALWAYS_THERE = frozenset({"", "default", "kube-system", "kube-public", "kube-node-lease"})
_IMPLICIT = "deviceclass.resource.kubernetes.io/"
"""Prefix of the extended resource name that every class has; the class's name follows."""
_CLOSE_CLASS = 0.85
"""Names of classes share their domain, so less alike ones are not meant."""
_MOST_COMPARED = 256
"""Of more names than that no nearest one is looked for: it takes long, and they differ by a number mostly."""


def check_class_name(name: str, known_objects: KnownObjects, pins: Pins) -> Finding | None:
    """Check that a class of that name is in the input, or shipped by a driver."""
    if name in known_objects.classes or name in pins.classes or not _is_name(name):
        return None
    known = {*filter(_is_name, known_objects.classes), *pins.classes}
    near = nearest_in_domain(name, sorted(known), cutoff=_CLOSE_CLASS) if len(known) <= _MOST_COMPARED else ""
    others = [
        str(release)
        for driver in drivers().values()
        for release in driver.releases
        if any(shipped.name == name for shipped in release.classes)
    ]
    if others:
        hint = f"{others[0]} and others ship it"
    elif near:
        hint = f"write deviceClassName: {near}"
    else:
        hint = "pods stay pending until it exists; add the DeviceClass, or a fleet that has it"
    return Finding(
        "class-not-known",
        f"DeviceClass {show(name)} is neither in the input nor shipped by a known driver",
        hint,
    )


def check_namespace(namespace: str, known_objects: KnownObjects) -> Finding | None:
    """Check that the namespace is in the input, when the input has any."""
    known = known_objects.namespaces
    if known is None or namespace in _ALWAYS_THERE or namespace in known or is_placeholder(namespace):
        return None
    near = _nearest(namespace, known)
    return Finding(
        "namespace-not-known",
        f"Namespace {show(namespace)} is not in the input, which has others",
        f"write namespace: {near}" if near else "add the Namespace, or create it before",
    )


def check_extended_resource(record: DeviceClass, known_objects: KnownObjects, pins: Pins) -> Finding | None:
    """Check that no other class has the extended resource name of *record*: only the newest class counts then."""
    resource = record.spec.extended_resource_name
    own = record.metadata.name or ""
    if not resource or is_placeholder(resource):
        return None
    implicit = f"{_IMPLICIT}{own}"
    others = [name for name in known_objects.extended_resources.get(resource, ()) if name != own]
    shipped = [
        each.name
        for each in pins.classes.values()
        if each.extended_resource_name == resource and each.name != own
    ]
    names = sorted({*others, *(name for name in shipped if name not in known_objects.classes)})
    if not names:
        return None
    return Finding(
        "extended-resource-twice",
        f"DeviceClass {names[0]} has the extended resource name {resource} too: the one that was created last counts",
        f"give it a name of its own, or ask for {implicit} in pods, which needs no extendedResourceName",
    )


def names_class(spec: object) -> bool:
    """True for a pod spec that asks for the devices of a class by its extended resource."""
    for list_name in ("initContainers", "containers"):
        for container in _items(value_at(spec, list_name)):
            resources = mapping(container).get("resources")
            # Most containers have none, or ask for processors and memory alone.
            for amounts in ("limits", "requests") if resources else ():
                for resource in mapping(mapping(resources).get(amounts)):
                    if str(resource).startswith(_IMPLICIT):
                        return True
    return False


def advise_pods(
    template: PodTemplate, known_objects: KnownObjects, *, pins: Pins | None = None
) -> Iterator[Problem]:
    """Advice on what a pod template names; paths are those of the object that holds it."""
    yield from _check_resources(template, known_objects, pins or newest())
    namespace = template.owner.namespace
    finding = check_namespace(namespace, known_objects)
    if finding is not None:
        yield finding.at("metadata.namespace")
    for index, entry in enumerate(template.claims):
        path = template.at(f"resourceClaims[{index}]")
        if _is_name(entry.claim_name) and not _is_name(entry.template_name):
            finding = _check_claim("ResourceClaim", str(entry.claim_name), namespace, known_objects)
            if finding is not None:
                yield finding.at(f"{path}.resourceClaimName")
        elif _is_name(entry.template_name) and not _is_name(entry.claim_name):
            finding = _check_claim(
                "ResourceClaimTemplate", str(entry.template_name), namespace, known_objects
            )
            if finding is not None:
                yield finding.at(f"{path}.resourceClaimTemplateName")


def _check_resources(template: PodTemplate, known_objects: KnownObjects, pins: Pins) -> Iterator[Problem]:
    for list_name in ("initContainers", "containers"):
        for index, container in enumerate(_items(template.spec.get(list_name))):
            resources = mapping(mapping(container).get("resources"))
            for amounts in ("limits", "requests"):
                for resource in mapping(resources.get(amounts)):
                    if not str(resource).startswith(_IMPLICIT):
                        continue
                    name = str(resource).removeprefix(_IMPLICIT)
                    if any(
                        name == plain_text(each) for each in known_objects.classes if is_placeholder(each)
                    ):
                        continue
                    finding = check_class_name(name, known_objects, pins)
                    if finding is not None:
                        path = template.at(f"{list_name}[{index}].resources.{amounts}")
                        yield finding._replace(hint=finding.hint.replace("deviceClassName: ", _IMPLICIT)).at(
                            path
                        )


def _items(value: object) -> Sequence[object]:
    return value if isinstance(value, list) else ()


def _check_claim(kind: str, name: str, namespace: str, known_objects: KnownObjects) -> Finding | None:
    is_claim = kind == "ResourceClaim"
    there, elsewhere = known_objects.claims, known_objects.templates
    field, other_field = "resourceClaimName", "resourceClaimTemplateName"
    if not is_claim:
        there, elsewhere = elsewhere, there
        field, other_field = other_field, field
    keys = [(namespace, name)]
    if namespace in ("", "default"):
        keys = [("", name), ("default", name)]
    if any(key in there for key in keys):
        return None
    index = known_objects.claim_index if is_claim else known_objects.template_index
    if any(key in elsewhere for key in keys):
        hint = f"{name!r} is a {'ResourceClaimTemplate' if is_claim else 'ResourceClaim'}: write {other_field}: {name}"
    elif name in index.spaces:
        hint = f"{ELSEWHERE}{index.spaces[name][0] or 'default'!r}; claims and pods must share one"
    else:
        near = _nearest(name, index.names.get(namespace, ()))
        hint = f"write {field}: {near}" if near else "it must exist in the cluster, or pods stay pending"
    return Finding(
        "claim-not-known",
        f"{kind} {show(name)} is not in the input in namespace {namespace or 'default'!r}",
        hint,
    )


def _is_name(value: object) -> bool:
    return isinstance(value, str) and bool(value) and not is_placeholder(value)


def _nearest(name: str, known: Collection[str], *, cutoff: float = 0.6) -> str:
    return nearest(name, sorted(known), cutoff=cutoff) if len(known) <= _MOST_COMPARED else ""
