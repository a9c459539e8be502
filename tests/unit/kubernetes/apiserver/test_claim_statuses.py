"""Status updates of claims as drivers and schedulers write them, judged against the stored claim."""

from __future__ import annotations

from typing import Any

import pytest

from dra_infra.kubernetes.apiserver.rules import RULES
from dra_infra.kubernetes.apiserver.verdict import judge
from dra_infra.target import ClusterTarget

DEVICE = {"driver": "gpu.example.com", "pool": "node-a", "device": "gpu-0"}
RESULT = {"request": "gpu", **DEVICE}
CONDITION = {"type": "Ready", "status": "True", "reason": "Up", "lastTransitionTime": "2026-01-02T03:04:05Z"}
UID = "11111111-2222-3333-4444-555555555555"
RESULTS = "status.allocation.devices.results"


def claim(status: dict[str, Any] | None = None, **metadata: Any) -> dict[str, Any]:
    whole = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "c", **metadata},
        "spec": {
            "devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}]}
        },
    }
    return whole if status is None else {**whole, "status": status}


def allocated(*results: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"allocation": {"devices": {"results": list(results) or [RESULT]}}, **more}


def verdict(status: dict[str, Any], *, old: dict[str, Any] | None = None, minor: str = "1.37", **target: Any):
    [release] = ClusterTarget(kubernetes=minor, **target).releases
    return judge(claim(status), release, old=old or claim(), subresource="status", namespace_labels={})


def found(status: dict[str, Any], **more: Any) -> list[tuple[str, str]]:
    return [(error.path, RULES[error.rule].code) for error in verdict(status, **more).errors]


@pytest.mark.parametrize("minor", ["1.34", "1.35", "1.36", "1.37"])
def test_allocation_with_consumers_and_devices_is_accepted(minor):
    consumer = {"resource": "pods", "name": "p", "uid": "u"}
    devices = [{**DEVICE, "conditions": [CONDITION], "data": {}, "networkData": {"ips": ["192.0.2.5/24"]}}]
    assert verdict(allocated(reservedFor=[consumer], devices=devices), minor=minor).status == "accepted"


@pytest.mark.parametrize(
    ("status", "path", "code"),
    [
        (
            {"reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}]},
            "status.reservedFor",
            "claim-not-allocated",
        ),
        (allocated(devices=[{**DEVICE, "device": "x"}]), "status.devices[0]", "claim-not-allocated"),
        (allocated({**RESULT, "shareID": "x"}), f"{RESULTS}[0].shareID", "invalid-share-id"),
        (
            allocated(devices=[{**DEVICE, "networkData": {"ips": ["192.0.2.5"]}}]),
            "status.devices[0].networkData.ips[0]",
            "invalid-address",
        ),
        (allocated({**RESULT, "request": "nic"}), f"{RESULTS}[0].request", "unknown-request"),
        (allocated(*[RESULT] * 33), RESULTS, "too-many-items"),
        (allocated({**RESULT, "adminAccess": True}), f"{RESULTS}[0].adminAccess", "admin-access-namespace"),
        (
            allocated(devices=[{**DEVICE, "conditions": [{**CONDITION, "reason": "a-b"}]}]),
            "status.devices[0].conditions[0].reason",
            "invalid-name",
        ),
        (allocated(devices=[{**DEVICE, "data": []}]), "status.devices[0].data", "invalid-parameters"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_a_server_refuses_of_a_status(status, path, code):
    assert found(status) == [(path, code)]


def test_allocation_never_changes_but_may_be_cleared():
    old = claim(allocated())
    assert found(allocated({**RESULT, "device": "gpu-1"}), old=old) == [
        ("status.allocation", "field-immutable")
    ]
    assert found({}, old=old) == []


def test_nobody_new_may_reserve_a_claim_that_is_deleted():
    old = claim(allocated(), deletionTimestamp="2026-01-02T03:04:05Z")
    status = allocated(reservedFor=[{"resource": "pods", "name": "p", "uid": "u"}])
    assert found(status, old=old) == [("status.reservedFor", "field-not-allowed")]


def test_devices_that_are_deallocated_lose_their_status():
    old = claim(allocated(devices=[DEVICE]))
    kept = verdict({"devices": [DEVICE]}, old=old).record
    assert kept.status.devices is None


def test_spec_and_labels_of_the_stored_claim_stay():
    sent = claim(allocated(), labels={"a b": "-"})
    sent["spec"] = {"devices": {"requests": []}}
    [release] = ClusterTarget(kubernetes="1.37").releases
    judged = judge(sent, release, old=claim(), subresource="status")
    assert judged.status == "accepted"
    assert judged.record.metadata.labels is None
    assert [request.name for request in judged.record.spec.devices.requests] == ["gpu"]


def test_fields_without_their_gate_are_dropped_and_told():
    status = allocated(
        {**RESULT, "shareID": UID, "bindingConditions": ["a"]}, devices=[{**DEVICE, "shareID": UID}]
    )
    judged = verdict(status, minor="1.35")
    assert judged.status == "accepted"
    assert {(each.path, each.gate) for each in judged.dropped} == {
        (f"{RESULTS}[0].shareID", "DRAConsumableCapacity"),
        (f"{RESULTS}[0].bindingConditions", "DRADeviceBindingConditions"),
        ("status.devices[0].shareID", "DRAConsumableCapacity"),
    }


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("192.000.2.5/24", 'must be in canonical form ("192.0.2.5/24")'),
        ("::ffff:192.0.2.5/120", 'must be in canonical form ("192.0.2.5/24")'),
        ("2001:DB8::1/64", 'must be in canonical form ("2001:db8::1/64")'),
        ("192.0.2.256/24", "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)"),
    ],
)
def test_address_is_told_in_the_form_that_the_server_takes(address, told):
    [error] = verdict(allocated(devices=[{**DEVICE, "networkData": {"ips": [address]}}])).errors
    assert error.detail == told
