"""Node pools that a fleet file has as objects of an autoscaler or a cloud: Karpenter, Cluster API, EKS, GKE, AKS.

`data/node_pool_kinds.yaml` says where in them names, machines and limits are. A pool with nodes in the file grows by nodes like
the first of them; one without by the machine of that name in the catalogue, with what an EC2NodeClass leaves of it for pods.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from typing import Any, Final

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
from dra_infra.catalog.node_pools import MAX_POOLS, DescribedFleet, PoolOfGroup
from dra_infra.catalog.records import Fact
from dra_infra.catalog.vocabulary import read_data
from dra_infra.kubernetes.api.label_selectors import meets_node_requirement, read_texts
from dra_infra.kubernetes.api.manifests import mapping, mappings, value_at
from dra_infra.kubernetes.api.names import is_dns_subdomain
from dra_infra.kubernetes.api.quantity import Quantity
from dra_infra.kubernetes.scheduler.fleet import (
    Fleet,
    Node,
    NodePool,
    NodeTaint,
    renamed_node,
    renamed_slice,
    whole_of,
)
from dra_infra.output.wording import join_words

_NUMBER: Final = re.compile(r"[0-9]{1,18}", re.ASCII)
_SHOWN: Final = 4
"""Machines and GPUs that a note names."""

WITHOUT_LIMIT: Final = 100
"""Nodes that a pool without limits may have here."""
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
    said: str
    node_class: str


def is_pool(manifest: Mapping[str, Any]) -> bool:
    """True for an object that describes node pools, or what the nodes of some are."""
    return _key_of(manifest) in pool_kinds() or _key_of(manifest) == _NODE_CLASS


def add_pools(
    fleet: Fleet, manifests: Iterable[Mapping[str, Any]], build: Callable[[DescribedFleet], Fleet]
) -> Fleet:
    """The fleet with the node pools of objects; what of them is not known is said in its notes.

    Args:
        fleet: What there is.
        manifests: Objects for which `is_pool` is true.
        build: Makes the nodes of named hardware.
    """
    pools: list[NodePool] = []
    named: list[PoolOfGroup] = []
    notes: list[str] = []
    room = MAX_NODES - len(fleet.nodes)
    manifests = list(manifests)
    classes = {
        str(value_at(each, "metadata", "name")): each for each in manifests if _key_of(each) == _NODE_CLASS
    }
    read = list(islice((each for manifest in manifests for each in _read(manifest)), MAX_POOLS))
    for pool in read:
        own = [node for node in fleet.nodes if pool.match and pool.match.items() <= node.labels.items()]
        machine = next((each for each in pool.machines if each in node_names()), "")
        if not is_dns_subdomain(pool.name) or len(pool.name) > 50:
            notes.append(f"node pool {pool.name[:80]} is left out: no nodes can be called so")
            continue
        if not own and not machine:
            shown = ", ".join(pool.machines[:3])[:80] or "not named"
            why = pool.said or f"its machine ({shown}) is not known here, and it has no node"
            notes.append(f"node pool {pool.name} is left out: {why}")
            continue
        if pool.said and not own:
            notes.append(f"node pool {pool.name} {pool.said}")
        left: Mapping[str, str] = {}
        if own:
            amounts = {**own[0].allocatable, _GPUS: str(_count_gpus(fleet, own[0]))}
        else:
            amounts, left = _amounts_of(machine, classes.get(pool.node_class))
        most = min(max(_limit(pool.most, pool.limits, amounts), len(own)), room)
        room -= most - len(own)
        if most == WITHOUT_LIMIT and pool.most < 0:
            notes.append(f"node pool {pool.name} has no limit: it is taken to have at most {most} nodes")
        if own:
            pools.append(_grow_like(fleet, own, pool, most))
        elif most:
            labels = {INSTANCE_TYPE: machine, **pool.labels, **pool.match}
            group = replace(
                read_terms(machine)[0],
                name=pool.name,
                count=most,
                labels=tuple(labels.items()),
                taints=pool.taints,
                allocatable=tuple(left.items()),
            )
            named.append(PoolOfGroup(group, machine, 0 if fleet.nodes else min(pool.least, most), None, ""))
    without_nodes = {each.name for each in named}
    notes += _name_missing([each for each in read if each.name in without_nodes], classes)
    built = build(DescribedFleet(fleet.name, (), named)) if named else Fleet(name="")
    return replace(
        fleet.with_classes(built.classes),
        nodes=tuple(sorted((*fleet.nodes, *built.nodes), key=lambda node: node.name)),
        slices=tuple(sorted((*fleet.slices, *built.slices), key=lambda each: each.metadata.name or "")),
        pools=(*pools, *built.pools),
        notes=(*fleet.notes, *notes, *built.notes),
    )


def _key_of(manifest: Mapping[str, Any]) -> tuple[str, str]:
    return str(manifest.get("apiVersion", "")).partition("/")[0], str(manifest.get("kind", ""))


def _name_missing(pools: Sequence[_Pool], classes: Mapping[str, Any]) -> Iterator[str]:
    """A note for each node class that is not among the objects."""
    for name in dict.fromkeys(each.node_class for each in pools):
        if name and name not in classes:
            users = join_words(each.name for each in pools if each.node_class == name)
            what = "what it sets of kubelet and disks is not known"
            yield f"{NODE_CLASS} {name[:80]} of node pool {users} is not there: {what}"


def _read(manifest: Mapping[str, Any]) -> Iterator[_Pool]:
    kind = pool_kinds().get(_key_of(manifest))
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
        said = ""
        if kind.requirements:
            requirements = mappings(value_at(entry, *kind.requirements))
            machine, said = _choose_machine(requirements, limits)
            if machine:
                machines, labels = [machine], {**_labels_of_nodes(machine, requirements), **labels}
        yield _Pool(
            name=name,
            machines=tuple(machines),
            least=max(_first(entry, kind.least, zones), 0),
            most=most,
            limits=limits,
            labels=labels,
            taints=tuple(_taints(value_at(entry, *kind.taints))),
            match={kind.label: name} if kind.label else labels,
            said=said,
            node_class=str(reference.get("name", "")) if is_read else "",
        )


def _choose_machine(requirements: Sequence[Mapping[str, Any]], limits: Mapping[str, Any]) -> tuple[str, str]:
    """The machine that a NodePool is taken to grow by, and what has to be said of the choice.

    Karpenter takes the cheapest that has room for the pods that wait. Here it is the one with the most GPUs, and of these the
    one with the most CPUs, of those that limits leave room for (filterByRemainingResources of kubernetes-sigs/karpenter).
    Requirements for other things, such as zones, are not looked at.

    Returns:
        The name, or nothing where no machine that is known is meant, or some with different GPUs are.
    """
    known = {key for labels in labels_of_karpenter().values() for key in labels}
    asked = [each for each in requirements if str(each.get("key")) in known]
    if not asked:
        return "", ""
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
    if not allowed:
        return "", "its requirements allow no machine that is known here, and it has no node"
    allowed = [each for each in allowed if _limit(-1, limits, _amounts_of_machine(each))] or allowed
    if len(allowed) == 1:
        return allowed[0], ""
    gpus = sorted({node_kinds()[node_names()[name]].gpu for name in allowed})
    if len(gpus) > 1:
        shown = ", ".join(gpus[:_SHOWN]) + (", ..." if len(gpus) > _SHOWN else "")
        return "", f"its requirements allow machines with different GPUs ({shown}), and it has no node"
    largest = max(allowed, key=_size)
    shown = ", ".join(sorted(allowed)[:_SHOWN]) + (", ..." if len(allowed) > _SHOWN else "")
    return largest, f"may take any of {shown}: it is taken to grow by {largest}, which has the most GPUs"


def _labels_of_nodes(machine: str, requirements: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Labels of the nodes that Karpenter makes: those of the machine, and requirements that leave one value."""
    single = {
        str(each.get("key")): read_texts(each.get("values"))[0]
        for each in requirements
        if each.get("operator") == "In" and len(read_texts(each.get("values"))) == 1
    }
    return {**single, INSTANCE_TYPE: machine, **labels_of_karpenter().get(machine, {})}


