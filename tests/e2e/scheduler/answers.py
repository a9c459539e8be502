"""Our answers beside what the scheduler did: candidate nodes, devices, and `status.allocation` to the letter."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from dra_infra.catalog.fleet_files import gather_fleet
from dra_infra.model.claim_status import AllocationResult
from dra_infra.model.fleet import Fleet
from dra_infra.model.resource_claim import ResourceClaim
from dra_infra.model.target import ClusterTarget, Release
from dra_infra.simulation import Taken, WorkloadPlacement, place
from dra_infra.simulation.allocation import Allocated, AllocatedState, Allocator, Outcome
from tests.e2e.scheduler.objects import DRA
from tests.e2e.scheduler.stage import Stage, Verdict
from tools.cluster import Api, Manifest

FLEET_KINDS: Final = (f"{DRA}/DeviceClass", "v1/Node", f"{DRA}/ResourceSlice")
OWN_KINDS: Final = (f"{DRA}/ResourceClaim", f"{DRA}/ResourceClaimTemplate")

Devices = list[tuple[str, str, str, str, str]]
"""Entry, request, driver, pool and device of each, in the order of allocation."""


def release_of(minor: str) -> Release:
    """A minor with its default gates."""
    (release,) = ClusterTarget(kubernetes=minor).releases
    return release


@dataclass(frozen=True, kw_only=True)
class Seen:
    """A cluster before a pod comes.

    Args:
        fleet: Its nodes, slices and classes.
        objects: Claims and templates, as the server completed them.
        allocations: `status.allocation` of every claim.
        release: What it runs.
    """

    fleet: Fleet
    objects: tuple[Manifest, ...] = field(repr=False)
    allocations: tuple[AllocationResult, ...]
    release: Release = field(repr=False)

    @classmethod
    def of(cls, stage: Stage, release: Release) -> Seen:
        """Read a cluster."""
        return cls(
            fleet=_read_fleet(stage.api),
            objects=tuple(each for kind in OWN_KINDS for each in stage.api.list(kind)),
            allocations=tuple(AllocationResult.from_manifest(each) for each in stage.allocations()),
            release=release,
        )

    def place(self, pod: Manifest) -> WorkloadPlacement:
        """Where the product says that the pod can go, with which devices."""
        devices, shares = set(), []
        for result in self.allocations:
            for each in result.devices.results or ():
                if not each.admin_access:
                    device = (each.driver, each.pool, each.device)
                    if each.share_id is None:
                        devices.add(device)
                    else:
                        shares.append((device, each.consumed_capacity))
        taken = Taken(devices=frozenset(devices), shares=tuple(shares))
        placement = place(
            [*map(_without_status, self.objects), pod], self.fleet, taken=taken, release=self.release
        )
        (found,) = placement.workloads
        return found

    def allocate(self, pod: Manifest, node: str) -> tuple[list[str], Outcome]:
        """The entries of the pod whose claims have no devices yet, and what the node gives them."""
        state = AllocatedState()
        for each in self.allocations:
            state = state.with_allocation(each)
        open_claims = {name: found for name, found in self._claims_of(pod) if found is not None}
        allocator = Allocator(self.release, self.fleet.slices, self.fleet.classes, state)
        (where,) = (each for each in self.fleet.nodes if each.name == node)
        return list(open_claims), allocator.allocate(where, list(open_claims.values()))

    def has_allocated_claim(self, pod: Manifest) -> bool:
        """Whether a claim of the pod has its devices already, so that the pod goes where they are."""
        return any(found is None for _, found in self._claims_of(pod))

    def _claims_of(self, pod: Manifest) -> Iterator[tuple[str, ResourceClaim | None]]:
        """Each entry with its claim as the allocator gets it; None where that has devices."""
        for entry in pod["spec"].get("resourceClaims") or []:
            named = entry.get("resourceClaimName")
            kind = "ResourceClaim" if named else "ResourceClaimTemplate"
            name = named or entry["resourceClaimTemplateName"]
            (found,) = (
                each
                for each in self.objects
                if each["kind"] == kind
                and each["metadata"]["name"] == name
                and each["metadata"]["namespace"] == pod["metadata"]["namespace"]
            )
            if "allocation" in (found.get("status") or {}):
                yield entry["name"], None
                continue
            metadata = {"name": name, "namespace": pod["metadata"]["namespace"]}
            spec = found["spec"] if named else found["spec"]["spec"]
            manifest = {"apiVersion": DRA, "kind": "ResourceClaim", "metadata": metadata, "spec": spec}
            yield entry["name"], ResourceClaim.from_manifest(manifest)


def devices_of(verdict: Verdict) -> Devices:
    """What the scheduler gave a pod."""
    return [
        (entry, each["request"], each["driver"], each["pool"], each["device"])
        for entry, claim in verdict.claims.items()
        for each in claim["status"]["allocation"]["devices"]["results"]
    ]


def named_devices(answer: WorkloadPlacement, node: str) -> Devices:
    """What we say that a pod gets on a node."""
    (found,) = (each for each in answer.nodes if each.node == node)
    return [(each.entry, each.request, each.driver, each.pool, each.device) for each in found.devices]


def written_by_server(claim: Manifest) -> Any:
    """`status.allocation` without what is random or of the clock."""
    allocation = json.loads(json.dumps(claim["status"]["allocation"]))
    allocation.pop("allocationTimestamp", None)
    for each in allocation["devices"].get("results", ()):
        if "shareID" in each:
            each["shareID"] = "share"
    return allocation


def written_by_us(outcome: Outcome) -> list[Any] | Outcome:
    """The same of ours, for each claim; the outcome itself where there is no allocation."""
    if not isinstance(outcome, Allocated):
        return outcome
    return [json.loads(each.to_go_json()) for each in outcome.results]


def _read_fleet(api: Api) -> Fleet:
    return gather_fleet([each for kind in FLEET_KINDS for each in api.list(kind)], "cluster")


def _without_status(manifest: Manifest) -> Manifest:
    return {key: value for key, value in manifest.items() if key != "status"}
