"""What a pod of a workload is bound to: its claims, the classes that they name, and the devices and node of one placement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dra_infra.kubernetes.api import ObjectRef
from dra_infra.output.wording import compress_names
from dra_infra.placement.placement import DeviceChoice, WorkloadPlacement


@dataclass(frozen=True, kw_only=True, slots=True)
class Chain:
    """One request of a pod, from its claim to the node.

    Args:
        entry: The entry of the pod's `spec.resourceClaims`.
        claim: The claim, or the template from which the pod's claim is made, by name.
        changed_claim: The same object, if the change has it.
        request: The request in the claim, with the alternative that was taken: `gpu/large`.
        device_class: The class that the request names.
        devices: The devices that it gets, in short: `gpu-0..3`.
        node: The node.
    """

    entry: str
    claim: str
    changed_claim: ObjectRef | None
    request: str
    device_class: ObjectRef
    devices: str
    node: str


def trace_chains(placement: WorkloadPlacement, changed: Mapping[str | ObjectRef, int]) -> tuple[Chain, ...]:
    """Return a chain for each request of one pod, as it is placed on the first node that takes it; none if it fits nowhere.

    Args:
        placement: The answer for the workload.
        changed: Objects of the change, by reference.
    """
    if not placement.nodes:
        return ()
    node = placement.nodes[0]
    requests: dict[tuple[str, str, str, str], list[DeviceChoice]] = {}
    for choice in node.devices:
        key = choice.entry, choice.claim, choice.request, choice.device_class
        requests.setdefault(key, []).append(choice)
    chains = []
    for (entry, name, request, class_name), choices in requests.items():
        kinds = "ResourceClaim", "ResourceClaimTemplate"
        refs = [ObjectRef(kind, name, placement.owner.namespace) for kind in kinds]
        chain = Chain(
            entry=entry,
            claim=name,
            changed_claim=next((ref for ref in refs if ref in changed), None),
            request=request,
            device_class=ObjectRef("DeviceClass", class_name),
            devices=compress_names(list(dict.fromkeys(choice.device for choice in choices))),
            node=node.node,
        )
        chains.append(chain)
    return tuple(chains)
