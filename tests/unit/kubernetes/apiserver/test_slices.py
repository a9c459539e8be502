"""Slices as users give them to `validate` and `judge`: one per thing that a server refuses, drops or warns about."""

from __future__ import annotations

from typing import Any

import pytest

from dra_infra.advice.objects import validate
from dra_infra.kubernetes.apiserver import judge
from dra_infra.target import ClusterTarget

SHARING = {"DRAConsumableCapacity": True}
DEVICE = "ResourceSlice s.spec.devices[0]"


def a_slice(*devices: dict[str, Any], version: str = "v1", **spec: Any) -> dict[str, Any]:
    whole = {
        "driver": "gpu.example.com",
        "pool": {"name": "node-a", "generation": 1, "resourceSliceCount": 1},
        "nodeName": "node-a",
        "devices": list(devices),
        **spec,
    }
    return {
        "apiVersion": f"resource.k8s.io/{version}",
        "kind": "ResourceSlice",
        "metadata": {"name": "s"},
        "spec": {name: value for name, value in whole.items() if value is not None},
    }


def device(**fields: Any) -> dict[str, Any]:
    return {"name": "gpu-0", **fields}


def policy(value: str = "10", **fields: Any) -> dict[str, Any]:
    return device(allowMultipleAllocations=True, capacity={"a": {"value": value, "requestPolicy": fields}})


def takes(**fields: Any) -> dict[str, Any]:
    return device(consumesCounters=[{"counterSet": "gpu", "counters": {"m": {"value": "1"}}}], **fields)


def target(minor: str = "1.37", **gates: bool) -> ClusterTarget:
    return ClusterTarget(kubernetes=minor, gates=gates)


def found(manifest: dict[str, Any], where: ClusterTarget | None = None) -> list[tuple[str, str]]:
    return [(problem.path, problem.code) for problem in validate([manifest], where or target())]


def test_slice_of_plain_devices_is_clean_on_every_minor():
    manifest = a_slice(
        device(attributes={"model": {"string": "H100"}}, capacity={"memory": {"value": "80Gi"}})
    )
    assert all(found(manifest, target(minor)) == [] for minor in ("1.34", "1.35", "1.36", "1.37"))


