"""Texts that API servers printed, and what Go's json.Marshal is documented to write."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings

from dra_infra.kubernetes.api import (
    CapacityRequirements,
    DeviceClaim,
    DeviceRequest,
    DeviceSubRequest,
    ExactDeviceRequest,
    ObjectMeta,
    OpaqueDeviceConfiguration,
    decode,
    go_json,
    with_defaults,
)
from dra_infra.kubernetes.api.metadata import Condition
from tests.unit.kubernetes.api.manifests import JSON, manifests

TOLERATION = {"key": "a", "operator": "Equal", "value": "yes", "effect": "NoExecute", "tolerationSeconds": 30}
LEAF = {
    "deviceClassName": "gpu.example.com",
    "selectors": [{"cel": {"expression": 'device.driver == "gpu.example.com"'}}],
    "count": 2,
    "tolerations": [TOLERATION],
    "capacity": {"requests": {"gpu.example.com/memory": "40Gi"}},
}
SPEC = {
    "devices": {
        "requests": [
            {"name": "other", "exactly": {**LEAF, "adminAccess": True}},
            {"name": "nic", "firstAvailable": [{"name": "large", **LEAF}]},
        ],
        "constraints": [{"requests": ["gpu"], "matchAttribute": "gpu.example.com/numa"}],
        "config": [{"requests": ["gpu"], "opaque": {"driver": "gpu.example.com", "parameters": {"a": 1}}}],
    }
}
PRINTED_LEAF = (
    '"Selectors":[{"CEL":{"Expression":"device.driver == \\"gpu.example.com\\""}}],"AllocationMode":"ExactCount",'
    '"Count":2,%s"Tolerations":[{"Key":"a","Operator":"Equal","Value":"yes","Effect":"NoExecute",'
    '"TolerationSeconds":30}],"Capacity":{"Requests":{"gpu.example.com/memory":"40Gi"}}'
)
PRINTED = (
    '{"Devices":{"Requests":[{"Name":"other","Exactly":{"DeviceClassName":"gpu.example.com",'
    + PRINTED_LEAF % '"AdminAccess":true,'
    + '},"FirstAvailable":null},{"Name":"nic","Exactly":null,"FirstAvailable":[{"Name":"large",'
    + '"DeviceClassName":"gpu.example.com",'
    + PRINTED_LEAF % ""
    + '}]}],"Constraints":[{"Requests":["gpu"],"MatchAttribute":"gpu.example.com/numa","DistinctAttribute":null}],'
    + '"Config":[{"Requests":["gpu"],"Opaque":{"Driver":"gpu.example.com","Parameters":{"a":1}}}]}}'
)


def test_a_claims_spec_is_printed_as_a_server_of_1_35_prints_it():
    claim = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "spec": SPEC}
    record = with_defaults(decode(claim).record)
    assert record.spec.to_internal_json(35) == PRINTED


def test_a_newer_server_prints_its_newer_fields():
    claim = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "spec": SPEC}
    printed = with_defaults(decode(claim).record).spec.to_internal_json(37)
    memory = '"gpu.example.com/memory":"40Gi"}}'
    assert printed == PRINTED.replace(memory, f'{memory},"DerivedAttributes":null')


def test_metadata_that_is_embedded_keeps_its_json_names_without_one_of_its_own():
    template = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "spec": {"metadata": {"labels": {"b": "2", "a": "1"}, "name": ""}},
    }
    assert decode(template).record.spec.to_internal_json(37) == (
        '{"labels":{"a":"1","b":"2"},"Spec":{"Devices":{"Requests":null,"Constraints":null,"Config":null}}}'
    )


@pytest.mark.parametrize(
    ("record", "printed"),
    [
        (DeviceRequest(name="a"), '{"name":"a"}'),
        (DeviceRequest(exactly=ExactDeviceRequest()), '{"name":"","exactly":{"deviceClassName":""}}'),
        (
            DeviceSubRequest(count=1, device_class_name="c", name="b", selectors=[]),
            '{"name":"b","deviceClassName":"c","count":1}',
        ),
        (DeviceClaim(), '{"requests":null}'),
        (DeviceClaim(requests=[]), '{"requests":[]}'),
        (ExactDeviceRequest(admin_access=False), '{"deviceClassName":"","adminAccess":false}'),
        (CapacityRequirements(requests={"b": "1024Mi", "a": "1"}), '{"requests":{"a":"1","b":"1Gi"}}'),
        (
            OpaqueDeviceConfiguration(parameters={"b": 1, "a": None}),
            '{"driver":"","parameters":{"b":1,"a":null}}',
        ),
        (OpaqueDeviceConfiguration(driver="d"), '{"driver":"d","parameters":null}'),
        (
            ObjectMeta(creation_timestamp="2026-01-02T03:04:05.9+01:00"),
            '{"creationTimestamp":"2026-01-02T02:04:05Z"}',
        ),
        (
            Condition(type="a"),
            '{"type":"a","status":"","lastTransitionTime":null,"reason":"","message":""}',
        ),
    ],
)
def test_a_versioned_struct_has_gos_order_and_leaves_out_what_go_leaves_out(record, printed):
    assert record.to_go_json() == printed


def test_text_is_safe_inside_html():
    assert go_json("<a & b>\u2028\u2029\x7f\b\u0001\ud800") == (
        '"\\u003ca \\u0026 b\\u003e\\u2028\\u2029\x7f\\b\\u0001\ufffd"'
    )


@settings(deadline=None)
@given(JSON)
def test_any_json_stays_what_it_is(value):
    assert json.loads(go_json(value)) == value


@settings(deadline=None)
@given(manifests("ResourceClaim"))
def test_what_is_printed_is_decoded_to_the_same(manifest):
    record = decode(manifest).record
    printed = json.loads(record.to_go_json())
    assert decode(printed).type_errors == ()
    assert json.loads(decode(printed).record.to_go_json()) == printed
