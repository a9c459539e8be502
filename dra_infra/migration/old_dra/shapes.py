"""Claims, templates, classes and slices in the arrangement of v1, whatever version is written on them.

Half-migrated files have v1 written over the flat requests of v1beta1, or `exactly` below v1beta1: what counts is the shape.
Upstream: pkg/apis/resource/v1alpha3 up to 1.33, v1beta1/conversion.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from dra_infra.kubernetes.api import mapping, mappings, v1beta1
from dra_infra.migration.old_dra.objects import Remarks, text

Manifest = Mapping[str, Any]

KINDS: Final = ("ResourceClaim", "ResourceClaimTemplate", "DeviceClass", "ResourceSlice")
"""Kinds that v1 has, and older versions under the same name."""
NODE_SELECTOR: Final = "write it as a node selector into the pods"
_NO_CONTROLLER: Final = "nothing is to be done: the scheduler of today allocates without a controller"
_OLD_FINALIZER: Final = "dra.k8s.io/delete-protection"
_OF_DRIVERS: Final = "/deletion-protection"
"""The end of the finalizers of drivers' controllers (finalizer in k8s.io/dynamic-resource-allocation/controller)."""

_CLASSIC: Final = ("resource.k8s.io/v1alpha1", "resource.k8s.io/v1alpha2", "resource.k8s.io/v1alpha3")
"""Versions with controllers of drivers, which went in 1.32: what ends so in later ones is somebody's own."""


def to_v1(manifest: Manifest, remarks: Remarks) -> dict[str, Any]:
    """*manifest* in the arrangement of v1; its `apiVersion` stays."""
    kind, spec = manifest.get("kind"), manifest.get("spec")
    changed = dict(manifest)
    if isinstance(spec, Mapping):
        if kind == "ResourceSlice":
            changed["spec"] = _slice_spec(manifest, remarks)
        elif kind == "DeviceClass":
            changed["spec"] = without(spec, "suitableNodes", "spec", remarks, hint=NODE_SELECTOR)
        elif kind == "ResourceClaim":
            changed["spec"] = _claim_spec(spec, "spec", remarks)
        elif kind == "ResourceClaimTemplate" and isinstance(spec.get("spec"), Mapping):
            changed["spec"] = {**spec, "spec": _claim_spec(spec["spec"], "spec.spec", remarks)}
    return without_old_status(without_old_finalizer(changed, remarks), remarks)


def is_arranged(manifest: Manifest) -> bool:
    """Checks that each request of a claim in the arrangement of v1 is one that any version can say."""
    kind = manifest.get("kind")
    spec = mapping(manifest.get("spec"))
    claim = spec if kind == "ResourceClaim" else mapping(spec.get("spec"))
    requests = mapping(claim.get("devices")).get("requests")
    return not isinstance(requests, list) or all(map(_is_sayable, mappings(requests)))


def _is_sayable(request: Manifest) -> bool:
    exactly = request.get("exactly")
    if request.get("firstAvailable") and any(name in request for name in v1beta1.EXACT_FIELDS):
        return False
    return exactly is None or (isinstance(exactly, Mapping) and "exactly" not in exactly)


def without(fields: Manifest, name: str, path: str, remarks: Remarks, *, hint: str) -> dict[str, Any]:
    """*fields* but for one that the API has no more; one that says nothing is not worth a remark."""
    if fields.get(name):
        at = f"{path}.{name}" if path else name
        remarks.lost(at, "old-field-removed", f"the API has no {name} any more", hint)
    return {each: value for each, value in fields.items() if each != name}


def without_old_finalizer(manifest: Manifest, remarks: Remarks) -> dict[str, Any]:
    """*manifest* without the finalizers of old controllers, which nobody takes off any more."""
    metadata = manifest.get("metadata")
    is_classic = manifest.get("apiVersion") in _CLASSIC
    written = mapping(metadata).get("finalizers")
    finalizers: list[Any] = written if isinstance(written, list) else []
    old = [each for each in finalizers if is_classic and text(each).endswith(_OF_DRIVERS)]
    kept = [each for each in finalizers if each not in (_OLD_FINALIZER, *old)]
    if len(kept) == len(finalizers):
        return dict(manifest)
    for each in (each for each in finalizers if each not in kept):
        why = (
            "no controller of a driver takes it off any more"
            if each in old
            else "the controller of today sets its own"
        )
        message = f"the finalizer {each} is left out: {why}"
        remarks.changed("metadata.finalizers", "old-field-removed", message)
    changed = {**mapping(metadata), "finalizers": kept}
    if not kept:
        del changed["finalizers"]
    return {name: changed if name == "metadata" else value for name, value in manifest.items()}


