"""Claims: held for pods that are gone, with devices that are gone, or for MIG devices that nobody publishes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from dra_infra.cluster.check_pools import newest_pools
from dra_infra.cluster.evidence import Evidence
from dra_infra.cluster.kinds import CLAIMS, PODS, SLICES
from dra_infra.cluster.links import requests_of
from dra_infra.cluster.nvidia import GPU_DRIVER, MIG_CLASS
from dra_infra.cluster.objects import full_name, mapping, mappings, name_of, namespace_of, text, uid_of
from dra_infra.errors import Problem
from dra_infra.planning.wording import count_of, join_words

_DONE: Final = ("Failed", "Succeeded")


def check_claims(evidence: Evidence, drivers: set[str]) -> Iterator[Problem]:
    """Codes `claim-reserved`, `claim-device-gone`, `mig-not-published`."""
    pods = {uid_of(each): text(mapping(each.get("status")).get("phase")) for each in evidence.of(PODS)}
    pools = newest_pools(evidence.of(SLICES))
    devices = {
        (driver, pool, text(device.get("name")))
        for (driver, pool), found in pools.items()
        for item in found
        for device in mappings(mapping(item.get("spec")).get("devices"))
    }
    for claim in evidence.of(CLAIMS):
        if evidence.saw(PODS):
            yield from _reserved(claim, pods)
        if evidence.saw(SLICES):
            yield from _gone(claim, devices, drivers)
    if evidence.saw(SLICES) and GPU_DRIVER in drivers:
        yield from _without_mig(evidence)


def _reserved(claim: Mapping[str, Any], pods: Mapping[str, str]) -> Iterator[Problem]:
    for each in mappings(mapping(claim.get("status")).get("reservedFor")):
        if each.get("resource") != "pods" or each.get("apiGroup"):
            continue
        phase = pods.get(text(each.get("uid")))
        if phase is None or phase in _DONE:
            why = "is gone" if phase is None else f"has {phase.lower()}"
            yield Problem(
                path=f"ResourceClaim {full_name(claim)}",
                code="claim-reserved",
                message=f"it is still reserved for pod {text(each.get('name'))}, which {why}: its devices stay taken",
                hint="the claim controller of kube-controller-manager frees it; see whether that runs. A claim that no "
                f"other pod uses can go: kubectl delete resourceclaim -n {namespace_of(claim)} {name_of(claim)}",
            )


def _gone(
    claim: Mapping[str, Any], devices: set[tuple[str, str, str]], drivers: set[str]
) -> Iterator[Problem]:
    allocation = mapping(mapping(claim.get("status")).get("allocation"))
    held = [
        (text(each.get("driver")), text(each.get("pool")), text(each.get("device")))
        for each in mappings(mapping(allocation.get("devices")).get("results"))
    ]
    gone = ["/".join(each) for each in held if each not in devices and each[0] in drivers]
    if gone:
        yield Problem(
            path=f"ResourceClaim {full_name(claim)}",
            code="claim-device-gone",
            message=f"it has {join_words(gone)}, which no slice has: pods of it do not start again",
            hint="the device left the inventory (health, MIG layout, node gone): delete the pods, and then the claim if it stays",
        )


def _without_mig(evidence: Evidence) -> Iterator[Problem]:
    published = any(
        mapping(mapping(device.get("attributes")).get("type")).get("string") == "mig"
        for each in evidence.of(SLICES)
        for device in mappings(mapping(each.get("spec")).get("devices"))
    )
    waiting = [
        full_name(each)
        for each in evidence.of(CLAIMS)
        if MIG_CLASS in requests_of(each).values() and not mapping(each.get("status")).get("allocation")
    ]
    if waiting and not published:
        yield Problem(
            path=f"DeviceClass {MIG_CLASS}",
            code="mig-not-published",
            message=f"{count_of(len(waiting), 'claim')} wait for MIG devices, and no node publishes one: {join_words(waiting)}",
            hint="make them with the MIG manager (label nvidia.com/mig.config) and restart the driver's pods, or switch on "
            "the driver's gate DynamicMIG",
        )
