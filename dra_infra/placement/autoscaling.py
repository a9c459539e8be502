"""Judges whether the autoscaler of a node pool adds nodes for the pods that would go there.

An autoscaler sees a node that is not there yet by its template. So what it would add is what fits on nodes with the devices of
the template: pools whose autoscaler adds none for these claims keep their nodes here, without devices.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, replace

from dra_infra.catalog.annotated_machines import make_slice
from dra_infra.catalog.autoscalers import (
    FEATURES,
    Autoscaler,
    AutoscalerRelease,
    Feature,
    autoscalers,
    order_of,
)
from dra_infra.catalog.publication import COMPUTE_DOMAIN_DRIVER
from dra_infra.fleet import Fleet, NodePool, PoolScaler
from dra_infra.kubernetes.api import Device, Release, ResourceSlice
from dra_infra.output.wording import join_words
from dra_infra.placement.demand import Demand, PodPlan, ReadFields
from dra_infra.placement.open_programs import OpenProgram
from dra_infra.placement.outlooks import PoolOutlook
from dra_infra.placement.placement import Placement


@dataclass(frozen=True, kw_only=True, slots=True)
class ClaimUse:
    """What the claims of pods use that go to added nodes.

    Args:
        features: Beyond a number of devices of a class on a node.
        drivers: Of the devices that they get.
        reads: Attributes that selectors read, without their domain; None where that is not known.
        has_claims: Whether any pod has a claim; others are for every autoscaler.
    """

    features: frozenset[Feature] = frozenset()
    drivers: frozenset[str] = frozenset()
    reads: frozenset[str] | None = frozenset()
    has_claims: bool = False


def find_use(program: OpenProgram, placed: Placement, pools: Sequence[NodePool]) -> ClaimUse:
    """Return what the claims of the pods use that the order which works puts on added nodes.

    Args:
        program: The pods, opened on the fleet with the added nodes.
        placed: Where they go there.
        pools: The pools with the nodes that may be added.
    """
    devices = {
        (slice_.spec.driver, slice_.spec.pool.name, device.name): device
        for pool in pools
        for more in pool.spare
        for slice_ in more.slices
        for device in slice_.spec.devices or ()
    }
    added = {node.name for pool in pools for more in pool.spare for node in more.nodes}
    works = placed.joint.works
    owners = {each.owner for each in works.arrivals if each.node in added} if works else set()
    plans = [
        each.plan for each in program.arriving if each.owner in owners and isinstance(each.plan, PodPlan)
    ]
    plans = [each for each in plans if each.uses_devices]
    chosen = [
        [devices.get((choice.driver, choice.pool, choice.device)) for choice in node.devices]
        for each in placed.workloads
        if each.owner in owners
        for node in each.nodes
        if node.node in added
    ]
    drivers = [
        frozenset(choice.driver for choice in node.devices)
        for each in placed.workloads
        if each.owner in owners
        for node in each.nodes
        if node.node in added
    ]
    demands = [entry.demand for plan in plans for entry in plan.entries]
    features = {feature for demand in demands for feature in _features_of(demand)}
    features |= _features_of_devices(device for each in chosen for device in each if device is not None)
    if any(plan.extended for plan in plans):
        features.add("extendedResources")
    if any(len(each) > 1 for each in drivers):
        features.add("severalDrivers")
    if any(COMPUTE_DOMAIN_DRIVER in each for each in drivers):
        features.add("computeDomains")
    reads = ReadFields.of(demands).reads
    return ClaimUse(
        features=frozenset(features),
        drivers=frozenset().union(*drivers),
        reads=None if reads is None else frozenset(name for kind, _, name in reads if kind == "attributes"),
        has_claims=any(plan.entries for plan in plans),
    )


def _features_of(demand: Demand) -> Iterator[Feature]:
    for request in demand.devices.requests or ():
        if request.first_available:
            yield "firstAvailable"
    for _, leaf in demand.leaves:
        if getattr(leaf, "admin_access", None):
            yield "adminAccess"
        if leaf.capacity is not None:
            yield "capacity"
        if leaf.tolerations:
            yield "taints"
    if any(each.distinct_attribute for each in demand.devices.constraints or ()):
        yield "distinctAttribute"


def _features_of_devices(devices: Iterable[Device]) -> Set[Feature]:
    found: set[Feature] = set()
    for device in devices:
        if device.consumes_counters:
            found.add("counters")
        if device.allow_multiple_allocations:
            found.add("capacity")
        if device.taints:
            found.add("taints")
    return found


def judge(pool: NodePool, use: ClaimUse, release: Release) -> PoolOutlook | None:
    """Return whether the autoscaler of a pool adds nodes for such claims; None where the file names no autoscaler.

    Args:
        pool: The pool.
        use: What the claims use.
        release: Kubernetes of the cluster; cluster-autoscaler has the same minor.
    """
    scaler = pool.scaler
    if scaler is None:
        return None
    known = autoscalers()[scaler.autoscaler]
    version = scaler.version or (release.minor if known.follows else "")
    rules = known.release_of(version)
    head = PoolOutlook(
        pool=pool.name, answer="grows", autoscaler=known.title, version=version, source=rules.source
    )
    if not use.has_claims and "extendedResources" not in use.features:
        return head
    refusal = _refuse(head, pool, use, known, rules)
    return refusal or _find_conditions(head, pool, scaler, known, rules)


def _refuse(
    head: PoolOutlook, pool: NodePool, use: ClaimUse, known: Autoscaler, rules: AutoscalerRelease
) -> PoolOutlook | None:
    """Return why the autoscaler adds no node whatever is written, or what is not known; None where it may add one."""
    does_not = replace(head, answer="does-not-grow", instead=rules.instead)
    unknown = replace(head, answer="not-known")
    state = rules.state_of(pool.now, template=known.template) if use.has_claims else "grows"
    if state == "does-not-grow":
        return replace(does_not, reason=rules.because)
    if state == "not-known":
        return replace(unknown, reason="no source says whether it adds nodes for pods with claims")
    refused = [
        FEATURES[each] for each in FEATURES if each in use.features and rules.features.get(each) == "no"
    ]
    if refused:
        return replace(does_not, reason=f"it does not understand {join_words(refused)}")
    silent = [FEATURES[each] for each in FEATURES if each in use.features and each not in rules.features]
    if silent:
        return replace(unknown, reason=f"no source says whether it understands {join_words(silent)}")
    if not use.has_claims or not known.has_no_nodes(pool.now):
        return None
    return _refuse_by_template(does_not, unknown, pool, use, rules)


def _refuse_by_template(
    does_not: PoolOutlook, unknown: PoolOutlook, pool: NodePool, use: ClaimUse, rules: AutoscalerRelease
) -> PoolOutlook | None:
    """Return why the devices of a template do not serve such claims, or what is not known; None where they may."""
    if rules.machines and pool.machine not in rules.machines:
        if not pool.machine or pool.machine.startswith("like "):
            return replace(unknown, reason="the machine of its nodes is not known")
        return replace(does_not, reason=f"it has no template for {pool.machine}")
    if others := sorted(use.drivers - set(rules.drivers)) if rules.drivers else []:
        return replace(does_not, reason=f"its template has no devices of {join_words(others)}")
    if rules.attributes and use.reads is None:
        return replace(unknown, reason="a selector may read any attribute, and its template has only some")
    if missing := sorted((use.reads or frozenset()) - set(rules.attributes)) if rules.attributes else []:
        why = f"selectors read {join_words(missing)}, which its template of a new node does not have"
        return replace(does_not, reason=why)
    return None


def _find_conditions(
    head: PoolOutlook, pool: NodePool, scaler: PoolScaler, known: Autoscaler, rules: AutoscalerRelease
) -> PoolOutlook:
    lines = []
    if not head.version and order_of(rules.since):
        lines.append(f"{known.title} is {rules.since} or newer")
    if rules.claims == "setting" and rules.setting is not None and scaler.counts_claims is not True:
        lines.append(f"`{rules.setting.line}` is in {rules.setting.where}")
    mark = rules.mark
    if mark is not None and known.has_no_nodes(pool.now) and mark.line not in scaler.lines:
        lines.append(f"`{mark.line}` is in {mark.where}")
    if not lines:
        return head
    why = ""
    if rules.claims == "setting" and scaler.counts_claims is None:
        why = "its settings are not in the fleet file, and as it comes it passes over pods with claims"
    return replace(head, answer="grows-if", lines=tuple(lines), reason=why)


def see_pools(
    pools: Sequence[NodePool], outlooks: Sequence[PoolOutlook | None], accepted: Set[str]
) -> tuple[NodePool, ...]:
    """Return the pools as their autoscalers see them: nodes to come have the devices of templates.

    Args:
        pools: The pools.
        outlooks: The answer for each.
        accepted: The answers with which a pool counts; nodes of others have no devices.
    """
    seen = []
    for pool, outlook in zip(pools, outlooks, strict=True):
        if outlook is None or pool.scaler is None:
            seen.append(pool)
        elif outlook.answer not in accepted:
            seen.append(replace(pool, spare=tuple(replace(each, slices=()) for each in pool.spare)))
        else:
            known = autoscalers()[pool.scaler.autoscaler]
            rules = known.release_of(outlook.version)
            if rules.attributes and known.has_no_nodes(pool.now):
                spare = (_see(each, pool.scaler, rules) for each in pool.spare)
                seen.append(replace(pool, spare=tuple(spare)))
            else:
                seen.append(pool)
    return tuple(seen)


def _see(more: Fleet, scaler: PoolScaler, rules: AutoscalerRelease) -> Fleet:
    """Return a node to come with the devices of its template."""
    if scaler.annotated is not None:
        driver, count = scaler.annotated
        return replace(more, slices=tuple(make_slice(each.name, driver, count) for each in more.nodes))
    names = {*rules.attributes, *rules.matched}
    slices = []
    for slice_ in more.slices:
        devices = [
            device.changed(
                {
                    "attributes": {
                        name: value
                        for name, value in (device.attributes or {}).items()
                        if name in names or name.rpartition("/")[2] in names
                    },
                    "capacity": {
                        name: value
                        for name, value in (device.capacity or {}).items()
                        if name.rpartition("/")[2] in rules.capacities
                    },
                }
            )
            for device in slice_.spec.devices or ()
        ]
        slices.append(_with_devices(slice_, devices))
    return replace(more, slices=tuple(slices))


def _with_devices(slice_: ResourceSlice, devices: Sequence[Device]) -> ResourceSlice:
    return slice_.changed({"spec": slice_.spec.changed({"devices": list(devices)})})
