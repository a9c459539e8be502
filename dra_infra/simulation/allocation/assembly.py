"""The status that each claim gets: results, configuration and node selector.

Source: the end of Allocate, and createNodeSelector.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from dra_infra.model.claim_status import (
    AllocationResult,
    DeviceAllocationConfiguration,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
)
from dra_infra.model.fleet import Node
from dra_infra.model.node_selector import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from dra_infra.model.resource_claim import ResourceClaim
from dra_infra.simulation.allocation.outcomes import abort
from dra_infra.simulation.allocation.quirks import Quirk
from dra_infra.simulation.allocation.requests import Key, Wanted
from dra_infra.simulation.allocation.usage import Picked
from dra_infra.simulation.allocation.variants import Variant

SHARE = "share"
"""In place of the random id of a share."""

# What is put together here is known to be right; making a record from another one checks nothing again.
_ALLOCATION = AllocationResult()
_DEVICES = DeviceAllocationResult()
_RESULT = DeviceRequestAllocationResult()


def assemble(
    number: int,
    claim: ResourceClaim,
    picked: Sequence[Picked],
    wanted: Mapping[Key, Wanted],
    node: Node,
    variant: Variant,
) -> AllocationResult:
    """`status.allocation` of one claim.

    Raises:
        AllocationError: For slices with a node selector of several terms, which the API server refuses.
    """
    chosen = [
        wanted[Key(number, position, wanted[Key(number, position)].selected)]
        for position in range(len(claim.spec.devices.requests or ()))
    ]
    devices = _DEVICES.changed(
        {
            "results": [_result(each, variant) for each in picked],
            "config": _configure(claim, chosen, variant) or None,
        }
    )
    return _ALLOCATION.changed(
        {"devices": devices, "node_selector": _select_nodes(claim, picked, node, variant)}
    )


def _result(picked: Picked, variant: Variant) -> DeviceRequestAllocationResult:
    wanted, published = picked.wanted, picked.published
    device = published.device
    features = variant.features
    tells_tolerations = variant.number >= 36 or (variant.number == 35 and variant.channel != "stable")
    tells_skips = variant.number >= 37 and variant.channel == "experimental"
    return _RESULT.changed(
        {
            "request": wanted.full_name,
            "driver": published.id.driver,
            "pool": published.id.pool,
            "device": published.id.device,
            "admin_access": True if wanted.admin else None,
            "tolerations": wanted.leaf.tolerations if tells_tolerations else None,
            "binding_conditions": device.binding_conditions if features.binding_conditions else None,
            "binding_failure_conditions": device.binding_failure_conditions
            if features.binding_conditions
            else None,
            "share_id": SHARE if picked.is_share else None,
            "consumed_capacity": {name: amount.text for name, amount in picked.consumed.items()} or None,
            "skip_node_operations": published.slice.spec.skip_node_operations if tells_skips else None,
        }
    )


def _configure(
    claim: ResourceClaim, chosen: Sequence[Wanted], variant: Variant
) -> list[DeviceAllocationConfiguration]:
    configs = [*_class_configs(chosen), *_claim_configs(claim, chosen, variant)]
    if variant.number < 37:
        return configs
    # From 1.37 on a list of all requests is written as none.
    return [
        config.changed({"requests": None})
        if config.requests and all(_is_named(each, config.requests) for each in chosen)
        else config
        for config in configs
    ]


def _class_configs(chosen: Sequence[Wanted]) -> Iterator[DeviceAllocationConfiguration]:
    by_class: dict[str, list[Wanted]] = {}
    for each in chosen:
        by_class.setdefault(each.device_class.metadata.name or "", []).append(each)
    for members in by_class.values():
        for config in members[0].device_class.spec.config or ():
            requests = [each.full_name for each in members]
            yield DeviceAllocationConfiguration(source="FromClass", requests=requests, opaque=config.opaque)


def _claim_configs(
    claim: ResourceClaim, chosen: Sequence[Wanted], variant: Variant
) -> Iterator[DeviceAllocationConfiguration]:
    for config in claim.spec.devices.config or ():
        entry = DeviceAllocationConfiguration(
            source="FromClaim", requests=config.requests, opaque=config.opaque
        )
        if not config.requests:
            yield entry
            continue
        times = sum(_is_named(each, config.requests) for each in chosen)
        yield from [entry] * (times if variant.has(Quirk.CONFIG_FOR_EACH) else min(times, 1))


def _is_named(wanted: Wanted, requests: Sequence[str]) -> bool:
    return (wanted.parent or wanted.name) in requests or wanted.full_name in requests


def _select_nodes(
    claim: ResourceClaim, picked: Sequence[Picked], node: Node, variant: Variant
) -> NodeSelector | None:
    fields: list[NodeSelectorRequirement] = []
    expressions: list[NodeSelectorRequirement] = []
    for each in picked:
        place = (
            each.published.device
            if each.published.slice.spec.per_device_node_selection
            else each.published.slice.spec
        )
        binds = variant.is_extended and bool(each.published.device.binds_to_node)
        if place.node_name is not None or binds:
            return _select_node(node.name)
        terms = (place.node_selector.node_selector_terms or ()) if place.node_selector is not None else ()
        if len(terms) > 1:
            raise abort(
                f"create NodeSelector for claim {claim.metadata.name}: unsupported ResourceSlice.NodeSelector with "
                f"{len(terms)} terms"
            )
        for term in terms:
            _merge(term.match_fields or (), fields)
            _merge(term.match_expressions or (), expressions)
    if not fields and not expressions:
        return None
    term = NodeSelectorTerm(match_fields=fields or None, match_expressions=expressions or None)
    return NodeSelector(node_selector_terms=[term])


@lru_cache(maxsize=8192)
def _select_node(name: str) -> NodeSelector:
    field = NodeSelectorRequirement(key="metadata.name", operator="In", values=[name])
    return NodeSelector(node_selector_terms=[NodeSelectorTerm(match_fields=[field])])


def _merge(requirements: Sequence[NodeSelectorRequirement], into: list[NodeSelectorRequirement]) -> None:
    for requirement in requirements:
        if not any(
            known.key == requirement.key
            and known.operator == requirement.operator
            and set(known.values or ()) == set(requirement.values or ())
            for known in into
        ):
            into.append(requirement)
