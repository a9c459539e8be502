"""Pods that a DeviceTaintRule evicts, as the device taint eviction controller decides it.

Upstream: pkg/controller/devicetainteviction/device_taint_eviction.go (claimEvictionTime, podEvictionTime). A pod is deleted, not
evicted by the eviction API, so that PodDisruptionBudgets do not count. Before 1.37.2 the controller looks at `spec.resourceClaims` alone:
a pod that has its devices by an extended resource stays where it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from dra_infra.kubernetes.api.device_taints import DeviceTaint, DeviceTaintSelector
from dra_infra.kubernetes.api.gates import Release
from dra_infra.kubernetes.api.manifests import mapping, mappings
from dra_infra.kubernetes.api.patches import PatchBehaviour

NO_EXECUTE: Final = "NoExecute"
"""The effect of taints that evict pods."""
Taints: TypeAlias = Callable[[str, str, str], Iterable[DeviceTaint]]
"""Taints with the effect `NoExecute` of a device, by its driver, pool and name."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Eviction:
    """A pod whose devices get a taint that it does not tolerate for good.

    Args:
        pod: The Pod.
        claim: Name of the claim by which it has them, in its namespace.
        devices: Its devices that get the taint, `pool/device`.
        seconds: Seconds for which the claim tolerates the taint; 0 where it does not.
        stays: It has them by an extended resource, and the release does not evict it (`EVICTS_BY_EXTENDED_RESOURCE`).
        comes_back: The scheduler takes the claim's tolerations for enough, for it honours an empty effect and does not count
            seconds. A pod that is made in its place may be placed on the same device, and is evicted again, without an end.
    """

    pod: Mapping[str, Any]
    claim: str
    devices: tuple[str, ...]
    seconds: int = 0
    stays: bool = False
    comes_back: bool = False


def selects(selector: DeviceTaintSelector, driver: str, pool: str, device: str) -> bool:
    """True where a rule's selector matches a device; every criterion that is given must (`ruleMatchesDevice`)."""
    return (
        selector.driver in (None, driver)
        and selector.pool in (None, pool)
        and selector.device in (None, device)
    )


def find_evictions(
    taint: DeviceTaint,
    selectors: Sequence[DeviceTaintSelector],
    *,
    pods: Iterable[Mapping[str, Any]],
    claims: Iterable[Mapping[str, Any]],
    release: Release,
    with_deleted: bool = False,
) -> Iterator[Eviction]:
    """Pods whose devices would get *taint* with the effect `NoExecute` from rules with *selectors*, once for each claim.

    Args:
        taint: Its effect does not count.
        selectors: Of the rules.
        pods: Pods of the cluster. Those that are on no node or are being deleted already are not evicted.
        claims: ResourceClaims of the cluster.
        release: The release of the controller.
        with_deleted: Pods that are being deleted count all the same: they have their devices until they are gone, and none stays.
    """

    def taints(driver: str, pool: str, device: str) -> Iterable[DeviceTaint]:
        return (taint,) if any(selects(each, driver, pool, device) for each in selectors) else ()

    return find_tainted(taints, pods=pods, claims=claims, release=release, with_deleted=with_deleted)


def find_tainted(
    taints: Taints,
    *,
    pods: Iterable[Mapping[str, Any]],
    claims: Iterable[Mapping[str, Any]],
    release: Release,
    with_deleted: bool = False,
) -> Iterator[Eviction]:
    """Finds the pods with devices that have such taints, once for each claim; deleted ones as for `find_evictions`."""
    evicts_all = release.does(PatchBehaviour.EVICTS_BY_EXTENDED_RESOURCE)
    allocated = {
        _namespaced_name(each): each
        for each in claims
        if mapping(mapping(each.get("status")).get("allocation"))
    }
    for pod in pods:
        metadata, spec = mapping(pod.get("metadata")), mapping(pod.get("spec"))
        goes = bool(metadata.get("deletionTimestamp"))
        if not spec.get("nodeName") or (goes and not with_deleted):
            continue
        namespace = str(metadata.get("namespace") or "")
        for name, is_own, stays in _claims_of(pod):
            claim = allocated.get((namespace, name))
            if claim is not None and _is_for(pod, claim, is_own=is_own):
                eviction = _evict(pod, claim, taints)
                if eviction is not None:
                    yield replace(eviction, stays=stays and not goes and not evicts_all)


def _evict(pod: Mapping[str, Any], claim: Mapping[str, Any], taints: Taints) -> Eviction | None:
    devices: list[str] = []
    seconds: list[int] = []
    comes_back = True
    for result in mappings(
        mapping(mapping(mapping(claim.get("status")).get("allocation")).get("devices")).get("results")
    ):
        driver, pool, device = (str(result.get(key) or "") for key in ("driver", "pool", "device"))
        for taint in taints(driver, pool, device):
            matching = [each for each in mappings(result.get("tolerations")) if _matches(each, taint)]
            tolerated = [each for each in matching if each.get("effect") == NO_EXECUTE]
            if any(each.get("tolerationSeconds") is None for each in tolerated):
                continue
            devices.append(f"{pool}/{device}")
            seconds.append(min((_seconds(each["tolerationSeconds"]) for each in tolerated), default=0))
            comes_back = comes_back and bool(matching)
    if not devices:
        return None
    name = str(mapping(claim.get("metadata")).get("name"))
    return Eviction(
        pod=pod,
        claim=name,
        devices=tuple(dict.fromkeys(devices)),
        seconds=min(seconds),
        comes_back=comes_back,
    )


def _matches(toleration: Mapping[str, Any], taint: DeviceTaint) -> bool:
    """Key, operator and value of `resourceclaim.ToleratesTaint`; of the effect, only that it is not another one."""
    if toleration.get("effect") not in (None, "", NO_EXECUTE):
        return False
    key = toleration.get("key") or ""
    if key and key != taint.key:
        return False
    operator = toleration.get("operator") or "Equal"
    if operator == "Exists":
        return True
    return operator == "Equal" and (toleration.get("value") or "") == taint.value


def _seconds(value: object) -> int:
    return max(value, 0) if isinstance(value, int) else 0


def _claims_of(pod: Mapping[str, Any]) -> Iterator[tuple[str, bool, bool]]:
    """Names of a pod's claims, whether they were made for it, and whether for its extended resources."""
    made = {
        str(each.get("name")): each.get("resourceClaimName")
        for each in mappings(mapping(pod.get("status")).get("resourceClaimStatuses"))
    }
    for entry in mappings(mapping(pod.get("spec")).get("resourceClaims")):
        if name := entry.get("resourceClaimName"):
            yield str(name), False, False
        elif name := made.get(str(entry.get("name"))):
            yield str(name), True, False
    extended = mapping(mapping(pod.get("status")).get("extendedResourceClaimStatus")).get("resourceClaimName")
    if extended:
        yield str(extended), True, True


def _is_for(pod: Mapping[str, Any], claim: Mapping[str, Any], *, is_own: bool) -> bool:
    uid = mapping(pod.get("metadata")).get("uid")
    metadata = mapping(claim.get("metadata"))
    owners = mappings(metadata.get("ownerReferences"))
    if is_own and not any(each.get("controller") and each.get("uid") == uid for each in owners):
        return False
    return any(
        each.get("uid") == uid and not each.get("apiGroup") and each.get("resource") == "pods"
        for each in mappings(mapping(claim.get("status")).get("reservedFor"))
    )


def _namespaced_name(item: Mapping[str, Any]) -> tuple[str, str]:
    metadata = mapping(item.get("metadata"))
    return str(metadata.get("namespace") or ""), str(metadata.get("name") or "")
