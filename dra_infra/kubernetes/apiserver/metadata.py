"""Validation of object metadata.

Upstream: apimachinery pkg/api/validation/objectmeta.go, and core validation.go for templates.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from dra_infra.kubernetes.api import names
from dra_infra.kubernetes.api.gates import Release
from dra_infra.kubernetes.api.metadata import CLUSTER_SCOPED, ObjectMeta, OwnerReference
from dra_infra.kubernetes.api.placeholders import is_placeholder
from dra_infra.kubernetes.apiserver.field_errors import (
    FieldError,
    Printed,
    forbidden,
    invalid,
    label_wording,
    malformed,
    required,
    too_long,
)

MAX_ANNOTATIONS: Final = 256 * 1024
"""Bytes of all keys and values (TotalAnnotationSizeLimitB)."""

GENERATED_SUFFIX: Final = "x" * 5
"""Stands for the five characters that the server adds to generateName."""

_MAX_GENERATED_STEM: Final = 58
_STANDARD_FINALIZERS: Final = ("kubernetes", "orphan", "foregroundDeletion")
_TEMPLATE_FIELDS: Final = {
    "name": "name",
    "generate_name": "generateName",
    "namespace": "namespace",
    "self_link": "selfLink",
    "uid": "uID",
    "resource_version": "resourceVersion",
    "generation": "generation",
    "creation_timestamp": "creationTimestamp",
    "deletion_timestamp": "deletionTimestamp",
    "deletion_grace_period_seconds": "deletionGracePeriodSeconds",
    "owner_references": "ownerReferences",
    "finalizers": "finalizers",
    "managed_fields": "managedFields",
}
"""Fields that a template's inner metadata may not have, and what the server calls them (`uID` is its spelling)."""
_NOT_SET: Final[Mapping[str, tuple[object, ...]]] = {
    "generation": (0,),
    **dict.fromkeys(("name", "generate_name", "namespace", "self_link", "uid", "resource_version"), ("",)),
}
"""Values of those fields that Go cannot tell from an absent field; of the others it is None alone."""


def without_repeated_owners(metadata: ObjectMeta) -> ObjectMeta:
    """*metadata* as the server takes it: owners that are written twice count once."""
    owners = metadata.owner_references or ()
    once = list(dict.fromkeys(owners))
    return metadata.model_copy(update={"owner_references": once}) if len(once) < len(owners) else metadata


def check_metadata(
    metadata: ObjectMeta, release: Release, *, kind: str, is_new: bool = True
) -> Iterator[FieldError]:
    """Check the metadata of an object; the generation is the server's own once the object exists."""
    yield from _check_name(metadata, release, kind)
    if metadata.namespace and not is_placeholder(metadata.namespace) and kind not in CLUSTER_SCOPED:
        for told in names.dns_label(metadata.namespace):
            yield invalid("metadata.namespace-format", "metadata.namespace", metadata.namespace, told)
    if metadata.generation < 0 and is_new and kind not in CLUSTER_SCOPED:
        told = "must be greater than or equal to 0"
        yield invalid("metadata.generation", "metadata.generation", metadata.generation, told)
    yield from check_labels(metadata.labels, "metadata.labels", release)
    yield from check_annotations(metadata.annotations, "metadata.annotations", release)
    yield from _check_owners(metadata.owner_references or (), "metadata.ownerReferences", release)
    yield from _check_finalizers(metadata.finalizers or (), "metadata.finalizers", release)


def check_template_metadata(metadata: ObjectMeta, path: str, release: Release) -> Iterator[FieldError]:
    """Check the metadata inside a claim template, which takes labels and annotations only."""
    yield from check_annotations(metadata.annotations, f"{path}.annotations", release)
    yield from check_labels(metadata.labels, f"{path}.labels", release)
    # Most templates have none of these fields.
    given = metadata.model_fields_set
    for field, name in _TEMPLATE_FIELDS.items() if given else ():
        # A list or a pointer is set if it is there, even with nothing in it (validateFieldAllowList).
        if getattr(metadata, field) not in _NOT_SET.get(field, (None,)):
            yield forbidden("template.metadata", f"{path}.{name}", "cannot be set")


def check_labels(labels: Mapping[str, str] | None, path: str, release: Release) -> Iterator[FieldError]:
    """Check labels; findings about keys and values alike are at the path of the whole map."""
    noun, unit = label_wording(release)
    for key, value in (labels or {}).items():
        yield from malformed("metadata.label-key", path, key, names.label_key(key, noun=noun, unit=unit))
        if not is_placeholder(value):
            yield from malformed("metadata.label-value", path, value, names.label_value(value, unit))


