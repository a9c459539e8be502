"""Demands of pods: what their claims ask for, as the server has them, and what else decides where they can go.

Demands have no object names, so that equal claims are searched once.
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import ValidationError

from dra_infra.kubernetes.api import (
    GROUP,
    UNKNOWN,
    VERSIONS,
    Amounts,
    DeviceClaim,
    DeviceClass,
    DeviceSelector,
    DeviceSubRequest,
    ExactDeviceRequest,
    Gang,
    ObjectRef,
    Placeholder,
    Release,
    ResourceClaim,
    ResourceClaimTemplate,
    claim_with_defaults,
    convert,
    drop_from_claim,
    is_placeholder,
)
from dra_infra.kubernetes.apiserver import Use
from dra_infra.kubernetes.cel import Dependencies, find_dependencies
from dra_infra.kubernetes.scheduler import (
    EXTENDED_CLAIM_ENTRY,
    ExtendedDemand,
    NodeFilter,
    PodShape,
    goes_round,
)
from dra_infra.markers import marker_kind
from dra_infra.placement.placement import Reason

API_VERSION = "resource.k8s.io/v1"
ONLY_AFTER_UP = "is only known after `pulumi up`"


@dataclass(frozen=True, slots=True)
class Demand:
    """The devices that one claim asks for, without the names of objects.

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
            yield from ((name, leaf) for name, _, leaf in request.leaves)

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
        """A request says how much of a device it needs."""
        return any(leaf.capacity is not None for _, leaf in self.leaves)


@dataclass(frozen=True, slots=True)
class Undecided:
    """Why nothing can be said."""

    reasons: tuple[Reason, ...]


