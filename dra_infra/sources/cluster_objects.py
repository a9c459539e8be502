"""Objects as a server gives them out, by `kubectl get -o yaml`: what controllers made of others, and what servers wrote.

A Deployment of a cluster comes with its ReplicaSets and their Pods. Only the first is anybody's to migrate.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from dra_infra.catalog.workload_kinds import workload_kinds
from dra_infra.kubernetes.api.manifests import mapping, mappings
from dra_infra.migration.estate import migrate_objects
from dra_infra.migration.needs import Settings
from dra_infra.migration.outcomes import Migrated, Remark

OWNED: Final = "owned-object"
"""The code of an object that a controller made."""

READ: Final = "written-by-server"
"""The code of an object that was read from a server, and changed."""

_WRITTEN: Final = (
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "selfLink",
    "managedFields",
)
"""Fields of metadata that servers write."""

_ANNOTATIONS: Final = (
    "kubectl.kubernetes.io/last-applied-configuration",
    "deployment.kubernetes.io/revision",
)
"""Annotations that kubectl and controllers write: the first has all of the old object in it."""


def migrate_read(objects: Sequence[Mapping[str, Any]], settings: Settings) -> list[Migrated]:
    """Migrate objects as `migrate_objects` does, of which some may be as a server gave them out.

    What a controller made of an object of the input is left out where it would be changed, for the controller makes it anew.
    """
    names = {_identity(each) for each in objects}
    owners = {
        index: owner
        for index, each in enumerate(objects)
        if workload_kinds().find(each) and (owner := find_owner(each))
    }
    own = iter(migrate_objects([each for index, each in enumerate(objects) if index not in owners], settings))
    return [
        _leave_out(each, owners[index], is_there=owners[index] in names, settings=settings)
        if index in owners
        else _as_read(each, next(own))
        for index, each in enumerate(objects)
    ]


_Identity = tuple[str, str, str]
"""Kind, namespace and name."""


def _identity(manifest: Mapping[str, Any]) -> _Identity:
    metadata = mapping(manifest.get("metadata"))
    return str(manifest.get("kind")), str(metadata.get("namespace") or ""), str(metadata.get("name"))


def find_owner(manifest: Mapping[str, Any]) -> _Identity | None:
    """The controller that made an object; None for what nobody made."""
    metadata = mapping(manifest.get("metadata"))
    for each in mappings(metadata.get("ownerReferences")):
        if each.get("controller") is True:
            return str(each.get("kind")), str(metadata.get("namespace") or ""), str(each.get("name"))
    return None


def _leave_out(
    manifest: Mapping[str, Any], owner: _Identity, *, is_there: bool, settings: Settings
) -> Migrated:
    (done,) = migrate_objects([manifest], settings)
    kind, _, name = owner
    if done.manifest is manifest:
        return done
    if is_there:
        message = f"it is left out: {kind} {name} makes it anew"
        return Migrated(
            manifest=None, remarks=(Remark("metadata.ownerReferences", "changed", OWNED, message),)
        )
    message = f"it stays as it is: {kind} {name} made it, and is not in the input"
    hint = f"migrate {kind} {name}, or what that belongs to"
    return Migrated(
        manifest=manifest,
        remarks=(Remark("metadata.ownerReferences", "decide", OWNED, message, hint),),
    )


def without_written(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    """The object without what servers write; the very same one where it was not read from one."""
    metadata = mapping(manifest.get("metadata"))
    if not metadata.get("uid"):
        return manifest
    kept = _without(metadata, _WRITTEN)
    if isinstance(kept.get("annotations"), Mapping):
        kept["annotations"] = _without(kept["annotations"], _ANNOTATIONS)
        if not kept["annotations"]:
            del kept["annotations"]
    return {**_without(manifest, ("status",)), "metadata": kept}


def _without(value: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return {key: each for key, each in value.items() if key not in names}


def _as_read(manifest: Mapping[str, Any], done: Migrated) -> Migrated:
    """The outcome of an object, where it changed without what servers write."""
    if done.manifest is None or done.manifest is manifest:
        return done
    plain = without_written(done.manifest)
    if plain is done.manifest:
        return done
    message = "what servers write is left out: status, uid, managedFields and others of metadata"
    remark = Remark("metadata", "changed", READ, message)
    return replace(done, manifest=plain, remarks=(*done.remarks, remark))
