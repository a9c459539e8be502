"""The bridge: pods stay as they are, and a class serves each resource that they ask for."""

from __future__ import annotations

from typing import Any

from dra_infra.migration.bridge import bridge_classes
from dra_infra.migration.device_plugin import DevicePlugin, Replicas
from dra_infra.migration.needs import Settings


def pod(name: str, **limits: Any) -> dict[str, Any]:
    resources = {"limits": {key.replace("__", "/").replace("_", "."): value for key, value in limits.items()}}
    containers = [{"name": "main", "image": "registry.example.com/a:1", "resources": resources}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": containers}}


WHOLE = Settings(plugin=DevicePlugin(strategy="mixed"))


def test_pods_stay_and_each_resource_has_one_class():
    pods = [pod("a", nvidia_com__gpu=1), pod("b", nvidia_com__gpu=4)]
    found = bridge_classes(pods, WHOLE)
    assert [each.manifest is was for each, was in zip(found, pods, strict=True)] == [True, True]
    assert [len(each.added) for each in found] == [1, 0]
    (made,) = found[0].added
    assert made["spec"]["extendedResourceName"] == "nvidia.com/gpu"
    assert {each.code for one in found for each in one.remarks} == {"resource-bridged"}


def test_a_class_that_is_there_is_not_made_again():
    there = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "x"}}
    there["spec"] = {"extendedResourceName": "nvidia.com/gpu"}  # type: ignore[assignment]  # a mapping there
    found = bridge_classes([there, pod("a", nvidia_com__gpu=1)], WHOLE)
    assert [each.added for each in found] == [(), ()]
    assert "is served by the class x where" in found[1].remarks[0].message


def test_a_replica_is_not_bridged():
    replicas = {"nvidia.com/gpu": Replicas("time-slicing", 4, renamed=False, one_each=False)}
    (found,) = bridge_classes([pod("a", nvidia_com__gpu=1)], Settings(plugin=DevicePlugin(replicas=replicas)))
    assert [(each.outcome, each.code) for each in found.remarks] == [("decide", "replica-not-bridged")]
    assert found.added == ()
