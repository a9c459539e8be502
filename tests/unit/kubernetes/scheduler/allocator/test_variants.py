from __future__ import annotations

import pytest

from dra_infra.kubernetes.scheduler.allocator.variants import asked_features, choose_variant
from dra_infra.target import ClusterTarget


def variant(minor: str, **gates: bool):
    (release,) = ClusterTarget(kubernetes=minor, gates=gates).releases
    return choose_variant(release)


@pytest.mark.parametrize(
    ("minor", "channel"),
    # 1.34 counts DRAResourceClaimDeviceStatus as a feature, which only the experimental copy has.
    [("1.34", "experimental"), ("1.35", "incubating"), ("1.36", "incubating"), ("1.37", "incubating")],
)
def test_the_gates_of_a_plain_cluster_choose_the_copy(minor: str, channel: str):
    assert variant(minor).channel == channel


@pytest.mark.parametrize(
    "gate",
    [
        "DRAListTypeAttributes",
        "DRAOptionalNodeOperations",
        "DRADerivedAttributes",
        "DRADeviceCompatibilityGroups",
    ],
)
def test_any_alpha_of_1_37_runs_the_experimental_copy(gate: str):
    assert variant("1.37", **{gate: True}).channel == "experimental"


def test_the_list_gate_of_1_36_changes_nothing_in_the_allocator():
    chosen = variant("1.36", DRAListTypeAttributes=True)
    assert chosen.channel == "incubating"
    assert not chosen.features.list_attributes


def test_without_its_optional_features_the_stable_copy_runs():
    off = dict.fromkeys(("DRAConsumableCapacity", "DRADeviceBindingConditions"), False)
    assert variant("1.36", **off).channel == "stable"


def test_binding_conditions_need_both_gates_from_1_35_on():
    (release,) = ClusterTarget(kubernetes="1.36", gates={"DRADeviceBindingConditions": False}).releases
    assert "DRAResourceClaimDeviceStatus" in release.gates
    assert "DRAResourceClaimDeviceStatus" not in asked_features(release)
