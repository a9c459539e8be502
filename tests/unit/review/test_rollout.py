from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_infra.kubernetes.api import UNKNOWN
from dra_infra.placement import rolling
from dra_infra.review.changes import compare_programs
from dra_infra.review.comparison import Comparison
from dra_infra.review.reviews import find_dangers
from dra_infra.review.rollout import Rollout
from tests.support.placing import place


def rollout(replicas, **fields):
    return Rollout.of({"spec": {"strategy": {"rollingUpdate": fields}}}, replicas)


@pytest.mark.parametrize(
    ("replicas", "fields", "surge", "unavailable"),
    [
        (1, {}, 1, 0),
        (4, {}, 1, 1),
        (10, {}, 3, 2),
        (10, {"maxSurge": "10%"}, 1, 2),
        (10, {"maxSurge": 3, "maxUnavailable": 0}, 3, 0),
        (10, {"maxSurge": 0, "maxUnavailable": 0}, 0, 1),
        (3, {"maxSurge": "0%", "maxUnavailable": "10%"}, 0, 1),
        (3, {"maxSurge": "100%"}, 3, 0),
    ],
)
def test_surge_rounds_up_and_unavailable_down(replicas, fields, surge, unavailable):
    assert (rollout(replicas, **fields).surge, rollout(replicas, **fields).unavailable) == (
        surge,
        unavailable,
    )


def test_recreate_has_no_surge():
    assert Rollout.of({"spec": {"strategy": {"type": "Recreate"}}}, 4) == Rollout(
        surge=0, unavailable=4, stops_first=True
    )


@given(st.integers(0, 5000), st.integers(0, 100), st.integers(0, 100))
def test_a_rollout_can_always_take_a_step(replicas, surge, unavailable):
    result = rollout(replicas, maxSurge=f"{surge}%", maxUnavailable=f"{unavailable}%")
    assert result.surge + result.unavailable >= 1


def all_told(make, nodes, before, after):
    """Dangers and notes on a fleet of nodes with 8 GPUs."""
    fleet = make.fleet(*(make.node(f"n{number}", gpus=8) for number in range(nodes)), name="small")
    sides = [make.program(make.device_class(), *side) for side in (before, after)]
    placed = [place([each.manifest for each in side.objects], fleet) for side in sides]
    changes = compare_programs(*sides)
    return list(find_dangers(Comparison.of(changes, *sides, before=placed[0], after=placed[1])))


def told(make, nodes, before, after):
    """The only one."""
    (found,) = all_told(make, nodes, before, after)
    return found


def groups(make, *, template="four-1", count=4, image="a", size=2, replicas=2, **fields):
    pods = {"spec": make.pod_spec(template=template, image=image)}
    spec = {
        "replicas": replicas,
        "leaderWorkerTemplate": {"size": size, "workerTemplate": pods},
        "rolloutStrategy": {"rollingUpdateConfiguration": fields},
    }
    made = make.object("LeaderWorkerSet", "serve", spec, api_version="leaderworkerset.x-k8s.io/v1")
    return [make.template("four", template, count=count), made]


SURGE = {"maxSurge": 1, "maxUnavailable": 0}


def test_groups_of_a_leader_worker_set_are_exchanged_where_the_surge_has_room(make):
    before, after = groups(make, **SURGE), groups(make, image="b", **SURGE)
    held = told(make, 2, before, after)
    assert (str(held.who), held.code, held.level) == ("LeaderWorkerSet ml/serve", "pods-changed", "danger")
    assert "but only 0 of 2 new groups find room on small" in held.message
    assert "at new pod of group 1 of 2; it asks for 4 devices, and n0" in held.message
    ends = told(make, 3, before, after)
    assert (ends.level, ends.hint) == ("note", "")
    assert ends.message.endswith("played through on small, all 2 new groups find a place")


def test_without_a_surge_a_group_goes_first_and_only_larger_groups_have_no_room(make):
    assert told(make, 2, groups(make), groups(make, image="b")).level == "note"
    larger = told(make, 2, groups(make), groups(make, size=3))
    assert "but only 0 of 2 new groups find room" in larger.message
    kept = told(make, 3, groups(make), groups(make, size=3, partition=1))
    assert kept.message.endswith("played through on small, the new group finds a place")


def test_a_rollout_of_groups_that_takes_too_many_steps_is_not_decided(make, monkeypatch):
    """Wherever the steps run out, also while it is asked what the group that hangs lacks."""
    before, after = (groups(make, replicas=1, size=3, image=image, **SURGE) for image in "ab")
    said = []
    for most in range(40):
        monkeypatch.setattr(rolling, "MAX_EFFORT", most)
        said.append("small" in told(make, 2, before, after).message)
    assert said == sorted(said)
    assert set(said) == {False, True}


@pytest.mark.parametrize("written", [UNKNOWN, [], {"maxSurge": []}])
def test_a_way_to_exchange_groups_that_cannot_be_read_is_the_default(make, written):
    before, after = groups(make), groups(make, image="b")
    after[1].manifest["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"] = written
    assert told(make, 3, before, after).code == "pods-changed"


@pytest.mark.parametrize("replicas", [0, 0.5])
def test_of_no_groups_none_is_played_through(make, replicas):
    before, after = (groups(make, replicas=replicas, image=image) for image in "ab")
    assert not any("played through" in each.message for each in all_told(make, 3, before, after))


def test_a_group_has_room_only_where_all_of_its_pods_have(make):
    """One node more has room for 2 of the 3 pods of a group."""
    before, after = (groups(make, replicas=1, size=3, image=image, **SURGE) for image in "ab")
    assert "at new pod of group 1 of 1" in told(make, 2, before, after).message
    assert told(make, 3, before, after).level == "note"


def test_new_groups_use_the_new_claim_template(make):
    fewer = groups(make, template="four-2", count=2, **SURGE)
    assert "but only 0 of 2" in told(make, 2, groups(make, **SURGE), fewer).message
    assert told(make, 3, groups(make, **SURGE), fewer).level == "note"


@pytest.mark.parametrize(
    ("nodes", "upgrade", "level", "words"),
    [
        (2, None, "note", "played through on small, the new cluster finds a place"),
        (1, None, "danger", "but only 0 of 1 new cluster finds room on small"),
        (1, {"type": "None"}, "danger", "it needs room for both"),
    ],
)
def test_the_second_cluster_of_a_ray_service_needs_room_beside_the_first(make, nodes, upgrade, level, words):
    def side(image):
        pods = make.pod_spec(template="four-1", image=image)
        head = {"template": {"spec": make.pod_spec(image=image)}}
        workers = [{"groupName": "w", "replicas": 2, "template": {"spec": pods}}]
        config = {"headGroupSpec": head, "workerGroupSpecs": workers}
        spec = {"rayClusterConfig": config, **({"upgradeStrategy": upgrade} if upgrade else {})}
        service = make.object("RayService", "serve", spec, api_version="ray.io/v1")
        return [make.template("four", "four-1", count=4), service]

    found = told(make, nodes, side("a"), side("b"))
    assert (found.code, found.level) == ("pods-changed", level)
    assert found.message.endswith(words) or words in found.message
