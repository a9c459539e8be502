"""What the allocator reports of devices that it refuses."""

from __future__ import annotations

import random
from typing import Any

import pytest

from dra_infra.kubernetes.api import ResourceClaim
from dra_infra.kubernetes.scheduler.allocator import Allocated, Cannot, Check, Refusal
from dra_infra.kubernetes.scheduler.allocator.requests import describe_request
from tests.support import draws
from tests.support.allocator.answers import allocator_of, node_of
from tests.support.allocator.cases import Case, draw_case, make_case
from tests.support.allocator.known import SIZE, a_claim, a_leaf, a_slice, counting, drawing, selecting, sized

TAINT = {"key": "k", "value": "v", "effect": "NoSchedule"}
CASES = 150


def refusals_of(case: Case) -> list[list[Refusal]]:
    """The refusals of each device that the first node can see, for the first request of the first claim."""
    allocator = allocator_of(case)
    node = node_of(case.nodes[0])
    claim = ResourceClaim.from_manifest(case.claims[0])
    request = (claim.spec.devices.requests or ())[0]
    assert request.exactly is not None
    wanted = describe_request(claim, request, request.exactly, allocator.classes, case.variant)
    look = allocator.look(node)
    return [look.refusals(wanted, pool, device) for pool in allocator.pools(node) for device in pool.devices]


def test_all_checks_that_a_device_fails_are_reported_in_their_order():
    device = drawing("d0", 5, taints=[TAINT], bindingConditions=["ready"], bindingFailureConditions=["bad"])
    here = {"driver": "a.example.com", "pool": "p", "device": "d0"}
    case = make_case(
        "1.37",
        gates=["DRADeviceTaints", "DRAPartitionableDevices", "DRAConsumableCapacity"],
        slices=counting(4, "1.37", a_slice(device)),
        claims=[
            a_claim(a_leaf(selectors=selecting("false"), capacity={"requests": {"mem": "4Gi"}})),
        ],
        allocated={"devices": [here]},
    )
    (refusals,) = refusals_of(case)
    checks = [each.check for each in refusals]
    assert checks == sorted(checks)
    assert checks == [
        Check.IN_USE,
        Check.BINDING_CONDITIONS,
        Check.SELECTOR,
        Check.CAPACITY,
        Check.COUNTERS,
        Check.TAINT,
    ]


def test_each_selector_is_reported_with_its_owner_and_number():
    selectors = selecting("true") + selecting("false") + selecting(f"{SIZE} > 1")
    case = make_case(
        "1.37",
        slices=[a_slice("d0", driver="b.example.com")],
        claims=[a_claim(a_leaf(device_class="a", selectors=selectors))],
    )
    (refusals,) = refusals_of(case)
    assert [(each.owner, each.selector, bool(each.error)) for each in refusals] == [
        ("class a", 0, False),
        ("claim ml/c0", 1, False),
        ("claim ml/c0", 2, True),
    ]


def test_a_device_that_can_be_had_is_not_refused():
    case = make_case("1.37", slices=[a_slice(sized("d0", 1))], claims=[a_claim(a_leaf())])
    assert refusals_of(case) == [[]]


def test_a_look_takes_nothing():
    slices = counting(4, "1.37", a_slice(drawing("d0", 3), drawing("d1", 3)))
    assert refusals_of(make_case("1.37", slices=slices, claims=[a_claim(a_leaf())])) == [[], []]


@pytest.mark.draws
@pytest.mark.parametrize("minor", ["1.36", "1.37"])
def test_one_device_is_allocated_just_where_some_device_is_not_refused(minor: str):
    seen = set()
    for seed in draws.seeds(CASES):
        case = draw_case(random.Random(f"refusals {minor} {seed}"), minor)  # noqa: S311  (not for secrets)
        claim: dict[str, Any] = a_claim(a_leaf(device_class=("any", "a")[seed % 2]))
        case = make_case(
            minor,
            slices=case.slices,
            claims=[claim],
            gates=sorted(case.release.gates),
            allocated=case.allocated,
        )
        outcome = allocator_of(case).allocate(node_of(case.nodes[0]), [ResourceClaim.from_manifest(claim)])
        if isinstance(outcome, Allocated | Cannot):
            can_be_had = not all(refusals_of(case))
            assert isinstance(outcome, Allocated) == can_be_had, seed
            seen.add(can_be_had)
    assert seen == {True, False}
