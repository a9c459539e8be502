"""Pods that name claims as up to Kubernetes 1.30, below `source`, or as articles do, in every kind of workload.

Without strict decoding a server of today drops `source`, and refuses the entry, which then names nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from dra_infra.kubernetes.api import WorkloadKinds, mapping, show_steps, value_at
from dra_infra.migration.old_dra.objects import GROUP, Item, OldObjects, replaced

_NAMES: Final = ("resourceClaimName", "resourceClaimTemplateName")
_KINDS: Final = ("ResourceClaim", "ResourceClaimTemplate")


class PodPlace(NamedTuple):
    """A pod spec in an object.

    Args:
        steps: Keys and positions from the object down to it.
        path: The same as a field path.
        spec: The pod spec.
    """

    steps: tuple[str | int, ...]
    path: str
    spec: Mapping[str, Any]


def pod_specs(manifest: Mapping[str, Any], kinds: WorkloadKinds) -> Iterator[PodPlace]:
    """The pod specs of an object of any kind that is known; composed ones stand nowhere and are left out."""
    kind = kinds.find(manifest)
    for part in kind.parts if kind is not None else ():
        if part.composed:
            continue
        for found, holder in part.find(manifest):
            steps = found if part.is_spec else (*found, "spec")
            spec = holder if part.is_spec else holder.get("spec")
            if isinstance(spec, Mapping):
                yield PodPlace(steps, show_steps(steps), spec)


def find_named(item: Item, objects: OldObjects) -> list[Item]:
    """The claims and templates of the input that pods of an object name, in the form of any version."""
    found: list[Item] = []
    for place in pod_specs(item.manifest, objects.kinds):
        for entry in _listed(place.spec.get("resourceClaims")):
            for field, kind in zip(_NAMES, _KINDS, strict=True):
                name = mapping(mapping(entry).get("source")).get(field) or mapping(entry).get(field)
                own = objects.find(GROUP, kind, str(name or ""), item.namespace)
                found += [own] if own is not None and own not in found else []
    return found


def migrate_pods(item: Item, objects: OldObjects) -> Mapping[str, Any]:
    """The object with entries of its pods' claims as v1 has them; the very object where all are."""
    manifest = item.manifest
    for place in pod_specs(manifest, objects.kinds):
        base = f"{place.path}." if place.path else ""
        for kind in ("initContainers", "containers"):
            held = place.spec.get(kind)
            for index, each in enumerate(held if isinstance(held, list) else ()):
                claims = value_at(each, "resources", "claims")
                at = f"{base}{kind}[{index}].resources.claims"
                named = [{"name": name} if isinstance(name, str) else name for name in _listed(claims)]
                if claims and named and named != claims:
                    message = "the claims of a container are a list of objects with a name"
                    item.remarks.changed(at, "old-shape", message)
                    manifest = replaced(manifest, (*place.steps, kind, index, "resources", "claims"), named)
        entries = place.spec.get("resourceClaims")
        path = f"{base}resourceClaims"
        found = _listed(entries)
        flat = [_flat(each, f"{path}[{index}]", item, objects) for index, each in enumerate(found)]
        if flat and flat != entries and not any(isinstance(each, str) for each in flat):
            if found != entries:
                message = "the claims of a pod are a list of objects with a name"
                item.remarks.changed(path, "old-shape", message)
            manifest = replaced(manifest, (*place.steps, "resourceClaims"), flat)
    return manifest


def _listed(written: Any) -> list[Any]:
    """The items of a list, also where one stands alone, or objects stand below their names; empty for all else."""
    if isinstance(written, str) or "name" in mapping(written):
        return [written]
    values = mapping(written).values()
    if values and all(isinstance(each, Mapping) for each in values):
        return [{"name": name, **each} for name, each in mapping(written).items()]
    return written if isinstance(written, list) else []


def _flat(entry: Any, path: str, item: Item, objects: OldObjects) -> Any:
    remarks = item.remarks
    source = mapping(entry).get("source")
    if isinstance(entry, str):
        there = [objects.find(GROUP, kind, entry, item.namespace) for kind in _KINDS]
        if there.count(None) == 1:
            field = _NAMES[there.index(None) - 1]
            message = f"{field} is written, for of claims and templates the input has one of that name"
            remarks.changed(path, "old-shape", message)
            return {"name": entry, field: entry}
    elif "source" not in mapping(entry):
        return entry
    own = {name: value for name, value in mapping(source).items() if name in _NAMES and value is not None}
    beside = {name: value for name, value in mapping(entry).items() if name in _NAMES and value is not None}
    if not isinstance(source, Mapping) or len({**own, **beside}) != 1 or (beside and own and beside != own):
        message = "the entry names no claim and no template, or more than one"
        hint = "write resourceClaimName or resourceClaimTemplateName on the entry"
        remarks.decide(f"{path}.source" if source is not None else path, "two-shapes", message, hint)
        return entry
    message = f"{next(iter(own or beside))} is on the entry itself since 1.31"
    remarks.changed(f"{path}.source", "pod-claim-source", message)
    changed: dict[str, Any] = {}
    for name, value in entry.items():
        if name == "source":
            changed |= own
        else:
            changed[name] = value
    return changed
