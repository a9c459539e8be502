from __future__ import annotations

import pytest
from hypothesis import given, settings

from dra_infra.kubernetes.api import DeviceClass, decode, with_defaults
from tests.unit.kubernetes.api.manifests import manifests


def requests_of(*requests, version="v1"):
    manifest = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "spec": {"devices": {"requests": list(requests)}},
    }
    record = with_defaults(decode(manifest).record, version=version)
    return record.to_manifest()["spec"]["devices"]["requests"]


@pytest.mark.parametrize(
    ("leaf", "mode", "count"),
    [
        ({}, "ExactCount", 1),
        ({"count": 0}, "ExactCount", 1),
        ({"count": 3}, "ExactCount", 3),
        ({"count": -1}, "ExactCount", -1),
        ({"allocationMode": "ExactCount"}, "ExactCount", 1),
        ({"allocationMode": "All"}, "All", None),
        ({"allocationMode": "Some"}, "Some", None),
    ],
)
def test_mode_and_count_of_every_leaf_are_filled_in(leaf, mode, count):
    (request,) = requests_of({"exactly": leaf, "firstAvailable": [leaf]})
    for found in (request["exactly"], request["firstAvailable"][0]):
        assert (found["allocationMode"], found.get("count")) == (mode, count)


def test_a_tolerations_operator_is_filled_in():
    leaf = {"tolerations": [{}, {"operator": "Exists"}]}
    (request,) = requests_of({"exactly": leaf, "firstAvailable": [leaf]})
    for found in (request["exactly"], request["firstAvailable"][0]):
        assert [each["operator"] for each in found["tolerations"]] == ["Equal", "Exists"]


def test_v1beta1_fills_in_nothing_for_a_request_without_a_class():
    first, second = requests_of(
        {"exactly": {"count": 0, "tolerations": [{}]}},
        {"exactly": {"deviceClassName": "a"}},
        version="v1beta1",
    )
    assert first["exactly"] == {"count": 0, "tolerations": [{"operator": "Equal"}]}
    assert second["exactly"]["allocationMode"] == "ExactCount"


def test_templates_and_allocated_tolerations_get_defaults():
    template = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "spec": {"spec": {"devices": {"requests": [{"exactly": {}}]}}},
    }
    devices = with_defaults(decode(template).record).spec.spec.devices
    assert devices.requests[0].exactly.count == 1
    results = [{"request": "a", "tolerations": [{}]}]
    claim = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "status": {"allocation": {"devices": {"results": results}}},
    }
    status = with_defaults(decode(claim).record).status
    assert status.allocation.devices.results[0].tolerations[0].operator == "Equal"


def test_what_needs_no_default_is_the_same_object():
    class_ = DeviceClass()
    assert with_defaults(class_) is class_
    claim = decode({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim"}).record
    assert with_defaults(claim) is claim


@settings(deadline=None)
@given(manifests("ResourceClaim"))
def test_defaults_are_filled_in_once(manifest):
    once = with_defaults(decode(manifest).record)
    assert with_defaults(once) is once
