"""Node pools that a fleet file has as objects of an autoscaler or a cloud: Karpenter, Cluster API, EKS, GKE, AKS.

`data/node_pool_kinds.yaml` says where in them names, machines and limits are. A pool with nodes in the file grows by nodes like
the first of them; one without by the machine of that name in the catalogue, with what an EC2NodeClass leaves of it for pods.
One of Karpenter grows by each machine that it may take, and these share its limits.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import islice
from typing import Any, Final

from dra_infra.catalog.annotated_machines import make_slice, read_amounts, read_devices
from dra_infra.catalog.autoscalers import find_scaler, is_autoscaler, read_deployed
from dra_infra.catalog.driver_settings import whole_number
from dra_infra.catalog.fleet_files import NODE_CLASS
from dra_infra.catalog.fleet_terms import MAX_NODES, read_terms
from dra_infra.catalog.machines import (
    INSTANCE_TYPE,
    amounts_of_karpenter,
    labels_of_karpenter,
    node_kinds,
    node_names,
)
from dra_infra.catalog.node_groups import NodeGroup
from dra_infra.catalog.node_pools import MAX_POOLS, DescribedFleet, PoolOfGroup
from dra_infra.catalog.records import Fact
from dra_infra.catalog.vocabulary import read_data
from dra_infra.fleet import (
    ANNOTATED,
    Fleet,
    NodePool,
    PoolScaler,
    SharedLimit,
    renamed_node,
    renamed_slice,
    whole_of,
)
from dra_infra.kubernetes.api import (
    NANO,
    Node,
    NodeTaint,
    Quantity,
    group_of,
    mapping,
    mappings,
    meets_node_requirement,
    read_texts,
    value_at,
)
from dra_infra.kubernetes.api.names import is_dns_subdomain
from dra_infra.output.wording import join_words
from dra_infra.target import NEWEST_DRIVER

_NUMBER: Final = re.compile(r"[0-9]{1,18}", re.ASCII)

WITHOUT_LIMIT: Final = 100
"""Nodes that a pool without limits may have here."""
MOST_OF_ALL: Final = 2_000
"""Further nodes of all machines of a pool that may take several."""
_GPUS: Final = "nvidia.com/gpu"
_NODE_CLASS: Final = ("karpenter.k8s.aws", NODE_CLASS)
_EFFECTS: Final = {
    "NO_SCHEDULE": "NoSchedule",
    "NO_EXECUTE": "NoExecute",
    "PREFER_NO_SCHEDULE": "PreferNoSchedule",
}


class PoolKind(Fact):
    """Where in an object of one kind the fields of a node pool are; the head of the data file explains each."""

    group: str
    kind: str
    name: tuple[str, ...] = ()
    label: str = ""
    machines: tuple[str, ...] = ()
    least: tuple[tuple[str, ...], ...] = ()
    most: tuple[tuple[str, ...], ...] = ()
    per_zone: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()
    labels: tuple[str, ...]
    taints: tuple[str, ...]
    groups: tuple[str, ...] = ()
    requirements: tuple[str, ...] = ()
    node_class: tuple[str, ...] = ()


@cache
def pool_kinds() -> dict[tuple[str, str], PoolKind]:
    """The kinds of objects that describe node pools, by group and kind."""
    kinds = map(PoolKind.model_validate, read_data("node_pool_kinds.yaml"))
    return {(each.group, each.kind): each for each in kinds}


@dataclass(frozen=True, slots=True)
class _Pool:
    name: str
    machines: tuple[str, ...]
    least: int
    most: int
    limits: Mapping[str, Any]
    labels: Mapping[str, str]
    taints: tuple[NodeTaint, ...]
    match: Mapping[str, str]
    takes_any: bool
    node_class: str
    scaler: PoolScaler | None
    annotations: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Machine:
    """A machine by which a pool may grow.

    Args:
        pool: The number of the pool.
        name: Of the machine.
        own: The nodes of it that there are.
        amounts: What limits of the pool count of one.
        left: What a node class leaves of it for pods.
        title: What growth by it is called.
        more: How many further nodes of it are looked at.
        is_cut: Whether there may be more.
    """

    pool: int
    name: str
    own: Sequence[Node]
    amounts: Mapping[str, str]
    left: Mapping[str, str]
    title: str
    more: int = 0
    is_cut: bool = False


def is_pool(manifest: Mapping[str, Any]) -> bool:
    """True for an object that describes node pools, what the nodes of some are, or the autoscaler that scales them."""
    kind = _group_and_kind(manifest)
    return kind in pool_kinds() or kind == _NODE_CLASS or is_autoscaler(manifest)


def add_pools(
    fleet: Fleet,
    manifests: Iterable[Mapping[str, Any]],
    build: Callable[[DescribedFleet], Fleet],
    *,
    driver: str = NEWEST_DRIVER,
) -> Fleet:
    """The fleet with the node pools of objects; what of them is not known is said in its notes.

    Args:
        fleet: What there is.
        manifests: Objects for which `is_pool` is true.
        build: Makes the nodes of named hardware.
        driver: Releases of the drivers on the nodes that are added of named hardware.
    """
    manifests = list(manifests)
    classes = {
        str(value_at(each, "metadata", "name")): each
        for each in manifests
        if _group_and_kind(each) == _NODE_CLASS
    }
    deployed = read_deployed(manifests)
    read = list(islice((each for manifest in manifests for each in _read(manifest, deployed)), MAX_POOLS))
    ways = _find_ways(fleet, read, classes, driver)
    named = ways.named
    built = build(DescribedFleet(fleet.name, (), [each for _, each in named])) if named else Fleet(name="")
    grown = [each for _, each in ways.like_nodes]
    grown += [
        replace(each, name=machine.title) for (machine, _), each in zip(named, built.pools, strict=True)
    ]
    machines = [each for each, _ in (*ways.like_nodes, *named)]
    grown = [
        replace(each, is_cut=machine.is_cut, scaler=read[machine.pool].scaler)
        for machine, each in zip(machines, grown, strict=True)
    ]
    return replace(
        fleet.with_classes(built.classes),
        nodes=tuple(sorted((*fleet.nodes, *built.nodes), key=lambda node: node.name)),
        slices=tuple(sorted((*fleet.slices, *built.slices), key=lambda each: each.metadata.name or "")),
        pools=tuple(grown),
        limits=tuple(_find_shared(read, ways.limits, machines, grown)),
        notes=(*fleet.notes, *ways.notes, *built.notes),
        driver_releases=tuple(sorted({*fleet.driver_releases, *built.driver_releases})),
        is_partial=fleet.is_partial or bool(read),
    )


@dataclass(frozen=True, slots=True)
class _Ways:
    """The ways in which pools grow.

    Args:
        like_nodes: Machines with nodes in the fleet, whose further nodes are like these.
        named: Machines that only the catalogue has.
        limits: What the limits of each pool leave for further nodes.
        notes: What of the pools is not known.
    """

    like_nodes: list[tuple[_Machine, NodePool]] = field(default_factory=list)
    named: list[tuple[_Machine, PoolOfGroup]] = field(default_factory=list)
    limits: list[dict[str, int]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def _find_ways(
    fleet: Fleet, pools: Sequence[_Pool], classes: Mapping[str, Mapping[str, Any]], driver: str
) -> _Ways:
    """Return how pools grow, each by its machines in turn, until the fleet has as many nodes as are looked at."""
    ways = _Ways()
    room = MAX_NODES - len(fleet.nodes)
    for number, pool in enumerate(pools):
        machines = list(_find_machines(number, pool, fleet, classes.get(pool.node_class)))
        ways.limits.append(_find_left(pool, machines))
        if why := _find_why_unusable(pool, machines):
            ways.notes.append(why)
            continue
        sizes = _find_sizes(pool, machines, ways.limits[-1], ways.notes)
        if not sizes:
            ways.notes.append(f"node pool {pool.name} is left out: its limits leave room for no node")
        for index, wanted in enumerate(sizes):
            more = min(wanted.more, room)
            machine = replace(wanted, is_cut=wanted.is_cut or more < wanted.more)
            room -= more
            stem = f"{pool.name}-added{index or ''}"
            if machine.name == ANNOTATED and more:
                ways.like_nodes.append((machine, _grow_annotated(pool, machine, stem, more)))
            elif machine.own:
                ways.like_nodes.append((machine, _grow_like(fleet, machine, stem, more)))
            elif more:
                # Numbers of nodes go on from machine to machine, and names of nodes that are there are not given again.
                group = _group_of(pool, machine, stem if sizes[0].own else pool.name, more, driver)
                now = 0 if fleet.nodes else min(pool.least, more)
                ways.named.append((machine, PoolOfGroup(group, machine.name, now, None, "")))
    users = [pools[number] for number in dict.fromkeys(each.pool for each, _ in ways.named)]
    ways.notes.extend(_name_missing(users, classes))
    return ways


def _find_why_unusable(pool: _Pool, machines: Sequence[_Machine]) -> str:
    """Return the note on a pool that cannot be looked at, empty where it can."""
    if not is_dns_subdomain(pool.name) or len(pool.name) > 50:
        return f"node pool {pool.name[:80]} is left out: no nodes can be called so"
    if machines:
        return ""
    shown = ", ".join(pool.machines[:3])[:80] or "not named"
    why = f"its machine ({shown}) is not known here"
    if pool.takes_any:
        why = "its requirements name no machine that is known here"
    return f"node pool {pool.name} is left out: {why}, and it has no node"


def _group_of(pool: _Pool, machine: _Machine, name: str, number: int, driver: str) -> NodeGroup:
    """Return the further nodes of a machine of the catalogue, with labels and taints of the pool."""
    of_ec2 = labels_of_karpenter().get(machine.name, {}) if pool.takes_any else {}
    labels = {INSTANCE_TYPE: machine.name, **of_ec2, **pool.labels, **pool.match}
    return replace(
        read_terms(machine.name, driver=driver)[0],
        name=name,
        count=number,
        labels=tuple(labels.items()),
        taints=pool.taints,
        allocatable=tuple(machine.left.items()),
    )


def _find_shared(
    read: Sequence[_Pool],
    limits: Sequence[Mapping[str, int]],
    machines: Sequence[_Machine],
    grown: Sequence[NodePool],
) -> Iterator[SharedLimit]:
    """Yield the limits of pools that do not allow all further nodes at once."""
    for number, of_pool in enumerate(limits):
        for what, left in of_pool.items():
            takes = tuple(_take(what, each) if each.pool == number else 0 for each in machines)
            if sum(take * len(each.spare) for take, each in zip(takes, grown, strict=True)) > left:
                yield SharedLimit(pool=read[number].name, what=what, left=left, takes=takes)


def _find_machines(
    number: int, pool: _Pool, fleet: Fleet, node_class: Mapping[str, Any] | None
) -> Iterator[_Machine]:
    """The machines by which a pool may grow: those of its nodes, then those of the catalogue."""
    own: dict[str, list[Node]] = {}
    for node in fleet.nodes:
        if pool.match and pool.match.items() <= node.labels.items():
            own.setdefault(node.labels.get(INSTANCE_TYPE, "") if pool.takes_any else "", []).append(node)
    # Nodes that do not say which of several machines they are leave open all of these.
    is_open = pool.takes_any and len(pool.machines) > 1
    for name, nodes in own.items():
        amounts = {**nodes[0].allocatable, _GPUS: str(_count_gpus(fleet, nodes[0]))}
        if name in labels_of_karpenter():
            amounts = _amounts_of(name, node_class)[0]
        named = name or nodes[0].labels.get(INSTANCE_TYPE) or next(iter(pool.machines), "")
        named = f"like {nodes[0].name}" if is_open and not name else named
        yield _Machine(number, named, nodes, amounts, {}, pool.name)
    known = [each for each in pool.machines if each in node_names() and each not in own]
    if not own and not known and pool.scaler is not None and pool.scaler.annotated is not None:
        amounts = {**read_amounts(pool.annotations), _GPUS: str(pool.scaler.annotated[1])}
        yield _Machine(number, ANNOTATED, (), amounts, {}, pool.name)
    if is_open or "" not in own:
        for name in known if pool.takes_any else known[:1]:
            yield _Machine(number, name, (), *_amounts_of(name, node_class), pool.name)


def _find_left(pool: _Pool, machines: Sequence[_Machine]) -> dict[str, int]:
    """Returns what the limits of a pool leave for further nodes."""
    limits = {**pool.limits, **({"nodes": pool.most} if pool.most >= 0 else {})}
    counted = {str(what): _count(str(what), limit) for what, limit in limits.items()}
    return {
        what: max(most - sum(_take(what, each) * len(each.own) for each in machines), 0)
        for what, most in counted.items()
        if most is not None
    }


def _find_sizes(
    pool: _Pool, machines: Sequence[_Machine], left: dict[str, int], notes: list[str]
) -> list[_Machine]:
    """The machines of which a pool has nodes or may have further ones, with their number."""
    unread = [f"{what}: {limit}"[:80] for what, limit in pool.limits.items() if _count("", limit) is None]
    if unread:
        notes.append(
            f"limits of node pool {pool.name} that cannot be read count as none: {join_words(unread)}"
        )
    if not all(any(_take(what, each) for what in left) for each in machines):
        notes.append(f"node pool {pool.name} has no limit: it is taken to have at most {WITHOUT_LIMIT} nodes")
        left["nodes"] = max(WITHOUT_LIMIT - sum(len(each.own) for each in machines), 0)
        machines = [replace(each, is_cut=True) for each in machines]
    sizes = [
        replace(each, more=min(most // take for what, most in left.items() if (take := _take(what, each))))
        for each in machines
    ]
    sizes = [each for each in sizes if each.more or each.own]
    if len(sizes) < 2:
        return sizes
    most = MOST_OF_ALL
    if sum(each.more for each in sizes) > most:
        most //= len(sizes)
        notes.append(f"node pool {pool.name} is taken to get at most {most} further nodes of each machine")
    cut = [each.is_cut or each.more > most for each in sizes]
    return [
        replace(each, title=f"{pool.name}/{each.name}", more=min(each.more, most), is_cut=is_cut)
        for each, is_cut in zip(sizes, cut, strict=True)
    ]


def _take(what: str, machine: _Machine) -> int:
    return 1 if what == "nodes" else _count(what, machine.amounts.get(what, "0")) or 0


def _count(what: str, amount: object) -> int | None:
    """An amount in whole units, of CPU in thousandths; None where it is none."""
    try:
        nanos = Quantity.parse(str(amount)).nanos
    except ValueError:
        return None
    return nanos * (1_000 if what == "cpu" else 1) // NANO


def _group_and_kind(manifest: Mapping[str, Any]) -> tuple[str, str]:
    return group_of(manifest), str(manifest.get("kind", ""))


def _name_missing(pools: Sequence[_Pool], classes: Mapping[str, Any]) -> Iterator[str]:
    """A note for each node class that is not among the objects."""
    for name in dict.fromkeys(each.node_class for each in pools):
        if name and name not in classes:
            users = join_words(each.name for each in pools if each.node_class == name)
            what = "what it sets of kubelet and disks is not known"
            yield f"{NODE_CLASS} {name[:80]} of node pool {users} is not there: {what}"


def _read(manifest: Mapping[str, Any], deployed: Mapping[str, PoolScaler]) -> Iterator[_Pool]:
    kind = pool_kinds().get(_group_and_kind(manifest))
    if kind is None:
        return
    entries = (
        [each for key in kind.groups for each in mappings(manifest.get(key))] if kind.groups else [manifest]
    )
    for entry in entries:
        name = value_at(entry, *kind.name) if kind.name else None
        name = str(name or value_at(entry, "metadata", "name") or "")
        labels = _labels(value_at(entry, *kind.labels))
        zones = value_at(entry, *kind.per_zone) if kind.per_zone else None
        most = _first(entry, kind.most, zones)
        # Without a limit Cluster API and the clouds do not grow a pool.
        if most < 0 and not kind.limits:
            continue
        machines = _machines(value_at(entry, *kind.machines)) if kind.machines else []
        limits = mapping(value_at(entry, *kind.limits)) if kind.limits else {}
        reference = mapping(value_at(entry, *kind.node_class)) if kind.node_class else {}
        is_read = (reference.get("group"), reference.get("kind")) == _NODE_CLASS
        if kind.requirements:
            requirements = mappings(value_at(entry, *kind.requirements))
            machines = _find_allowed(requirements)
            # Nodes have as labels the requirements that leave one value.
            single = {
                str(each.get("key")): values[0]
                for each in requirements
                if each.get("operator") == "In" and len(values := read_texts(each.get("values"))) == 1
            }
            labels = {**single, **labels}
        yield _Pool(
            name=name,
            machines=tuple(machines),
            least=max(_first(entry, kind.least, zones), 0),
            most=most,
            limits=limits,
            labels=labels,
            taints=tuple(_taints(value_at(entry, *kind.taints))),
            match={kind.label: name} if kind.label else labels,
            takes_any=bool(kind.requirements),
            node_class=str(reference.get("name", "")) if is_read else "",
            scaler=_find_scaler(manifest, str(reference.get("group", "")), labels, deployed),
            annotations=_labels(value_at(manifest, "metadata", "annotations")),
        )


def _find_scaler(
    manifest: Mapping[str, Any],
    node_class: str,
    labels: Mapping[str, str],
    deployed: Mapping[str, PoolScaler],
) -> PoolScaler | None:
    """Return the autoscaler of a pool, with the devices that annotations of Cluster API give to its machine."""
    annotations = _labels(value_at(manifest, "metadata", "annotations"))
    scaler = find_scaler(_group_and_kind(manifest), node_class, labels, annotations, deployed)
    return replace(scaler, annotated=read_devices(annotations)) if scaler is not None else None


def _find_allowed(requirements: Sequence[Mapping[str, Any]]) -> list[str]:
    """The known machines that a NodePool may take; none where its requirements are for other things, such as zones."""
    known = {key for labels in labels_of_karpenter().values() for key in labels}
    asked = [each for each in requirements if str(each.get("key")) in known]
    if not asked:
        return []
    allowed = [
        name for name, labels in labels_of_karpenter().items() if all(_holds(each, labels) for each in asked)
    ]
    # A fleet stands for machines of one's own.
    allowed += [
        name
        for each in asked
        if each.get("key") == INSTANCE_TYPE and each.get("operator") == "In" and len(asked) == 1
        for name in read_texts(each.get("values"))
        if name in node_names() and name not in labels_of_karpenter()
    ]
    return list(dict.fromkeys(allowed))


def _holds(requirement: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Checks a requirement against the labels of a machine; of the operators, Gte and Lte are Karpenter's own."""
    values = read_texts(requirement.get("values"))
    strict = {"Gte": ("Gt", -1), "Lte": ("Lt", 1)}.get(str(requirement.get("operator")))
    if strict and len(values) == 1 and _NUMBER.fullmatch(values[0]):
        operator, step = strict
        requirement = {**requirement, "operator": operator, "values": [str(int(values[0]) + step)]}
    return meets_node_requirement(requirement, labels)