@pytest.mark.parametrize(
    ("manifest", "path", "code"),
    [
        (a_slice(nodeName=None), "ResourceSlice s.spec", "slice-nodes"),
        (a_slice(allNodes=True), "ResourceSlice s.spec", "slice-nodes"),
        (a_slice(pool={"name": "a"}), "ResourceSlice s.spec.pool.resourceSliceCount", "invalid-pool"),
        (
            a_slice(device(), sharedCounters=[{"name": "a", "counters": {"m": {"value": "1"}}}]),
            "ResourceSlice s.spec",
            "counters-beside-devices",
        ),
        (
            a_slice(
                nodeName=None,
                nodeSelector={
                    "nodeSelectorTerms": [{"matchFields": [{"key": "x", "operator": "In", "values": ["a"]}]}]
                },
            ),
            "ResourceSlice s.spec.nodeSelector.nodeSelectorTerms[0].matchFields[0].key",
            "invalid-node-selector",
        ),
        (
            a_slice(device(attributes={"v": {"version": "1"}})),
            f"{DEVICE}.attributes[v].version",
            "invalid-version",
        ),
        (a_slice(device(bindingConditions=["a"])), f"{DEVICE}.bindingFailureConditions", "invalid-binding"),
        (
            a_slice(policy(default="3", validValues=["1", "2"])),
            f"{DEVICE}.capacity[a].requestPolicy.validValues",
            "invalid-request-policy",
        ),
        (a_slice(*[device()] * 129), "ResourceSlice s.spec.devices", "too-many-items"),
        (a_slice(device(), device()), "ResourceSlice s.spec.devices[1]", "duplicate-item"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_a_server_with_its_default_gates_refuses(manifest, path, code):
    assert found(manifest) == [(path, code)]


@pytest.mark.parametrize(
    ("manifest", "gates", "path", "code"),
    [
        (
            a_slice(takes(), partitionTypeAttribute="a/type"),
            ("DRAPartitionableDevicesType", "DRAResourcePoolStatus"),
            f"{DEVICE}.attributes[a/type]",
            "invalid-partition-type",
        ),
        (
            a_slice(skipNodeOperations=["NodePrepareResources"]),
            ("DRAOptionalNodeOperations",),
            "ResourceSlice s.spec.skipNodeOperations",
            "invalid-skipping",
        ),
        (
            a_slice(device(nodeAllocatableResources={"cpu": {"overhead": {"perPod": "-1"}}})),
            ("DRANodeAllocatableResources",),
            f"{DEVICE}.nodeAllocatableResources[cpu].overhead.perPod",
            "invalid-node-resources",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_a_server_refuses_with_a_gate_on(manifest, gates, path, code):
    assert found(manifest, target(**dict.fromkeys(gates, True))) == [(path, code)]


def test_counters_of_another_slice_are_unknown_up_to_34():
    manifest = a_slice(takes())
    where = (f"{DEVICE}.consumesCounters[0].counterSet", "unknown-counter")
    assert found(manifest, target("1.34", DRAPartitionableDevices=True)) == [where]
    assert found(manifest, target("1.36")) == []


def test_step_of_zero_is_told_as_what_ends_the_connection_up_to_36():
    manifest = a_slice(policy(default="1", validRange={"min": "1", "step": "0"}))
    at = f"{DEVICE}.capacity[a].requestPolicy.validRange"
    assert found(manifest, target("1.36")) == [(at, "server-fails")]
    assert found(manifest) == [(f"{at}.step", "invalid-request-policy")]


def test_upper_case_driver_is_a_warning():
    [problem] = validate([a_slice(driver="GPU.example.com")], target())
    assert (problem.path, problem.code, problem.severity) == (
        "ResourceSlice s.spec.driver",
        "driver-not-lowercase",
        "warning",
    )


def test_fields_without_their_gate_are_dropped_with_a_warning_before_they_are_checked():
    manifest = a_slice(device(taints=[{"key": "", "effect": "x"}]))
    [problem] = validate([manifest], target("1.35"))
    assert (problem.path, problem.code, problem.severity) == (f"{DEVICE}.taints", "field-dropped", "warning")


def test_list_that_is_dropped_leaves_an_attribute_without_a_value():
    at = f"{DEVICE}.attributes[a]"
    assert set(found(a_slice(device(attributes={"a": {"ints": [1]}})))) == {
        (at, "one-of"),
        (f"{at}.ints", "field-dropped"),
    }


def test_driver_pool_and_node_never_change():
    old = a_slice()
    new = a_slice(driver="b", pool={"name": "b", "generation": 2, "resourceSliceCount": 1}, nodeName="b")
    [release] = target().releases
    verdict = judge(new, release, old=old)
    assert [(error.path, error.detail) for error in verdict.errors] == [
        ("spec.pool.name", "field is immutable"),
        ("spec.driver", "field is immutable"),
        ("spec.nodeName", "field is immutable"),
    ]


def test_unchanged_capacity_is_not_checked_again_from_37_on():
    old = a_slice(policy(default="1"))
    new = a_slice({**policy(default="1"), "allowMultipleAllocations": False})
    for minor, status in (("1.36", "invalid"), ("1.37", "accepted")):
        [release] = target(minor).releases
        assert judge(new, release, old=old).status == status


def test_wrapped_devices_of_v1beta1_are_judged_at_their_place_in_v1():
    manifest = a_slice({"name": "A", "basic": {"attributes": {"a": {}}}}, version="v1beta1")
    paths = {
        problem.path
        for problem in validate([manifest], ClusterTarget(kubernetes="1.37", serves=frozenset({"v1beta1"})))
    }
    assert paths == {f"{DEVICE}.name", f"{DEVICE}.basic.attributes[a]"}
