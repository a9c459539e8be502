from __future__ import annotations

import pytest

from dra_infra.kubernetes.api import ResourceSlice
from dra_infra.kubernetes.scheduler import with_taint_rules
from dra_infra.target import ClusterTarget
from tests.support.allocator.known import a_slice

(NEWEST,) = ClusterTarget(kubernetes="1.37").releases
(OLD,) = ClusterTarget(kubernetes="1.36").releases


def a_rule(version="v1", **selector):
    spec = {"taint": {"key": "repair", "effect": "NoExecute"}}
    if selector:
        spec["deviceSelector"] = selector
    return {
        "apiVersion": f"resource.k8s.io/{version}",
        "kind": "DeviceTaintRule",
        "metadata": {"name": "r"},
        "spec": spec,
    }


def tainted(rule, release=NEWEST):
    device = {"name": "d1", "taints": [{"key": "own", "effect": "NoSchedule"}]}
    slices = [
        ResourceSlice.from_manifest(each)
        for each in (a_slice("d0", device), a_slice("d0", name="t", pool="q"))
    ]
    found, problems = with_taint_rules(slices, [rule], release)
    taints = {
        f"{each.spec.pool.name}/{device.name}": [taint.key for taint in device.taints or ()]
        for each in found
        for device in each.spec.devices or ()
    }
    return taints, [each.code for each in problems]


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ({"driver": "a.example.com"}, {"p/d0", "p/d1", "q/d0"}),
        ({"driver": "b.example.com"}, set()),
        ({"pool": "q"}, {"q/d0"}),
        ({"driver": "a.example.com", "pool": "p", "device": "d1"}, {"p/d1"}),
        ({}, set()),
    ],
)
def test_a_rule_taints_the_devices_that_it_picks(selector, expected):
    taints, problems = tainted(a_rule(**selector))
    assert {name for name, keys in taints.items() if "repair" in keys} == expected
    assert "own" in taints["p/d1"]
    assert problems == []


def test_rules_of_older_versions_count_too():
    taints, _ = tainted(a_rule("v1beta2", pool="q"))
    assert taints["q/d0"] == ["repair"]


def test_where_the_gate_is_off_rules_do_nothing():
    assert "repair" not in {key for keys in tainted(a_rule(pool="q"), OLD)[0].values() for key in keys}


def test_a_selector_that_is_not_understood_is_told():
    assert tainted(a_rule(deviceClassName="gpu"))[1] == ["not-modelled"]