def check_annotations(
    annotations: Mapping[str, str] | None, path: str, release: Release
) -> Iterator[FieldError]:
    """Check the keys of annotations, in which case does not count, and their size together."""
    noun, unit = label_wording(release)
    total = 0
    for key, value in (annotations or {}).items():
        total += names.size(key) + names.size(value)
        for told in names.label_key(key.lower(), noun=noun, unit=unit):
            yield invalid("metadata.annotation-key", path, key, told)
    if total > MAX_ANNOTATIONS:
        yield too_long("metadata.annotations-size", path, MAX_ANNOTATIONS)


def _check_name(metadata: ObjectMeta, release: Release, kind: str) -> Iterator[FieldError]:
    stem = metadata.generate_name or ""
    name = metadata.name or ""
    if is_placeholder(name) or is_placeholder(stem):
        return
    # Since 1.35 a class is checked by its final name alone, and in the words of the generated rules.
    by_final_name = kind == "DeviceClass" and release.number >= 35
    unit = "bytes" if by_final_name else "characters"
    if stem and not by_final_name:
        masked = f"{stem[:-1]}a" if len(stem) > 1 and stem.endswith("-") else stem
        for told in names.dns_subdomain(masked, unit):
            yield invalid("metadata.generate-name-format", "metadata.generateName", stem, told)
    if stem and not name:
        name = stem[:_MAX_GENERATED_STEM] + GENERATED_SUFFIX
    if not name:
        yield required("metadata.name-required", "metadata.name", "name or generateName is required")
        return
    yield from malformed("metadata.name-format", "metadata.name", name, names.dns_subdomain(name, unit))


def _check_finalizers(finalizers: Sequence[str], path: str, release: Release) -> Iterator[FieldError]:
    noun, unit = label_wording(release)
    for index, finalizer in enumerate(finalizers):
        for told in names.label_key(finalizer, noun=noun, unit=unit):
            yield invalid("metadata.finalizer", path, finalizer, told)
        if "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS:
            told = "name is neither a standard finalizer name nor is it fully qualified"
            yield invalid("metadata.finalizer-domain", f"{path}[{index}]", finalizer, told)
    if {"orphan", "foregroundDeletion"} <= set(finalizers):
        told = "finalizer orphan and foregroundDeletion cannot be both set"
        yield invalid("metadata.finalizers-conflict", path, list(finalizers), told)


def _check_owners(owners: Sequence[OwnerReference], path: str, release: Release) -> Iterator[FieldError]:
    controller = ""
    for index, owner in enumerate(owners):
        if release.number >= 37:
            yield from _check_owner(owner, f"{path}[{index}]")
        else:
            yield from _check_owner_before_37(owner, path)
        if owner.controller:
            named = f"{owner.kind}/{owner.name}"
            if controller:
                told = (
                    "Only one reference can have Controller set to true. "
                    f'Found "true" in references for {controller} and {named}'
                )
                shown = Printed(f"[{','.join(each.to_go_json() for each in owners)}]")
                yield invalid("metadata.owner-controller", path, shown, told)
            else:
                controller = named


def _check_owner(owner: OwnerReference, path: str) -> Iterator[FieldError]:
    group, _, version = owner.api_version.rpartition("/")
    if not owner.api_version:
        yield required("metadata.owner", f"{path}.apiVersion", "must not be empty")
    elif "/" in group or not version:
        yield invalid(
            "metadata.owner-api-version",
            f"{path}.apiVersion",
            owner.api_version,
            "must be <group>/<version> or <version>",
        )
    for name in ("kind", "name", "uid"):
        if not getattr(owner, name):
            yield required("metadata.owner", f"{path}.{name}", "must not be empty")


def _check_owner_before_37(owner: OwnerReference, path: str) -> Iterator[FieldError]:
    group, _, version = owner.api_version.rpartition("/")
    if "/" in group or not version:
        told = "version must not be empty"
        yield invalid("metadata.owner-api-version", f"{path}.apiVersion", owner.api_version, told)
    for name in ("kind", "name", "uid"):
        if not getattr(owner, name):
            yield invalid("metadata.owner", f"{path}.{name}", getattr(owner, name), "must not be empty")