def _first(entry: Mapping[str, Any], paths: tuple[tuple[str, ...], ...], zones: Any) -> int:
    """The number at the first path that has one, for all zones; -1 where there is none."""
    for path in paths:
        number = whole_number(value_at(entry, *path))
        if number >= 0:
            return number * (len(zones) if path == paths[-1] and isinstance(zones, list) and zones else 1)
    return -1


def _machines(value: Any) -> list[str]:
    if isinstance(value, str):
        return [_labels(value).get(INSTANCE_TYPE, "")] if "=" in value else [value]
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def _labels(value: Any) -> dict[str, str]:
    if isinstance(value, str):
        return {key: text for key, sign, text in (each.partition("=") for each in value.split(",")) if sign}
    return {str(key): str(text) for key, text in mapping(value).items()}


def _taints(value: Any) -> Iterator[NodeTaint]:
    if isinstance(value, str):
        value = value.split(",")
    for each in value if isinstance(value, list) else ():
        if isinstance(each, str) and ":" in each:
            (key, _, text) = each.rpartition(":")[0].partition("=")
            effect = each.rpartition(":")[2]
            yield NodeTaint(key=key, value=text, effect=effect)
        elif isinstance(each, Mapping):
            effect = str(each.get("effect", ""))
            value_ = str(each.get("value") or "")
            yield NodeTaint(key=str(each.get("key", "")), value=value_, effect=_EFFECTS.get(effect, effect))