def without_old_status(manifest: Manifest, remarks: Remarks) -> dict[str, Any]:
    """*manifest* without the fields of the status that only controllers of classic DRA knew."""
    status = manifest.get("status")
    if manifest.get("kind") != "ResourceClaim" or not isinstance(status, Mapping):
        return dict(manifest)
    changed = without(status, "deallocationRequested", "status", remarks, hint=_NO_CONTROLLER)
    if isinstance(changed.get("allocation"), Mapping):
        changed["allocation"] = without(
            changed["allocation"], "controller", "status.allocation", remarks, hint=_NO_CONTROLLER
        )
    return {name: changed if name == "status" else value for name, value in manifest.items()}


def _claim_spec(spec: Manifest, path: str, remarks: Remarks) -> dict[str, Any]:
    changed = without(spec, "controller", path, remarks, hint=_NO_CONTROLLER)
    devices = changed.get("devices")
    if devices is not None:
        changed = without(changed, "allocationMode", path, remarks, hint=_NO_CONTROLLER)
    requests = mapping(devices).get("requests")
    if isinstance(devices, Mapping) and isinstance(requests, list):
        found = [
            _request(each, f"{path}.devices.requests[{index}]", remarks)
            if isinstance(each, Mapping)
            else each
            for index, each in enumerate(requests)
        ]
        changed["devices"] = {name: found if name == "requests" else value for name, value in devices.items()}
    return changed


def _request(request: Manifest, path: str, remarks: Remarks) -> dict[str, Any]:
    flat = {name: value for name, value in request.items() if name in v1beta1.EXACT_FIELDS}
    exactly, alternatives = request.get("exactly"), request.get("firstAvailable")
    if isinstance(alternatives, list) and alternatives:
        return _prioritized(request, alternatives, path, remarks)
    if not flat or (exactly is not None and not isinstance(exactly, Mapping)):
        return dict(request)
    if not v1beta1.is_exact(flat) and exactly is None:
        return {name: value for name, value in request.items() if name not in flat}
    inner = {**flat, **mapping(exactly)}
    if isinstance(exactly, Mapping):
        inner = {**exactly, **{name: value for name, value in flat.items() if name not in exactly}}
        _compare(flat, exactly, path, remarks)
    remarks.changed(path, "old-shape", f"v1 has {', '.join(flat)} below exactly")
    # At the place of the first of them, so that a reader finds it where it was.
    changed: dict[str, Any] = {}
    for name, value in request.items():
        if name in flat or name == "exactly":
            changed.setdefault("exactly", inner)
        else:
            changed[name] = value
    return changed


def _compare(flat: Manifest, exactly: Manifest, path: str, remarks: Remarks) -> None:
    for name, value in flat.items():
        if name in exactly and exactly[name] != value:
            message = f"{name} is written twice, on the request and below exactly, with two values; the latter is kept"
            hint = "see which of them is meant"
            remarks.decide(f"{path}.{name}", "two-shapes", message, hint)


def _prioritized(request: Manifest, alternatives: list[Any], path: str, remarks: Remarks) -> dict[str, Any]:
    beside = [name for name in request if name in v1beta1.EXACT_FIELDS or name == "exactly"]
    if any(request[name] is not None for name in beside):
        message = f"{', '.join(beside)} beside firstAvailable: no version takes both"
        hint = "leave out one of both"
        remarks.decide(path, "two-shapes", message, hint)
        return dict(request)
    found = []
    for index, each in enumerate(alternatives):
        inner = mapping(each).get("exactly")
        if not isinstance(inner, Mapping) or not inner.keys().isdisjoint(each.keys()):
            found.append(each)
            continue
        message = "alternatives have their fields on themselves"
        remarks.changed(f"{path}.firstAvailable[{index}].exactly", "old-shape", message)
        found.append({**{name: value for name, value in each.items() if name != "exactly"}, **inner})
    return {name: found if name == "firstAvailable" else value for name, value in request.items()}


def _slice_spec(manifest: Manifest, remarks: Remarks) -> dict[str, Any]:
    spec: dict[str, Any] = v1beta1.to_hub(manifest)["spec"]
    written = mapping(manifest["spec"]).get("devices")
    devices = spec.get("devices")
    if not isinstance(devices, list) or not isinstance(written, list):
        return spec
    spec["devices"] = [_device(each) for each in devices]
    for index, (before, after) in enumerate(zip(written, spec["devices"], strict=True)):
        if before != after:
            path = f"spec.devices[{index}]"
            remarks.changed(path, "old-shape", "a device has its attributes and capacity on itself in v1")
    return spec


def _device(device: Any) -> Any:
    capacity = mapping(device).get("capacity")
    if not isinstance(capacity, Mapping):
        return device
    wrapped = {
        name: {"value": amount}
        if isinstance(amount, str | int | float) and not isinstance(amount, bool)
        else amount
        for name, amount in capacity.items()
    }
    return {name: wrapped if name == "capacity" else value for name, value in device.items()}
