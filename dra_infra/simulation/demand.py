"""What claims ask for, ready for the search; free of object names, so that equal claims are searched once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import ValidationError

from dra_infra.model.device_class import DeviceClass, DeviceSelector
from dra_infra.model.metadata import ObjectRef
from dra_infra.model.program import SECRET, UNKNOWN
from dra_infra.model.resource_claim import (
    DeviceConstraint,
    DeviceRequest,
    DeviceToleration,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimTemplate,
)
from dra_infra.simulation.placement import Reason

API_VERSION = "resource.k8s.io/v1"
ONLY_AFTER_UP = "is only known after `pulumi up`"


@dataclass(frozen=True, slots=True)
class Selector:
    """One CEL test.

    Args:
        class_name: The class it comes from; empty for a selector of the request.
        index: Its number in its list.
        expression: CEL over `device`.
    """

    class_name: str
    index: int
    expression: str


@dataclass(frozen=True, slots=True)
class Request:
    """One leaf request.

    Args:
        name: Name in the claim.
        selectors: Those of the class, then those of the request; this order decides which error is met first.
        count: How many devices; None for all that match.
        tolerations: Device taints that it tolerates.
    """

    name: str
    selectors: tuple[Selector, ...]
    count: int | None
    tolerations: tuple[DeviceToleration, ...]


@dataclass(frozen=True, slots=True)
class Constraint:
    """What the devices of the named requests (all when empty) must share or must not share."""

    kind: Literal["match", "distinct"]
    attribute: str
    requests: frozenset[str]

    def covers(self, request: str) -> bool:
        """Whether devices of the request count."""
        return not self.requests or request in self.requests


@dataclass(frozen=True, slots=True)
class Demand:
    """What one claim asks for."""

    requests: tuple[Request, ...]
    constraints: tuple[Constraint, ...]


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
    manifest: Mapping[str, Any], ref: ObjectRef, classes: Mapping[str, Mapping[str, Any]]
) -> Demand | Undecided:
    """What a ResourceClaim or ResourceClaimTemplate asks for, or why that cannot be said here.

    Args:
        manifest: The object; values that are not known hold `UNKNOWN`.
        ref: How to call it.
        classes: Manifests of the known classes by name.
    """
    reasons = _find_unknown_requests(manifest, ref)
    if reasons:
        return Undecided(tuple(reasons))
    spec, path = _read_spec(manifest, ref)
    if isinstance(spec, Reason):
        return Undecided((spec,))
    requests: list[Request] = []
    for index, request in enumerate(spec.devices.requests or ()):
        read = _read_request(request, f"{ref}: {path}.devices.requests[{index}]", classes)
        if isinstance(read, Request):
            requests.append(read)
        else:
            reasons.extend(read)
    constraints: list[Constraint] = []
    for index, constraint in enumerate(spec.devices.constraints or ()):
        constraint_read = _read_constraint(constraint, f"{ref}: {path}.devices.constraints[{index}]")
        if isinstance(constraint_read, Constraint):
            constraints.append(constraint_read)
        else:
            reasons.append(constraint_read)
    if reasons:
        return Undecided(tuple(reasons))
    return Demand(requests=tuple(requests), constraints=tuple(constraints))


def _find_unknown_requests(manifest: Mapping[str, Any], ref: ObjectRef) -> list[Reason]:
    path = "spec.spec" if ref.kind == "ResourceClaimTemplate" else "spec"
    holder: Any = manifest
    for step in (*path.split("."), "devices"):
        holder = holder.get(step) if isinstance(holder, Mapping) else holder
    if isinstance(holder, Mapping):
        # Configuration is for drivers; it decides nothing here and may well hold a secret.
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


def _read_spec(manifest: Mapping[str, Any], ref: ObjectRef) -> tuple[ResourceClaimSpec | Reason, str]:
    version = manifest.get("apiVersion")
    if version != API_VERSION:
        return Reason(
            code="not-modelled", message=f"{ref}: apiVersion {version} is not placed yet, only {API_VERSION}"
        ), ""
    try:
        if ref.kind == "ResourceClaimTemplate":
            return ResourceClaimTemplate.from_manifest(manifest).spec.spec, "spec.spec"
        return ResourceClaim.from_manifest(manifest).spec, "spec"
    except ValidationError as error:
        return _malformed(ref, error), ""


def _malformed(ref: ObjectRef, error: ValidationError) -> Reason:
    detail = error.errors(include_url=False, include_input=False)[0]
    where = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in detail["loc"])
    return Reason(code="object-malformed", message=f"{ref}: {where.lstrip('.')}: {detail['msg']}")


def _read_request(
    request: DeviceRequest, path: str, classes: Mapping[str, Mapping[str, Any]]
) -> Request | list[Reason]:
    exactly = request.exactly
    if request.first_available:
        return [_unsupported(f"{path}.firstAvailable")]
    if exactly is None:
        return [Reason(code="object-malformed", message=f"{path}: neither exactly nor firstAvailable is set")]
    reasons = [_unsupported(f"{path}.exactly.{name}") for name in _unsupported_fields(exactly)]
    class_selectors = _read_class(exactly.device_class_name, f"{path}.exactly.deviceClassName", classes)
    own_selectors = _read_selectors("", exactly.selectors or (), f"{path}.exactly")
    reasons += [read for read in (class_selectors, own_selectors) if isinstance(read, Reason)]
    if reasons or isinstance(class_selectors, Reason) or isinstance(own_selectors, Reason):
        return reasons
    # The server's default: a count of 0 is one that was left out.
    count = exactly.count or 1
    return Request(
        name=request.name,
        selectors=class_selectors + own_selectors,
        count=None if exactly.allocation_mode == "All" else count,
        tolerations=tuple(exactly.tolerations or ()),
    )


def _unsupported_fields(exactly: ExactDeviceRequest) -> list[str]:
    return [
        name
        for name, used in (
            ("adminAccess", exactly.admin_access),
            ("capacity", exactly.capacity and exactly.capacity.requests),
            ("derivedAttributes", exactly.derived_attributes),
        )
        if used
    ]


def _unsupported(path: str) -> Reason:
    return Reason(code="not-modelled", message=f"{path} is not modelled yet")


def _read_class(
    name: str, path: str, classes: Mapping[str, Mapping[str, Any]]
) -> tuple[Selector, ...] | Reason:
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
    if manifest.get("apiVersion") != API_VERSION:
        version = manifest.get("apiVersion")
        return Reason(
            code="not-modelled",
            message=f"DeviceClass {name}: apiVersion {version} is not placed yet, only {API_VERSION}",
        )
    try:
        class_ = DeviceClass.from_manifest(manifest)
    except ValidationError as error:
        return _malformed(ObjectRef("DeviceClass", name), error)
    return _read_selectors(name, class_.spec.selectors or (), f"DeviceClass {name}: spec")


def _read_selectors(
    class_name: str, selectors: Sequence[DeviceSelector], path: str
) -> tuple[Selector, ...] | Reason:
    read = []
    for index, selector in enumerate(selectors):
        if selector.cel is None:
            return Reason(code="object-malformed", message=f"{path}.selectors[{index}].cel is missing")
        read.append(Selector(class_name, index, selector.cel.expression))
    return tuple(read)


def _read_constraint(constraint: DeviceConstraint, path: str) -> Constraint | Reason:
    covered = frozenset(constraint.requests or ())
    if constraint.match_attribute is not None:
        return Constraint("match", constraint.match_attribute, covered)
    if constraint.distinct_attribute is not None:
        return Constraint("distinct", constraint.distinct_attribute, covered)
    return Reason(
        code="object-malformed", message=f"{path}: neither matchAttribute nor distinctAttribute is set"
    )
