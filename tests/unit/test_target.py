from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_infra.errors import InvalidSpecError
from dra_infra.kubernetes.api import GATES, SUPPORTED_MINORS
from dra_infra.kubernetes.api.gates import NEEDS
from dra_infra.target import ClusterTarget, check_target


def codes(target: ClusterTarget) -> list[tuple[str, str]]:
    return [(problem.path, problem.code) for problem in check_target(target)]


def test_without_a_minor_the_oldest_and_the_newest_count():
    assert [release.minor for release in ClusterTarget().releases] == ["1.34", "1.37"]


def test_a_release_has_the_gates_of_its_minor():
    (old,) = ClusterTarget(kubernetes="1.34").releases
    (new,) = ClusterTarget(kubernetes="1.36").releases
    assert not old.enabled("DRADeviceTaints")
    assert new.enabled("DRADeviceTaints")
    assert not new.enabled("DRADerivedAttributes")


def test_a_gate_that_is_set_counts():
    (release,) = ClusterTarget(kubernetes="1.34", gates={"DRADeviceTaints": True}).releases
    assert release.enabled("DRADeviceTaints")


@pytest.mark.parametrize(
    ("target", "found"),
    [
        (ClusterTarget(kubernetes="1.33"), [("kubernetes", "unknown-kubernetes")]),
        (ClusterTarget(gates={"DRAAdminAcess": True}), [("gates['DRAAdminAcess']", "unknown-gate")]),
        (
            ClusterTarget(kubernetes="1.35", gates={"DRADerivedAttributes": True}),
            [("gates['DRADerivedAttributes']", "unknown-gate")],
        ),
        (
            ClusterTarget(kubernetes="1.37", gates={"DRAPrioritizedList": False}),
            [("gates['DRAPrioritizedList']", "locked-gate")],
        ),
        (
            ClusterTarget(kubernetes="1.37", gates={"DRAWorkloadResourceClaims": True}),
            [("gates['DRAWorkloadResourceClaims']", "gate-needs-gate")],
        ),
        (ClusterTarget(gates={"DRADeviceTaints": "yes"}), [("gates['DRADeviceTaints']", "wrong-type")]),  # type: ignore[dict-item]
        (ClusterTarget(kubernetes=["1.37"]), [("kubernetes", "wrong-type")]),  # type: ignore[arg-type]
        (ClusterTarget(gates="DRADeviceTaints"), [("gates", "wrong-type")]),  # type: ignore[arg-type]
        (ClusterTarget(gates={1: True}), [("gates", "wrong-type")]),  # type: ignore[dict-item]
        (ClusterTarget(serves="v1"), [("serves", "wrong-type")]),  # type: ignore[arg-type]
    ],
)
def test_a_target_that_no_server_can_be_is_a_problem(target: ClusterTarget, found: list[tuple[str, str]]):
    assert codes(target) == found
    with pytest.raises(InvalidSpecError):
        assert target.releases


def test_a_misspelt_gate_gets_the_nearest_name():
    (problem,) = check_target(ClusterTarget(gates={"DRAAdminAcess": True}))
    assert problem.hint == "did you mean 'DRAAdminAccess'?"


def test_a_gate_of_the_newest_only_is_fine_when_no_minor_is_named():
    old, new = ClusterTarget(gates={"DRADerivedAttributes": True}).releases
    assert not old.enabled("DRADerivedAttributes")
    assert new.enabled("DRADerivedAttributes")


def test_two_gates_that_need_each_other_may_be_set_together():
    gates = {"GenericWorkload": True, "DRAWorkloadResourceClaims": True}
    assert codes(ClusterTarget(kubernetes="1.37", gates=gates)) == []


@given(
    st.dictionaries(st.sampled_from(sorted(GATES)), st.booleans(), max_size=6),
    st.sampled_from(SUPPORTED_MINORS),
)
def test_a_target_either_has_problems_or_releases_that_do_as_told(gates: dict[str, bool], minor: str):
    target = ClusterTarget(kubernetes=minor, gates=gates)
    if check_target(target):
        return
    (release,) = target.releases
    assert {name: release.enabled(name) for name in gates} == gates


def test_what_gates_need_are_gates():
    assert {need for needs in NEEDS.values() for need in needs} <= set(GATES)


def test_targets_with_equal_gates_are_one_key():
    assert (
        len({ClusterTarget(gates={"DRADeviceTaints": True}), ClusterTarget(gates={"DRADeviceTaints": True})})
        == 1
    )


@pytest.mark.parametrize(
    ("kind", "version", "since"), [("ResourceClaim", "v1beta1", "1.34"), ("DeviceTaintRule", "v1", "1.37")]
)
def test_a_release_knows_kinds_in_versions(kind: str, version: str, since: str):
    known = [
        minor
        for minor in SUPPORTED_MINORS
        if ClusterTarget(kubernetes=minor).releases[0].knows(kind, version)
    ]
    assert known[0] == since
    assert not ClusterTarget(kubernetes="1.37").releases[0].knows(kind, "v1alpha2")
