"""Admission of pods: defaults of LimitRanges, overhead and nodes of RuntimeClasses, and ResourceQuotas.

Defaults, overhead and nodes are what the API server adds to pods when they are made. Source:
SetDefaults_LimitRangeItem in pkg/apis/core/v1/defaults.go, plugin/pkg/admission/limitranger/admission.go,
plugin/pkg/admission/runtimeclass/admission.go. Bounds of LimitRanges, which only refuse pods, are not looked at.

ResourceQuotas limit what a program can make: claims, devices by class, extended resources, and pods with what they
request. A quota refuses the object that would pass it, so a controller makes fewer pods, or a pod waits for its
claim. Source: pkg/quota/v1/evaluator/core/resource_claims.go and pods.go. Claims count when they are made, by their
spec, allocated or not; `All` counts as 32 devices, a prioritized list as its largest alternative of each class, and
admin access like any other.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from dra_infra.kubernetes.api.gates import Release
from dra_infra.kubernetes.api.limits import MAX_RESULTS
from dra_infra.kubernetes.api.manifests import mapping, mappings
from dra_infra.kubernetes.api.metadata import ObjectRef
from dra_infra.kubernetes.api.placeholders import is_placeholder
from dra_infra.kubernetes.api.pod_containers import Amounts, read_containers
from dra_infra.kubernetes.api.quantity import Quantity
from dra_infra.kubernetes.apiserver.quota_keys import IMPLICIT, MEASURED, QuotaKey, is_extended_resource


class PodAdmission:
    """The objects of an input that change pods.

    Args:
        manifests: Objects of any kind; LimitRanges and RuntimeClasses count, those that come later before others of
            the same name.
    """

    def __init__(self, manifests: Iterable[Mapping[str, Any]]) -> None:
        self._ranges: dict[str, dict[str, Mapping[str, Any]]] = {}
        self._runtimes: dict[str, Mapping[str, Any]] = {}
        for manifest in manifests:
            metadata = mapping(manifest.get("metadata"))
            name, namespace = str(metadata.get("name")), str(metadata.get("namespace") or "default")
            if manifest.get("kind") == "LimitRange":
                self._ranges.setdefault(namespace, {})[name] = manifest
            elif manifest.get("kind") == "RuntimeClass":
                self._runtimes[name] = manifest

    def knows_runtime(self, name: str) -> bool:
        """Checks that the RuntimeClass is among the objects."""
        return name in self._runtimes

    def bounds(self, namespace: str) -> list[str]:
        """LimitRanges of a namespace with bounds, by name."""
        held = self._ranges.get(namespace or "default", {})
        return [name for name, each in sorted(held.items()) if any(_is_bound(item) for item in _items(each))]

    def admit(self, spec: Mapping[str, Any], namespace: str) -> Mapping[str, Any]:
        """The pod spec as it is stored; the same object when nothing is added."""
        spec = self._apply_runtime(spec)
        ranges = self._ranges.get(namespace or "default", {})
        for _, held in sorted(ranges.items()):
            requests, limits = _find_defaults(held)
            if requests or limits:
                spec = {**spec}
                for kind in ("containers", "initContainers"):
                    if spec.get(kind):
                        spec[kind] = [_complete(each, requests, limits) for each in mappings(spec[kind])]
        return spec

    def _apply_runtime(self, spec: Mapping[str, Any]) -> Mapping[str, Any]:
        runtime = self._runtimes.get(str(spec.get("runtimeClassName")))
        if runtime is None:
            return spec
        added: dict[str, Any] = {}
        fixed = mapping(runtime.get("overhead")).get("podFixed")
        if fixed:
            added["overhead"] = fixed
        scheduling = mapping(runtime.get("scheduling"))
        if scheduling.get("nodeSelector"):
            added["nodeSelector"] = {**mapping(spec.get("nodeSelector")), **scheduling["nodeSelector"]}
        if scheduling.get("tolerations"):
            added["tolerations"] = [*mappings(spec.get("tolerations")), *mappings(scheduling["tolerations"])]
        return {**spec, **added}


def _items(held: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield from mappings(mapping(held.get("spec")).get("limits"))


def _is_bound(item: Mapping[str, Any]) -> bool:
    return any(item.get(name) for name in ("max", "min", "maxLimitRequestRatio"))


def _find_defaults(held: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Requests and limits for containers that say nothing themselves."""
    requests: dict[str, Any] = {}
    limits: dict[str, Any] = {}
    for item in _items(held):
        if item.get("type") == "Container":
            default = {**mapping(item.get("max")), **mapping(item.get("default"))}
            limits |= default
            requests |= {**mapping(item.get("min")), **default, **mapping(item.get("defaultRequest"))}
    return requests, limits


