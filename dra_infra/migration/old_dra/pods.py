"""Pods that name claims as up to Kubernetes 1.30, below `source`, in every kind of workload.

Without strict decoding a server of today drops `source`, and refuses the entry, which then names nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from dra_infra.catalog.workload_kinds import workload_kinds
from dra_infra.kubernetes.api.manifests import mapping
from dra_infra.migration.old_dra.objects import Item, Remarks, replaced

_NAMES: Final = ("resourceClaimName", "resourceClaimTemplateName")


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


def pod_specs(manifest: Mapping[str, Any]) -> Iterator[PodPlace]:
    """The pod specs of an object of any kind that the catalogue knows; composed ones stand nowhere and are left out."""
    kind = workload_kinds().find(manifest)
    for part in kind.parts if kind is not None else ():
        if part.composed:
            continue
        for found, holder in part.find(manifest):
            steps = found if part.is_spec else (*found, "spec")
            spec = holder if part.is_spec else holder.get("spec")
            if isinstance(spec, Mapping):
                yield PodPlace(steps, _show(steps), spec)


def migrate_pods(item: Item) -> Mapping[str, Any]:
    """The object with each `source` of its pods' claims flat; the very object where there is none."""
    manifest = item.manifest
    for place in pod_specs(manifest):
        entries = place.spec.get("resourceClaims")
        if not isinstance(entries, list):
            continue
        path = f"{place.path}.resourceClaims" if place.path else "resourceClaims"
        flat = [_flat(each, f"{path}[{index}]", item.remarks) for index, each in enumerate(entries)]
        if flat != entries:
            manifest = replaced(manifest, (*place.steps, "resourceClaims"), flat)
    return manifest


def _flat(entry: Any, path: str, remarks: Remarks) -> Any:
    source = mapping(entry).get("source")
    if "source" not in mapping(entry):
        return entry
    own = {name: value for name, value in mapping(source).items() if name in _NAMES and value is not None}
    beside = {name: entry[name] for name in _NAMES if entry.get(name) is not None}
    if not isinstance(source, Mapping) or len({**own, **beside}) != 1 or (beside and own and beside != own):
        remarks.decide(
            f"{path}.source",
            "two-shapes",
            "the entry names no claim and no template, or more than one",
            "write resourceClaimName or resourceClaimTemplateName on the entry",
        )
        return entry
    remarks.changed(
        f"{path}.source", "pod-claim-source", f"{next(iter(own or beside))} is on the entry itself since 1.31"
    )
    changed: dict[str, Any] = {}
    for name, value in entry.items():
        if name == "source":
            changed |= own
        else:
            changed[name] = value
    return changed


def _show(steps: tuple[str | int, ...]) -> str:
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
    return text.removeprefix(".")
