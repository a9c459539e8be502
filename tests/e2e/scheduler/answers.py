"""Our answers beside what the scheduler did: candidate nodes, devices, and `status.allocation` to the letter."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from dra_infra.catalog.fleet_files import gather_fleet
from dra_infra.catalog.snapshots import Snapshot
from dra_infra.fleet import Fleet
from dra_infra.kubernetes.api import AllocationResult, Node, Release, ResourceClaim
from dra_infra.kubernetes.api.patches import COMPARED_PATCHES
from dra_infra.kubernetes.scheduler import EXTENDED_CLAIM_ENTRY, ServedResources, node_amounts, pod_requests
from dra_infra.kubernetes.scheduler.allocator import Allocated, AllocatedState, Allocator, Outcome
from dra_infra.placement.placement import WorkloadPlacement
from dra_infra.placement.running import Running
from dra_infra.target import ClusterTarget
from tests.support.placing import place
from tests.support.scheduler.objects import DRA
from tests.support.scheduler.stage import Stage, Verdict
from tools.cluster import Api, Manifest

FLEET_KINDS: Final = (f"{DRA}/DeviceClass", "v1/Node", f"{DRA}/ResourceSlice")
OTHER_KINDS: Final = (f"{DRA}/ResourceClaim", f"{DRA}/ResourceClaimTemplate", "v1/Pod", "v1/Namespace")
PLACED_KINDS: Final = ("ResourceClaim", "ResourceClaimTemplate")

Devices = list[tuple[str, str, str, str, str]]
"""Entry, request, driver, pool and device of each, in the order of allocation."""


def release_of(minor: str) -> Release:
    """A minor with its default gates."""
    (release,) = ClusterTarget(kubernetes=COMPARED_PATCHES[minor]).releases
    return release


@dataclass(frozen=True, kw_only=True)
class Seen:
    """A cluster before a pod comes.

    Args:
        fleet: Its nodes, slices and classes.
        objects: Claims, templates, pods and namespaces, as the server completed them.
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
            objects=tuple(each for kind in OTHER_KINDS for each in stage.api.list(kind)),
            allocations=tuple(AllocationResult.from_manifest(each) for each in stage.allocations()),
            release=release,
        )

    def place(self, pod: Manifest) -> WorkloadPlacement:
        """Where the product says that the pod can go, with which devices, beside what runs there."""
        taken = Running.of(Snapshot(fleet=self.fleet, objects=self.objects)).taken
        known = [_without_status(each) for each in self.objects if each["kind"] in PLACED_KINDS]
        (found,) = place([*known, pod], self.fleet, taken=taken, release=self.release).workloads
        return found

    def allocate(self, pod: Manifest, node: str, made: Manifest | None = None) -> tuple[list[str], Outcome]:
        """The entries of the pod whose claims have no devices yet, and what the node gives them.

        Args:
            pod: The pod.
            node: Name of the node.
            made: The claim that the scheduler made for the pod's extended resources.
        """
        state = AllocatedState()
        for each in self.allocations:
            state = state.with_allocation(each)
        claims = dict(self._open_claims(pod))
        if made is not None:
            claims[EXTENDED_CLAIM_ENTRY] = _claim(made["metadata"], made["spec"])
        allocator = Allocator(self.release, self.fleet.slices, self.fleet.classes, state)
        return list(claims), allocator.allocate(self.node(node), list(claims.values()))

    def extended_requests(self, pod: Manifest, node: str) -> list[Manifest]:
        """The requests of the claim that we say is made for the pod's extended resources on a node."""
        served = ServedResources(self.fleet.classes, self.release)
        demand = served.find(pod["spec"], pod_requests(pod["spec"]))
        if demand is None:
            return []
        offered = node_amounts(self.node(node).allocatable)
        return [each.to_manifest() for each in demand.requests_for(offered, has_claims=bool(_entries(pod)))]

    def has_allocated_claim(self, pod: Manifest) -> bool:
        """Whether a claim of the pod has its devices already, so that the pod goes where they are."""
        return len(dict(self._open_claims(pod))) < len(_entries(pod))

    def node(self, name: str) -> Node:
        """A node of the fleet."""
        (found,) = (each for each in self.fleet.nodes if each.name == name)
        return found

    def _open_claims(self, pod: Manifest) -> Iterator[tuple[str, ResourceClaim]]:
        """Each entry whose claim has no devices, with the claim as the allocator gets it."""
        for entry in _entries(pod):
            named = entry.get("resourceClaimName")
            kind = "ResourceClaim" if named else "ResourceClaimTemplate"
            metadata = {
                "name": named or entry["resourceClaimTemplateName"],
                "namespace": pod["metadata"]["namespace"],
            }
            (found,) = (
                each
                for each in self.objects
                if each["kind"] == kind and metadata.items() <= each["metadata"].items()
            )
            if "allocation" not in (found.get("status") or {}):
                yield entry["name"], _claim(metadata, found["spec"] if named else found["spec"]["spec"])


def _entries(pod: Manifest) -> list[Manifest]:
    return pod["spec"].get("resourceClaims") or []


def _claim(metadata: Manifest, spec: Manifest) -> ResourceClaim:
    named = {key: metadata[key] for key in ("name", "namespace")}
    return ResourceClaim.from_manifest(
        {"apiVersion": DRA, "kind": "ResourceClaim", "metadata": named, "spec": spec}
    )


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