def _complete(
    container: Mapping[str, Any], requests: Mapping[str, Any], limits: Mapping[str, Any]
) -> Mapping[str, Any]:
    resources = mapping(container.get("resources"))
    written = mapping(resources.get("limits"))
    # The limits that are written stand in for requests before the defaults have their turn.
    asked = {**requests, **written, **mapping(resources.get("requests"))}
    return {**container, "resources": {**resources, "limits": {**limits, **written}, "requests": asked}}


Use = Counter[str]
"""Amounts by key of `spec.hard`: thousandths for cpu, units for everything else."""

_MILLI: Final = frozenset({"cpu", "requests.cpu"})
_WANTED: Final = frozenset(
    {f"{prefix}{name}" for prefix in ("", "requests.", "limits.") for name in ("cpu", "memory")}
)
"""Keys of quotas that let no container be silent about its request, or its limit."""


def claim_devices(spec: Any) -> Iterator[tuple[str, int]]:
    """Yield each class that a claim counts for, with the number of devices."""
    devices = mapping(mapping(spec).get("devices"))
    for request in mappings(devices.get("requests")):
        largest: dict[str, int] = {}
        for part in (request.get("exactly"), *mappings(request.get("firstAvailable"))):
            if isinstance(part, Mapping) and isinstance(part.get("deviceClassName"), str):
                name = part["deviceClassName"]
                largest[name] = max(largest.get(name, 0), _count(part))
        yield from largest.items()


def count_object(manifest: Mapping[str, Any]) -> Use:
    """Counts an object where quotas count its kind; pods and claims, which use more, are counted by themselves."""
    group = str(manifest.get("apiVersion")).rpartition("/")[0]
    kind = str(manifest.get("kind")).lower()
    # The plural that UnsafeGuessKindToResource guesses; Endpoints, its one exception, are counted by a wrong name.
    plural = f"{kind[:-1]}ies" if kind.endswith("y") else f"{kind}{'es' if kind.endswith('s') else 's'}"
    return Counter({f"count/{plural}.{group}".removesuffix("."): 1})


def counts_by_extended_resource(release: Release) -> bool:
    """Return whether quotas count claims under the keys of extended resources too.

    Source: `claimEvaluator.Usage` in pkg/quota/v1/evaluator/core/resource_claims.go of 1.34.10, which does not, and of 1.35.8 to 1.37.1,
    which do with the gate DRAExtendedResource.
    """
    return release.number >= 35 and release.enabled("DRAExtendedResource")


def count_claim(spec: Any, extended: Mapping[str, str], *, bridged: bool) -> Use:
    """Counts what one claim uses of quotas.

    Args:
        spec: Of the claim.
        extended: The extended resource name of each class that has one.
        bridged: Whether its devices count for extended resources too, as `counts_by_extended_resource` returns it.
    """
    use: Use = Counter({QuotaKey.CLAIMS: 1})
    for class_name, devices in claim_devices(spec):
        use[QuotaKey.of_class(class_name)] += devices
        if bridged:
            # Every class has this name, with or without another one (ExtendedResourceCache).
            use[f"{IMPLICIT}{class_name}"] += devices
            if class_name in extended:
                use[f"requests.{extended[class_name]}"] += devices
    return use


