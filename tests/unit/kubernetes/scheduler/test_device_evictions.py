"""Who is evicted by a taint: the cases of `claimEvictionTime` and `podEvictionTime`."""

from __future__ import annotations

from typing import Any

import pytest

from dra_infra.kubernetes.api import DeviceTaint, DeviceTaintSelector, Release
from dra_infra.kubernetes.scheduler import Eviction, find_evictions

TAINT = DeviceTaint(key="example.com/service", value="INC-1", effect="NoExecute")
SELECTOR = DeviceTaintSelector(driver="gpu.example.com", pool="n1", device="gpu-0")


def a_pod(name: str = "a", uid: str = "1", *, node: str = "n1", **status: Any) -> dict[str, Any]:
    return {
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "ml", "uid": uid},
        "spec": {"nodeName": node, "resourceClaims": [{"name": "gpu", "resourceClaimName": "claim"}]},
        "status": status,
    }


def a_claim(
    *tolerations: dict[str, Any],
    device: str = "gpu-0",
    reserved: str = "1",
    owner: str = "",
    name: str = "claim",
) -> dict[str, Any]:
    result = {"driver": "gpu.example.com", "pool": "n1", "device": device, "tolerations": list(tolerations)}
    owners = [{"kind": "Pod", "uid": owner, "controller": True}] if owner else []
    return {
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "ml", "ownerReferences": owners},
        "status": {
            "allocation": {"devices": {"results": [result]}},
            "reservedFor": [{"resource": "pods", "name": "a", "uid": reserved}],
        },
    }


def release_of(patch: str) -> Release:
    return Release(minor=patch.rpartition(".")[0], gates=frozenset(), patch=patch)


def evictions(pod: dict[str, Any], claim: dict[str, Any], patch: str = "1.37.1") -> list[Eviction]:
    return list(find_evictions(TAINT, [SELECTOR], pods=[pod], claims=[claim], release=release_of(patch)))


def test_a_pod_of_a_tainted_device_is_evicted_at_once():
    (found,) = evictions(a_pod(), a_claim())
    assert (found.claim, found.devices, found.seconds) == ("claim", ("n1/gpu-0",), 0)
    assert not found.stays
    assert not found.comes_back


@pytest.mark.parametrize(
    "claim",
    [
        a_claim(device="gpu-1"),
        a_claim(reserved="2"),
        a_claim(name="other"),
        a_claim({"operator": "Exists", "effect": "NoExecute"}),
        a_claim({"key": "example.com/service", "value": "INC-1", "effect": "NoExecute"}),
    ],
    ids=["another device", "another pod's", "another claim", "tolerates all", "tolerates this"],
)
def test_a_pod_that_the_taint_does_not_reach_stays(claim: dict[str, Any]):
    assert evictions(a_pod(), claim) == []


def test_a_pod_without_a_node_and_one_that_is_deleted_already_are_not_evicted():
    assert evictions(a_pod(node=""), a_claim()) == []
    pod = a_pod()
    pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert evictions(pod, a_claim()) == []
    (found,) = find_evictions(
        TAINT, [SELECTOR], pods=[pod], claims=[a_claim()], release=release_of("1.37.1"), with_deleted=True
    )
    assert found.pod is pod


@pytest.mark.parametrize(
    "toleration",
    [
        {"key": "example.com/other", "operator": "Exists", "effect": "NoExecute"},
        {"key": "example.com/service", "value": "INC-2", "effect": "NoExecute"},
        {"key": "example.com/service", "operator": "Exists", "effect": "NoSchedule"},
        {"operator": "Other", "effect": "NoExecute"},
    ],
)
def test_a_toleration_that_does_not_match_keeps_no_pod(toleration: dict[str, Any]):
    (found,) = evictions(a_pod(), a_claim(toleration))
    assert not found.comes_back


def test_an_empty_effect_keeps_no_pod_and_brings_the_next_one_back():
    (found,) = evictions(a_pod(), a_claim({"operator": "Exists"}))
    assert found.comes_back


def test_the_shortest_time_counts_and_one_without_an_end_before_it():
    until = {"operator": "Exists", "effect": "NoExecute"}
    long, short, past = ({**until, "tolerationSeconds": seconds} for seconds in (300, 60, -5))
    (found,) = evictions(a_pod(), a_claim(long, short))
    assert (found.seconds, found.comes_back) == (60, True)
    (found,) = evictions(a_pod(), a_claim(past))
    assert found.seconds == 0
    assert evictions(a_pod(), a_claim(long, until)) == []


def test_a_claim_that_was_made_for_another_pod_of_the_name_does_not_count():
    pod = a_pod(resourceClaimStatuses=[{"name": "gpu", "resourceClaimName": "claim"}])
    pod["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]
    assert evictions(pod, a_claim(owner="2")) == []
    (found,) = evictions(pod, a_claim(owner="1"))
    assert found.claim == "claim"


@pytest.mark.parametrize(
    ("patch", "stays"),
    [
        ("1.34.12", True),
        ("1.36.5", True),
        ("1.36.99", True),
        ("1.37.0", True),
        ("1.37.1", True),
        ("1.37.2", False),
        ("1.37.3", False),
    ],
)
def test_a_pod_with_an_extended_resource_stays_before_1_37_2(patch: str, *, stays: bool):
    pod = a_pod(extendedResourceClaimStatus={"resourceClaimName": "claim"})
    pod["spec"]["resourceClaims"] = []
    (found,) = evictions(pod, a_claim(owner="1"), patch)
    assert found.stays is stays
    assert evictions(pod, a_claim(owner="2"), patch) == []


@pytest.mark.parametrize("odd", [[], {}, "x", 1.5, None, True])
def test_a_server_that_sends_something_else_gets_an_answer(odd: Any):
    toleration = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": odd, "key": odd}
    pod = a_pod(
        resourceClaimStatuses=[{"name": odd, "resourceClaimName": odd}], extendedResourceClaimStatus=odd
    )
    pod["spec"]["resourceClaims"] = [{"name": odd, "resourceClaimName": odd}, {"name": odd}]
    claim = a_claim(toleration, owner="1")
    assert isinstance(evictions(pod, claim), list)
    claim["status"]["reservedFor"] = odd
    assert evictions(a_pod(), claim) == []
