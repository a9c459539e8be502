"""Claims as people ask for them: which devices, on which node, for whom, and why not yet."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dra_infra.cluster.links import WAITING, claims_of, reasons_of, requests_of
from dra_infra.cluster.objects import mapping, mappings, name_of, namespace_of, text

Manifest = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, order=True, slots=True)
class HeldDevice:
    """A device, or a share of one, that a claim has.

    Args:
        driver: Its driver.
        pool: Its pool, mostly a node's name.
        device: Its name in the pool.
        request: The request of the claim that it answers, `request/alternative` of a prioritized list.
        device_class: The class of that request.
        is_admin: Whether it is only looked at, and can be another's as well.
        share: Identity of the share, where the device has several.
    """

    driver: str
    pool: str
    device: str
    request: str = ""
    device_class: str = ""
    is_admin: bool = False
    share: str = ""

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}/{self.device}"


@dataclass(frozen=True, kw_only=True, slots=True)
class ClaimStatus:
    """A claim and what it has.

    Args:
        namespace: Its namespace.
        name: Its name.
        state: `in use`, `allocated` when no pod uses it now, `pending`, or `deleting`.
        node: Where its devices are; empty where they are for several nodes, or there are none.
        devices: What it has.
        classes: What it asks for, where it has nothing yet: names of classes.
        consumers: Who uses it, `Pod train-0`.
        reasons: Why it is pending, or its pods do not start, in the words of the cluster.
    """

    namespace: str
    name: str
    state: str
    node: str = ""
    devices: tuple[HeldDevice, ...] = ()
    classes: tuple[str, ...] = ()
    consumers: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class PodWaiting:
    """A pod that asks for claims which do not exist yet."""

    namespace: str
    name: str
    wants: tuple[str, ...]
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Status:
    """Every claim of a cluster.

    Args:
        claims: By namespace and name.
        waiting: Pods whose claims are missing.
        published: Devices by driver.
        taken: Of these, devices that a claim has.
    """

    claims: tuple[ClaimStatus, ...]
    waiting: tuple[PodWaiting, ...]
    published: Mapping[str, int]
    taken: Mapping[str, int]


@dataclass(frozen=True, kw_only=True, slots=True)
class Seen:
    """The objects that a status is made of; events are warnings alone."""

    claims: Sequence[Manifest] = field(default=(), repr=False)
    pods: Sequence[Manifest] = field(default=(), repr=False)
    slices: Sequence[Manifest] = field(default=(), repr=False)
    events: Sequence[Manifest] = field(default=(), repr=False)


def find_status(seen: Seen) -> Status:
    """What *seen* says about claims."""
    nodes = {
        (text(spec.get("driver")), text(mapping(spec.get("pool")).get("name"))): text(spec.get("nodeName"))
        for spec in (mapping(each.get("spec")) for each in seen.slices)
    }
    users: defaultdict[tuple[str, str], list[Manifest]] = defaultdict(list)
    waiting = []
    for pod in seen.pods:
        names, missing = claims_of(pod)
        for name in names:
            users[namespace_of(pod), name].append(pod)
        if missing and text(mapping(pod.get("status")).get("phase")) in WAITING:
            waiting.append(
                PodWaiting(
                    namespace=namespace_of(pod),
                    name=name_of(pod),
                    wants=missing,
                    reasons=reasons_of([pod], seen.events),
                )
            )
    claims = tuple(
        _claim(each, users[namespace_of(each), name_of(each)], nodes, seen) for each in seen.claims
    )
    held = {
        (device.driver, device.pool, device.device)
        for claim in claims
        for device in claim.devices
        if not device.is_admin
    }
    published: defaultdict[str, int] = defaultdict(int)
    for each in seen.slices:
        spec = mapping(each.get("spec"))
        published[text(spec.get("driver"))] += len(mappings(spec.get("devices")))
    return Status(
        claims=tuple(sorted(claims, key=lambda claim: (claim.namespace, claim.name))),
        waiting=tuple(sorted(waiting, key=lambda pod: (pod.namespace, pod.name))),
        published=dict(sorted(published.items())),
        taken={driver: sum(key[0] == driver for key in held) for driver in sorted(published)},
    )


def _claim(
    claim: Manifest, pods: Sequence[Manifest], nodes: Mapping[tuple[str, str], str], seen: Seen
) -> ClaimStatus:
    status = mapping(claim.get("status"))
    allocation = status.get("allocation")
    classes = requests_of(claim)
    devices = tuple(
        HeldDevice(
            driver=text(each.get("driver")),
            pool=text(each.get("pool")),
            device=text(each.get("device")),
            request=text(each.get("request")),
            device_class=classes.get(text(each.get("request")), ""),
            is_admin=each.get("adminAccess") is True,
            share=text(each.get("shareID")),
        )
        for each in mappings(mapping(mapping(allocation).get("devices")).get("results"))
    )
    consumers = mappings(status.get("reservedFor"))
    on = {nodes.get((each.driver, each.pool), "") for each in devices}
    return ClaimStatus(
        namespace=namespace_of(claim),
        name=name_of(claim),
        state=_state(claim, allocation, consumers),
        node=on.pop() if len(on) == 1 else "",
        devices=devices,
        classes=tuple(dict.fromkeys(classes.values())),
        consumers=tuple(_consumer(each) for each in consumers),
        reasons=reasons_of(pods, seen.events) or (() if allocation or pods else ("no pod uses it",)),
    )


def _state(claim: Manifest, allocation: Any, consumers: Sequence[Manifest]) -> str:
    if mapping(claim.get("metadata")).get("deletionTimestamp"):
        return "deleting"
    if not isinstance(allocation, Mapping):
        return "pending"
    return "in use" if consumers else "allocated"


def _consumer(reference: Manifest) -> str:
    resource = text(reference.get("resource"))
    kind = {"pods": "Pod", "podgroups": "PodGroup"}.get(resource, resource)
    return f"{kind} {text(reference.get('name'))}"
