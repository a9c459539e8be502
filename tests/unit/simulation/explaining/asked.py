"""Cases of the allocator's tests, put to what explains."""

from __future__ import annotations

from typing import Any

from dra_infra.model.device_class import DeviceClass
from dra_infra.model.resource_claim import ResourceClaim
from dra_infra.model.resource_slice import ResourceSlice
from dra_infra.simulation.explaining import Cluster, Finding, explain_node
from tests.unit.simulation.allocation.answers import node_of, state_of
from tests.unit.simulation.allocation.cases import Case, make_case


def cluster_of(case: Case) -> Cluster:
    """The cluster of a case."""
    return Cluster.of(
        case.variant,
        [ResourceSlice.from_manifest(each) for each in case.slices],
        [DeviceClass.from_manifest(each) for each in case.classes],
        state_of(case),
    )


def claims_of(case: Case) -> list[ResourceClaim]:
    """Its claims."""
    return [ResourceClaim.from_manifest(each) for each in case.claims]


def find(minor: str = "1.37", **case: Any) -> Finding:
    """Why the first node of a case made of *case* does not do."""
    made = make_case(minor, **case)
    return explain_node(cluster_of(made), node_of(made.nodes[0]), claims_of(made))