def count_extended_claim(spec: Any, extended: Mapping[str, str], pod: Use) -> Use:
    """Counts what the scheduler's claim for a pod uses of quotas, beside what the pod uses already."""
    use = count_claim(spec, extended, bridged=True)
    return Counter({key: amount - pod[key] for key, amount in use.items() if amount > pod[key]})


def count_pod(requests: Amounts) -> Use:
    """Counts what one pod uses of quotas by itself, its claims aside."""
    use: Use = Counter({"pods": 1, "count/pods": 1})
    for name, amount in requests.items():
        if name in MEASURED or name.startswith("hugepages-"):
            use[f"requests.{name}"] += amount
            if name in MEASURED:
                use[name] += amount
        elif is_extended_resource(name):
            use[f"requests.{name}"] += amount
    return use


@dataclass(frozen=True, slots=True)
class Charges:
    """What is used of quotas, and by whom.

    Args:
        by_object: The use by each object, and by all that it makes.
    """

    by_object: Mapping[ObjectRef, Use] = field(default_factory=dict)

    @property
    def by_namespace(self) -> dict[str, Use]:
        """The use by all objects of each namespace together."""
        total: dict[str, Use] = {}
        for owner, use in self.by_object.items():
            total.setdefault(owner.namespace or "default", Counter()).update(use)
        return total

    def holders(self, namespace: str, key: str) -> list[tuple[ObjectRef, int]]:
        """The objects of a namespace that use a key, with how much, the most first."""
        holders = [
            (owner, use[key])
            for owner, use in self.by_object.items()
            if use[key] and (owner.namespace or "default") == namespace
        ]
        return sorted(holders, key=lambda holder: (-holder[1], holder[0]))


def read_hard(quota: Mapping[str, Any]) -> dict[str, int]:
    """The limits of a quota that claims can pass; none for one with scopes, which match no claim (MatchesNoScopeFunc)."""
    spec = mapping(quota.get("spec"))
    if spec.get("scopes") or spec.get("scopeSelector"):
        return {}
    limits: dict[str, int] = {}
    for key, value in mapping(spec.get("hard")).items():
        try:
            amount = Quantity.parse(str(value)).value
        except ValueError:
            continue
        limits[str(key)] = int(amount * 1000 if key in _MILLI else amount)
    return limits


def describe_refusal(quota: str, limits: Mapping[str, int], requested: Use, used: Use) -> str:
    """Returns the text that the API server has for an object that passes a quota; empty where it does not.

    Source: checkRequest and prettyPrint in staging/src/k8s.io/apiserver/pkg/admission/plugin/resourcequota/controller.go.
    """
    passed = sorted(
        key for key, limit in limits.items() if requested[key] and used[key] + requested[key] > limit
    )
    if not passed:
        return ""
    amounts = (
        ",".join(f"{key}={_write(key, amount[key])}" for key in passed)
        for amount in (requested, used, limits)
    )
    return "exceeded quota: {}, requested: {}, used: {}, limited: {}".format(quota, *amounts)


