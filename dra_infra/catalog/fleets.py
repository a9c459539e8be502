"""Loads a fleet as the user names it: `hgx-h100 x 4, a100-80gb`, or the path of a file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from dra_infra.catalog.driver_settings import refused
from dra_infra.catalog.fleet_files import read_fleet_file
from dra_infra.catalog.fleet_terms import MAX_NODES, read_terms
from dra_infra.catalog.gpu_publication import is_estimated
from dra_infra.catalog.node_groups import NodeGroup
from dra_infra.catalog.node_pools import DescribedFleet, PoolOfGroup, read_described
from dra_infra.catalog.pool_objects import add_pools, is_pool
from dra_infra.catalog.publication import pools_of, publish_alone, publish_nodes, shipped_classes
from dra_infra.errors import FleetError
from dra_infra.fleet import Fleet, NodePool
from dra_infra.kubernetes.api import DeviceClass, ResourceSlice
from dra_infra.target import NEWEST_DRIVER, ClusterTarget, check_target

MAX_DEVICES = 1_000_000
"""Most devices of a named fleet: what fits the memory of a laptop."""

_FILE_ENDINGS = (".yaml", ".yml", ".json", ".txt")
_LAST_WITH_COUNTERS_BESIDE_DEVICES = "1.34"


class FleetNode(NamedTuple):
    """A node of a fleet on its own.

    Args:
        group: What was asked for; None for a fleet of Kubernetes objects.
        slices: What its drivers publish.
    """

    group: NodeGroup | None
    slices: tuple[ResourceSlice, ...]


def load_fleet(text: str, *, kubernetes: str | None = None, driver: str = NEWEST_DRIVER) -> Fleet:
    """Read a fleet by name or from a file.

    Args:
        text: Names with counts and options, `hgx-h100 x 4` or `a100-80gb x 2 mig=1g.10gb*7, a100-40gb x 3` (a name
            without a count is one node or rack, equal terms add up), or the path of a file with such terms, one on each
            line, or of a YAML or JSON file: either Nodes, ResourceSlices and DeviceClasses as `kubectl get -o yaml` prints them, or groups of nodes and node pools;
            `docs/fleets.md` has all of it.
        kubernetes: Minor or patch of the cluster, `1.34`, which decides the layout of slices with counters; None for 1.35 and
            newer. A file of Kubernetes objects is read as it is.
        driver: Releases of the drivers for hardware that names none, as `--driver` takes them: `newest`, `25.8`, or
            `gpu.example.com=0.2`. Devices that the catalogue lists one by one stay those of their own release.

    Raises:
        FleetError: `fleet-unknown`, `fleet-count`, `fleet-option`, `fleet-too-large`, `fleet-unreadable`,
            `fleet-object`, `node-pool`, `prices-unreadable`, `unknown-driver-release`, `unknown-driver-gate`,
            `driver-gate-conflict`, `unknown-kubernetes`; all at once.
    """
    target = ClusterTarget(kubernetes=kubernetes)
    if problems := check_target(target):
        raise FleetError(problems)
    separate = target.minor != _LAST_WITH_COUNTERS_BESIDE_DEVICES
    read = _read(text.strip(), driver)
    if isinstance(read, DescribedFleet):
        return build(read, separate_counters=separate)
    fleet, pools = read
    return (
        add_pools(fleet, pools, partial(build, separate_counters=separate), driver=driver) if pools else fleet
    )


def build(described: DescribedFleet, *, separate_counters: bool = True) -> Fleet:
    """The nodes, slices and classes of what is said of a fleet.

    Args:
        described: What is said.
        separate_counters: Whether counters are in slices of their own, as Kubernetes 1.35 and newer have them.

    Raises:
        FleetError: `fleet-too-large`, `fleet-option`.
    """
    whole = _build(described.name, described.name, described.all_groups, separate_counters=separate_counters)
    return _split_off(whole, described) if described.pools else whole


def load_node(fleet: str | Fleet, node: str) -> FleetNode:
    """A node as a fleet has it: the one of that name, else the first, under that name.

    Args:
        fleet: As for `load_fleet`, or a fleet, of which everything but the name stays as it is.
        node: What the node is called; UUIDs of devices of a named fleet are made of it.

    Raises:
        FleetError: As `load_fleet`.
    """
    read = fleet if isinstance(fleet, Fleet) else _read(fleet.strip(), NEWEST_DRIVER)
    if not isinstance(read, DescribedFleet):
        return FleetNode(None, tuple(_renamed(read if isinstance(read, Fleet) else read[0], node)))
    groups = read.all_groups
    group = next((each for each, name in _names(groups) if name == node), groups[0])
    return FleetNode(group, tuple(publish_alone(node, pools_of(group))))


def _renamed(fleet: Fleet, node: str) -> Iterator[ResourceSlice]:
    names = [each.name for each in fleet.nodes]
    original = node if node in names else next(iter(names), "")
    for slice_ in fleet.slices:
        if slice_.spec.node_name == original:
            pool = slice_.spec.pool.changed({"name": node})
            yield slice_.changed({"spec": slice_.spec.changed({"pool": pool, "node_name": node})})


def _read(text: str, driver: str) -> tuple[Fleet, Sequence[Mapping[str, Any]]] | DescribedFleet:
    """A fleet of Kubernetes objects with those of its node pools, or what is said of one."""
    if text.lower().endswith(_FILE_ENDINGS) or "/" in text or "\\" in text:
        read = read_fleet_file(text, is_pool)
        if isinstance(read, tuple):
            return read
        if isinstance(read, dict):
            return read_described(read, text, driver=driver)
        text = read
    groups = read_terms(text, driver=driver)
    return DescribedFleet(", ".join(map(str, groups)), groups)


def _build(name: str, text: str, groups: Sequence[NodeGroup], *, separate_counters: bool) -> Fleet:
    if not separate_counters and any(group.partitions for group in groups):
        raise FleetError(
            [
                refused(
                    _path(text),
                    "the example driver has its counters in a slice of their own, which Kubernetes 1.34 refuses",
                    "leave its partitions out, or name a newer Kubernetes",
                )
            ]
        )
    pools = [pools_of(group, separate_counters=separate_counters) for group in groups]
    _check_size(
        text,
        nodes=sum(group.nodes for group in groups),
        devices=sum(
            group.nodes * sum(pool.device_count for pool in published)
            for group, published in zip(groups, pools, strict=True)
        ),
    )
    nodes = []
    slices = []
    classes: dict[str, DeviceClass] = {}
    numbered: Counter[str] = Counter()
    widths = _widths(groups)
    for group, published in zip(groups, pools, strict=True):
        width = widths[group.name]
        for node, its_slices in publish_nodes(group, published, first=numbered[group.name], width=width):
            nodes.append(node)
            slices.extend(its_slices)
        numbered[group.name] += group.nodes
        # Where releases differ, the newest chart was installed last.
        for class_ in shipped_classes(group):
            classes[class_.metadata.name] = class_
    return Fleet(
        name=name,
        nodes=tuple(sorted(nodes, key=lambda node: node.name)),
        slices=tuple(sorted(slices, key=lambda slice_: slice_.metadata.name)),
        classes=tuple(classes[name] for name in sorted(classes)),
        notes=tuple(dict.fromkeys(_notes(groups))),
        driver_releases=tuple(sorted({f"{each.release.product} {each.release.line}" for each in groups})),
        is_partial=True,
    )


def _split_off(whole: Fleet, described: DescribedFleet) -> Fleet:
    """The fleet with the nodes that its pools have now; the others are what these may grow by."""
    slices: dict[str, list[ResourceSlice]] = {}
    for slice_ in whole.slices:
        slices.setdefault(slice_.spec.node_name or "", []).append(slice_)
    nodes = {node.name: node for node in whole.nodes}
    names = [name for _, name in _names(described.all_groups)]
    start = sum(group.nodes for group in described.groups)
    kept = names[:start]
    pools = []
    for pool in described.pools:
        own = names[start : start + pool.group.nodes]
        start = start + pool.group.nodes
        each = pool.group.rack_nodes or 1
        kept += own[: pool.now * each]
        spare = tuple(
            Fleet(
                name=pool.name,
                nodes=tuple(nodes[name] for name in own[first : first + each]),
                slices=tuple(slice_ for name in own[first : first + each] for slice_ in slices.get(name, ())),
            )
            for first in range(pool.now * each, len(own), each)
        )
        pools.append(_as_pool(pool, tuple(own[: pool.now * each]), spare))
    there = frozenset(kept)
    return replace(
        whole,
        nodes=tuple(node for node in whole.nodes if node.name in there),
        slices=tuple(slice_ for slice_ in whole.slices if slice_.spec.node_name in there),
        pools=tuple(pools),
        billing=described.billing,
        notes=(*whole.notes, *described.notes),
    )


def _as_pool(pool: PoolOfGroup, nodes: tuple[str, ...], spare: tuple[Fleet, ...]) -> NodePool:
    return NodePool(
        name=pool.name,
        machine=pool.machine,
        now=pool.now,
        nodes=nodes,
        spare=spare,
        racks=bool(pool.group.rack_nodes),
        price=pool.price,
        scaler=pool.scaler,
    )


def _widths(groups: Sequence[NodeGroup]) -> dict[str, int]:
    """Digits of the nodes' numbers, by their name without it."""
    totals: Counter[str] = Counter()
    for group in groups:
        totals[group.name] += group.nodes
    return {name: len(str(total - 1)) for name, total in totals.items()}


