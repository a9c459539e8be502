"""Devices that count against cpu, memory and the like of their node."""

from __future__ import annotations

import pytest

from dra_infra.kubernetes.api import AllocationResult, ResourceSlice
from dra_infra.kubernetes.scheduler import DeviceAmounts
from dra_infra.target import ClusterTarget

DRIVER = "cpu.example.com"


def amounts(device, minor="1.37", *, enabled=True):
    target = ClusterTarget(kubernetes=minor, gates={"DRANodeAllocatableResources": enabled})
    manifest = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": "s"},
        "spec": {
            "driver": DRIVER,
            "nodeName": "n",
            "pool": {"name": "n", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "d0", **device}, {"name": "d1", **device}, {"name": "plain"}],
        },
    }
    return DeviceAmounts([ResourceSlice.from_manifest(manifest)], target.releases[0])


def allocation(*names, **rest):
    results = [{"request": "r", "driver": DRIVER, "pool": "n", "device": name, **rest} for name in names]
    return AllocationResult.from_manifest({"devices": {"results": results}})


def mapped(resource="cpu", **mapping):
    return {"nodeAllocatableResources": {resource: {"mapping": mapping}}}


def cost(resource="memory", **overhead):
    return {"nodeAllocatableResources": {resource: {"overhead": overhead}}}


def a_pod(*claims, cpu="1", **spec):
    resources = {"requests": {"cpu": cpu}, "claims": [{"name": name} for name in claims]}
    return {"containers": [{"name": "c", "resources": resources}], **spec}


def test_nothing_counts_with_the_gate_off():
    assert not amounts(mapped(deviceMultiplier="2"), enabled=False)
    assert amounts(mapped(deviceMultiplier="2"))
    assert not amounts({})


def test_each_device_stands_for_so_much_of_the_node():
    found = amounts(mapped(deviceMultiplier="2"))
    assert found.count_for(a_pod("a"), [("a", allocation("d0", "d1", "plain"))]) == {"cpu": 5000, "pods": 1}
    assert found.count_for(a_pod("a"), [("a", allocation("plain"))]) == {"cpu": 1000, "pods": 1}


@pytest.mark.parametrize(("multiplier", "cpu"), [({}, 4000), ({"capacityMultiplier": "500m"}, 2500)])
def test_what_is_consumed_of_a_capacity_counts(multiplier, cpu):
    found = amounts(mapped(capacityKey="cores", **multiplier))
    taken = allocation("d0", consumedCapacity={"cores": "3"})
    assert found.count_for(a_pod("a"), [("a", taken)])["cpu"] == cpu
    other = allocation("d0", consumedCapacity={"other": "3"})
    assert found.count_for(a_pod("a"), [("a", other)])["cpu"] == 1000
    assert "cores, of which none is consumed" in found.count_for(a_pod("a"), [("a", allocation("d0"))])


def test_overhead_counts_per_pod_and_for_each_use_by_a_container():
    found = amounts(cost(perPod="1Mi", perContainer="1Ki"))
    one = [("a", allocation("d0"))]
    assert found.count_for(a_pod("a"), one)["memory"] == (1 << 20) + 1024
    assert found.count_for(a_pod("a", "a"), one)["memory"] == (1 << 20) + 2048
    assert found.count_for(a_pod(), one)["memory"] == 1 << 20
    two = [*one, ("b", allocation("d1"))]
    assert found.count_for(a_pod("a", "b"), two)["memory"] == (2 << 20) + 2048


def test_a_claim_with_a_mapping_is_for_one_pod():
    assert amounts(mapped(deviceMultiplier="1")).maps(allocation("d0"))
    assert not amounts(mapped(deviceMultiplier="1")).maps(allocation("plain"))
    assert not amounts(cost(perPod="1Mi")).maps(allocation("d0"))


def test_the_request_of_the_pod_has_to_cover_its_devices():
    found = amounts(mapped(deviceMultiplier="2"))
    claims = [("a", allocation("d0"))]
    wide = {"resources": {"requests": {"cpu": "8"}}}
    assert found.count_for(a_pod("a", **wide), claims)["cpu"] == 8000
    narrow = {"resources": {"requests": {"cpu": "2"}}}
    assert "request for cpu does not cover" in found.count_for(a_pod("a", **narrow), claims)
    # With a limit of the pod the server writes down the sum of its containers, which has no room for devices.
    limited = {"resources": {"limits": {"cpu": "8"}}}
    assert "request for cpu does not cover" in found.count_for(a_pod("a", **limited), claims)


def test_mappings_of_1_36_are_in_another_field():
    older = {"nodeAllocatableResourceMappings": {"cpu": {"allocationMultiplier": "2"}}}
    found = amounts(older, "1.36")
    assert found.count_for(a_pod("a"), [("a", allocation("d0"))])["cpu"] == 3000
    assert "no container uses claim a" in found.count_for(a_pod(), [("a", allocation("d0"))])
    by_capacity = {"nodeAllocatableResourceMappings": {"cpu": {"capacityKey": "cores"}}}
    taken = allocation("d0", consumedCapacity={"cores": "3"})
    assert amounts(by_capacity, "1.36").count_for(a_pod("a"), [("a", taken)])["cpu"] == 4000
    assert not amounts(older, "1.37")
