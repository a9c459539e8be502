"""Demands of claims: what they ask for, as the server has them, without object names.

Without names, equal claims are searched once.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from dra_infra.kubernetes.api.decoding import GROUP, VERSIONS
from dra_infra.kubernetes.api.defaults import claim_with_defaults
from dra_infra.kubernetes.api.device_class import DeviceClass, DeviceSelector
from dra_infra.kubernetes.api.dropping import drop_from_claim
from dra_infra.kubernetes.api.gates import Release
from dra_infra.kubernetes.api.metadata import ObjectRef
from dra_infra.kubernetes.api.resource_claim import (
    DeviceClaim,
    DeviceRequest,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimTemplate,
)
from dra_infra.kubernetes.api.versions import convert
from dra_infra.placement.placement import Reason
from dra_infra.program_objects import SECRET, UNKNOWN

API_VERSION = "resource.k8s.io/v1"
ONLY_AFTER_UP = "is only known after `pulumi up`"


@dataclass(frozen=True, slots=True)
class Demand:
    """What one claim asks for.

    Args:
        devices: The devices part of its spec, with the server's defaults and without what its gates drop.
        classes: The classes that it names.
        key: Equal for claims that ask for the same of the same classes.
    """

    devices: DeviceClaim = field(compare=False)
    classes: tuple[DeviceClass, ...] = field(compare=False)
    key: str

    @property
    def leaves(self) -> Iterator[tuple[str, ExactDeviceRequest | DeviceSubRequest]]:
        """Every request that names a class, with its name in results: `request`, or `request/entry`."""
        for request in self.devices.requests or ():
            if request.exactly is not None:
                yield request.name, request.exactly
            for entry in request.first_available or ():
                yield f"{request.name}/{entry.name}", entry

    @property
    def attributes(self) -> frozenset[str]:
        """Attributes that its constraints compare."""
        return frozenset(
            name
            for constraint in self.devices.constraints or ()
            for name in (constraint.match_attribute, constraint.distinct_attribute)
            if name is not None
        )

    @property
    def expressions(self) -> frozenset[str]:
        """Every expression that may be evaluated on a device for it."""
        selectors = [
            *(selector for each in self.classes for selector in each.spec.selectors or ()),
            *(selector for _, leaf in self.leaves for selector in leaf.selectors or ()),
        ]
        return frozenset(
            [
                *(selector.cel.expression for selector in selectors if selector.cel is not None),
                *(each.expression for _, leaf in self.leaves for each in leaf.derived_attributes or ()),
            ]
        )

    @property
    def asks_capacity(self) -> bool:
        """Whether a request says how much of a device it needs."""
        return any(leaf.capacity is not None for _, leaf in self.leaves)


@dataclass(frozen=True, slots=True)
class Undecided:
    """Why nothing can be said."""

    reasons: tuple[Reason, ...]


def find_unknown(value: Any, path: str) -> list[str]:
    """Paths of values below *path* that are only known after `pulumi up`, in the order written."""
    if isinstance(value, str):
        return [path] if value in (UNKNOWN, SECRET) else []
    if isinstance(value, Mapping):
        return [
            found for key, item in value.items() for found in find_unknown(item, f"{path}.{key}".lstrip("."))
        ]
    if isinstance(value, (list, tuple)):
        return [found for index, item in enumerate(value) for found in find_unknown(item, f"{path}[{index}]")]
    return []


def read_demand(
    manifest: Mapping[str, Any],
    ref: ObjectRef,
    classes: Mapping[str, Mapping[str, Any]],
    release: Release,
) -> Demand | Undecided:
    """What a ResourceClaim or ResourceClaimTemplate asks for, or why that cannot be said here.

    Args:
        manifest: The object, in any served version; values that are not known hold `UNKNOWN`.
        ref: How to call it.
        classes: Manifests of the known classes by name.
        release: The server that stores it: fields behind a gate that is off are gone before the scheduler looks.
    """
    path = "spec.spec" if ref.kind == "ResourceClaimTemplate" else "spec"
    reasons = _find_unknown_requests(manifest, ref, path)
    if reasons:
        return Undecided(tuple(reasons))
    devices = _read_devices(manifest, ref)
    if isinstance(devices, Reason):
        return Undecided((devices,))
    devices = drop_from_claim(claim_with_defaults(devices), path, release)[0]
    found: dict[str, DeviceClass] = {}
    for index, request in enumerate(devices.requests or ()):
        at = f"{ref}: {path}.devices.requests[{index}]"
        if request.exactly is None and not request.first_available:
            message = f"{at}: neither exactly nor firstAvailable is set"
            reasons.append(Reason(code="object-malformed", message=message))
        for where, leaf in _leaves(request, at):
            reasons.extend(_check_selectors(leaf.selectors, where))
            class_ = _read_class(leaf.device_class_name, f"{where}.deviceClassName", classes)
            if isinstance(class_, Reason):
                reasons.append(class_)
            else:
                found[leaf.device_class_name] = class_
    if reasons:
        return Undecided(tuple(reasons))
    chosen = tuple(found[name] for name in sorted(found))
    return Demand(devices, chosen, _key(devices, chosen))


def find_classes(classes: Mapping[str, Mapping[str, Any]]) -> dict[str, DeviceClass]:
    """The classes that can be read, by name."""
    read = {name: _read_class(name, "", classes) for name in classes}
    return {name: class_ for name, class_ in read.items() if isinstance(class_, DeviceClass)}


def _key(devices: DeviceClaim, classes: tuple[DeviceClass, ...]) -> str:
    # Configuration is for drivers; it decides nothing here.
    asked = {key: value for key, value in devices.to_manifest().items() if key != "config"}
    selecting = {
        each.metadata.name: [one.to_manifest() for one in each.spec.selectors or ()] for each in classes
    }
    return json.dumps([asked, selecting], sort_keys=True, default=str)


def _find_unknown_requests(manifest: Mapping[str, Any], ref: ObjectRef, path: str) -> list[Reason]:
    holder: Any = manifest
    for step in (*path.split("."), "devices"):
        holder = holder.get(step) if isinstance(holder, Mapping) else holder
    if isinstance(holder, Mapping):
        # Configuration decides nothing here and may well hold a secret.
        holder = {key: value for key, value in holder.items() if key != "config"}
    return [
        Reason(
            code="class-not-known" if found.endswith("deviceClassName") else "value-not-known",
            message=(
                f"{ref}: class not known here: {found} {ONLY_AFTER_UP}"
                if found.endswith("deviceClassName")
                else f"{ref}: {found} {ONLY_AFTER_UP}"
            ),
        )
        for found in find_unknown(holder, f"{path}.devices")
    ]


def _read_devices(manifest: Mapping[str, Any], ref: ObjectRef) -> DeviceClaim | Reason:
    current = _in_hub_version(manifest, str(ref))
    if isinstance(current, Reason):
        return current
    try:
        if ref.kind == "ResourceClaimTemplate":
            return ResourceClaimTemplate.from_manifest(current).spec.spec.devices
        return ResourceClaim.from_manifest(current).spec.devices
    except ValidationError as error:
        return _malformed(str(ref), error)


def _in_hub_version(manifest: Mapping[str, Any], named: str) -> Mapping[str, Any] | Reason:
    """The object in v1, as the server keeps it whatever version it was sent in."""
    version = manifest.get("apiVersion")
    if version == API_VERSION:
        return manifest
    if not isinstance(version, str) or version not in {f"{GROUP}/{each}" for each in VERSIONS}:
        known = ", ".join(VERSIONS)
        return Reason(
            code="object-malformed", message=f"{named}: apiVersion {version} is none of {GROUP} ({known})"
        )
    try:
        return convert(manifest, "v1").manifest
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        return Reason(code="object-malformed", message=f"{named}: cannot be read as {version}: {error}")


def _malformed(named: str, error: ValidationError) -> Reason:
    detail = error.errors(include_url=False, include_input=False)[0]
    where = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in detail["loc"])
    return Reason(code="object-malformed", message=f"{named}: {where.lstrip('.')}: {detail['msg']}")


def _leaves(request: DeviceRequest, path: str) -> Iterator[tuple[str, ExactDeviceRequest | DeviceSubRequest]]:
    if request.exactly is not None:
        yield f"{path}.exactly", request.exactly
    for index, entry in enumerate(request.first_available or ()):
        yield f"{path}.firstAvailable[{index}]", entry


def _read_class(name: str, path: str, classes: Mapping[str, Mapping[str, Any]]) -> DeviceClass | Reason:
    manifest = classes.get(name)
    if manifest is None:
        known = ", ".join(sorted(classes)) or "none"
        return Reason(
            code="class-not-known",
            message=f"{path}: class {name} not known here: it is not in this input, nor does the fleet ship it "
            f"(known: {known})",
        )
    spec = manifest.get("spec")
    # A class's configuration is for drivers and decides nothing here.
    deciding = {key: spec[key] for key in spec if key != "config"} if isinstance(spec, Mapping) else spec
    unknown = find_unknown(deciding, "spec")
    if unknown:
        return Reason(code="value-not-known", message=f"DeviceClass {name}: {unknown[0]} {ONLY_AFTER_UP}")
    current = _in_hub_version(manifest, f"DeviceClass {name}")
    if isinstance(current, Reason):
        return current
    try:
        class_ = DeviceClass.from_manifest(current)
    except ValidationError as error:
        return _malformed(f"DeviceClass {name}", error)
    return next(_check_selectors(class_.spec.selectors, f"DeviceClass {name}: spec"), class_)


def _check_selectors(selectors: Sequence[DeviceSelector] | None, path: str) -> Iterator[Reason]:
    for index, selector in enumerate(selectors or ()):
        if selector.cel is None:
            yield Reason(code="object-malformed", message=f"{path}.selectors[{index}].cel is missing")