def _amounts_of(
    machine: str, node_class: Mapping[str, Any] | None = None
) -> tuple[dict[str, str], dict[str, str]]:
    """Returns the amounts of a node that limits of a pool count, and those that a node class leaves for pods."""
    kind = node_kinds()[node_names()[machine]]
    if machine not in labels_of_karpenter():
        return {**kind.invented.node, _GPUS: str(kind.count)}, {}
    whole, left = amounts_of_karpenter(machine, node_class or {})
    return {**whole, _GPUS: str(kind.count)}, {} if node_class is None else left


def _count_gpus(fleet: Fleet, node: Node) -> int:
    """The GPUs that NVIDIA's driver publishes on a node; one in partitions is one."""
    found: set[str] = set()
    for slice_ in fleet.slices:
        if (slice_.spec.node_name, slice_.spec.driver) == (node.name, "gpu.nvidia.com"):
            found |= {whole_of(each) for each in slice_.spec.devices or ()}
    return len(found)


def _grow_annotated(pool: _Pool, machine: _Machine, stem: str, more: int) -> NodePool:
    """A pool whose further nodes have the amounts and the devices that annotations of Cluster API describe."""
    assert pool.scaler is not None and pool.scaler.annotated is not None  # noqa: S101, PT018  (who asks has looked)
    allocatable = read_amounts(pool.annotations)
    spare = []
    for number in range(more):
        name = f"{stem}-{number:0{len(str(more))}}"
        labels = {**pool.labels, "kubernetes.io/hostname": name}
        node = Node(name=name, labels=labels, allocatable=allocatable, taints=pool.taints)
        slices = (make_slice(name, *pool.scaler.annotated),)
        spare.append(Fleet(name=machine.title, nodes=(node,), slices=slices))
    return NodePool(name=machine.title, machine=machine.name, now=0, nodes=(), spare=tuple(spare))


def _grow_like(fleet: Fleet, machine: _Machine, stem: str, more: int) -> NodePool:
    """A pool whose further nodes are like its first: with its slices, under names of their own."""
    first = machine.own[0]
    taints = tuple(each for each in first.taints if not each.key.startswith("node.kubernetes.io/"))
    first = replace(first, unschedulable=False, taints=taints)
    slices = [each for each in fleet.slices if each.spec.node_name == first.name]
    spare = []
    for number in range(more):
        name = f"{stem}-{number:0{len(str(len(machine.own) + more))}}"
        copies = tuple(renamed_slice(each, {first.name: name}) for each in slices)
        spare.append(Fleet(name=machine.title, nodes=(renamed_node(first, name),), slices=copies))
    names = tuple(node.name for node in machine.own)
    return NodePool(name=machine.title, machine=machine.name, now=len(names), nodes=names, spare=tuple(spare))