class Quotas:
    """The quotas of an input, and what has been made below them.

    Args:
        manifests: Objects of any kind; ResourceQuotas count, those that come later before others of the same name.
        used: What others have made already, by namespace.
    """

    def __init__(self, manifests: Iterable[Mapping[str, Any]], used: Mapping[str, Use] | None = None) -> None:
        self._hard: dict[str, dict[str, dict[str, int]]] = {}
        self.unread: list[str] = []
        """Quotas of which something is not looked at, with what."""
        self._used: dict[str, Use] = {name: Counter(use) for name, use in (used or {}).items()}
        for manifest in manifests:
            if manifest.get("kind") == "ResourceQuota":
                metadata = mapping(manifest.get("metadata"))
                namespace, name = str(metadata.get("namespace") or "default"), str(metadata.get("name"))
                self._hard.setdefault(namespace, {})[name] = read_hard(manifest)
                self.unread += [
                    f"{what} of ResourceQuota {namespace}/{name}" for what in _find_unread(manifest)
                ]

    def __bool__(self) -> bool:
        """There is a limit."""
        return any(limits for held in self._hard.values() for limits in held.values())

    def copy(self) -> Quotas:
        """Copies the quotas, to be filled apart from these."""
        copied = Quotas(())
        copied._hard, copied.unread = self._hard, self.unread
        copied._used = {name: Counter(use) for name, use in self._used.items()}
        return copied

    def refusal(self, namespace: str, use: Use) -> str:
        """The first limit that one more object passes, in the user's words; empty when it may be made."""
        used = self._used.get(namespace or "default", Counter[str]())
        for name, limits in sorted(self._hard.get(namespace or "default", {}).items()):
            for key, limit in sorted(limits.items()):
                if use[key] and used[key] + use[key] > limit:
                    amounts = (_show(key, each) for each in (limit, used[key], use[key]))
                    allowed, taken, asked = amounts
                    return (
                        f"ResourceQuota {namespace or 'default'}/{name} allows {allowed} of {key}, "
                        f"{taken} are in use, and it takes {asked}"
                    )
        return ""

    def room(self, namespace: str, use: Use) -> int:
        """How many objects that use so much may be made; at least 0."""
        used = self._used.get(namespace or "default", Counter[str]())
        left = (
            (limit - used[key]) // use[key]
            for limits in self._hard.get(namespace or "default", {}).values()
            for key, limit in limits.items()
            if use[key] > 0
        )
        return max(min(left, default=sys.maxsize), 0)

    def find_unset(self, namespace: str, spec: Mapping[str, Any]) -> str:
        """The first quota that refuses a pod because a container does not say what it requests, or its limit; empty for none.

        A quota of cpu or memory wants a request of each container, and one of limits.cpu or limits.memory a limit. Source:
        podEvaluator.Constraints in pkg/quota/v1/evaluator/core/pods.go.
        """
        containers = [] if mapping(spec.get("resources")) else read_containers(spec)
        for name, limits in sorted(self._hard.get(namespace or "default", {}).items()):
            for key in sorted(_WANTED & limits.keys()):
                resource = key.rpartition(".")[2]
                is_limit = key.startswith("limits.")
                for each in containers:
                    if resource not in (each.limits if is_limit else each.requests):
                        silent = (
                            f"has no limit of {resource}" if is_limit else "does not say how much it requests"
                        )
                        return (
                            f"ResourceQuota {namespace or 'default'}/{name} limits {key}, "
                            f"and container {each.name} {silent}"
                        )
        return ""

    def charge(self, namespace: str, use: Use) -> None:
        """Counts an object that is made."""
        self._used.setdefault(namespace or "default", Counter()).update(use)


def _count(part: Mapping[str, Any]) -> int:
    if part.get("allocationMode") == "All":
        return MAX_RESULTS
    count = part.get("count", 1)
    return int(count) if isinstance(count, (int, float)) else 1


def _write(key: str, amount: int) -> str:
    return Quantity.parse(f"{amount}m" if key in _MILLI else str(amount)).canonical()


def _show(key: str, amount: int) -> str:
    return Quantity.parse(f"{amount}m").canonical() if key in _MILLI else f"{amount:,}"


def _find_unread(quota: Mapping[str, Any]) -> Iterator[str]:
    spec = mapping(quota.get("spec"))
    if spec.get("scopes") or spec.get("scopeSelector"):
        yield "scopes"
    hard = spec.get("hard")
    if is_placeholder(hard):
        yield "spec.hard"
    yield from (
        str(key)
        for key, amount in mapping(hard).items()
        if str(key).startswith("limits.") or is_placeholder(amount)
    )
