"""The answer of `dra-infra status --fragmentation`: how large a claim of each class still fits, and who is in the way of larger ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dra_infra.answers.settings import read_snapshot
from dra_infra.answers.snapshotting import take_snapshot
from dra_infra.catalog.snapshots import Snapshot, load_snapshot
from dra_infra.client.kubeconfig import REQUEST_TIMEOUT
from dra_infra.errors import Problem
from dra_infra.kubernetes.api import ObjectRef, mappings, value_at
from dra_infra.placement.cluster import newest_release
from dra_infra.placement.fragments import DeviceKey, Fragment
from dra_infra.placement.placement import WorkloadPlacement
from dra_infra.placement.question import PlacementQuestion
from dra_infra.placement.running import Running
from dra_infra.placement.scheduling import place


@dataclass(frozen=True, kw_only=True, slots=True)
class Fragmentation:
    """The answer.

    Args:
        fragments: Each class and MIG profile that some device is in, by name.
        nodes: How many nodes were looked at.
        minor: Whose allocator was asked.
        notes: What is not in the answer.
        problems: What could not be read.
    """

    fragments: tuple[Fragment, ...]
    nodes: int
    minor: str
    notes: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()

    @property
    def exit_code(self) -> int:
        """Always 0: a status judges nothing."""
        return 0


def find_fragmentation(snapshot: Snapshot, problems: Sequence[Problem] = ()) -> Fragmentation:
    """Return how large a claim of each class fits beside what runs in a snapshot.

    Args:
        snapshot: The cluster.
        problems: What could not be read of it.
    """
    release = newest_release()
    running = Running.of(snapshot)
    taken = running.without_evicted((), snapshot.fleet, release)
    question = PlacementQuestion(manifests=(), fleet=snapshot.fleet, taken=taken, release=release)
    placement = place(question, with_headroom=True)
    return Fragmentation(
        fragments=name_holders(placement.fragments, running),
        nodes=len(snapshot.fleet.nodes),
        minor=release.minor,
        notes=placement.notes,
        problems=tuple(problems),
    )


def read_fragmentation(file: Path) -> Fragmentation:
    """Return the fragmentation of a snapshot.

    Raises:
        FleetError: When the snapshot cannot be read.
    """
    return find_fragmentation(read_snapshot(file))


def observe_fragmentation(
    *,
    kubeconfig: Path | None = None,
    context: str | None = None,
    request_timeout: float = REQUEST_TIMEOUT,
    tell: Callable[[str], None] = lambda _: None,
) -> Fragmentation:
    """Read a live cluster once, and return its fragmentation; the arguments are those of `take_snapshot`.

    Raises:
        ClusterError: When nothing can be read.
        FleetError: When an object of the cluster is malformed.
    """
    taken = take_snapshot(kubeconfig=kubeconfig, context=context, request_timeout=request_timeout, tell=tell)
    return find_fragmentation(load_snapshot([taken.text]), taken.problems)


def name_holders(
    fragments: Sequence[Fragment], running: Running, workloads: Sequence[WorkloadPlacement] = ()
) -> tuple[Fragment, ...]:
    """Name who has the devices that are in the way of larger claims.

    Args:
        fragments: What is free.
        running: What runs in the cluster; claims with devices are named with their pods.
        workloads: Where the pods of a program go.
    """
    if not any(each.blocked for each in fragments):
        return tuple(fragments)
    holders = dict(_find_holders(running))
    for each in workloads:
        for node in each.pods:
            holders |= {
                (choice.driver, choice.pool, choice.device): str(each.owner) for choice in node.devices
            }
    return tuple(each.with_holders(holders) for each in fragments)


def _find_holders(running: Running) -> list[tuple[DeviceKey, str]]:
    holders = []
    for ref in running.claims:
        manifest = running.objects[ref]
        name = _name(ref, manifest)
        for result in mappings(value_at(manifest, "status", "allocation", "devices", "results")):
            key = (str(result.get("driver")), str(result.get("pool")), str(result.get("device")))
            holders.append((key, name))
    return holders


def _name(ref: ObjectRef, manifest: Mapping[str, object]) -> str:
    """`ResourceClaim ml/a (Pod train-0)`."""
    users = mappings(value_at(manifest, "status", "reservedFor"))
    pods = [f"Pod {each.get('name')}" for each in users if each.get("resource") == "pods"]
    return f"{ref} ({', '.join(pods[:3])})" if pods else str(ref)
