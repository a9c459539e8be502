"""The answer of one API server to one object of resource.k8s.io: decoded, gated, defaulted, checked.

The order is the server's: what cannot be decoded is refused before anything else (400), then gated fields are
cleared, then both engines check what is left (422).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from dra_infra.kubernetes.api.decoding import Decoded, can_decode, decode
from dra_infra.kubernetes.api.defaults import with_defaults
from dra_infra.kubernetes.api.device_class import DeviceClass
from dra_infra.kubernetes.api.dropping import Dropped, drop_from_claim, drop_from_class
from dra_infra.kubernetes.api.gates import Release
from dra_infra.kubernetes.api.pods import DecodedPods, decode_pod_claims
from dra_infra.kubernetes.api.record_equality import are_records_equal
from dra_infra.kubernetes.api.resource_claim import DeviceClaim, ResourceClaim, ResourceClaimTemplate
from dra_infra.kubernetes.apiserver.claims import check_claim, check_class
from dra_infra.kubernetes.apiserver.field_errors import (
    FieldError,
    Judged,
    Outcome,
    Printed,
    forbidden,
    invalid,
)
from dra_infra.kubernetes.apiserver.generated import (
    SINCE,
    check_generated_claim,
    check_generated_class,
    merge,
)
from dra_infra.kubernetes.apiserver.metadata import (
    check_metadata,
    check_template_metadata,
    without_repeated_owners,
)
from dra_infra.kubernetes.apiserver.pod_claims import check_pod_claims, check_pod_update

Checked = DeviceClass | ResourceClaim | ResourceClaimTemplate
"""Objects that there is advice on."""


ADMIN_LABEL = "resource.kubernetes.io/admin-access"
"""Label that a namespace needs, with the value `true`, before claims in it may have admin access."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One server's answer to one object.

    Args:
        status: `accepted`, `bad-request` (400: cannot be decoded) or `invalid` (422).
        errors: Why it is invalid, as the server lists it (unordered there).
        type_errors: (path, text) of values that do not have their field's type.
        unknown_fields: Fields that this server does not know: refused when strict, else dropped with a warning.
        dropped: Fields whose gate is off, which are lost without a word.
        warnings: (path, text) of what the server takes and warns about.
        record: What is left of the object; None when it cannot be decoded, and for pods and what makes them.
    """

    status: Literal["accepted", "bad-request", "invalid"]
    errors: tuple[FieldError, ...] = ()
    type_errors: tuple[tuple[str, str], ...] = ()
    unknown_fields: tuple[str, ...] = ()
    dropped: tuple[Dropped, ...] = ()
    warnings: tuple[tuple[str, str], ...] = ()
    record: Judged | None = None


def judge(
    manifest: Mapping[str, Any],
    release: Release,
    *,
    strict: bool = True,
    old: Mapping[str, Any] | None = None,
    namespace_labels: Mapping[str, str] | None = None,
) -> Verdict:
    """The answer of a server of *release* when *manifest* is created, or put in the place of *old*.

    Args:
        manifest: A DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice or DeviceTaintRule in a version that
            the release knows, or an object with a pod template, of which the claim parts count.
        release: The server.
        strict: Whether unknown fields are refused (kubectl's default) or dropped with a warning.
        old: The object as the server has it, for an update.
        namespace_labels: Labels of the object's namespace; None leaves the rule about admin access out.
    """
    if not can_decode(manifest):
        pods = _judge_pods(manifest, old, release, strict=strict)
        if pods is not None:
            return pods
    decoded = decode(manifest, minor=release.number)
    if decoded.type_errors or (strict and decoded.unknown_fields):
        return _bad_request(decoded)
    before = _stored(old, release) if old is not None else None
    record, dropped, errors, warnings = _check(decoded, before, release, namespace_labels)
    return Verdict(
        status="invalid" if errors else "accepted",
        errors=errors,
        unknown_fields=decoded.unknown_fields,
        dropped=dropped,
        warnings=warnings,
        record=record,
    )


def _bad_request(decoded: Decoded | DecodedPods) -> Verdict:
    return Verdict(
        status="bad-request", type_errors=decoded.type_errors, unknown_fields=decoded.unknown_fields
    )


def _judge_pods(
    manifest: Mapping[str, Any], old: Mapping[str, Any] | None, release: Release, *, strict: bool
) -> Verdict | None:
    decoded = decode_pod_claims(manifest, minor=release.number)
    if decoded is None:
        return None
    if decoded.type_errors or (strict and decoded.unknown_fields):
        return _bad_request(decoded)
    errors = [error for pod in decoded.pods for error in check_pod_claims(pod)]
    before = decode_pod_claims(old, minor=release.number) if old is not None else None
    if before is not None and str(old and old.get("kind")) == "Pod":
        for pod, stored in zip(decoded.pods, before.pods, strict=False):
            errors += check_pod_update(pod, stored)
    return Verdict(
        status="invalid" if errors else "accepted",
        errors=tuple(errors),
        unknown_fields=decoded.unknown_fields,
    )


def _stored(manifest: Mapping[str, Any], release: Release) -> Any:
    decoded = decode(manifest, minor=release.number)
    return with_defaults(decoded.record, version=decoded.version)


def _check(
    decoded: Decoded, before: Any, release: Release, namespace_labels: Mapping[str, str] | None
) -> Outcome:
    record = with_defaults(decoded.record, version=decoded.version)
    flat = decoded.version == "v1beta1"
    if not isinstance(record, (DeviceClass, ResourceClaim, ResourceClaimTemplate)):
        # These rules take 14 ms to load, and few inputs hold slices or taint rules.
        from dra_infra.kubernetes.apiserver.published import check_published

        return check_published(record, before, release, flat=flat)
    metadata = without_repeated_owners(record.metadata)
    if metadata is not record.metadata:
        record = record.model_copy(update={"metadata": metadata})
    if isinstance(record, DeviceClass):
        return _check_device_class(record, before, release)
    if isinstance(record, ResourceClaim):
        return _check_resource_claim(record, before, release, namespace_labels, flat=flat)
    return _check_template(record, before, release, namespace_labels, flat=flat)


def _check_device_class(record: DeviceClass, before: DeviceClass | None, release: Release) -> Outcome:
    old = before.spec if before is not None else None
    spec, dropped = drop_from_class(record.spec, release, old)
    written = [
        *check_metadata(record.metadata, release, kind="DeviceClass", is_new=before is None),
        *check_class(spec, release, old=old),
    ]
    if old is not None and release.number < 35:
        written += check_class(spec, release)
    generated = (
        check_generated_class(spec) if release.number >= SINCE and not are_records_equal(spec, old) else ()
    )
    kept = record.model_copy(update={"spec": spec}) if dropped else record
    return Outcome(kept, dropped, merge(written, generated))


def _check_resource_claim(
    record: ResourceClaim,
    before: ResourceClaim | None,
    release: Release,
    namespace_labels: Mapping[str, str] | None,
    *,
    flat: bool,
) -> Outcome:
    old = before.spec.devices if before is not None else None
    devices, dropped = drop_from_claim(record.spec.devices, "spec.devices", release, old)
    kept = (
        record.model_copy(update={"spec": record.spec.model_copy(update={"devices": devices})})
        if devices is not record.spec.devices
        else record
    )
    errors = [*check_metadata(record.metadata, release, kind="ResourceClaim", is_new=before is None)]
    if before is None:
        errors += check_admin_access(devices, namespace_labels)
        errors += _check_devices(devices, "spec.devices", release, flat=flat)
    else:
        if not are_records_equal(devices, old):
            errors.append(_immutable(kept, release))
        if release.number < 35:
            errors += check_claim(devices, "spec.devices", release)
            errors += check_claim(devices, "spec.devices", release, stored=True)
    return Outcome(kept, dropped, tuple(errors))


def _check_template(
    record: ResourceClaimTemplate,
    before: ResourceClaimTemplate | None,
    release: Release,
    namespace_labels: Mapping[str, str] | None,
    *,
    flat: bool,
) -> Outcome:
    inner = record.spec
    old = before.spec.spec.devices if before is not None else None
    devices, dropped = drop_from_claim(inner.spec.devices, "spec.spec.devices", release, old)
    if devices is not inner.spec.devices:
        spec = inner.spec.model_copy(update={"devices": devices})
        record = record.model_copy(update={"spec": inner.model_copy(update={"spec": spec})})
    errors = [*check_metadata(record.metadata, release, kind="ResourceClaimTemplate", is_new=before is None)]
    errors += check_template_metadata(inner.metadata, "spec.metadata", release)
    errors += _check_devices(devices, "spec.spec.devices", release, flat=flat)
    if before is None:
        errors += check_admin_access(devices, namespace_labels)
    else:
        if not (are_records_equal(devices, old) and are_records_equal(inner.metadata, before.spec.metadata)):
            errors.append(_immutable(record, release))
        if release.number < 35:
            errors += check_claim(devices, "spec.spec.devices", release, stored=True)
    return Outcome(record, dropped, tuple(errors))


def _check_devices(
    devices: DeviceClaim, path: str, release: Release, *, flat: bool
) -> tuple[FieldError, ...]:
    written = tuple(check_claim(devices, path, release))
    if release.number < SINCE:
        return written
    return merge(written, check_generated_claim(devices, path, release, flat=flat), flat=flat)


def check_admin_access(
    devices: DeviceClaim, namespace_labels: Mapping[str, str] | None
) -> Iterator[FieldError]:
    """Admin access needs a label on the namespace; the path is the same for claims and templates (AuthorizedForAdmin)."""
    if namespace_labels is None or namespace_labels.get(ADMIN_LABEL) == "true":
        return
    for index, request in enumerate(devices.requests or ()):
        if request.exactly is not None and request.exactly.admin_access:
            yield forbidden(
                "request.admin-access",
                f"spec.devices.requests[{index}].adminAccess",
                f"admin access to devices requires the `{ADMIN_LABEL}: true` label on the containing namespace",
            )
            return


def _immutable(record: ResourceClaim | ResourceClaimTemplate, release: Release) -> FieldError:
    # Since 1.37 the generated rule speaks for claims, and prints no value; templates have no such rule.
    is_generated = release.number >= SINCE and isinstance(record, ResourceClaim)
    shown = None if is_generated else Printed(record.spec.to_internal_json(release.number))
    return invalid("claim.immutable", "spec", shown, "field is immutable")
