from __future__ import annotations

from dra_infra.kubernetes.api import NANO, AllocationResult, DeviceClass, Node, ResourceClaim, ResourceSlice
from dra_infra.kubernetes.scheduler.allocator import Allocated, AllocatedState, Allocator, Cannot, DeviceID
from tests.support.allocator.answers import allocator_of
from tests.support.allocator.cases import MINORS
from tests.support.allocator.known import a_claim, a_leaf, a_slice, share_picked_twice

NODE = Node(name="n0")
D0 = DeviceID("a.example.com", "p", "d0")


def result(device: str = "d0", **fields: object) -> AllocationResult:
    picked = {"request": "r", "driver": "a.example.com", "pool": "p", "device": device, **fields}
    return AllocationResult.from_manifest({"devices": {"results": [picked]}})


def test_a_device_of_a_claim_is_in_use_and_the_state_before_is_what_it_was():
    before = AllocatedState()
    after = before.with_allocation(result())
    assert after.has_whole(D0)
    assert not before.is_allocated(D0)


def test_a_device_for_admin_access_is_not_in_use():
    assert not AllocatedState().with_allocation(result(adminAccess=True)).is_allocated(D0)


def test_shares_add_up():
    share = result(shareID="one", consumedCapacity={"mem": "1500m"})
    state = AllocatedState().with_allocation(share).with_allocation(share)
    assert state.has_share(D0)
    assert not state.has_whole(D0)
    assert state.consumed(D0) == {"mem": 3 * NANO}


def test_without_consumable_capacity_a_share_is_the_whole_device():
    share = result(shareID="one", consumedCapacity={"mem": "1"})
    state = AllocatedState().with_allocation(share, shares=False)
    assert state.has_whole(D0)
    assert not state.has_consumed(D0)


def test_many_claims_are_all_remembered():
    states = [AllocatedState()]
    for number in range(600):
        states.append(states[-1].with_allocation(result(f"d{number}")))
    assert all(states[-1].has_whole(D0._replace(device=f"d{number}")) for number in range(600))
    assert not states[300].has_whole(D0._replace(device="d300"))


def test_an_allocator_with_another_state_answers_like_a_new_one():
    devices = [ResourceSlice.from_manifest(a_slice("d0", "d1"))]
    classes = [DeviceClass.from_manifest({"metadata": {"name": "any"}, "spec": {}})]
    claims = [ResourceClaim.from_manifest(a_claim(a_leaf()))]
    allocator = Allocator(allocator_of(share_picked_twice(MINORS[-1])).variant, devices, classes)
    given = []
    state = AllocatedState()
    while isinstance(outcome := allocator.with_state(state).allocate(NODE, claims), Allocated):
        assert outcome == Allocator(allocator.variant, devices, classes, state).allocate(NODE, claims)
        state = state.with_allocation(outcome.results[0])
        given += [each.device for each in outcome.results[0].devices.results or ()]
    assert isinstance(outcome, Cannot)
    assert given == ["d0", "d1"]


def test_an_allocator_with_other_classes_forgets_what_the_old_ones_select():
    slices = [ResourceSlice.from_manifest(a_slice("d0", "d1"))]
    claims = [ResourceClaim.from_manifest(a_claim(a_leaf()))]
    allocator = Allocator(allocator_of(share_picked_twice(MINORS[-1])).variant, slices, ())
    for expression, fits in (("false", False), ("true", True), ("false", False)):
        spec = {"selectors": [{"cel": {"expression": expression}}]}
        any_class = DeviceClass.from_manifest({"metadata": {"name": "any"}, "spec": spec})
        allocator = allocator.with_classes([any_class])
        assert [isinstance(allocator.allocate(NODE, claims), Allocated) for _ in range(2)] == [fits] * 2