def _size(name: str) -> tuple[int, int, str]:
    kind = node_kinds()[node_names()[name]]
    return kind.count, int(Quantity.parse(kind.invented.node.get("cpu", "0")).nanos), name


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
    for each in value.split(",") if isinstance(value, str) else value if isinstance(value, list) else ():
        if isinstance(each, str) and ":" in each:
            (key, _, text), effect = each.rpartition(":")[0].partition("="), each.rpartition(":")[2]
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


@cache
def _amounts_of_machine(machine: str) -> Mapping[str, str]:
    """Returns the amounts of a node that limits of a pool count, where no node class is named."""
    return _amounts_of(machine)[0]


def _limit(nodes: int, limits: Mapping[str, Any], amounts: Mapping[str, str]) -> int:
    """How many nodes a pool may have, by their number where that is not negative, and by what all may have together."""
    most = [nodes] if nodes >= 0 else []
    for name, limit in limits.items():
        try:
            of_all = Quantity.parse(str(limit))
            of_one = Quantity.parse("1" if name == "nodes" else amounts.get(name, "0"))
        except ValueError:
            continue
        if of_one.value > 0:
            most.append(max(int(of_all.value // of_one.value), 0))
    return min(most, default=WITHOUT_LIMIT)


def _count_gpus(fleet: Fleet, node: Node) -> int:
    """The GPUs that NVIDIA's driver publishes on a node; one in partitions is one."""
    found: set[str] = set()
    for slice_ in fleet.slices:
        if (slice_.spec.node_name, slice_.spec.driver) == (node.name, "gpu.nvidia.com"):
            found |= {whole_of(each) for each in slice_.spec.devices or ()}
    return len(found)


def _grow_like(fleet: Fleet, own: list[Node], pool: _Pool, most: int) -> NodePool:
    """The pool, whose further nodes are like its first: with its slices, under names of their own."""
    first = replace(
        own[0],
        unschedulable=False,
        taints=tuple(each for each in own[0].taints if not each.key.startswith("node.kubernetes.io/")),
    )
    slices = [each for each in fleet.slices if each.spec.node_name == first.name]
    spare = []
    for number in range(most - len(own)):
        name = f"{pool.name}-added-{number:0{len(str(most))}}"
        copies = tuple(renamed_slice(each, {first.name: name}) for each in slices)
        spare.append(Fleet(name=pool.name, nodes=(renamed_node(first, name),), slices=copies))
    machine = first.labels.get(INSTANCE_TYPE) or next(iter(pool.machines), "")
    names = tuple(node.name for node in own)
    return NodePool(name=pool.name, machine=machine, now=len(own), nodes=names, spare=tuple(spare))
