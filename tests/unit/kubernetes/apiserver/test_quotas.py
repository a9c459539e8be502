"""What ResourceQuotas let a program make."""

from __future__ import annotations

from collections import Counter

import pytest

from dra_infra.kubernetes.apiserver import (
    QuotaKey,
    Quotas,
    count_claim,
    count_extended_claim,
    count_pod,
    describe_refusal,
    read_hard,
)
from dra_infra.kubernetes.scheduler import pod_requests

DEVICES = "gpu.deviceclass.resource.k8s.io/devices"
IMPLICIT = "requests.deviceclass.resource.kubernetes.io/gpu"


def a_quota(name="team", namespace="ml", scopes=None, **hard):
    spec = {"hard": hard} | ({"scopes": scopes} if scopes else {})
    return {"kind": "ResourceQuota", "metadata": {"name": name, "namespace": namespace}, "spec": spec}


def a_claim(*requests):
    return {"devices": {"requests": [{"name": f"r{index}", **each} for index, each in enumerate(requests)]}}


def exactly(count=None, device_class="gpu", **rest):
    return {"exactly": {"deviceClassName": device_class, **({"count": count} if count else {}), **rest}}


@pytest.mark.parametrize(
    ("requests", "devices"),
    [
        ([exactly()], 1),
        ([exactly(3), exactly(2)], 5),
        ([exactly(allocationMode="All")], 32),
        ([exactly(2, adminAccess=True)], 2),
        (
            [
                {
                    "firstAvailable": [
                        {"deviceClassName": "gpu", "count": 2},
                        {"deviceClassName": "gpu", "count": 5},
                    ]
                }
            ],
            5,
        ),
        ([exactly(2, "other")], 0),
    ],
)
def test_a_claim_counts_by_what_it_asks_for(requests, devices):
    use = count_claim(a_claim(*requests), {}, bridged=True)
    assert use[QuotaKey.CLAIMS] == 1
    assert use[DEVICES] == devices


def test_devices_of_claims_count_for_the_extended_resource_of_their_class():
    use = count_claim(a_claim(exactly(2)), {"gpu": "example.com/gpu"}, bridged=True)
    assert (use["requests.example.com/gpu"], use[IMPLICIT]) == (2, 2)
    assert not count_claim(a_claim(exactly(2)), {"gpu": "example.com/gpu"}, bridged=False)[IMPLICIT]


def test_the_claim_for_extended_resources_does_not_count_twice_what_its_pod_asks_for():
    pod = Counter({"requests.example.com/gpu": 2, "pods": 1})
    use = count_extended_claim(a_claim(exactly(2)), {"gpu": "example.com/gpu"}, pod)
    assert use == Counter({QuotaKey.CLAIMS: 1, DEVICES: 2, IMPLICIT: 2})


def test_a_pod_counts_with_what_it_requests():
    resources = {"cpu": "1500m", "memory": "1Ki", "example.com/gpu": "2", "hugepages-2Mi": "2Mi"}
    use = count_pod(pod_requests({"containers": [{"resources": {"requests": resources}}]}))
    assert use == Counter(
        {
            "pods": 1,
            "count/pods": 1,
            "cpu": 1500,
            "requests.cpu": 1500,
            "memory": 1024,
            "requests.memory": 1024,
            "requests.example.com/gpu": 2,
            "requests.hugepages-2Mi": 2 << 20,
        }
    )


def test_a_quota_refuses_what_passes_it_and_says_the_numbers():
    quotas = Quotas([a_quota(**{DEVICES: "4"})], {"ml": Counter({DEVICES: 1})})
    use = count_claim(a_claim(exactly(2)), {}, bridged=True)
    assert not quotas.refusal("ml", use)
    quotas.charge("ml", use)
    assert quotas.refusal("ml", use) == (
        f"ResourceQuota ml/team allows 4 of {DEVICES}, 3 are in use, and it takes 2"
    )
    assert not quotas.refusal("other", use)


def test_what_an_object_does_not_take_does_not_refuse_it():
    quotas = Quotas([a_quota(pods="0")])
    assert not quotas.refusal("ml", Counter({QuotaKey.CLAIMS: 1}))
    assert quotas.refusal("ml", Counter({"pods": 1}))


def test_cpu_is_shown_as_people_write_it():
    quotas = Quotas([a_quota(**{"requests.cpu": "1500m"})])
    assert "allows 1500m of requests.cpu, 0 are in use, and it takes 2" in quotas.refusal(
        "ml", Counter({"requests.cpu": 2000})
    )


def test_copies_fill_apart():
    quotas = Quotas([a_quota(pods="1")])
    copy = quotas.copy()
    copy.charge("ml", Counter({"pods": 1}))
    assert copy.refusal("ml", Counter({"pods": 1}))
    assert not quotas.refusal("ml", Counter({"pods": 1}))


def test_scopes_and_limits_are_named_as_not_looked_at():
    quotas = Quotas([a_quota(scopes=["BestEffort"], pods="1"), a_quota("more", **{"limits.cpu": "4"})])
    assert quotas.unread == ["scopes of ResourceQuota ml/team", "limits.cpu of ResourceQuota ml/more"]
    assert read_hard(a_quota(scopes=["BestEffort"], pods="1")) == {}


def test_a_quota_of_the_program_stands_for_the_one_that_runs():
    quotas = Quotas([a_quota(pods="1"), a_quota(pods="5")])
    assert not quotas.refusal("ml", Counter({"pods": 3}))
    assert quotas
    assert not Quotas([])


def test_claims_count_under_the_implicit_name_whether_their_class_has_another_or_not():
    assert count_claim(a_claim(exactly(2)), {}, bridged=True)[IMPLICIT] == 2
    assert not count_claim(a_claim(exactly(2)), {}, bridged=False)[IMPLICIT]


def test_a_refusal_is_in_the_words_of_the_server():
    hard = read_hard(a_quota(**{IMPLICIT: "2", DEVICES: "3k", QuotaKey.CLAIMS: "0", "requests.cpu": "1"}))
    use = count_claim(a_claim(exactly(2)), {}, bridged=True)
    used = Counter({IMPLICIT: 1, DEVICES: 2999, "requests.cpu": 5000})
    assert describe_refusal("team", hard, use, used) == (
        f"exceeded quota: team, requested: {QuotaKey.CLAIMS}=1,{DEVICES}=2,{IMPLICIT}=2, "
        f"used: {QuotaKey.CLAIMS}=0,{DEVICES}=2999,{IMPLICIT}=1, limited: {QuotaKey.CLAIMS}=0,{DEVICES}=3k,{IMPLICIT}=2"
    )
    assert describe_refusal("team", hard, Counter({"requests.cpu": 0}), used) == ""


def test_every_key_of_a_quota_is_a_qualified_name_also_that_of_huge_pages():
    keys = ("hugepages-2Mi", "requests.hugepages-1Gi", "hugepages-!!", "requests.hugepages-", "a/b/c", "pods")
    assert [key for key in keys if QuotaKey(key).is_known] == [
        "hugepages-2Mi",
        "requests.hugepages-1Gi",
        "pods",
    ]