def _names(groups: Sequence[NodeGroup]) -> Iterator[tuple[NodeGroup, str]]:
    """All nodes by name, each with its group."""
    widths = _widths(groups)
    numbered = Counter[str]()
    for group in groups:
        for _ in range(group.nodes):
            yield group, f"{group.name}-{numbered[group.name]:0{widths[group.name]}}"
            numbered[group.name] += 1


def _notes(groups: Sequence[NodeGroup]) -> Iterator[str]:
    for group in groups:
        gpu = group.kind.gpu
        static = {name for layout in group.mig for name in layout}
        dynamic = "DynamicMIG" in group.gates
        if (dynamic or static) and is_estimated(gpu, None if dynamic else static):
            yield (
                f"memory or engines of MIG devices of {gpu} are not known: memory is estimated from its share, and an "
                "unknown number of engines is 0"
            )


def _check_size(text: str, *, nodes: int, devices: int) -> None:
    for what, number, most in (("nodes", nodes, MAX_NODES), ("devices", devices, MAX_DEVICES)):
        if number > most:
            raise FleetError.of(
                path=_path(text),
                code="fleet-too-large",
                message=f"{number:,} {what} are more than {most:,}",
                hint="ask for fewer nodes",
            )


def _path(text: str) -> str:
    return f'fleet "{text.strip()[:80]}"'
