"""The search with proofs answers what the plain one answers, and comes to an end where the plain one does not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from itertools import count
from random import Random
from typing import Any, Final
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dra_infra.catalog import load_fleet
from dra_infra.kubernetes.api import ResourceClaim
from dra_infra.kubernetes.scheduler.allocator import (
    Allocated,
    Allocator,
    Cannot,
    Failed,
    Outcome,
    demands,
    facts,
    pruning,
)
from dra_infra.kubernetes.scheduler.allocator.bounds import Bounds, Flow
from dra_infra.kubernetes.scheduler.allocator.demands import Demands
from dra_infra.kubernetes.scheduler.allocator.pruning import States
from dra_infra.kubernetes.scheduler.allocator.slices import SliceIndex
from dra_infra.target import ClusterTarget
from tests.support.allocator import known
from tests.support.allocator.answers import allocator_of, answers_of, find_difference, node_of
from tests.support.allocator.cases import MINORS, Case, defaults_of, draw_case, make_case
from tests.support.allocator.contested import draw_contested
from tests.support.allocator.known import a_claim, a_leaf, a_slice, counting, drawing, selecting, valued
from tests.support.allocator.recorded import Recorded, read

STEPS: Final = 20_000
"""Steps after which a plain search is given up and its case is left out; less than one case in a thousand."""
CANCELLED: Final = Failed("filter operation aborted: context deadline exceeded")
MANY: Final = 250

Draw = Callable[[Random, str], Case]


def proving_at_once() -> AbstractContextManager[Any]:
    """Proofs from the first step on, where they would else wait for some dead ends."""
    return patch.object(pruning, "DEAD_ENDS_BEFORE_PROOFS", 0)


@contextmanager
def by_states_alone() -> Iterator[None]:
    """No counts, which would end most searches before states repeat."""
    with (
        patch.object(Bounds, "forbid", lambda *_: False),
        patch.object(Demands, "are_short", lambda _: False),
    ):
        yield


def outcomes(case: Case, *, prune: bool) -> list[Outcome]:
    """The outcome on each node, with the steps of each search bounded."""
    allocator = allocator_of(case, prune=prune)
    claims = [ResourceClaim.from_manifest(each) for each in case.claims]
    found = []
    for manifest in case.nodes:
        steps = count()
        declared = frozenset(manifest.get("status", {}).get("declaredFeatures", ()))
        found.append(
            allocator.allocate(
                node_of(manifest),
                claims,
                declared=declared,
                is_cancelled=lambda steps=steps: next(steps) > STEPS,  # type: ignore[misc]
            )
        )
    return found


def is_same(case: Case) -> bool:
    """Whether proofs leave the answer as it is, errors included."""
    plain = outcomes(case, prune=False)
    with proving_at_once():
        return CANCELLED in plain or outcomes(case, prune=True) == plain


@pytest.mark.parametrize("draw", [draw_case, draw_contested])
@pytest.mark.parametrize("minor", MINORS)
@settings(max_examples=80, deadline=None)
@given(random=st.randoms(use_true_random=False))
def test_proofs_change_no_answer(draw: Draw, minor: str, random: Random):
    case = draw(random, minor)
    assert is_same(case), case


@pytest.mark.parametrize("minor", MINORS)
def test_equal_states_alone_change_no_answer(minor: str):
    random = Random(f"states {minor}")  # noqa: S311  (cases, not secrets)
    with by_states_alone():
        assert all(is_same(draw_contested(random, minor)) for _ in range(MANY))


@pytest.mark.parametrize("minor", MINORS)
@pytest.mark.parametrize("name", known.CASES)
def test_known_cases_come_to_the_same(name: str, minor: str):
    case = known.CASES[name](minor)
    with proving_at_once():
        assert answers_of(case, prune=True) == answers_of(case, prune=False)


RECORDED = read()


@pytest.mark.parametrize(
    "recorded", RECORDED, ids=lambda each: f"{each.case.minor}-{each.case.variant.channel}"
)
def test_recorded_cases_get_the_result_of_the_real_allocator(recorded: Recorded):
    with proving_at_once():
        assert not find_difference(recorded.case, recorded.theirs, prune=True)
    assert not find_difference(recorded.case, recorded.theirs, prune=False)


def _room_for_one_less(*args: Any) -> int:
    return max(_real_room(*args) - 1, 0)


def _one_short(self: Demands) -> bool:
    return any(self.open_to(key).bit_count() <= self.wanted[key].count for key in self.wanted)


_real_room = Bounds._room
_real_device = States._describe_device

MUTANTS: dict[str, tuple[Any, str, Any]] = {
    "one device is not counted": (Demands, "are_short", _one_short),
    "errors of constraints are not thought of": (demands, "_may_fail", lambda *_: False),
    "the order of tries never matters": (facts, "_is_orderly", lambda *_: True),
    "constraints are no part of a state": (States, "_mark", lambda *_: None),
    "all devices are alike": (States, "_describe_device", lambda *_: None),
    "nobody holds anything in a state": (States, "_holds", lambda *_: {}),
    "devices cannot be handed out": (Flow, "is_possible", lambda _: False),
    "counter sets have room for one less": (Bounds, "_room", _room_for_one_less),
    "no value is new": (Bounds, "_count_new", lambda *_: 0),
}


@contextmanager
def broken(name: str) -> Iterator[None]:
    """The proofs with one of them wrong."""
    with ExitStack() as stack:
        if MUTANTS[name][0] is States:
            stack.enter_context(by_states_alone())
        stack.enter_context(patch.object(*MUTANTS[name]))
        yield


@pytest.mark.parametrize("name", MUTANTS)
def test_a_wrong_proof_is_noticed(name: str):
    random = Random(name)  # noqa: S311  (cases, not secrets)
    draws: tuple[Draw, ...] = (draw_contested, draw_case)
    if MUTANTS[name][0] is States:
        draws = (draw_contested,)
    with broken(name):
        for _ in range(40):
            for minor in MINORS[::-1]:
                for draw in draws:
                    if not all(is_same(draw(random, minor)) for _ in range(25)):
                        return
    pytest.fail("no case shows it")


def one_pool_of_two_nodes() -> Case:
    """A pool of two slices on each of two nodes, under one name: the node that asks first decides what is left."""
    slices = []
    for node, devices in (("n0", 1), ("n1", 2)):
        here = a_slice(
            *(drawing(f"{node}-{at}") for at in range(devices)), name=f"{node}-devices", nodeName=node
        )
        found = counting(devices, "1.37", here, nodeName=node)
        found[-1]["metadata"]["name"] = f"{node}-counters"
        slices += found
    nodes = [{"metadata": {"name": name, "labels": {}}} for name in ("n0", "n1")]
    return make_case(
        "1.37", slices=slices, claims=[a_claim(a_leaf(2))], nodes=nodes, gates=defaults_of("1.37")
    )


def test_counters_that_depend_on_who_asks_first_are_asked_for_in_the_same_order():
    case = one_pool_of_two_nodes()
    assert answers_of(case, prune=False) == answers_of(case, prune=True) == ['{"allocations":null}'] * 2
    with proving_at_once(), patch.object(SliceIndex, "counts_by_node", lambda _: False):
        assert answers_of(case, prune=True) != answers_of(case, prune=False)


def gpu(number: int) -> dict[str, Any]:
    return a_leaf(number, device_class="gpu.nvidia.com")


def mig(profile: str, number: int) -> dict[str, Any]:
    select = f"device.attributes['gpu.nvidia.com'].profile == '{profile}'"
    return a_leaf(number, device_class="mig.nvidia.com", selectors=selecting(select))


def steps_to(fleet: str, minor: str, *claims: dict[str, Any]) -> tuple[Outcome, int]:
    """The outcome on the first node of a fleet, and the steps of the search."""
    loaded = load_fleet(fleet)
    (release,) = ClusterTarget(kubernetes=minor).releases
    steps = count()
    outcome = Allocator(release, loaded.slices, loaded.classes).allocate(
        loaded.nodes[0],
        [ResourceClaim.from_manifest(each) for each in claims],
        is_cancelled=lambda: next(steps) > STEPS,
    )
    return outcome, next(steps)


@pytest.mark.parametrize("minor", MINORS)
@pytest.mark.parametrize(
    "claims", [[a_claim(gpu(9))], [a_claim(gpu(5)), a_claim(gpu(4), name="c1")]], ids=["one", "two"]
)
def test_nine_of_eight_is_seen_at_the_first_dead_end(claims: list[dict[str, Any]], minor: str):
    outcome, steps = steps_to("hgx-h100", minor, *claims)
    assert outcome == Cannot()
    assert steps <= 12


@pytest.mark.parametrize("minor", MINORS)
@pytest.mark.parametrize(("wanted", "there"), [(11, 10), (20, 16)])
def test_more_than_there_are_is_seen_at_the_first_dead_end(wanted: int, there: int, minor: str):
    case = make_case(
        minor,
        slices=[a_slice(*(f"d{number}" for number in range(there)))],
        claims=[a_claim(a_leaf(wanted))],
        gates=(),
    )
    steps = count()
    claims = [ResourceClaim.from_manifest(each) for each in case.claims]
    outcome = allocator_of(case).allocate(
        node_of(case.nodes[0]), claims, is_cancelled=lambda: next(steps) > STEPS
    )
    assert outcome == Cannot()
    assert next(steps) <= there + 1


@pytest.mark.parametrize("minor", MINORS)
@pytest.mark.parametrize(("wanted", "roots"), [(3, 8), (5, 4)])
def test_no_group_of_a_match_is_large_enough(wanted: int, roots: int, minor: str):
    devices = (valued(f"d{number}", f"root-{number % roots}") for number in range(16))
    claim = a_claim(a_leaf(wanted), constraints=[{"matchAttribute": "k8s.io/root"}])
    case = make_case(minor, slices=[a_slice(*devices)], claims=[claim], gates=())
    steps = count()
    outcome = allocator_of(case).allocate(
        node_of(case.nodes[0]),
        [ResourceClaim.from_manifest(claim)],
        is_cancelled=lambda: next(steps) > STEPS,
    )
    assert outcome == Cannot()
    assert next(steps) < 60


@pytest.mark.parametrize("minor", MINORS[1:])
@pytest.mark.parametrize(
    "claims",
    [
        [a_claim(mig("3g.40gb", 17))],
        [a_claim(mig("1g.10gb", 30)), a_claim(mig("1g.10gb", 27), name="c1")],
        [a_claim(mig("4g.40gb", 8), mig("3g.40gb", 9))],
        [a_claim(mig("1g.10gb", 1), mig("7g.80gb", 8))],
        [a_claim(mig("1g.10gb", 8), constraints=[{"matchAttribute": "gpu.nvidia.com/parentUUID"}])],
    ],
    ids=["halves", "sevenths", "mixed", "whole beside one", "one parent"],
)
def test_partitions_that_do_not_fit_are_seen_soon(claims: list[dict[str, Any]], minor: str):
    outcome, steps = steps_to("a100-80gb dynamic-mig", minor, *claims)
    assert outcome == Cannot()
    assert steps < 1500


def test_partitions_that_fit_only_elsewhere_are_found():
    outcome, steps = steps_to("a100-80gb dynamic-mig", "1.37", a_claim(mig("1g.10gb", 24), mig("4g.40gb", 8)))
    assert isinstance(outcome, Allocated)
    assert steps < 2000


def test_shares_that_are_alike_are_tried_once():
    devices = [
        {
            "name": f"d{number}",
            "allowMultipleAllocations": True,
            "capacity": {"mem": {"value": "80Gi", "requestPolicy": {"default": "1Gi"}}},
        }
        for number in range(6)
    ]
    leaf = a_leaf(capacity={"requests": {"mem": "40Gi"}})
    claims = [a_claim(leaf, name=f"c{number}") for number in range(13)]
    case = make_case("1.37", slices=[a_slice(*devices)], claims=claims)
    steps = count()
    outcome = allocator_of(case).allocate(
        node_of(case.nodes[0]),
        [ResourceClaim.from_manifest(each) for each in claims],
        is_cancelled=lambda: next(steps) > STEPS,
    )
    assert outcome == Cannot()
    assert next(steps) < 3000
