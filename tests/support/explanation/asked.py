"""Cases of the allocator's tests, put to what explains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dra_infra.explanation.explain import explain
from dra_infra.explanation.node_reasons import NodeReason, explain_node
from dra_infra.explanation.question import AskedClaim, Holder, Question
from dra_infra.explanation.records import Explanation
from dra_infra.kubernetes.api import AllocationResult, DeviceClass, ObjectRef, ResourceClaim, ResourceSlice
from dra_infra.kubernetes.scheduler.allocator import Allocator
from tests.support.allocator.answers import node_of, state_of
from tests.support.allocator.cases import Case, make_case


def cluster_of(case: Case) -> Allocator:
    """The cluster of a case."""
    return Allocator(
        case.variant,
        [ResourceSlice.from_manifest(each) for each in case.slices],
        [DeviceClass.from_manifest(each) for each in case.classes],
        state_of(case),
    )


def claims_of(case: Case) -> list[ResourceClaim]:
    """Its claims."""
    return [ResourceClaim.from_manifest(each) for each in case.claims]


def find(minor: str = "1.37", **case: Any) -> NodeReason:
    """Why the first node of a case made of *case* does not do."""
    made = make_case(minor, **case)
    return explain_node(cluster_of(made), node_of(made.nodes[0]), claims_of(made))


def question_of(
    case: Case, *, pods: int = 1, refusals: Mapping[str, tuple[str, ...]] | None = None
) -> Question:
    """The question about the pod of a case; what is in use there is held by nobody that is known."""
    slices = [ResourceSlice.from_manifest(each) for each in case.slices]
    claims = [
        AskedClaim(claim=each, name=f"ResourceClaim ml/{each.metadata.name}") for each in claims_of(case)
    ]
    return Question(
        cluster=cluster_of(case),
        slices=slices,
        nodes=[node_of(each) for each in case.nodes],
        claims=tuple(claims),
        refusals=refusals or {},
        pods=pods,
        declared={
            each["metadata"]["name"]: frozenset(each.get("status", {}).get("declaredFeatures", ()))
            for each in case.nodes
        },
    )


def a_holder(name: str, *devices: str, user: str = "", pool: str = "p") -> Holder:
    """A claim that has devices of driver a.example.com."""
    results = [
        {"request": "r0", "driver": "a.example.com", "pool": pool, "device": device} for device in devices
    ]
    return Holder(
        name=f"ResourceClaim ml/{name}",
        users=(ObjectRef("Pod", user, "ml"),) if user else (),
        ref=ObjectRef("ResourceClaim", name, "ml"),
        result=AllocationResult.from_manifest({"devices": {"results": results}}),
    )


def answer(
    minor: str = "1.37", *, holders: Sequence[Holder] = (), deep: bool = False, pods: int = 1, **case: Any
) -> Explanation:
    """The explanation of a case made of *case*."""
    question = question_of(make_case(minor, **case), pods=pods)
    return explain(question.with_more(holders), is_deep=deep)