@dataclass(frozen=True, slots=True)
class ReadFields:
    """Fields of devices that decide whether they serve the claims of a pod.

    Args:
        reads: Attributes and capacities that decide expressions; None for everything.
        attributes: Attributes under a constraint, of which only sameness counts.
        capacity: Whether capacities are compared with a request.
    """

    reads: Dependencies
    attributes: tuple[str, ...]
    capacity: bool

    @classmethod
    def of(cls, demands: Sequence[Demand]) -> ReadFields:
        """The fields for all claims together."""
        union: set[tuple[str, str, str]] | None = set()
        for expression in {each for demand in demands for each in demand.expressions}:
            reads = find_dependencies(expression)
            if union is None or reads is None:
                union = None
            else:
                union |= reads
        return cls(
            None if union is None else frozenset(union),
            tuple(sorted({name for demand in demands for name in demand.attributes})),
            any(demand.asks_capacity for demand in demands),
        )


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a pod's `spec.resourceClaims`, or the claim that the scheduler makes for extended resources.

    Args:
        name: Name of the entry.
        object: The claim or template.
        demand: What it asks for.
        shared: Whether all pods use the one claim; else each pod gets its own.
    """

    name: str
    object: ObjectRef
    demand: Demand
    shared: bool


class ExtendedClaim:
    """The claim that the scheduler makes for the extended resources of a pod, which depends on the node.

    Args:
        demand: What the pod asks for.
        namespace: Of the pod.
        classes: Manifests of the known classes by name.
        has_claims: Whether the pod has claims of its own.
        node_name: The node that the pod names, by which nobody makes it a claim.
    """

    def __init__(
        self,
        demand: ExtendedDemand,
        namespace: str,
        classes: Mapping[str, Mapping[str, Any]],
        *,
        has_claims: bool,
        node_name: object = None,
    ) -> None:
        self.demand = demand
        self._ref = ObjectRef(kind="ResourceClaim", name=EXTENDED_CLAIM_ENTRY, namespace=namespace)
        self._classes = classes
        self._has_claims = has_claims
        self._node_name = node_name
        self._entries: dict[tuple[str, ...], Entry | Undecided | None] = {}

    def entry_for(self, offered: Amounts) -> Entry | Undecided | None:
        """The claim on a node that offers so much; None where the pod needs none."""
        names = self.demand.by_devices(offered)
        if names not in self._entries:
            self._entries[names] = self._read(offered)
        return self._entries[names]

    def refusal_for(self, offered: Amounts) -> str:
        """Why the pod never starts on such a node although it may go there, or has no devices; empty when it has."""
        if self._node_name and self.demand.by_devices(offered):
            return f"{goes_round(self._node_name)} makes the claim for its extended resources"
        if not self.demand.is_stuck(offered, has_claims=self._has_claims):
            return ""
        return (
            "a device plugin serves the extended resources of a pod with claims, which the scheduler fails to bind: "
            "nil or empty request mappings (a bug of Kubernetes 1.35 to 1.37)"
        )

    def spec_for(self, offered: Amounts) -> dict[str, Any] | None:
        """The spec of the claim on such a node."""
        requests = self.demand.requests_for(offered, has_claims=self._has_claims)
        return {"devices": {"requests": [each.to_manifest() for each in requests]}} if requests else None

    def _read(self, offered: Amounts) -> Entry | Undecided | None:
        spec = self.spec_for(offered)
        if spec is None:
            return None
        manifest = {"apiVersion": API_VERSION, "kind": "ResourceClaim", "spec": spec}
        demand = read_demand(manifest, self._ref, self._classes, self.demand.served.release)
        if isinstance(demand, Undecided):
            return demand
        return Entry(name=EXTENDED_CLAIM_ENTRY, object=self._ref, demand=demand, shared=False)


@dataclass(frozen=True, slots=True)
class PodPlan:
    """All that decides where one pod of a workload can go.

    Args:
        entries: Its claims in the order written.
        requests: What it takes of a node.
        filter: The filters that look at nodes only.
        filter_key: Equal for equal filters.
        shape: What decides beside other pods.
        extended: Extended resources that device classes serve.
        made: The objects that are made for one pod, in order: what they are, and what they count for in quotas.
        spec: The pod spec as it is stored.
        refusal: Why it never starts on the nodes that the plan is for, or has no devices there; see `at`.
    """

    entries: tuple[Entry, ...]
    requests: Amounts = field(hash=False)
    filter: NodeFilter = field(hash=False, compare=False)
    filter_key: str
    shape: PodShape
    extended: ExtendedClaim | None = field(default=None, hash=False, compare=False)
    made: tuple[tuple[str, Use], ...] = field(default=(), hash=False, compare=False)
    spec: Mapping[str, Any] = field(default_factory=dict, hash=False, compare=False)
    refusal: str = field(default="", hash=False, compare=False)
    _at: dict[tuple[str, ...], PodPlan] = field(
        default_factory=dict, init=False, repr=False, hash=False, compare=False
    )
    _search_key: list[tuple[object, ...]] = field(
        default_factory=list, init=False, repr=False, hash=False, compare=False
    )

    @property
    def uses_devices(self) -> bool:
        """True for pods that ask for devices, by claims or extended resources."""
        return bool(self.entries or self.extended)

    @property
    def search_key(self) -> tuple[object, ...]:
        """Equal for pods with the same answer where no other pods decide."""
        # Every placement of a pod asks for it.
        if not self._search_key:
            demands = tuple((entry.demand, entry.shared) for entry in self.entries)
            extended = () if self.extended is None else self.at({}).entries[len(self.entries) :]
            more = tuple(entry.demand for entry in extended)
            self._search_key.append((demands, more, tuple(self.requests.items()), self.filter_key))
        return self._search_key[0]

    def at(self, offered: Amounts) -> PodPlan:
        """The plan on a node that offers so much: what devices stand for there is asked of them, and not of the node."""
        if self.extended is None:
            return self
        names = self.extended.demand.by_devices(offered)
        found = self._at.get(names)
        if found is None:
            entry = self.extended.entry_for(offered)
            left = {name: amount for name, amount in self.requests.items() if name not in names}
            entries = (*self.entries, entry) if isinstance(entry, Entry) else self.entries
            refusal = self.extended.refusal_for(offered)
            found = self._at[names] = replace(
                self, entries=entries, requests=left, extended=None, refusal=refusal
            )
        return found


@dataclass(frozen=True, slots=True)
class Workload:
    """The pods of one object, or of one of its parts.

    Args:
        owner: The object, or the part.
        replicas: How many pods at once; None for one on every node (DaemonSet).
        plan: What each of them asks for, or why that is not known.
        unmodelled: What they use and the answer leaves out.
        affinity_to: Workloads whose pods have to be there before, for required affinity names them.
        most: The most pods that an autoscaler makes of it; None where nothing scales it.
        gang: The pods that these need beside them to do anything, themselves among them; None where they need none.
    """

    owner: ObjectRef
    replicas: int | None
    plan: PodPlan | Undecided
    unmodelled: tuple[str, ...] = ()
    affinity_to: tuple[ObjectRef, ...] = ()
    most: int | None = None
    gang: Gang | None = None


def find_unknown(value: Any, path: str) -> list[str]:
    """Paths of values below *path* that are only known after `pulumi up`, in the order written."""
    if isinstance(value, str):
        return [path] if is_placeholder(value) else []
    if isinstance(value, Mapping):
        return [
            found for key, item in value.items() for found in find_unknown(item, f"{path}.{key}".lstrip("."))
        ]
    if isinstance(value, (list, tuple)):
        return [found for index, item in enumerate(value) for found in find_unknown(item, f"{path}[{index}]")]
    return []


def read_demand(
    manifest: Mapping[str, Any], ref: ObjectRef, classes: Mapping[str, Mapping[str, Any]], release: Release
) -> Demand | Undecided:
    """Reads the demand of a ResourceClaim or ResourceClaimTemplate, or why it is not known here.

    Args:
        manifest: The object, in any served version; markers stand for values that are not known.
        ref: How to call it.
        classes: Manifests of the known classes by name.
        release: The server that stores it: fields behind a gate that is off are gone before the scheduler looks.
    """
    path = "spec.spec" if ref.kind == "ResourceClaimTemplate" else "spec"
    reasons = _find_unknown_requests(manifest, ref, path, classes)
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
        for _, below, leaf in request.leaves:
            where = f"{at}.{below}"
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


def _stands_for_class(name: object, classes: Container[str]) -> bool:
    """True for a text in place of a name that is known later, where it means one of *classes*.

    A secret name and the marker of all values that are not known may mean any class.
    """
    return (
        isinstance(name, Placeholder)
        and marker_kind(name) == "unknown"
        and name != UNKNOWN
        and name in classes
    )


def without_known_classes(value: Any, classes: Container[str]) -> Any:
    """Return *value* without the names of classes that are known later, but are those of *classes*."""
    if isinstance(value, Mapping):
        return {
            key: without_known_classes(item, classes)
            for key, item in value.items()
            if key != "deviceClassName" or not _stands_for_class(item, classes)
        }
    return [without_known_classes(item, classes) for item in value] if isinstance(value, list) else value


def _find_unknown_requests(
    manifest: Mapping[str, Any], ref: ObjectRef, path: str, classes: Container[str]
) -> list[Reason]:
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
        for found in find_unknown(without_known_classes(holder, classes), f"{path}.devices")
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
        return convert(manifest, "v1")
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        return Reason(code="object-malformed", message=f"{named}: cannot be read as {version}: {error}")


def _malformed(named: str, error: ValidationError) -> Reason:
    detail = error.errors(include_url=False, include_input=False)[0]
    where = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in detail["loc"])
    return Reason(code="object-malformed", message=f"{named}: {where.lstrip('.')}: {detail['msg']}")


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
